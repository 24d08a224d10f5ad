#!/usr/bin/env python3
"""Kills Larder at random moments while a job expands playlists and fetches their segments.

    kills.py --larder .build/release/larder --rounds 20

Each round submits a job for a multivariant playlist with two media playlists, kills the process up to three times, and
waits for the end of the job. Then each file must be an item exactly once, and be on disk.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))

import run  # noqa: E402
from servers import Larder, MediaServer  # noqa: E402

SEGMENTS = 400


def make(directory):
    """Two renditions with small segments."""
    lines = ["#EXTM3U"]
    for rendition in ("a", "b"):
        (directory / rendition).mkdir(parents=True)
        media = ["#EXTM3U", "#EXT-X-TARGETDURATION:2"]
        for number in range(SEGMENTS):
            (directory / rendition / f"{number}.ts").write_bytes(f"{rendition} {number} ".encode() * 100)
            media += ["#EXTINF:2,", f"{number}.ts"]
        (directory / rendition / "index.m3u8").write_text("\n".join([*media, "#EXT-X-ENDLIST", ""]))
        lines += [f"#EXT-X-STREAM-INF:BANDWIDTH={len(lines)}00000", f"{rendition}/index.m3u8"]
    (directory / "master.m3u8").write_text("\n".join([*lines, ""]))


def all_items(larder, identifier):
    items, cursor = [], ""
    while True:
        page = json.loads(larder.ask("GET", f"/v1/jobs/{identifier}/items?limit=1000{cursor}")[1])
        items += page["items"]
        if not page["nextCursor"]:
            return items
        cursor = f"&cursor={page['nextCursor']}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--larder", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="larder-media."))
    try:
        kill_often(os.path.abspath(options.larder), directory, options.rounds, chance)
    finally:
        shutil.rmtree(directory, True)


def kill_often(program, directory, rounds, chance):
    failures, kills, seen = run.Failures(), 0, collections.Counter()
    (directory / "nginx").mkdir()
    (directory / "files").mkdir()
    upstream = MediaServer(directory / "nginx", directory / "files")
    larder = Larder(program, directory, upstream.port)
    if larder.start() is None:
        raise SystemExit("Larder does not start")
    for number in range(rounds):
        make(directory / "files" / str(number))
        play = {"startSeconds": 0, "seconds": 2 * SEGMENTS, "renditions": "all"}
        body = {"items": [{"origin": "media", "path": f"{number}/master.m3u8", "play": play}]}
        identifier = json.loads(larder.ask("POST", "/v1/jobs", body)[1])["jobId"]
        for _ in range(chance.randint(1, 3)):
            time.sleep(chance.uniform(0, 0.06) ** 2 * 16)
            job = json.loads(larder.ask("GET", f"/v1/jobs/{identifier}")[1])
            seen[job["itemsTotal"]] += 1
            larder.kill()
            kills += 1
            if larder.start() is None:
                raise SystemExit("Larder does not start after a kill")
        job, _ = run.finished(larder, identifier)
        failures.check(job["state"] == "succeeded", f"round {number}: the job is {job['state']}: {job['error']}")
        paths = collections.Counter(item["path"].split("/", 1)[1] for item in all_items(larder, identifier))
        expected = {"master.m3u8", "a/index.m3u8", "b/index.m3u8"}
        expected |= {f"{rendition}/{segment}.ts" for rendition in "ab" for segment in range(SEGMENTS)}
        failures.check(set(paths) == expected, f"round {number}: {len(expected - set(paths))} files are no items")
        repeated = [path for path, count in paths.items() if count > 1]
        failures.check(not repeated, f"round {number}: {len(repeated)} files are items twice, among them {repeated[:3]}")
        for path in chance.sample(sorted(expected), 20):
            content = (directory / "files" / str(number) / path).read_bytes()
            stored = larder.ask("GET", f"/o/media/{number}/{path}")[1]
            failures.check(stored == content, f"round {number}: {path} has other bytes")
    larder.stop()
    upstream.stop()
    print(f"  killed {kills} times; items of the job at the kill: {dict(sorted(seen.items()))}")
    print(f"media kills: {failures.checks} checks, {failures.count} failed")
    sys.exit(1 if failures.count else 0)


if __name__ == "__main__":
    main()
