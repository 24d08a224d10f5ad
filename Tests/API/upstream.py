"""An upstream on loopback with a few files of fixed bytes: ranges, entity tags, and a body that stops half-way."""

import http.server
import random
import re
import threading

SIZE = 300_000
FILES = {name: random.Random(name).randbytes(SIZE) for name in ("one.bin", "two.bin", "films/one.mp4", "held.bin")}
FILES["list.m3u8"] = b"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n"
MODIFIED = "Wed, 01 Jan 2025 00:00:00 GMT"


def tag(name):
    return f'"{name}-1"'


class Upstream(http.server.ThreadingHTTPServer):
    """Sends FILES; the body of held.bin stops after its first half until `release` is set."""

    daemon_threads = True
    # A flood of connections must not be refused.
    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        self.release = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.release.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client may close its connection at any time."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        name = self.path.partition("?")[0].lstrip("/").replace("%2F", "/")
        body = FILES.get(name)
        if body is None:
            return self.respond(404, {}, b"")
        fields = {"ETag": tag(name), "Last-Modified": MODIFIED, "Accept-Ranges": "bytes", "Cache-Control": "max-age=600"}
        if self.headers.get("If-None-Match") == tag(name):
            return self.respond(304, fields, b"")
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not match or self.headers.get("If-Range", tag(name)) != tag(name):
            return self.respond(200, fields, body, held=name == "held.bin")
        size = len(body)
        first, last = int(match[1]), min(int(match[2] or size), size - 1)
        if first >= size:
            return self.respond(416, {"Content-Range": f"bytes */{size}"}, b"")
        fields["Content-Range"] = f"bytes {first}-{last}/{size}"
        return self.respond(206, fields, body[first : last + 1], held=name == "held.bin")

    do_HEAD = do_GET

    def respond(self, status, fields, body, held=False):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD" or status == 304:
            return
        half = len(body) // 2 if held else len(body)
        self.wfile.write(body[:half])
        if held:
            self.wfile.flush()
            self.server.release.wait(60)
            self.wfile.write(body[half:])
