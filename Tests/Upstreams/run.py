#!/usr/bin/env python3
"""Runs Larder in front of real HTTP servers and compares every byte.

    run.py --larder .build/release/larder
    run.py --larder .build/debug/larder --only python --brief

Each server is a separate process on a free loopback port, with a configuration in a temporary directory. A server that
is not installed is skipped. The checks follow the usual request orders of clients: a probe, two bytes and then all
(Safari), ranges, whole reads, a job twice, and a file that changes.
"""

import datetime
import http.client
import os
import pathlib
import subprocess
import sys
import time
from email.utils import formatdate
from urllib.parse import quote, unquote

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import vendors  # noqa: E402
from harness import certificates, checks, process  # noqa: E402
from harness import http as requests  # noqa: E402
from harness.upstream import content  # noqa: E402

SIZE = 3_000_000
OLD = time.time() - 2 * 86_400


class Failure(Exception):
    pass


# Servers


class Server:
    """A real server; `files`: whether it serves the files of the site; `routes`: its dynamic routes."""

    def __init__(self, name, program, arguments, config=None, routes=(), files=True, behind=None, lists=()):
        self.name, self.arguments, self.config = name, arguments, config
        self.program = process.found(program) or program
        self.routes, self.files, self.behind = routes, files, behind
        self.port, self.tls = process.free_port(), None
        #: The listings of a folder that the server makes: arguments of `Bench.lists`.
        self.lists = lists

    @property
    def is_installed(self):
        return pathlib.Path(self.program).exists()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self, directory, site):
        place = directory / self.name.replace(" ", "-")
        place.mkdir()
        values = {
            "port": self.port, "site": site, "dir": place, "here": HERE,
            "behind": self.behind.port if self.behind else 0, "user": "user root;" if os.getuid() == 0 else "",
        }  # fmt: skip
        if self.config:
            (place / "config").write_text(self.config % values)
        command = [self.program] + [argument % values for argument in self.arguments]
        environment = {**os.environ, "SITE": str(site), "PORT": str(self.port)}
        process.Process(command, place / "log", self.port, environment, site, self.name).start(20)


class Vendors(vendors.Upstream):
    """The server of `vendors.py`, with or without TLS."""

    is_installed, behind, files, lists, routes = True, None, False, (), vendors.KINDS

    def __init__(self, name, tls=None):
        super().__init__(tls=tls)
        self.name = name

    def start(self, directory, site):
        """It listens already."""


NGINX = """
%(user)s
worker_processes 1; daemon off; pid %(dir)s/pid; error_log %(dir)s/error.log;
events { worker_connections 256; }
http {
  access_log off; types { video/mp4 mp4; text/vtt vtt; }
  client_body_temp_path %(dir)s/a; proxy_temp_path %(dir)s/b; fastcgi_temp_path %(dir)s/c; uwsgi_temp_path %(dir)s/d;
  scgi_temp_path %(dir)s/e;
  server {
    listen 127.0.0.1:%(port)s; root %(site)s; autoindex on;
    location /json/ { alias %(site)s/; autoindex on; autoindex_format json; }
  }
}
"""
APACHE = """
ServerRoot /usr/lib/apache2
ServerName localhost
PidFile %(dir)s/pid
Mutex file:%(dir)s
ErrorLog %(dir)s/error.log
Listen 127.0.0.1:%(port)s
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule mime_module modules/mod_mime.so
LoadModule autoindex_module modules/mod_autoindex.so
LoadModule dav_module modules/mod_dav.so
LoadModule dav_fs_module modules/mod_dav_fs.so
IndexOptions FancyIndexing NameWidth=*
DAVLockDB %(dir)s/locks
TypesConfig /dev/null
AddType video/mp4 .mp4
DocumentRoot %(site)s
<Directory />
  Options Indexes
  Dav On
  Require all granted
</Directory>
"""
LIGHTTPD = """
server.document-root = "%(site)s"
server.bind = "127.0.0.1"
server.port = %(port)s
server.pid-file = "%(dir)s/pid"
server.modules = ( "mod_dirlisting" )
dir-listing.activate = "enable"
mimetype.assign = ( ".mp4" => "video/mp4", ".vtt" => "text/vtt" )
"""
CADDY = """
{
  admin off
  auto_https off
  storage file_system %(dir)s
}
http://127.0.0.1:%(port)s {
  bind 127.0.0.1
  root * %(site)s
  file_server browse
}
"""
VARNISH = """
vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "%(behind)s"; }
sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 0s; }
"""
PLAIN = ("plain.mp4",)
NODE = ("plain.mp4", "weak.mp4", "chunked.mp4")


