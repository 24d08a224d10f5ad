"""Asset keys: RFC 3986 §6.2.2 (case, percent-encoding, dot segments) and the origin's `keyQuery`.

The scripted upstream answers each target with a text that contains the normalized target. A cache that merges two
assets, or requests the wrong one, returns a wrong text.
"""

import re

from suite import Answer, asset, check, table

SECTION = (5, "Keys: query, percent-encoding, dot segments")
UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


def normal(target):
    """The normal form of RFC 3986 §6.2.2.1–3: unreserved characters decoded, upper-case hex digits, no dot segments."""

    def one(match):
        character = chr(int(match.group(1), 16))
        return character if character in UNRESERVED else match.group(0).upper()

    path, mark, query = re.sub(r"%([0-9A-Fa-f]{2})", one, target).partition("?")
    segments = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            segments = segments[:-1]
        elif segment != ".":
            segments.append(segment)
    if path.endswith(("/.", "/..")):
        segments.append("")
    return "/" + "/".join(segments) + mark + query


def telling(target):
    return f"this is {normal(target)}".encode("latin-1").ljust(100, b".")


def teller(request, connection):
    """Serves a text that contains the requested target."""
    tag = '"%s"' % "".join(c if c.isalnum() else "_%x" % ord(c) for c in normal(request.target))
    asset(data=telling(request.target), etag=tag, content_type="text/plain")(request, connection)


def expect_told(t, response, target):
    t.expect(response, 200, body=telling(target))


def ask(t, target):
    path, mark, query = target.partition("?")
    with t.connect() as connection:
        connection.request("GET", t.mount + path + mark + query)
        response = connection.response(asked=f"GET {target}")
        connection.finish(response)
        return response


@table(
    "two spellings of one asset", rfc="3986 §6.2.2",
    rows=[
        ("/film.mp4 and /%66ilm.mp4", "/film.mp4", "/%66ilm.mp4"),
        ("/~user/a-b_c.d and all encoded", "/~user/a-b_c.d", "/%7Euser/a%2Db%5Fc%2Ed"),
        ("/a%2fb and /a%2Fb", "/a%2fb", "/a%2Fb"),
        ("/%c3%a9 and /%C3%A9", "/%c3%a9", "/%C3%A9"),
        ("/%46ilm and /Film", "/%46ilm", "/Film"),
        ("?v=%31 and ?v=1", "/film?v=%31", "/film?v=1"),
        ("?v=%2f and ?v=%2F", "/film?v=%2f", "/film?v=%2F"),
        ("/a/./b and /a/b", "/a/./b", "/a/b"),
        ("/a/x/../b and /a/b", "/a/x/../b", "/a/b"),
        ("/a/%2e/b and /a/b", "/a/%2e/b", "/a/b"),
        ("/a/x/%2E%2e/b and /a/b", "/a/x/%2E%2e/b", "/a/b"),
    ],
)  # fmt: skip
def same(t, _, one, other):
    t.upstream(teller)
    expect_told(t, ask(t, one), one)
    response = ask(t, other)
    expect_told(t, response, other)
    t.expect_cache_status(response, hit=True)
    if t.is_larder:  # a cache may store both; it must not mix different assets
        t.expect_requests(1)


