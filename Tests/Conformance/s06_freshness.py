"""Freshness: RFC 9111 §4.2 (lifetime, age, heuristics), §5.1 (Age), §5.2.2 (response directives), §5.3 (Expires);
RFC 5861 (stale-while-revalidate, stale-if-error); RFC 8246 (immutable).

Every check reads twice, and the asset changes between the reads: old bytes come from the cache, new bytes from the
upstream. Reuse is optional (RFC 9111 §2): it is required of Larder, not of a peer.
"""

from suite import LAST_MODIFIED, Answer, asset, check, http_date, table

SECTION = (6, "Cache-Control, Expires, Age, Date, heuristics")
SIZE = 1000
HOUR = 3600
YEAR = 31_536_000


def read(t, fields, last_modified=None, date=True):
    """Reads the whole asset with these response fields; then the asset changes."""
    before = asset(SIZE, cache_control=None, last_modified=last_modified, headers=fields)

    def handler(request, connection):
        answer = before.answer(request)
        answer.date = date
        connection.answer(answer)

    t.upstream(handler)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.own.requests.clear()
    t.upstream(asset(SIZE, etag='"v2"', seed=1, cache_control="max-age=0", last_modified=None))


def expect_reused(t):
    if not t.is_larder:
        for options in ({}, {"range": "bytes=5-9"}):
            t.expect(t.get(**options), (200, 206))
        return
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=True, fwd=None)
    t.expect(t.get(range="bytes=5-9"), 206, body=t.bytes(5, 10))
    t.expect_requests(0)


def expect_asked(t):
    response = t.get(range="bytes=5-9")
    t.expect(response, 206, body=t.bytes(5, 10, seed=1))
    t.expect_cache_status(response, hit=False)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE, seed=1))


def control(*values):
    return [("Cache-Control", value) for value in values]


def expires(offset):
    return [("Expires", http_date(offset))]


@table(
    "Cache-Control permits reuse", rfc="9111 §5.2, §5.2.2, §4.2.1, §1.2.2; 8246 §2",
    rows=[
        "max-age=3600", "MAX-AGE=3600", "Max-Age=3600", "max-age=003600", 'max-age="3600"', "s-maxage=3600",
        "S-MaxAge=3600", "max-age=0, s-maxage=3600", "s-maxage=3600, max-age=0", "max-age=3600, public",
        "public,max-age=3600", "max-age=3600 , public", "  max-age=3600  ", ", ,max-age=3600,", "max-age=2147483647",
        "max-age=2147483648", "max-age=4294967296", "max-age=9223372036854775807", "max-age=9223372036854775808",
        "max-age=18446744073709551617", "max-age=99999999999999999999999999", "max-age=3600, no-transform",
        "max-age=3600, immutable", "max-age=3600, must-revalidate", "max-age=3600, proxy-revalidate",
        "max-age=3600, MUST-REVALIDATE", "no-store, must-understand, max-age=3600",
        "must-understand, no-store, max-age=3600", "max-age=3600, stale-while-revalidate=60",
        "max-age=3600, stale-if-error=60", "max-age=3600, foo", "foo=bar, max-age=3600", 'foo="bar", max-age=3600',
        'foo="a, no-store, b", max-age=3600', 'foo="max-age=0", max-age=3600', 'foo="\\", no-store", max-age=3600',
        "max-age=3600, nocache", "max-age=3600, x-no-store", "max-age=3600, private-ish", "max-age=3600, max-age=3600",
        "max-age=3600, only-if-cached", "max-age=3600, no-cachee", 'no-cache="X-One", max-age=3600',
        'private="X-One", max-age=3600', 'max-age=3600, PRIVATE="X-One"',
    ],
)  # fmt: skip
def reusable(t, value):
    read(t, control(value))
    expect_reused(t)


