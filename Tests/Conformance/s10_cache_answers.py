"""Cache metadata of a response: RFC 9111 §5.1 (Age), RFC 9110 §6.6.1 (Date), §7.6.3 (Via), §15.2 (1xx);
RFC 9211 (Cache-Status); RFC 8586 (CDN-Loop).
"""

import re

from suite import Answer, asset, check, confirming, http_date, table

SECTION = (10, "Age, Date, Cache-Status, Via, CDN-Loop, interim responses")
BOTH = ("cold", "warm")
SIZE = 1000
FRESH = [("Cache-Control", "max-age=3600")]


def age_of(t, response, low, high=None):
    """Expects one Age, a number between these limits."""
    values = response.all("Age")
    high = low + 10 if high is None else high
    if len(values) != 1 or not re.fullmatch("[0-9]+", values[0]) or not low <= int(values[0]) <= high:
        t.fail(f"{response}: Age must be one number from {low} to {high}")


def stored(t, fields=(), control="max-age=3600", **options):
    """Stores the whole asset."""
    t.upstream(asset(SIZE, cache_control=control, headers=list(fields), **options))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))
    t.own.requests.clear()


# Age


DATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT")
AGES = [
    ("nothing", [], 0),
    ("Age 600", [("Age", "600")], 600),
    ("Age 0", [("Age", "0")], 0),
    ("Date 10 min ago", [("Date", -600)], 600),
    ("Date 10 min ago, Age 20 min", [("Date", -600), ("Age", "1200")], 1200),
    ("Date 20 min ago, Age 10 min", [("Date", -1200), ("Age", "600")], 1200),
    ("Date ahead", [("Date", 600)], 0),
    ("Age that is no number", [("Age", "abc")], 0),
    ("Age below 0", [("Age", "-600")], 0),
    ("Age 600, 1200", [("Age", "600, 1200")], 600),
    ("Age 600 and 1200 in two fields", [("Age", "600"), ("Age", "1200")], 600),
]


def dated(fields):
    return [(name, http_date(value) if isinstance(value, int) else value) for name, value in fields]


@table("the Age of a stored response; the upstream sends", rfc="9111 §5.1, §4.2.3", rows=AGES)
def ages(t, _, fields, age):
    stored(t, dated(fields))
    for options in ({}, {"range": "bytes=5-9"}, {"method": "HEAD"}):
        response = t.get(**options)
        t.expect(response, (200, 206))
        if t.is_larder or t.requests == []:
            age_of(t, response, age)


@check("the Age of a fetched response is the upstream's", rfc="9111 §5.1")
def age_of_miss(t):
    t.upstream(asset(SIZE, headers={"Age": "600"}))
    age_of(t, t.get(), 600)


@check("a fetched response without Age is not old", rfc="9111 §5.1")
def no_age_of_miss(t):
    t.upstream(asset(SIZE))
    response = t.get()
    if response.get("Age") not in (None, "0", "1", "2"):
        t.fail(f"{response}: Age")


@table("the Age of a stored response that is a", rfc="9111 §5.1, 9110 §15.4.5",
       rows=[("304", {"headers": {"If-None-Match": '"v1"'}}, 304), ("206", {"range": "bytes=5-9"}, 206),
             ("multipart 206", {"range": "bytes=0-9,500-509"}, 206)])  # fmt: skip
def age_of_kinds(t, _, options, status):
    stored(t, [("Age", "600")])
    response = t.get(**options)
    if t.is_larder:
        t.expect(response, status)
    if t.is_larder or (t.requests == [] and response.status == status):
        age_of(t, response, 600)


@check("Age has at least 31 bits and never overflows", rfc="9111 §1.2.2, §5.1", larder_only=True)
def largest_age(t):
    t.upstream(asset(SIZE, cache_control="no-cache", headers={"Age": "99999999999999999999"}))
    t.expect(t.get(), 200)
    age_of(t, t.get(), 2147483647, 2147483648 + 60)