@table(
    "two similar but different targets", rfc="3986 §2.2, §6.2.2",
    rows=[
        ("/a%2Fb and /a/b", "/a%2Fb", "/a/b"),
        ("/a%3Fb and /a?b", "/a%3Fb", "/a?b"),
        ("/a%23b and /a", "/a%23b", "/a"),
        ("/a%2Bb and /a+b", "/a%2Bb", "/a+b"),
        ("/a%3Bb and /a;b", "/a%3Bb", "/a;b"),
        ("/a%40b and /a@b", "/a%40b", "/a@b"),
        ("/a%3Ab and /a:b", "/a%3Ab", "/a:b"),
        ("/a%2541 and /a%41", "/a%2541", "/a%41"),
        ("/a%252Fb and /a%2Fb", "/a%252Fb", "/a%2Fb"),
        ("/a%20b and /a+b", "/a%20b", "/a+b"),
        ("/film and /Film", "/film", "/Film"),
        ("/film and /film/", "/film", "/film/"),
        ("/a/b and /a//b", "/a/b", "/a//b"),
        ("//a and /a", "//a", "/a"),
        ("/a;v=1 and /a;v=2", "/a;v=1", "/a;v=2"),
        ("/a;v=1 and /a", "/a;v=1", "/a"),
        ("/.../a and /a", "/.../a", "/a"),
        ("/.a and /a", "/.a", "/a"),
        ("/e%CC%81 and /%C3%A9", "/e%CC%81", "/%C3%A9"),
        ("/%FF and /%FE", "/%FF", "/%FE"),
    ],
)  # fmt: skip
def different(t, _, one, other):
    t.upstream(teller)
    for target in (one, other, one, other):
        expect_told(t, ask(t, target), target)


@table(
    "the whole query is part of the key", rfc="3986 §3.4, 9111 §2",
    rows=[
        ("/a?v=1 and /a?v=2", "/a?v=1", "/a?v=2"),
        ("/a?v=1 and /a", "/a?v=1", "/a"),
        ("/a? and /a", "/a?", "/a"),
        ("/a?v and /a?v=", "/a?v", "/a?v="),
        ("/a?v=1&w=2 and /a?w=2&v=1", "/a?v=1&w=2", "/a?w=2&v=1"),
        ("/a?v=1&v=2 and /a?v=2", "/a?v=1&v=2", "/a?v=2"),
        ("/a?v=1& and /a?v=1", "/a?v=1&", "/a?v=1"),
        ("/a?v=a+b and /a?v=a%20b", "/a?v=a+b", "/a?v=a%20b"),
        ("/a?v=%26 and /a?v=&", "/a?v=%26", "/a?v=&"),
        ("/a?v=%3D and /a?v==", "/a?v=%3D", "/a?v=="),
        ("/a?v=V and /a?v=v", "/a?v=V", "/a?v=v"),
        ("/a?b?c and /a?b", "/a?b?c", "/a?b"),
        ("/a?p=../x and /a?p=x", "/a?p=../x", "/a?p=x"),
        ("/a?p=/b and /a/b", "/a?p=/b", "/a/b"),
    ],
)  # fmt: skip
def whole_query(t, _, one, other):
    t.upstream(teller)
    for target in (one, other, one, other):
        expect_told(t, ask(t, target), target)


@table(
    "keyQuery", rfc="9111 §2",
    larder_only=True,
    rows=[
        ("none: any query is one asset", "none", "/a?v=1", "/a?w=2", True),
        ("none: no query either", "none", "/a", "/a?v=1", True),
        ("none: paths still differ", "none", "/a?v=1", "/b?v=1", False),
        ("include: the named one differs", {"include": ["v"]}, "/a?v=1&t=x", "/a?v=2&t=x", False),
        ("include: another one differs", {"include": ["v"]}, "/a?v=1&t=x", "/a?v=1&t=y", True),
        ("include: the named one is missing", {"include": ["v"]}, "/a?v=1", "/a", False),
        ("include: none of them is there", {"include": ["v"]}, "/a?t=x", "/a", True),
        ("include: names compare exactly", {"include": ["v"]}, "/a?V=1", "/a?V=2", True),
        ("include: an encoded name", {"include": ["v"]}, "/a?%76=1", "/a?%76=2", False),
        ("include: both occurrences count", {"include": ["v"]}, "/a?v=1&v=2", "/a?v=1&v=3", False),
        ("exclude: the named one differs", {"exclude": ["token"]}, "/a?v=1&token=x", "/a?v=1&token=y", True),
        ("exclude: the named one is missing", {"exclude": ["token"]}, "/a?v=1&token=x", "/a?v=1", True),
        ("exclude: another one differs", {"exclude": ["token"]}, "/a?v=1&token=x", "/a?v=2&token=x", False),
        ("exclude: an encoded name", {"exclude": ["token"]}, "/a?%74oken=x", "/a?token=y", True),
        ("exclude: a longer name is another one", {"exclude": ["token"]}, "/a?token2=x", "/a?token2=y", False),
        ("all", "all", "/a?v=1", "/a?v=2", False),
    ],
)  # fmt: skip
def key_query(t, _, rule, one, other, is_same):
    t.origin(keyQuery=rule)
    t.upstream(teller)
    expect_told(t, ask(t, one), one)
    response = ask(t, other)
    expect_told(t, response, one if is_same else other)
    t.expect_requests(1 if is_same else 2)