@table(
    "Cache-Control requires a new request", rfc="9111 §5.2.2, §4.2.1, §3",
    rows=[
        "max-age=0", "MAX-AGE=0", 'max-age="0"', "max-age=000", "no-cache", "No-Cache", "no-store", "NO-STORE",
        "private", "PRIVATE", "no-cache, max-age=3600", "max-age=3600, no-cache", "max-age=3600,no-store",
        "max-age=3600, private", "public, no-store, max-age=3600", "public, private, max-age=3600",
        "public, no-cache, max-age=3600", "max-age=3600, s-maxage=0", "s-maxage=0, max-age=3600",
        'foo="bar", no-store, max-age=3600', "max-age=3600,,no-cache", "max-age=3600 ,\tno-store",
        "max-age=0, immutable",
        "max-age=0, must-revalidate", "max-age=0, public", "no-store, max-age=3600, immutable",
        "no-cache, no-cache, max-age=3600",
    ],
)  # fmt: skip
def not_reusable(t, value):
    read(t, control(value))
    expect_asked(t)


@table(
    "a malformed lifetime counts as none", rfc="9111 §4.2.1", larder_only=True,
    rows=[
        "max-age=-1", "max-age=-3600", "max-age=abc", "max-age=", "max-age", "max-age=3600s", "max-age=1.5",
        "max-age=3600.0", "max-age=0x3600", "max-age='3600'", 'max-age="', 'max-age="3600', "max-age=+3600",
        "max-age:3600",
        "max-age 3600", "maxage=3600", "s-max-age=3600", "s-maxage=abc, max-age=3600", "s-maxage, max-age=3600",
        "s-maxage=-1, max-age=3600", "public", "must-revalidate", "immutable", "no-cache=, max-age=3600",
        'no-cache="", max-age=3600', 'no-cache=", max-age=3600', 'private="", max-age=3600',
        'no-store="x", max-age=3600',
        "no-store=1, max-age=3600",
    ],
)  # fmt: skip
def malformed(t, value):
    read(t, control(value))
    expect_asked(t)


@table(
    "the first of duplicate directives counts, or the response is stale", rfc="9111 §4.2.1",
    rows=[
        ("max-age=0, max-age=3600", ["max-age=0, max-age=3600"]),
        ("s-maxage=0, s-maxage=3600", ["s-maxage=0, s-maxage=3600"]),
        ("max-age=0 and max-age=3600 in two fields", ["max-age=0", "max-age=3600"]),
        ("max-age=3600, s-maxage=0, s-maxage=3600", ["max-age=3600, s-maxage=0, s-maxage=3600"]),
    ],
)  # fmt: skip
def duplicated(t, _, values):
    read(t, control(*values))
    expect_asked(t)


@table(
    "several Cache-Control fields form one list", rfc="9110 §5.3",
    rows=[
        ("max-age=3600 and public", ["max-age=3600", "public"], True),
        ("public and max-age=3600", ["public", "max-age=3600"], True),
        ("max-age=3600 and max-age=0", ["max-age=3600", "max-age=0"], True),
        ("an empty one and max-age=3600", ["", "max-age=3600"], True),
        ("max-age=3600 and no-cache", ["max-age=3600", "no-cache"], False),
        ("no-store and max-age=3600", ["no-store", "max-age=3600"], False),
        ("max-age=3600 and private", ["max-age=3600", "private"], False),
    ],
)  # fmt: skip
def several_fields(t, _, values, is_reusable):
    read(t, control(*values))
    (expect_reused if is_reusable else expect_asked)(t)


@table(
    "fields named by a directive are not reused", rfc="9111 §5.2.2.4, §5.2.2.7",
    rows=[
        'no-cache="X-One"', 'no-cache="x-one"', 'no-cache="X-One, X-Two"', 'private="X-One"', 'private="X-ONE,X-Two"',
        'NO-CACHE="X-One"', 'no-cache="X-One", private="X-Two"', 'private="X-Two", private="X-One"',
    ],
)  # fmt: skip
def qualified(t, value):
    fields = [("X-One", "secret"), ("X-Two", "2"), ("X-Three", "3")]
    read(t, control(f"max-age=3600, {value}") + fields)
    response = t.get()
    if response.body == t.bytes(0, SIZE):
        t.expect(response, 200, headers={"X-One": None, "X-Three": "3"})
        t.expect(response, headers={"X-Two": None} if "Two" in value else {})
    if t.is_larder:
        expect_reused(t)


