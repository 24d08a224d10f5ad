"""An upstream with media and hostile files, a Larder with tokens, and Chromium with an open dashboard."""

import contextlib
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import threading
import time
import urllib.parse

from harness import checks, etcd, http
from harness.process import Larder, Nginx, found, origin, wait_until
from playwright.sync_api import expect

ADMIN, READ, WRITE = "admin-token", "read-token", "write-token"
LIMITED_READ, LIMITED_WRITE = "limited-read-token", "limited-write-token"
#: The limits of these two tokens.
PREFIXES = ["/o/media/part0", "/o/media/other"]
LIMIT = 15_000
expect.set_options(timeout=LIMIT)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

#: A name of an asset, a tag or a job that runs code if a page treats it as HTML.
HOSTILE = '<img src=x onerror="window.hacked=1">'

#: Code of a hostile asset. It reports each success to the upstream and in the title of its page.
ATTACK = """
const report = (name) => { document.title += " " + name; new Image().src = "UPSTREAM/report?" + name; };
document.title = "attack";
report("ran");
try { if (sessionStorage.getItem("larder.token")) report("token"); } catch { }
try { if (parent.sessionStorage.getItem("larder.token")) report("parent"); } catch { }
try {
  const tabs = new BroadcastChannel(`larder ${new URL("/", location.href)}`);
  tabs.onmessage = ({ data }) => data.token && report("channel");
  tabs.postMessage({ isWanted: true });
} catch { }
fetch("/v1/assets").then((response) => response.ok && report("api")).catch(() => {});
const frame = document.createElementNS("http://www.w3.org/1999/xhtml", "iframe");
frame.src = "/ui/";
frame.onload = () => {
  try { if (frame.contentWindow.sessionStorage.getItem("larder.token")) report("frame"); } catch { }
};
document.documentElement.append(frame);
"""

UPSTREAM = """
    types { text/html html; image/svg+xml svg; video/mp4 mp4; application/xhtml+xml xhtml; text/javascript js; }
    log_format plain '$request_uri'; access_log DIRECTORY/access.log plain; sendfile on;
    server {
        listen 127.0.0.1:{port}; root DIRECTORY/files; add_header Cache-Control max-age=86400;
        location /slow/ { limit_rate 300k; alias DIRECTORY/files/; }
        location /slowest/ { limit_rate 50k; alias DIRECTORY/files/; }
        location /report { return 204; }
        location /v1/traces { return 200; }
        location /locked/ { if ($http_x_key != two) { return 403; } alias DIRECTORY/files/; }
    }
"""