@check("a revalidation resets the Age", rfc="9111 §4.3.4, §5.1")
def age_after_confirmation(t):
    stored(t, [("Age", "1000")], control="max-age=600")
    t.upstream(confirming(asset(SIZE, cache_control="max-age=600"), ("Cache-Control", "max-age=600")))
    for _ in range(2):
        response = t.get()
        t.expect(response, 200, body=t.bytes(0, SIZE))
        if response.get("Age") is not None:
            age_of(t, response, 0)


@check("the Age of a 304 counts", rfc="9111 §4.3.4, §4.2.3")
def age_of_confirmation(t):
    stored(t, [("Age", "1000")], control="max-age=600")
    t.upstream(confirming(asset(SIZE, cache_control="max-age=600", headers={"Age": "300"}), ("Age", "300")))
    for _ in range(2):
        response = t.get()
        t.expect(response, 200, body=t.bytes(0, SIZE))
        age_of(t, response, 300)


# Date


def one_date(t, response):
    values = response.all("Date")
    if len(values) != 1 or not DATE.fullmatch(values[0]):
        t.fail(f"{response}: Date must be one IMF-fixdate, not {values}")
    return values[0]


@table("Date is the upstream's", rfc="9110 §6.6.1", states=BOTH,
       rows=[("10 min ago", -600), ("a day ago", -86400), ("now", 0), ("10 min ahead", 600)])  # fmt: skip
def date(t, _, offset):
    wanted = http_date(offset)
    t.upstream(asset(SIZE, cache_control="max-age=864000", headers={"Date": wanted}))
    for options in ({}, {"range": "bytes=5-9"}, {"method": "HEAD"}, {"headers": {"If-None-Match": '"v1"'}}):
        response = t.get(**options)
        if one_date(t, response) != wanted:
            t.fail(f"{response}: Date {response.get('Date')} instead of {wanted}")


@table("there is one Date when the upstream's is", rfc="9110 §6.6.1", states=BOTH,
       rows=[("missing", None), ("no date", "yesterday"), ("empty", ""), ("0", "0")])  # fmt: skip
def no_date(t, _, value):
    good = asset(SIZE, headers=[("Date", value)] if value is not None else [])

    def handler(request, connection):
        answer = good.answer(request)
        answer.date = False
        connection.answer(answer)

    t.upstream(handler)
    for _ in range(2):
        response = t.get()
        if t.is_larder or value is None:
            one_date(t, response)


@check("without the upstream's Date the time of receipt is sent", rfc="9110 §6.6.1", larder_only=True)
def date_of_receipt(t):
    good = asset(SIZE)

    def handler(request, connection):
        answer = good.answer(request)
        answer.date = False
        connection.answer(answer)

    t.upstream(handler)
    dates = {one_date(t, t.get()) for _ in range(3)}
    if len(dates) != 1:
        t.fail(f"several Dates of one response: {dates}")


@check("the Date of a 304 becomes the stored response's Date", rfc="9111 §3.2, 9110 §6.6.1")
def date_of_confirmation(t):
    stored(t, [("Date", http_date(-1000))], control="max-age=600")
    wanted = http_date(-5)
    whole = asset(SIZE, cache_control="max-age=600", headers={"Date": wanted})
    t.upstream(confirming(whole, ("Date", wanted), ("Cache-Control", "max-age=600")))
    for _ in range(2):
        response = t.get()
        if one_date(t, response) != wanted:
            t.fail(f"{response}: Date {response.get('Date')} instead of {wanted}")


@table("errors have a Date", rfc="9110 §6.6.1", rows=[404, 503])
def date_of_errors(t, status):
    t.upstream(Answer(status, body=b"no"))
    one_date(t, t.get())


# Cache-Status


def near(seconds):
    return lambda ttl: isinstance(ttl, int) and seconds - 10 <= ttl <= seconds


