"""Range syntax: RFC 9110 §14.1.1 (grammar), §14.2 (Range), §14.4 (Content-Range), §15.3.7 (206), §15.5.17 (416).

A syntactically valid range-spec is satisfiable (206) or unsatisfiable (416). An invalid Range field may be ignored
or rejected (§14.2); Larder ignores it. An unknown unit must be ignored. Units are case-insensitive (§14.1).
"""

import random
import re

from suite import LAST_MODIFIED, Answer, asset, check, table

SECTION = (1, "Range syntax")
BOTH = ("cold", "warm")
SIZE = 1000
BIG = 3_000_000


def expect_partial(t, response, first, last, size=SIZE):
    """Expects a plain 206 of `first … last` with the header fields of §15.3.7."""
    place = {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Length": last - first + 1}
    t.expect(response, 206, body=t.bytes(first, last + 1), headers=dict(place, ETag='"v1"'))


def expect_whole(t, response, size=SIZE):
    """Expects a 200 as if there were no Range; a peer may reject an invalid one (§14.2: MAY ignore or reject)."""
    if not t.is_larder and response.status in (400, 416):
        t.expect(response)
        return
    t.expect(response, 200, body=t.bytes(0, size), headers={"Content-Range": None, "Content-Length": size})


def expect_unsatisfiable(t, response, size=SIZE):
    t.expect(response, 416, headers={"Content-Range": f"bytes */{size}"})
    if response.body == t.bytes(0, len(response.body)) and response.body:
        t.fail(f"{response}: the body of a 416 contains asset bytes")


@table(
    "a satisfiable range", rfc="9110 §14.1.2", states=BOTH,
    rows=[
        ("bytes=0-0", 0, 0),
        ("bytes=999-999", 999, 999),
        ("bytes=0-", 0, 999),
        ("bytes=1-", 1, 999),
        ("bytes=999-", 999, 999),
        ("bytes=500-600", 500, 600),
        ("bytes=0-999", 0, 999),
        ("bytes=0-1000", 0, 999),
        ("bytes=990-5000", 990, 999),
        ("bytes=-1", 999, 999),
        ("bytes=-999", 1, 999),
        ("bytes=-1000", 0, 999),
        ("bytes=-5000", 0, 999),
        ("bytes=007-0011", 7, 11),
        ("BYTES=5-9", 5, 9),
        ("Bytes=-10", 990, 999),
    ],
)  # fmt: skip
def satisfiable(t, value, first, last):
    t.upstream(asset(SIZE))
    expect_partial(t, t.get(range=value), first, last)


@table(
    "an end with too many digits is clamped", rfc="9110 §14.1.2, §8.6", states=BOTH,
    rows=[
        ("bytes=10-4294967296", 10, 999),
        ("bytes=10-9223372036854775807", 10, 999),
        ("bytes=10-9223372036854775808", 10, 999),
        ("bytes=10-18446744073709551615", 10, 999),
        ("bytes=10-18446744073709551616", 10, 999),
        ("bytes=10-18446744073709551636", 10, 999),
        ("bytes=10-99999999999999999999", 10, 999),
        ("bytes=10-" + "9" * 100, 10, 999),
        ("bytes=-9223372036854775808", 0, 999),
        ("bytes=-18446744073709551617", 0, 999),
        ("bytes=-99999999999999999999", 0, 999),
        ("bytes=" + "0" * 100 + "5-9", 5, 9),
    ],
)  # fmt: skip
def many_digits(t, value, first, last):
    t.upstream(asset(SIZE))
    expect_partial(t, t.get(range=value), first, last)


@table(
    "an unsatisfiable range is a 416", rfc="9110 §14.1.2, §15.5.17", states=BOTH,
    rows=[
        "bytes=-0",
        "bytes=1000-",
        "bytes=1000-1000",
        "bytes=1000-1001",
        "bytes=5000-6000",
        "bytes=9223372036854775807-",
        "bytes=9223372036854775808-",
        "bytes=18446744073709551616-",
        "bytes=18446744073709551616-18446744073709551626",
        "bytes=99999999999999999999-",
        "bytes=" + "9" * 100 + "-",
        "bytes=99999999999999999998-99999999999999999999",
        "bytes=1000-1010,2000-",
        "bytes=-0,5000-",
    ],
)  # fmt: skip
def unsatisfiable(t, value):
    t.upstream(asset(SIZE))
    expect_unsatisfiable(t, t.get(range=value))


@table(
    "an invalid range is ignored", rfc="9110 §14.1.1, §14.2", states=BOTH,
    rows=[
        "bytes=5-2",
        "bytes=999-0",
        "bytes=-",
        "bytes=alpha",
        "bytes=10-alpha",
        "bytes=alpha-10",
        "bytes=10",
        "bytes=",
        "bytes",
        "bytes =0-9",
        "bytes:0-9",
        "0-9",
        "=0-9",
        "bytes=0-9 20-29",
        "bytes=0-9;20-29",
        "bytes=0-9-19",
        "bytes=--5",
        "bytes=-5-",
        "bytes=+0-9",
        "bytes=-+5",
        "bytes=0x0-0x9",
        "bytes=0.5-9",
        "bytes=1e2-",
        "bytes=0 - 9",
        "bytes=0 -9",
        "bytes=0- 9",
        "bytes=- 5",
        'bytes="0-9"',
        "bytes=0-9,alpha",
        "bytes=alpha,0-9",
        "bytes=5-2,0-9",
        "bytes=0-9,5-2",
        "bytes=,",
        "bytes=0-9/1000",
        "bytes=*/1000",
        "bytes==0-9",
        "bytes=0-9=",
    ],
)  # fmt: skip
def invalid(t, value):
    t.upstream(asset(SIZE))
    expect_whole(t, t.get(range=value))


@check("an empty Range is ignored", rfc="9110 §14.2", states=BOTH)
def empty_field(t):
    t.upstream(asset(SIZE))
    expect_whole(t, t.get(range=""))


@table(
    "an unknown unit is ignored", rfc="9110 §14.2", states=BOTH,
    rows=["items=0-9", "seconds=1-2", "byte=0-9", "bytess=0-9", "none=0-9", "x-bytes=0-9"],
)  # fmt: skip
def unknown_unit(t, value):
    t.upstream(asset(SIZE))
    t.expect(t.get(range=value), 200, body=t.bytes(0, SIZE), headers={"Content-Range": None})


@table(
    "an empty list element is skipped", rfc="9110 §5.6.1.2",
    rows=["bytes=0-9,", "bytes=,0-9", "bytes=, ,0-9 ,,", "bytes=0-9\t,"],
)  # fmt: skip
def empty_elements(t, value):
    t.upstream(asset(SIZE))
    expect_partial(t, t.get(range=value), 0, 9)


@table(
    "an ambiguous range never gives a wrong 206", rfc="9110 §14.2",
    rows=["bytes= 0-9", "bytes=99999999999999999999-5", "bytes=99999999999999999999-99999999999999999998",
          "bytes=0-9\x0b", "bytes=\xb2-9", "bytes=\xe2\x80\x93" + "5"],
)  # fmt: skip
def either_way(t, value):
    t.upstream(asset(SIZE))
    expect_never_wrong(t, t.get(range=value))


@check("two Range fields are never a wrong 206", rfc="9110 §5.3, §14.2", states=BOTH)
def two_fields(t):
    t.upstream(asset(SIZE))
    expect_never_wrong(t, t.get(headers=[("Range", "bytes=0-9"), ("Range", "bytes=20-29")]))


def expect_never_wrong(t, response, size=SIZE):
    """Expects a true response: the whole asset, exactly the bytes of its Content-Range, or an error."""
    if response.status == 206 and "multipart" not in response.get("Content-Type"):
        place = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.get("Content-Range") or "")
        if not place or int(place.group(3)) != size or int(place.group(2)) >= size:
            t.fail(f"{response}: not a Content-Range of this asset")
        t.expect(response, body=t.bytes(int(place.group(1)), int(place.group(2)) + 1))
    elif response.status == 206:
        for part in response.parts():
            first, last = re.fullmatch(r"bytes (\d+)-(\d+)/1000", part.get("Content-Range") or "").groups()
            if part.body != t.bytes(int(first), int(last) + 1):
                t.fail(f"{response}: WRONG BYTES in the part {first}-{last}")
    elif response.status == 200:
        t.expect(response, body=t.bytes(0, size), headers={"Content-Range": None})
    else:
        t.expect(response, (400, 416))


