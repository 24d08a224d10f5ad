#!/usr/bin/env python3
"""Measures a fleet in network namespaces: three services, three members of etcd, two HAProxies and nginx as the upstream.

    hosts.py --larder .build/release/larder
    hosts.py --larder .build/debug/larder --only kill,apart
    hosts.py --larder .build/debug/larder --brief

Each measured value is a row with its limit. Needs root, for the namespaces; the kernel removes them with all processes
when the program ends. Without --brief, missing Debian packages and Envoy are installed.
"""

import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import checks, namespaces, process, venv  # noqa: E402

PARTS = (
    "agree", "steady", "bounded", "leave", "join", "rolling", "kill", "router", "down", "apart", "etcd", "alone", "leader",
    "quorum", "job", "envoy",
)  # fmt: skip
#: The parts of --brief.
SHORT = ("agree", "bounded", "leave")


def has_envoy():
    """Continues with the Python that has Envoy; False if it cannot be installed."""
    try:
        return venv.enter("fleet", HERE / "requirements.txt", "--brief" not in sys.argv)
    except (OSError, subprocess.CalledProcessError):
        return False


HAS_ENVOY = has_envoy() if __name__ == "__main__" else False

import network  # noqa: E402
from network import LEASE, MAX_LAG, MEMBERS, NODES, SIZE, Hosts, Readers  # noqa: E402

#: Seconds in which routers see a change: two checks, and the time of a check on a slow machine.
CHECK = 6
#: Seconds of a change under etcd without a failure.
QUICK = 10


