"""An upstream on loopback that records the header fields of its requests and can hold its bodies back."""

import http.server
import random
import re
import threading

SIZE = 200_000


class Upstream(http.server.ThreadingHTTPServer):
    """Sends SIZE bytes for each path; `missing…` gives 404, and `held…` stops after its first half until `release`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        self.release = threading.Event()
        self.requests = []
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def of(self, name, method="GET"):
        """The header fields of the requests for a path, with lower-case names."""
        return [fields for verb, path, fields in list(self.requests) if verb == method and name in path]

    def handle_error(self, request, client_address):
        """A client may close its connection at any time."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        fields = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.command, self.path, fields))
        name = self.path.partition("?")[0].rsplit("/", 1)[-1]
        if name.startswith("missing"):
            return self.respond(404, {}, b"", False)
        body, tag = random.Random(name).randbytes(SIZE), f'"{name}"'
        answer = {"ETag": tag, "Accept-Ranges": "bytes", "Cache-Control": "max-age=600"}
        if fields.get("if-none-match") == tag:
            return self.respond(304, answer, b"", False)
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", fields.get("range", ""))
        if not match:
            return self.respond(200, answer, body, name.startswith("held"))
        first, last = int(match[1]), min(int(match[2] or SIZE), SIZE - 1)
        answer["Content-Range"] = f"bytes {first}-{last}/{SIZE}"
        self.respond(206, answer, body[first : last + 1], name.startswith("held"))

    do_HEAD = do_GET

    def respond(self, status, fields, body, is_held):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD" or status == 304:
            return
        half = len(body) // 2 if is_held else len(body)
        self.wfile.write(body[:half])
        if is_held:
            self.wfile.flush()
            self.server.release.wait(60)
            self.wfile.write(body[half:])
