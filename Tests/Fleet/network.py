"""A fleet in network namespaces: three services, three members of etcd, two HAProxies with the files of deploy/ as they
are, and nginx as the upstream, each on a host with an address of its own."""

import collections
import concurrent.futures
import contextlib
import json
import os
import random
import re
import shutil
import threading
import time

import stage
from harness import checks, etcd, http, namespaces, process
from stage import asset_id

SIZE = 512 << 10
KEY = "network-key-" + "k" * 32
#: The addresses of deploy/ and docs/operations.md.
ADDRESSES = {
    "n1": "10.0.0.11", "n2": "10.0.0.12", "n3": "10.0.0.13", "e1": "10.0.0.21", "e2": "10.0.0.22", "e3": "10.0.0.23",
    "r1": "10.0.0.31", "r2": "10.0.0.32", "envoy": "10.0.0.33", "upstream": "10.0.0.41",
}  # fmt: skip
NODES, MEMBERS = ("n1", "n2", "n3"), ("e1", "e2", "e3")
READERS = 100
#: `fleet.maxLag` of the services, and the time for which the lease of a silent node lives.
MAX_LAG = 5
LEASE = MAX_LAG + 20


class Files(process.Nginx):
    """The upstream: nginx with files that are made when they are needed. Files below `slow` take about ten seconds."""

    def __init__(self, place, host):
        self.host, self.media, self.answers = host.address, place / "files", place / "answers.log"
        self.bodies, self.lock = {}, threading.Lock()
        self.media.mkdir()
        super().__init__(
            place / "upstream",
            f"""
                log_format answers '$uri $body_bytes_sent';
                keepalive_requests 10000000;
                server {{
                    listen 80 backlog=4096; root {self.media}; access_log {self.answers} answers;
                    add_header Cache-Control max-age=86400;
                    location /slow/ {{ limit_rate 50k; }}
                    location = /status {{ stub_status; access_log off; }}
                }}
            """,
            port=80, prefix=host.prefix,
        )  # fmt: skip

    def body(self, name):
        """The present bytes of a file, which is made if it does not exist."""
        with self.lock:
            return self.bodies.get(name) or self.write(name)

    def change(self, names):
        """Gives files other bytes and another ETag; returns the old bytes."""
        with self.lock:
            old = {name: self.bodies[name] for name in names}
            for name in names:
                self.write(name)
        return old

    def write(self, name):
        file, data = self.media / name.lstrip("/"), random.randbytes(SIZE)
        file.parent.mkdir(parents=True, exist_ok=True)
        former = file.stat().st_mtime if file.exists() else time.time() - 1000
        file.with_suffix(".new").write_bytes(data)
        os.utime(file.with_suffix(".new"), (former + 2, former + 2))
        file.with_suffix(".new").replace(file)
        self.bodies[name] = data
        return data

    def is_idle(self):
        """Whether no response is in progress, apart from this one."""
        text = http.send(80, "GET", "/status", host=self.host).body.decode()
        return "Writing: 1 " in text

    def sent(self, prefix="/"):
        """The number of sent body bytes of files whose name begins so. Responses in progress are awaited, but not slow ones."""
        process.wait_until(self.is_idle, 1)
        return sum(self.sums(prefix).values())

    def sums(self, prefix):
        """The number of sent body bytes by name."""
        sums = collections.Counter()
        for line in self.answers.read_text().splitlines():
            name, count = line.split()
            if name.startswith(prefix):
                sums[name] += int(count)
        return sums

    def repeated(self):
        """The sent bytes of files of which more bytes were sent than they have, of 12 files at most."""
        return dict([each for each in self.sums("/").items() if each[1] > SIZE][:12])


