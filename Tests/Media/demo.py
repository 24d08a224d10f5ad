#!/usr/bin/env python3
"""Prefetches ten seconds at 60 s of a film and of a playlist, stops the upstream, and lets ffmpeg play them.

demo.py --larder .build/release/larder
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import run  # noqa: E402
from harness import checks  # noqa: E402
from harness.process import Larder, MediaServer  # noqa: E402
from players import FFmpeg  # noqa: E402

START, SECONDS = 60, 10
NAMES = ["mp4-tail.mp4", "hls-ts/index.m3u8"]


def main():
    parser = checks.arguments(__doc__, brief=None)
    sys.exit(demonstrate(checks.program_of(parser, parser.parse_args()), checks.directory("demo")))


def demonstrate(program, directory):
    """Returns the exit code."""
    print("ffmpeg makes two minutes of a film: an MP4 file with the index at its end, and an HLS playlist.")
    names = run.make(directory, NAMES, run.DURATION)
    upstream = MediaServer(directory / "nginx", directory / "files")
    larder = Larder(program, directory, upstream.port).start()
    print(f"nginx serves them on port {upstream.port}; Larder is on port {larder.port} with an empty store.\n")

    items = [run.played(name, START, SECONDS) for name in NAMES]
    print(f"POST /v1/jobs {json.dumps({'items': items, 'label': 'demo'})}")
    identifier = larder.job(*items, label="demo")
    job, items = larder.finished(identifier), larder.items(f"/v1/jobs/{identifier}/items")
    sizes = {name: run.size_of(directory, name) for name in names}
    print(f"  the job has {job['state']}; from the upstream: {job['bytesFromUpstream']} of {sum(sizes.values())} bytes")
    for item in items:
        if item["play"]:
            media = item["media"]
            what = f"{media['container']}, {media['layout']}, {media['durationSeconds']} s"
            print(f"  {item['path']}: {what}; playable: {item['playableSeconds']} s; ranges: {item['ranges'] or 'all'}")
    upstream.stop()
    print("\nThe upstream is stopped.")

    failed = job["state"] != "succeeded"
    for name in names:
        url = f"http://127.0.0.1:{larder.port}/o/media/{name}"
        played, message = FFmpeg().play(url, START, SECONDS)
        print(f"ffmpeg -ss {START} -t {SECONDS} -i {url} plays {played:.1f} s. {message}")
        failed = failed or played < SECONDS - 0.5
    larder.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    main()