@table(
    "CMCD in the query (CTA-5004 section 2.2)", rfc="9111 §2",
    larder_only=True,
    rows=[
        ("strip: values differ", "strip", "/a?CMCD=br%3D1", "/a", "/a?CMCD=br%3D2", "/a"),
        ("strip: first", "strip", "/a?CMCD=x&v=7", "/a?v=7", "/a?v=7", "/a?v=7"),
        ("strip: last", "strip", "/a?v=7&CMCD=x", "/a?v=7", "/a?v=7", "/a?v=7"),
        ("strip: in the middle", "strip", "/a?v=7&CMCD=x&w=1", "/a?v=7&w=1", "/a?v=7&w=1", "/a?v=7&w=1"),
        ("strip: an encoded name", "strip", "/a?%43MCD=x", "/a", "/a?CM%43D=y", "/a"),
        ("strip: without a value", "strip", "/a?CMCD", "/a", "/a", "/a"),
        ("strip: small letters are another name", "strip", "/a?cmcd=x", "/a?cmcd=x", "/a?cmcd=y", "/a?cmcd=y"),
        ("strip: a longer name", "strip", "/a?CMCDX=x", "/a?CMCDX=x", "/a?CMCDX=y", "/a?CMCDX=y"),
        ("strip: other parameters differ", "strip", "/a?v=1&CMCD=x", "/a?v=1", "/a?v=2&CMCD=x", "/a?v=2"),
        ("forward: values differ", "forward", "/a?CMCD=x", "/a?CMCD=x", "/a?CMCD=y", "/a?CMCD=x"),
        ("forward: no query", "forward", "/a?v=1&CMCD=x", "/a?v=1&CMCD=x", "/a?v=1", "/a?v=1&CMCD=x"),
        ("key: values differ", "key", "/a?CMCD=x", "/a?CMCD=x", "/a?CMCD=y", "/a?CMCD=y"),
    ],
)  # fmt: skip
def cmcd(t, _, rule, one, told_one, other, told_other):
    t.origin(cmcd=rule)
    t.upstream(teller)
    expect_told(t, ask(t, one), told_one)
    expect_told(t, ask(t, other), told_other)
    t.expect_requests(1 if told_one == told_other else 2)


@check("query parameters outside the key are still sent to the upstream", rfc="3986 §3.4", larder_only=True)
def sent_all_the_same(t):
    t.origin(keyQuery={"exclude": ["token"]})
    t.upstream(asset(1000))
    t.expect(t.get(query="v=1&token=abc&w=%2F"), 200, body=t.bytes(0, 1000))
    if t.requests[0].target != "/media.mp4?v=1&token=abc&w=%2F":
        t.fail(f"the upstream received {t.requests[0].target}")


@table(
    "the upstream receives the requested target", rfc="3986 §6.2.2, 9110 §7.1",
    rows=["/a%2Fb", "/a%20b", "/a%3Fb?c=%26&d", "/%E6%98%A0%E7%94%BB.mp4", "/a//b", "/a;v=1,2", "/!$&'()*+,;=:@",
          "/a?x=/?:@!$'()*+,;", "/a%25b", "/a%00b", "/%FF%FE", "/a?", "/%5B%5D", "/a%7Cb", "/a%5Cb", "/a%22b"],
)  # fmt: skip
def asked_for(t, target):
    t.upstream(teller)
    response = ask(t, target)
    if target == "/a%00b" and response.status == 400:
        t.expect_requests(0)
        return
    expect_told(t, response, target)
    if normal(t.requests[0].target) != normal(target):
        t.fail(f"the upstream received {t.requests[0].target}")