class Test:
    def __init__(self, hosts, is_brief):
        self.hosts, self.upstream, self.count = hosts, hosts.upstream, 24 if is_brief else 60

    # Tools

    def names(self, prefix, count=None):
        return [f"/{prefix}/{number}.mp4" for number in range(count or self.count)]

    @staticmethod
    def row(part, what, measured, limit, holds):
        """One measured value with its limit."""
        shown = f"{measured:.3f}" if isinstance(measured, float) else str(measured)
        part.check(holds, f"{what} is {shown} instead of {limit}")
        part.note(f"{what:<76} {shown:>9}  {limit:<9} {'ok' if holds else 'FAIL'}")

    def exactly(self, part, what, measured, wanted):
        self.row(part, what, measured, f"= {wanted}", measured == wanted)

    def at_most(self, part, what, measured, limit):
        self.row(part, what, measured, f"≤ {limit:.2f}" if isinstance(limit, float) else f"≤ {limit}", measured <= limit)

    def faults(self, part, what, faults):
        """The number of failed, cut and wrong responses, which must be 0."""
        self.row(part, what, len(faults), "= 0", not faults)
        for fault in faults[:3]:
            part.note(f"    {fault}")

    def ratio(self, part, what, sent, count, limit=None):
        """Upstream bytes ÷ union of the requested ranges: 1.00, or at most a limit. The files of other ratios are named."""
        ratio, what = sent / (count * SIZE), f"upstream bytes ÷ union, {what}"
        if ratio > (limit or 1):
            part.note(f"    more bytes than these files have: {self.upstream.repeated()}")
        if limit is None:
            self.row(part, what, ratio, "= 1.00", ratio == 1)
        else:
            self.at_most(part, what, ratio, limit)

    def first_pass(self, part, prefix, count=None):
        """Reads new files once; returns their names."""
        names = self.names(prefix, count)
        faults = self.hosts.read(names, count=24)
        if faults:
            raise checks.Broken(f"{len(faults)} reads failed: {faults[0]}")
        return names

    def within(self, part, what, condition, seconds):
        """Waits for a condition; a row with the time."""
        began = time.monotonic()
        holds = process.wait_until(condition, seconds)
        self.row(part, what, time.monotonic() - began, f"≤ {seconds} s", bool(holds))

    def owned(self, names, owner):
        """The files whose first choice is a node."""
        choices = self.hosts.first_choices(self.hosts.routers[0], names)
        return [name for name in names if choices[name] == owner]

    def stale(self, part, what, node, old):
        """Reads changed files at one node; a row with the number of reads that are not right."""
        found = [self.hosts.fault(node, name, data) for name, data in old.items()]
        self.faults(part, what, [fault for fault in found if fault])

    def all_well(self):
        """Whether routers, nodes and etcd are as they were at the start."""
        hosts = self.hosts

        def is_well(node):
            return node.is_ready() and len(node.state().get("nodes", [])) == 3 and self.asks(node)

        return all(map(is_well, hosts.nodes)) and all(hosts.are_up(number) for number in (1, 2, 3))

    def asks(self, node):
        """Whether a node asks the others; if it does not, it reads a file that none has."""
        if set(node.others().values()) <= {"ok", "self"}:
            return True
        self.hosts.fault(node, f"/asks/{time.monotonic_ns()}.mp4")
        return False

    # Routing

    def agree(self, part):
        """The two HAProxies agree on the first choice of every asset."""
        names = self.names("agree", 300)
        first, second = (self.hosts.first_choices(router, names) for router in self.hosts.routers)
        self.exactly(part, f"assets of {len(names)} whose first choice differs", sum(first[name] != second[name] for name in names), 0)
        shares = [sum(choice == node for choice in first.values()) / len(names) for node in NODES]
        self.row(part, "smallest share of a node", min(shares), "≥ 0.15", min(shares) >= 0.15)

    def steady(self, part):
        """100 readers without bounded load."""
        self.hosts.route(network.Unbounded)
        self.mixed(part, "steady state", "steady")
        assets = [node.count("/o/media/steady/") for node in self.hosts.nodes]
        self.exactly(part, f"assets at the three nodes {assets}, of {self.count}", sum(assets), self.count)
        self.hosts.route(network.HAProxy)

    def bounded(self, part):
        """100 readers with bounded load at 150 %."""
        before = [node.get("/v1/stats")["bytes"]["fromPeers"] for node in self.hosts.nodes]
        self.mixed(part, "bounded load 150", "bounded")
        copies = [node.count("/o/media/bounded/0.mp4") for node in self.hosts.nodes]
        self.row(part, "nodes that serve the popular file", sum(copies), "≥ 2", sum(copies) >= 2)
        moved = sum(node.get("/v1/stats")["bytes"]["fromPeers"] for node in self.hosts.nodes) - sum(before)
        self.row(part, "MiB that nodes have fetched from each other", moved / (1 << 20), "> 0", moved > 0)

    def mixed(self, part, what, prefix):
        """Readers of new files, half of the time of one of them, twice."""
        names = self.names(prefix)
        order = [name for pair in zip(names, [names[0]] * len(names)) for name in pair] * 2
        self.faults(part, f"failed reads of {len(order)}, {what}", self.hosts.read(order))
        self.ratio(part, f"{what}, first pass", self.upstream.sent(f"/{prefix}/"), len(names))
        sent = self.upstream.sent()
        self.faults(part, f"failed reads of {len(order)} again", self.hosts.read(order))
        self.exactly(part, "bytes of a second pass", self.upstream.sent() - sent, 0)

    # Leaving and joining

    def leave(self, part):
        """A node leaves in order under 100 readers, and returns."""
        names, node = self.first_pass(part, "leave"), self.hosts["n2"]
        mine, sent = self.owned(names, "n2"), self.upstream.sent()
        with Readers(self.hosts, names) as readers:
            self.ended_in_order(part, node, readers, names)
            part(readers.pass_over(), "not all files are read without the node")
            self.exactly(part, f"bytes after the leave of a node with {len(mine)} files", self.upstream.sent() - sent, 0)
            node.start()
            self.within(part, "seconds until the routers see the returned node", lambda: self.hosts.are_up(2), CHECK)
            part(readers.pass_over(), "not all files are read after the return")
        self.exactly(part, "bytes after its return", self.upstream.sent() - sent, 0)
        self.faults(part, f"failed, cut or wrong reads of {readers.total}", readers.failures)

    def ended_in_order(self, part, node, readers, names):
        """Stops a node after other nodes have served all files: the first signal begins the leave, the second one ends it."""
        node.dying.set()
        node.process.terminate()
        number = int(node.name[1])
        self.within(part, f"seconds until the routers see that {node.name} leaves", lambda: self.hosts.are_down(number), CHECK)
        part(readers.pass_over(names), "not all files are read during the leave")
        # The end of the node cuts what others are fetching from it.
        part.eventually(lambda: node.get("/v1/stats")["load"]["reads"]["active"] == 0, "others go on fetching from the node")
        node.process.terminate()
        part.eventually(lambda: not node.is_running, f"{node.name} does not end", 30)

    def join(self, part):
        """A node without content joins under 100 readers."""
        names, node = self.first_pass(part, "join"), self.hosts["n3"]
        mine, sent = self.owned(names, "n3"), self.upstream.sent()
        with Readers(self.hosts, names) as readers:
            self.ended_in_order(part, node, readers, names)
            shutil.rmtree(node.store)
            node.start()
            self.within(part, "seconds until the routers see the new node", lambda: self.hosts.are_up(3), CHECK)
            part(readers.pass_over(), "not all files are read after the join")
        self.exactly(part, f"bytes after the join of an empty node with {len(mine)} files", self.upstream.sent() - sent, 0)
        moved = node.get("/v1/stats")["bytes"]["fromPeers"]
        self.row(part, "files that it has fetched from other nodes", moved // SIZE, "> 0", moved > 0)
        self.faults(part, f"failed, cut or wrong reads of {readers.total}", readers.failures)

    def rolling(self, part):
        """All nodes are restarted one after the other under 100 readers."""
        names = self.first_pass(part, "rolling")
        choices, share = self.hosts.first_choices(self.hosts.routers[0], names), 0
        with Readers(self.hosts, names) as readers:
            for number, node in enumerate(self.hosts.nodes, 1):
                began = time.monotonic()
                self.ended_in_order(part, node, readers, names)
                node.start()
                part.eventually(lambda: self.hosts.are_up(number), f"the routers do not see {node.name}", CHECK)
                share += sum(choices[name] == node.name and readers.begun[name] > began for name in names)
            part(readers.pass_over(), "not all files are read at the end")
        sent = self.upstream.sent("/rolling/")
        self.ratio(part, "rolling restart (1.00 + share read during each)", sent, len(names), 1 + share / len(names))
        # A node that ends while another one fetches from it leaves the rest of this file to the upstream.
        self.ratio(part, "rolling restart with orderly leaves", sent, len(names), 1.05)
        self.faults(part, f"failed, cut or wrong reads of {readers.total}", readers.failures)

    # Deaths

    def kill(self, part):
        """A node is killed while it and others send responses."""
        names, node = self.first_pass(part, "kill"), self.hosts["n1"]
        choices = self.hosts.first_choices(self.hosts.routers[0], names)
        part.eventually(lambda: all(each.is_written() for each in self.hosts.nodes), "the nodes do not commit")
        slow, router = self.names("slow", 24), self.hosts.routers[0]
        for name in slow:
            self.upstream.body(name)
        with concurrent.futures.ThreadPoolExecutor(len(slow)) as pool:
            reads = {name: pool.submit(self.hosts.fault, router, name) for name in slow}
            part.eventually(lambda: self.slow_reads() == len(slow), "not all slow reads are in progress")
            node.kill()
            sent = self.upstream.sent("/kill/")
            self.faults(part, "failed reads of its files directly after the kill",
                        self.hosts.read([name for name in names if choices[name] == node.name], count=8))  # fmt: skip
            faults = {name: read.result() for name, read in reads.items()}
        part.eventually(lambda: len(self.hosts.ends(router, slow)) == len(slow), "the log lacks reads")
        ends = self.hosts.ends(router, slow)
        own = {name for name, (server, _) in ends.items() if server == node.name}
        cut = {name for name, fault in faults.items() if fault}
        self.row(part, f"cut responses of the killed node, of {len(own)}", len(cut & own), f"= {len(own)}", cut & own == own and own)
        self.exactly(part, f"cut responses of the other nodes, of {len(slow) - len(own)}", len(cut - own), 0)
        part.eventually(lambda: self.hosts.are_down(1), "the routers do not see it", CHECK)
        self.faults(part, "failed reads of all files without the node", self.hosts.read(names, count=24))
        mine = sum(choice == node.name for choice in choices.values())
        self.at_most(part, f"files fetched again, of {len(names)} (its share: {mine})",
                     (self.upstream.sent("/kill/") - sent) / SIZE, mine)  # fmt: skip
        node.start()
        part.eventually(self.all_well, "the fleet does not recover", 30)
        sent = self.upstream.sent()
        self.faults(part, "failed reads after its return", self.hosts.read(names, count=24))
        self.exactly(part, "bytes after its return", self.upstream.sent() - sent, 0)

    def slow_reads(self):
        """The number of responses of slow files that the upstream is sending to the nodes."""
        return sum(len(node.items("/v1/fills") or []) for node in self.hosts.nodes)

    def router(self, part):
        """A router is killed; the other one has the same choices."""
        names, (first, second) = self.first_pass(part, "router"), self.hosts.routers
        sent = self.upstream.sent()
        first.kill()
        self.faults(part, "failed reads through the other router", self.hosts.read(names, [second], 24))
        first.socket.unlink(missing_ok=True)
        first.start()
        self.faults(part, "failed reads through both", self.hosts.read(names, count=24))
        self.exactly(part, "bytes fetched again", self.upstream.sent() - sent, 0)

    def down(self, part):
        """A purge while a node is down."""
        names, node = self.first_pass(part, "down"), self.hosts["n3"]
        self.everywhere(part, names)
        part.eventually(node.is_written, "the node does not commit")
        node.kill()
        old = self.upstream.change(names)
        done = self.hosts.purge(self.hosts["n1"], "/down/", wait=1)
        self.row(part, "nodes that lack the purge while the lease lives", ", ".join(done.get("pending", [])), "n3", done.get("pending") == ["n3"])
        node.start()
        self.stale(part, "stale or failed reads at the returned node", node, old)
        state = self.hosts["n2"].call("GET", f"/v1/fleet/purges/{done.get('number')}", fields={"Prefer": "wait=20"}).json
        self.row(part, "complete after its return", state.get("complete"), "True", state.get("complete") is True)
        for each in self.hosts.nodes[:2]:
            self.stale(part, f"stale or failed reads at {each.name}", each, old)

    def everywhere(self, part, names):
        """Reads the files at each node, so that all have copies."""
        for node in self.hosts.nodes:
            faults = [fault for fault in (self.hosts.fault(node, name) for name in names) if fault]
            part(not faults, f"reads at {node.name} failed", faults[:1])

    # Partitions

    def apart(self, part):
        """A node is cut off from the other nodes; routers, etcd and the upstream reach it."""
        names, (first, *others) = self.first_pass(part, "apart"), self.hosts.nodes
        self.everywhere(part, names)
        sent = self.upstream.sent()
        self.hosts.network.cut(["n1"], ["n2", "n3"])
        self.faults(part, "failed reads of cached files", self.hosts.read(names))
        self.exactly(part, "bytes for cached files", self.upstream.sent() - sent, 0)
        new, began = self.names("apart-new", 6), time.monotonic()
        times = []
        for name in new:
            began = time.monotonic()
            part(self.hosts.fault(first, name) is None, f"a read at n1 fails: {name}")
            times.append(time.monotonic() - began)
        times.sort()
        self.at_most(part, "seconds of the slowest new file at the cut node (fleet.timeout 2 s)", times[-1], 4)
        self.at_most(part, "seconds of the median new file", times[len(times) // 2], 1)
        old, began = self.upstream.change(names), time.monotonic()
        done = self.hosts.purge(self.hosts["n2"], "/apart/")
        self.row(part, "seconds until a purge is complete at all three", time.monotonic() - began, f"≤ {QUICK}",
                 done.get("appliedBy") == list(NODES) and time.monotonic() - began <= QUICK)  # fmt: skip
        for node in self.hosts.nodes:
            self.stale(part, f"stale or failed reads at {node.name}", node, old)
        self.hosts.network.mend(["n1"], ["n2", "n3"])
        self.within(part, "seconds until the nodes ask each other again", lambda: self.asks(first) and all(map(self.asks, others)), 30)

    def etcd(self, part):
        """A node is cut off from etcd; routers, nodes and the upstream reach it."""
        names, node = self.first_pass(part, "etcd"), self.hosts["n1"]
        self.everywhere(part, names)
        with Readers(self.hosts, names, 24) as readers:
            self.hosts.network.cut(["n1"], MEMBERS)
            began = time.monotonic()
            self.within(part, "seconds until the node is not ready", lambda: not node.is_ready(), MAX_LAG + 10)
            self.within(part, "seconds until the routers see it", lambda: self.hosts.are_down(1), CHECK)
            self.row(part, "seconds of both, before the lease ends", time.monotonic() - began, f"< {LEASE}", time.monotonic() - began < LEASE)
            part(readers.pass_over(), "not all files are read")
        self.faults(part, f"failed, cut or wrong reads of {readers.total}", readers.failures)
        self.purged_without(part, node, names, lambda: self.hosts.network.mend(["n1"], MEMBERS))

    def purged_without(self, part, node, names, mend):
        """A purge that a silent node lacks is complete when its lease has ended; it serves nothing stale after its return."""
        others = [each for each in self.hosts.nodes if each is not node]
        old, began = self.upstream.change(names), time.monotonic()
        done = self.hosts.purge(others[0], f"/{names[0].split('/')[1]}/", LEASE + 20)
        self.row(part, "nodes of the complete purge", "+".join(done.get("appliedBy", [])), "+".join(each.name for each in others),
                 done.get("complete") is True and done.get("appliedBy") == [each.name for each in others])  # fmt: skip
        self.at_most(part, "seconds until it is complete (the lease)", time.monotonic() - began, LEASE + 10)
        self.faults(part, "stale or failed reads through the routers after complete", self.hosts.read(names, count=24, old=old))
        mend()
        self.within(part, "seconds until the node returns", node.is_ready, 30)
        self.stale(part, "stale or failed reads at the returned node", node, old)
        part.eventually(self.all_well, "the fleet does not recover", 40)

    def alone(self, part):
        """A node is cut off from everything, with responses in progress."""
        names, node = self.first_pass(part, "alone"), self.hosts["n2"]
        self.everywhere(part, names)
        self.hosts.network.hosts["n2"].down()
        began = time.monotonic()
        self.faults(part, "failed reads while the routers do not know it", self.hosts.read(names, count=24))
        self.at_most(part, "seconds of these reads (timeout connect of 2 s, twice)", time.monotonic() - began, 8)
        self.within(part, "seconds until the routers see it", lambda: self.hosts.are_down(2), CHECK)
        self.faults(part, "failed reads afterwards", self.hosts.read(names, count=24))
        self.exactly(part, "ready nodes", sum(each.is_ready() for each in self.hosts.nodes if each is not node), 2)
        self.purged_without(part, node, names, self.hosts.network.hosts["n2"].up)

    def leader(self, part):
        """The leader of etcd is cut off from the other members, then killed."""
        names = self.first_pass(part, "leader", 12)
        self.everywhere(part, names)
        leader = self.hosts.leader()
        name = leader.name.split()[-1]
        others = [member for member in MEMBERS if member != name]
        for what, break_it, mend in (
            ("is cut off", lambda: self.hosts.network.cut([name], others), lambda: self.hosts.network.mend([name], others)),
            ("is killed", leader.kill, leader.start),
        ):
            break_it()
            old, began = self.upstream.change(names), time.monotonic()
            done = process.wait_until(lambda: self.completed("/leader/"), 60)
            self.row(part, f"seconds until a purge is complete, {what}", time.monotonic() - began, "≤ 20",
                     bool(done) and time.monotonic() - began <= 20)  # fmt: skip
            for node in self.hosts.nodes:
                self.stale(part, f"stale or failed reads at {node.name}", node, old)
            self.exactly(part, "ready nodes", sum(node.is_ready() for node in self.hosts.nodes), 3)
            mend()
            part.eventually(self.all_well, "the fleet does not recover", 40)

    def completed(self, prefix):
        """A complete purge, or None."""
        done = self.hosts.purge(self.hosts["n3"], prefix, 20)
        return done if done.get("complete") and done.get("appliedBy") == list(NODES) else None

    def quorum(self, part):
        """No member of etcd reaches another one."""
        names = self.first_pass(part, "quorum", 12)
        self.everywhere(part, names)
        pairs = [(["e1"], ["e2", "e3"]), (["e2"], ["e3"])]
        for some, others in pairs:
            self.hosts.network.cut(some, others)
        self.within(part, "seconds until a change is refused", lambda: self.refused() == (503, "fleetUnavailable"), 30)
        for node in self.hosts.nodes:
            part.eventually(lambda: (node.state().get("lagSeconds") or 0) > MAX_LAG + 4, f"the lag of {node.name} does not grow", 40)
        self.exactly(part, "ready nodes after fleet.maxLag", sum(node.is_ready() for node in self.hosts.nodes), 3)
        self.faults(part, "failed reads", self.hosts.read(names, count=24))
        for some, others in pairs:
            self.hosts.network.mend(some, others)
        old, began = self.upstream.change(names), time.monotonic()
        done = process.wait_until(lambda: self.completed("/quorum/"), 60)
        self.row(part, "seconds until a purge is complete after the return", time.monotonic() - began, "≤ 30",
                 bool(done) and time.monotonic() - began <= 30)  # fmt: skip
        for node in self.hosts.nodes:
            self.stale(part, f"stale or failed reads at {node.name}", node, old)

    def refused(self):
        """Status and code of a change."""
        reply = self.hosts["n1"].call("POST", "/v1/purges", {"prefix": "/o/media/none/"})
        return reply.status, reply.code

    def job(self, part):
        """The node of a job is cut off from etcd and the other nodes; another one continues the job."""
        node, (second, third) = self.hosts["n1"], self.hosts.nodes[1:]
        names = self.names("job", 60)
        for name in names:
            self.upstream.body(name)
        order = {"items": [{"origin": "media", "path": name[1:]} for name in names], "maxBytesPerSecond": 60 * SIZE // 45}
        made = node.call("POST", "/v1/jobs", order)
        part.equal((made.status, made.json.get("node")), (202, "n1"), "the answer to the job")
        job = made.json["jobId"]
        part.eventually(lambda: second.get(f"/v1/jobs/{job}")["itemsDone"] >= 3, "no progress is stored", 30)
        cut = [*MEMBERS, "n2", "n3"]
        self.hosts.network.cut(["n1"], cut)
        began = time.monotonic()
        self.within(part, "seconds until another node has the job (the lease)",
                    lambda: second.get(f"/v1/jobs/{job}")["node"] in ("n2", "n3"), LEASE + 15)  # fmt: skip
        part.eventually(lambda: third.get(f"/v1/jobs/{job}")["state"] == "succeeded", "the job does not end", 90)
        part.note(f"    the job ended {time.monotonic() - began:.0f} s after the partition")
        self.hosts.network.mend(["n1"], cut)
        part.eventually(self.all_well, "the fleet does not recover", 40)
        for each in self.hosts.nodes:
            found = each.get(f"/v1/jobs/{job}")
            self.row(part, f"state and items at {each.name}", f"{found['itemsDone']}", f"= {len(names)}",
                     (found["state"], found["itemsDone"], found["node"] != "n1") == ("succeeded", len(names), True))  # fmt: skip
        self.faults(part, "failed reads of the items", self.hosts.read(names, count=24))
        # Two nodes run the job until the first one learns that it has lost it. Bounded load sends an item that both request
        # to a second node. If this is the cut one, it cannot ask the others: at most for its third of the items.
        self.ratio(part, "the job and reads of its items", self.upstream.sent("/job/"), len(names), 4 / 3)

    def envoy(self, part):
        """100 readers through Envoy with bounded load at 150 %."""
        if not HAS_ENVOY:
            raise checks.Skipped("Envoy cannot be installed")
        self.hosts.route(network.Envoy, "envoy")
        try:
            self.mixed(part, "Envoy, bounded load 150", "envoy")
        finally:
            self.hosts.route(network.HAProxy)


def main():
    parser = checks.arguments(__doc__, PARTS)
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    if not options.brief:
        venv.packages("iproute2", "util-linux", "haproxy", "nginx", "etcd-server", "etcd-client")
    missing = [name for name in ("haproxy", "nginx", "etcd", "etcdctl") if not process.found(name)]
    reason = f"{', '.join(missing)} not installed" if missing else namespaces.obstacle()
    if reason:
        checks.skip_all("hosts", reason)
    namespaces.enter()
    results = checks.Checks("hosts")
    chosen = checks.chosen(PARTS, options.only, SHORT if options.brief else PARTS)
    hosts = Hosts(program)
    test = Test(hosts, options.brief)
    for name in chosen:
        function = getattr(test, name)
        with results.part(name, function.__doc__) as part:
            part.eventually(test.all_well, "the fleet is not well before the part", 60)
            function(part)
    hosts.end()
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
