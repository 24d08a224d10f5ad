"""The caches under test: Larder, and nginx and Varnish from Debian. Each starts on a free port with a temporary
directory; `mount` returns the path of a check's own upstream behind it."""

import json
import pathlib
import re
import shutil
import ssl
import subprocess
import tempfile

from harness import certificates, process
from harness.process import free_port

from .client import Connection, Failure

#: The timeouts of every test origin; the peers have similar ones.
ORIGIN = {
    "allowPrivateAddresses": True,
    "freshness": "respect",
    "retries": 1,
    "timeouts": {
        "connectSeconds": 2, "firstByteSeconds": 1, "idleSeconds": 1, "totalSeconds": 8, "readSeconds": 6,
    },
}  # fmt: skip


class Peer:
    """A cache in its own process."""

    name = "peer"
    is_larder = False
    #: The client's `SSLContext`; None without TLS.
    tls = None

    def __init__(self, jobs):
        self.jobs = jobs
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"conformance-{self.name}."))
        self.process = None

    @property
    def address(self):
        return ("127.0.0.1", self.process.port)

    @property
    def log(self):
        return self.process.log

    def start(self):
        self.process = self.made()
        self.process.start()

    def made(self):
        """The process, not started yet."""
        raise NotImplementedError

    def stop(self):
        """Terminates the process; returns its faults."""
        if not self.process.is_running:
            return [f"{self.name} ended by itself with {self.process.process.returncode}"]
        code = self.process.stop()
        return [f"{self.name} answered SIGTERM with exit code {code}"] if code != 0 else []

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def upstream_place(self, slot, label):
        """The port (0: any) and the path prefix for the upstream of a check."""
        return 0, ""

    def mount(self, label, upstream, settings):
        """The start of the check's own path at the cache."""
        raise NotImplementedError

    def unmount(self, label):
        pass


class Larder(Peer):
    name = "larder"
    is_larder = True

    def __init__(self, jobs, program, settings=(), is_tls=False):
        super().__init__(jobs)
        self.program = str(pathlib.Path(program).resolve())
        self.settings = ["upstream.maxTransfers=1024", *settings]
        if is_tls:
            authority = certificates.authority()
            certificate, key = authority.issue("larder")
            self.settings += [f"listen.tls.certificateFile={certificate}", f"listen.tls.keyFile={key}"]
            self.tls = ssl.create_default_context(cafile=authority.file)
        self.credentials = self.directory / "credentials"
        self.fallbacks = self.directory / "fallbacks"
        self.credentials.mkdir(mode=0o700)
        self.fallbacks.mkdir()
        self.has_credentials = self.knows(f"credentialsDirectory={self.credentials}")
        self.has_fallbacks = self.knows(f"fallbackDirectory={self.fallbacks}")

    def knows(self, setting):
        """Whether the program has this setting; it is used then."""
        command = [self.program, "config", "--set", setting]
        environment = process.clean_environment()
        is_known = subprocess.run(command, capture_output=True, env=environment, cwd=self.directory).returncode == 0
        self.settings += [setting] if is_known else []
        return is_known

    def made(self):
        return process.Larder(self.program, self.directory, settings=self.settings, level="debug", tls=self.tls)

    def api(self, method, path, body=None, headers=()):
        """Calls Larder's own API; `body` is bytes."""
        fields = list(headers)
        if body is not None:
            fields += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        with Connection(self.address, tls=self.tls) as connection:
            lines = "".join(f"{name}: {value}\r\n" for name, value in [("Host", connection.host), *fields])
            connection.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + (body or b""))
            return connection.response(method, asked=f"{method} {path}")

    def upstream_place(self, slot, label):
        return 0, "/base"

    def mount(self, label, upstream, settings):
        merged = dict(ORIGIN, baseURL=upstream.url + upstream.prefix, maxTransfers=64)
        for key, value in settings.items():
            nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = dict(merged[key], **value) if nested else value
        if isinstance(merged["baseURL"], str):
            merged["baseURL"] = merged["baseURL"].replace("{port}", str(upstream.port))
        response = self.api("PUT", f"/v1/origins/{label}", json.dumps(merged).encode())
        if response.status not in (200, 201):
            raise Failure(f"the origin was rejected: {response.status} {response.body.decode(errors='replace')[:2000]}")
        return f"/o/{label}"

    def unmount(self, label):
        self.api("DELETE", f"/v1/origins/{label}")


class Nginx(Peer):
    """`slice` and `proxy_cache`, with the upstream's own lifetimes."""

    name = "nginx"

    def made(self):
        return process.Nginx(self.directory, """
            access_log off;
            proxy_cache_path DIRECTORY/cache keys_zone=cache:16m;
            server {
                listen 127.0.0.1:{port};
                location ~ "^/u(?<upstream_port>[0-9]+)/" {
                    proxy_pass http://127.0.0.1:$upstream_port$request_uri;
                    proxy_http_version 1.1; proxy_set_header Connection "";
                    if_modified_since before;
                    slice 1m; proxy_set_header Range $slice_range;
                    proxy_cache cache; proxy_cache_key $uri$is_args$args$slice_range;
                    proxy_cache_revalidate on; proxy_cache_lock on; proxy_cache_use_stale off;
                    proxy_connect_timeout 2s; proxy_read_timeout 1s; proxy_next_upstream off;
                }
            }
        """.replace("DIRECTORY", str(self.directory)), is_started=False)

    def upstream_place(self, slot, label):
        port = free_port()
        return port, f"/u{port}/{label}"

    def mount(self, label, upstream, settings):
        return upstream.prefix


class Varnish(Peer):
    """The built-in VCL; one backend for each concurrent check."""

    name = "varnish"

    def __init__(self, jobs):
        super().__init__(jobs)
        self.backends = [free_port() for _ in range(jobs)]

    def made(self):
        vcl, port = self.directory / "default.vcl", free_port()
        vcl.write_text(self.configuration())
        waits = ["connect_timeout=2", "first_byte_timeout=1", "between_bytes_timeout=1", "default_grace=0"]
        flags = [part for wait in waits for part in ("-p", wait)]
        command = [
            process.found("varnishd") or "varnishd", "-F", "-j", "none", "-n", self.directory / "work", "-f", vcl, "-a",
            f"127.0.0.1:{port}", "-s", "malloc,512m", *flags,
        ]  # fmt: skip
        return process.Process(command, self.directory / "log", port, name="Varnish")

    def configuration(self):
        backends = "".join(
            f'backend s{slot} {{ .host = "127.0.0.1"; .port = "{port}"; }}\n'
            for slot, port in enumerate(self.backends)
        )
        choice = "".join(
            f'if (req.url ~ "^/s{slot}/") {{ set req.backend_hint = s{slot}; }}\n' for slot in range(len(self.backends))
        )
        return f"vcl 4.1;\n{backends}sub vcl_recv {{\n{choice}}}\n"

    def upstream_place(self, slot, label):
        return self.backends[slot], f"/s{slot}/{label}"

    def mount(self, label, upstream, settings):
        return upstream.prefix


def secrets_in_log(path, secrets):
    """The secrets that appear in a log."""
    text = path.read_text(errors="replace")
    return [secret for secret in secrets if secret and re.search(re.escape(secret), text)]
