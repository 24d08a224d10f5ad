"""etcd for test programs: members on free ports of loopback, and a line between a client and a member that can be cut."""

import base64
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading

from . import process


class Member(process.Process):
    """One member of a cluster. `peers` are the URLs of all members for each other, by name. `prefix` precedes its command."""

    def __init__(self, place, name, peers, options=(), host="127.0.0.1", port=None, prefix=()):
        port = port or process.free_port()
        self.place, self.options = pathlib.Path(place), options
        own, cluster = peers[name], ",".join(f"{each}={peer}" for each, peer in peers.items())
        url = f"http://{host}:{port}"
        super().__init__(
            [
                *prefix, process.found("etcd") or "etcd", "--name", name, "--data-dir", self.place / f"{name}.etcd",
                "--listen-client-urls", url, "--advertise-client-urls", url,
                "--listen-peer-urls", own, "--initial-advertise-peer-urls", own,
                "--initial-cluster", cluster, "--heartbeat-interval", "100", "--election-timeout", "1000", *options,
            ],
            self.place / f"{name}.log", port, name=f"etcd {name}",
            environment={**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"},
        )  # fmt: skip
        self.url, self.data = url, self.place / f"{name}.etcd"

    def is_ready(self):
        """Whether the member and a leader answer."""
        return self.control("endpoint", "health", is_checked=False).returncode == 0

    def control(self, *words, is_checked=True, user=None):
        """Runs etcdctl at this member."""
        command = [process.found("etcdctl") or "etcdctl", "--endpoints", self.url, *(["--user", user] if user else []), *words]
        done = subprocess.run(
            command, env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, text=True, timeout=process.LIMIT
        )
        if is_checked and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return done

    def entries(self, prefix, user=None):
        """The entries below a prefix: keys with their bytes."""
        found = json.loads(self.control("get", "--prefix", prefix, "-w", "json", user=user).stdout)
        return {
            base64.b64decode(each["key"]).decode(): base64.b64decode(each.get("value", "")) for each in found.get("kvs", [])
        }

    def forget(self):
        """Removes the data of a stopped member."""
        shutil.rmtree(self.data)


def cluster(place, count, options=()):
    """A running cluster."""
    peers = {f"m{number}": f"http://127.0.0.1:{process.free_port()}" for number in range(1, count + 1)}
    return launched([Member(place, name, peers, options) for name in peers])


def launched(members):
    """Starts the members of a cluster, and waits for them."""
    for member in members:
        member.launch()
    for member in members:
        if not process.wait_until(member.is_ready):
            raise process.NotStarted(f"{member.name} is not ready:\n{member.last_words()}")
    return members


class Line:
    """Forwards connections to a port until it is cut; a cut line refuses connections and breaks those that exist."""

    def __init__(self, port):
        self.target, self.open, self.is_cut, self.lock = port, set(), False, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                if self.is_cut:
                    raise OSError
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.open |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=pair, daemon=True).start()

    def copy(self, source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.is_cut = True
        with self.lock:
            for end in self.open:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.open = set()

    def mend(self):
        self.is_cut = False
