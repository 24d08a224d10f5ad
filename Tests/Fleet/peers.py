#!/usr/bin/env python3
"""Checks peer fills: three services without a router fetch from each other what one of them has or is receiving.

    peers.py --larder .build/release/larder
    peers.py --larder .build/debug/larder --only cut,dead
"""

import concurrent.futures
import contextlib
import hashlib
import os
import pathlib
import socket
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import certificates, checks, http, process  # noqa: E402
from harness.upstream import Answer, Upstream, asset, content  # noqa: E402

SIZE = 1 << 20
KEY = "peer-key-" + "k" * 32
OLD = "peer-key-" + "o" * 32
#: The name in client certificates that proves a node.
NAME = "DNS:node.fleet.example"
PARTS = (
    "whole", "parts", "middle", "running", "herd", "cut", "killed", "dead", "silent", "changed", "stale", "weak", "purged",
    "hostile", "withdrawn", "far", "private", "proof", "mtls", "nodelay", "self", "restart", "leave", "gone", "many", "logs",
)  # fmt: skip
#: Parts with time limits, which a busy machine can exceed, and with ten nodes: not with --brief.
TIMED = ("nodelay", "many")


class Files(Upstream):
    """Serves every path. `fields` are settings of assets by path; `gates` hold the second half of a response."""

    def __init__(self):
        self.gates, self.fields = {}, {}
        super().__init__()

    def answer(self, request):
        name = request.name
        fields = {"etag": f'"{name}"', **self.fields.get(name, {})}
        whole = asset(data=content(name + fields.pop("version", ""), SIZE), **fields)
        if name not in self.gates or request.method == "HEAD":
            return whole
        answer: Answer = whole.answer(request)
        answer.hold = self.gates[name]
        return answer

    def hold(self, name):
        self.gates[name] = threading.Event()

    def release(self, name):
        self.gates.pop(name).set()

    def sent(self, name):
        """The number of body bytes that were sent of a file."""
        return sum(request.sent for request in list(self.requests) if request.name == name)

    def count(self, name):
        return sum(request.name == name for request in list(self.requests))


class Nodes:
    """The services, which know each other, and one URL each that is their own."""

    def __init__(self, program, count=3, name="peers"):
        self.place, self.program, self.upstream = checks.directory(name), program, Files()
        self.key = self.place / "keys"
        self.key.write_text(f"{KEY}\n{OLD}\n")
        self.all = []
        for number in range(1, count + 1):
            place = self.place / f"node{number}"
            place.mkdir()
            self.all.append(process.Larder(program, place, self.upstream.port, ["log.access=text"]))
        urls = [node.url for node in self.all]
        for node in self.all:
            node.settings += [f"fleet.keyFile={self.key}", f"fleet.peers={','.join(urls)}", "fleet.leaveTimeout=30s"]
            node.settings += ["fleet.timeout=10s"]  # the limit is measured apart
            node.launch()
        for node in self.all:
            process.wait_until(node.is_ready)

    def __getitem__(self, number):
        return self.all[number - 1]

    def prepared(self, name, *settings, tls=None):
        """A further service with other settings, which is not started. `tls` is the context of its clients."""
        place = self.place / name
        place.mkdir()
        return process.Larder(self.program, place, self.upstream.port, ["log.access=text", *settings], tls=tls)

    def extra(self, name, *settings):
        """A further service with other settings."""
        return self.prepared(name, *settings).start()

    def sealed(self):
        """The settings of an encrypted origin, whose master key all services share."""
        keys = self.place / "master"
        if not keys.exists():
            keys.mkdir(mode=0o700)
            (keys / "m1").write_bytes(os.urandom(32))
            (keys / "m1").chmod(0o600)
        return [*process.origin("sealed", self.upstream.url, encrypt="true"), f"encryption.keysDirectory={keys}"]


class SecureNodes:
    """Two nodes with https URLs that know each other by client certificates, and the files of further nodes.

    The first one accepts connections without a client certificate, the second one does not. Both accept keys.
    """

    def __init__(self, nodes):
        self.nodes, self.authority, self.foreign = nodes, certificates.Authority(), certificates.Authority()
        self.stranger = self.authority.issue("stranger", "DNS:stranger.example")
        self.own = [self.authority.issue(f"node{number}", f"IP:127.0.0.1,{NAME}") for number in (1, 2)]
        self.all = [self.listening(number) for number in (1, 2)]
        for node, files, other in zip(self.all, self.own, reversed(self.all)):
            node.settings += [*self.client(files), f"fleet.peers={other.url}"]
            node.start()

    def listening(self, number):
        certificate, key = self.own[number - 1]
        return self.nodes.prepared(
            f"secure{number}", *self.nodes.sealed(), f"fleet.keyFile={self.nodes.key}",
            f"listen.tls.certificateFile={certificate}", f"listen.tls.keyFile={key}",
            f"listen.tls.clientCAFile={self.authority.file}",
            f"listen.tls.clientAuthentication={'optional' if number == 1 else 'required'}", f"fleet.peerCertificates={NAME}",
            tls=certificates.client_context(self.authority.file, self.stranger),
        )  # fmt: skip

    def client(self, files=None, authority=None):
        """The settings of a node that presents the certificate `files` and trusts the authority."""
        settings = [f"fleet.tls.caFile={(authority or self.authority).file}", "fleet.timeout=10s"]
        if files:
            settings += [f"fleet.tls.certificateFile={files[0]}", f"fleet.tls.keyFile={files[1]}"]
        return settings

    def reader(self, name, *settings):
        """A node without TLS of its own that asks the first node."""
        return self.nodes.extra(name, *self.nodes.sealed(), *settings, f"fleet.peers={self.all[0].url}")

    def ask(self, path, files=None, key=None):
        """The first node's reply to a request of a node for the cached bytes of `path`."""
        asset = hashlib.sha256(path.encode()).hexdigest()[:32]
        fields = {"Larder-Peer": "x", "Range": "bytes=0-99", **({"Authorization": f"Bearer {key}"} if key else {})}
        context = certificates.client_context(self.authority.file, files)
        return self.all[0].send("GET", f"/v1/assets/{asset}/content", fields, tls=context)


