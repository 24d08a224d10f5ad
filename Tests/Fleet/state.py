#!/usr/bin/env python3
"""Checks the desired state of a fleet: three services with a real etcd apply origins, the policy and purges.

    state.py --larder .build/release/larder
    state.py --larder .build/debug/larder --only purge,down
"""

import concurrent.futures
import hashlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import checks, clock, etcd, process  # noqa: E402
from harness.upstream import Upstream, asset, content  # noqa: E402

import stage  # noqa: E402

SIZE = 300_000
KEY, NEW = "state-key-" + "k" * 32, "state-key-" + "n" * 32
SECRET = "origin-secret-s3cret"
PARTS = (
    "origins", "conditions", "policy", "sealed", "rotation", "purge", "asset", "soft", "plan", "limits", "down", "maker",
    "peers", "lost", "alone", "isolated", "conflict", "names", "joined", "missed", "unreadable", "restored", "cluster", "user",
    "gap", "opening", "storm", "leave", "jobs", "jobChanges", "schedules", "tokens", "jobOwners", "jobLimits", "jobRestart", "jobDeath", "jobLost", "doctor", "speed", "logs",
)  # fmt: skip
#: Parts with another etcd or many nodes: not with --brief.
LONG = ("isolated", "restored", "cluster", "user", "speed", "missed", "storm", "jobLost")


class Files(Upstream):
    """Serves every path as long as fresh content. `version` is part of the content; requests state their fields."""

    def __init__(self):
        self.version, self.gates = 1, {}
        super().__init__()

    def hold(self, name):
        """Holds the responses for a file after their content is chosen; returns the gate, whose `reached` is set then."""
        self.gates[name] = gate = threading.Event()
        gate.reached = threading.Event()
        return gate

    def release(self, gate):
        self.gates = {name: each for name, each in self.gates.items() if each is not gate}
        gate.set()

    def body(self, name):
        return content(f"{name} {self.version}", SIZE)

    def sent_of(self, name):
        """The number of body bytes that were sent of a file."""
        return sum(request.sent for request in list(self.requests) if request.name == name)

    def answer(self, request):
        version, gate = self.version, self.gates.get(request.name)
        whole = asset(
            data=content(f"{request.name} {version}", SIZE), etag=f'"{request.name}-{version}"',
            cache_control="max-age=86400",
        )  # fmt: skip
        if gate is not None:
            gate.reached.set()
            gate.wait(process.LIMIT)
        return whole


class Fleet:
    """Services with one etcd each reaches over a line of its own."""

    def __init__(self, program, place, upstream, count=3, members=1, options=(), name="test", settings=(), cluster=None,
                 has_router=False, environment=None, token=None):  # fmt: skip
        self.program, self.place, self.upstream, self.name = program, pathlib.Path(place), upstream, name
        self.place.mkdir(exist_ok=True)
        self.environment, self.token = environment, token
        self.key = self.place / "keys"
        self.key.write_text(KEY + "\n")
        self.members = cluster or etcd.cluster(self.place, members, options)
        self.settings, self.nodes, self.lines = settings, [], []
        for number in range(1, count + 1):
            self.add(f"n{number}")
        self.router = stage.HAProxy(self.place, [node.port for node in self.nodes]) if has_router else None
        for node in self.nodes:
            node.settings += [f"fleet.router=http://127.0.0.1:{self.router.port}"] if self.router else []
            node.launch()
        for node in self.nodes:
            if not process.wait_until(node.is_ready):
                raise process.NotStarted(f"{node.place.name} is not ready:\n{node.last_words()}")
        wait = lambda: all(len(self.state(node)["nodes"]) == len(self.nodes) for node in self.nodes)  # noqa: E731
        if not process.wait_until(wait):
            raise process.NotStarted("not all nodes of the fleet are listed")
        if self.router:
            self.router.start()

    def add(self, name, *settings, endpoints=None, is_known=True):
        """A service that is not started."""
        lines = [etcd.Line(member.port) for member in self.members]
        place = self.place / name
        place.mkdir(exist_ok=True)
        urls = endpoints or ",".join(line.url for line in lines)
        node = process.Larder(self.program, place, None, level="notice", environment=self.environment, token=self.token, settings=[
            f"fleet.etcd.endpoints={urls}", f"fleet.keyFile={self.key}", f"fleet.node={name}", f"fleet.name={self.name}",
            "fleet.maxLag=5s", "fleet.timeout=2s", *self.settings])  # fmt: skip
        node.settings += [f"fleet.advertise={node.url}", *settings]
        node.lines = lines
        if is_known:
            self.nodes.append(node)
            self.lines.append(lines)
        return node

    def __getitem__(self, number):
        return self.nodes[number - 1]

    @staticmethod
    def state(node):
        """The member `etcd` of the node; empty while it does not listen."""
        try:
            return node.get("/v1/fleet").get("etcd") or {"nodes": []}
        except OSError:
            return {"nodes": []}

    def cut(self, *numbers):
        for number in numbers:
            for line in self.lines[number - 1]:
                line.cut()

    def mend(self, *numbers):
        for number in numbers:
            for line in self.lines[number - 1]:
                line.mend()

    def end(self):
        for each in [*self.nodes, *self.members, *([self.router] if self.router else [])]:
            if each.is_running:
                each.kill()