@check("Cache-Status of a miss", rfc="9211 §2.2–2.6", larder_only=True)
def status_miss(t):
    t.upstream(asset(SIZE))
    response = t.get()
    t.expect_cache_status(
        response, hit=False, fwd="miss", fwd_status=lambda status: status in (200, 206), stored=True, ttl=near(3600),
        collapsed=None, detail=None,
    )  # fmt: skip


@check("Cache-Status reports the upstream's own status", rfc="9211 §2.3", larder_only=True)
def status_of_upstream(t):
    t.upstream(asset(SIZE, ranges=False))
    t.expect_cache_status(t.get(range="bytes=5-9"), hit=False, fwd="miss", fwd_status=200)


@check("Cache-Status of a hit", rfc="9211 §2.1, §2.4", larder_only=True)
def status_hit(t):
    stored(t, [("Age", "600")])
    for options in ({}, {"range": "bytes=5-9"}, {"method": "HEAD"}, {"range": "bytes=5000-"},
                    {"headers": {"If-None-Match": '"v1"'}}, {"headers": {"If-Match": '"other"'}}):  # fmt: skip
        response = t.get(**options)
        absent = dict.fromkeys(("fwd", "fwd_status", "stored", "collapsed"))
        t.expect_cache_status(response, hit=True, ttl=near(3000), **absent)


@check("Cache-Status of a partly cached asset", rfc="9211 §2.2", larder_only=True)
def status_partial(t):
    t.upstream(asset(3_000_000))
    t.get(range="bytes=0-99")
    response = t.get(range="bytes=50-2000000")
    t.expect_cache_status(response, hit=False, fwd="partial", fwd_status=206, stored=True, ttl=near(3600))
    response = t.get(range="bytes=2900000-2900009")
    t.expect_cache_status(response, hit=False, fwd="miss", stored=True)


@check("Cache-Status of a revalidation", rfc="9211 §2.2, §2.3", larder_only=True)
def status_stale(t):
    stored(t, [("Age", "1000")], control="max-age=600")
    t.upstream(confirming(asset(SIZE, cache_control="max-age=600"), ("Cache-Control", "max-age=600")))
    t.expect_cache_status(t.get(), hit=False, fwd="stale", fwd_status=304, ttl=near(600), collapsed=None)


@check("Cache-Status of another generation", rfc="9211 §2.2, §2.3", larder_only=True)
def status_changed(t):
    stored(t, [("Age", "1000")], control="max-age=600")
    t.upstream(asset(SIZE, etag='"v2"', seed=1))
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, SIZE, seed=1))
    t.expect_cache_status(
        response, hit=False, fwd="stale", fwd_status=lambda status: status in (200, 206), stored=True, ttl=near(3600)
    )


@check("Cache-Status of an unstorable response", rfc="9211 §2.2, §2.6", larder_only=True)
def status_unstored(t):
    t.upstream(asset(SIZE, cache_control="no-store"))
    for _ in range(2):
        t.expect_cache_status(t.get(), hit=False, fwd=lambda fwd: fwd in ("bypass", "miss"), stored=None)


@check("Cache-Status reports expired freshness", rfc="9211 §2.4", larder_only=True)
def status_negative_ttl(t):
    stored(t, [("Age", "1000")], control="max-age=600, stale-if-error=3600")
    t.upstream(Answer(503))
    t.expect_cache_status(t.get(), hit=False, fwd="stale", ttl=near(-400), detail="stale")


@check("Cache-Status reports collapsed requests", rfc="9211 §2.7", larder_only=True)
def status_collapsed(t):
    release = t.event()

    def handler(request, connection):
        answer = asset(SIZE).answer(request)
        connection.send(answer.head() + answer.body[:500])
        connection.wait(release)
        connection.send(answer.body[500:])

    t.upstream(handler)
    with t.connect() as one, t.connect() as other:
        responses = []
        for connection in (one, other):
            connection.request("GET", t.target())
            responses.append(connection.read_head(asked="GET while it comes"))
        release.set()
        for connection, response in zip((one, other), responses):
            connection.read_body(response)
            t.expect(response, 200, body=t.bytes(0, SIZE))
    t.expect_requests(1)
    t.expect_cache_status(responses[0], hit=False, fwd="miss", collapsed=None)
    t.expect_cache_status(responses[1], hit=False, collapsed=True)