class Node(process.Larder):
    """A service on port 8080 of its host."""

    def __init__(self, program, place, host, settings):
        place.mkdir(exist_ok=True)
        self.host = host.address
        super().__init__(program, place, None, [*settings, "access.allowUnauthenticated=true"], level="notice",
                         address=f"{host.address}:8080", prefix=host.prefix)  # fmt: skip
        self.name, self.port = host.name, 8080

    def read(self, name):
        return self.send("GET", f"/o/media{name}")

    def state(self):
        """The member `etcd` of the state of the fleet; empty while the node does not answer."""
        try:
            return self.get("/v1/fleet").get("etcd") or {}
        except (OSError, http.ERROR):
            return {}

    def others(self):
        """The states of the other nodes, as this one sees them, by URL."""
        return {peer["url"]: peer["state"] for peer in self.get("/v1/fleet")["peers"]}

    def count(self, prefix):
        """The number of assets below a prefix of keys."""
        return self.get(f"/v1/assets?prefix={prefix}&limit=1&total=true")["total"]

    def is_written(self):
        """Whether a kill loses nothing."""
        return self.get("/v1/stats")["store"]["uncommittedBytes"] == 0


class Remote:
    """A router of stage.py on its host, with the file of deploy/ as it is: it has the addresses of the hosts."""

    source = None

    def __init__(self, directory, host):
        self.on, self.host = host, host.address
        super().__init__(directory, [], host.name, port=80)

    @property
    def command(self):
        return [*self.on.prefix, *self.words]

    def adapted(self, text):
        return text


class HAProxy(Remote, stage.HAProxy):
    pass


class Unbounded(HAProxy):
    """HAProxy without bounded load: each asset has one node."""

    def adapted(self, text):
        changed = text.replace("    hash-balance-factor 150\n", "")
        assert changed != text
        return changed


class Envoy(Remote, stage.Envoy):
    pass


class Readers:
    """Clients that read random files through both routers until the end of a block, half of the time the first file."""

    def __init__(self, hosts, names, count=READERS):
        self.hosts, self.names, self.count = hosts, names, count
        self.stop, self.lock = threading.Event(), threading.Lock()
        #: Of each file the time at which the last complete read of it began; failures and wrong bytes.
        self.begun, self.failures, self.total = {}, [], 0

    def __enter__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(self.count)
        self.all = [self.pool.submit(self.read, number) for number in range(self.count)]
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.pool.shutdown()
        for each in self.all:
            each.result()

    def read(self, number):
        chance = random.Random(number)
        while not self.stop.is_set():
            name = self.names[0] if chance.random() < 0.5 else chance.choice(self.names)
            router, began = self.hosts.routers[number % len(self.hosts.routers)], time.monotonic()
            failure = self.hosts.fault(router, name)
            with self.lock:
                self.total += 1
                if failure:
                    self.failures.append(failure)
                else:
                    self.begun[name] = max(began, self.begun.get(name, 0))

    def pass_over(self, names=None, seconds=process.LIMIT):
        """Waits until each of the files was read by a request that begins after the call."""
        since, names = time.monotonic(), self.names if names is None else names
        return process.wait_until(lambda: all(self.begun.get(name, 0) > since for name in names), seconds)


