"""Larder, and the programs beside which it is measured, in the near namespace of a bench."""

import json
import pathlib
import shutil
import subprocess
import time

import bench

CONNECT, FIRST_BYTE, READ = 1, 3, 20


class Larder:
    """A Larder process with short timeouts. `origins` maps names to base URLs."""

    port = 8080

    def __init__(self, network, program, directory, origins, settings=()):
        self.network, self.log = network, pathlib.Path(directory) / "larder.log"
        values = [
            f"upstream.timeouts.connect={CONNECT}s", f"upstream.timeouts.firstByte={FIRST_BYTE}s",
            f"upstream.timeouts.read={READ}s", "upstream.allowPrivateAddresses=true",
        ]  # fmt: skip
        for name, url in origins.items():
            values += [f"origins.{name}.baseURL={url}", f"origins.{name}.allowPrivateAddresses=true"]
        flags = [part for value in [*values, *settings] for part in ("--set", value)]
        self.command = network.command(
            program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data-directory", pathlib.Path(directory) / "store",
            "--log-level", "info", *flags)  # fmt: skip

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        wait_until_ready(self)
        return self

    def __exit__(self, *_):
        end(self.process)

    def read(self, path, **options):
        return bench.read(self.network, self.port, path, **options)

    def addresses(self, origin):
        """The member `addresses` of the origin."""
        return json.loads(self.read(f"/v1/origins/{origin}").body)["addresses"]


class Nginx:
    """nginx that resolves the name for each request and tries its addresses one after the other."""

    name, port = "nginx", 8081

    def __init__(self, network, directory, host):
        self.network, self.directory = network, pathlib.Path(directory)
        places = " ".join(
            f"{kind}_temp_path {directory};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.directory / "nginx.conf").write_text(f"""
            user root; daemon off; worker_processes 1; pid {directory}/nginx.pid; error_log {directory}/nginx.log;
            events {{ worker_connections 64; }}
            http {{
                {places} access_log off; resolver 127.0.0.1 valid=1s; proxy_connect_timeout {CONNECT}s;
                proxy_read_timeout {FIRST_BYTE}s; proxy_http_version 1.1;
                server {{
                    listen 127.0.0.1:{self.port};
                    location / {{ set $name http://{host}; proxy_pass $name$uri; proxy_set_header Host {host}; }}
                }}
            }}
        """)

    def __enter__(self):
        command = self.network.command(
            shutil.which("nginx") or "/usr/sbin/nginx", "-p", self.directory, "-c", self.directory / "nginx.conf",
            "-e", self.directory / "nginx.log")  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until_ready(self)
        return self

    def __exit__(self, *_):
        end(self.process)

    def read(self, path):
        return bench.read(self.network, self.port, path)


class HAProxy(Nginx):
    """HAProxy with one server for each address, health checks and a redispatch after a failed connection."""

    name, port = "haproxy", 8082

    def __init__(self, network, directory, host):
        self.network, self.directory = network, pathlib.Path(directory)
        (self.directory / "haproxy.cfg").write_text(f"""
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

    def __enter__(self):
        command = self.network.command("haproxy", "-db", "-f", self.directory / "haproxy.cfg")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until_ready(self)
        return self


def installed():
    """The servers beside which Larder is measured."""
    found = [Nginx] if shutil.which("nginx") or pathlib.Path("/usr/sbin/nginx").exists() else []
    return found + ([HAProxy] if shutil.which("haproxy") else [])


def curl(network, host, path):
    """Status and seconds until the first byte of a read with curl."""
    command = network.command(
        "curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{time_starttransfer} %{time_total}",
        "--connect-timeout", CONNECT, "--max-time", READ, f"http://{host}{path}")  # fmt: skip
    status, first, total = subprocess.run(command, capture_output=True, text=True).stdout.split()
    first = float(first) or float(total)
    return bench.Answer(int(status), b"", first, float(total))


def wait_until_ready(server):
    for _ in range(600):
        if server.process.poll() is not None:
            raise SystemExit(f"{server.process.args[4]} exited with {server.process.returncode}")
        path = "/health/ready" if isinstance(server, Larder) else "/none"
        answer = bench.read(server.network, server.port, path, timeout=READ)
        if answer.status == 200 or answer.status and not isinstance(server, Larder):
            return
        time.sleep(0.05)
    raise SystemExit(f"{server.process.args[4]} is not ready")


def end(process):
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