def servers(python):
    nginx = Server("nginx", "nginx", ["-p", "%(dir)s", "-c", "%(dir)s/config", "-e", "%(dir)s/error.log"], NGINX, lists=({}, {"prefix": "json/", "format": "json"}))
    return [
        nginx,
        Server("apache", "apache2", ["-X", "-f", "%(dir)s/config"], APACHE, lists=({"states_sizes": False}, {"format": "webdav"})),
        Server("lighttpd", "lighttpd", ["-D", "-f", "%(dir)s/config"], LIGHTTPD, lists=({"states_sizes": False},)),
        Server("caddy", "caddy", ["run", "--adapter", "caddyfile", "--config", "%(dir)s/config"], CADDY, lists=({}, {"format": "json"})),
        Server(
            "varnish", "varnishd",
            ["-F", "-j", "none", "-a", "127.0.0.1:%(port)s", "-f", "%(dir)s/config", "-n", "%(dir)s/work", "-s", "malloc,64m"],
            VARNISH, behind=nginx,
        ),
        Server("php", "php", ["-S", "127.0.0.1:%(port)s", "-t", "%(site)s", "%(here)s/router.php"], routes=PLAIN),
        Server("python", sys.executable, ["-m", "http.server", "--bind", "127.0.0.1", "%(port)s"], lists=({"states_sizes": False},)),
        Server("flask", str(pathlib.Path(python).absolute()) if python else "no Python with Flask", ["%(here)s/flask_server.py"], routes=PLAIN),
        Server("node", "node", ["%(here)s/server.js"], routes=NODE, files=False),
        Vendors("vendors"),
        Vendors("vendors-tls", certificates.server() if certificates.available() else None),
    ]  # fmt: skip


# Checks