class Stage:
    """The servers of one run."""

    def __init__(self, program, capacity="64MiB", more=("origins.media.quota.max=32MiB",)):
        self.directory = checks.directory("dashboard")
        self.files = self.directory / "files"
        self.files.mkdir()
        tokens = self.directory / "tokens.json"
        tokens.write_text(json.dumps({"tokens": [
            {"id": token, "sha256": hashlib.sha256(token.encode()).hexdigest(), "scope": scope, **limits}
            for token, scope, limits in [
                (WRITE, "write", {}), (LIMITED_READ, "read", {"prefixes": PREFIXES}),
                (LIMITED_WRITE, "write", {"prefixes": PREFIXES}),
            ]
        ]}))  # fmt: skip
        self.tokens = (f"access.token={ADMIN}", f"access.readToken={READ}", f"access.tokensFile={tokens}")
        self.upstream = Nginx(self.directory, UPSTREAM.replace("DIRECTORY", str(self.directory)))
        self.make_files()
        self.larder = Larder(
            program, self.directory, self.upstream.port,
            [
                *self.tokens, "upstream.pricePerGigabyte=0.09",
                f"policy.capacity={capacity}", "policy.minFreeDisk=0", "policy.grace=1s",
                *origin("dead", "http://127.0.0.1:9", retries=0, circuitBreaker_failures=2),
                *more, f"upstream.allowedHosts=127.0.0.1:{self.upstream.port}",
                "upstream.allowPrivateAddresses=true",
            ],
        )  # fmt: skip
        self.larder.start()

    @property
    def base(self):
        return self.larder.url

    def restart(self, *tokens):
        """Starts Larder again with other settings of its tokens."""
        self.larder.stop()
        self.larder.settings = [each for each in self.larder.settings if not each.startswith("access.")] + list(tokens)
        self.larder.start()

    def stop(self):
        self.larder.kill()
        self.upstream.stop()

    def make_files(self):
        source = "testsrc2=s=320x180:r=25:d=20,noise=alls=20:allf=t"
        film = self.files / "film.mp4"
        if shutil.which("ffmpeg"):
            subprocess.run(
                ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-c:v", "libx264", "-preset", "ultrafast", film],
                check=True,
            )
        else:
            film.write_bytes(random.Random(1).randbytes(4 << 20))
        for number in range(60):
            (self.files / f"part{number:02}.bin").write_bytes(random.Random(number).randbytes(64 << 10))
        (self.files / "other.bin").write_bytes(random.Random(4).randbytes(64 << 10))
        (self.files / "plan.bin").write_bytes(random.Random(3).randbytes(1 << 20))
        (self.files / "large.bin").write_bytes(random.Random(2).randbytes(8 << 20))
        attack = ATTACK.replace("UPSTREAM", f"http://127.0.0.1:{self.upstream.port}")
        (self.files / "attack.html").write_text(f"<!doctype html><title>page</title><script>{attack}</script>")
        (self.files / "attack.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script><![CDATA[{attack}]]></script></svg>'
        )
        (self.files / "attack.xhtml").write_text(
            '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>page</title></head>'
            f"<body><script><![CDATA[{attack}]]></script></body></html>"
        )
        (self.files / "frames.html").write_text(
            "<!doctype html><title>frames</title>"
            + "".join(f'<iframe name="{name}" src="LARDER{path}"></iframe>' for name, path in FRAMES.items())
            + '<img src="LARDER/o/media/attack.svg">'
        )

    def point_frames(self):
        """Writes the port of Larder into the page with frames."""
        page = self.files / "frames.html"
        page.write_text(page.read_text().replace("LARDER", self.base))

    def reports(self):
        """The successes that hostile assets have reported."""
        lines = (self.directory / "access.log").read_text().splitlines()
        return [line.partition("?")[2] for line in lines if line.startswith("/report?")]

    def forget_reports(self):
        with open(self.directory / "access.log", "w"):
            pass

    def call(self, method, path, body=None, token=ADMIN, **fields):
        """Sends a request; returns status, header fields with lower-case names, and body (JSON is parsed)."""
        sent = {name.replace("_", "-"): value for name, value in fields.items()}
        reply = self.larder.call(method, path, body, sent, token)
        is_json = "json" in reply.fields.get("content-type", "")
        return reply.status, reply.fields, reply.json if is_json else reply.body

    def operations(self, token):
        """The operations that the token permits, such as `GET /v1/stats`."""
        items = self.call("GET", "/v1/access", token=token)[2]["operations"]
        return {f"{item['method']} {item['path']}" for item in items}

    def read(self, name, first=None, last=None):
        """Reads an asset of the origin `media`; returns status and header fields."""
        fields = {} if first is None else {"Range": f"bytes={first}-{last}"}
        return self.call("GET", f"/o/media/{urllib.parse.quote(name, safe='/?')}", **fields)[:2]

    def asset(self, name):
        return self.read(name, 0, 0)[1]["larder-asset-id"]

    def read_as(self, key):
        """Reads a file by its URL under this key; returns the identifier of the asset."""
        url = f"http://127.0.0.1:{self.upstream.port}/part00.bin"
        path = f"/v1/content?url={urllib.parse.quote(url)}&key={urllib.parse.quote(key)}"
        return self.call("GET", path)[1]["larder-asset-id"]

    def job(self, *paths, **fields):
        """Creates a job; returns its identifier."""
        items = [{"origin": "media", "path": urllib.parse.quote(path)} for path in paths]
        return self.call("POST", "/v1/jobs", {"items": items, **fields})[2]["jobId"]

    @contextlib.contextmanager
    def traffic(self, threads=1):
        """Reads in the background, one of ten from the upstream. The rate rises and falls within some minutes."""
        is_over = threading.Event()
        names = [f"part{number:02}.bin" for number in range(60)] + ["large.bin", "film.mp4"]

        def run(seed):
            chance = random.Random(seed)
            while not is_over.wait(chance.random() * (0.06 + 0.05 * (time.monotonic() // 40 % 3))):
                name = chance.choices(names, [1 / (place + 2) for place in range(60)] + [0.6, 0.4])[0]
                if chance.random() < 0.1:
                    name = f"large.bin?{chance.randrange(1 << 30)}"
                first = chance.randrange(0, 2 << 20, 1 << 16)
                with contextlib.suppress(OSError, http.ERROR):
                    self.read(name, *(() if name.startswith("part") else (first, first + (1 << 20))))

        running = [threading.Thread(target=run, args=(seed,), daemon=True) for seed in range(threads)]
        for thread in running:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            for thread in running:
                thread.join()


class Fleet:
    """Two services that know each other, with an etcd if it is installed. `base` is the URL of the first one."""

    def __init__(self, stage):
        place = stage.directory / "fleet"
        place.mkdir()
        key = place / "key"
        key.write_text("dashboard-key-" + "k" * 32)
        self.members = etcd.cluster(place, 1) if found("etcd") and found("etcdctl") else []
        self.nodes = []
        for name in ("one", "two"):
            (place / name).mkdir()
            node = Larder(stage.larder.program, place / name, stage.upstream.port, [*stage.tokens, f"fleet.keyFile={key}",
                          "fleet.timeout=5s", "fleet.maxLag=5s", "policy.capacity=64MiB"], token=ADMIN)  # fmt: skip
            self.nodes.append(node)
        for node, name, other in zip(self.nodes, ("one", "two"), reversed(self.nodes)):
            if self.members:
                node.settings += [
                    f"fleet.etcd.endpoints={self.members[0].url}", f"fleet.node={name}", f"fleet.advertise={node.url}",
                ]  # fmt: skip
            else:
                node.settings.append(f"fleet.peers={other.url}")
            node.launch()
        for node in self.nodes:
            wait_until(lambda: node.is_ready() and node.get("/v1/fleet")["peers"])
        self.base = self.nodes[0].url

    def stop(self):
        for each in [*self.nodes, *self.members]:
            if each.is_running:
                each.kill()


def button(place, name):
    return place.get_by_role("button", name=name, exact=True)


def panel(page, title):
    heading = page.get_by_role("heading", name=title, exact=True, level=2)
    return page.locator("section.panel").filter(has=heading)


def row(place, text):
    return place.locator("tbody tr").filter(has_text=text)


#: The frames of the hostile page: its own copies in the cache, and the dashboard.
FRAMES = {"html": "/o/media/attack.html", "svg": "/o/media/attack.svg", "dashboard": "/ui/"}


class Visit:
    """One browser context with one page. Leaving it checks the console, the requests and the policy of the page."""

    def __init__(self, stage, browser, token=None, files=None, **options):
        self.stage, self.token = stage, token
        self.expected, self.messages, self.requests, self.calls = [], [], [], []
        self.context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        self.context.set_default_timeout(LIMIT)
        if files:
            self.context.route("**/ui/*", lambda route: serve(route, files))
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(f"exception: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("response", lambda answer: self.calls.append((answer.request.method, answer.url, answer.status)))
        self.page.add_init_script(
            "window.violations = [];"
            "addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective));"
        )

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.check()
        finally:
            self.context.close()

    def open(self, route=""):
        self.page.goto(f"{self.stage.base}/ui/#/{route}")
        if self.token:
            self.sign_in(self.token)
        return self.page

    def sign_in(self, token):
        """Enters a valid token. The browser has reported the 401 of the first request in the console."""
        self.enter(token)
        expect(self.page.get_by_role("navigation")).to_contain_text("Assets")
        self.messages = [text for text in self.messages if "401 (Unauthorized)" not in text]

    def enter(self, token):
        self.page.get_by_label("Access token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()

    def go(self, route, heading=None):
        """Opens a page by its fragment."""
        self.page.evaluate("(hash) => { location.hash = hash; }", f"#/{route}")
        if heading:
            expect(self.page.get_by_role("heading", level=1)).to_have_text(heading)
        return self.page

    def expect_message(self, text):
        """Accepts console messages with this text, for example of a response 401."""
        self.expected.append(text)

    def check(self):
        unexpected = [m for m in self.messages if not any(text in m for text in self.expected)]
        assert not unexpected, f"the console shows {unexpected}"
        foreign = [url for url in self.requests if not url.startswith((self.stage.base + "/", "data:"))]
        assert not foreign, f"requests to other hosts: {foreign}"
        violations = self.page.evaluate("window.violations")
        assert not violations, f"violations of the content security policy: {violations}"
        assert self.page.evaluate("window.hacked") is None, "a text was parsed as HTML"
        assert self.context.cookies() == [], "there are cookies"
        assert self.page.evaluate("localStorage.length") == 0, "there is local storage"


def serve(route, files):
    """Answers a request for a file of the dashboard from a directory."""
    name = urllib.parse.urlsplit(route.request.url).path.rpartition("/")[2] or "index.html"
    kind = {"html": "text/html", "css": "text/css", "js": "text/javascript"}[name.rpartition(".")[2]]
    headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Security-Policy": POLICY}
    route.fulfill(body=(pathlib.Path(files) / name).read_bytes(), headers=headers)
