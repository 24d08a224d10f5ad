#!/usr/bin/env python3
"""Prefetches some seconds of media, stops the upstream, and lets players play them.

    run.py --larder .build/release/larder
    run.py --larder .build/debug/larder --only mp4,hls --brief

One source is made by ffmpeg and stored in each container and layout. Each player plays SECONDS of each layout at three
positions directly from the upstream. Then a job makes these seconds playable, the upstream is stopped, and each player
must play the same time through Larder. With `--samples`, real files of other projects are played as well, from their
beginning and from their middle. The table shows what was fetched, beside the size of the files.
"""

import os
import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import players  # noqa: E402
import samples  # noqa: E402
from harness import checks, venv  # noqa: E402
from harness.process import Larder, MediaServer  # noqa: E402
from players import ffmpeg  # noqa: E402

DURATION, SECONDS = 120, 10
POSITIONS = {"head": 0, "middle": 60, "end": DURATION - SECONDS}

#: File or playlist, and the arguments of ffmpeg that make it from the source.
LAYOUTS = {
    "mp4-tail.mp4": ["-c", "copy"],
    "mp4-head.mp4": ["-c", "copy", "-movflags", "faststart"],
    "mp4-fragmented.mp4": ["-c", "copy", "-movflags", "frag_keyframe+empty_moov+default_base_moof"],
    "mp4-frames.mp4": ["-c", "copy", "-movflags", "frag_every_frame+empty_moov"],
    "mp4-edits.mp4": ["-ss", "0.5", "-c", "copy"],
    "mp4-sidx.mp4": ["-c", "copy", "-movflags", "dash+global_sidx", "-frag_duration", "2000000"],
    "mov-tail.mov": ["-c", "copy"],
    "audio.m4a": ["-vn", "-c", "copy"],
    "matroska-tail.mkv": ["-c", "copy"],
    "matroska-head.mkv": ["-c", "copy", "-cues_to_front", "1"],
    "matroska-live.mkv": ["-c", "copy", "-live", "1"],
    "matroska-sparse.mkv": ["-c", "copy", "-cluster_time_limit", "30000", "-cluster_size_limit", "50000000"],
    "xing.mp3": ["-vn", "-c:a", "libmp3lame", "-b:a", "128k"],
    "constant.mp3": ["-vn", "-c:a", "libmp3lame", "-b:a", "128k", "-write_xing", "0"],
    "variable.mp3": ["-vn", "-c:a", "libmp3lame", "-q:a", "4", "-write_xing", "0"],
    "stream.ts": ["-c", "copy", "-f", "mpegts"],
    "hls-ts/index.m3u8": ["-c", "copy", "-f", "hls", "-hls_time", "4", "-hls_playlist_type", "vod"],
    "hls-fmp4/index.m3u8": [
        "-c", "copy", "-f", "hls", "-hls_time", "4", "-hls_playlist_type", "vod", "-hls_segment_type", "fmp4",
    ],
    "hls-single/index.m3u8": [
        "-c", "copy", "-f", "hls", "-hls_time", "4", "-hls_playlist_type", "vod", "-hls_flags", "single_file",
    ],
    "hls-key/index.m3u8": [
        "-c", "copy", "-f", "hls", "-hls_time", "4", "-hls_playlist_type", "vod", "-hls_key_info_file", "KEY",
    ],
    "hls-master/master.m3u8": [
        "-map", "0:v", "-map", "0:a", "-map", "0:v", "-c:v", "libx264", "-preset", "ultrafast", "-g", "50",
        "-b:v:0", "1500k", "-b:v:1", "500k", "-c:a", "copy", "-b:a", "96k", "-f", "hls", "-hls_time", "4",
        "-hls_playlist_type", "vod", "-var_stream_map", "v:0,agroup:sound a:0,agroup:sound,default:yes v:1,agroup:sound",
        "-master_pl_name", "master.m3u8", "-hls_segment_filename", "DIRECTORY/%v/%03d.ts",
    ],
    "dash-template/manifest.mpd": ["-c", "copy", "-f", "dash", "-seg_duration", "4", "-use_timeline", "0"],
    "dash-timeline/manifest.mpd": ["-c", "copy", "-f", "dash", "-seg_duration", "4", "-use_timeline", "1"],
}
#: Members of `play`. ffmpeg and mpv read the beginning of all variant streams.
PLAY = {"hls-master/master.m3u8": {"renditions": "all"}}
#: ffmpeg requests the segment behind the last one of a template with numbers, and needs the response 404. A cut file is
#: shorter than the others.
LAST = {"dash-template/manifest.mpd": 6, "mp4-edits.mp4": 1}
BRIEF = ["mp4-tail.mp4", "mp4-head.mp4", "matroska-tail.mkv", "hls-ts/index.m3u8", "dash-timeline/manifest.mpd"]


