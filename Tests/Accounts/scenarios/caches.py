"""Caches in front of Larder: an nginx with `proxy_cache` that ignores Authorization, as many proxies do."""

import time
import urllib.parse

from mocks.base import Answer, Mock, content, serve
from harness.process import Nginx

from . import scenario
from .readers import Tokens
from .signed import Stage

SIZE = 20_000
#: The caching fields of the upstream, by file.
RULES = {
    "public": {"Cache-Control": "public, max-age=600"}, "shared": {"Cache-Control": "s-maxage=600"},
    "plain": {"Cache-Control": "max-age=600"}, "checked": {"Cache-Control": "max-age=600, must-revalidate"},
    "targeted": {"Cache-Control": "max-age=600", "CDN-Cache-Control": "max-age=600", "Surrogate-Control": "max-age=600"},
    "accelerated": {"X-Accel-Expires": "600"}, "dated": {"Expires": "Wed, 04 Nov 2037 10:00:00 GMT"}, "unstated": {},
    "lenient": {"Cache-Control": "max-age=600, stale-while-revalidate=600, stale-if-error=600"},
}  # fmt: skip


class Rules(Mock):
    """`/…/NAME.bin` has the fields of `RULES[NAME]`; `/…/NAME.404` is an error with them."""

    def answer(self, request):
        name, _, kind = request.name.rpartition("/")[2].partition(".")
        if kind == "404":
            return Answer(404, RULES[name])
        return serve(request, content(name, SIZE), fields=RULES[name])


class Proxy:
    """nginx that stores what it may, for 10 minutes without a stated lifetime. Below `/cdn/` it sends a token of its own."""

    def __init__(self, t, service, token):
        directory = t.directory / "nginx"
        directory.mkdir()
        self.t = t
        place = f"http://127.0.0.1:{service.port}"
        self.nginx = Nginx(directory, f"""
            proxy_cache_path {directory}/cache keys_zone=content:8m;
            proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host localhost;
            proxy_cache content; proxy_cache_key $request_uri; proxy_cache_valid any 10m;
            proxy_cache_background_update on;
            add_header X-Proxy $upstream_cache_status always;
            server {{
                listen 127.0.0.1:{{port}}; access_log off;
                location / {{ proxy_pass {place}; }}
                location /cdn/ {{ proxy_set_header Authorization "Bearer {token}"; proxy_pass {place}/; }}
            }}
        """)  # fmt: skip
        t.processes.append(self.nginx)
        self.service = service

    def get(self, target, fields=None, method="GET"):
        """A reply by way of nginx."""
        port, self.service.port = self.service.port, self.nginx.port
        try:
            return self.service.send(method, target, fields or {})
        finally:
            self.service.port = port


def stage(t, **settings):
    """A protected origin with all rules behind Larder and nginx."""
    tokens = Tokens(t)
    reader, cdn = tokens.add("reader", "read"), tokens.add("cdn", "read", sharedCache=True)
    place = Stage(t, **{"access.tokensFile": tokens.write(), "access.signing.grace": "2s", **settings})
    upstream = t.mock(Rules())
    place.service.api("PUT", "/v1/origins/rules", {"baseURL": upstream.url, "allowPrivateAddresses": True, "access": "token"})
    return place, Proxy(t, place.service, cdn), reader


@scenario(needs=["nginx"])
def proxy_tokens(t):
    """A reader without a token never gets from a proxy the content that a token or a cookie of another one opened."""
    place, proxy, reader = stage(t)
    bearer = {"Authorization": f"Bearer {reader}"}
    for name in RULES:
        path = f"/o/rules/{name}.bin"
        package = urllib.parse.urlsplit(place.mint(path, "uriSigning")).query.removeprefix("URISigningPackage=")
        for kind, fields in {"token": bearer, "cookie": {"Cookie": f"URISigningPackage={package}"}}.items():
            for method, extra in (("GET", {}), ("HEAD", {}), ("GET", {"Range": "bytes=0-99"})):
                reply = proxy.get(path, {**fields, **extra}, method)
                t.check(reply.status in (200, 206), f"{name}: {method} with a {kind}: the answer is {reply}")
                t.check("private" in reply.fields.get("cache-control", ""), f"{name}: Cache-Control is {reply.fields}")
                other = proxy.get(path)
                t.check(other.status == 401, f"{name}: after {method} with a {kind}, a read without gets {other}")
        proxy.get(f"/o/rules/{name}.404", bearer)
        other = proxy.get(f"/o/rules/{name}.404")
        t.check(other.status == 401, f"{name}: after an error with a token, a read without gets {other}")


@scenario(needs=["nginx"])
def proxy_shared(t):
    """A proxy stores the responses to a token with `sharedCache`, and content of public origins, as the upstream states."""
    place, proxy, _ = stage(t)
    for name in RULES:
        path = f"/cdn/o/rules/{name}.bin"
        states = [proxy.get(path).fields.get("x-proxy") for _ in range(3)]
        t.equal(states, ["MISS", "HIT", "HIT"], f"{name}: the states at the proxy with a token of its own")
    upstream = t.mock(Rules())
    place.service.api("PUT", "/v1/origins/open", {"baseURL": upstream.url, "allowPrivateAddresses": True, "access": "public"})
    for name, fields in RULES.items():
        for _ in range(2):
            reply = place.service.send("GET", f"/o/open/{name}.bin")
            stated = {key: value for key, value in reply.fields.items() if key in {field.lower() for field in fields}}
            t.equal(stated, {key.lower(): value for key, value in fields.items()}, f"{name}: the fields of public content")


@scenario(needs=["nginx"])
def proxy_signed(t):
    """A proxy keeps the response to a signed URL until the end of the URL, and not after it."""
    place, proxy, reader = stage(t)
    for name in RULES:
        # The stored response is older than the URL.
        place.service.read(f"/o/rules/{name}.bin", token=reader)
    time.sleep(1.5)
    for form in ("query", "path", "uriSigning"):
        urls = {name: place.mint(f"/o/rules/{name}.bin", form, seconds=5) for name in RULES}
        end = time.time() + 5
        for name, url in urls.items():
            replies = [proxy.get(url), proxy.get(url)]
            t.equal([reply.status for reply in replies], [200, 200], f"{form}, {name}: the statuses before the end")
            t.equal(replies[1].fields.get("x-proxy"), "HIT", f"{form}, {name}: the state at the proxy before the end")
        for seconds, statuses in ((0.2, (200, 403)), (2.2, (403,))):
            # The grace is for the reader, not for the proxy.
            time.sleep(max(0, end + seconds - time.time()))
            for name, url in urls.items():
                for reply in (proxy.get(url), proxy.get(url)):
                    state = reply.fields.get("x-proxy")
                    t.check(state != "HIT", f"{form}, {name}: {seconds} s after the end the state at the proxy is {state}")
                    t.check(reply.status in statuses, f"{form}, {name}: {seconds} s after the end the answer is {reply}")