@table("random Range values never give a wrong response", rfc="9110 §14.2", rows=[f"seed {seed}" for seed in range(8)])
def random_texts(t, label):
    t.upstream(asset(SIZE))
    chance = random.Random(label)
    for _ in range(40):
        length = chance.randint(0, 14)
        text = "".join(chance.choice("0123456789" + "--,,  =") for _ in range(length))
        expect_never_wrong(t, t.get(range=chance.choice(["bytes=", "bytes=", "Bytes=", "bytes"]) + text))


@table(
    "a range of an asset of 3 MB", rfc="9110 §14.1.2", states=BOTH,
    rows=[
        ("bytes=1048570-1048590", 1_048_570, 1_048_590),
        ("bytes=1048576-2097151", 1_048_576, 2_097_151),
        ("bytes=100-2500000", 100, 2_500_000),
        ("bytes=0-", 0, BIG - 1),
        ("bytes=2097152-", 2_097_152, BIG - 1),
        ("bytes=-1000000", BIG - 1_000_000, BIG - 1),
        ("bytes=-9000000", 0, BIG - 1),
        ("bytes=2999999-9999999", BIG - 1, BIG - 1),
    ],
)  # fmt: skip
def bigger(t, value, first, last):
    t.upstream(asset(BIG))
    expect_partial(t, t.get(range=value), first, last, size=BIG)


@table(
    "a range beyond an asset of 3 MB is a 416", rfc="9110 §15.5.17", states=BOTH,
    rows=["bytes=3000000-", "bytes=3000000-3000001", "bytes=9000000-", "bytes=-0"],
)  # fmt: skip
def beyond_bigger(t, value):
    t.upstream(asset(BIG))
    expect_unsatisfiable(t, t.get(range=value), size=BIG)


