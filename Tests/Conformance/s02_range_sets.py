"""Several ranges: RFC 9110 §14.1.2 (range sets), §14.2, §14.6 and §15.3.7.2 (multipart/byteranges), RFC 2046 §5.1.1."""

import re

from suite import asset, check, table

SECTION = (2, "Range sets")
BOTH = ("cold", "warm")
SIZE = 10_000
PARTS_LIMIT = 16


def expect_parts(t, response, *runs, size=SIZE, content_type="video/mp4"):
    """A multipart 206 with exactly those parts, in that order."""
    t.expect(response, 206, headers={"Content-Range": None, "Content-Length": len(response.body)})
    places = [f"bytes {first}-{last}/{size}" for first, last in runs]
    parts = response.parts()
    if [part.get("Content-Range") for part in parts] != places:
        t.fail(f"{response}: parts {[part.get('Content-Range') for part in parts]}, expected {places}")
    for part, (first, last) in zip(parts, runs):
        if part.body != t.bytes(first, last + 1):
            t.fail(f"{response}: WRONG BYTES in the part {first}-{last}")
        if part.get("Content-Type") != content_type:
            t.fail(f"{response}: a part's Content-Type is {part.get('Content-Type')}")


def expect_one(t, response, first, last, size=SIZE):
    place = {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Type": "video/mp4"}
    t.expect(response, 206, body=t.bytes(first, last + 1), headers=place)


def expect_whole(t, response, size=SIZE):
    t.expect(response, 200, body=t.bytes(0, size), headers={"Content-Range": None, "Content-Type": "video/mp4"})


@check("two ranges are two parts", rfc="9110 §15.3.7.2", states=BOTH)
def two_ranges(t):
    t.upstream(asset(SIZE))
    expect_parts(t, t.get(range="bytes=0-9,100-199"), (0, 9), (100, 199))


@table(
    "the order is kept", rfc="9110 §15.3.7.2", states=BOTH,
    rows=[
        ("bytes=5000-5009,0-9", [(5000, 5009), (0, 9)]),
        ("bytes=-10,0-9", [(9990, 9999), (0, 9)]),
        ("bytes=9000-,500-509,100-109", [(9000, 9999), (500, 509), (100, 109)]),
    ],
)  # fmt: skip
def order(t, value, runs):
    t.upstream(asset(SIZE))
    expect_parts(t, t.get(range=value), *runs)


@table(
    "white space and empty elements are skipped", rfc="9110 §5.6.1.2",
    rows=["bytes=0-9 , 20-29", "bytes=0-9,\t20-29", "bytes=0-9,,20-29,", "bytes=,0-9, ,20-29"],
)  # fmt: skip
def list_forms(t, value):
    t.upstream(asset(SIZE))
    expect_parts(t, t.get(range=value), (0, 9), (20, 29))


@table(
    "overlapping and adjacent ranges are coalesced into one", rfc="9110 §15.3.7.2", states=BOTH,
    rows=[
        ("bytes=0-9,10-19", 0, 19),
        ("bytes=0-99,50-149", 0, 149),
        ("bytes=0-99,20-29", 0, 99),
        ("bytes=20-29,0-99", 0, 99),
        ("bytes=10-19,0-9", 0, 19),
        ("bytes=5-9,5-9,5-9", 5, 9),
        ("bytes=9000-,-500", 9000, 9999),
        ("bytes=9000-9499,-500", 9000, 9999),
        ("bytes=0-9,20-29,10-19", 0, 29),
        ("bytes=0-9,20-29,5-24", 0, 29),
    ],
)  # fmt: skip
def coalesced(t, value, first, last):
    t.upstream(asset(SIZE))
    expect_one(t, t.get(range=value), first, last)


@table(
    "overlapping ranges are coalesced, the others stay separate", rfc="9110 §15.3.7.2", states=BOTH,
    rows=[
        ("bytes=0-9,100-109,5-19", {(0, 19), (100, 109)}),
        ("bytes=100-109,0-9,110-119", {(100, 119), (0, 9)}),
        ("bytes=5000-5099,0-9,5050-5199,20-29", {(5000, 5199), (0, 9), (20, 29)}),
    ],
)  # fmt: skip
def partly_coalesced(t, value, runs):
    t.upstream(asset(SIZE))
    response = t.get(range=value)
    found = [tuple(map(int, re.findall(r"\d+", part.get("Content-Range"))[:2])) for part in response.parts()]
    if set(found) != runs:
        t.fail(f"{response}: the parts are {found}")
    expect_parts(t, response, *found)


@table(
    "unsatisfiable ranges are dropped; one remaining range is a plain 206", rfc="9110 §14.1.2, §15.3.7.2", states=BOTH,
    rows=[
        ("bytes=0-9,10000-", 0, 9),
        ("bytes=10000-10009,5-9", 5, 9),
        ("bytes=-0,5-9", 5, 9),
        ("bytes=99999999999999999999-,-5", 9995, 9999),
        ("bytes=20000-,9990-20000,-0", 9990, 9999),
    ],
)  # fmt: skip
def survivor(t, value, first, last):
    t.upstream(asset(SIZE))
    expect_one(t, t.get(range=value), first, last)


@check("unsatisfiable ranges are dropped from a set", rfc="9110 §14.1.2", states=BOTH)
def dropped(t):
    t.upstream(asset(SIZE))
    expect_parts(t, t.get(range="bytes=0-9,20000-,100-109,-0"), (0, 9), (100, 109))


@check("a set without a satisfiable range is a 416", rfc="9110 §15.5.17", states=BOTH)
def none_left(t):
    t.upstream(asset(SIZE))
    t.expect(t.get(range="bytes=10000-,20000-30000,-0"), 416, headers={"Content-Range": f"bytes */{SIZE}"})


@check("an end beyond the asset is clamped in a part", rfc="9110 §14.1.2", states=BOTH)
def clamped(t):
    t.upstream(asset(SIZE))
    expect_parts(t, t.get(range="bytes=0-9,9990-99999999999999999999"), (0, 9), (9990, 9999))


@table(
    "ranges that cover the asset or more give the whole", rfc="9110 §14.2, §17.15", states=BOTH,
    rows=[
        "bytes=" + ",".join(["0-"] * 10),
        "bytes=0-,0-",
        "bytes=0-7999,1000-8999,2000-9999",
        "bytes=-10000,0-9999",
    ],
)  # fmt: skip
def sum_beyond_size(t, value):
    t.upstream(asset(SIZE))
    response = t.get(range=value)
    if response.status == 206:
        expect_one(t, response, 0, SIZE - 1)
    else:
        expect_whole(t, response)


@check("distinct ranges with more bytes in total than the asset are a 200", rfc="9110 §14.2", states=BOTH)
def sum_is_more(t):
    t.upstream(asset(SIZE))
    expect_whole(t, t.get(range="bytes=0-5999,100-6000,9000-9999,4000-7999"))


@check("as many parts as the limit allows", rfc="9110 §14.2", larder_only=True, states=BOTH)
def at_the_cap(t):
    t.upstream(asset(SIZE))
    runs = [(first, first + 4) for first in range(0, PARTS_LIMIT * 100, 100)]
    value = "bytes=" + ",".join(f"{first}-{last}" for first, last in runs)
    expect_parts(t, t.get(range=value), *runs)


@table("more ranges than the limit give the whole", rfc="9110 §14.2, §17.15", states=BOTH, rows=["17", "100", "1000"])
def beyond_the_cap(t, count):
    t.upstream(asset(SIZE))
    value = "bytes=" + ",".join(f"{first}-{first}" for first in range(0, int(count) * 2, 2))
    response = t.get(range=value)
    if t.is_larder or response.status == 200:
        expect_whole(t, response)
    elif response.status == 206:
        expect_parts(t, response, *[(first, first) for first in range(0, int(count) * 2, 2)])
    else:
        t.expect(response, (400, 414, 416, 431))


@check("many ranges that coalesce into one never send more than the whole", rfc="9110 §14.2")
def many_small(t):
    t.upstream(asset(SIZE))
    response = t.get(range="bytes=" + ",".join(f"{first}-{first}" for first in range(500)))
    if len(response.body) > SIZE * 2:
        t.fail(f"{response}: more than the asset")
    if response.status == 200:
        expect_whole(t, response)
    elif t.is_larder or response.status == 206 and response.get("Content-Range"):
        expect_one(t, response, 0, 499)


@check("parts have the asset's own Content-Type", rfc="9110 §15.3.7.2", states=BOTH)
def content_type_of_parts(t):
    t.upstream(asset(SIZE, content_type='audio/ogg; codecs="opus"'))
    response = t.get(range="bytes=0-9,100-109")
    expect_parts(t, response, (0, 9), (100, 109), content_type='audio/ogg; codecs="opus"')
    if not re.match(r"multipart/byteranges\s*;", response.get("Content-Type") or ""):
        t.fail(f"{response}: the message's Content-Type")


@check("an asset without a type has parts without a type, or with a generic type", rfc="9110 §15.3.7.2", states=BOTH)
def no_content_type(t):
    t.upstream(asset(SIZE, content_type=None))
    parts = t.get(range="bytes=0-9,100-109", path="/asset").parts()
    kinds = {part.get("Content-Type") for part in parts}
    if not kinds <= {None, "application/octet-stream"}:
        t.fail(f"parts of the types {kinds}")


@check("a multipart 206 has the asset's validators and lifetime", rfc="9110 §15.3.7", states=BOTH)
def validators(t):
    t.upstream(asset(SIZE))
    response = t.get(range="bytes=0-9,100-109")
    expect_parts(t, response, (0, 9), (100, 109))
    t.expect(response, headers={"ETag": '"v1"', "Cache-Control": "max-age=3600", "Content-Range": None})


@check("Content-Length counts every byte of the parts", rfc="9110 §8.6, RFC 2046 §5.1.1", states=BOTH)
def length(t):
    t.upstream(asset(SIZE))
    response = t.get(range="bytes=0-0,100-1099,9999-")
    expect_parts(t, response, (0, 0), (100, 1099), (9999, 9999))
    with t.connect() as connection:
        for _ in range(2):
            connection.request("GET", t.target(), {"Range": "bytes=0-0,100-1099,9999-"})
            expect_parts(t, connection.response(asked="on one connection"), (0, 0), (100, 1099), (9999, 9999))


@check("the boundary does not occur in the data", rfc="2046 §5.1.1")
def boundary(t):
    t.upstream(asset(SIZE))
    first = t.get(range="bytes=0-4000,5000-8000")
    boundary = re.search(r'boundary="?([^";]+)', first.get("Content-Type") or "")
    if not boundary:
        t.fail(f"{first}: no boundary")
    for part in first.parts():
        if b"\r\n--" + boundary.group(1).encode() in part.body:
            t.fail(f"{first}: the boundary occurs in a part")


@check("a previously used boundary may be asset content", rfc="2046 §5.1.1", larder_only=True, states=BOTH)
def boundary_in_content(t):
    """The asset contains the boundary of an earlier response: the boundary must change or be checked for."""
    t.upstream(asset(SIZE))
    seen = t.get(range="bytes=0-9,100-109", path="/first").get("Content-Type")
    delimiter = b"\r\n--" + re.search(r'boundary="?([^";]+)', seen).group(1).encode()
    data = (delimiter + b"\r\n\r\n" + delimiter + b"--\r\n") * 40
    t.upstream(asset(data=data, etag='"text"', content_type="text/plain"))
    response = t.get(range="bytes=0-499,600-1099", path="/second")
    bodies = [part.body for part in response.parts()]
    if bodies != [data[0:500], data[600:1100]]:
        t.fail(f"{response}: the parts are not the asset's bytes")


@check("parts come from disk and from the upstream", rfc="9110 §15.3.7.2")
def partly_cached(t):
    t.upstream(asset(SIZE))
    expect_one(t, t.get(range="bytes=100-109"), 100, 109)
    expect_parts(t, t.get(range="bytes=5000-5009,100-109,0-9"), (5000, 5009), (100, 109), (0, 9))
    expect_whole(t, t.get())


@check("a set of ranges of an upstream without range support", rfc="9110 §15.3.7.2", states=BOTH)
def upstream_without_ranges(t):
    t.upstream(asset(SIZE, ranges=False))
    expect_parts(t, t.get(range="bytes=5000-5009,0-9,-5"), (5000, 5009), (0, 9), (9995, 9999))
    expect_one(t, t.get(range="bytes=20000-,5-9"), 5, 9)


@check("a set of ranges of a larger asset", rfc="9110 §15.3.7.2", states=BOTH)
def bigger(t):
    t.upstream(asset(3_000_000))
    runs = [(2_500_000, 2_600_000), (0, 99), (1_048_000, 1_049_000)]
    value = "bytes=" + ",".join(f"{first}-{last}" for first, last in runs)
    expect_parts(t, t.get(range=value), *runs, size=3_000_000)