def rfc850(text):
    """The same instant in the format of RFC 850."""
    days = {"Mon": "Monday", "Tue": "Tuesday", "Wed": "Wednesday", "Thu": "Thursday", "Fri": "Friday",
            "Sat": "Saturday", "Sun": "Sunday"}  # fmt: skip
    day, date, month, year, clock, _ = text.replace(",", "").split(" ")
    return f"{days[day]}, {date}-{month}-{year[2:]} {clock} GMT"


def asctime(text):
    day, date, month, year, clock, _ = text.replace(",", "").split(" ")
    return f"{day} {month} {int(date):2} {clock} {year}"


FORMS = {"IMF-fixdate": str, "RFC 850": rfc850, "asctime": asctime}


@table("Expires in the future", rfc="9111 §5.3, 9110 §5.6.7", rows=list(FORMS))
def expires_ahead(t, form):
    read(t, [("Expires", FORMS[form](http_date(HOUR)))])
    expect_reused(t)


@table("Expires in the past", rfc="9111 §5.3, 9110 §5.6.7", rows=list(FORMS))
def expires_behind(t, form):
    read(t, [("Expires", FORMS[form](http_date(-HOUR)))], last_modified=LAST_MODIFIED)
    expect_asked(t)


@table("Date in each format", rfc="9111 §4.2.3, 9110 §5.6.7", rows=list(FORMS))
def date_forms(t, form):
    read(t, control("max-age=3600") + [("Date", FORMS[form](http_date(-2 * HOUR)))])
    expect_asked(t)


@table(
    "Expires far in the future", rfc="9111 §5.3",
    rows=["Tue, 19 Jan 2038 03:14:08 GMT", "Sun, 07 Feb 2106 06:28:16 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"],
)  # fmt: skip
def far_ahead(t, value):
    read(t, [("Expires", value)])
    expect_reused(t)


@table(
    "an Expires that is not a date counts as expired", rfc="9111 §5.3, §4.2",
    rows=[
        "0", "-1", "", "now", "never", "3600", "4102444800", "2100-01-01T00:00:00Z", "Fri, 32 Jan 2100 00:00:00 GMT",
        "Fri, 01 Foo 2100 00:00:00 GMT", "Fri, 01 Jan 2100 25:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
    ],
)  # fmt: skip
def expires_invalid(t, value):
    read(t, [("Expires", value)], last_modified=LAST_MODIFIED)
    expect_asked(t)


@table(
    "an Expires in another time zone counts as expired", rfc="9111 §4.2", larder_only=True,
    rows=["Fri, 01 Jan 2100 00:00:00 EST", "Fri, 01 Jan 2100 00:00:00 +0000", "Fri, 01 Jan 2100 00:00:00"],
)  # fmt: skip
def expires_zone(t, value):
    read(t, [("Expires", value)], last_modified=LAST_MODIFIED)
    expect_asked(t)


@check("dates are case-insensitive", rfc="9111 §4.2")
def expires_case(t):
    read(t, [("Expires", http_date(HOUR).lower())])
    expect_reused(t)


@table(
    "Expires with another directive", rfc="9111 §4.2.1, §5.3",
    rows=[
        ("gone by, max-age=3600", -HOUR, "max-age=3600", True),
        ("gone by, s-maxage=3600", -HOUR, "s-maxage=3600", True),
        ("ahead, max-age=0", HOUR, "max-age=0", False),
        ("ahead, s-maxage=0", HOUR, "s-maxage=0", False),
        ("ahead, no-cache", HOUR, "no-cache", False),
        ("ahead, no-store", HOUR, "no-store", False),
        ("ahead, private", HOUR, "private", False),
        ("ahead, public", HOUR, "public", True),
        ("ahead, must-revalidate", HOUR, "must-revalidate", True),
    ],
)  # fmt: skip
def expires_and_control(t, _, offset, value, is_reusable):
    read(t, expires(offset) + control(value))
    (expect_reused if is_reusable else expect_asked)(t)


