"""Assets that change: RFC 9110 §8.8 (validators), §15.3.7.3 (combining parts), RFC 9111 §3.4, §4.3."""

import re

from suite import LAST_MODIFIED, Answer, asset, check, http_date, table

SECTION = (14, "Generations: validators that change, are weak or absent")
SIZE = 3_000_000
LATER = "Thu, 02 Jan 2020 10:00:00 GMT"
EARLIER = "Tue, 01 Jan 2019 10:00:00 GMT"
READS = [("bytes=0-999", (0, 1000)), ("bytes=2000000-2000999", (2_000_000, 2_001_000)), (None, (0, SIZE))]


def expect_one(t, response, run, seeds, size=SIZE):
    """All bytes belong to one of these generations, or the response fails or is cut; the seed, None for a failure."""
    if response.status not in (200, 206):
        if response.status < 400:
            t.fail(f"{response}: expected bytes or a failure")
        return None
    first, end = run if response.status == 206 else (0, size)
    for seed in seeds:
        if response.body == t.bytes(first, first + len(response.body), seed):
            if response.complete and len(response.body) != end - first:
                t.fail(f"{response}: a CLEAN END on a short body")
            return seed
    t.fail(f"{response}: WRONG BYTES, or two generations MIXED")


def expect_tagged(t, response, run, seeds, size=SIZE):
    """As `expect_one`; the ETag must match the bytes: `"v1"` for seed 1."""
    seed = expect_one(t, response, run, seeds, size)
    if seed is not None and response.body:
        t.expect(response, headers={"ETag": f'"v{seed}"'}, complete=response.complete)
    return seed


def expect_new(t):
    """From now on a read must give generation 2; a plain proxy may serve a fresh stored generation, unmixed."""
    for value, run in READS:
        response = t.attempt_get(range=value)
        expect_tagged(t, response, run, (1, 2))
        if t.is_larder:
            t.expect(response, 206 if value else 200, body=t.bytes(*run, 2), headers={"ETag": '"v2"'})


def generation(seed, **options):
    return asset(SIZE, seed=seed, etag=f'"v{seed}"', last_modified=options.pop("last_modified", None), **options)


def by_turn(*handlers):
    """Another server for each request, in turn: the nodes behind one name."""
    return lambda request, connection: handlers[(request.number - 1) % len(handlers)](request, connection)


# A change

@check("a new ETag between two fills starts a new generation", rfc="9110 §15.3.7.3")
def between_fills(t):
    t.upstream(generation(1))
    t.expect(t.get(range="bytes=0-999"), 206, body=t.bytes(0, 1000, 1))
    t.upstream(generation(2))
    expect_tagged(t, t.attempt_get(range="bytes=2000000-2000999"), (2_000_000, 2_001_000), (1, 2))
    seed = expect_tagged(t, t.attempt_get(), (0, SIZE), (1, 2))
    expect_new(t)
    if t.is_larder:
        if seed == 1:
            t.fail("bytes of an old generation that was not completely stored")


@check("the read that finds a new ETag gets the new bytes", rfc="9111 §4.3.3", larder_only=True)
def read_that_meets_it(t):
    t.upstream(generation(1))
    t.expect(t.get(range="bytes=0-999"), 206)
    t.upstream(generation(2))
    response = t.get(range="bytes=2000000-2000999")
    t.expect(response, 206, body=t.bytes(2_000_000, 2_001_000, 2), headers={"ETag": '"v2"'})


CONTRADICTORY = [("empty", 0), ("short", 500)]


