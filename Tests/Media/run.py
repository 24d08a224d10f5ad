#!/usr/bin/env python3
"""Prefetches some seconds of media, stops the upstream, and lets players play them.

    run.py --larder .build/release/larder
    run.py --larder .build/debug/larder --only mp4,hls --brief

One source is made by ffmpeg and stored in each container and layout. Each player plays SECONDS of each layout at three
positions directly from the upstream. Then a job makes these seconds playable, the upstream is stopped, and each player
must play the same time through Larder. The table shows what was fetched, beside the size of the files.
"""

import argparse
import atexit
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))

import players  # noqa: E402
from players import ffmpeg  # noqa: E402
from servers import Larder, MediaServer  # noqa: E402

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


class Failures:
    def __init__(self):
        self.count, self.checks = 0, 0

    def check(self, holds, what):
        self.checks += 1
        if not holds:
            self.count += 1
            print(f"  FAILED: {what}", flush=True)


def job(larder, position, start, seconds, name):
    play = {"startSeconds": start, "seconds": seconds, **PLAY.get(name, {})}
    item = {"origin": "media", "path": f"{position}/{name}", "play": play}
    status, body = larder.ask("POST", "/v1/jobs", {"items": [item], "label": f"{name} {position}"})
    if status != 202:
        raise SystemExit(f"the job of {name} was refused: {status} {body.decode()}")
    return json.loads(body)["jobId"]


def finished(larder, identifier):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        found = json.loads(larder.ask("GET", f"/v1/jobs/{identifier}")[1])
        if found["state"] not in ("queued", "running"):
            break
        time.sleep(0.01)
    items = json.loads(larder.ask("GET", f"/v1/jobs/{identifier}/items?limit=1000")[1])["items"]
    return found, items


def size_of(directory, name):
    file = directory / "files" / name
    return file.stat().st_size if "/" not in name else sum(f.stat().st_size for f in file.parent.rglob("*") if f.is_file())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--larder", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--brief", action="store_true")
    options = parser.parse_args()
    if options.brief and not (shutil.which("ffmpeg") and (shutil.which("nginx") or os.path.exists("/usr/sbin/nginx"))):
        print("media: skipped, ffmpeg or nginx is not installed; `make media` installs them")
        return
    names = [n for n in (BRIEF if options.brief else LAYOUTS) if any(p in n for p in options.only.split(","))]
    duration = 30 if options.brief else DURATION
    seconds = 4 if options.brief else SECONDS
    positions = {"head": 0, "middle": duration // 2, "end": duration - seconds}

    def start_of(position, name):
        return positions[position] - (LAST.get(name, 0) if position == "end" else 0)


    directory = pathlib.Path(tempfile.mkdtemp(prefix="larder-media."))
    atexit.register(shutil.rmtree, directory, True)
    failures = Failures()
    names = make(directory, names, duration)
    for position in positions:
        (directory / "media").mkdir(exist_ok=True)
        (directory / "media" / position).symlink_to(directory / "files")
    (directory / "nginx").mkdir()
    upstream = MediaServer(directory / "nginx", directory / "media")
    larder = Larder(os.path.abspath(options.larder), directory, upstream.port)
    if larder.start() is None:
        raise SystemExit("Larder does not start")

    present = [kind() for kind in players.ALL if kind.is_installed()][: 1 if options.brief else None]
    cases = [(name, position, start_of(position, name)) for name in names for position in positions]
    direct, own = {}, {}
    for name, position, start in cases:
        for player in present:
            upstream.forget_requests()
            url = f"http://127.0.0.1:{upstream.port}/{position}/{name}"
            began = time.monotonic()
            direct[name, position, player.name] = player.play(url, start, seconds)
            taken = time.monotonic() - began
            answers = upstream.answers()
            own[name, position, player.name] = (len(answers), sum(sent for _, _, sent in answers), taken)
    fetched = {}
    for name, position, start in cases:
        upstream.forget_requests()
        began = time.monotonic()
        found, items = finished(larder, job(larder, position, start, seconds, name))
        error = (found["error"] or {}).get("message")
        failures.check(found["state"] == "succeeded", f"{name} {position}: the job is {found['state']}: {error}")
        playable = items[0]["playableSeconds"] or 0
        failures.check(playable >= seconds - 0.3, f"{name} {position}: playableSeconds is {playable}")
        taken = time.monotonic() - began
        answers = upstream.answers()
        fetched[name, position] = (len(answers), sum(sent for _, _, sent in answers), taken)
    upstream.stop()

    unproved = []
    print("  Each player: played (directly); requests, bytes and time of the job ÷ those of the player directly")
    titles = "".join(f"  {player.name + ' (direct)':34}" for player in present)
    print(f"  {'layout':28}{'position':10}{'requests':>9}{'bytes':>11}{'of file':>9}{titles}")
    for name, position, start in cases:
        shown, plays = "", 0
        for player in present:
            played, message = player.play(f"http://127.0.0.1:{larder.port}/o/media/{position}/{name}", start, seconds)
            expected, _ = direct[name, position, player.name]
            what = f"{name} {position}: {player.name} played {played:.1f} s, and {expected:.1f} s directly: {message}"
            if expected >= seconds - 0.5 and not player.reads_more(name, position):
                failures.check(played >= seconds - 0.5, what)
                plays += 1
            ratios = zip(fetched[name, position], own[name, position, player.name])
            shares = " ".join(f"{mine / max(theirs, 1e-3):.2f}" for mine, theirs in ratios)
            shown += f"  {f'{played:.1f} s ({expected:.1f} s); {shares}':34}"
        if not plays:
            unproved.append(f"{name} {position}")
        requests, sent, _ = fetched[name, position]
        if "/" not in name:
            expected = own[name, position, present[0].name][0]
            what = f"{name} {position}: {requests} requests, {present[0].name} needs {expected} directly"
            failures.check(requests <= 1.5 * expected + 3, what)
        share = sent / size_of(directory, name)
        print(f"  {name:28}{position:10}{requests:9}{sent:11}{share:9.1%}{shown}", flush=True)
    for player in present:
        player.stop()
    larder.stop()
    if unproved:
        print(f"  No player plays these directly from the bytes of the span, so nothing is proved: {', '.join(unproved)}")
    for player in present:
        able = sum(played >= seconds - 0.5 for (_, _, name), (played, _) in direct.items() if name == player.name)
        failures.check(able > 0 or len(names) < 5, f"{player.name} plays nothing directly")
    failures.check(not any(all(f"{n} {p}" in unproved for p in positions) for n in names), "a layout is never proved")
    print(f"media: {failures.checks} checks, {failures.count} failed")
    sys.exit(1 if failures.count else 0)


if __name__ == "__main__":
    main()