@table(
    "Cache-Status of a failure", rfc="9211 §2.2, §2.3, §2.8", larder_only=True,
    rows=[("404", 404), ("410", 410), ("429", 429), ("500", 500), ("503", 503)],
)  # fmt: skip
def status_refused(t, _, status):
    t.upstream(Answer(status, body=b"no"))
    response = t.get()
    t.expect(response, status)
    t.expect_cache_status(response, hit=False, fwd="miss", fwd_status=status, stored=None, detail="upstreamRefused")


@check("Cache-Status when the upstream is unreachable", rfc="9211 §2.2, §2.8", larder_only=True)
def status_unreachable(t):
    t.upstream(asset(SIZE))
    t.target()
    t.stop_upstream()
    response = t.get()
    t.expect(response, 502)
    t.expect_cache_status(response, hit=False, fwd="miss", fwd_status=None, stored=None, detail="upstreamUnreachable")


@check("Cache-Status when the upstream does not respond", rfc="9211 §2.2, §2.8", larder_only=True)
def status_timed_out(t):
    t.upstream(lambda request, connection: connection.stall())
    response = t.get(timeout=15)
    t.expect(response, 504)
    t.expect_cache_status(response, hit=False, fwd="miss", fwd_status=None, stored=None, detail="upstreamTimedOut")


@check("Cache-Status of a failed revalidation", rfc="9211 §2.2, §2.3", larder_only=True)
def status_failed_confirmation(t):
    stored(t, [("Age", "1000")], control="max-age=600")
    t.upstream(Answer(503, body=b"no"))
    response = t.get()
    t.expect(response, 503)
    t.expect_cache_status(response, hit=False, fwd="stale", fwd_status=503, stored=None, detail="upstreamRefused")


@table(
    "Cache-Status follows the upstream's own", rfc="9211 §2", larder_only=True, states=BOTH,
    rows=[
        ("one member", ["Far; hit"], [("Far", {"hit": True})]),
        ("with parameters", ["Far; fwd=miss; stored; ttl=10"], [("Far", {"fwd": "miss", "stored": True, "ttl": 10})]),
        ("a string", ['"Far Cache"; hit; detail="a, b"'], [("Far Cache", {"hit": True, "detail": "a, b"})]),
        ("two members", ["Farther; hit, Far; fwd=stale"], [("Farther", {"hit": True}), ("Far", {"fwd": "stale"})]),
        ("two fields", ["Farther; hit", "Far; fwd=miss"], [("Farther", {"hit": True}), ("Far", {"fwd": "miss"})]),
        ("an invalid list", ["Far; =hit"], []),
        ("an unclosed string", ['"Far; hit'], []),
        ("empty", [""], []),
    ],
)  # fmt: skip
def status_appended(t, _, values, members):
    t.upstream(asset(SIZE, headers=[("Cache-Status", value) for value in values]))
    for options in ({}, {"range": "bytes=5-9"}):
        response = t.get(**options)
        t.expect(response, (200, 206))
        found = response.cache_status()
        if [name for name, _ in found].count("Larder") != 1 or found[-1][0] != "Larder":
            t.fail(f"{response}: Larder's member must be the last")
        if found[:-1] != members:
            t.fail(f"{response}: {found[:-1]} instead of {members}")