@check("the first of two Expires counts, or the response is stale", rfc="9111 §4.2.1")
def expires_twice(t):
    read(t, expires(-HOUR) + expires(HOUR))
    expect_asked(t)


@check("Pragma has no meaning in a response", rfc="9111 §5.4")
def pragma(t):
    read(t, control("max-age=3600") + [("Pragma", "no-cache")])
    expect_reused(t)


@table(
    "Age within the lifetime, or invalid", rfc="9111 §5.1, §4.2.3",
    rows=[
        ("0", ["0"]),
        ("3000", ["3000"]),
        ("0003000", ["0003000"]),
        ("abc", ["abc"]),
        ("-1", ["-1"]),
        ("-99999999999999999999", ["-99999999999999999999"]),
        ("7200.5", ["7200.5"]),
        ("7200s", ["7200s"]),
        ("empty", [""]),
        ("0, 7200", ["0, 7200"]),
        ("0 and 7200 in two fields", ["0", "7200"]),
        ("abc, 7200", ["abc, 7200"]),
    ],
)  # fmt: skip
def age_within(t, _, values):
    read(t, control("max-age=3600") + [("Age", value) for value in values])
    expect_reused(t)


@table(
    "Age beyond the lifetime", rfc="9111 §5.1, §4.2.3",
    rows=[
        ("3600", ["3600"]),
        ("3601", ["3601"]),
        ("2147483648", ["2147483648"]),
        ("18446744073709551616", ["18446744073709551616"]),
        ("99999999999999999999999999", ["99999999999999999999999999"]),
        ("7200, 0", ["7200, 0"]),
        ("7200 and 0 in two fields", ["7200", "0"]),
    ],
)  # fmt: skip
def age_beyond(t, _, values):
    read(t, control("max-age=3600") + [("Age", value) for value in values])
    expect_asked(t)