@table(
    "a 200 that is shorter than a 206 with the same ETag has stated", rfc="9110 §8.8.1, 9111 §3.4", larder_only=True,
    rows=[(f"{name}, {kind}", length, kind) for name, length in CONTRADICTORY
          for kind in ("with length", "chunked", "without ranges later")],
)  # fmt: skip
def contradictory_length(t, _, length, kind):
    """One of the responses is wrong. The short one is passed on, and not kept for its lifetime."""
    fields = [("ETag", '"v1"'), ("Cache-Control", "max-age=3600")]
    size = 3000

    def handler(request, connection):
        if request.range and not (kind == "without ranges later" and request.number > 2):
            place = ("Content-Range", f"bytes 0-{size - 1}/{size}")
            return connection.answer(Answer(206, fields + [place, ("Content-Length", "0")], b""))
        connection.answer(Answer(200, fields, t.bytes(0, length), chunked=kind == "chunked"))

    t.upstream(handler)
    for _ in range(2):
        t.expect(t.get(), 200, body=t.bytes(0, length))
    t.upstream(asset(size))
    t.expect(t.get(), 200, body=t.bytes(0, size))
    t.expect_recovery(size)


@table(
    "a shorter 200 to a revalidation, with the ETag of the stored generation", rfc="9110 §8.8.1, 9111 §4.3.3",
    larder_only=True, rows=CONTRADICTORY,
)  # fmt: skip
def contradictory_revalidation(t, _, length):
    size = 3000
    t.upstream(asset(size, cache_control="max-age=0"))
    t.expect(t.get(), 200, body=t.bytes(0, size))
    t.upstream(Answer(200, [("ETag", '"v1"'), ("Cache-Control", "max-age=3600")], t.bytes(0, length)))
    t.expect(t.get(), 200, body=t.bytes(0, length))
    t.upstream(asset(size, cache_control="max-age=0"))
    asked = len(t.requests)
    t.expect(t.get(), 200, body=t.bytes(0, size))
    t.expect_requests(asked + 1)
    if t.requests[-1].get("If-None-Match") != '"v1"':
        t.fail("the stored generation was removed")


@check("a new ETag between two ranges of one read", rfc="9110 §15.3.7.2, §15.3.7.3")
def between_ranges(t):
    t.upstream([generation(1), generation(2)])
    response = t.get(range="bytes=0-999,2000000-2000999")
    if response.status == 206 and response.complete:
        seeds = set()
        for part in response.parts():
            first = int(re.search(r"\d+", part.get("Content-Range")).group())
            seeds.add(next((seed for seed in (1, 2) if part.body == t.bytes(first, first + 1000, seed)), None))
        if len(seeds) != 1 or None in seeds:
            t.fail(f"{response}: parts of several generations: {seeds}")
    elif response.status == 200:
        expect_tagged(t, response, (0, SIZE), (1, 2))
    t.upstream(generation(2))
    t.attempt_get(range="bytes=0-999,2000000-2000999")
    expect_new(t)


@table("a new ETag in the middle of a read", rfc="9110 §15.3.7.3", rows=[1, 2, 3])
def in_the_middle(t, count):
    """The reader gets one complete generation, or a truncated body. Stored ranges divide its transfers."""
    t.upstream(generation(1))
    for number in range(count):
        first = 400_000 + number * 600_000
        t.expect(t.get(range=f"bytes={first}-{first + 99_999}"), 206)
    t.upstream([generation(1)] * count + [generation(2)])
    expect_tagged(t, t.attempt_get(), (0, SIZE), (1, 2))
    t.upstream(generation(2))
    t.attempt_get()
    expect_new(t)


@check("a new ETag when a broken transfer is resumed", rfc="9110 §13.1.5, §15.3.7.3")
def in_a_retry(t):
    def broken(request, connection):
        answer = generation(1).answer(request)
        connection.send(answer.head() + answer.body[:100_000])
        connection.reset()

    t.upstream([broken, generation(2)])
    expect_tagged(t, t.attempt_get(), (0, SIZE), (1, 2))
    expect_new(t)


