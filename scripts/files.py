"""A file server for the calls in README.md: scripts/files [HOST:PORT]

Serves three files from memory. Their bytes, dates and ETags are the same in each run, so that the output in README.md can
be reproduced. GET and HEAD, single ranges, If-Range, If-None-Match and If-Modified-Since are supported. Requests are
logged to standard error.
"""

import hashlib
import re
import signal
import sys
from email.utils import formatdate, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEFAULT_ADDRESS = "127.0.0.1:9071"
#: 2025-01-01T00:00:00Z
MODIFIED = 1_735_689_600
FILES = {
    "film.mp4": ("video/mp4", 23_094_500),
    "song.mp3": ("audio/mpeg", 1_441_376),
    "series.mp4": ("video/mp4", 30_000_000),
}
RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.A)
BLOCK = 256 * 1024


class File:
    def __init__(self, name, content_type, size):
        self.content_type, self.size = content_type, size
        self.content = memoryview(hashlib.shake_128(name.encode()).digest(size))
        self.etag = f'"{MODIFIED:x}-{size:x}"'
        self.last_modified = formatdate(MODIFIED, usegmt=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    files = {}

    def version_string(self):
        return "files"

    def do_GET(self):
        file = self.files.get(self.path.partition("?")[0].removeprefix("/"))
        if file is None:
            self.send_error(404)
        elif self.is_not_modified(file):
            self.send_response(304)
            self.send_validators(file)
            self.end_headers()
        else:
            self.send_file(file)

    do_HEAD = do_GET

    def send_file(self, file):
        span = self.requested_range(file)
        if span is None:
            self.send_response(200)
            first, end = 0, file.size
        elif span[0] >= span[1]:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{file.size}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        else:
            self.send_response(206)
            first, end = span
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{file.size}")
        self.send_header("Content-Type", file.content_type)
        self.send_header("Content-Length", str(end - first))
        self.send_header("Accept-Ranges", "bytes")
        self.send_validators(file)
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            for offset in range(first, end, BLOCK):
                self.wfile.write(file.content[offset : min(offset + BLOCK, end)])
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def send_validators(self, file):
        self.send_header("ETag", file.etag)
        self.send_header("Last-Modified", file.last_modified)

    def is_not_modified(self, file):
        if tags := self.headers.get("If-None-Match"):
            return file.etag in tags or tags.strip() == "*"
        if date := self.headers.get("If-Modified-Since"):
            try:
                return parsedate_to_datetime(date).timestamp() >= MODIFIED
            except ValueError:
                return False
        return False

    def requested_range(self, file):
        """The first offset and the end of a single range; an empty range if it is not satisfiable."""
        match = RANGE.fullmatch(self.headers.get("Range", ""))
        if not match or match[0] == "bytes=-":
            return None
        if self.headers.get("If-Range") not in (None, file.etag, file.last_modified):
            return None
        if not match[1]:
            return max(0, file.size - int(match[2])), file.size
        first, last = int(match[1]), int(match[2] or file.size - 1)
        return (first, min(last + 1, file.size)) if first <= last or not match[2] else None


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else DEFAULT_ADDRESS).rpartition(":")
    if not host or not port.isdecimal():
        raise SystemExit("usage: scripts/files [HOST:PORT]")
    Handler.files = {name: File(name, *properties) for name, properties in FILES.items()}
    try:
        server = Server((host, int(port)), Handler)
    except OSError as error:
        raise SystemExit(
            f"files: cannot listen on {host}:{port}: {error.strerror}. `make files FILES=HOST:PORT` uses another address."
        ) from None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sizes = ", ".join(f"{name} ({file.size:,} bytes)" for name, file in Handler.files.items())
    print(f"Serving {sizes} on http://{host}:{server.server_port} (Ctrl-C stops the server).", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