@table(
    "age and lifetime of", rfc="9111 §4.2.3, §4.2.1, §5.3",
    rows=[
        ("Date 2 h ago, max-age=3600", -2 * HOUR, None, "max-age=3600", None, False),
        ("Date 1/2 h ago, max-age=3600", -HOUR // 2, None, "max-age=3600", None, True),
        ("Date 2 h ago, Age 0, max-age=3600", -2 * HOUR, "0", "max-age=3600", None, False),
        ("Date now, Age 2 h, max-age=3600", 0, "7200", "max-age=3600", None, False),
        ("Date 1/2 h ago, Age 1/2 h, max-age=3600", -HOUR // 2, "1800", "max-age=3600", None, True),
        ("Date 1 h ahead, max-age=3600", HOUR, None, "max-age=3600", None, True),
        ("Date a year ahead, max-age=60", YEAR, None, "max-age=60", None, True),
        ("Date 1 h ago, Expires in 1 h", -HOUR, None, None, HOUR, True),
        ("Date 3 h ago, Expires 1 h ago", -3 * HOUR, None, None, -HOUR, False),
        ("Date a day ahead, Expires in 1 h", 24 * HOUR, None, None, HOUR, False),
        ("Date now, Expires in 1 h, Age 2 h", 0, "7200", None, HOUR, False),
        ("Date now, Expires in 1 h, Age 1/2 h", 0, "1800", None, HOUR, True),
        ("Date and Expires now", 0, None, None, 0, False),
    ],
)  # fmt: skip
def age_of(t, _, date, age, value, expiry, is_reusable):
    fields = [("Date", http_date(date))] + (control(value) if value else [])
    fields += [("Age", age)] if age else []
    read(t, fields + (expires(expiry) if expiry is not None else []))
    (expect_reused if is_reusable else expect_asked)(t)


@table(
    "without a Date the time of receipt is used", rfc="9110 §6.6.1, 9111 §4.2.3",
    rows=[
        ("max-age=3600", control("max-age=3600"), True),
        ("max-age=3600, Age 2 h", control("max-age=3600") + [("Age", "7200")], False),
        ("Expires in 1 h", HOUR, True),
        ("Expires 1 h ago", -HOUR, False),
    ],
)  # fmt: skip
def without_date(t, _, fields, is_reusable):
    read(t, expires(fields) if isinstance(fields, int) else fields, date=False)
    (expect_reused if is_reusable else expect_asked)(t)


@table(
    "a Date that is not a date counts as absent", rfc="9110 §6.6.1",
    rows=["yesterday", "0", "", "2020-01-01T00:00:00Z", "Wed, 32 Jan 2020 10:00:00 GMT"],
)  # fmt: skip
def invalid_date(t, value):
    read(t, control("max-age=3600") + [("Date", value)])
    expect_reused(t)


# Heuristics (§4.2.2) are optional. Larder uses Last-Modified alone: a tenth of the age, at most a day.


@check("Last-Modified alone gives a lifetime", rfc="9111 §4.2.2", larder_only=True)
def heuristic(t):
    read(t, [], last_modified=LAST_MODIFIED)
    expect_reused(t)


@table(
    "a heuristic lifetime requires Last-Modified", rfc="9111 §4.2.2", larder_only=True,
    rows=[
        ("nothing at all", [], None),
        ("an ETag and public", control("public"), None),
        ("Last-Modified ahead", [], "Fri, 01 Jan 2100 00:00:00 GMT"),
        ("Last-Modified that is no date", [], "yesterday"),
        ("two days of Age", [("Age", "172800")], LAST_MODIFIED),
    ],
)  # fmt: skip
def no_heuristic(t, _, fields, last_modified):
    read(t, fields, last_modified=last_modified)
    expect_asked(t)


@table(
    "no heuristic applies to a response with explicit freshness", rfc="9111 §4.2.2",
    rows=[
        ("max-age=0", control("max-age=0")),
        ("no-cache", control("no-cache")),
        ("no-store", control("no-store")),
        ("s-maxage=0", control("s-maxage=0")),
        ("Expires: 0", [("Expires", "0")]),
    ],
)  # fmt: skip
def explicit_before_heuristic(t, _, fields):
    read(t, fields, last_modified=LAST_MODIFIED)
    expect_asked(t)


@check("an origin with explicit freshness uses no heuristic", rfc="9111 §4.2.2", origin={"freshness": "explicit"})
def heuristic_off(t):
    read(t, [], last_modified=LAST_MODIFIED)
    expect_asked(t)


@check("an origin with explicit freshness obeys the response", rfc="9111 §4.2.1", origin={"freshness": "explicit"})
def explicit(t):
    read(t, control("max-age=3600"))
    expect_reused(t)


@table(
    "an origin's ttlSeconds overrides the response", rfc="9111 §4.2.2",
    origin={"freshness": {"ttlSeconds": 3600}},
    rows=[
        ("nothing", []),
        ("max-age=0", control("max-age=0")),
        ("no-cache", control("no-cache")),
        ("no-store", control("no-store")),
        ("private", control("private")),
        ("Expires: 0", [("Expires", "0")]),
        ("an Age of a day", control("max-age=3600") + [("Age", "86400")]),
    ],
)  # fmt: skip
def overridden(t, _, fields):
    read(t, fields)
    expect_reused(t)


@check("an origin's ttlSeconds of 0 requires a new request each time", rfc="9111 §4.2",
       origin={"freshness": {"ttlSeconds": 0}})  # fmt: skip
def overridden_by_zero(t):
    read(t, control("max-age=3600"))
    expect_asked(t)


def fields_at(offsets):
    """Fields with dates at this offset in seconds from now."""
    return [(name, http_date(value) if isinstance(value, int) else value) for name, value in offsets]


@table(
    "the remaining lifetime", rfc="9111 §4.2.1, §4.2.2, §4.2.3; 9211 §2.3", larder_only=True,
    rows=[
        ("max-age=3600", [("Cache-Control", "max-age=3600")], None, 3600),
        ("s-maxage before max-age", [("Cache-Control", "max-age=60, s-maxage=3600")], None, 3600),
        ("max-age before Expires", [("Cache-Control", "max-age=60"), ("Expires", HOUR)], None, 60),
        ("the first max-age", [("Cache-Control", "max-age=60, max-age=3600")], None, 60),
        ("Age", [("Cache-Control", "max-age=3600"), ("Age", "600")], None, 3000),
        ("Date", [("Cache-Control", "max-age=3600"), ("Date", -600)], None, 3000),
        ("Date behind Age", [("Cache-Control", "max-age=3600"), ("Date", -600), ("Age", "1200")], None, 2400),
        ("Age behind Date", [("Cache-Control", "max-age=3600"), ("Date", -1200), ("Age", "600")], None, 2400),
        ("Expires", [("Expires", HOUR)], None, 3600),
        ("Expires counts from Date", [("Date", -600), ("Expires", HOUR)], None, 3600),
        ("2147483647 s", [("Cache-Control", "max-age=2147483647")], None, 2147483647),
        ("the largest", [("Cache-Control", "max-age=99999999999999999999")], None, 2147483648),
        ("a day guessed", [], LAST_MODIFIED, 86400),
        ("a tenth of 2 h guessed", [], -7200, 720),
        ("a tenth of 10 min guessed", [], -600, 60),
    ],
)  # fmt: skip
def lifetime_left(t, _, fields, last_modified, seconds):
    read(t, fields_at(fields), last_modified=fields_at([("", last_modified)])[0][1])
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=True, ttl=lambda ttl: ttl is not None and seconds - 5 <= ttl <= seconds)


@table(
    "stale-while-revalidate applies if it is well-formed", rfc="5861 §3, 9111 §4.2.1", larder_only=True,
    rows=[
        ("stale-while-revalidate=3600", True),
        ("Stale-While-Revalidate=3600", True),
        ('stale-while-revalidate="3600"', True),
        ("stale-while-revalidate=99999999999999999999", True),
        ("stale-while-revalidate=3600, stale-while-revalidate=0", True),
        ("stale-while-revalidate=0", False),
        ("stale-while-revalidate", False),
        ("stale-while-revalidate=abc", False),
        ("stale-while-revalidate=-1", False),
        ("stale-while-revalidate=10", False),
        ("stale-while-revalidate=0, stale-while-revalidate=3600", False),
        ("stale-while-revalidate=3600, must-revalidate", False),
        ("stale-while-revalidate=3600, proxy-revalidate", False),
        ("stale-while-revalidate=3600, no-cache", False),
        ("stale-while-revalidate=3600, s-maxage=600", False),
    ],
)  # fmt: skip
def stale_while_revalidate(t, value, is_used):
    read(t, control(f"max-age=600, {value}") + [("Age", "1000")])
    if not is_used:
        expect_asked(t)
        return
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=True)


@table(
    "stale-if-error applies if it is well-formed", rfc="5861 §4, 9111 §4.2.1", larder_only=True,
    rows=[
        ("stale-if-error=3600", True),
        ("STALE-IF-ERROR=3600", True),
        ('stale-if-error="3600"', True),
        ("stale-if-error=99999999999999999999", True),
        ("stale-if-error=3600, stale-if-error=0", True),
        ("stale-if-error=0", False),
        ("stale-if-error", False),
        ("stale-if-error=abc", False),
        ("stale-if-error=-1", False),
        ("stale-if-error=10", False),
        ("stale-if-error=0, stale-if-error=3600", False),
    ],
)  # fmt: skip
def stale_if_error(t, value, is_used):
    read(t, control(f"max-age=600, {value}") + [("Age", "1000")])
    t.upstream(Answer(503, body=b"out of order"))
    response = t.get()
    if is_used:
        t.expect(response, 200, body=t.bytes(0, SIZE))
    else:
        t.expect(response, 503)