@check("a read that is entirely on disk is not affected by a new generation", rfc="9111 §4", larder_only=True)
def reader_on_disk(t):
    t.upstream(generation(1))
    t.expect(t.get(), 200)
    with t.connect() as connection:
        connection.request("GET", t.target())
        response = connection.read_head(asked="GET while the asset changes")
        t.upstream(generation(2))
        t.api("POST", "/v1/purges", {"prefix": t.mount + "/", "soft": True})
        t.get(range="bytes=0-9")
        connection.read_body(response)
    t.expect(response, 200, body=t.bytes(0, SIZE, 1))


@table(
    "a change found by a revalidation", rfc="9111 §4.3.3", states=("warm",),
    rows=[
        ("another ETag", asset(SIZE, seed=2, etag='"v2"')),
        ("no validators", asset(SIZE, seed=2, etag=None, last_modified=None)),
        ("another length", asset(SIZE - 5, seed=2, etag='"v2"')),
        ("a longer one", asset(SIZE + 5, seed=2, etag='"v2"')),
        ("nothing at all", asset(0, etag='"v2"')),
        ("another type", asset(SIZE, seed=2, etag='"v2"', content_type="audio/mp4")),
    ],
)  # fmt: skip
def found_by_revalidation(t, _, new):
    t.upstream(asset(SIZE, cache_control="max-age=0"))
    t.own.serve(new)
    response = t.get()
    t.expect(response, 200, body=t.bytes(0, new.size, new.seed))
    t.expect(response, headers={"ETag": new.etag, "Content-Type": new.content_type})
    t.expect(t.get(), 200, body=t.bytes(0, new.size, new.seed))


@table("Last-Modified changes without an ETag", rfc="9110 §8.8.2, 9111 §4.3.3", rows=["backwards", "forwards", "away"])
def dates(t, direction):
    """Without ETags another date, older or newer, is another generation."""
    dates = {"backwards": EARLIER, "forwards": LATER, "away": None}
    t.upstream(asset(SIZE, seed=1, etag=None))
    t.expect(t.get(range="bytes=0-999"), 206, body=t.bytes(0, 1000, 1))
    new = asset(SIZE, seed=2, etag=None, last_modified=dates[direction])
    t.upstream(new)
    expect_one(t, t.attempt_get(range="bytes=2000000-2000999"), (2_000_000, 2_001_000), (1, 2))
    expect_one(t, t.attempt_get(), (0, SIZE), (1, 2))
    if t.is_larder:
        for value, run in READS:
            t.expect(t.get(range=value), 206 if value else 200, body=t.bytes(*run, 2))


@table("the length changes under one ETag", rfc="9110 §8.8.1, §14.4", rows=["206", "200"])
def length_changes(t, status):
    t.upstream(asset(SIZE, seed=1))
    t.expect(t.get(range="bytes=0-999"), 206, body=t.bytes(0, 1000, 1))
    other = asset(SIZE - 1000, seed=2, ranges=status == "206")
    t.upstream(other)
    # A shorter 200 is passed on as it is.
    size = SIZE - 1000 if status == "200" and t.is_larder else SIZE
    expect_one(t, t.attempt_get(range="bytes=2000000-2000999"), (2_000_000, 2_001_000), (1, 2), size=size)
    response = t.get()
    if expect_one(t, response, (0, 0), (1, 2), size=len(response.body)) and response.complete:
        if len(response.body) != (SIZE - 1000 if response.body[:100] == t.bytes(0, 100, 2) else SIZE):
            t.fail(f"{response}: neither of the two generations")
    if t.is_larder:
        t.get()
        t.expect(t.get(), 200, body=t.bytes(0, SIZE - 1000, 2))


@check("the type changes under one ETag", rfc="9110 §8.8.3, §15.3.7.3")
def type_changes(t):
    """The ETag states equal bytes; either the later or the earlier type is sent, not both."""
    t.upstream(asset(SIZE))
    t.expect(t.get(range="bytes=0-999"), 206)
    t.upstream(asset(SIZE, content_type="audio/mp4"))
    t.expect(t.get(range="bytes=2000000-2000999"), 206, body=t.bytes(2_000_000, 2_001_000))
    t.expect(t.get(), 200, body=t.bytes(0, SIZE), headers={"Content-Type": re.compile("(video|audio)/mp4")})


