"""Conditional requests: RFC 9110 §13 (preconditions and their order), §8.8 (validators), §15.4.5 (304), §15.5.13 (412).

An intermediary may ignore If-Match and If-Unmodified-Since (§13.1.1, §13.1.4). Larder acts as the players' server and
evaluates them. A peer that ignores them passes.
"""

import re

from suite import LAST_MODIFIED, Answer, asset, check, http_date, table

SECTION = (3, "Conditional requests")
BOTH = ("cold", "warm")
SIZE = 1000
EARLIER = "Wed, 01 Jan 2020 09:59:59 GMT"
LATER = "Wed, 01 Jan 2020 10:00:01 GMT"


def expect_whole(t, response):
    t.expect(response, 200, body=t.bytes(0, SIZE), headers={"Content-Range": None, "Content-Length": SIZE})


def expect_not_modified(t, response):
    t.expect(response, 304, body=b"", headers={"Content-Range": None})


def expect_failed(t, response):
    """Expects a 412 without asset data."""
    if not t.is_larder and response.status in (200, 206):
        return
    t.expect(response, 412, headers={"Content-Range": None})
    if response.body and response.body == t.bytes(0, len(response.body)):
        t.fail(f"{response}: the body of a 412 contains asset bytes")


EXPECTATIONS = {
    200: expect_whole,
    206: lambda t, response: t.expect(
        response, 206, body=t.bytes(0, 10), headers={"Content-Range": f"bytes 0-9/{SIZE}", "Content-Length": 10}
    ),
    304: expect_not_modified,
    412: expect_failed,
    416: lambda t, response: t.expect(response, 416, headers={"Content-Range": f"bytes */{SIZE}"}),
}


def ask(t, status, headers, **options):
    EXPECTATIONS[status](t, t.get(headers=headers, **options))


@table(
    "If-Match", rfc="9110 §13.1.1, §8.8.3.2", states=BOTH,
    rows=[
        ('"v1"', 200),
        ('"v2"', 412),
        ('"V1"', 412),
        ('W/"v1"', 412),
        ('"v2", "v1"', 200),
        ('"v2","v3","v1"', 200),
        ('"v2", "v3"', 412),
        ('"v2", W/"v1"', 412),
        ("*", 200),
        ('""', 412),
    ],
)  # fmt: skip
def if_match(t, value, status):
    t.upstream(asset(SIZE))
    ask(t, status, {"If-Match": value})


@table(
    "If-Match where the asset's ETag is weak or absent", rfc="9110 §13.1.1, §8.8.3.2", states=BOTH,
    rows=[
        ('weak, If-Match: W/"v1"', 'W/"v1"', 'W/"v1"', 412),
        ('weak, If-Match: "v1"', 'W/"v1"', '"v1"', 412),
        ("weak, If-Match: *", 'W/"v1"', "*", 200),
        ('absent, If-Match: "v1"', None, '"v1"', 412),
        ("absent, If-Match: *", None, "*", 200),
    ],
)  # fmt: skip
def if_match_without_strong(t, _, etag, value, status):
    t.upstream(asset(SIZE, etag=etag))
    ask(t, status, {"If-Match": value})


@table(
    "If-Unmodified-Since", rfc="9110 §13.1.4, §5.6.7", states=BOTH,
    rows=[
        (LAST_MODIFIED, 200),
        (LATER, 200),
        (EARLIER, 412),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 200),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 412),
        ("Wednesday, 01-Jan-20 10:00:00 GMT", 200),
        ("Wednesday, 01-Jan-20 09:59:59 GMT", 412),
        ("Wed Jan  1 10:00:00 2020", 200),
        ("Wed Jan  1 09:59:59 2020", 412),
        ("yesterday", 200),
        ("0", 200),
        ("2019-01-01T00:00:00Z", 200),
    ],
)  # fmt: skip
def if_unmodified_since(t, value, status):
    t.upstream(asset(SIZE))
    ask(t, status, {"If-Unmodified-Since": value})