class Hosts:
    """All hosts and their processes."""

    def __init__(self, program):
        self.place, self.program = checks.directory("hosts"), program
        self.network = namespaces.Network("10.0.0.1", ADDRESSES)
        hosts = self.network.hosts
        self.upstream = Files(self.place, hosts["upstream"])
        peers = {name: f"http://{ADDRESSES[name]}:2380" for name in MEMBERS}
        self.members = etcd.launched([
            etcd.Member(self.place, name, peers, host=ADDRESSES[name], port=2379, prefix=hosts[name].prefix) for name in peers
        ])  # fmt: skip
        key = self.place / "key"
        key.write_text(KEY + "\n")
        self.nodes = [self.node(name, key) for name in NODES]
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            self.awaited(node.is_ready, f"{node.name} is not ready:\n{node.last_words()}")
        origin = {"baseURL": f"http://{ADDRESSES['upstream']}", "allowPrivateAddresses": True}
        self.nodes[0].call("PUT", "/v1/origins/media", origin)
        for node in self.nodes:
            self.awaited(lambda: node.call("GET", "/v1/origins/media").status == 200, f"{node.name} has no origin")
            self.awaited(lambda: len(node.others()) == 2, f"{node.name} does not find the others")
        self.routers = []
        self.route(HAProxy)

    @staticmethod
    def awaited(condition, sentence):
        if not process.wait_until(condition):
            raise process.NotStarted(sentence)

    def node(self, name, key):
        settings = [
            f"fleet.etcd.endpoints={','.join(f'http://{ADDRESSES[member]}:2379' for member in MEMBERS)}", f"fleet.keyFile={key}",
            f"fleet.node={name}", f"fleet.advertise=http://{ADDRESSES[name]}:8080", f"fleet.router=http://{ADDRESSES['r1']}",
            # Not the 50 ms of the default: 100 readers and a program without optimisation share this machine.
            f"fleet.maxLag={MAX_LAG}s", "fleet.timeout=2s", "fleet.leaveTimeout=5m",
        ]  # fmt: skip
        return Node(self.program, self.place / name, self.network.hosts[name], settings)

    def route(self, kind, *names):
        """Replaces the routers by others of this kind."""
        for router in self.routers:
            router.stop()
            shutil.rmtree(router.place)
        self.routers = [kind(self.place, self.network.hosts[name]).start() for name in names or ("r1", "r2")]

    def __getitem__(self, name):
        return next(node for node in self.nodes if node.name == name)

    def end(self):
        for each in [*self.routers, *self.nodes, *self.members, self.upstream]:
            if each.is_running:
                each.kill()

    # Reads

    def fault(self, router, name, old=None):
        """Reads a file; returns the fault of the response, or None. `old` are bytes that are stale."""
        wanted = self.upstream.body(name)
        try:
            reply = router.read(name)
        except (OSError, http.ERROR) as error:
            return f"{name}: {error!r}"
        if reply.status == 200 and reply.is_complete and reply.body == wanted:
            return None
        found = "stale" if old and reply.body == old else str(reply).split("\n")[0]
        return f"{name}: {found}{'' if reply.is_complete else ', cut'}"

    def read(self, names, routers=None, count=READERS, old=None):
        """Reads files with this number of readers, the routers in turn; returns the faults."""
        for name in names:
            self.upstream.body(name)
        routers = routers or self.routers

        def one(at):
            return self.fault(routers[at % len(routers)], names[at], (old or {}).get(names[at]))

        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return [fault for fault in pool.map(one, range(len(names))) if fault]

    def first_choices(self, router, names):
        """The name of the node that an idle router selects for each file."""
        first = len(router.text())
        ids = {asset_id(f"/o/media{name}"): name for name in names}
        router.in_turn(f"/v1/assets/{identifier}" for identifier in ids)
        process.wait_until(lambda: ids.keys() <= router.choices(first).keys(), 10)
        return {ids[key]: "+".join(f"n{number}" for number in found) for key, found in router.choices(first).items()}

    def ends(self, router, names):
        """The node and the state at the end (`%ts`) of each read of the files, by the log of the router."""
        ids = {asset_id(f"/o/media{name}"): name for name in names}
        found = re.findall(r" owners/(n\d) .* (\S\S) \d+/\d+ \S+ asset=([0-9a-f]{32})$", router.text(), re.M)
        return {ids[asset]: (node, state) for node, state, asset in found if asset in ids}

    def are_up(self, number):
        return all(router.is_up(number) for router in self.routers)

    def are_down(self, number):
        return not any(router.is_up(number) for router in self.routers)

    # Etcd

    def leader(self):
        """The member that leads; None without one."""
        for member in self.members:
            done = member.control("endpoint", "status", "-w", "json", is_checked=False)
            with contextlib.suppress(ValueError, LookupError):
                status = json.loads(done.stdout)[0]["Status"]
                if status["leader"] == status["header"]["member_id"]:
                    return member
        return None

    def purge(self, node, prefix, wait=60):
        """A purge of the files below a prefix, which waits for the other nodes; its progress."""
        fields = {"Prefer": f"wait={wait}"} if wait else {}
        return node.call("POST", "/v1/purges", {"prefix": f"/o/media{prefix}"}, fields).json.get("fleet", {})