class Test:
    def __init__(self, program, place):
        self.program, self.place, self.upstream = program, pathlib.Path(place), Files()
        self.fleet, self.routed_fleet = Fleet(program, self.place / "fleet", self.upstream), None
        self.origin = {"baseURL": self.upstream.url, "allowPrivateAddresses": True, "headers": {"X-Key": SECRET}}
        self.fleet[1].call("PUT", "/v1/origins/media", self.origin)
        for node in self.fleet.nodes:
            process.wait_until(lambda node=node: node.call("GET", "/v1/origins/media").status == 200)

    # Tools

    def read(self, part, node, name, origin="media"):
        reply = node.send("GET", f"/o/{origin}/{name}")
        part(reply.status == 200 and reply.body == self.upstream.body(f"/{name}"), f"{node.place.name}: wrong bytes of {name}",
             str(reply))  # fmt: skip

    def fill(self, part, name, nodes=None):
        for node in nodes or self.fleet.nodes:
            self.read(part, node, name)

    def purge(self, node, wait=20, **selection):
        fields = {"Prefer": f"wait={wait}"} if wait else {}
        return node.call("POST", "/v1/purges", selection, fields=fields)

    def applied(self, part, node, number):
        part.eventually(lambda: Fleet.state(node).get("purges", -1) >= number, f"{node.place.name} does not apply {number}")

    # Origins and policy

    def origins(self, part):
        """Origins set, changed and removed at one node are those of all."""
        made = self.fleet[2].call("PUT", "/v1/origins/extra", self.origin)
        part.equal(made.status, 201, "the status of a new origin")
        for node in self.fleet.nodes:
            part.eventually(lambda node=node: node.call("GET", "/v1/origins/extra").status == 200, "a node lacks the origin")
            part.equal(node.call("GET", "/v1/origins/extra").fields.get("etag"), made.fields.get("etag"), "the ETag")
            self.read(part, node, "extra.mp4", "extra")
        changed = self.fleet[3].call("PATCH", "/v1/origins/extra", {"retries": 7}, {"Content-Type": "application/merge-patch+json"})
        part.equal(changed.status, 200, "the status of a change")
        for node in self.fleet.nodes:
            part.eventually(lambda node=node: node.get("/v1/origins/extra").get("retries") == 7, "a node lacks the change")
        part.equal(self.fleet[1].call("DELETE", "/v1/origins/extra").status, 204, "the status of a removal")
        for node in self.fleet.nodes:
            part.eventually(lambda node=node: node.call("GET", "/v1/origins/extra").status == 404, "a node keeps the origin")
        part.equal(self.fleet[1].call("DELETE", "/v1/origins/extra").status, 404, "the status of a second removal")
        self.fleet[1].kill()
        self.fleet[1].start()
        part.equal(self.fleet[1].get("/v1/origins/media").get("baseURL"), self.upstream.url, "the origin after a restart")

    def conditions(self, part):
        """If-Match and If-None-Match compare with the revision of etcd, at each node."""
        tag = self.fleet[1].call("GET", "/v1/origins/media").fields["etag"]
        new = self.fleet[2].call("PUT", "/v1/origins/media", self.origin, {"If-Match": tag})
        part.equal(new.status, 200, "the status with the present tag")
        for node in self.fleet.nodes:
            part.equal(node.call("PUT", "/v1/origins/media", self.origin, {"If-Match": tag}).status, 412, "that with an old one")
            refused = node.call("PUT", "/v1/origins/media", self.origin, {"If-None-Match": "*"})
            part.equal(refused.status, 412, "the status of a second creation")

    def policy(self, part):
        """The policy set at one node is that of all, and of a restarted one."""
        set_at = self.fleet[3].call("PATCH", "/v1/policy", {"capacityBytes": 1 << 30}, {"Content-Type": "application/merge-patch+json"})
        part.equal(set_at.status, 200, "the status")
        for node in self.fleet.nodes:
            part.eventually(lambda node=node: node.get("/v1/policy").get("capacityBytes") == 1 << 30, "a node lacks the policy")
            part.equal(node.call("GET", "/v1/policy").fields.get("etag"), set_at.fields.get("etag"), "the ETag")
        self.fleet[2].stop()
        self.fleet[2].start()
        part.equal(self.fleet[2].get("/v1/policy").get("capacityBytes"), 1 << 30, "the capacity after a restart")

    def sealed(self, part):
        """etcd has no secret of an origin."""
        entries = self.fleet.members[0].entries("/larder/")
        part("/larder/test/state/origins/media" in entries, f"the origin is not in etcd: {sorted(entries)}")
        part(all(SECRET.encode() not in value for value in entries.values()), "etcd has the header of an origin")
        part(all(self.upstream.url.encode() not in value for value in entries.values()), "etcd has the URL of an origin")

    def rotation(self, part):
        """A node without the key names the origin, and applies purges; the key is changed without a gap."""
        node = self.fleet[3]
        other = self.fleet.place / "other-keys"
        other.write_text(NEW + "\n")
        own = f"fleet.keyFile={self.fleet.key}"
        node.stop()
        node.settings[node.settings.index(own)] = f"fleet.keyFile={other}"
        self.fleet[1].call("PUT", "/v1/origins/late", self.origin)
        node.start()
        part.eventually(lambda: [each["name"] for each in Fleet.state(node)["origins"]] == ["late"], "no fault of the origin")
        done = self.purge(self.fleet[1], prefix="/o/media/none/")
        part.equal(done.json.get("fleet", {}).get("pending"), [], "the list of nodes that lack the purge")
        other.write_text(f"{NEW}\n{KEY}\n")
        node.call("POST", "/v1/configuration/reload")
        part.eventually(lambda: node.call("GET", "/v1/origins/late").status == 200, "the key of the reload opens nothing")
        part.equal(Fleet.state(node)["origins"], [], "the list of faults")
        node.stop()
        node.settings[node.settings.index(f"fleet.keyFile={other}")] = own
        node.start()
        self.fleet[1].call("DELETE", "/v1/origins/late")

    # Purges

    def purge_part(self, part):
        """After a purge that is complete no node serves a purged byte."""
        for name in ("p/a.mp4", "p/b.mp4", "q/c.mp4"):
            self.fill(part, name)
        self.upstream.version += 1
        done = self.purge(self.fleet[2], prefix="/o/media/p/")
        fleet = done.json.get("fleet", {})
        part.equal((done.status, fleet.get("complete"), fleet.get("pending")), (200, True, []), "the answer to the purge")
        part.equal(fleet.get("appliedBy"), ["n1", "n2", "n3"], "the list of nodes")
        for name in ("p/a.mp4", "p/b.mp4"):
            self.fill(part, name)
        self.upstream.version -= 1
        self.fill(part, "q/c.mp4")
        self.upstream.version += 1
        state = self.fleet[1].call("GET", f"/v1/fleet/purges/{fleet.get('number')}")
        part.equal((state.status, state.json.get("complete")), (200, True), "the state at another node")
        part.equal(self.fleet[1].call("GET", "/v1/fleet/purges/99999").status, 404, "that of an unknown purge")
        part.equal(self.fleet[1].call("GET", "/v1/fleet/purges/x").status, 422, "that of no number")
        part("fleet" not in self.purge(self.fleet[1], prefix="/o/media/", dryRun=True).json, "a dry run reaches the fleet")

    def asset(self, part):
        """The deletion of an asset reaches all nodes, also from one that does not know it."""
        self.fill(part, "one.mp4", self.fleet.nodes[:2])
        asset = self.fleet[1].get("/v1/assets?prefix=/o/media/one.mp4")["items"][0]["assetId"]
        self.upstream.version += 1
        gone = self.fleet[3].call("DELETE", f"/v1/assets/{asset}", fields={"Prefer": "wait=20"})
        part.equal(gone.status, 204, "the status")
        self.fill(part, "one.mp4")
        self.fleet.cut(2)
        later = self.fleet[1].call("DELETE", f"/v1/assets/{asset}")
        part.equal((later.status, "n2" in later.json.get("pending", [])), (202, True), "the answer while a node lacks it")
        self.fleet.mend(2)
        self.applied(part, self.fleet[2], later.json.get("number", 1))

    def soft(self, part):
        """A soft purge makes assets stale at all nodes: the bytes stay, and the upstream confirms them."""
        self.fill(part, "soft.mp4")
        before = len(self.upstream.requests)
        done = self.purge(self.fleet[1], prefix="/o/media/soft", soft=True)
        part.equal(done.json.get("fleet", {}).get("complete"), True, "the completion")
        self.fill(part, "soft.mp4")
        asked = self.upstream.requests[before:]
        part(len(asked) == 3 and all(request.get("If-None-Match") for request in asked),
             f"the upstream got {[(request.method, request.get('If-None-Match')) for request in asked]}")  # fmt: skip

    def plan(self, part):
        """A commit of a dry run reaches what its request selects at the other nodes."""
        self.fill(part, "plan/a.mp4", self.fleet.nodes[:1])
        self.fill(part, "plan/b.mp4", self.fleet.nodes[1:])
        planned = self.purge(self.fleet[1], prefix="/o/media/plan/", dryRun=True).json
        self.upstream.version += 1
        done = self.fleet[1].call("POST", f"/v1/purges/{planned['planId']}/commit", fields={"Prefer": "wait=20"})
        part.equal((done.status, done.json.get("fleet", {}).get("complete")), (200, True), "the answer to the commit")
        for name in ("plan/a.mp4", "plan/b.mp4"):
            self.fill(part, name)

    def limits(self, part):
        """A request that is refused at a node reaches no other one; a purge of the fleet has a largest size."""
        before = Fleet.state(self.fleet[1])["purges"]
        part.equal(self.purge(self.fleet[1], wait=0).status, 422, "the status without a condition")
        large = self.fleet[1].call("POST", "/v1/purges", {"keys": [f"/o/media/{number:0200}" for number in range(3000)]})
        part.equal(large.status, 413, "the status of a large purge")
        part.equal(Fleet.state(self.fleet[1])["purges"], before, "the number of purges")

    def down(self, part):
        """A node that was killed during a purge applies it before it is ready."""
        self.fill(part, "down.mp4")
        self.written(part, self.fleet[3])
        self.fleet[3].kill()
        self.upstream.version += 1
        done = self.purge(self.fleet[1], wait=1, prefix="/o/media/down").json.get("fleet", {})
        part.equal(done.get("complete"), False, "the completion while a node is down")
        part.equal(done.get("pending"), ["n3"], "the list of nodes that lack it")
        self.fleet[3].start()
        self.read(part, self.fleet[3], "down.mp4")
        state = self.fleet[1].call("GET", f"/v1/fleet/purges/{done.get('number')}", fields={"Prefer": "wait=20"}).json
        part.equal(state.get("complete"), True, "the completion after its return")

    def maker(self, part):
        """A purge survives the node that has made it."""
        self.fill(part, "maker.mp4")
        self.upstream.version += 1
        done = self.purge(self.fleet[2], wait=0, prefix="/o/media/maker").json["fleet"]
        self.fleet[2].kill()
        self.applied(part, self.fleet[1], done["number"])
        self.applied(part, self.fleet[3], done["number"])
        self.fleet[2].start()
        self.fill(part, "maker.mp4")

    def peers(self, part):
        """Copies of a node that lacks a purge are not taken."""
        name = "peers.mp4"
        self.fill(part, name)
        self.fleet.cut(3)
        self.upstream.version += 1
        done = self.purge(self.fleet[1], wait=1, prefix="/o/media/peers").json["fleet"]
        part.equal(done["pending"], ["n3"], "the list of nodes that lack it")
        hits = self.hits(self.fleet[1])
        self.fill(part, name, self.fleet.nodes[:2])
        part.equal(self.hits(self.fleet[1]), hits, "the number of bytes taken from the node")
        self.fleet.mend(3)
        self.applied(part, self.fleet[3], done["number"])
        self.read(part, self.fleet[3], name)
        # A fleet whose nodes have applied all purges shares bytes.
        before = self.upstream.sent_of("/shared.mp4")
        self.fill(part, "shared.mp4")
        part.equal(self.upstream.sent_of("/shared.mp4") - before, SIZE, "the number of bytes from the upstream")

    @staticmethod
    def hits(node):
        return node.get("/v1/stats")["bytes"]["fromPeers"]

    # Contact

    def lost(self, part):
        """Without etcd reads go on, changes are refused, and all nodes stay ready."""
        self.fill(part, "lost.mp4")
        member = self.fleet.members[0]
        member.kill()
        for node in self.fleet.nodes:
            part.eventually(lambda node=node: Fleet.state(node).get("state") == "lost", "the loss is not noticed")
            for method, path, value in (
                ("PUT", "/v1/origins/x", self.origin), ("POST", "/v1/jobs", self.order("lost", 1)), ("PATCH", "/v1/policy", {"graceSeconds": 1}),
                ("POST", "/v1/purges", {"prefix": "/o/media/"}), ("DELETE", "/v1/origins/media", None),
            ):  # fmt: skip
                kind = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
                reply = node.call(method, path, value, kind)
                part.equal((reply.status, reply.code), (503, "fleetUnavailable"), f"the answer to {method} {path}")
            self.read(part, node, "lost.mp4")
        for node in self.fleet.nodes:
            part.eventually(lambda node=node: Fleet.state(node)["lagSeconds"] > 9, "the lag does not grow", 40)
            part(node.is_ready(), "a node is not ready although no node reaches etcd")
        member.start()
        for node in self.fleet.nodes:
            part.eventually(lambda node=node: Fleet.state(node).get("state") == "reached", "etcd is not found again")
        part.equal(self.purge(self.fleet[1], prefix="/o/media/lost").json.get("fleet", {}).get("complete"), True, "a purge")

    def alone(self, part):
        """A node that alone does not reach etcd is not ready until it has caught up."""
        self.fill(part, "alone.mp4")
        self.fleet.cut(2)
        part.eventually(lambda: not self.fleet[2].is_ready(), "the node stays ready", 60)
        part("Other nodes reach etcd" in (Fleet.state(self.fleet[2]).get("fault") or ""), "no reason is given")
        part(self.fleet[1].is_ready() and self.fleet[3].is_ready(), "another node is not ready")
        self.read(part, self.fleet[2], "alone.mp4")
        self.upstream.version += 1
        done = self.purge(self.fleet[1], wait=50, prefix="/o/media/alone").json["fleet"]
        part.equal(done["appliedBy"], ["n1", "n3"], "the nodes of a purge after the lease has ended")
        part(done["complete"], "the purge waits for a node whose lease has ended")
        self.fleet.mend(2)
        part.eventually(self.fleet[2].is_ready, "the node does not return")
        self.read(part, self.fleet[2], "alone.mp4")

    def isolated(self, part):
        """A node that reaches neither etcd nor another node decides by fleet.catchUp."""
        for rule, is_ready in (("require", False), ("serve", True)):
            line = etcd.Line(self.fleet.members[0].port)
            line.cut()
            node = self.fleet.add(f"isolated-{rule}", f"fleet.catchUp={rule}", endpoints=line.url, is_known=False)
            node.launch()
            part.eventually(lambda: Fleet.state(node).get("lastError"), "the node does not serve its state")
            if is_ready:
                part.eventually(node.is_ready, "the node is not ready with catchUp: serve", 60)
            else:
                part.eventually(lambda: "Neither etcd" in (Fleet.state(node).get("fault") or ""), "no reason is given", 60)
                part(not node.is_ready(), "the node is ready with catchUp: require")
            node.kill()

    # Faults

    def conflict(self, part):
        """What the configuration of a node defines stays as it is there."""
        own = ["origins.both.baseURL=http://127.0.0.1:1", "origins.both.allowPrivateAddresses=true"]
        node = self.fleet[3]
        node.stop()
        node.settings += own
        node.start()
        reply = node.call("PUT", "/v1/origins/both", self.origin)
        part.equal((reply.status, reply.code), (409, "fleetConflict"), "the answer at the node")
        part.equal(self.fleet[1].call("PUT", "/v1/origins/both", self.origin).status, 201, "the status at another node")
        part.eventually(lambda: [each["name"] for each in Fleet.state(node)["origins"]] == ["both"], "no fault is shown")
        part.equal(node.get("/v1/origins/both").get("baseURL"), "http://127.0.0.1:1", "the definition in force")
        part("cannot be used on this node" in node.text(), "the log does not name the origin")
        self.fleet[1].call("DELETE", "/v1/origins/both")
        part.eventually(lambda: Fleet.state(node)["origins"] == [], "the fault stays")
        part.equal(node.get("/v1/origins/both").get("baseURL"), "http://127.0.0.1:1", "the definition after the removal")
        node.stop()
        node.settings = node.settings[: -len(own)]
        node.start()

    def names(self, part):
        """Of two nodes with one name the second is not ready; a restarted node keeps its name."""
        twin = self.fleet.add("twin", "fleet.node=n1", is_known=False)
        twin.launch()
        part.eventually(lambda: "fleet.node" in (Fleet.state(twin).get("fault") or ""), "no remedy is shown")
        part(not twin.is_ready(), "the second node is ready")
        part("fleet.node" in twin.text(), "the log does not name the remedy")
        part(self.fleet[1].is_ready(), "the first node is not ready")
        twin.kill()
        self.fleet[1].kill()
        began = time.monotonic()
        self.fleet[1].start()
        part(time.monotonic() - began < 15, "the node waits for its own lease")

    def joined(self, part):
        """A node with content from before its entry has the upstream confirm it."""
        node = self.fleet.add("joined", is_known=False)
        alone = [setting for setting in node.settings if not setting.startswith("fleet.")]
        both, node.settings = node.settings, [*alone, *process.origin("media", self.upstream.url)]
        node.start()
        self.read(part, node, "joined.mp4")
        node.stop()
        node.settings = both
        node.start()
        before = len(self.upstream.requests)
        self.read(part, node, "joined.mp4")
        asked = self.upstream.requests[before:]
        part(len(asked) == 1 and asked[0].get("If-None-Match"), f"{len(asked)} requests to the upstream")
        node.stop()
        part.eventually(lambda: all(each["name"] != "joined" for each in Fleet.state(self.fleet[1])["nodes"]), "its lease stays", 8)

    def missed(self, part):
        """A node that was away for longer than purges are kept has the upstream confirm all content."""
        self.fill(part, "missed.mp4")
        self.written(part, self.fleet[3])
        self.fleet[3].kill()
        for _ in range(2):
            number = self.purge(self.fleet[1], wait=0, prefix="/o/media/missed").json["fleet"]["number"]
        self.upstream.version += 1
        self.fleet.members[0].control("del", f"/larder/test/state/purges/{number - 1:019}")
        self.fleet[3].start()
        self.read(part, self.fleet[3], "missed.mp4")
        part("was away for longer" in self.fleet[3].text(), "the log does not say so")
        self.applied(part, self.fleet[3], number)

    def gap(self, part):
        """A purge that is missing between others is noticed."""
        self.fill(part, "gap.mp4")
        self.written(part, self.fleet[3])
        self.fleet[3].kill()
        self.upstream.version += 1
        numbers = [
            self.purge(self.fleet[1], wait=0, prefix=f"/o/media/{name}").json["fleet"]["number"] for name in ("a", "gap", "b")
        ]
        self.fleet.members[0].control("del", f"/larder/test/state/purges/{numbers[1]:019}")
        self.fleet[3].start()
        self.read(part, self.fleet[3], "gap.mp4")
        part("do not continue" in self.fleet[3].text(), "the log does not say so")
        self.applied(part, self.fleet[3], numbers[2])

    @staticmethod
    def written(part, node):
        """Waits until a kill loses nothing."""
        part.eventually(lambda: node.get("/v1/stats")["store"]["uncommittedBytes"] == 0, "bytes are not committed")

    def opening(self, part):
        """A response from before a purge that arrives after it is confirmed before its next use."""
        gate = self.upstream.hold("/opening.mp4")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            old = self.upstream.body("/opening.mp4")
            first = pool.submit(self.fleet[1].send, "GET", "/o/media/opening.mp4")
            part(gate.reached.wait(process.LIMIT), "no request")
            self.upstream.version += 1
            done = self.purge(self.fleet[2], prefix="/o/media/opening").json.get("fleet", {})
            part.equal(done.get("complete"), True, "the completion")
            self.upstream.release(gate)
            part.equal(first.result().body, old, "the response to the reader that was waiting")
        self.fill(part, "opening.mp4")

    def storm(self, part):
        """Readers at all nodes during purges: no read that begins after a complete purge gets an older version."""
        names, wrong, stop = [f"storm/{number}.mp4" for number in range(3)], [], threading.Event()
        floor = [self.upstream.version]

        def reader(node):
            while not stop.is_set():
                for name in names:
                    least = floor[0]
                    reply = node.send("GET", f"/o/media/{name}")
                    if reply.status != 200 or not reply.is_complete:
                        continue  # a purge has ended the read
                    bodies = {content(f"/{name} {version}", SIZE): version for version in range(1, self.upstream.version + 1)}
                    version = bodies.get(reply.body, 0)
                    if version < least:
                        wrong.append((node.place.name, name, version, least, reply.fields.get("cache-status")))

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            readers = [pool.submit(reader, node) for node in self.fleet.nodes * 2]
            for _ in range(12):
                self.upstream.version += 1
                version = self.upstream.version
                done = self.purge(self.fleet[1], wait=30, prefix="/o/media/storm/").json.get("fleet", {})
                part(done.get("complete"), f"a purge is not complete: {done}")
                floor[0] = version
            stop.set()
            for each in readers:
                each.result()
        part.equal(wrong[:5], [], f"the list of {len(wrong)} reads of an older version")

    def unreadable(self, part):
        """A purge and an origin of another version stop nothing."""
        member, node = self.fleet.members[0], self.fleet[2]
        self.fill(part, "unreadable.mp4")
        last = int(member.entries("/larder/test/state/purge")["/larder/test/state/purge"].split()[0])
        member.control("put", f"/larder/test/state/purges/{last + 1:019}", '{"request": {"moon": 1}, "at": "2026-01-01T00:00:00Z"}')
        member.control("put", "/larder/test/state/purge", f"{last + 1} strange")
        member.control("put", "/larder/test/state/origins/odd", "garbage")
        self.upstream.version += 1
        self.applied(part, node, last + 1)
        part.eventually(lambda: [each["name"] for each in Fleet.state(node)["origins"]] == ["odd"], "no fault of the origin")
        self.read(part, node, "unreadable.mp4")
        member.control("put", "/larder/test/nodes/strange", "no document")
        part.equal(self.purge(self.fleet[1], prefix="/o/media/x").json.get("fleet", {}).get("complete"), True, "a purge after it")
        member.control("del", "/larder/test/nodes/strange")
        member.control("del", "/larder/test/state/origins/odd")
        part.eventually(lambda: Fleet.state(node)["origins"] == [], "the fault stays")
        part(node.is_ready(), "the node is not ready")

    def restored(self, part):
        """An etcd without data, and one that is no etcd."""
        fleet = Fleet(self.program, self.place / "restored", self.upstream, count=2, name="other")
        fleet[1].call("PUT", "/v1/origins/media", self.origin)
        part.eventually(lambda: fleet[2].call("GET", "/v1/origins/media").status == 200, "a node lacks the origin")
        self.fill(part, "restored.mp4", fleet.nodes)
        for _ in range(3):
            self.purge(fleet[1], prefix="/o/media/none")
        fleet.members[0].kill()
        fleet.members[0].forget()
        fleet.members[0].start()
        part.eventually(lambda: Fleet.state(fleet[2])["purges"] == 0 and Fleet.state(fleet[2])["state"] == "reached", "no new begin", 40)
        self.upstream.version += 1
        part.eventually(lambda: "is another one" in fleet[2].text(), "the log does not say so")
        self.fill(part, "kept.mp4", fleet.nodes)  # the origin that etcd has lost stays mounted
        fleet[1].call("PUT", "/v1/origins/media", self.origin)
        part.equal(self.purge(fleet[1], prefix="/o/media/").json.get("fleet", {}).get("number"), 1, "the number of a purge")
        self.fill(part, "restored.mp4", fleet.nodes)
        # As many purges as before, and more, are other ones.
        number = Fleet.state(fleet[2])["purges"]
        fleet[2].kill()
        fleet.members[0].kill()
        fleet.members[0].forget()
        fleet.members[0].start()
        part.eventually(lambda: Fleet.state(fleet[1])["purges"] == 0, "no new begin", 40)
        fleet[1].call("PUT", "/v1/origins/media", self.origin)
        self.upstream.version += 1
        for _ in range(number + 2):
            self.purge(fleet[1], wait=0, prefix="/o/media/restored")
        fleet[2].start()
        self.fill(part, "restored.mp4", fleet.nodes)
        part(fleet[2].text().count("is another one") == 2, "the log does not say so twice")
        wrong = fleet.add("wrong", endpoints=self.upstream.url, is_known=False)
        wrong.launch()
        part.eventually(lambda: "etcd" in (Fleet.state(wrong).get("lastError") or ""), "the wrong endpoint is not named")
        part(not wrong.is_ready(), "a node with a wrong endpoint is ready")
        wrong.kill()
        fleet.end()

    def cluster(self, part):
        """With three members one may fail, also the leader."""
        fleet = Fleet(self.program, self.place / "cluster", self.upstream, count=2, members=3)
        fleet[1].call("PUT", "/v1/origins/media", self.origin)
        for member in fleet.members:
            member.kill()
            done = process.wait_until(lambda: self.purge(fleet[2], prefix="/o/media/").json.get("fleet", {}).get("complete"), 40)
            part(done, f"no purge without {member.name}")
            part(all(node.is_ready() for node in fleet.nodes), "a node is not ready")
            member.start()
        fleet.end()

    def user(self, part):
        """etcd with users: a wrong password is named and not shown, a token that etcd forgets is renewed."""
        fleet = Fleet(self.program, self.place / "user", self.upstream, count=1)
        member, file = fleet.members[0], self.place / "user" / "user"
        member.control("user", "add", "root:rootpassword")
        member.control("user", "grant-role", "root", "root")
        member.control("user", "add", "larder:correct-password")
        member.control("role", "add", "larder")
        member.control("role", "grant-permission", "larder", "--prefix=true", "readwrite", "/larder/test/")
        member.control("user", "grant-role", "larder", "larder")
        member.control("auth", "enable")
        node = fleet[1]
        part.eventually(lambda: Fleet.state(node)["state"] == "lost", "access without a user goes on")
        node.stop()
        node.settings += [f"fleet.etcd.credentialsFile={file}"]
        file.write_text("larder:wrong-password\n")
        node.launch()
        part.eventually(lambda: "larder" in (Fleet.state(node).get("lastError") or ""), "the refused user is not named")
        part("wrong-password" not in node.text() + json.dumps(Fleet.state(node)), "the password is shown")
        node.kill()
        file.write_text("larder:correct-password\n")
        node.start()
        part.equal(self.purge(node, prefix="/o/media/").json.get("fleet", {}).get("complete"), True, "a purge")
        member.kill()
        member.launch()
        done = process.wait_until(lambda: self.purge(node, prefix="/o/media/").json.get("fleet", {}).get("complete"), 40)
        part(done, "the token is not renewed after a restart of etcd")
        fleet.end()

    def leave(self, part):
        """A stopped node leaves at once: no purge waits for it."""
        self.fleet[3].stop()
        nodes = lambda: [each["name"] for each in Fleet.state(self.fleet[1])["nodes"]]  # noqa: E731
        part.eventually(lambda: nodes() == ["n1", "n2"], "the node is still listed", 8)
        done = self.purge(self.fleet[1], prefix="/o/media/").json.get("fleet", {})
        part.equal((done.get("complete"), done.get("appliedBy")), (True, ["n1", "n2"]), "the purge")
        self.fleet[3].start()
        part.eventually(lambda: nodes() == ["n1", "n2", "n3"], "the node does not return")

    # Jobs

    @staticmethod
    def order(name, count, **limits):
        """A request for the files `NAME/0.mp4` and so on."""
        items = [{"origin": "media", "path": f"{name}/{number}.mp4"} for number in range(count)]
        return {"items": items, "label": name, **limits}

    def job(self, part, node, name, count, fields=None, **limits):
        """A job that was accepted by a node."""
        made = node.call("POST", "/v1/jobs", self.order(name, count, **limits), fields or {})
        part.equal(made.status, 202, "the status of a new job")
        return made.json

    @staticmethod
    def done(part, node, job, limit=60):
        """Waits for the end of a job, as a node tells it; returns its document."""
        def find():
            found = node.call("GET", f"/v1/jobs/{job}")
            return found.json if found.status == 200 and found.json["finishedAt"] else None
        part.eventually(find, "the job does not end", limit)
        return find() or node.call("GET", f"/v1/jobs/{job}").json

    def jobs(self, part):
        """A job is a job of all nodes: each shows it with its node, its items and its events; etcd has none of its URLs."""
        first, second, third = self.fleet.nodes
        job = self.job(part, first, "jobs", 12, {"Idempotency-Key": "jobs"})
        part.equal(job["node"], "n1", "the node that runs it")
        again = second.call("POST", "/v1/jobs", self.order("jobs", 12), {"Idempotency-Key": "jobs"})
        part.equal((again.status, again.json["jobId"]), (202, job["jobId"]), "the answer to the same request at another node")
        other = third.call("POST", "/v1/jobs", self.order("jobs", 11), {"Idempotency-Key": "jobs"})
        part.equal((other.status, other.code), (409, "conflict"), "the answer to another request with its key")
        events = third.send("GET", f"/v1/jobs/{job['jobId']}/events").body.decode()
        part("succeeded" in events, "the events at another node do not show the end", events[-500:])
        for node in self.fleet.nodes:
            found = self.done(part, node, job["jobId"])
            counts = [found[name] for name in ("state", "itemsTotal", "itemsDone", "bytesDone")]
            part.equal(counts, ["succeeded", 12, 12, 12 * SIZE], f"the state at {node.place.name}")
            items = node.items(f"/v1/jobs/{job['jobId']}/items")
            part.equal([each["state"] for each in items], ["succeeded"] * 12, f"the items at {node.place.name}")
            listed = [each["jobId"] for each in node.get("/v1/jobs?label=jobs")["items"]]
            part.equal(listed, [job["jobId"]], f"the list at {node.place.name}")
        part.equal(second.call("GET", "/v1/jobs/unknown").status, 404, "the status of an unknown job")
        entries = self.fleet.members[0].entries("/larder/test/jobs/")
        part(entries and all(b"mp4" not in value for value in entries.values()), "etcd has the URL of an item")
        part.equal(sum(self.upstream.sent_of(f"/jobs/{number}.mp4") for number in range(12)), 12 * SIZE, "the upstream bytes")
        names = [self.job(part, node, f"pages{number}", 1)["jobId"] for number, node in enumerate(self.fleet.nodes)]
        found, cursor = [], ""
        while cursor is not None:
            page = third.get(f"/v1/jobs?limit=1{cursor and f'&cursor={cursor}'}")
            found += [each["jobId"] for each in page["items"]]
            cursor = page["nextCursor"]
        part.equal(found[:4], [*reversed(names), job["jobId"]], "the pages of the list")
        for name in names:
            self.done(part, first, name)

    def jobChanges(self, part):
        """A job is cancelled, retried and superseded at nodes that do not run it."""
        first, second, third = self.fleet.nodes
        gate = self.upstream.hold("/change/3.mp4")
        job = self.job(part, first, "change", 5, queue="change")["jobId"]
        part.eventually(lambda: first.get(f"/v1/jobs/{job}")["itemsDone"] == 4, "the other items are not fetched")
        gone = second.call("DELETE", f"/v1/jobs/{job}")
        part.equal((gone.status, gone.json["state"]), (200, "cancelled"), "the answer to the cancellation")
        part.eventually(lambda: first.get(f"/v1/jobs/{job}")["state"] == "cancelled", "its node goes on", 5)
        self.upstream.release(gate)
        again = third.call("POST", f"/v1/jobs/{job}/retry")
        part.equal((again.status, again.json["node"]), (202, "n3"), "the answer to the retry")
        for node in self.fleet.nodes:
            found = self.done(part, node, job)
            part.equal((found["state"], found["itemsDone"]), ("succeeded", 5), f"the state at {node.place.name}")
        part.equal(second.call("POST", f"/v1/jobs/{job}/retry").json["state"], "succeeded", "a retry without effect")
        gate = self.upstream.hold("/former/0.mp4")
        former = self.job(part, first, "former", 1, queue="change")["jobId"]
        later = self.job(part, second, "later", 1, queue="change", supersede=True)["jobId"]
        part.equal(third.get(f"/v1/jobs/{former}")["state"], "cancelled", "the state of a superseded job")
        part.equal(self.done(part, first, later)["state"], "succeeded", "that of the later one")
        self.upstream.release(gate)

    def schedules(self, part):
        """A schedule is one of all nodes: each run is made once, also after the death of a node; etcd has none of its URLs."""
        watch = clock.Clock(self.place, int(time.time()))
        fleet = Fleet(self.program, self.place / "scheduled", self.upstream, 2, name="scheduled", cluster=self.fleet.members,
                      environment=watch.environment)  # fmt: skip
        first, second = fleet.nodes
        first.call("PUT", "/v1/origins/media", self.origin)
        part.eventually(lambda: second.call("GET", "/v1/origins/media").status == 200, "the origin is not at the other node")
        value = {"repeat": "every:1h", "job": self.order("scheduled", 2)}
        made = second.call("PUT", "/v1/schedules/hourly", value)
        part.equal(made.status, 201, "the status of a new schedule")
        last = lambda node: (node.get("/v1/schedules/hourly").get("lastRun") or {}).get("dueAt", "")  # noqa: E731
        jobs = lambda node: node.get("/v1/jobs?label=scheduled")["items"]  # noqa: E731
        part.eventually(lambda: last(first) and last(first) == last(second), "the first run is not seen at both nodes")
        part.equal(len(jobs(first)), 1, "the number of jobs after the first instant")
        for node in fleet.nodes:
            part.equal(self.done(part, node, jobs(node)[0]["jobId"])["state"], "succeeded", f"the job at {node.place.name}")
        part.equal(first.call("PUT", "/v1/schedules/hourly", value, {"If-None-Match": "*"}).status, 412, "a second creation")
        part.equal(first.get("/v1/schedules/hourly")["repeat"], "every:1h", "the schedule at the other node")
        entries = self.fleet.members[0].entries("/larder/scheduled/schedules/")
        part(entries and all(b"mp4" not in value for value in entries.values()), "etcd has the URL of an item")
        before = last(first)
        second.kill()
        watch.set(int(time.time()) + 3601)
        part.eventually(lambda: last(first) != before and len(jobs(first)) == 2, "the other node makes no run", 60)
        second.start()
        part.eventually(lambda: last(second) == last(first), "the node that is back does not see the run")
        watch.set(int(time.time()) + 7202)
        part.eventually(lambda: last(first) == last(second) > before and len(jobs(first)) == 3, "no third run", 60)
        part.equal(len(jobs(second)), 3, "the number of jobs after three instants")
        part.equal(first.call("DELETE", "/v1/schedules/hourly").status, 204, "the deletion")
        part.eventually(lambda: second.call("GET", "/v1/schedules/hourly").status == 404, "the other node keeps it")
        # Its etcd is that of the other parts.
        for node in fleet.nodes:
            node.kill()

    @property
    def routed(self):
        """Nodes behind HAProxy, with the etcd of the others."""
        if not self.routed_fleet:
            fleet = self.routed_fleet = Fleet(
                self.program, self.place / "routed", self.upstream, name="routed", cluster=self.fleet.members, has_router=True
            )
            fleet[1].call("PUT", "/v1/origins/media", self.origin)
            for node in fleet.nodes:
                process.wait_until(lambda node=node: node.call("GET", "/v1/origins/media").status == 200)
        return self.routed_fleet

    def sent(self, name, count):
        return sum(self.upstream.sent_of(f"/{name}/{number}.mp4") for number in range(count))

    def read_routed(self, part, name, count):
        """Reads all files through the router."""
        for number in range(count):
            reply = self.routed.router.read(f"/{name}/{number}.mp4")
            part(reply.status == 200 and reply.body == self.upstream.body(f"/{name}/{number}.mp4"), f"wrong bytes of {number}",
                 str(reply))  # fmt: skip

    def tokens(self, part):
        """A token of the API is one of all nodes, until it is revoked; etcd has neither its digest nor its limits."""
        fleet = Fleet(self.program, self.place / "tokens", self.upstream, 2, name="tokens", cluster=self.fleet.members,
                      token="secret-of-the-administrator")  # fmt: skip
        first, second = fleet.nodes
        first.call("PUT", "/v1/origins/media", {**self.origin, "access": "token"})
        part.eventually(lambda: second.call("GET", "/v1/origins/media").status == 200, "the origin is not at the other node")
        made = first.call("POST", "/v1/tokens", {"id": "player", "scope": "read", "prefixes": ["/o/media/tok/"]})
        part.equal(made.status, 201, "the status of a new token")
        secret = made.json["token"]

        def status(node, name="tok/a.mp4"):
            return node.send("GET", f"/o/media/{name}", {"Authorization": f"Bearer {secret}"}).status

        for node in fleet.nodes:
            part.eventually(lambda node=node: status(node) == 200, "the token is not valid at a node")
            part.equal(status(node, "other.mp4"), 403, "the status outside its limits")
        part.equal(second.call("POST", "/v1/tokens", {"id": "player", "scope": "read"}).status, 409, "a second token of that name")
        entries = self.fleet.members[0].entries("/larder/tokens/state/tokens/")
        digest = hashlib.sha256(secret.encode()).hexdigest().encode()
        part(list(entries) == ["/larder/tokens/state/tokens/player"], f"etcd has {list(entries)}")
        part(all(digest not in value and b"tok/" not in value for value in entries.values()), "etcd has the digest of the token")
        tag = second.call("GET", "/v1/tokens/player").fields["etag"]
        part.equal(tag, made.fields["etag"], "the tag at the other node")
        changed = second.call("PATCH", "/v1/tokens/player", {"prefixes": ["/o/media/new/"]}, {"If-Match": tag})
        part.equal(changed.status, 200, "the status of a change at the other node")
        for node in fleet.nodes:
            part.eventually(lambda node=node: status(node) == 403, "a node keeps the old limits")
        first.kill()
        part.equal(second.call("DELETE", "/v1/tokens/player").status, 204, "the status of the removal")
        part.equal(status(second, "new/a.mp4"), 401, "the status at once after it")
        first.start()
        part.equal(status(first, "new/a.mp4"), 401, "that at a node that was down")
        part.equal([item["id"] for item in first.get("/v1/tokens")["items"]], ["admin"], "the tokens after it")
        # Its etcd is that of the other parts.
        for node in fleet.nodes:
            node.kill()

    def jobOwners(self, part):
        """With a router each item is fetched by the owner of its asset, and only once."""
        fleet, count = self.routed, 40
        job = self.job(part, fleet[2], "owners", count)["jobId"]
        found = self.done(part, fleet[1], job)
        part.equal((found["state"], found["itemsDone"], found["bytesDone"]), ("succeeded", count, count * SIZE), "the job")
        part.equal(self.sent("owners", count), count * SIZE, "the upstream bytes")
        assets = [len(node.get("/v1/assets?prefix=/o/media/owners/&limit=1000")["items"]) for node in fleet.nodes]
        part(sum(assets) == count and min(assets) > 3, f"the nodes have {assets} of the assets")
        self.read_routed(part, "owners", count)
        part.equal(self.sent("owners", count), count * SIZE, "the upstream bytes after reads through the router")

    def jobLimits(self, part):
        """The owner of an item refuses requests that prove no node, and items outside the limits of the job's token."""
        node, asset = self.routed[1], "0" * 32
        item = {"reference": {"origin": "media", "path": "limits/0.mp4"}}
        order = {"item": item, "priority": "normal"}
        path = f"/v1/assets/{asset}/prefetch"
        part.equal(node.call("POST", path, order).status, 401, "the status without a key")
        wrong = node.call("POST", path, order, {"Authorization": f"Bearer {NEW}"})
        part.equal(wrong.status, 401, "the status with another key")
        proof = {"Authorization": f"Bearer {KEY}"}
        for owner, outcome in (({"id": "t", "origins": ["other"]}, "failed"), ({"id": "t", "origins": ["media"]}, "succeeded")):
            reply = node.call("POST", path, {**order, "owner": owner}, proof)
            part.equal(reply.status, 200, f"the status for {owner}")
            last = json.loads(reply.body.decode().splitlines()[-1])
            part.equal(last["outcome"], outcome, f"the outcome for {owner}")
            if outcome == "failed":
                part.equal((last["code"], self.sent("limits", 1)), ("tokenScope", 0), "the error, and the upstream bytes")

    def jobRestart(self, part):
        """A node that is killed and started again goes on with its jobs at once."""
        node, count = self.fleet[2], 40
        job = self.job(part, node, "restart", count, maxBytesPerSecond=3_000_000)["jobId"]
        part.eventually(lambda: self.fleet[1].get(f"/v1/jobs/{job}")["itemsDone"] >= 5, "no progress is stored")
        node.kill()
        before = self.fleet[1].get(f"/v1/jobs/{job}")
        part.equal((before["state"], before["node"]), ("running", "n2"), "the state after the death")
        node.start()
        part.eventually(lambda: self.fleet[1].get(f"/v1/jobs/{job}")["itemsDone"] > before["itemsDone"], "it does not go on", 15)
        found = self.done(part, self.fleet[3], job)
        part.equal((found["state"], found["itemsDone"]), ("succeeded", count), "the state at its end")
        # The node had not committed the last bytes before its death.
        ratio = self.sent("restart", count) / (count * SIZE)
        part(ratio < 1.5, f"the upstream has sent {ratio:.2f} times the bytes of the items")

    def jobDeath(self, part):
        """A job survives the death of its node: another one continues it, and fetches nothing again that others have."""
        fleet, count = self.routed, 60
        job = self.job(part, fleet[1], "death", count, maxBytesPerSecond=3_000_000)["jobId"]
        part.eventually(lambda: fleet[2].get(f"/v1/jobs/{job}")["itemsDone"] >= 10, "no progress is stored")
        fleet[1].kill()
        before = fleet[2].get(f"/v1/jobs/{job}")
        part(10 <= before["itemsDone"] < count, f"the job had {before['itemsDone']} items when its node died")
        found = self.done(part, fleet[3], job, 90)
        part.equal((found["state"], found["itemsDone"]), ("succeeded", count), "the state at its end")
        items = fleet[2].items(f"/v1/jobs/{job}/items")
        part.equal({each["state"] for each in items}, {"succeeded"}, "the states of its items")
        logs = fleet[2].text() + fleet[3].text()
        part("a job of the fleet is continued at this node" in logs, "no node has logged the continuation")
        fleet[1].start()
        part.equal(fleet[1].get(f"/v1/jobs/{job}")["state"], "succeeded", "the state at the node that had died")
        process.wait_until(lambda: all(fleet.router.is_up(number) for number in (1, 2, 3)))
        self.read_routed(part, "death", count)
        ratio = self.sent("death", count) / (count * SIZE)
        part(ratio < 1.2, f"the upstream has sent {ratio:.2f} times the bytes of the items")
        part.note(f"upstream ÷ union {ratio:.3f}")

    def doctor(self, part):
        """`larder doctor` asks each member of etcd, and metrics have the lag of the node."""
        node, user = self.fleet[1], self.place / "doctor-user"
        user.write_text("nobody:no-password\n")
        line = etcd.Line(self.fleet.members[0].port)
        line.cut()

        def examined(*settings):
            flags = [word for setting in settings for word in ("--set", setting)]
            command = [node.program, "doctor", "--online", "--data-directory", self.place / "doctor", *flags]
            done = subprocess.run(list(map(str, command)), env=node.environment, capture_output=True, text=True, timeout=60)
            return done.stdout + done.stderr

        member, own = self.fleet.members[0].url, [f"fleet.keyFile={self.fleet.key}", "fleet.name=test"]
        text = examined(f"fleet.etcd.endpoints={member},{line.url}", *own)
        part(re.search(rf"{re.escape(member)} answers at revision \d+, with [1-9]\d* keys of the fleet", text),
             "the member is not named", text)  # fmt: skip
        part(f"{line.url} does not answer" in text, "the silent member is not named", text)
        text = examined(f"fleet.etcd.endpoints={member}", f"fleet.etcd.credentialsFile={user}", *own)
        part("nobody" in text and "no-password" not in text, "the refused user is not named, or the password is shown", text)
        lag = lambda: float(re.search(r"^larder_fleet_lag_seconds (\S+)$", node.send("GET", "/metrics").body.decode(), re.M)[1])  # noqa: E731
        part(lag() < 4, f"the lag is {lag()}")
        self.fleet.cut(1)
        part.eventually(lambda: lag() > 4, "the lag does not grow")
        self.fleet.mend(1)
        part.eventually(lambda: lag() < 4, "the lag stays")
        alone = process.Larder(self.program, self.place / "doctor", None)
        (self.place / "doctor").mkdir(exist_ok=True)
        with alone:
            part("larder_fleet_lag_seconds " not in alone.send("GET", "/metrics").body.decode(), "a node without etcd has a lag")

    def jobLost(self, part):
        """Without etcd no job is accepted, and a running one goes on; its end is stored when etcd returns."""
        node, member = self.fleet[1], self.fleet.members[0]
        gate = self.upstream.hold("/lost/1.mp4")
        job = self.job(part, node, "lost", 2)["jobId"]
        part.eventually(lambda: node.get(f"/v1/jobs/{job}")["itemsDone"] == 1, "the other item is not fetched")
        member.kill()
        refused = node.call("POST", "/v1/jobs", self.order("refused", 1))
        part.equal((refused.status, refused.code), (503, "fleetUnavailable"), "the answer to a new job")
        self.upstream.release(gate)
        part.eventually(lambda: node.get(f"/v1/jobs/{job}")["state"] == "succeeded", "the job does not go on")
        member.start()
        part.equal(self.done(part, self.fleet[2], job)["state"], "succeeded", "the state at another node")

    def speed(self, part):
        """Time until a purge is complete, and until a new origin is served."""
        times = []
        for _ in range(20):
            began = time.monotonic()
            part(self.purge(self.fleet[1], prefix="/o/media/none").json["fleet"]["complete"], "a purge is not complete")
            times.append((time.monotonic() - began) * 1000)
        part.note(f"purge complete at three nodes: median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms")

    def logs(self, part):
        """No key, password or header of an origin in logs and documents."""
        for node in self.fleet.nodes:
            text = node.text() + "".join(node.send("GET", path).body.decode() for path in (
                "/v1/stats", "/v1/configuration", "/v1/fleet", "/v1/origins", "/metrics", "/v1/events?limit=100"))
            for secret in (KEY, NEW, SECRET, "correct-password"):
                part(secret not in text, f"{node.place.name} shows a secret")


def main():
    parser = checks.arguments(__doc__, PARTS)
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    results = checks.Checks("state")
    chosen = checks.chosen(PARTS, options.only, [name for name in PARTS if not (options.brief and name in LONG)])
    if not process.found("etcd"):
        checks.skip_all("state", "etcd is not installed")
    test = Test(program, checks.directory("state"))
    for name in chosen:
        function = getattr(test, "purge_part" if name == "purge" else name)
        with results.part(name, function.__doc__) as part:
            function(part)
    if test.routed_fleet:
        test.routed_fleet.end()
    test.fleet.end()
    results.equal(test.upstream.faults, [], "the list of faults at the upstream")
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
