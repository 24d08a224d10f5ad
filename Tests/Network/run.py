#!/usr/bin/env python3
"""Checks Larder with upstream names whose addresses are silent, refused, moved, slow or mixed, in network namespaces
with a DNS server. Prints the times until the first byte beside those of curl, nginx and HAProxy.

    run.py --larder .build/debug/larder
    run.py --larder .build/debug/larder --only silent,dead
    run.py --larder .build/debug/larder --brief

Needs root, for the namespaces; all namespaces and files are removed at the end.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import bench  # noqa: E402
import programs  # noqa: E402
from harness import checks, process, venv  # noqa: E402
from programs import CONNECT  # noqa: E402

#: A read that waits for no silent address takes far less than this, also on a slow machine.
QUICK = CONNECT / 2
#: Time for the steps of a read besides its wait for an address.
SLACK = CONNECT / 2


class Stage:
    """The bench of one case: a network, a DNS server and a directory. Its upstreams are closed at the end."""

    def __init__(self, program, part, is_brief):
        self.program, self.case, self.is_brief, self.check = program, part.name, is_brief, part.check
        self.upstreams, self.directory = {}, checks.directory("network")

    def __enter__(self):
        self.network = bench.Network(f"larder{os.getpid()}")
        self.dns = bench.DNS(self.network)
        return self

    def __exit__(self, *_):
        for upstream in self.upstreams.values():
            upstream.close()
        self.network.close()

    def upstream(self, address, kind="good", keeps=True):
        self.upstreams[address] = bench.Upstream(self.network, address, kind, keeps)
        return self.upstreams[address]

    def silent(self, *addresses):
        for address in addresses:
            self.network.reach(address)

    def larder(self, origins=None, *settings):
        origins = origins or {"media": "http://media.test"}
        return programs.Larder(self.network, self.program, self.directory, origins, settings)

    def reads(self, larder, paths, is_right=True):
        """Reads the paths one after the other."""
        answers = [larder.read(f"/o/media{path}") for path in paths]
        for path, answer in zip(paths, answers):
            if is_right:
                self.check(answer.status == 200 and answer.body == bench.body(path), f"{path} got {answer.status}")
        return answers

    def show(self, name, answers):
        firsts = [answer.first for answer in answers]
        later = f", then {max(firsts[1:]) * 1000:.0f} ms at most" if firsts[1:] else ""
        counts = " ".join(f"{address}:{one.count}" for address, one in self.upstreams.items())
        statuses = " ".join(str(status) for status in sorted({answer.status for answer in answers}))
        print(f"  {self.case:<22} {name:<8} {firsts[0]:6.3f} s{later}; status {statuses}; requests {counts}", flush=True)

    def compare(self, path):
        """Reads the path with the other programs."""
        self.show("curl", [programs.curl(self.network, "media.test", path) for _ in range(2)])
        for kind in [] if self.is_brief else programs.installed():
            with kind(self.network, self.directory, "media.test") as server:
                self.show(server.title, [server.read(path) for _ in range(2)])


def paths(count, prefix="/asset"):
    return [f"{prefix}-{number}.bin" for number in range(count)]


# MARK: Cases


def cold(stage, limit, count=8):
    """Cold reads of several assets: the first may wait for silent addresses, the others wait for none."""
    with stage.larder() as larder:
        answers = stage.reads(larder, paths(count))
        stage.show("larder", answers)
        stage.check(answers[0].first <= limit, f"the first byte came after {answers[0].first:.2f} s")
        late = max(answer.first for answer in answers[1:])
        stage.check(late <= QUICK, f"a later first byte came after {late:.2f} s")
        resolved = larder.addresses("media")[0]["resolved"]
    stage.compare("/compared.bin")
    return resolved


def silent_one(stage):
    """One of two addresses is silent; connections are not kept, so that each read makes one."""
    stage.silent("10.77.0.2")
    stage.upstream("10.77.0.11", keeps=False)
    stage.dns.records["media.test"] = ["10.77.0.2", "10.77.0.11"]
    resolved = {one["address"]: one for one in cold(stage, CONNECT + SLACK)}
    stage.check(resolved.keys() == {"10.77.0.2", "10.77.0.11"}, f"the addresses are {resolved}")
    stage.check(resolved["10.77.0.11"]["state"] == "healthy", "the good address is not healthy")
    stage.check(resolved["10.77.0.11"]["connectSeconds"] is not None, "the latency is missing")


def silent_two(stage):
    """Two of three addresses are silent."""
    stage.silent("10.77.0.2", "10.77.0.3")
    stage.upstream("10.77.0.11", keeps=False)
    stage.dns.records["media.test"] = ["10.77.0.2", "10.77.0.3", "10.77.0.11"]
    cold(stage, CONNECT + SLACK)


def silent_ipv6(stage):
    """The IPv6 address is silent, the IPv4 address is not."""
    stage.silent("fd77::21")
    stage.upstream("10.77.0.11", keeps=False)
    stage.dns.records["media.test"] = ["fd77::21", "10.77.0.11"]
    cold(stage, CONNECT + SLACK)


def refused(stage):
    """Ports that refuse connections, also over IPv6, cost no time."""
    stage.network.attach("10.77.0.3")
    stage.network.attach("fd77::12")
    stage.upstream("10.77.0.11", keeps=False)
    stage.dns.records["media.test"] = ["fd77::12", "10.77.0.3", "10.77.0.11"]
    cold(stage, CONNECT)


def ipv6_only(stage):
    stage.upstream("fd77::11", keeps=False)
    stage.dns.records["media.test"] = ["fd77::11"]
    cold(stage, CONNECT)


def cname(stage):
    """A chain of aliases whose last name has a silent and a good address."""
    stage.silent("10.77.0.2")
    stage.upstream("10.77.0.11", keeps=False)
    stage.dns.records.update({
        "media.test": ["cname:one.test"], "one.test": ["cname:two.test"], "two.test": ["10.77.0.2", "10.77.0.11"]})
    cold(stage, CONNECT + SLACK)


def slow_dns(stage):
    """A resolver that takes half of the connect timeout delays the first read only."""
    stage.upstream("10.77.0.11", keeps=False)
    stage.dns.records["media.test"] = [f"slow:{CONNECT / 2}", "10.77.0.11"]
    cold(stage, CONNECT + SLACK)


def failing_dns(stage):
    """Names without addresses fail, and work as soon as the resolver has an address."""
    for kind in ("servfail", "nxdomain"):
        stage.dns.records[f"{kind}.test"] = [kind]
    origins = {kind: f"http://{kind}.test" for kind in ("servfail", "nxdomain")}
    stage.upstream("10.77.0.11")
    with stage.larder(origins, "upstream.retries=0") as larder:
        for kind in origins:
            answer = larder.read(f"/o/{kind}/first.bin")
            stage.check(answer.status in (502, 504), f"{kind} gave {answer.status}")
            stage.dns.records[f"{kind}.test"] = ["10.77.0.11"]
            answer = larder.read(f"/o/{kind}/second.bin")
            stage.check(answer.status == 200, f"{kind} gave {answer.status} after its end")
            stage.show("larder", [answer])


def moved_dead(stage):
    """The name moves, and the old address becomes silent: at ten reads per second at most two fail."""
    stage.upstream("10.77.0.11")
    stage.dns.records["media.test"] = ["10.77.0.11"]
    with stage.larder(None, "upstream.workers=1") as larder, concurrent.futures.ThreadPoolExecutor(64) as pool:
        stage.reads(larder, paths(3))
        stage.upstream("10.77.0.12")
        stage.dns.records["media.test"] = ["10.77.0.12"]
        stage.network.detach("10.77.0.11")
        pending = []
        for path in paths(30, "/moved"):
            pending.append(pool.submit(larder.read, f"/o/media{path}"))
            time.sleep(0.1)
        answers = [one.result() for one in pending]
        bad = sum(answer.status != 200 for answer in answers)
        stage.check(bad <= 2, f"{bad} reads failed")
        stage.check(answers[-1].first <= QUICK, f"the last read took {answers[-1].first:.2f} s")
        stage.show("larder", answers)


def moved_alive(stage):
    """The name moves, and the old address still answers: the ages of names and connections end its use."""
    old = stage.upstream("10.77.0.11")
    stage.dns.records["media.test"] = ["10.77.0.11"]
    with stage.larder(None, "upstream.dns.maxAge=1s", "upstream.connectionMaxAge=1s") as larder:
        stage.reads(larder, paths(3))
        new = stage.upstream("10.77.0.12")
        stage.dns.records["media.test"] = ["10.77.0.12"]
        number, deadline = 0, time.monotonic() + 30
        while not new.count and time.monotonic() < deadline:
            stage.reads(larder, [f"/moved-{number}.bin"])
            number += 1
            time.sleep(0.1)
        stage.check(new.count > 0, "the new address got no request")
        before = old.count
        stage.reads(larder, paths(5, "/later"))
        stage.check(old.count == before, "the old address got further requests")


def dead(stage, count):
    """Kept connections that are silently dead cost one connect timeout, however many there are."""
    upstream = stage.upstream("10.77.0.11")
    stage.dns.records["media.test"] = ["10.77.0.11"]
    with stage.larder(None, "upstream.workers=1") as larder, concurrent.futures.ThreadPoolExecutor(count) as pool:
        slow = [f"/slow-0.5-{number}" for number in range(count)]
        list(pool.map(larder.read, [f"/o/media{path}" for path in slow]))
        stage.check(len(upstream.ports) >= count, f"only {len(upstream.ports)} connections are kept")
        stage.network.mute(upstream.ports)
        answers = stage.reads(larder, paths(4))
        stage.show("larder", answers)
        stage.check(answers[0].first <= CONNECT + SLACK, f"the first read took {answers[0].first:.2f} s")
        late = max(answer.first for answer in answers[1:])
        stage.check(late <= QUICK, f"a later read took {late:.2f} s")


def dead_one(stage):
    dead(stage, 1)


def dead_eight(stage):
    dead(stage, 8)


def slow_server(stage):
    """A server that acknowledges the request and answers after the connect timeout is not affected."""
    stage.upstream("10.77.0.11")
    stage.dns.records["media.test"] = ["10.77.0.11"]
    with stage.larder() as larder:
        stage.reads(larder, paths(1))
        stage.reads(larder, [f"/slow-{CONNECT * 2}-a"])
        stage.check(stage.upstreams["10.77.0.11"].connections == 1, "the connection was not kept")


def retried(stage, kind, limit):
    """A retry uses the other address of the name."""
    stage.upstream("10.77.0.2", kind)
    stage.upstream("10.77.0.11", keeps=False)
    stage.dns.records["media.test"] = ["10.77.0.2", "10.77.0.11"]
    cold(stage, limit, count=4)


def retried_reset(stage):
    retried(stage, "reset", CONNECT)


def retried_mute(stage):
    retried(stage, "mute", programs.FIRST_BYTE + CONNECT)


def spread(stage):
    """New connections use each of four addresses."""
    addresses = [f"10.77.0.{number}" for number in range(11, 15)]
    for address in addresses:
        stage.upstream(address, keeps=False)
    stage.dns.records["media.test"] = addresses
    with stage.larder() as larder:
        stage.show("larder", stage.reads(larder, paths(40)))
    fewest = min(stage.upstreams[address].count for address in addresses)
    stage.check(fewest >= 5, f"an address got {fewest} of 40 requests")


def mirror(stage):
    """A silent base URL costs one connect timeout; the mirror is asked until the base URL answers a probe."""
    stage.silent("10.77.0.2")
    stage.upstream("10.77.0.11")
    stage.dns.records.update({"media.test": ["10.77.0.2"], "mirror.test": ["10.77.0.11"]})
    with stage.larder(None, "origins.media.mirrors=http://mirror.test") as larder:
        answers = stage.reads(larder, paths(10))
        stage.show("larder", answers)
        stage.check(answers[0].first <= CONNECT + SLACK, f"the first read took {answers[0].first:.2f} s")
        late = max(answer.first for answer in answers[1:])
        stage.check(late <= QUICK, f"a later read took {late:.2f} s")
        base, number, deadline = stage.upstream("10.77.0.2"), 0, time.monotonic() + 60
        # The first request is the probe.
        while base.count < 2 and time.monotonic() < deadline:
            late = stage.reads(larder, [f"/again-{number}.bin"])[0].first
            stage.check(late <= QUICK, f"a read took {late:.2f} s while the base URL was probed")
            number += 1
            time.sleep(0.1)
        stage.check(base.count >= 2, "the base URL is not used again")


def recovered(stage):
    """A server that is silent at its first probe is probed again, also if no request is made meanwhile."""
    stage.silent("10.77.0.2")
    stage.upstream("10.77.0.11")
    stage.dns.records.update({"media.test": ["10.77.0.2"], "mirror.test": ["10.77.0.11"]})
    with stage.larder(None, "origins.media.mirrors=http://mirror.test") as larder:
        stage.reads(larder, paths(2))

        def failures():
            origin = json.loads(bench.read(stage.network, larder.port, "/v1/origins/media").body)
            return origin["addresses"][0]["resolved"][0]["lastFailure"]["count"]

        stage.check(process.wait_until(lambda: failures() >= 2, 20), "no probe has failed")
        base = stage.upstream("10.77.0.2")
        stage.check(process.wait_until(lambda: base.count, 20), "the address is not probed again")


def hedged(stage):
    """A hedge replaces a request whose connection is silent."""
    stage.upstream("10.77.0.2", keeps=False)
    stage.upstream("10.77.0.11")
    stage.dns.records.update({"media.test": ["10.77.0.2"], "mirror.test": ["10.77.0.11"]})
    with stage.larder(None, "origins.media.mirrors=http://mirror.test", "origins.media.hedging=true") as larder:
        stage.reads(larder, paths(40))
        stage.network.detach("10.77.0.2")
        answers = stage.reads(larder, paths(4, "/hedged"))
        stage.show("larder", answers)
        late = max(answer.first for answer in answers)
        stage.check(late <= QUICK, f"a read took {late:.2f} s")


def local_cause(stage):
    """A failure of this machine is named, and opens no circuit."""
    stage.upstream("10.77.0.11")
    stage.dns.records["media.test"] = ["10.77.0.11"]
    settings = ("upstream.retries=1", "upstream.circuitBreaker.failures=2")
    for kind, word in (("prohibit", "firewall"), ("unreachable", "no network route")):
        with stage.larder(None, *settings) as larder:
            stage.network.forbid("10.77.0.11", kind)
            answers = stage.reads(larder, paths(3, f"/{kind}"), is_right=False)
            stage.check(all(answer.status == 502 for answer in answers), f"{kind} gave {[a.status for a in answers]}")
            stage.check(word in answers[-1].body.decode(), f"the error does not name the cause: {answers[-1].body}")
            circuit = larder.addresses("media")[0]
            stage.check(circuit["state"] == "closed" and circuit["failuresInARow"] == 0, f"the circuit is {circuit}")
            stage.network.permit("10.77.0.11", kind)
            stage.show("larder", stage.reads(larder, paths(1, f"/after-{kind}")))


CASES = [
    silent_one, silent_two, silent_ipv6, refused, ipv6_only, cname, slow_dns, failing_dns, moved_dead, moved_alive,
    dead_one, dead_eight, slow_server, retried_reset, retried_mute, spread, mirror, recovered, hedged, local_cause,
]  # fmt: skip
BRIEF = [silent_one, silent_ipv6, refused, moved_dead, dead_eight, retried_reset, mirror, recovered, local_cause]


def main():
    cases = {case.__name__: case for case in CASES}
    parser = checks.arguments(__doc__, cases, "the most important cases, beside curl")
    options = parser.parse_args()
    program, results = checks.program_of(parser, options), checks.Checks("network")
    if not options.brief:
        subprocess.run([checks.ROOT / "scripts" / "apt", "curl", "iproute2", "nginx-light", "haproxy"], check=False)
    if not venv.has_programs("ip") or not bench.is_possible():
        checks.skip_all("network", "network namespaces need root and iproute2")
    for name in checks.chosen(cases, options.only, [case.__name__ for case in BRIEF] if options.brief else None):
        with results.part(name, cases[name].__doc__ or "") as part, Stage(program, part, options.brief) as stage:
            cases[name](stage)
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