@table(
    "If-None-Match", rfc="9110 §13.1.2, §8.8.3.2", states=BOTH,
    rows=[
        ('"v1"', 304),
        ('W/"v1"', 304),
        ('"v2"', 200),
        ('W/"v2"', 200),
        ('"V1"', 200),
        ('"v2", "v1"', 304),
        ('"v2",W/"v1","v3"', 304),
        ('"v2" , "v3"', 200),
        ('"a,b", "v1"', 304),
        ('"a, \\"v1\\""', 200),
        ("*", 304),
        ('""', 200),
        ("v1", 200),
        (', "v1" ,', 304),
    ],
)  # fmt: skip
def if_none_match(t, value, status):
    t.upstream(asset(SIZE))
    ask(t, status, {"If-None-Match": value})


@table(
    "If-None-Match where the asset's ETag is weak", rfc="9110 §8.8.3.2", states=BOTH,
    rows=[('W/"v1"', 304), ('"v1"', 304), ('W/"v2"', 200), ("*", 304)],
)  # fmt: skip
def if_none_match_weak(t, value, status):
    t.upstream(asset(SIZE, etag='W/"v1"'))
    ask(t, status, {"If-None-Match": value})


@table(
    "an ETag with unusual characters", rfc="9110 §8.8.3", states=BOTH,
    rows=['"a,b"', '"a b"'.replace(" ", "_"), '"{[/]}"', '"\\"', '"x;y=z"', '"W/"', '""', '"*"'],
)  # fmt: skip
def unusual_tags(t, etag):
    t.upstream(asset(SIZE, etag=etag))
    t.expect(t.get(), 200, headers={"ETag": etag})
    ask(t, 304, {"If-None-Match": f'"other", {etag}'})
    ask(t, 200, {"If-Match": f'"other", {etag}'})
    ask(t, 206, {"If-Range": etag, "Range": "bytes=0-9"})


@check("If-None-Match in two fields is one list", rfc="9110 §5.3", states=BOTH)
def if_none_match_twice(t):
    t.upstream(asset(SIZE))
    ask(t, 304, [("If-None-Match", '"v2"'), ("If-None-Match", '"v1"')])


@check("If-Match in two fields is one list", rfc="9110 §5.3", states=BOTH)
def if_match_twice(t):
    t.upstream(asset(SIZE))
    ask(t, 200, [("If-Match", '"v2"'), ("If-Match", '"v1"')])
    ask(t, 412, [("If-Match", '"v2"'), ("If-Match", '"v3"')])


@table(
    "a single-value condition with several members is ignored", rfc="9110 §13.1.3, §13.1.4, §13.1.5",
    states=BOTH,
    rows=[
        ("If-Modified-Since", [("If-Modified-Since", LATER)] * 2, 200),
        ("If-Unmodified-Since", [("If-Unmodified-Since", EARLIER)] * 2, 200),
        ("If-Range", [("Range", "bytes=0-9")] + [("If-Range", '"v1"')] * 2, 200),
    ],
)  # fmt: skip
def more_than_one(t, _, headers, status):
    """A peer may reject a repeated field (§5.3)."""
    t.upstream(asset(SIZE))
    response = t.get(headers=headers)
    if t.is_larder or response.status != 400:
        EXPECTATIONS[status](t, response)


@table("If-None-Match of an asset without an ETag", rfc="9110 §13.1.2", states=BOTH, rows=[('"v1"', 200), ("*", 304)])
def if_none_match_without_tag(t, value, status):
    t.upstream(asset(SIZE, etag=None))
    ask(t, status, {"If-None-Match": value})


@table(
    "If-Modified-Since", rfc="9110 §13.1.3, §5.6.7", states=BOTH,
    rows=[
        (LAST_MODIFIED, 304),
        (LATER, 304),
        (EARLIER, 200),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 200),
        ("Tue, 19 Jan 2038 03:14:08 GMT", 304),
        ("Thu, 01 Jan 2060 00:00:00 GMT", 304),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 304),
        ("Wednesday, 01-Jan-20 10:00:00 GMT", 304),
        ("Wednesday, 01-Jan-20 09:59:59 GMT", 200),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 200),
        ("Wed Jan  1 10:00:00 2020", 304),
        ("Wed Jan  1 09:59:59 2020", 200),
        ("tomorrow", 200),
        ("0", 200),
        ("4102444800", 200),
        ("2100-01-01T00:00:00Z", 200),
        ("Fri, 32 Jan 2100 00:00:00 GMT", 200),
        ("Fri, 01 Jan 2100 25:00:00 GMT", 200),
    ],
)  # fmt: skip
def if_modified_since(t, value, status):
    t.upstream(asset(SIZE))
    ask(t, status, {"If-Modified-Since": value})