@table("every response has a Cache-Status", rfc="9211 §2", larder_only=True, states=BOTH,
       rows=[("206", {"range": "bytes=5-9"}, 206), ("multipart", {"range": "bytes=0-9,500-509"}, 206),
             ("304", {"headers": {"If-None-Match": '"v1"'}}, 304), ("412", {"headers": {"If-Match": '"x"'}}, 412),
             ("416", {"range": "bytes=5000-"}, 416), ("HEAD", {"method": "HEAD"}, 200)])  # fmt: skip
def status_everywhere(t, _, options, status):
    t.upstream(asset(SIZE))
    response = t.get(**options)
    t.expect(response, status)
    t.expect_cache_status(response, **({"hit": True} if t.warm else {"hit": False, "fwd": "miss"}))


# Via


@check("requests to the upstream have a Via", rfc="9110 §7.6.3")
def via_request(t):
    t.upstream(asset(SIZE))
    t.get()
    values = t.requests[0].all("Via")
    if len(values) != 1 or not re.fullmatch(r"(HTTP/)?1\.1 \S+.*", values[0]):
        t.fail(f"the upstream received Via: {values}")


@table(
    "Via of a response", rfc="9110 §7.6.3", larder_only=True, states=BOTH,
    rows=[
        ("nothing", [], "1.1 larder"),
        ("one", ["1.1 far"], "1.1 far, 1.1 larder"),
        ("two", ["1.0 farther, 1.1 far (Far/2)"], "1.0 farther, 1.1 far (Far/2), 1.1 larder"),
        ("two fields", ["1.0 farther", "HTTP/2 far"], "1.0 farther, HTTP/2 far, 1.1 larder"),
    ],
)  # fmt: skip
def via(t, _, values, wanted):
    t.upstream(asset(SIZE, headers=[("Via", value) for value in values]))
    for options in ({}, {"range": "bytes=5-9"}, {"method": "HEAD"}, {"headers": {"If-None-Match": '"v1"'}}):
        t.expect(t.get(**options), headers={"Via": wanted})


@check("a revalidation does not lengthen Via", rfc="9111 §3.2", larder_only=True)
def via_confirmed(t):
    t.upstream(asset(SIZE, cache_control="max-age=0", headers={"Via": "1.1 far"}))
    for _ in range(3):
        t.expect(t.get(), 200, headers={"Via": "1.1 far, 1.1 larder"})


# CDN-Loop


def loop_name(t):
    """The pseudonym of this service, read from its upstream requests."""
    t.upstream(asset(SIZE))
    t.expect(t.get(), 200)
    members = (t.requests[0].get("CDN-Loop") or "").split(",")
    t.own.requests.clear()
    return members[-1].partition(";")[0].strip()


@check("requests to the upstream name Larder in CDN-Loop", rfc="8586 §2", larder_only=True)
def loop_named(t):
    if not re.fullmatch("larder-[0-9a-f]{8}", loop_name(t)):
        t.fail(f"the pseudonym is {loop_name(t)!r}")


@table(
    "received CDN-Loop members are forwarded", rfc="8586 §2", larder_only=True,
    rows=[["far"], ["far; v=1, farther"], ["far", "farther"], ["larder"]],
)  # fmt: skip
def loop_kept(t, values):
    t.upstream(asset(SIZE))
    t.expect(t.get(headers=[("CDN-Loop", value) for value in values]), 200)
    sent = ", ".join(t.requests[0].all("CDN-Loop"))
    if not sent.startswith(", ".join(values) + ", larder-"):
        t.fail(f"the upstream received CDN-Loop: {sent}")


