"""A file server for the calls in README.md: scripts/files [HOST:PORT]

Serves three files from memory. Their bytes, dates and ETags are the same in each run, so that the output in README.md can
be reproduced. Requests are logged to standard error.
"""

import hashlib
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tests"))

from harness import upstream  # noqa: E402

DEFAULT_ADDRESS = "127.0.0.1:9071"
#: 2025-01-01T00:00:00Z
MODIFIED, LAST_MODIFIED = 1_735_689_600, "Wed, 01 Jan 2025 00:00:00 GMT"
FILES = {
    "film.mp4": ("video/mp4", 23_094_500),
    "song.mp3": ("audio/mpeg", 1_441_376),
    "series.mp4": ("video/mp4", 30_000_000),
}


class Server(upstream.Upstream):
    """Sends FILES, and logs each request."""

    def answer(self, request):
        print(f'"{request.method} {request.target}" {request.range or "-"}', file=sys.stderr, flush=True)
        return ASSETS.get(request.path.removeprefix("/"), upstream.Answer(404))


ASSETS = {
    name: upstream.asset(
        data=memoryview(hashlib.shake_128(name.encode()).digest(size)), etag=f'"{MODIFIED:x}-{size:x}"',
        last_modified=LAST_MODIFIED, cache_control=None, content_type=kind,
    )
    for name, (kind, size) in FILES.items()
}  # fmt: skip


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else DEFAULT_ADDRESS).rpartition(":")
    if not host or not port.isdecimal():
        raise SystemExit("usage: scripts/files [HOST:PORT]")
    try:
        server = Server(host.strip("[]"), int(port))
    except OSError as error:
        raise SystemExit(
            f"files: cannot listen on {host}:{port}: {error.strerror}. `make files FILES=HOST:PORT` uses another address."
        ) from None
    sizes = ", ".join(f"{name} ({size:,} bytes)" for name, (_, size) in FILES.items())
    print(f"Serving {sizes} on http://{host}:{server.port} (Ctrl-C stops the server).", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        signal.pause()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
