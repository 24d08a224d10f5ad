"""Two network namespaces with a veth pair, a DNS server, and upstreams on addresses of the second namespace.

Larder runs in the first namespace. Each address is one of: a server, a closed port, or silent (no host answers, the
neighbour entry is static, so that the kernel reports no error).
"""

import collections
import concurrent.futures
import ctypes
import http.client
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading
import time

from harness import upstream

SIZE = 64 << 10
PORT = 80
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def body(path):
    """The bytes of an asset; every upstream has the same."""
    return (path.encode() * (SIZE // len(path) + 1))[:SIZE]


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def is_possible():
    """Whether this machine has network namespaces."""
    name = f"larder-try{os.getpid()}"

    def run_ip(*words):
        return subprocess.run(["ip", "netns", *words], capture_output=True).returncode == 0

    is_made = run_ip("add", name) and run_ip("exec", name, "true")
    run_ip("del", name)
    return is_made


class Network:
    """The namespaces `near` (Larder, DNS server) and `far` (upstreams). `close` removes them."""

    def __init__(self, prefix):
        self.near, self.far = f"{prefix}-near", f"{prefix}-far"
        self.link, self.far_link = f"lv{os.getpid()}n", f"lv{os.getpid()}f"
        self.configuration = pathlib.Path("/etc/netns", self.near)
        self.made_parent = not self.configuration.parent.exists()
        try:
            self.make()
        except BaseException:
            self.close()
            raise

    def make(self):
        for name in (self.near, self.far):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", self.link, "netns", self.near, "type", "veth",
            "peer", "name", self.far_link, "netns", self.far)  # fmt: skip
        run("ip", "-n", self.near, "addr", "add", "10.77.0.1/16", "dev", self.link)
        run("ip", "-n", self.near, "addr", "add", "fd77::1/64", "dev", self.link, "nodad")
        for name, link in ((self.near, self.link), (self.far, self.far_link)):
            run("ip", "-n", name, "link", "set", link, "up")
        # The removal of another address must not remove these routes.
        run("ip", "-n", self.far, "addr", "add", "10.77.255.1/16", "dev", self.far_link)
        run("ip", "-n", self.far, "addr", "add", "fd77::ffff/64", "dev", self.far_link, "nodad")
        self.hardware = self.address_of_far_link()
        self.configuration.mkdir(parents=True)
        (self.configuration / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")

    def address_of_far_link(self):
        text = subprocess.run(
            ["ip", "-n", self.far, "-br", "link", "show", self.far_link], check=True, capture_output=True, text=True)
        return text.stdout.split()[2]

    def reach(self, address):
        """Adds a static neighbour entry, so that an address without a host is silent."""
        run("ip", "-n", self.near, "neigh", "replace", address, "lladdr", self.hardware, "dev", self.link, "nud",
            "permanent")  # fmt: skip

    def attach(self, address):
        bits = "128" if ":" in address else "32"
        extra = ["nodad"] if ":" in address else []
        run("ip", "-n", self.far, "addr", "replace", f"{address}/{bits}", "dev", self.far_link, *extra)
        self.reach(address)

    def detach(self, address):
        """The address becomes silent, for new and for open connections."""
        bits = "128" if ":" in address else "32"
        run("ip", "-n", self.far, "addr", "del", f"{address}/{bits}", "dev", self.far_link)

    def mute(self, ports):
        """Drops the answers to these client ports: their connections are silently dead, new ones are not affected."""
        for port in ports:
            run("ip", "-n", self.far, "rule", "add", "ipproto", "tcp", "dport", str(port), "blackhole")

    def forbid(self, address, kind):
        """Makes connects to the address fail locally: `unreachable` or `prohibit` (EHOSTUNREACH, EACCES)."""
        run("ip", "-n", self.near, "route", "add", kind, f"{address}/32")

    def permit(self, address, kind):
        run("ip", "-n", self.near, "route", "del", kind, f"{address}/32")

    def inside(self, name, action):
        """Runs an action on a thread in a namespace and returns its result; sockets stay in that namespace."""

        def enter():
            with open(f"/run/netns/{name}") as file:
                if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            return action()

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(enter).result()

    def command(self, *command):
        """A command line that runs in the near namespace, with the DNS server of the bench."""
        return ["ip", "netns", "exec", self.near, *map(str, command)]

    def close(self):
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.configuration, ignore_errors=True)
        if self.made_parent:
            try:
                self.configuration.parent.rmdir()
            except OSError:
                pass


class DNS:
    """A DNS server over UDP on 127.0.0.1:53 of the near namespace.

    `records[name]` is a list of addresses, `cname:NAME`, `servfail`, `nxdomain` or `slow:SECONDS`. Records have a TTL of
    one second.
    """

    def __init__(self, network):
        self.records, self.asked = {}, collections.Counter()

        def make():
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.bind(("127.0.0.1", 53))
            return made

        self.socket = network.inside(network.near, make)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            threading.Thread(target=self.answer, args=(query, peer), daemon=True).start()

    def answer(self, query, peer):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += query[at] + 1
        name = ".".join(labels).lower()
        kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
        question = query[12 : at + 5]
        self.asked[name] += 1
        code, answers, owner = 0, [], name
        entries = self.records.get(name, ["nxdomain"])
        for _ in range(8):
            alias = next((entry[6:] for entry in entries if entry.startswith("cname:")), None)
            if alias is None:
                break
            answers.append(record(owner, 5, encoded(alias)))
            owner, entries = alias, self.records.get(alias, ["nxdomain"])
        for entry in entries:
            if entry == "nxdomain":
                code = 3
            elif entry == "servfail":
                code = 2
            elif entry.startswith("slow:"):
                time.sleep(float(entry[5:]))
            elif kind == (28 if ":" in entry else 1):
                family = socket.AF_INET6 if ":" in entry else socket.AF_INET
                answers.append(record(owner, kind, socket.inet_pton(family, entry)))
        head = query[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(answers), 0, 0)
        self.socket.sendto(head + question + b"".join(answers), peer)


def encoded(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def record(owner, kind, data):
    return encoded(owner) + struct.pack("!HHIH", kind, 1, 1, len(data)) + data


class Upstream(upstream.Upstream):
    """A server on one address: `good`, `reset` (closes each connection with a reset) or `mute` (reads, never answers).
    `keeps`: whether connections stay open after a response."""

    def __init__(self, network, address, kind="good", keeps=True):
        self.network, self.kind, self.keeps = network, kind, keeps
        network.attach(address)
        super().__init__(address, PORT)

    def listen(self):
        return self.network.inside(self.network.far, super().listen)

    @property
    def count(self):
        """The number of requests."""
        return len(self.requests)

    @property
    def ports(self):
        """The ports of the clients of all open connections."""
        with self.lock:
            return [connection.socket.getpeername()[1] for connection in self.open]

    def talk(self, peer, number):
        if self.kind != "reset":
            return super().talk(peer, number)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    def answer(self, request):
        if self.kind == "mute":
            return lambda request, connection: connection.stall()
        if request.path.startswith("/slow"):
            time.sleep(float(request.path.split("-")[1]))
        headers = {"Connection": "keep-alive" if self.keeps else "close"}
        file = upstream.asset(
            data=body(request.path), etag='"one"', last_modified=None, cache_control="max-age=86400", headers=headers
        )
        answer = file.answer(request)
        answer.close = not self.keeps
        return answer


class Answer:
    """Status, body and seconds until the first byte and until the end; status 0: no response."""

    def __init__(self, status, body=b"", first=0.0, total=0.0):
        self.status, self.body, self.first, self.total = status, body, first, total


def read(network, port, path, fields=None, timeout=60):
    """Reads a path from a port of the near namespace on a connection of its own."""
    started = time.monotonic()

    def connect():
        return socket.create_connection(("127.0.0.1", port), timeout=timeout)

    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        connection.sock = network.inside(network.near, connect)
        connection.request("GET", path, headers={"Connection": "close", **(fields or {})})
        response = connection.getresponse()
        content = response.read(1)
        first = time.monotonic() - started
        content += response.read()
        return Answer(response.status, content, first, time.monotonic() - started)
    except (OSError, http.client.HTTPException):
        return Answer(0, b"", time.monotonic() - started, time.monotonic() - started)
