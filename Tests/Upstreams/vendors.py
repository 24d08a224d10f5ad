"""Responses that services document or were seen to send, one kind for each name.

…limited.mp4   the first request with Range is answered 403: a rate limit (Google Drive API, "Resolve errors": userRateLimitExceeded)
…busy.mp4      the first request with Range is answered 400: S3's RequestTimeout (Amazon S3 API reference, "Error responses")
…parts.mp4     a range of more than 256 KiB is answered by its first 256 KiB (RFC 9110 §15.3.7)
…uploaded.mp4  Content-Encoding: aws-chunked, repeated from the upload (Amazon S3 API reference, Signature Version 4)
…ending.mp4    no length: the end of the connection ends the body, over TLS with a closure alert (RFC 9112 §9.8)
…single.mp4    Range is ignored (RFC 9110 §14.2)
"""

import os
import pathlib
import re
import ssl
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SITE = pathlib.Path(os.environ["SITE"])
PART = 256 << 10
SEEN = Counter()
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        name = self.path.lstrip("/")
        kind = name.split("-")[-1].removesuffix(".mp4")
        data = (SITE / f"{kind}.mp4.data").read_bytes()
        with LOCK:
            SEEN[name] += "Range" in self.headers
        if kind in ("limited", "busy") and "Range" in self.headers and SEEN[name] == 1:
            return self.answer({"limited": 403, "busy": 400}[kind], [], b'{"error": {}}')
        fields = [("ETag", f'"{kind}"'), ("Cache-Control", "max-age=3600"), ("Content-Type", "video/mp4")]
        if kind == "uploaded":
            fields.append(("Content-Encoding", "aws-chunked"))
        if kind == "ending":
            return self.answer(200, fields, data, has_length=False)
        span = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not span or kind == "single" or self.headers.get("If-Range", f'"{kind}"') != f'"{kind}"':
            return self.answer(200, fields, data)
        first, last = span.groups()
        begin = int(first) if first else max(0, len(data) - int(last))
        end = min(len(data), int(last) + 1) if first and last else len(data)
        if begin >= len(data):
            return self.answer(416, [("Content-Range", f"bytes */{len(data)}")], b"")
        if kind == "parts":
            end = min(end, begin + PART)
        fields.append(("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}"))
        self.answer(206, fields, data[begin:end])

    def answer(self, status, fields, body, has_length=True):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if has_length:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        if not has_length:
            self.wfile.flush()
            if isinstance(self.connection, ssl.SSLSocket):
                self.connection.unwrap()
            self.close_connection = True


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler)
if "CERTIFICATE" in os.environ:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
