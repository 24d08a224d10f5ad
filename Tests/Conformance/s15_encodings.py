"""Encoded bodies despite a request for identity: RFC 9110 §8.4 (Content-Encoding), §12.5.3 (Accept-Encoding)."""

import gzip

from suite import LAST_MODIFIED, Answer, asset, check, table

SECTION = (15, "Encoded bodies")
SIZE = 3000
FIELDS = [
    ("ETag", '"gz"'), ("Last-Modified", LAST_MODIFIED), ("Cache-Control", "max-age=3600"),
    ("Content-Type", "video/mp4"),
]  # fmt: skip
CODINGS = ["gzip", "x-gzip", "GZIP", "deflate", "br", "zstd", "compress", "gzip, identity", "unknown"]


def encoded(t):
    return gzip.compress(t.bytes(0, SIZE), mtime=0)


def expect_never_taken_for_plain(t, response, coding):
    """Passed on with its coding, as the upstream's own response; another proxy may decode it."""
    if t.is_larder:
        t.expect(response, 200, body=encoded(t), headers={"Content-Encoding": coding, "Content-Range": None})
        t.expect_cache_status(response, hit=False)
    elif response.status < 400 and not response.get("Content-Encoding"):
        if response.body not in (b"", t.bytes(0, SIZE)):
            t.fail(f"{response}: encoded bytes without Content-Encoding")


@check("identity is requested for any Accept-Encoding of the reader", rfc="9110 §12.5.3", larder_only=True)
def asks_for_identity(t):
    t.upstream(asset(SIZE))
    for accepted in ("gzip, br", "gzip;q=1.0, identity;q=0", "*"):
        t.get(headers={"Accept-Encoding": accepted}, path=f"/{len(t.requests)}.mp4")
    for request in t.requests:
        if request.get("Accept-Encoding") != "identity":
            t.fail(f"the upstream received Accept-Encoding: {request.get('Accept-Encoding')}")


@table("a 200 with Content-Encoding is passed on", rfc="9110 §8.4", rows=CODINGS)
def whole(t, coding):
    t.upstream(Answer(200, FIELDS + [("Content-Encoding", coding)], encoded(t)))
    for value in (None, "bytes=0-99", "bytes=-10"):
        expect_never_taken_for_plain(t, t.get(range=value), coding)
    t.expect_recovery(SIZE) if t.is_larder else None


@table("a 206 with Content-Encoding is requested again without Range", rfc="9110 §8.4, §14.4", rows=CODINGS)
def part(t, coding):
    def handler(request, connection):
        answer = asset(SIZE, etag='"gz"').answer(request)
        if not request.range:
            answer.body = encoded(t)
        answer.headers = [field for field in answer.headers if field[0] != "Content-Length"]
        answer.headers.append(("Content-Encoding", coding))
        connection.answer(answer)

    t.upstream(handler)
    for value in (None, "bytes=0-99"):
        expect_never_taken_for_plain(t, t.get(range=value), coding)
    t.expect_recovery(SIZE) if t.is_larder else None


@table(
    "an encoded body is not decoded and not stored", rfc="9110 §8.4", larder_only=True,
    rows=["with length", "chunked", "until the end"],
)  # fmt: skip
def not_decoded(t, framing):
    body = encoded(t)
    answer = Answer(
        200, FIELDS + [("Content-Encoding", "gzip")], body, chunked=framing == "chunked",
        length=framing != "until the end",
    )  # fmt: skip
    t.upstream(answer)
    response = t.get()
    t.expect(response, 200, body=body, headers={"Content-Encoding": "gzip"})
    t.expect_recovery(SIZE)


@table("Content-Encoding: identity or none is no encoding", rfc="9110 §8.4", rows=["identity", "Identity", ""])
def identity(t, coding):
    t.upstream(asset(SIZE, headers={"Content-Encoding": coding}))
    t.expect(t.get(range="bytes=100-199"), 206, body=t.bytes(100, 200))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table(
    "aws-chunked frames an upload and is no encoding of the stored bytes", rfc="9110 §8.4; Amazon S3 API reference, "
    "Signature Version 4: transferring payload in multiple chunks", larder_only=True,
    rows=["aws-chunked", "aws-chunked,", "AWS-Chunked", "identity, aws-chunked"],
)  # fmt: skip
def upload_coding(t, coding):
    t.upstream(asset(SIZE, headers={"Content-Encoding": coding}))
    t.expect(t.get(range="bytes=100-199"), 206, body=t.bytes(100, 200), headers={"Content-Encoding": None})
    again = t.get(range="bytes=100-199")
    t.expect(again, 206, body=t.bytes(100, 200))
    t.expect_cache_status(again, hit=True)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE), headers={"Content-Encoding": None})


@table(
    "aws-chunked beside another encoding is removed", rfc="9110 §8.4", larder_only=True,
    rows=["aws-chunked,gzip", "gzip, aws-chunked"],
)  # fmt: skip
def upload_coding_of_encoded(t, coding):
    t.upstream(Answer(200, FIELDS + [("Content-Encoding", coding)], encoded(t)))
    expect_never_taken_for_plain(t, t.get(), "gzip")


@check("encoded in some windows only", rfc="9110 §8.4, §15.3.7.3", larder_only=True)
def sometimes(t):
    size = 3_000_000

    def handler(request, connection):
        answer = asset(size).answer(request)
        if request.number % 2 == 0:
            answer.headers = answer.headers + [("Content-Encoding", "gzip")]
            answer.body = bytes(byte ^ 1 for byte in answer.body)
        connection.answer(answer)

    t.upstream(handler)
    t.expect_honest(t.get(), size)
    t.expect_recovery(size)


@check("a HEAD with gzip does not break the GET", rfc="9110 §9.3.2, §8.4")
def head(t):
    def handler(request, connection):
        headers = {"Content-Encoding": "gzip"} if request.method == "HEAD" else {}
        asset(SIZE, headers=headers)(request, connection)

    t.upstream(handler)
    t.expect(t.head(), body=b"")
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("a revalidation with an encoded response stores no encoded bytes", rfc="9111 §4.3.3", larder_only=True)
def revalidation(t):
    t.upstream(asset(SIZE, cache_control="max-age=0"))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.upstream(Answer(200, FIELDS + [("Content-Encoding", "gzip")], encoded(t)))
    t.expect(t.get(), 200, body=encoded(t), headers={"Content-Encoding": "gzip"})
    t.expect_recovery(SIZE)


@table(
    "a transfer coding is not part of the asset", rfc="9112 §6.1, §7.2",
    rows=[("gzip, chunked", True), ("gzip", False), ("deflate, chunked", True)],
)  # fmt: skip
def transfer_coding(t, coding, is_chunked):
    """Without TE only chunked is allowed; another coding is decoded or rejected, never served as received."""
    body = encoded(t)
    if is_chunked:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)

    def handler(request, connection):
        head = f'HTTP/1.1 200 OK\r\nETag: "v1"\r\nCache-Control: max-age=3600\r\nTransfer-Encoding: {coding}\r\n\r\n'
        connection.send(head.encode() + body)
        connection.close()

    t.upstream(handler)
    response = t.get()
    t.expect_honest(response, SIZE)
    t.expect_recovery(SIZE)