# Several servers behind one name

@check("nodes with different tags for the same bytes: never mixed by default", rfc="9110 §15.3.7.3")
def servers_strict(t):
    t.upstream(by_turn(generation(1), generation(2)))
    for _ in range(2):
        for value, run in READS:
            expect_tagged(t, t.attempt_get(range=value), run, (1, 2))


@check("nodes with different tags for the same bytes: trusted by length and date", rfc="9110 §8.8.2", origin={
    "trustValidators": "lengthAndLastModified",
})  # fmt: skip
def servers_trusted(t):
    t.upstream(by_turn(*[asset(SIZE, etag=f'"server-{at}"') for at in range(3)]))
    for value, run in READS * 2:
        t.expect(t.get(range=value), 206 if value else 200, body=t.bytes(*run))
    asked = len(t.requests)
    t.expect(t.get(range="bytes=2500000-2500999"), 206, body=t.bytes(2_500_000, 2_501_000))
    t.expect_requests(asked)


@table(
    "trust by length and date ends at", rfc="9110 §8.8.2", origin={"trustValidators": "lengthAndLastModified"},
    rows=["the date differs", "the length differs", "the date is missing"],
)  # fmt: skip
def trust_ends(t, kind):
    t.upstream(asset(SIZE, seed=1, etag='"v1"'))
    t.expect(t.get(range="bytes=0-999"), 206)
    size = SIZE - 1 if kind.startswith("the length") else SIZE
    date = {"the date differs": LATER, "the date is missing": None}.get(kind, LAST_MODIFIED)
    t.upstream(asset(size, seed=2, etag='"v2"', last_modified=date))
    response = t.get()
    expect_tagged(t, response, (0, size), (1, 2), size)
    for _ in range(2):
        t.expect(t.get(), 200, body=t.bytes(0, size, 2))


@check("parts of an immutable origin are combined for any validators", rfc="9110 §15.3.7.3", origin={
    "trustValidators": "immutable",
})  # fmt: skip
def immutable(t):
    t.upstream(by_turn(*[asset(SIZE, etag=etag, last_modified=date) for etag, date in
                         (('"a"', EARLIER), (None, None), ('W/"b"', LATER))]))
    for value, run in READS * 2:
        t.expect(t.get(range=value), 206 if value else 200, body=t.bytes(*run))
    first = [request.range for request in t.requests if (request.range or "").startswith("bytes=0-")]
    if len(first) > 1:
        t.fail(f"stored bytes were requested again: {[request.range for request in t.requests]}")


@check("another length of an immutable origin is another generation", rfc="9110 §14.4", origin={
    "trustValidators": "immutable",
})  # fmt: skip
def immutable_length(t):
    t.upstream(asset(SIZE, seed=1))
    t.expect(t.get(range="bytes=0-999"), 206)
    t.upstream(asset(SIZE - 9, seed=2))
    expect_one(t, t.attempt_get(), (0, SIZE - 9), (1, 2), SIZE - 9)
    for _ in range(2):
        t.expect(t.get(), 200, body=t.bytes(0, SIZE - 9, 2))


# Weak evidence

UNPROVEN = [
    ("no validators", None, None),
    ("a weak ETag", 'W/"v1"', None),
    ("an ETag without quotes", "v1", None),
    ("an empty ETag field", "", None),
    ("an ETag that is a list", '"v1", "v2"', None),
    ("a date of just now", None, "now"),
    ("a weak ETag and a date of just now", 'W/"v1"', "now"),
    ("a date that is none", None, "yesterday"),
]  # fmt: skip


def unproven(seed, etag, date):
    """The same weak or no validators on other bytes."""
    def handler(request, connection):
        answer = asset(SIZE, seed=seed, etag=etag, last_modified=None).answer(request)
        if date == "now":
            answer.headers.append(("Last-Modified", http_date(-20)))
        elif date:
            answer.headers.append(("Last-Modified", date))
        connection.answer(answer)

    return handler


