#!/usr/bin/env python3
"""Kills Larder at random moments while a job expands playlists and fetches their segments.

    kills.py --larder .build/release/larder --rounds 20

Each round submits a job for a multivariant playlist with two media playlists, kills the process up to three times, and
waits for the end of the job. Then each file must be an item exactly once, and be on disk.
"""

import collections
import pathlib
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import checks  # noqa: E402
from harness.process import Larder, MediaServer  # noqa: E402

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


def main():
    parser = checks.arguments(__doc__, brief=None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kill_often(checks.program_of(parser, options), checks.directory("media"), options.rounds, random.Random(options.seed))


def kill_often(program, directory, rounds, chance):
    check, kills, seen = checks.Checks("media kills"), 0, collections.Counter()
    (directory / "files").mkdir()
    upstream = MediaServer(directory / "nginx", directory / "files")
    larder = Larder(program, directory, upstream.port).start()
    for number in range(rounds):
        make(directory / "files" / str(number))
        play = {"startSeconds": 0, "seconds": 2 * SEGMENTS, "renditions": "all"}
        identifier = larder.job({"origin": "media", "path": f"{number}/master.m3u8", "play": play})
        for _ in range(chance.randint(1, 3)):
            time.sleep(chance.uniform(0, 0.06) ** 2 * 16)
            seen[larder.get(f"/v1/jobs/{identifier}")["itemsTotal"]] += 1
            larder.kill()
            kills += 1
            larder.start()
        job = larder.finished(identifier)
        check(job["state"] == "succeeded", f"round {number}: the job is {job['state']}: {job['error']}")
        paths = collections.Counter(item["path"].split("/", 1)[1] for item in larder.items(f"/v1/jobs/{identifier}/items"))
        expected = {"master.m3u8", "a/index.m3u8", "b/index.m3u8"}
        expected |= {f"{rendition}/{segment}.ts" for rendition in "ab" for segment in range(SEGMENTS)}
        check(set(paths) == expected, f"round {number}: {len(expected - set(paths))} files are no items")
        repeated = [path for path, count in paths.items() if count > 1]
        check(not repeated, f"round {number}: {len(repeated)} files are items twice, among them {repeated[:3]}")
        for path in chance.sample(sorted(expected), 20):
            content = (directory / "files" / str(number) / path).read_bytes()
            stored = larder.ask("GET", f"/o/media/{number}/{path}")[1]
            check(stored == content, f"round {number}: {path} has other bytes")
    larder.stop()
    upstream.stop()
    print(f"  killed {kills} times; items of the job at the kill: {dict(sorted(seen.items()))}")
    sys.exit(check.finish())


if __name__ == "__main__":
    main()