def make(directory, names, duration):
    """Creates the files below `directory`; returns the names of those that ffmpeg can make."""
    source = directory / "source.mkv"
    code, output = ffmpeg(
        "-f", "lavfi", "-i", f"testsrc2=s=480x270:r=25:d={duration},noise=alls=20:allf=t",
        "-f", "lavfi", "-i", f"sine=f=440:d={duration}", "-c:v", "libx264", "-preset", "ultrafast", "-g", "50",
        "-b:v", "1500k", "-maxrate", "1500k", "-bufsize", "1500k", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "96k",
        "-t", duration, source,
    )  # fmt: skip
    if code != 0:
        raise SystemExit(f"ffmpeg cannot make the source: {output}")
    made = []
    for name in names:
        file = directory / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        arguments = [part.replace("DIRECTORY", str(file.parent)) for part in LAYOUTS[name]]
        if "KEY" in arguments:
            key = file.parent / "secret.key"
            key.write_bytes(os.urandom(16))
            (file.parent / "key.info").write_text(f"secret.key\n{key}\n")
            arguments[arguments.index("KEY")] = str(file.parent / "key.info")
        target = file.parent / "%v/index.m3u8" if "-var_stream_map" in arguments else file
        skipped = arguments[:2] if arguments[0] == "-ss" else []
        code, output = ffmpeg(*skipped, "-i", source, *arguments[len(skipped) :], target)
        if code != 0:
            print(f"  skipped {name}: {output.splitlines()[-1:]}")
        else:
            made.append(name)
    return made


def played(name, start, seconds, position=""):
    """The item of a job that makes this time of a file playable."""
    play = {"startSeconds": start, "seconds": seconds, **PLAY.get(name, {})}
    return {"origin": "media", "path": f"{position}/{name}".lstrip("/"), "play": play}


def size_of(directory, name):
    file = directory / "files" / name
    return file.stat().st_size if "/" not in name or name.startswith("real/") else sum(f.stat().st_size for f in file.parent.rglob("*") if f.is_file())


class Case:
    """A file or playlist, and the time that is played."""

    def __init__(self, name, position, start, seconds):
        self.name, self.position, self.start, self.seconds = name, position, start, seconds
        #: The players that `/media` excludes.
        self.excluded = []

    def __str__(self):
        return f"{self.name} {self.position}"

    def is_played(self, seconds):
        return seconds >= self.seconds - min(0.5, self.seconds / 4)


