"""Digest fields: RFC 9530 (Repr-Digest, Content-Digest, Want-…), RFC 9651 §4.2 (dictionaries)."""

import base64
import hashlib
import pathlib
import subprocess
import sys
import tempfile

from suite import asset, check, table

SECTION = (22, "Digests of content and representation")
SIZE = 300_000
BLOCK = 262_144
VERIFY = pathlib.Path(__file__).resolve().parents[2] / "examples" / "verify.py"


def digest(algorithm, body):
    value = hashlib.new(algorithm.replace("-", ""), body).digest()
    return f"{algorithm}=:{base64.b64encode(value).decode()}:"


def wants(representation=None, content=None):
    fields = [("Want-Repr-Digest", representation), ("Want-Content-Digest", content)]
    return [(name, value) for name, value in fields if value is not None]


def expect_digests(t, response, representation=None, content=None):
    """Compares the digest fields; None: no field."""
    for name, expected in (("Repr-Digest", representation), ("Content-Digest", content)):
        if response.get(name) != expected:
            t.fail(f"{response}: {name} is {response.get(name)}, expected {expected}")


@table(
    "the wanted algorithm with the highest weight is used", rfc="9530 §4, 9651 §3.2", larder_only=True,
    rows=[
        ("sha-256", "sha-256=1"), ("sha-512", "sha-512=1"), ("the higher weight", "sha-256=3, sha-512=10"),
        ("the order is ignored", "sha-512=10, sha-256=3"), ("equal weights", "sha-512=5, sha-256=5"),
        ("0 is not acceptable", "sha-256=0, sha-512=1"), ("unknown algorithms", "unixsum=10, crc32c=9, sha-256=1"),
        ("a deprecated algorithm", "md5=10, sha-512=1"), ("parameters", "sha-256=10;x=y, sha-512=1"),
        ("the last of equal keys", "sha-512=10, sha-512=0, sha-256=1"), ("a weight above 10", "sha-256=11, sha-512=1"),
        ("a negative weight", "sha-256=-1, sha-512=1"), ("a decimal weight", "sha-256=1.0, sha-512=1"),
        ("a weight that is no number", "sha-256=?1, sha-512=1"), ("an inner list", "sha-256=(10), sha-512=1"),
        ("white space", "sha-256=1  ,\tsha-512=2 "),
    ],
)  # fmt: skip
def preferences(t, _, value):
    chosen = {
        "sha-256=1": "sha-256", "sha-512=5, sha-256=5": "sha-256", "sha-256=10;x=y, sha-512=1": "sha-256",
        "unixsum=10, crc32c=9, sha-256=1": "sha-256", "sha-512=10, sha-512=0, sha-256=1": "sha-256",
    }.get(value, "sha-512")  # fmt: skip
    t.upstream(asset(SIZE))
    t.get()
    whole, part = t.bytes(0, SIZE), t.bytes(100, 1100)
    response = t.get(headers=wants(value, value))
    t.expect(response, 200, body=whole)
    expect_digests(t, response, digest(chosen, whole), digest(chosen, whole))
    response = t.get(range="bytes=100-1099", headers=wants(value, value))
    t.expect(response, 206, body=part)
    expect_digests(t, response, digest(chosen, whole), digest(chosen, part))


@table(
    "a field that requests nothing acceptable, or is invalid, is ignored", rfc="9530 §4, 9651 §4.2", larder_only=True,
    rows=[
        ("empty", ""), ("all 0", "sha-256=0, sha-512=0"), ("unknown", "sha-1=10, md5=5"), ("upper case", "SHA-256=1"),
        ("no value", "sha-256"), ("trailing comma", "sha-256=1,"), ("two equals signs", "sha-256==1"),
        ("text behind the value", "sha-256=1 sha-512=1"), ("no key", "=1"), ("a number of 16 digits", "sha-256=" + "1" * 16),
        ("quoted", '"sha-256=1"'), ("an open string", 'sha-256="1'), ("a list of tokens", "sha-256;q=1"),
        ("other bytes", "sha-256=1, \u00e9=1"), ("1,025 bytes", "sha-256=1, " + "a" * 1014),
        ("500 members", ", ".join(f"a{number}=1" for number in range(500)) + ", sha-256=1"),
    ],
)  # fmt: skip
def ignored(t, _, value):
    t.upstream(asset(SIZE))
    t.get()
    for range_value, run in ((None, (0, SIZE)), ("bytes=5-9", (5, 10))):
        response = t.get(range=range_value, headers=wants(value, value))
        t.expect(response, 206 if range_value else 200, body=t.bytes(*run))
        expect_digests(t, response)
    if len(t.requests) != 1:
        t.fail(f"{len(t.requests)} upstream requests")


