"""Larder, and the programs beside which it is measured, in the near namespace of a bench."""

import json
import pathlib
import subprocess

import bench
from harness import process

CONNECT, FIRST_BYTE, READ = 1, 3, 20


class Near:
    """A process in the near namespace."""

    def is_ready(self):
        return bench.read(self.network, self.port, "/none", timeout=READ).status > 0

    def read(self, path, **options):
        return bench.read(self.network, self.port, path, **options)


class Larder(Near, process.Larder):
    """A Larder process with short timeouts. `origins` maps names to base URLs."""

    def __init__(self, network, program, directory, origins, settings=()):
        values = [
            f"upstream.timeouts.connect={CONNECT}s", f"upstream.timeouts.firstByte={FIRST_BYTE}s",
            f"upstream.timeouts.read={READ}s", "upstream.allowPrivateAddresses=true",
        ]  # fmt: skip
        for name, url in origins.items():
            values += process.origin(name, url)
        super().__init__(
            program, directory, settings=[*values, *settings], address="127.0.0.1:8080", prefix=network.command(), level="info"
        )
        self.network, self.port = network, 8080

    def is_ready(self):
        return self.read("/health/ready", timeout=READ).status == 200

    def addresses(self, origin):
        """The member `addresses` of the origin."""
        return json.loads(self.read(f"/v1/origins/{origin}").body)["addresses"]


class Nginx(Near, process.Nginx):
    """nginx that resolves the name for each request and tries its addresses one after the other."""

    title = "nginx"

    def __init__(self, network, directory, host):
        self.network = network
        super().__init__(pathlib.Path(directory), f"""
            access_log off; resolver 127.0.0.1 valid=1s; proxy_connect_timeout {CONNECT}s;
            proxy_read_timeout {FIRST_BYTE}s; proxy_http_version 1.1;
            server {{
                listen 127.0.0.1:{{port}};
                location / {{ set $name http://{host}; proxy_pass $name$uri; proxy_set_header Host {host}; }}
            }}
        """, port=8081, prefix=network.command(), is_started=False)


class HAProxy(Near, process.Process):
    """HAProxy with one server for each address, health checks and a redispatch after a failed connection."""

    title, port = "haproxy", 8082

    def __init__(self, network, directory, host):
        self.network, file = network, pathlib.Path(directory) / "haproxy.cfg"
        super().__init__(network.command("haproxy", "-db", "-f", file), file.with_suffix(".log"), self.port, name="HAProxy")
        file.write_text(f"""
global
    maxconn 64
defaults
    mode http
    timeout connect {CONNECT}s
    timeout client 60s
    timeout server {FIRST_BYTE}s
    option redispatch 1
    retries 3
    retry-on all-retryable-errors
resolvers local
    nameserver one 127.0.0.1:53
    hold valid 1s
frontend near
    bind 127.0.0.1:{self.port}
    default_backend far
backend far
    server-template far 4 {host}:80 check resolvers local init-addr libc,none
""")


def installed():
    """The servers beside which Larder is measured."""
    return [kind for kind, name in ((Nginx, "nginx"), (HAProxy, "haproxy")) if process.found(name)]


def curl(network, host, path):
    """Status and seconds until the first byte of a read with curl."""
    command = network.command(
        "curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{time_starttransfer} %{time_total}",
        "--connect-timeout", CONNECT, "--max-time", READ, f"http://{host}{path}")  # fmt: skip
    status, first, total = subprocess.run(command, capture_output=True, text=True).stdout.split()
    first = float(first) or float(total)
    return bench.Answer(int(status), b"", first, float(total))