@table(
    "If-Modified-Since where the asset was modified after 2038", rfc="9110 §13.1.3", states=BOTH,
    rows=[
        ("Sun, 01 Jan 2040 00:00:00 GMT", 304),
        ("Tue, 01 Jan 2041 00:00:00 GMT", 304),
        ("Sat, 31 Dec 2039 23:59:59 GMT", 200),
        ("Tue, 19 Jan 2038 03:14:07 GMT", 200),
    ],
)  # fmt: skip
def modified_late(t, value, status):
    t.upstream(asset(SIZE, etag=None, last_modified="Sun, 01 Jan 2040 00:00:00 GMT"))
    ask(t, status, {"If-Modified-Since": value})


@check("an old If-Modified-Since of an asset without Last-Modified", rfc="9111 §4.3.2", states=BOTH)
def without_last_modified(t):
    t.upstream(asset(SIZE, last_modified=None))
    ask(t, 200, {"If-Modified-Since": "Wed, 01 Jan 2020 10:00:00 GMT"})


@table(
    "a date condition on an asset without Last-Modified", rfc="9110 §13.1.4, §13.1.5", states=BOTH,
    rows=[
        ("If-Unmodified-Since", {"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}),
        ("If-Range", {"If-Range": LAST_MODIFIED, "Range": "bytes=0-9"}),
        ("If-Range, its Date", {"If-Range": http_date(-3600), "Range": "bytes=0-9"}),
    ],
)  # fmt: skip
def no_date(t, _, headers):
    t.upstream(asset(SIZE, last_modified=None, headers={"Date": http_date(-3600)}, cache_control="max-age=36000"))
    ask(t, 200, headers)


@table(
    "If-Range", rfc="9110 §13.1.5, §8.8.2.2", states=BOTH,
    rows=[
        ('"v1"', 206),
        ('"v2"', 200),
        ('"V1"', 200),
        ('W/"v1"', 200),
        (LAST_MODIFIED, 206),
        (LATER, 200),
        (EARLIER, 200),
        ("Thu, 01 Jan 2060 00:00:00 GMT", 200),
        ("alpha", 200),
        ("v1", 200),
        ("*", 200),
        ('"v2", "v1"', 200),
        ("0", 200),
    ],
)  # fmt: skip
def if_range(t, value, status):
    t.upstream(asset(SIZE))
    ask(t, status, {"Range": "bytes=0-9", "If-Range": value})


@table(
    "If-Range where the asset's ETag is weak", rfc="9110 §13.1.5", states=BOTH,
    rows=[('W/"v1"', 200), ('"v1"', 200)],
)  # fmt: skip
def if_range_weak(t, value, status):
    t.upstream(asset(SIZE, etag='W/"v1"'))
    ask(t, status, {"Range": "bytes=0-9", "If-Range": value})


@check("If-Range with a date that is not a strong validator gives the whole", rfc="9110 §8.8.2.2, §13.1.5", states=BOTH)
def if_range_weak_date(t):
    now = http_date()
    t.upstream(asset(SIZE, etag=None, last_modified=now, headers={"Date": now}))
    ask(t, 200, {"Range": "bytes=0-9", "If-Range": now})


@table(
    "a condition on content that is not stored does not fetch the body", rfc="9110 §13.1.2, §13.1.3", larder_only=True,
    rows=[
        ("If-None-Match, equal", "If-None-Match", '"v1"', 304), ("If-None-Match, different", "If-None-Match", '"v2"', 200),
        ("If-Modified-Since, not modified", "If-Modified-Since", LAST_MODIFIED, 304),
    ],
)  # fmt: skip
def cold_condition(t, _, name, value, status):
    size = 3_000_000
    t.upstream(asset(size))
    t.expect(t.get(headers={name: value}), status, body=b"" if status == 304 else t.bytes(0, size))
    if t.requests[0].range != "bytes=0-0":
        t.fail(f"the first request has Range: {t.requests[0].range}")
    if status == 304:
        t.expect_requests(1)


@check("If-Range without Range is ignored", rfc="9110 §13.1.5", states=BOTH)
def if_range_alone(t):
    t.upstream(asset(SIZE))
    ask(t, 200, {"If-Range": '"v1"'})
    ask(t, 200, {"If-Range": '"v2"'})


@table(
    "If-Range with an unsatisfiable range or a set", rfc="9110 §13.2.2, §14.2", states=BOTH,
    rows=[
        ("true, bytes=5000-", '"v1"', "bytes=5000-", 416),
        ("false, bytes=5000-", '"v2"', "bytes=5000-", 200),
        ("false, bytes=0-9,20-29", '"v2"', "bytes=0-9,20-29", 200),
        ("true, bytes=5-2", '"v1"', "bytes=5-2", 200),
    ],
)  # fmt: skip
def if_range_and_range(t, _, condition, value, status):
    t.upstream(asset(SIZE))
    ask(t, status, {"If-Range": condition, "Range": value})


@table(
    "the order of evaluation", rfc="9110 §13.2.2, §14.2", states=BOTH,
    rows=[
        ("If-Match false before If-None-Match", {"If-Match": '"v2"', "If-None-Match": '"v1"'}, 412),
        ("If-Match true, then If-None-Match", {"If-Match": '"v1"', "If-None-Match": '"v1"'}, 304),
        ("If-Match true hides If-Unmodified-Since", {"If-Match": '"v1"', "If-Unmodified-Since": EARLIER}, 200),
        ("If-Match false whatever If-Unmodified-Since", {"If-Match": '"v2"', "If-Unmodified-Since": LATER}, 412),
        ("If-Unmodified-Since false before If-None-Match",
         {"If-Unmodified-Since": EARLIER, "If-None-Match": '"v1"'}, 412),
        ("If-Unmodified-Since true, then If-None-Match", {"If-Unmodified-Since": LATER, "If-None-Match": '"v1"'}, 304),
        ("If-Unmodified-Since true, then If-Modified-Since",
         {"If-Unmodified-Since": LATER, "If-Modified-Since": LATER}, 304),
        ("If-None-Match true hides If-Modified-Since", {"If-None-Match": '"v2"', "If-Modified-Since": LATER}, 200),
        ("If-None-Match false whatever If-Modified-Since",
         {"If-None-Match": '"v1"', "If-Modified-Since": EARLIER}, 304),
        ("If-None-Match false before Range", {"If-None-Match": '"v1"', "Range": "bytes=0-9"}, 304),
        ("If-None-Match true, then Range", {"If-None-Match": '"v2"', "Range": "bytes=0-9"}, 206),
        ("If-None-Match false before an unsatisfiable Range", {"If-None-Match": '"v1"', "Range": "bytes=5000-"}, 304),
        ("If-Modified-Since false before Range", {"If-Modified-Since": LATER, "Range": "bytes=0-9"}, 304),
        ("If-Modified-Since true, then Range", {"If-Modified-Since": EARLIER, "Range": "bytes=0-9"}, 206),
        ("If-Match true, then Range", {"If-Match": '"v1"', "Range": "bytes=0-9"}, 206),
        ("If-Match false before Range", {"If-Match": '"v2"', "Range": "bytes=0-9"}, 412),
        ("If-Match false before an unsatisfiable Range", {"If-Match": '"v2"', "Range": "bytes=5000-"}, 412),
        ("If-Match true, then an unsatisfiable Range", {"If-Match": '"v1"', "Range": "bytes=5000-"}, 416),
        ("If-Unmodified-Since false before Range", {"If-Unmodified-Since": EARLIER, "Range": "bytes=0-9"}, 412),
        ("If-None-Match false before If-Range",
         {"If-None-Match": '"v1"', "Range": "bytes=0-9", "If-Range": '"v2"'}, 304),
        ("If-None-Match true, If-Range true", {"If-None-Match": '"v2"', "Range": "bytes=0-9", "If-Range": '"v1"'}, 206),
        ("If-None-Match true, If-Range false",
         {"If-None-Match": '"v2"', "Range": "bytes=0-9", "If-Range": '"v2"'}, 200),
        ("all five", {"If-Match": '"v1"', "If-Unmodified-Since": EARLIER, "If-None-Match": '"v2"',
                      "If-Modified-Since": LATER, "If-Range": '"v1"', "Range": "bytes=0-9"}, 206),
    ],
)  # fmt: skip
def order(t, _, headers, status):
    t.upstream(asset(SIZE))
    if not t.is_larder and status == 416:
        t.expect(t.get(headers=headers), (416,))
        return
    if not t.is_larder and status == 412:
        t.expect(t.get(headers=headers), (200, 206, 304, 412, 416))
        return
    ask(t, status, headers)


@table(
    "conditions on an asset that may not be stored", rfc="9110 §13.2.2, 9111 §3",
    rows=[
        ("If-None-Match", {"If-None-Match": '"v1"'}, 304),
        ("If-None-Match other", {"If-None-Match": '"v2"'}, 200),
        ("If-Modified-Since", {"If-Modified-Since": LATER}, 304),
        ("If-Match other", {"If-Match": '"v2"'}, 412),
        ("Range", {"Range": "bytes=0-9"}, 206),
        ("If-Range", {"Range": "bytes=0-9", "If-Range": '"v1"'}, 206),
        ("If-Range other", {"Range": "bytes=0-9", "If-Range": '"v2"'}, 200),
        ("Range beyond", {"Range": "bytes=5000-"}, 416),
    ],
)  # fmt: skip
def no_store(t, _, headers, status):
    t.upstream(asset(SIZE, cache_control="no-store"))
    for _ in range(2):
        ask(t, status, headers)


@table(
    "conditions on a partly cached asset", rfc="9110 §13.2.2",
    rows=[
        ("If-None-Match", {"If-None-Match": '"v1"'}, 304),
        ("If-None-Match other", {"If-None-Match": '"v2"'}, 200),
        ("If-Modified-Since", {"If-Modified-Since": LATER}, 304),
        ("If-Modified-Since earlier", {"If-Modified-Since": EARLIER}, 200),
        ("If-Match other", {"If-Match": '"v2"'}, 412),
        ("If-Range", {"Range": "bytes=0-9", "If-Range": '"v1"'}, 206),
        ("If-Range other", {"Range": "bytes=0-9", "If-Range": '"v2"'}, 200),
        ("If-Range weak", {"Range": "bytes=0-9", "If-Range": 'W/"v1"'}, 200),
        ("If-None-Match and a range beyond", {"If-None-Match": '"v1"', "Range": "bytes=5000-"}, 304),
        ("If-Range other and a range beyond", {"If-Range": '"v2"', "Range": "bytes=5000-"}, 200),
    ],
)  # fmt: skip
def partly_cached(t, _, headers, status):
    t.upstream(asset(SIZE))
    t.expect(t.get(range="bytes=500-599"), 206, body=t.bytes(500, 600))
    ask(t, status, headers)


@table(
    "HEAD with a condition and a range of a partly cached asset", rfc="9110 §9.3.2, §13.2.2, §14.2", larder_only=True,
    rows=[
        ("If-None-Match", {"If-None-Match": '"v1"', "Range": "bytes=900-909"}, 304),
        ("If-None-Match other", {"If-None-Match": '"v2"', "Range": "bytes=900-909"}, 200),
        ("If-Modified-Since", {"If-Modified-Since": LATER, "Range": "bytes=-0"}, 304),
        ("If-Match other", {"If-Match": '"v2"', "Range": "bytes=500-509"}, 412),
        ("If-Range", {"If-Range": '"v1"', "Range": "bytes=5000-"}, 200),
    ],
)  # fmt: skip
def head_partly_cached(t, _, headers, status):
    t.upstream(asset(SIZE))
    t.expect(t.get(range="bytes=500-599"), 206, body=t.bytes(500, 600))
    t.own.requests.clear()
    response = t.head(headers=headers)
    t.expect(response, status, body=b"", headers={"Content-Range": None})
    if status == 200:
        t.expect(response, headers={"Content-Length": SIZE})
    t.expect_requests(0)


@check("If-Range holds for a set of ranges", rfc="9110 §13.1.5", states=BOTH)
def if_range_and_set(t):
    t.upstream(asset(SIZE))
    response = t.get(range="bytes=0-9,20-29", headers={"If-Range": '"v1"'})
    t.expect(response, 206)
    if [part.body for part in response.parts()] != [t.bytes(0, 10), t.bytes(20, 30)]:
        t.fail(f"{response}: the parts")


@check("a 304 has the fields that a 200 would have", rfc="9110 §15.4.5", states=BOTH)
def headers_of_not_modified(t):
    kept = {"Content-Location": "/other", "Expires": "Thu, 01 Jan 2060 00:00:00 GMT", "Vary": "Accept-Encoding"}
    t.upstream(asset(SIZE, headers=kept))
    response = t.get(headers={"If-None-Match": '"v1"'})
    expect_not_modified(t, response)
    date = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT")
    t.expect(response, headers=dict(kept, ETag='"v1"', Date=date, **{"Cache-Control": "max-age=3600"}))


@check("a 304 has no other representation metadata", rfc="9110 §15.4.5, §8.6", states=BOTH)
def no_metadata(t):
    t.upstream(asset(SIZE, headers={"Content-Language": "mi"}))
    response = t.get(headers={"If-None-Match": '"v1"'})
    t.expect(response, 304, headers={"Content-Type": None, "Content-Language": None, "Content-Range": None})
    if response.get("Content-Length") not in (None, str(SIZE)):
        t.fail(f"{response}: a 304's Content-Length must be the 200's or absent")


@check("a 304 to If-Modified-Since has the Last-Modified of an asset without an ETag", rfc="9110 §15.4.5", states=BOTH)
def last_modified_of_not_modified(t):
    t.upstream(asset(SIZE, etag=None))
    t.expect(t.get(headers={"If-Modified-Since": LAST_MODIFIED}), 304, headers={"Last-Modified": LAST_MODIFIED})


@table(
    "HEAD is conditional like GET", rfc="9110 §13.2.2", states=BOTH,
    rows=[
        ("If-None-Match", '"v1"', 304),
        ("If-None-Match", '"v2"', 200),
        ("If-Modified-Since", LATER, 304),
        ("If-Modified-Since", EARLIER, 200),
        ("If-Match", '"v2"', 412),
        ("If-Unmodified-Since", EARLIER, 412),
    ],
)  # fmt: skip
def head(t, name, value, status):
    t.upstream(asset(SIZE))
    response = t.head(headers={name: value})
    statuses = (status,) if t.is_larder or status != 412 else (200, 412)
    t.expect(response, statuses, body=b"", headers={"Content-Range": None})


@check("conditional requests leave the cache correct", rfc="9111 §4.3.2")
def not_poisoned(t):
    t.upstream(asset(SIZE))
    ask(t, 304, {"If-None-Match": '"v1"'})
    expect_whole(t, t.get())
    ask(t, 304, {"If-None-Match": '"v1"'})
    ask(t, 206, {"Range": "bytes=0-9", "If-Range": '"v1"'})
    ask(t, 200, {"Range": "bytes=0-9", "If-Range": '"v2"'})
    expect_whole(t, t.get())


@table(
    "preconditions are ignored when the asset is missing", rfc="9110 §13.2.1",
    rows=[("If-None-Match", "*"), ("If-None-Match", '"v1"'), ("If-Modified-Since", LATER), ("If-Match", '"v1"')],
)  # fmt: skip
def no_asset(t, name, value):
    t.upstream(Answer(404, body=b"no such film"))
    t.expect(t.get(headers={name: value}), 404)


@check("conditions do not affect the next request on the connection", rfc="9112 §9.3", states=BOTH)
def one_connection(t):
    t.upstream(asset(SIZE))
    with t.connect() as connection:
        for status, headers in [(304, {"If-None-Match": '"v1"'}), (200, {}), (206, {"Range": "bytes=0-9"}), (200, {})]:
            connection.request("GET", t.target(), headers)
            EXPECTATIONS[status](t, connection.response(asked=f"{headers} on one connection"))