@check("several field lines are one dictionary", rfc="9530 §4, 9651 §4.2", larder_only=True)
def lines(t):
    t.upstream(asset(SIZE))
    t.get()
    response = t.get(headers=[("Want-Repr-Digest", "sha-256=1"), ("Want-Repr-Digest", "sha-512=2")])
    expect_digests(t, response, digest("sha-512", t.bytes(0, SIZE)))
    response = t.get(headers=[("Want-Repr-Digest", "sha-256=1"), ("Want-Repr-Digest", "!")])
    expect_digests(t, response)


@table(
    "Content-Digest is that of the range", rfc="9530 §2", larder_only=True,
    rows=[
        ("the first byte", (0, 1)), ("the last byte", (SIZE - 1, SIZE)), ("inside a block", (1000, 2000)),
        ("the first block", (0, BLOCK)), ("the second block", (BLOCK, SIZE)),
        ("across blocks", (BLOCK - 1, BLOCK + 1)), ("the whole asset", (0, SIZE)),
    ],
)  # fmt: skip
def ranges(t, _, run):
    t.upstream(asset(SIZE))
    t.get()
    response = t.get(range=f"bytes={run[0]}-{run[1] - 1}", headers=wants("sha-256=1", "sha-256=1"))
    t.expect(response, 206, body=t.bytes(*run))
    expect_digests(t, response, digest("sha-256", t.bytes(0, SIZE)), digest("sha-256", t.bytes(*run)))


@check("Content-Digest of several ranges is that of the multipart body", rfc="9530 §2, 9110 §14.6", larder_only=True)
def multipart(t):
    t.upstream(asset(SIZE))
    t.get()
    response = t.get(range="bytes=5-9,299000-,100-199", headers=wants("sha-256=1", "sha-512=1"))
    if response.status != 206 or len(response.parts()) != 3:
        t.fail(f"{response}: expected three parts")
    expect_digests(t, response, digest("sha-256", t.bytes(0, SIZE)), digest("sha-512", response.body))


@check("HEAD has the digest of the representation", rfc="9530 §3, 9110 §9.3.2", larder_only=True)
def head(t):
    t.upstream(asset(SIZE))
    t.get()
    response = t.head(headers=wants("sha-256=1", "sha-256=1"))
    t.expect(response, 200, body=b"")
    expect_digests(t, response, digest("sha-256", t.bytes(0, SIZE)))


@table(
    "responses without the content have no digest", rfc="9530 §2, §3", larder_only=True,
    rows=[
        ("304", [("If-None-Match", '"v1"')], 304), ("412", [("If-Match", '"v2"')], 412),
        ("416", [("Range", f"bytes={SIZE}-")], 416), ("504", [("Cache-Control", "only-if-cached")], None),
    ],
)  # fmt: skip
def without_content(t, _, fields, status):
    t.upstream(asset(SIZE))
    if status is None:
        t.origin(requestDirectives=True)
    else:
        t.get()
    response = t.get(headers=wants("sha-256=1", "sha-256=1") + fields)
    if response.status != (status or 504):
        t.fail(f"{response}: expected {status or 504}")
    expect_digests(t, response)


@check("bytes that must be fetched have no digest", rfc="9530 §2, §3", larder_only=True)
def cold(t):
    t.upstream(asset(SIZE))
    fields = wants("sha-256=1", "sha-256=1")
    response = t.get(headers=fields)
    t.expect(response, 200, body=t.bytes(0, SIZE))
    expect_digests(t, response)
    whole = digest("sha-256", t.bytes(0, SIZE))
    expect_digests(t, t.get(headers=fields), whole, whole)


@check("the cached part of an asset has Content-Digest only", rfc="9530 §2, §3", larder_only=True)
def part(t):
    size = 3_000_000
    t.upstream(asset(size))
    t.get(range="bytes=0-9999")
    response = t.get(range="bytes=100-199", headers=wants("sha-256=1", "sha-256=1"))
    t.expect(response, 206, body=t.bytes(100, 200))
    expect_digests(t, response, None, digest("sha-256", t.bytes(100, 200)))


@check("a changed asset has the digest of its new bytes", rfc="9530 §3", larder_only=True)
def changed(t):
    t.upstream(asset(SIZE, cache_control="max-age=0"))
    t.get()
    fields = wants("sha-256=1", "sha-256=1")
    old, new = digest("sha-256", t.bytes(0, SIZE)), digest("sha-256", t.bytes(0, SIZE, 1))
    expect_digests(t, t.get(headers=fields), old, old)
    t.upstream(asset(SIZE, etag='"v2"', cache_control="max-age=0", seed=1))
    response = t.get(headers=fields)
    t.expect(response, 200, body=t.bytes(0, SIZE, 1))
    if response.get("Repr-Digest") == old or response.get("Content-Digest") == old:
        t.fail(f"{response}: the digest of the old asset")
    response = t.get(headers=fields)
    t.expect(response, 200, body=t.bytes(0, SIZE, 1))
    expect_digests(t, response, new, new)


