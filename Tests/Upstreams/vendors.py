"""Responses that services document or were seen to send, one kind for each name.

…limited.mp4   the first request with Range is answered 403: a rate limit (Google Drive API, "Resolve errors": userRateLimitExceeded)
…busy.mp4      the first request with Range is answered 400: S3's RequestTimeout (Amazon S3 API reference, "Error responses")
…parts.mp4     a range of more than 256 KiB is answered by its first 256 KiB (RFC 9110 §15.3.7)
…uploaded.mp4  Content-Encoding: aws-chunked, repeated from the upload (Amazon S3 API reference, Signature Version 4)
…ending.mp4    no length: the end of the connection ends the body, over TLS with a closure alert (RFC 9112 §9.8)
…single.mp4    Range is ignored (RFC 9110 §14.2)
"""

from harness.upstream import Answer, asset, content
from harness.upstream import Upstream as Server

SIZE = 3_000_000
KINDS = ("limited.mp4", "busy.mp4", "parts.mp4", "uploaded.mp4", "ending.mp4", "single.mp4")
PART = 256 << 10


class Upstream(Server):
    """Each name has the content of its kind, which is the part behind the last hyphen."""

    def answer(self, request):
        name = request.path.lstrip("/").split("-")[-1]
        kind = name.removesuffix(".mp4")
        ranged = [each for each in self.of(request.path) if each.range]
        if kind in ("limited", "busy") and ranged[:1] == [request]:
            return Answer({"limited": 403, "busy": 400}[kind], body=b'{"error": {}}')
        file = asset(
            data=content(name, SIZE), etag=f'"{kind}"', last_modified=None, ranges=kind != "single",
            headers={"Content-Encoding": "aws-chunked"} if kind == "uploaded" else (),
        )  # fmt: skip
        if kind == "ending":
            file.ranges, file.length, file.headers = False, False, [("Connection", "close")]
            return lambda request, connection: end(file.answer(request), request, connection)
        if kind == "parts":
            limit(file)
        return file


def end(answer, request, connection):
    """Sends the answer and ends the connection, over TLS with a closure alert."""
    connection.send(answer.head() + (b"" if request.method == "HEAD" else answer.body))
    if connection.upstream.tls:
        connection.socket.unwrap()
    connection.close()


def limit(file):
    """Shortens each range of the file to PART bytes."""
    run_of = file.run

    def run(request):
        run = run_of(request)
        return (run[0], min(run[1], run[0] + PART)) if isinstance(run, tuple) else run

    file.run = run
