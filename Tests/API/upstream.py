"""An upstream with a few files of fixed bytes, and a body that stops half-way."""

import threading

from harness import upstream

SIZE = 300_000
FILES = {name: upstream.content(name, SIZE) for name in ("one.bin", "two.bin", "films/one.mp4", "held.bin")}
FILES["list.m3u8"] = b"#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n"
FILES["foreign.txt"] = b"http://other.example/x.bin\n//other.example/y.bin\n"
#: A part of a bucket's listing that names itself as the next one.
ENDLESS = b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>"
FILES["files.txt"] = b"one.bin\nfilms/one.mp4\nfilms/\n//other.example/x.bin\n"
MODIFIED = "Wed, 01 Jan 2025 00:00:00 GMT"


def tag(name):
    return f'"{name}-1"'


class Upstream(upstream.Upstream):
    """Sends FILES; the body of held.bin stops after its first half until `release` is set."""

    def __init__(self):
        self.release = threading.Event()
        super().__init__()

    def answer(self, request):
        name = request.name.lstrip("/")
        if not name:
            return upstream.Answer(200, body=ENDLESS)
        if name not in FILES:
            return upstream.Answer(404)
        file = upstream.asset(
            data=FILES[name], etag=tag(name), last_modified=MODIFIED, cache_control="max-age=600",
            content_type="application/octet-stream",
        )  # fmt: skip
        answer = file.answer(request)
        answer.hold = self.release if name == "held.bin" else None
        return answer