class Many(Nodes):
    """Ten nodes, of which each has four files of its own."""

    def __init__(self, program):
        super().__init__(program, 10, "many")
        self.names = {number: [f"/many/{number}-{count}.mp4" for count in range(4)] for number in range(1, 11)}

    def read(self, part, number, name):
        reply = self[number].send("GET", f"/o/media{name}")
        part(reply.status == 200 and reply.body == body(name), f"node {number} answered {name} with {reply}")

    def requests(self):
        """The questions of all nodes by result."""
        sums = dict.fromkeys(("hit", "miss", "timedOut", "failed"), 0)
        for node in self.all:
            for peer in node.get("/v1/fleet")["peers"] if node.is_running else []:
                for result, count in peer["requests"].items():
                    sums[result] += count
        return sums

    def asked(self, function):
        """The questions during a call, by result."""
        before = self.requests()
        function()
        return {result: count - before[result] for result, count in self.requests().items()}

    def digests(self, node):
        """The number of assets in the digest of each other node; None without one."""
        peers = node.get("/v1/fleet")["peers"]
        return {peer["url"]: (peer["digest"] or {}).get("assets") for peer in peers if peer["url"] != node.url}

    def renewed(self, part, wanted):
        """Waits until all nodes have digests with these numbers of assets."""
        urls = {node.url: wanted[number] for number, node in enumerate(self.all, 1)}

        def is_renewed(node):
            return self.digests(node) == {url: count for url, count in urls.items() if url != node.url}

        began = time.monotonic()
        part.eventually(lambda: all(map(is_renewed, self.all)), f"the digests are not those of {wanted}", 40, 0.2)
        return time.monotonic() - began

    def proof(self, part):
        """A digest needs the proof of a node, and is confirmed by its tag."""
        target, proof = "/v1/fleet/digest", {"Authorization": f"Bearer {KEY}"}
        for fields in ({}, {"Authorization": "Bearer wrong"}):
            part.equal(self[1].send("GET", target, fields).code, "unauthorized", f"the code of a digest with {fields}")
        reply = self[1].send("GET", target, proof)
        part(reply.status == 200 and reply.body.startswith(b"LCD1"), f"the digest is {reply}")
        tag = reply.fields.get("etag", "")
        part.equal(self[1].send("GET", target, {**proof, "If-None-Match": tag}).status, 304, "the status with its tag")
        part.equal(self[1].send("GET", target, {**proof, "If-None-Match": '"x"'}).status, 200, "the status with another tag")

    def spread(self, part):
        """Each file that one node has is read at another one."""
        for number, names in self.names.items():
            for name in names:
                self.read(part, number, name)
        seconds = self.renewed(part, dict.fromkeys(self.names, 4))
        count = sum(map(len, self.names.values()))

        def read_elsewhere():
            for number, names in self.names.items():
                for name in names:
                    self.read(part, (number + 2) % 10 + 1, name)

        asked = self.asked(read_elsewhere)
        sent = sum(self.upstream.sent(name) for names in self.names.values() for name in names)
        part.note(f"all digests were current after {seconds:.1f} s; {count} reads asked {asked}; upstream ÷ union {sent / count / SIZE:.2f}")
        part.equal(sent, count * SIZE, "the sum of bytes from the upstream")
        part.equal(asked["hit"], count, "the number of hits")
        part(asked["miss"] <= count // 4, f"{asked['miss']} of {sum(asked.values())} questions are false positives")
        part.equal(asked["timedOut"] + asked["failed"], 0, "the number of failed questions")
        self.renewed(part, dict.fromkeys(self.names, 8))

    def unknown(self, part):
        """A file that no node has costs no question, but for false positives."""
        names = [f"/many/new-{count}.mp4" for count in range(8)]
        asked = self.asked(lambda: [self.read(part, 1, name) for name in names])
        part(sum(asked.values()) <= 4, f"{len(names)} new files asked {asked}")

    def popular(self, part):
        """Of many nodes with a file three are asked at most."""
        name = self.names[1][0]
        for number in range(2, 8):
            self.read(part, number, name)
        part.eventually(lambda: self.explained(9, name) == 3, "not three nodes would be asked", 40, 0.2)
        asked = self.asked(lambda: self.read(part, 9, name))
        part(1 <= sum(asked.values()) <= 3 and asked["hit"] >= 1, f"a popular file asked {asked}")
        part.equal(self.upstream.sent(name), SIZE, "the number of bytes from the upstream for the popular file")

    def explained(self, number, name):
        """The number of nodes that a read would ask."""
        return len(self[number].get(f"/v1/explain?origin=media&path={name[1:]}")["source"]["peers"])

    def lost(self, part):
        """A node whose digest is lost is not asked."""
        name, node = "/many/lost.mp4", self[10]
        self.read(part, 10, name)
        part.eventually(lambda: self.explained(1, name) == 1, "the file is in no digest", 40, 0.2)
        node.kill()
        part.eventually(lambda: self.digests(self[1])[node.url] is None, "the digest does not end", 60, 0.5)
        asked = self.asked(lambda: self.read(part, 1, name))
        part.equal(sum(asked.values()), 0, f"the number of questions {asked}")
        part.equal(self.upstream.sent(name), 2 * SIZE, "the number of bytes from the upstream for the lost file")


def body(name, first=0, end=SIZE, version=""):
    return content(name + version, SIZE)[first:end]


def identifier(name):
    return hashlib.sha256(f"/o/media{name}".encode()).hexdigest()[:32]


class Test:
    def __init__(self, nodes):
        self.nodes, self.upstream = nodes, nodes.upstream

    def read(self, part, number, name, first=0, end=SIZE, version=""):
        """Reads a range at a node, and checks its bytes."""
        fields = {} if (first, end) == (0, SIZE) else {"Range": f"bytes={first}-{end - 1}"}
        reply = self.nodes[number].send("GET", f"/o/media{name}", fields)
        status = 206 if fields else 200
        part(
            reply.status == status and reply.is_complete and reply.body == body(name, first, end, version),
            f"node {number} answered {name} {first}-{end} with {reply}",
        )
        return reply

    def sent(self, part, name, count, subject):
        """Checks the number of bytes that the upstream has sent of a file; it counts a piece after sending."""
        process.wait_until(lambda: self.upstream.sent(name) == count, 5)
        part.equal(self.upstream.sent(name), count, subject)

    def from_peers(self, number):
        return self.nodes[number].get("/v1/stats")["bytes"]["fromPeers"]

    # Parts

    def whole(self, part):
        """A file that one node has is read at another without a request to the upstream."""
        name = "/whole.mp4"
        self.read(part, 1, name)
        before = self.from_peers(2)
        self.read(part, 2, name)
        self.sent(part, name, SIZE, "the number of bytes from the upstream")
        part.equal(self.upstream.count(name), 1, "the number of requests to the upstream")
        part.reaches(lambda: self.from_peers(2) - before, SIZE, "bytes.fromPeers of node 2")
        reply = self.read(part, 2, name)
        part("hit" in reply.fields.get("cache-status", ""), f"the second read is no hit: {reply.fields}")
        first = self.read(part, 1, name)
        for field in ("etag", "last-modified", "content-type", "cache-control", "via", "accept-ranges"):
            part.equal(reply.fields.get(field), first.fields.get(field), f"the field {field}")
        # The lifetime began when the upstream answered node 1.
        until = [self.nodes[number].get(f"/v1/assets/{identifier(name)}")["freshUntilAt"] for number in (1, 2)]
        part(abs(stamp(until[0]) - stamp(until[1])) <= 1.5, f"the ends of the lifetimes differ: {until}")
        stats = lambda part_of, name: self.nodes[1].get("/v1/stats")[part_of][name]  # noqa: E731
        part.reaches(lambda: stats("requests", "total"), 2, "the requests of clients at node 1")
        part.reaches(lambda: stats("bytes", "toPeers"), SIZE, "bytes.toPeers of node 1")
        part.eventually(lambda: f"bytesFromPeers={SIZE} bytesFromUpstream=0" in self.nodes[2].text(), "the access log does not name the bytes")
        unknown = self.nodes[2].get("/v1/explain?origin=media&path=other.mp4")["source"]["peers"]
        part(self.nodes[1].url in unknown, f"explain names the nodes {unknown}")
        metrics = self.nodes[2].send("GET", "/metrics").body.decode()
        part(f'larder_peer_bytes_total{{direction="received",origin="media"}} {SIZE}' in metrics.replace(
            'origin="media",direction="received"', 'direction="received",origin="media"'), "the metric of received bytes")
        line = f'larder_peer_requests_total{{node="{self.nodes[1].url}",result="hit"}} 1'
        part(line in metrics, "the metric of requests to nodes")

    def parts(self, part):
        """Two nodes have a part each; a third one fetches only the rest."""
        name, third = "/parts.mp4", SIZE // 4
        self.read(part, 1, name, 0, third)
        self.read(part, 2, name, third, 2 * third)
        self.read(part, 3, name)
        self.sent(part, name, SIZE, "the number of bytes from the upstream")

    def middle(self, part):
        """A node that has the middle of the file only gives it; the upstream sends what is before and behind."""
        name = "/middle.mp4"
        self.read(part, 1, name, SIZE // 4, SIZE // 2)
        self.read(part, 2, name)
        self.sent(part, name, SIZE, "the number of bytes from the upstream")
        # A node that knows the file asks for a window in the same way.
        name = "/window.mp4"
        self.read(part, 1, name, SIZE // 4, SIZE // 2)
        self.read(part, 2, name, 0, 1)
        self.read(part, 2, name, 1, SIZE)
        self.sent(part, name, SIZE, "the number of bytes for a window")

    def running(self, part):
        """Bytes that a node is receiving reach another node as they arrive, with one request to the upstream."""
        name = "/running.mp4"
        self.upstream.hold(name)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(self.read, part, 1, name)
            part.eventually(lambda: self.upstream.sent(name) == SIZE // 2, "the upstream does not send the first half")
            with http.connection(self.nodes[2].port) as opened:
                opened.request("GET", f"/o/media{name}")
                response = opened.getresponse()
                half = response.read(SIZE // 2 - 65536)
                part(half == body(name, 0, len(half)), "node 2 has wrong bytes of the first half")
                part(not first.done(), "the upstream was not held")
                fills = lambda: [fill["peer"] for node in (1, 2) for fill in self.nodes[node].items("/v1/fills")]  # noqa: E731
                part.reaches(fills, [None, self.nodes[1].url], "the nodes of the fills")
                self.upstream.release(name)
                rest = response.read()
                part(rest == body(name, len(half)), f"node 2 has {len(rest)} bytes of the rest")
            first.result()
        self.sent(part, name, SIZE, "the number of bytes from the upstream")

    def herd(self, part):
        """30 readers of one new file at three nodes at the same moment cost one transfer."""
        for number in range(6):
            name = f"/herd{number}.mp4"
            with concurrent.futures.ThreadPoolExecutor(30) as pool:
                list(pool.map(lambda reader: self.read(part, reader % 3 + 1, name), range(30)))
            self.sent(part, name, SIZE, f"the number of bytes from the upstream for {name}")

    def cut(self, part):
        """If the node's own transfer breaks, the other one continues at the upstream."""
        name = "/cut.mp4"
        self.upstream.hold(name)
        gate = self.upstream.gates[name]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(self.nodes[1].send, "GET", f"/o/media{name}")
            part.eventually(lambda: self.upstream.sent(name) == SIZE // 2, "the upstream does not send the first half")
            second = pool.submit(self.read, part, 2, name)
            part.eventually(lambda: self.nodes[1].get("/v1/stats")["load"]["reads"]["active"] == 2, "node 2 does not read")
            fills = self.nodes[1].items("/v1/fills")
            part.equal(len(fills), 1, "the number of fills at node 1")
            del self.upstream.gates[name]
            part.equal(self.nodes[1].call("DELETE", f"/v1/fills/{fills[0]['fillId']}").status // 100, 2, "the status of the stop")
            second.result()
            gate.set()
            first.result()
        part(self.upstream.sent(name) <= SIZE + SIZE // 2, f"the upstream sent {self.upstream.sent(name)} bytes")

    def killed(self, part):
        """A node that is killed during a transfer costs nothing but its part; no byte is wrong."""
        name = "/killed.mp4"
        self.read(part, 3, name, 0, SIZE // 2)
        self.upstream.hold(name)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            third = pool.submit(self.nodes[3].send, "GET", f"/o/media{name}")
            part.eventually(lambda: self.upstream.count(name) == 2, "node 3 does not fetch the rest")
            second = pool.submit(self.read, part, 2, name)
            part.eventually(
                lambda: self.nodes[3].is_running and self.nodes[3].get("/v1/stats")["load"]["reads"]["active"] == 2,
                "node 2 does not read",
            )
            self.nodes[3].kill()
            self.upstream.release(name)
            second.result()
            with contextlib.suppress(OSError, http.ERROR):
                third.result()
        self.nodes[3].start()

    def dead(self, part):
        """A node that refuses connections is not asked for some seconds, and delays nothing."""
        self.nodes[3].kill()
        times = []
        for number in range(6):
            began = time.monotonic()
            self.read(part, 1, f"/dead/{number}.mp4")
            times.append(time.monotonic() - began)
        state = {peer["url"]: peer for peer in self.nodes[1].get("/v1/fleet")["peers"]}[self.nodes[3].url]
        part.equal(state["state"], "setAside", "the state of the dead node")
        part.equal(state["requests"]["failed"] + state["requests"]["timedOut"], 2, "the requests to the dead node")
        part("not answer" in self.nodes[1].text(), "the log of node 1 does not name it")
        part(max(times) < 10, f"the reads took {times}")
        self.nodes[3].start()
        part.eventually(lambda: self.read_unknown(1) and self.aside(1, 3) == "ok", "node 3 is not asked again", 15, 0.5)

    def read_unknown(self, number):
        """Reads a byte of a file that no node knows."""
        self.unknown = getattr(self, "unknown", 0) + 1
        return self.nodes[number].send("GET", f"/o/media/unknown/{self.unknown}.mp4", {"Range": "bytes=0-0"}).status == 206

    def silent(self, part):
        """A node that accepts connections and never answers costs at most 50 ms, twice."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(64)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            node = self.nodes.extra("silent", f"fleet.keyFile={self.nodes.key}", f"fleet.peers={url}")
            alone = self.nodes.extra("alone")
            added = []
            for number in range(8):
                for place, times in ((node, added), (alone, None)):
                    began = time.monotonic()
                    reply = place.send("GET", f"/o/media/silent/{place is node}/{number}.mp4", {"Range": "bytes=0-0"})
                    if times is not None:
                        times.append(time.monotonic() - began)
                    part.equal(reply.status, 206, "the status")
            peer = node.get("/v1/fleet")["peers"][0]
            part.equal((peer["state"], peer["requests"]["timedOut"]), ("setAside", 2), "the state of the silent node")
            part.note("first bytes beside a silent node: " + ", ".join(f"{value * 1000:.0f}" for value in added) + " ms")
            part(min(added[:2]) >= 0.04, "the silent node was not asked")
            node.stop()
            alone.stop()

    def changed(self, part):
        """A node with another generation is ignored."""
        name = "/changed.mp4"
        self.read(part, 1, name)
        self.upstream.fields[name] = {"version": "2", "etag": '"second"'}
        self.read(part, 2, name, 0, 0x8000)  # fresh at node 1: its description is as good as that of any cache
        third = "/changed-known.mp4"
        self.read(part, 1, third, SIZE // 2, SIZE)
        self.upstream.fields[third] = {"version": "2", "etag": '"third"'}
        alone = self.nodes.extra("changed")
        reply = alone.send("GET", f"/o/media{third}", {"Range": "bytes=0-99"})
        part(reply.body == body(third, 0, 100, "2"), "the upstream did not change")
        alone.stop()
        alone.settings += [f"fleet.keyFile={self.nodes.key}", f"fleet.peers={self.nodes[1].url}"]
        alone.start()
        reply = alone.send("GET", f"/o/media{third}")
        part(reply.status == 200 and reply.body == body(third, version="2"), f"two generations are mixed: {reply}")
        part(alone.get("/v1/stats")["bytes"]["fromPeers"] == 0, "bytes of the other generation were kept")
        alone.stop()

    def stale(self, part):
        """A stale response describes the file to no other node; known generations are still shared."""
        name = "/stale.mp4"
        self.upstream.fields[name] = {"cache_control": "max-age=0"}
        self.read(part, 1, name)
        sent = self.upstream.count(name)
        self.read(part, 2, name)
        part(self.upstream.count(name) > sent, "the stale response of node 1 was used")
        # A lifetime of the administrator is not renewed by copying.
        first = self.nodes.extra("ttl1", "origins.media.freshness=20s", f"fleet.keyFile={self.nodes.key}")
        second = self.nodes.extra(
            "ttl2", "origins.media.freshness=20s", f"fleet.keyFile={self.nodes.key}", f"fleet.peers={first.url}")
        name = "/ttl.mp4"
        part.equal(first.send("GET", f"/o/media{name}").status, 200, "the status at the first node")
        part.equal(second.send("GET", f"/o/media{name}").status, 200, "the status at the second node")
        until = [stamp(node.get(f"/v1/assets/{identifier(name)}")["freshUntilAt"]) for node in (first, second)]
        part(until[1] - until[0] <= 1.1, f"the copy is fresh for longer: {until}")
        part.equal(self.upstream.count(name), 1, "the requests to the upstream")
        first.stop()
        second.stop()

    def weak(self, part):
        """Files without a strong validator are not shared."""
        for name, fields in {
            "/weak.mp4": {"etag": 'W/"w"', "last_modified": None}, "/none.mp4": {"etag": None, "last_modified": None},
        }.items():  # fmt: skip
            self.upstream.fields[name] = fields
            self.read(part, 1, name)
            self.read(part, 2, name)
            self.sent(part, name, 2 * SIZE, f"the bytes from the upstream for {name}")
        name = "/date.mp4"  # a date is strong if it is old enough
        self.upstream.fields[name] = {"etag": None}
        self.read(part, 1, name, 0, SIZE // 2)
        self.read(part, 2, name)
        self.sent(part, name, SIZE, "the bytes from the upstream for a file with a date")

    def purged(self, part):
        """After a purge, a copy that another node has stored before it is no description of the file."""
        ways = {
            "delete": lambda name: self.nodes[2].call("DELETE", f"/v1/assets/{identifier(name)}"),
            "purge": lambda name: self.nodes[2].call("POST", "/v1/purges", {"origin": "media", "prefix": f"/o/media{name}"}),
        }
        for way, purge in ways.items():
            name = f"/purged-{way}.mp4"
            self.read(part, 1, name)
            self.read(part, 2, name)
            self.upstream.fields[name] = {"version": "2", "etag": f'"second {way}"'}
            part.equal(purge(name).status // 100, 2, f"the status of the {way}")
            self.read(part, 2, name, version="2")
            part.equal(self.nodes[1].call("DELETE", f"/v1/assets/{identifier(name)}").status, 204, "the status at node 1")
            self.read(part, 1, name, version="2")
            self.read(part, 2, name, version="2")

    def hostile(self, part):
        """Wrong answers of a node neither change a byte nor end a read nor stop the service."""
        whole = f"bytes 0-{SIZE - 1}/{SIZE}"
        ranges = (
            "bytes 0-0/1", "bytes 5-99/100", f"bytes 0-{2**63 - 1}/{2**63 - 1}", f"bytes 0-{SIZE}/{SIZE}", "bytes */5",
            f"bytes {SIZE - 1}-{SIZE - 1}/{SIZE}", "bytes 9223372036854775808-9/9", "nonsense", whole,
        )  # fmt: skip
        nexts = ("-9223372036854775808", "9223372036854775807", "-1", "0", "1", "99999999999999999999", "x")
        answers = [Answer(206, [("Content-Range", text), ("ETag", '"wrong"')], b"wrong" * 99) for text in ranges]
        answers += [Answer(206, [("Content-Range", whole), ("Age", text)], b"w") for text in nexts]
        answers += [Answer(504, [("Larder-Next-Byte", text)], b"{}") for text in nexts]
        answers += [Answer(status, [("Larder-Coming", "1")], b"{}") for status in (200, 404, 500, 504)]
        answers += [Answer(302, [("Location", self.nodes[1].url)]), Answer(200, [], b"x" * SIZE), Answer(416, []), Answer(304, [])]
        answers += [Answer(206, [("Content-Range", whole), ("X", "y" * 100_000)], b"w"), Answer(206, [("Content-Range", whole)], b"w", cut=1)]
        # A node for each answer: one that is set aside does not delay the next.
        fakes = [Upstream() for _ in answers]
        for fake in fakes:
            fake.serve(Answer(404))
        node = self.nodes.extra(
            "hostile", f"fleet.keyFile={self.nodes.key}", f"fleet.peers={','.join(fake.url for fake in fakes)}",
            "fleet.timeout=10s", "origins.media.timeouts.idle=3s")
        for number, (answer, fake) in enumerate(zip(answers, fakes)):
            fake.serve(answer)
            for first in (0, 1, SIZE // 2):
                name = f"/hostile/{number}-{first}.mp4"
                began = time.monotonic()
                reply = node.send("GET", f"/o/media{name}", {"Range": f"bytes={first}-{SIZE - 1}"})
                part(
                    reply.status == 206 and reply.body == body(name, first), f"answer {number} {answer.headers} gave {reply}")
                part(time.monotonic() - began < 8, f"answer {number} {answer.headers} delayed a read")
            fake.serve(Answer(404))
        part(node.is_running, "the service has ended")
        node.stop()

    def withdrawn(self, part):
        """A node that no longer has what it has offered is asked again."""
        fake = Upstream()
        offer = Answer(206, [("Content-Range", f"bytes 0-{SIZE - 1}/{SIZE}"), ("Content-Length", str(SIZE))])
        node = self.nodes.extra(
            "withdrawn", f"fleet.keyFile={self.nodes.key}", f"fleet.peers={fake.url}", "fleet.timeout=10s")
        for number, status in enumerate((404, 412, 504)):
            fake.serve(lambda request, connection, status=status: connection.answer(
                offer if request.method == "HEAD" else Answer(status)))
            reply = node.send("GET", f"/o/media/withdrawn/{number}.mp4")
            part(reply.status == 200 and reply.body == body(f"/withdrawn/{number}.mp4"), f"the reply is {reply}")
        peer = node.get("/v1/fleet")["peers"][0]
        part.equal((peer["state"], peer["requests"]["hit"]), ("ok", 3), "the state of the node")
        node.stop()

    def far(self, part):
        """A read far ahead of a slow transfer at another node does not wait for it."""
        name = "/far.mp4"
        self.upstream.hold(name)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            first = pool.submit(self.read, part, 1, name)
            part.eventually(lambda: self.upstream.sent(name) == SIZE // 2, "the upstream does not send the first half")
            gate = self.upstream.gates.pop(name)
            began = time.monotonic()
            self.read(part, 2, name, SIZE - 1000, SIZE)
            part(time.monotonic() - began < 10, "the read waited for the transfer of the other node")
            gate.set()
            first.result()

    def private(self, part):
        """Content of readers and of encrypted origins stays at its node."""
        own = process.origin("own", self.upstream.url, forward="Authorization")
        secret = [*own, *self.nodes.sealed(), f"fleet.keyFile={self.nodes.key}"]
        first = self.nodes.extra("private1", *secret)
        second = self.nodes.extra("private2", *secret, f"fleet.peers={first.url}")
        for name in ("own", "sealed"):
            for node in (first, second):
                reply = node.send("GET", f"/o/{name}/{name}.mp4", {"Authorization": "Basic cmVhZGVyOg=="})
                part(reply.status == 200 and reply.body == body(f"/{name}.mp4"), f"{name} got {reply}")
            self.sent(part, f"/{name}.mp4", 2 * SIZE, f"the bytes from the upstream for {name}")
            for item in first.items("/v1/assets"):
                fields = {"Larder-Peer": "x", "Authorization": f"Bearer {KEY}", "Range": "bytes=0-99"}
                reply = first.send("GET", f"/v1/assets/{item['assetId']}/content", fields)
                part(reply.status >= 400, f"a node got {item['key']}: {reply}")
        first.stop()
        second.stop()

    def proof(self, part):
        """A node needs a key; the old one of two is accepted, and a key is no token."""
        name = "/proof.mp4"
        self.read(part, 1, name)
        target = f"/v1/assets/{identifier(name)}/content"
        whole = {"Larder-Peer": "x", "Range": f"bytes=0-{SIZE - 1}"}
        for fields, status in (
            ({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": f"Basic {KEY}"}, 401),
            ({"Authorization": f"Bearer {KEY}"}, 206), ({"Authorization": f"Bearer {OLD}"}, 206),
        ):  # fmt: skip
            reply = self.nodes[1].send("GET", target, {**whole, **fields})
            part.equal(reply.status, status, f"the status with {fields}")
            part(status == 206 or reply.code == "unauthorized", f"the code with {fields} is {reply.code}")
        closed = self.nodes.extra("closed", f"fleet.keyFile={self.nodes.key}", "access.token=" + "t" * 32)
        for path in ("/v1/assets", "/v1/stats", "/v1/fleet", f"/v1/content?url={self.upstream.url}{name}"):
            reply = closed.send("GET", path, {"Authorization": f"Bearer {KEY}", "Larder-Peer": "x"})
            part.equal(reply.status, 401, f"the status of {path} with the key of a node")
        unknown = closed.send("GET", target, {**whole, "Authorization": f"Bearer {KEY}"})
        part.equal(unknown.code, "notFound", "the code for an unknown asset")
        closed.stop()
        # A node whose key is refused is set aside, and its reads reach the upstream.
        other = self.nodes.place / "other"
        other.write_text("x" * 40 + "\n")
        node = self.nodes.extra("refused", f"fleet.keyFile={other}", f"fleet.peers={self.nodes[1].url}")
        for place in (name, "/proof2.mp4", "/proof3.mp4"):
            part.equal(node.send("GET", f"/o/media{place}").body, body(place), f"the bytes of {place}")
        self.sent(part, name, 2 * SIZE, "the number of bytes from the upstream")
        peer = node.get("/v1/fleet")["peers"][0]
        part(peer["state"] == "setAside" and "401" in peer["lastError"], f"the state of the node is {peer}")
        node.stop()

    def mtls(self, part):
        """Client certificates open encrypted content too; a key opens ordinary content only, another name nothing."""
        if not certificates.available():
            raise checks.Skipped("openssl is missing")
        secure = SecureNodes(self.nodes)
        first, second = secure.all
        for origin in ("media", "sealed"):
            for number, (one, other) in enumerate(((first, second), (second, first))):
                name = f"/mtls-{origin}{number}.mp4"
                from_peers = lambda other=other: other.get("/v1/stats")["bytes"]["fromPeers"]  # noqa: E731
                before = from_peers()
                for node in (one, other):
                    self.read_at(part, node, origin, name)
                self.sent(part, name, SIZE, f"the number of bytes from the upstream for {name}")
                part.reaches(lambda: from_peers() - before, SIZE, f"bytes.fromPeers for {name}")
        self.proofs(part, secure)
        # Without a certificate a node does not ask for encrypted content; with another name it asks in vain.
        key = f"fleet.keyFile={self.nodes.key}"
        for reader in (
            secure.reader("mtls-key", key, *secure.client()),
            secure.reader("mtls-stranger", key, *secure.client(secure.stranger)),
        ):
            for origin, added in (("media", 0), ("sealed", SIZE)):
                name = f"/mtls-{origin}0.mp4"
                sent = self.upstream.sent(name)
                self.read_at(part, reader, origin, name)
                self.sent(part, name, sent + added, f"the bytes from the upstream for {name} at {reader.place.name}")
            part.reaches(
                lambda: reader.get("/v1/stats")["bytes"]["fromPeers"], SIZE, f"bytes.fromPeers of {reader.place.name}"  # noqa: B023
            )
            reader.stop()
        self.distrust(part, secure)
        first.stop()
        second.stop()

    def proofs(self, part, secure):
        """Requests of nodes with each proof for ordinary and for encrypted content."""
        for proof, ordinary, encrypted in (
            ({"files": secure.own[1]}, 206, 206), ({"files": secure.own[1], "key": KEY}, 206, 206),
            ({"key": KEY}, 206, 504), ({"files": secure.stranger, "key": KEY}, 206, 504),
            ({"files": secure.stranger}, 401, 401), ({"files": secure.stranger, "key": "x" * 40}, 401, 401), ({}, 401, 401),
        ):  # fmt: skip
            shown = ", ".join(f"{kind} {value[0].stem if kind == 'files' else value[:12]}" for kind, value in proof.items())
            for origin, status in (("media", ordinary), ("sealed", encrypted)):
                name = f"/mtls-{origin}0.mp4"
                reply = secure.ask(f"/o/{origin}{name}", **proof)
                part.equal(reply.status, status, f"the status of {name} with {shown or 'no proof'}")
                if status == 206:
                    part(reply.body == body(name, 0, 100), f"the bytes of {name} with {shown} are wrong")
                else:
                    part.equal(reply.code, {401: "unauthorized", 504: "notCached"}[status], f"the code of {name} with {shown}")

    def distrust(self, part, secure):
        """A node whose certificate another authority has signed is set aside; the upstream serves the reads."""
        reader = secure.reader("mtls-distrust", *secure.client(secure.own[1], secure.foreign))
        for number in range(3):
            name = f"/mtls-distrust{number}.mp4"
            self.read_at(part, secure.all[0], "media", name)
            self.read_at(part, reader, "media", name)
            self.sent(part, name, 2 * SIZE, f"the number of bytes from the upstream for {name}")
        peer = reader.get("/v1/fleet")["peers"][0]
        part.equal((peer["state"], peer["requests"]["failed"]), ("setAside", 2), "the state of the node with the wrong authority")
        part("certificate" in (peer["lastError"] or "") and "not trusted" in peer["lastError"], f"the cause is missing: {peer}")
        part.equal(reader.get("/v1/stats")["bytes"]["fromPeers"], 0, "bytes.fromPeers with the wrong authority")
        reader.stop()

    def read_at(self, part, node, origin, name):
        """Reads a whole file at a further node, and checks its bytes."""
        reply = node.send("GET", f"/o/{origin}{name}")
        part(reply.status == 200 and reply.body == body(name), f"{node.place.name} answered {origin}{name} with {reply}")

    def nodelay(self, part):
        """Two idle nodes without the file delay the first byte of a cold read by at most 20 ms in a debug program."""
        key, peers = f"fleet.keyFile={self.nodes.key}", f"fleet.peers={self.nodes[2].url},{self.nodes[3].url}"
        # A question that the machine delays would set a node aside, and later reads would not ask it.
        places = {"asking": self.nodes.extra("asking", key, peers, "fleet.timeout=10s"), "lonely": self.nodes.extra("lonely")}
        times = {kind: [] for kind in places}
        with contextlib.ExitStack() as stack:
            opened = {kind: stack.enter_context(http.connection(node.port)) for kind, node in places.items()}
            for number in range(100):
                for kind in sorted(places, reverse=number % 2 == 1):
                    name = f"/nodelay/{kind}/{number}.mp4"
                    content(name, SIZE)  # the upstream has it in memory
                    began = time.monotonic()
                    reply = http.exchange(opened[kind], "GET", f"/o/media{name}", {"Range": "bytes=0-0"})
                    times[kind].append(time.monotonic() - began)
                    part(reply.status == 206 and reply.body == body(name, 0, 1), f"{kind} answered {name} with {reply}")
        for peer in places["asking"].get("/v1/fleet")["peers"]:
            part.equal((peer["state"], peer["requests"]["miss"]), ("ok", 100), f"the state of {peer['url']}, which was asked")
        medians = {kind: statistics.median(values) * 1000 for kind, values in times.items()}
        added = medians["asking"] - medians["lonely"]
        part.note(
            f"median first byte: {medians['lonely']:.1f} ms without nodes, {medians['asking']:.1f} ms with two, "
            f"difference {added:.1f} ms")
        part(added <= 20, f"two nodes add {added:.1f} ms to the median first byte")
        for node in places.values():
            node.stop()

    def itself(self, part):
        """The URL of a node in its own list is recognised."""
        self.read(part, 1, "/self.mp4")
        document = self.nodes[1].get("/v1/fleet")
        states = {peer["url"]: peer["state"] for peer in document["peers"]}
        part.equal(states.pop(self.nodes[1].url), "self", "the state of its own URL")
        part("self" not in states.values(), f"the states of other nodes are {states}")
        part.equal((document["state"], document["acceptsPeers"]), ("ready", True), "the state of the node")

    def restart(self, part):
        """After a kill and a start, the bytes on disk are shared after a check."""
        name = "/restart.mp4"
        self.read(part, 1, name)
        part.eventually(lambda: self.nodes[1].get("/v1/stats")["store"]["uncommittedBytes"] == 0, "no commit")
        self.nodes[1].kill()
        self.nodes[1].start()
        path = next(path for path in self.nodes[1].store.rglob(f"*{identifier(name)[:8]}*") if path.is_file())
        with open(path, "r+b") as file:  # damage the second half
            file.seek(SIZE - 100)
            file.write(b"\0" * 50)
        part.eventually(lambda: self.read_unknown(2) and self.aside(2, 1) == "ok", "node 1 is not asked again", 15, 0.5)
        self.read(part, 2, name)
        part(self.upstream.sent(name) < SIZE + SIZE // 2, f"the upstream sent {self.upstream.sent(name)} bytes")

    def aside(self, number, other):
        peers = {peer["url"]: peer["state"] for peer in self.nodes[number].get("/v1/fleet")["peers"]}
        return peers[self.nodes[other].url]

    def leave(self, part):
        """A leaving node is not ready, and others still fetch its bytes; join ends this."""
        name = "/leave.mp4"
        self.read(part, 1, name)
        document = self.nodes[1].call("POST", "/v1/fleet/leave")
        part.equal((document.status, document.json.get("state")), (200, "leaving"), "the answer to leave")
        part.equal(self.nodes[1].send("GET", "/health/ready").status, 503, "the readiness")
        self.read(part, 2, name)
        self.sent(part, name, SIZE, "the number of bytes from the upstream")
        part.equal(self.nodes[1].call("POST", "/v1/fleet/join").json.get("state"), "ready", "the state after join")
        part.equal(self.nodes[1].send("GET", "/health/ready").status, 200, "the readiness after join")

    def gone(self, part):
        """After SIGTERM a node serves others until fleet.leaveTimeout."""
        name = "/gone.mp4"
        self.read(part, 1, name)
        node = self.nodes[1]
        node.dying.set()
        node.process.terminate()
        part.eventually(lambda: node.send("GET", "/health/ready").status == 503, "the node is still ready")
        self.read(part, 3, name)
        self.sent(part, name, SIZE, "the number of bytes from the upstream")
        node.process.terminate()  # a second signal ends the wait
        part.eventually(lambda: not node.is_running, "the second signal does not end the node")
        node.start()

    def many(self, part):
        """Of nine other nodes at most three with the file in their digest are asked."""
        many = Many(self.nodes.program)
        try:
            many.proof(part)
            many.spread(part)
            many.unknown(part)
            many.popular(part)
            many.lost(part)
        finally:
            for node in many.all:
                node.kill()
        part.equal(many.upstream.faults, [], "the list of faults at the upstream")

    def logs(self, part):
        """No key in logs, statistics and documents; the access log names reads of nodes."""
        for node in self.nodes.all:
            text = node.text() + "".join(node.send("GET", path).body.decode() for path in (
                "/v1/stats", "/v1/configuration", "/v1/fleet", "/metrics", "/v1/events?limit=100"))
            for key in (KEY, OLD):
                part(key not in text, f"{node.name} shows a key")
        part("peer" in self.nodes[1].text(), "the access log does not name reads of nodes")


def stamp(text):
    """Seconds of a time of RFC 3339."""
    import datetime

    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def main():
    parser = checks.arguments(__doc__, PARTS)
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    ordinary = [name for name in PARTS if not (options.brief and name in TIMED)]
    results, chosen = checks.Checks("peers"), checks.chosen(PARTS, options.only, ordinary)
    nodes = Nodes(program)
    test = Test(nodes)
    for name in chosen:
        function = getattr(test, "itself" if name == "self" else name)
        with results.part(name, function.__doc__) as part:
            function(part)
    for node in nodes.all:
        node.kill()
    results.equal(nodes.upstream.faults, [], "the list of faults at the upstream")
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