@check("a digest of the upstream stays, and the wanted one is added", rfc="9530 §3", larder_only=True)
def stated(t):
    known, added = (digest(name, t.bytes(0, SIZE)) for name in ("sha-512", "sha-256"))
    t.upstream(asset(SIZE, headers=[("Repr-Digest", known)]))
    t.get()
    expect_digests(t, t.get(headers=wants("sha-512=1")), known)
    expect_digests(t, t.get(headers=wants("sha-256=1")), f"{known}, {added}")
    expect_digests(t, t.get(), known)


@check("a false digest of the upstream reaches the client without a contradicting one", rfc="9530 §3", larder_only=True)
def contradicted(t):
    false = digest("sha-512", b"other bytes")
    t.upstream(asset(SIZE, headers=[("Repr-Digest", false)]))
    t.get()
    for _ in range(2):
        response = t.get(headers=wants("sha-256=1", "sha-256=1"))
        t.expect(response, 200, body=t.bytes(0, SIZE))
        expect_digests(t, response, false)
    if len(t.requests) != 1:
        t.fail(f"{len(t.requests)} upstream requests")


@check("preferences are not sent to the upstream, and select no variant", rfc="9530 §4, 9111 §4.1", larder_only=True)
def private(t):
    t.upstream(asset(SIZE))
    t.get(headers=wants("sha-256=1", "sha-256=1"))
    t.get(headers=wants("sha-512=1", "sha-512=1"))
    names = [name.lower() for request in t.requests for name, _ in request.headers]
    if len(t.requests) != 1 or any(name.startswith("want-") for name in names):
        t.fail(f"{len(t.requests)} upstream requests with {names}")


@check("responses on one connection have their own digests", rfc="9530 §2", larder_only=True)
def persistent(t):
    t.upstream(asset(SIZE))
    t.get()
    with t.connect() as connection:
        for number in range(12):
            run = (number * 1000, number * 1000 + 500)
            fields = [("Range", f"bytes={run[0]}-{run[1] - 1}")] + (wants(None, "sha-256=1") if number % 3 else [])
            connection.request("GET", t.target(), fields)
            response = connection.response("GET", f"range {number}")
            t.expect(response, 206, body=t.bytes(*run))
            expect_digests(t, response, None, digest("sha-256", t.bytes(*run)) if number % 3 else None)


# Checksums of blocks

@table(
    "examples/verify.py compares a copy with the checksums of the blocks", rfc="9530 §1", larder_only=True,
    rows=[
        ("the same file", 0, ""), ("a changed byte", 1, "262144-299999: "), ("a shorter file", 1, "the content ends"),
        ("a longer file", 1, "the content has 300001 bytes"), ("the response", 0, ""),
        ("a response of another generation", 2, "ETag"), ("a page for each block", 0, ""),
        ("a part of the asset is cached", 0, "1 blocks compared, 1000 of"), ("all of it is required", 2, "no checksum"),
        ("all bytes were removed", 2, "404"), ("an unknown asset", 2, "404"), ("no service", 2, ""),
    ],
)  # fmt: skip
def verify(t, name, status, message):
    if t.peer.tls:
        return
    body, options, query = t.bytes(0, SIZE), [], ""
    t.upstream(asset(SIZE))
    is_partial = name in ("a part of the asset is cached", "all of it is required")
    if is_partial:
        body = t.bytes(0, 3_000_000)
        t.upstream(asset(len(body)))
        t.origin(readAheadBytes=0)
    first = t.get(range="bytes=0-999" if is_partial else None)
    identifier = "0" * 32 if name == "an unknown asset" else first.get("Larder-Asset-Id")
    service = "http://{}:{}".format(*t.peer.address)
    if name == "a changed byte":
        body = body[:-1] + bytes([body[-1] ^ 1])
    elif name == "a shorter file":
        body = body[:-1]
    elif name == "a longer file":
        body += b"x"
    elif name == "all of it is required":
        options = ["--complete"]
    elif name == "all bytes were removed":
        # The asset goes with its last user; the fill can be one for a moment after the response.
        extents = f"/v1/assets/{identifier}/extents?length={SIZE}"
        t.eventually(lambda: t.api("DELETE", extents).status == 404, "no asset remains")
    elif name == "a page for each block":
        query = "?limit=1"
    with tempfile.TemporaryDirectory() as directory:
        content = pathlib.Path(directory) / "content"
        content.write_bytes(body)
        if name == "the response":
            content = service + t.target()
        elif name == "a response of another generation":
            other = t.other_upstream(asset(SIZE, etag='"v2"'))
            content = other.url + "/media.mp4"
        place = "http://127.0.0.1:9" if name == "no service" else service
        document = f"{place}/v1/assets/{identifier}/integrity{query}"
        command = [sys.executable, str(VERIFY), *options, str(content), document]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != status or message not in done.stdout + done.stderr:
        t.fail(f"exit status {done.returncode}, expected {status}: {done.stdout}{done.stderr}")