@table(
    "a range beyond 2^32", rfc="9110 §14.1.2", larder_only=True,
    rows=[
        ("bytes=2147483640-2147483660", 2_147_483_640, 2_147_483_660),
        ("bytes=4294967290-4294967310", 4_294_967_290, 4_294_967_310),
        ("bytes=4294967296-4294967296", 4_294_967_296, 4_294_967_296),
        ("bytes=6000000000000-", 6_000_000_000_000, 6_000_000_000_999),
        ("bytes=-1000", 6_000_000_000_000, 6_000_000_000_999),
        ("bytes=6000000000990-99999999999999999999", 6_000_000_000_990, 6_000_000_000_999),
    ],
)  # fmt: skip
def huge(t, value, first, last):
    size = 6_000_000_001_000
    served = asset(size)

    def handler(request, connection):
        run = served.run(request) if request.method == "GET" else (0, 0)
        if run is None or run[1] - run[0] > 16 << 20:
            t.own.faults.append(f"the upstream was asked for {request.range or 'the whole'}")
            connection.close()
        elif request.method == "HEAD":
            connection.answer(Answer(200, [("Content-Length", str(size)), ("ETag", '"v1"')]))
        else:
            served(request, connection)

    t.upstream(handler)
    for _ in range(2):
        expect_partial(t, t.get(range=value), first, last, size=size)


@table(
    "a range of an upstream without range support", rfc="9110 §14.2, §15.3.7", states=BOTH,
    rows=[("bytes=0-0", 0, 0), ("bytes=0-", 0, 999), ("bytes=500-2000", 500, 999), ("bytes=-10", 990, 999),
          ("bytes=999-", 999, 999)],
)  # fmt: skip
def upstream_without_ranges(t, value, first, last):
    t.upstream(asset(SIZE, ranges=False))
    expect_partial(t, t.get(range=value), first, last)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table(
    "an unsatisfiable range of an upstream without range support", rfc="9110 §15.5.17", states=BOTH,
    rows=["bytes=1000-", "bytes=-0", "bytes=99999999999999999999-"],
)  # fmt: skip
def unsatisfiable_without_ranges(t, value):
    t.upstream(asset(SIZE, ranges=False))
    expect_unsatisfiable(t, t.get(range=value))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("the same range gives the same result cold and warm", rfc="9110 §15.3.7")
def cold_then_warm(t):
    t.upstream(asset(SIZE))
    for _ in range(3):
        expect_partial(t, t.get(range="bytes=0-"), 0, 999)
    for _ in range(2):
        expect_unsatisfiable(t, t.get(range="bytes=1000-"))
    expect_partial(t, t.get(range="bytes=-7"), 993, 999)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("a 416 on an empty cache leaves the asset readable", rfc="9110 §15.5.17")
def recovers_from_unsatisfiable(t):
    t.upstream(asset(SIZE))
    expect_unsatisfiable(t, t.get(range="bytes=5000-"))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    expect_partial(t, t.get(range="bytes=10-19"), 10, 19)


@check("a 206 has the header fields of a 200", rfc="9110 §15.3.7", states=BOTH)
def headers_of_partial(t):
    kept = {
        "Content-Location": "/other",
        "Content-Disposition": 'inline; filename="a"',
        "Expires": "Thu, 01 Jan 2060 00:00:00 GMT",
        "Vary": "Accept-Encoding",
    }
    t.upstream(asset(SIZE, headers=kept))
    expected = dict(kept, **{
        "ETag": '"v1"', "Last-Modified": LAST_MODIFIED, "Cache-Control": "max-age=3600", "Content-Type": "video/mp4",
        "Date": re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"),
    })  # fmt: skip
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10), headers=expected)


@table(
    "a 416 has no header fields of the 200", rfc="9110 §15.5.17, §8.3", states=BOTH,
    rows=["Content-Type", "Content-Disposition", "Content-Language", "Content-Location", "Last-Modified", "ETag",
          "Cache-Control", "Expires", "Content-Length"],
)  # fmt: skip
def nothing_left_over(t, name):
    left = [("Content-Disposition", "inline"), ("Content-Language", "mi"), ("Content-Location", "/other"),
            ("Expires", "Thu, 01 Jan 2060 00:00:00 GMT")]  # fmt: skip
    t.upstream(asset(SIZE, headers=left))
    whole = t.get()
    response = t.get(range="bytes=1000-")
    expect_unsatisfiable(t, response)
    value = response.get(name)
    if value is not None and value == whole.get(name):
        t.fail(f"{response}: {name} belongs to the 200")


@check("Accept-Ranges says bytes", rfc="9110 §14.3", states=BOTH)
def accept_ranges(t):
    t.upstream(asset(SIZE))
    t.expect(t.get(), 200, headers={"Accept-Ranges": "bytes"})


@check("successive ranges read the whole asset", rfc="9110 §14.1.2")
def piece_by_piece(t):
    t.upstream(asset(SIZE))
    for first in range(0, SIZE, 77):
        expect_partial(t, t.get(range=f"bytes={first}-{first + 76}"), first, min(SIZE - 1, first + 76))