class Bench:
    """One server behind one origin."""

    def __init__(self, larder, server, site, part):
        self.larder, self.server, self.site, self.part = larder, server, site, part
        self.api("PUT", f"/v1/origins/{server.name}", {
            "baseURL": server.url, "allowPrivateAddresses": True,
            "tls": {"caFile": str(certificates.authority().file)} if server.tls else {},
        })  # fmt: skip

    def api(self, method, target, body=None, headers=None):
        reply = self.larder.call(method, target, body, headers)
        if reply.status >= 300:
            raise Failure(f"{method} {target}: {reply}")
        return reply.json

    def check(self, what, function, *arguments):
        fault = None
        try:
            function(*arguments)
        except Failure as error:
            fault = f"{what}: {error}"
        except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
            fault = f"{what}: {error!r}"
        self.part.check(fault is None, fault)

    def read(self, path, data, range=None):
        """Reads a range, or the whole; a 200 with the whole file may answer a range while the length is unknown."""
        response = self.larder.send("GET", f"/o/{self.server.name}/{path}", {"Range": range} if range else {})
        body = response.body
        if range and not data and not range.startswith("bytes=-"):
            if response.status != 416:
                raise Failure(f"status {response.status}, expected 416")
            return
        if response.status not in (200, 206):
            raise Failure(f"status {response.status}: {body[:200]}")
        wanted = data
        if response.status == 200 and range and data and not self.may_lack_length(path):
            raise Failure(f"200 for {range} although the upstream states the length")
        if response.status == 206:
            if not range:
                raise Failure("a 206 for a request without Range")
            first, last = range.removeprefix("bytes=").split("-")
            wanted = data[-int(last):] if not first else data[int(first):int(last) + 1 if last else None]
            self.check_content_range(response.fields.get("content-range"), wanted, data)
        if body != wanted[:len(body)]:
            raise Failure(f"WRONG BYTES in a {response.status} with {len(body)} bytes")
        if not response.is_complete or len(body) != len(wanted):
            raise Failure(f"{response.status} with {len(body)} of {len(wanted)} bytes, complete: {response.is_complete}")
        if response.status == 200 and not range and response.fields.get("content-range"):
            raise Failure("a Content-Range in a 200")

    def may_lack_length(self, path):
        """Whether the upstream sends this file without a length."""
        return (self.server.name, path.split("-")[-1]) in (
            ("php", "plain.mp4"), ("node", "chunked.mp4"), ("vendors", "ending.mp4"), ("vendors-tls", "ending.mp4"))

    @staticmethod
    def check_content_range(field, wanted, data):
        first = data.index(wanted)
        span = f"bytes {first}-{first + len(wanted) - 1}/"
        if field not in (f"{span}{len(data)}", f"{span}*"):
            raise Failure(f"Content-Range {field}, expected {span}{len(data)}")

    def probe(self, path, data):
        found = self.api("GET", f"/v1/probe?origin={self.server.name}&path={quote(path)}")
        if found["contentLength"] not in (None, len(data)):
            raise Failure(f"contentLength {found['contentLength']}, expected {len(data)}")

    def job(self, path, data):
        order = {"items": [{"origin": self.server.name, "path": path}]}
        job = self.api("POST", "/v1/jobs", order, {"Prefer": "wait=30"})
        if job["state"] != "succeeded" or job["bytesDone"] != len(data):
            raise Failure(f"{job['state']}, {job['bytesDone']} of {len(data)} bytes: {job['error']}")

    def lists(self, files, format=None, prefix="", states_sizes=True):
        """The listing of a folder with spaces, `&`, `%` and `#` in names, page by page."""
        order = {"origin": self.server.name, "path": f"{prefix}films/", "limit": 2, **({"format": format} if format else {})}
        found, pages = {}, 0
        while True:
            page = self.api("POST", "/v1/list", order)
            found.update({item["path"]: item for item in page["items"]})
            pages += 1
            if not page["nextCursor"] or pages > 9:
                break
            order["cursor"] = page["nextCursor"]
        wanted = {f"{prefix}films/{quote(name)}": size for name, size in files.items()} | {f"{prefix}films/more/": None}
        if {unquote(path) for path in found} != {unquote(path) for path in wanted} or page["skippedEntries"]:
            raise Failure(f"{sorted(found)}, expected {sorted(wanted)}; {page['skippedEntries']} skipped")
        for path, item in found.items():
            size = next(size for each, size in wanted.items() if unquote(each) == unquote(path))
            if item["isFolder"] != (size is None) or item["bytes"] not in ((size,) if states_sizes else (size, None)):
                raise Failure(f"{item}, expected {size} bytes")
            # Python states no time, and lighttpd a format of its own.
            if item["modifiedAt"] and abs(parsed(item["modifiedAt"]) - OLD) > 60:
                raise Failure(f"{item['modifiedAt']} of {path}")
        # A path of the listing names the file.
        path = next(path for path, item in found.items() if not item["isFolder"])
        self.read(path, (self.site / unquote(path).removeprefix(prefix)).read_bytes())

    def list_job(self, files, format=None, prefix="", states_sizes=True):
        """A job with a list fetches the selected files of a folder and of the folders below."""
        select = {"include": ["**/*.mp4"], "recursive": True, **({"minBytes": 10} if states_sizes else {})}
        select |= {"format": format} if format else {}
        item = {"origin": self.server.name, "path": f"{prefix}films/", "list": select}
        job = self.api("POST", "/v1/jobs", {"items": [item]}, {"Prefer": "wait=30"})
        items = self.api("GET", f"/v1/jobs/{job['jobId']}/items?limit=100")["items"]
        wanted = {name for name, size in files.items() if size >= 10 or not states_sizes} | {"more/deep.mp4"}
        found = {unquote(each["path"]).removeprefix(f"{prefix}films/") for each in items[1:]}
        if job["state"] != "succeeded" or found != wanted or any(each["parent"] != 0 for each in items[1:]):
            raise Failure(f"{job['state']}, {sorted(found)}, expected {sorted(wanted)}: {job['error']}")
        if job["bytesDone"] != sum(each["bytesTotal"] for each in items[1:]) or not job["bytesDone"]:
            raise Failure(f"{job['bytesDone']} bytes of {items}")

    def orders(self, path, data):
        """Several orders of requests, each for a new path."""
        kinds = {
            "probe, then all": [self.probe, "bytes=0-1", "bytes=0-", None, None],
            "two bytes, then all": ["bytes=0-1", "bytes=0-", None],
            "a middle range, then the whole": [f"bytes={len(data) // 3}-{len(data) // 2}", None, "bytes=-500"],
            "a job twice": [self.job, self.job, None, "bytes=-500"],
            "a whole read, then a job": [None, self.job, None],
        }
        for number, (kind, steps) in enumerate(kinds.items()):
            place = f"{number}-{path}"
            for index, step in enumerate(steps):
                what = f"{path}, {kind}, step {index + 1}"
                if callable(step):
                    self.check(what, step, place, data)
                else:
                    self.check(what, self.read, place, data, step)

    def change(self, path):
        """The file changes, first with the same length."""
        for number, size in enumerate((SIZE, SIZE, SIZE + 1000, SIZE - 7000)):
            data = content(f"{path} {number}", size)
            write(self.site / path, data, time.time() - 86_400 + number * 600)
            self.api("POST", "/v1/purges", {"origin": self.server.name, "soft": True})
            self.await_upstream(path, data)
            self.check(f"{path}, change {number}", self.read, path, data)
            self.check(f"{path}, change {number}, job", self.job, path, data)

    def await_upstream(self, path, data):
        """Waits for the changed file: some servers keep the old file, or its date, for a second or two."""
        modified = formatdate((self.site / path).stat().st_mtime, usegmt=True)

        def is_changed():
            try:
                found = requests.send(self.server.port, "GET", f"/{path}")
            except (OSError, http.client.HTTPException):  # lighttpd truncates a file that shrank, for about 2 s
                return False
            return found.body == data and found.fields.get("last-modified") in (None, modified)

        if not process.wait_until(is_changed, 10):
            raise Failure(f"{self.server.name} does not serve the changed {path}")