@table("parts are not combined based on", rfc="9110 §15.3.7.3, 9111 §3.4", rows=UNPROVEN)
def not_combined(t, _, etag, date):
    t.upstream(by_turn(*[unproven(seed, etag, date) for seed in (1, 2, 3)]))
    for _ in range(2):
        for value, run in READS:
            expect_one(t, t.attempt_get(range=value), run, (1, 2, 3))
    response = t.get(range="bytes=0-999,2000000-2000999")
    if response.status == 206 and response.complete:
        bodies = [part.body for part in response.parts()]
        if bodies not in [[t.bytes(0, 1000, seed), t.bytes(2_000_000, 2_001_000, seed)] for seed in (1, 2, 3)]:
            t.fail(f"{response}: parts of several generations")


@table("every read works based on", rfc="9110 §8.8", rows=UNPROVEN)
def unproven_works(t, _, etag, date):
    t.upstream(unproven(0, etag, date))
    for value, run in READS * 2:
        t.expect(t.get(range=value), 206 if value else 200, body=t.bytes(*run))


@check("parts without validators are combined within one fill only", rfc="9110 §15.3.7.3", larder_only=True)
def within_one_fill(t):
    """Concurrent readers share the one transfer."""
    t.upstream(asset(SIZE, etag=None, last_modified=None))
    runs = [(0, 1000), (1_000_000, 1_001_000), (2_900_000, SIZE)]
    answers = t.together(*[lambda run=run: t.get(range=f"bytes={run[0]}-{run[1] - 1}") for run in runs])
    for answer, run in zip(answers, runs):
        t.expect(answer, 206, body=t.bytes(*run))


@table(
    "parts are combined based on", rfc="9110 §8.8.2.2, §15.3.7.3", larder_only=True,
    rows=[
        ("a strong ETag", '"v1"', None),
        ("a date long past", None, LAST_MODIFIED),
        ("a weak ETag and a date long past", 'W/"v1"', LAST_MODIFIED),
    ],
)  # fmt: skip
def combined(t, _, etag, date):
    t.upstream(asset(SIZE, etag=etag, last_modified=date))
    t.expect(t.get(range="bytes=0-999"), 206, body=t.bytes(0, 1000))
    t.expect(t.get(range="bytes=2000000-2000999"), 206, body=t.bytes(2_000_000, 2_001_000))
    t.expect(t.get(range="bytes=500-999"), 206, body=t.bytes(500, 1000))
    t.expect_requests(2)
    t.expect(t.get(), 200, body=t.bytes(0, SIZE))


@check("a part without validators is not combined with parts that have validators", rfc="9110 §15.3.7.3")
def validators_lost(t):
    t.upstream(asset(SIZE, seed=1, etag='"v1"', last_modified=None))
    t.expect(t.get(range="bytes=0-999"), 206)
    t.upstream(asset(SIZE, seed=2, etag=None, last_modified=None))
    expect_one(t, t.attempt_get(range="bytes=2000000-2000999"), (2_000_000, 2_001_000), (1, 2))
    expect_one(t, t.attempt_get(), (0, SIZE), (1, 2))


@check("a 206 without validators to a request with If-Range is rejected", rfc="9110 §13.1.5, §15.3.7")
def if_range_ignored(t):
    """Upstreams that ignore If-Range send a 206 of any generation."""
    def careless(request, connection):
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.range or "bytes=0-")
        first, end = int(match.group(1)), min(SIZE, int(match.group(2) or SIZE) + 1)
        place = ("Content-Range", f"bytes {first}-{end - 1}/{SIZE}")
        connection.answer(Answer(206, [place, ("ETag", '"v2"')], t.bytes(first, end, 2)))

    t.upstream([generation(1), careless])
    for value, run in READS:
        expect_one(t, t.attempt_get(range=value), run, (1, 2))