@table(
    "a malformed target is rejected or forwarded, never a 5xx", rfc="3986 §2.1, 9112 §3",
    rows=["/a%", "/a%4", "/a%zz", "/a%u0041", "/a|b", "/a\\b", "/a\"b", "/a^b", "/a`b", "/{a}",
          "/a[b]", "/a#b", "/a?b#c", "/\xc3\xa9", "/a%%41", "/a?%zz"],
)  # fmt: skip
def malformed(t, target):
    t.upstream(teller)
    response = ask(t, target)
    if response.status == 200:
        given = response.body.rstrip(b".").decode("latin-1").removeprefix("this is ")
        encoded = re.sub(r'[#|\\"^`{}\[\]\x80-\xff]', lambda match: "%%%02X" % ord(match.group()), target)
        forms = {normal(target), normal(encoded), normal(target.replace("%", "%25")), normal(target.partition("#")[0])}
        if given not in forms:
            t.fail(f"GET {target} was answered with {given}")
    else:
        t.expect(response, (400, 404))


@table(
    "dot segments cannot escape the mount", rfc="3986 §5.2.4, §6.2.2.3", larder_only=True,
    rows=[
        "/../secret",
        "/../../secret",
        "/../../../../../../etc/passwd",
        "/a/../../secret",
        "/a/b/../../../secret",
        "/./../secret",
        "/%2e%2e/secret",
        "/%2E%2E/secret",
        "/.%2e/secret",
        "/%2e./secret",
        "/%2e%2e/%2e%2e/secret",
        "/a/%2e%2e/%2e%2e/secret",
        "/..%2fsecret",
        "/%2e%2e%2fsecret",
        "/a/..%2f..%2fsecret",
        "/..%5csecret",
        "/..\\secret",
        "/..;/secret",
        "/%252e%252e/secret",
        "/..",
        "/%2e%2e",
        "/../",
        "/a/../..",
        "//../secret",
        "//../../secret",
        "/..//secret",
        "/.../../../secret",
    ],
)  # fmt: skip
def climbing(t, target):
    t.upstream(Answer(200, [("Cache-Control", "no-store")], b"the upstream's"))
    response = ask(t, target)
    prefix = t.own.prefix
    for request in t.requests:
        path = request.raw_target.partition("?")[0]
        if not normal(path).startswith(prefix + "/") and normal(path) != prefix:
            t.fail(f"the upstream received {request.raw_target}, above {prefix}")
        if re.search(r"(^|/)(\.|%2e){2}(/|$)", path, re.IGNORECASE):
            t.fail(f"the upstream received unresolved dot segments: {request.raw_target}")
    if response.status >= 500:
        t.fail(f"{response}: a 5xx")


@check("dot segments do not reach another origin or the API", rfc="3986 §5.2.4", larder_only=True)
def no_other_place(t):
    t.upstream(Answer(200, [("Cache-Control", "no-store")], b"the upstream's"))
    for target in ("/../../v1/origins", "/%2e%2e/%2e%2e/v1/origins", "/..%2f..%2fv1%2forigins", "/a/../../../v1/stats"):
        response = ask(t, target)
        if b'"items"' in response.body or b'"requests"' in response.body:
            t.fail(f"{target} reaches the API: {response}")
        t.expect(response, (200, 400, 404))


@table("dots in the query are not path segments", rfc="3986 §3.4", rows=["/a?x=/../b", "/a?../../b", "/a?x=%2e%2e/b"])
def dots_in_query(t, target):
    t.upstream(teller)
    expect_told(t, ask(t, target), target)
