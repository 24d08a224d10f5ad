"""Range syntax: RFC 9110 §14.1.1 (grammar), §14.2 (Range), §14.4 (Content-Range), §15.3.7 (206), §15.5.17 (416)."""

from harness import asset, check, table

SECTION = (1, "Range syntax")
BOTH = ("cold", "warm")
SIZE = 1000


def expect_partial(t, response, first, last, size=SIZE):
    place = {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Length": last - first + 1}
    t.expect(response, 206, body=t.bytes(first, last + 1), headers=dict(place, ETag='"v1"'))


@check("first byte", rfc="9110 §14.1.2", states=BOTH)
def first_byte(t):
    t.upstream(asset(SIZE))
    expect_partial(t, t.get(range="bytes=0-0"), 0, 0)