def made_cases(names, duration, seconds):
    """The cases of the files that ffmpeg has made."""
    positions = {"head": 0, "middle": duration // 2, "end": duration - seconds}
    return [
        Case(name, position, start - (LAST.get(name, 0) if position == "end" else 0), seconds)
        for name in names for position, start in positions.items()
    ]  # fmt: skip


def real_cases(directory, archives):
    """The cases of real files: those of which ffprobe knows the duration."""
    names, missing = samples.collect(directory / "files" / "real", archives)
    print(f"  {len(names)} real files; packages without: {', '.join(missing) or 'none'}")
    cases, unknown = [], []
    for name in names:
        file = directory / "files" / "real" / name
        code, output = players.run(["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", file])
        try:
            duration = float(output.splitlines()[-1]) if code == 0 else 0
        except (IndexError, ValueError):
            duration = 0
        if duration < 0.5:
            unknown.append(name)
            continue
        seconds = min(SECONDS, round(duration / 2, 2))
        cases += [Case(f"real/{name}", "head", 0, seconds), Case(f"real/{name}", "middle", duration - seconds, seconds)]
    print(f"  Not played, because ffprobe states no duration: {', '.join(unknown) or 'none'}")
    return cases


def main():
    parser = checks.arguments(__doc__)
    parser.add_argument("--samples", type=pathlib.Path, help="the folder of downloaded packages")
    parser.add_argument("--players", default="", help="names, separated by commas")
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    if options.brief and not venv.has_programs("ffmpeg", "nginx"):
        checks.skip_all("media", "ffmpeg or nginx is not installed; `make media` installs them")
    names = [n for n in (BRIEF if options.brief else LAYOUTS) if any(p in n for p in options.only.split(","))]
    duration = 30 if options.brief else DURATION

    directory = checks.directory("media")
    check = checks.Checks("media")
    cases = made_cases(make(directory, names, duration), duration, 4 if options.brief else SECONDS)
    if options.samples:
        cases += [case for case in real_cases(directory, options.samples) if any(p in case.name for p in options.only.split(","))]
    for position in ("head", "middle", "end"):
        (directory / "media").mkdir(exist_ok=True)
        (directory / "media" / position).symlink_to(directory / "files")
    upstream = MediaServer(directory / "nginx", directory / "media")
    larder = Larder(program, directory, upstream.port).start()

    present = [kind() for kind in players.ALL if kind.is_installed() and any(p in kind.name for p in options.players.split(","))]
    present = present[: 1 if options.brief else None]
    print(f"  Players: {', '.join(player.name for player in present)}")
    direct, own = {}, {}
    for case in cases:
        for player in present:
            upstream.forget_requests()
            url = f"http://127.0.0.1:{upstream.port}/{case.position}/{case.name}"
            began = time.monotonic()
            direct[str(case), player.name] = player.play(url, case.start, case.seconds)
            taken = time.monotonic() - began
            answers = upstream.answers()
            own[str(case), player.name] = (len(answers), sum(sent for _, _, sent in answers), taken)
    fetched, refused = {}, []
    for case in cases:
        upstream.forget_requests()
        began = time.monotonic()
        identifier = larder.job(played(case.name, case.start, case.seconds, case.position), label=str(case))
        found, items = larder.finished(identifier), larder.items(f"/v1/jobs/{identifier}/items")
        taken = time.monotonic() - began
        error = (found["error"] or {}).get("message")
        if case.name.startswith("real/") and found["state"] == "failed" and "otherwise" in (error or ""):
            refused.append(case.name)
            continue
        check(found["state"] == "succeeded", f"{case}: the job is {found['state']}: {error}")
        playable = items[0]["playableSeconds"] or 0
        check(playable >= case.seconds - 0.3, f"{case}: playableSeconds is {playable}")
        answers = upstream.answers()
        fetched[str(case)] = (len(answers), sum(sent for _, _, sent in answers), taken)
        found = larder.get(f"/v1/assets?key=/o/media/{case.position}/{case.name}")["items"]
        if found:
            case.excluded = larder.get(f"/v1/assets/{found[0]['assetId']}/media").get("notFor", [])
        if PLAY.get(case.name, {}).get("renditions") == "all":
            case.excluded = [name for name in case.excluded if name not in ("ffmpeg", "mpv")]
    upstream.stop()
    if refused:
        print(f"  Refused, because only the whole file plays: {', '.join(sorted(set(refused)))}")
    show([case for case in cases if str(case) in fetched], present, larder, directory, direct, own, fetched, check)
    for player in present:
        player.stop()
    larder.stop()
    for player in present:
        able = any(case.is_played(direct[str(case), player.name][0]) for case in cases)
        check(able or len(cases) < 15, f"{player.name} plays nothing directly")
    sys.exit(check.finish())


def show(cases, present, larder, directory, direct, own, fetched, check):
    """Plays all cases without the upstream, and prints the table."""
    unproved = []
    print("  Each player: played (directly); requests, bytes and time of the job ÷ those of the player directly")
    titles = "".join(f"  {player.name + ' (direct)':34}" for player in present)
    print(f"  {'file':40}{'position':10}{'requests':>9}{'bytes':>11}{'of file':>9}{titles}")
    for case in cases:
        shown, plays = "", 0
        for player in present:
            url = f"http://127.0.0.1:{larder.port}/o/media/{case.position}/{case.name}"
            played, message = player.play(url, case.start, case.seconds)
            expected, _ = direct[str(case), player.name]
            mark = ""
            if player.name in case.excluded:
                mark = " notFor"
            elif case.is_played(expected):
                what = f"{case}: {player.name} played {played:.1f} s, and {expected:.1f} s directly: {message}"
                check(case.is_played(played), what)
                plays += 1
            ratios = zip(fetched[str(case)], own[str(case), player.name])
            shares = " ".join(f"{mine / max(theirs, 1e-3):.2f}" for mine, theirs in ratios)
            shown += f"  {f'{played:.1f} s ({expected:.1f} s); {shares}{mark}':34}"
        if not plays:
            unproved.append(case)
        requests, sent, _ = fetched[str(case)]
        if "/" not in case.name:
            expected = own[str(case), present[0].name][0]
            what = f"{case}: {requests} requests, {present[0].name} needs {expected} directly"
            check(requests <= 1.5 * expected + 3, what)
        share = sent / size_of(directory, case.name)
        print(f"  {case.name:40}{case.position:10}{requests:9}{sent:11}{share:9.1%}{shown}", flush=True)
    if unproved:
        print(f"  No player plays these directly from the bytes of the span: {', '.join(map(str, unproved))}")
    for name in {case.name for case in cases if not case.name.startswith("real/")}:
        check(any(case.name == name and case not in unproved for case in cases), f"{name} is never proved")


if __name__ == "__main__":
    main()
