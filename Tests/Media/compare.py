#!/usr/bin/env python3
"""Compares ways to make seconds of media playable before a player asks for them.

    compare.py --larder .build/release/larder

For each layout, position and round trip to the upstream: a prefetch job of Larder, nginx's slice module that is warmed
with the head and the tail of the file, and the same module that a player reads through. The table shows upstream
requests and bytes, the time, and whether ffmpeg then plays the seconds without the upstream.
"""

import pathlib
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests"), str(ROOT / "scripts")]

import run  # noqa: E402
from fillbench.stage import ScriptedUpstream  # noqa: E402
from harness import checks, http  # noqa: E402
from harness.process import Larder, Nginx  # noqa: E402
from players import FFmpeg  # noqa: E402

LAYOUTS = ["mp4-tail.mp4", "mp4-head.mp4", "mp4-sidx.mp4", "matroska-tail.mkv", "hls-ts/index.m3u8"]
SECONDS, ENDS = 10, 2 << 20


def slice_cache(directory, upstream):
    return Nginx(
        directory,
        f"""
            access_log off;
            proxy_cache_path {directory}/cache levels=1:2 keys_zone=cache:16m max_size=1g use_temp_path=off;
            upstream media {{ server 127.0.0.1:{upstream.port}; keepalive 16; }}
            server {{
                listen 127.0.0.1:{{port}};
                location / {{
                    slice 1m; proxy_cache cache; proxy_cache_key $uri$is_args$args$slice_range;
                    proxy_set_header Range $slice_range; proxy_cache_valid 200 206 1d;
                    proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://media;
                }}
            }}
        """,
    )


class Job:
    """A prefetch job by time."""

    title = "Larder, job by time"

    def __init__(self, program, directory, upstream):
        self.cache = Larder(program, directory, upstream.port).start()
        self.prefix = "o/media/"

    def warm(self, name, start):
        self.cache.finished(self.cache.job(run.played(name, start, SECONDS)))

    def stop(self):
        self.cache.stop()


class Slice:
    """The cache of nginx; `warm` reads the head and the tail of the file."""

    title = "nginx slice, head + tail"
    prefix = ""

    def __init__(self, _program, directory, upstream):
        self.cache = slice_cache(directory, upstream)

    def warm(self, name, _start):
        for window in (f"bytes=0-{ENDS - 1}", f"bytes=-{ENDS}"):
            http.send(self.cache.port, "GET", f"/{name}", {"Range": window})

    def stop(self):
        self.cache.stop()


class Played(Slice):
    """The cache of nginx; `warm` plays the seconds."""

    title = "nginx slice, played once"

    def warm(self, name, start):
        FFmpeg().play(f"http://127.0.0.1:{self.cache.port}/{name}", start, SECONDS)


def main():
    parser = checks.arguments(__doc__, brief=None)
    options = parser.parse_args()
    names = [name for name in LAYOUTS if any(part in name for part in options.only.split(","))]
    root = checks.directory("media")
    compare(checks.program_of(parser, options), root, run.make(root, names, run.DURATION))


def compare(program, root, names):
    titles = f"{'requests':>9}{'bytes':>12}{'seconds':>9}  plays without the upstream"
    for round_trip in (0, 0.1):
        print(f"\n  {round_trip * 1000:.0f} ms to the upstream\n  {'layout':20}{'from':>6}  {'method':26}{titles}")
        for name in names:
            for start in (0, run.DURATION // 2):
                for method in (Job, Slice, Played):
                    measure(method, program, root, name, start, round_trip)


def measure(method, program, root, name, start, round_trip):
    directory = pathlib.Path(tempfile.mkdtemp(dir=root))
    upstream = ScriptedUpstream(root / "files", roundTrip=round_trip)
    cache = method(program, directory, upstream)
    began = time.monotonic()
    cache.warm(name, start)
    took = time.monotonic() - began
    # A cache can still read bytes that the client no longer wants.
    time.sleep(0.2)
    log = upstream.log()
    upstream.stop()
    url = f"http://127.0.0.1:{cache.cache.port}/{cache.prefix}{name}"
    played, _ = FFmpeg().play(url, start, SECONDS)
    verdict = "yes" if played >= SECONDS - 0.5 else f"no ({played:.1f} s)"
    requests = [request for request in log["requests"] if request["method"] == "GET"]
    sent = sum(request["sent"] for request in requests)
    print(f"  {name:20}{start:6}  {method.title:26}{len(requests):9}{sent:12}{took:9.2f}  {verdict}", flush=True)
    cache.stop()


if __name__ == "__main__":
    main()