@table(
    "a request with Larder's own CDN-Loop member is a 508", rfc="8586 §2, 5842 §7.2", larder_only=True,
    rows=[
        ("its name", ["{}"]),
        ("with parameters", ["{}; v=1; id=\"a, b\""]),
        ("with parameters at once", ["{};v=1"]),
        ("behind another", ["far, {}"]),
        ("before another", ["{}, far"]),
        ("in the second field", ["far", "{}"]),
        ("in capitals", ["CAPITALS"]),
        ("twice", ["{0}, {0}"]),
    ],
)  # fmt: skip
def loop(t, _, values):
    name = loop_name(t)
    for method in ("GET", "HEAD"):
        fields = [("CDN-Loop", name.upper() if value == "CAPITALS" else value.format(name)) for value in values]
        t.expect(t.get(method=method, headers=fields), 508)
    t.expect_requests(0)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@table(
    "other CDN-Loop members are no loop", rfc="8586 §2", states=BOTH,
    rows=["larder", "far", "far; larder", "larder2", "not-larder", "far;id=larder", 'far; id="larder"', 'far; id="a, larder"',
          "larder.example", "larder:8080", ""],
)  # fmt: skip
def no_loop(t, value):
    t.upstream(asset(SIZE))
    t.expect(t.get(headers={"CDN-Loop": value}), 200, body=t.bytes(0, SIZE))


@check("an origin that points back to Larder ends as a loop", rfc="8586 §2", larder_only=True)
def own_loop(t):
    t.upstream(asset(SIZE))
    t.target()
    host, port = t.peer.address
    t.origin(baseURL=f"http://{host}:{port}/o/{t.label}")
    t.expect(t.get(), (502, 508))
    t.expect_requests(0)


# Interim responses


INTERIM = {
    "100": [(100, [])],
    "102": [(102, [])],
    "103": [(103, [("Link", "</style.css>; rel=preload"), ("ETag", '"early"'), ("X-Early", "yes")])],
    "199": [(199, [("X-Early", "yes")])],
    "100 and 103": [(100, []), (103, [("X-Early", "yes")])],
    "103 with a length": [(103, [("Content-Length", "5"), ("X-Early", "yes")])],
    "103 that is not to be stored": [(103, [("Cache-Control", "no-store"), ("X-Early", "yes")])],
    "twenty": [(103, [("Link", f"</{at}.css>; rel=preload"), ("X-Early", "yes")]) for at in range(20)],
}


def interim(name, good):
    def handler(request, connection):
        answer = good.answer(request)
        answer.interim = INTERIM[name]
        connection.answer(answer)

    return handler


@table("before the final response", rfc="9110 §15.2, 8297 §2", rows=list(INTERIM))
def interim_before(t, name):
    t.upstream(interim(name, asset(SIZE)))
    for options in ({"range": "bytes=5-9"}, {}, {}):
        response = t.get(**options)
        t.expect(response, 206 if options else 200, headers={"X-Early": None, "ETag": '"v1"', "Link": None,
                                                             "Cache-Control": "max-age=3600"})  # fmt: skip
        t.expect(response, body=t.bytes(5, 10) if options else t.bytes(0, SIZE))
    t.expect_cache_status(response, hit=True)


@table("before a 304", rfc="9110 §15.2", rows=list(INTERIM))
def interim_before_confirmation(t, name):
    stored(t, [("Age", "1000")], control="max-age=600")
    t.upstream(interim(name, asset(SIZE, cache_control="max-age=600")))
    for _ in range(2):
        t.expect(t.get(), 200, body=t.bytes(0, SIZE), headers={"X-Early": None, "ETag": '"v1"'})


@check("before an error", rfc="9110 §15.2")
def interim_before_refusal(t):
    t.upstream(Answer(404, body=b"no", interim=INTERIM["103"]))
    t.expect(t.get(), 404, headers={"X-Early": None})


@check("endless interim responses are an error", rfc="9110 §15.2")
def interim_alone(t):
    def handler(request, connection):
        connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")
        connection.close()

    t.upstream(handler)
    t.expect(t.get(), (502, 503))
    t.upstream(asset(SIZE))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("an unrequested 101 is an error", rfc="9110 §15.2.2", larder_only=True)
def switching(t):
    def handler(request, connection):
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: noise\r\n\r\nnoise")
        connection.close()

    t.upstream(handler)
    t.expect(t.get(), (502, 503, 504))