def write(path, data, modified=None):
    path.write_bytes(data)
    if modified is not None:
        os.utime(path, (modified, modified))


def parsed(time):
    return datetime.datetime.fromisoformat(time).timestamp()


def make_folder(site):
    """A folder with names that need encoding. Returns their sizes."""
    files = {"one.mp4": 1234, "a & b.mp4": 70_000, "100% #1?.mp4": 0, "ä.mp4": 9}
    (site / "films" / "more").mkdir(parents=True, exist_ok=True)
    for name, size in files.items():
        write(site / "films" / name, content(name, size), OLD)
    write(site / "films" / "more" / "deep.mp4", content("deep", 4321), OLD)
    os.utime(site / "films" / "more", (OLD, OLD))
    return files


def make_site(site, names):
    sizes = {"old.mp4": SIZE, "fresh.mp4": SIZE, "small.vtt": 5000, "empty.bin": 0}
    for name in names:
        for number in range(5):
            data = content(name, sizes[name])
            write(site / f"{number}-{name}", data, None if name == "fresh.mp4" else OLD)
    return {name: content(name, sizes[name]) for name in names}


def run(server, larder, directory, is_brief, part):
    site = directory / f"site-{(server.behind or server).name}"
    site.mkdir(exist_ok=True)
    names = ["old.mp4", "small.vtt"] if is_brief else ["old.mp4", "fresh.mp4", "small.vtt", "empty.bin"]
    files = make_site(site, names)
    routes = {f"{number}-{route}": content(route, SIZE) for route in server.routes for number in range(5)}
    for route in server.routes:
        (site / f"{route}.data").write_bytes(content(route, SIZE))
    server.start(directory, site)
    bench = Bench(larder, server, site, part)
    if server.files:
        for name, data in files.items():
            bench.orders(name, data)
        if not is_brief:
            bench.check("changing.mp4, preparation", bench.change, "changing.mp4")
    if server.lists:
        folder = make_folder(site)
        for options in server.lists:
            bench.check(f"listing {options}", lambda: bench.lists(folder, **options))
            bench.check(f"a job with a list {options}", lambda: bench.list_job(folder, **options))
    for route in server.routes:
        bench.orders(route, content(route, SIZE))
    assert routes or server.files


def main():
    parser = checks.arguments(__doc__)
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    flask = checks.ROOT / ".build" / "flask" / "bin" / "python"
    if not options.brief:
        install(flask)
    directory, results = checks.directory("upstreams"), checks.Checks("upstreams")
    known = {server.name: server for server in servers(flask if flask.exists() else None)}
    names = checks.chosen(known, options.only)
    # A server behind another one needs it.
    names = [name for name in known if name in names or any(known[each].behind is known[name] for each in names)]
    settings = ["upstream.maxTransfers=1024"]
    larder, running = process.Larder(program, directory, settings=settings, level="debug").start(), set()
    for name in names:
        server = known[name]
        if not server.is_installed or (server.behind and server.behind.name not in running):
            results.skip(name, "not installed")
            continue
        with results.part(name) as part:
            run(server, larder, directory, options.brief, part)
        running.add(name)
    results.equal(larder.stop(), 0, "the exit code of Larder")
    sys.exit(results.finish())


def install(flask):
    """Installs all servers; one that cannot be installed is skipped later."""
    names = ("nginx-light", "apache2", "lighttpd", "caddy", "varnish", "php-cli", "nodejs", "python3-venv")
    subprocess.run([checks.ROOT / "scripts" / "apt", *names], check=False)
    if not flask.exists():
        subprocess.run([sys.executable, "-m", "venv", flask.parents[1]], check=False)
        subprocess.run([flask.with_name("pip"), "install", "--quiet", "flask==3.1.0"], check=False)


if __name__ == "__main__":
    main()
