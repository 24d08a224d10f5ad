#!/usr/bin/env python3
"""Checks the routers of deploy/ in front of three services: the node of each read, bounded load, a killed node, a leaving
node, and tokens in logs.

    run.py --larder .build/release/larder
    run.py --larder .build/debug/larder --only kill,leave
    run.py --larder .build/debug/larder --brief

Without --brief, HAProxy and nginx are installed with apt, and Envoy into .build/fleet.
"""

import concurrent.futures
import pathlib
import subprocess
import sys
import time
from urllib.parse import quote

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import checks, process, venv  # noqa: E402

PARTS = ("files", "haproxy", "nginx", "envoy", "pass", "address", "proxy", "routers", "hot", "kill", "leave", "logs")


def has_envoy():
    """Continues with the Python that has Envoy; False if it cannot be installed."""
    try:
        return venv.enter("fleet", HERE / "requirements.txt", "--brief" not in sys.argv)
    except (OSError, subprocess.CalledProcessError):
        return False


HAS_ENVOY = has_envoy() if __name__ == "__main__" else False

from stage import CLIENT, SIZE, Fleet, Held, Proxied, Reversed, asset_id, body  # noqa: E402

READERS = 24
#: Two failed checks of a router, and the time of a check on a slow machine.
CHECK_SECONDS = 5


def at_once(function, values, count=READERS):
    """The results of `count` concurrent readers for all values."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, values))


class Test:
    def __init__(self, fleet, is_brief):
        self.fleet, self.count = fleet, 8 if is_brief else 24
        self.upstream, self.haproxy = self.fleet.upstream, self.fleet.haproxy

    def names(self, prefix, count=None):
        return [f"/{prefix}/{number}.mp4" for number in range(count or self.count)]

    def read_right(self, part, router, names, count=1):
        """Reads the files with this number of readers."""
        targets = [f"/o/media{name}" for name in names]
        for name, reply in zip(names, router.in_turn(targets) if count == 1 else at_once(router.send, targets, count)):
            part(reply.status == 200 and reply.body == body(name), f"{name} got {reply}")

    def one_node(self, part, router, name, targets, identifier):
        """All targets read one file, and reach the same node: exactly one knows the asset, and got all requests."""
        before, sent = self.fleet.requests(), self.upstream.sent
        for target, reply in zip(targets, router.in_turn(targets)):
            part(reply.status == 200 and reply.body == body(name), f"{target} got {reply}")

        def grown():
            counts = self.fleet.requests().items()
            return {number: count - before[number] for number, count in counts if count > before[number]}

        part.equal(self.upstream.sent - sent, SIZE, f"the number of bytes from the upstream for {name}")
        owners = self.fleet.owners(identifier)
        part.equal(len(owners), 1, f"the number of nodes with {name}")
        part.reaches(grown, dict.fromkeys(owners, len(targets)), f"the requests for {name}")
        return owners

    def paths(self, name):
        """The targets of a file whose key is its path, without its id."""
        path = f"/o/media{name}"
        signed = [self.fleet.signed(path, form) for form in ("query", "path", "uriSigning")]
        bare, _, package = signed[2].partition("?")
        return [path, *signed, f"{bare};{package}"]

    # Parts

    def files(self, part):
        """Each router accepts its file without a warning."""
        code, text = subprocess.getstatusoutput(f"{process.found('haproxy')} -c -dW -f {checks.ROOT}/deploy/haproxy.cfg")
        part(code == 0 and "WARNING" not in text, "HAProxy refuses deploy/haproxy.cfg as it is", text)
        for router in self.fleet.routers:
            code, text = router.verified()
            part(code == 0 and "warn" not in text.lower(), f"{router.kind} refuses {router.file}", text)

    def nodes_of_paths(self, part, router, prefix):
        used = [self.one_node(part, router, name, self.paths(name), asset_id(f"/o/media{name}")) for name in self.names(prefix)]
        part(len({number for owners in used for number in owners}) > 1, f"all files are at one node: {used}")
        starts = {reply.json.get("startedAt") for reply in router.in_turn(["/v1/stats"] * 6)}
        part.equal(len(starts), 1, "the number of nodes that answer other calls")

    def through_haproxy(self, part):
        """All routes of an asset reach one node."""
        self.nodes_of_paths(part, self.haproxy, "haproxy")
        for name in self.names("haproxy"):
            self.routes_of_id(part, asset_id(f"/o/media{name}"), name)
        encoded = quote("/encoded/film ü.mp4")
        self.one_node(part, self.haproxy, "/encoded/film ü.mp4", [f"/o/media{encoded}"], asset_id(f"/o/media{encoded}"))
        self.routes_of_id(part, asset_id(f"/o/media{encoded}"), "/encoded/film ü.mp4")
        part.equal(self.haproxy.send("/health/ready").status, 200, "the status of the router's own health check")
        for name in self.names("named", 4):
            url = f"/v1/content?url={quote(self.upstream.url + name, safe='')}"
            self.one_node(part, self.haproxy, name, [url], asset_id(self.upstream.url + name))
            self.routes_of_id(part, asset_id(self.upstream.url + name), name)
            other, key = f"{name}.other", f"film ü {name}"
            url = f"/v1/content?url={quote(self.upstream.url + other, safe='')}&key={quote(key, safe='')}"
            self.one_node(part, self.haproxy, other, [url], asset_id(key))
            self.routes_of_id(part, asset_id(key), other)

    def routes_of_id(self, part, identifier, name):
        """The routes with the id reach the node that has the asset."""
        sent, before = self.upstream.sent, sum(self.fleet.requests().values())
        routes = [f"/v1/assets/{identifier}{route}" for route in ("", "/extents", "/map", "/content")]
        for route, reply in zip(routes, self.haproxy.in_turn(routes)):
            part.equal(reply.status, 200, f"the status of {route} of {name}")
        part(reply.body == body(name), f"the content of {name} differs")
        part.reaches(lambda: sum(self.fleet.requests().values()) - before, 1, f"the content requests for {name}")
        part.equal(self.upstream.sent, sent, "the sum of bytes from the upstream")
        part.equal(len(self.fleet.owners(identifier)), 1, f"the number of nodes with {name}")

    def through_nginx(self, part):
        """Reads by path reach one node."""
        self.nodes_of_paths(part, self.fleet.nginx, "nginx")

    def through_envoy(self, part):
        """Reads by path reach one node."""
        self.nodes_of_paths(part, self.fleet.envoy, "envoy")

    def first_pass(self, part):
        """24 readers read each file once."""
        names, sent = self.names("pass", 4 * self.count), self.upstream.sent
        self.read_right(part, self.haproxy, names, READERS)
        ratio = (self.upstream.sent - sent) / (len(names) * SIZE)
        part.note(f"upstream bytes ÷ union of the requested ranges: {ratio:.2f} in the first pass of {len(names)} files")
        part.equal(ratio, 1.0, "the ratio of the first pass")
        sent = self.upstream.sent
        self.read_right(part, self.haproxy, names, READERS)
        part.equal(self.upstream.sent - sent, 0, "the number of bytes of the second pass, which bounded load spreads")

    def address(self, part):
        """The services see the address of the client."""
        for router in self.fleet.routers:
            name = f"/address/{router.kind}.mp4"
            invented = {"X-Forwarded-For": "203.0.113.7"}
            part.equal(router.send(f"/o/media{name}", fields=invented).status, 200, f"the status through {router.kind}")
            number = self.fleet.owners(asset_id(f"/o/media{name}"))[0]
            node = self.fleet.nodes[number]
            part.eventually(
                lambda: any(name in line and CLIENT in line and "203.0.113" not in line for line in node.text().splitlines()),
                f"node {number} does not log the client of {router.kind}",
            )

    def proxy(self, part):
        """With the PROXY protocol a service sees the address of the client, and checks work."""
        node = self.fleet.proxied_node()
        router = Proxied(self.fleet.directory, [node.port] * 3, "proxied").start()
        self.read_right(part, router, ["/proxy.mp4"])
        part.eventually(lambda: f"client={CLIENT}" in node.text(), "the service does not log the client")
        router.stop()
        node.kill()

    def two_routers(self, part):
        """A second router, whose servers have another order, chooses the same nodes."""
        other, names = self.fleet.router(Reversed, "haproxy2"), self.names("routers", 40)
        self.read_right(part, self.haproxy, names)
        sent = self.upstream.sent
        self.read_right(part, other, names)
        part.equal(self.upstream.sent, sent, "the sum of bytes from the upstream")
        wanted = {asset_id(f"/o/media{name}") for name in names}
        part.eventually(lambda: wanted <= other.choices().keys(), "the log of the second router is incomplete")
        first, second = self.haproxy.choices(), other.choices()
        part.equal({key: second[key] for key in wanted}, {key: first[key] for key in wanted}, "the choice of nodes")
        part.equal(set().union(*second.values()), {1, 2, 3}, "the set of used nodes")
        other.stop()

    def hot(self, part):
        """The readers of one file are spread over the nodes."""
        for router in filter(None, (self.haproxy, self.fleet.envoy)):
            name, sent = f"/hot/{router.kind}.mp4", self.upstream.sent
            self.upstream.hold(name)
            with concurrent.futures.ThreadPoolExecutor(READERS) as pool:
                replies = []
                for count in range(1, READERS + 1):  # one after the other: Envoy does not count requests that connect
                    replies.append(pool.submit(router.read, name))
                    part.eventually(lambda: sum(self.fleet.clients()) == count, "not all reads are in progress")
                active = self.fleet.clients()
                self.upstream.release(name)
            part.note(f"{router.kind}: readers of each node: {active}")
            part(max(active) <= 1.5 * READERS / 3 + 1, f"{router.kind} gives a node more than 150 % of the average: {active}")
            for reply in replies:
                part(reply.result().status == 200 and reply.result().body == body(name), f"a reader got {reply.result()}")
            part(sum(count > 0 for count in active) > 1, f"one node serves all readers: {active}")
            part.equal(self.upstream.sent - sent, SIZE, "the number of bytes from the upstream")

    def owned(self, part, prefix):
        """A node with the files of its assets: the node of the first file."""
        names = self.names(prefix, 3 * self.count)
        self.read_right(part, self.haproxy, names)
        owners = {name: self.fleet.owners(asset_id(f"/o/media{name}")) for name in names}
        number = owners[names[0]][0]
        mine = [name for name in names if owners[name] == [number]]
        return number, mine, [name for name in names if name not in mine]

    def kill(self, part):
        """A killed node cuts its responses; its assets are read at other nodes at once, without a failed request."""
        number, mine, others = self.owned(part, "kill")
        node, held = self.fleet.nodes[number], Held(self.fleet, self.haproxy, self.held_by(number, "kill"))
        part.eventually(lambda: node.get("/v1/stats")["store"]["uncommittedBytes"] == 0, "the node does not commit its files")
        node.kill()
        began = time.monotonic()
        self.read_right(part, self.haproxy, mine)
        part.eventually(lambda: not self.haproxy.is_up(number), "HAProxy does not see the killed node", CHECK_SECONDS)
        part.note(f"HAProxy saw it after {time.monotonic() - began:.1f} s at most")
        self.upstream.release(held.name)
        data, is_complete = held.end()
        part(not is_complete and len(data) < SIZE, f"the started response was not cut: {len(data)} bytes")
        part(body(held.name).startswith(data), "the cut response has wrong bytes")
        sent = self.upstream.sent
        self.read_right(part, self.haproxy, mine + others, READERS // 4)
        part.note(f"then {(self.upstream.sent - sent) / SIZE:.0f} of {len(mine + others)} files came from the upstream")
        for router in filter(None, (self.fleet.nginx, self.fleet.envoy)):
            replies = router.in_turn(self.fleet.signed(f"/o/media{name}", "path") for name in mine)
            part(all(reply.status == 200 for reply in replies), f"a read through {router.kind} failed: {replies}")
        node.start()
        part.eventually(lambda: self.haproxy.is_up(number), "HAProxy does not see the returned node")
        part.eventually(lambda: "setAside" not in self.fleet.states(), "the other nodes do not ask the returned node again", 30)
        sent, before = self.upstream.sent, self.fleet.requests()
        self.read_right(part, self.haproxy, mine)
        part.reaches(
            lambda: self.fleet.requests()[number] - before[number], len(mine), "the number of reads at the returned node"
        )
        part.equal(self.upstream.sent, sent, "the sum of bytes from the upstream after the return")

    def held_by(self, number, prefix):
        """A file that is not cached, and whose first choice is the node."""
        for attempt in range(100):
            name = f"/{prefix}/held{attempt}.mp4"
            part_of_key = self.haproxy.send(f"/v1/assets/{asset_id(f'/o/media{name}')}")
            assert part_of_key.status == 404
            choices = process.wait_until(lambda: self.haproxy.choices().get(asset_id(f"/o/media{name}")))
            if choices == {number}:
                return name
        raise checks.Broken(f"node {number} is the first choice of no file")

    def leave(self, part):
        """A node that ends gets no new requests after the check, and completes its responses."""
        number, mine, _ = self.owned(part, "leave")
        node, held = self.fleet.nodes[number], Held(self.fleet, self.haproxy, self.held_by(number, "leave"))
        node.dying.set()
        node.process.terminate()
        part.eventually(lambda: not self.haproxy.is_up(number), "HAProxy does not see the leaving node", CHECK_SECONDS)
        before, sent = self.fleet.requests()[number], self.upstream.sent
        self.read_right(part, self.haproxy, mine)
        part.equal(self.upstream.sent, sent, "the sum of bytes from the upstream, while the leaving node serves the others")
        part(node.is_running, "the node has ended already")
        part.equal(self.fleet.requests()[number], before, "the number of requests at the leaving node")
        if self.fleet.envoy:
            part.eventually(lambda: self.avoids(self.fleet.envoy, number, mine), "Envoy does not see the leaving node", 10)
        self.upstream.release(held.name)
        data, is_complete = held.end()
        part(is_complete and data == body(held.name), f"the started response ended after {len(data)} bytes")
        node.kill()

    def avoids(self, router, number, names):
        """Whether no request for these files reaches the node."""
        before = self.fleet.requests()[number]
        router.in_turn(f"/o/media{name}" for name in names)
        return self.fleet.requests()[number] == before

    def logs(self, part):
        """No log of a router has a token, also after failures."""
        target = self.fleet.signed("/o/media/logs/cut.mp4", "path")
        for router in filter(None, (self.haproxy, self.fleet.nginx, self.fleet.envoy)):
            for refused in (target, "/t" + target, "/%74" + target[2:], "/o/.." + target, target.replace("/o/", "//o/")):
                router.send(refused)
        for token in self.fleet.tokens:
            for router in self.fleet.routers:
                for log in [*router.place.glob("*.log")]:
                    part(token not in log.read_text(errors="replace"), f"{log.name} of {router.kind} has a token")
        part(self.haproxy.choices(), "the log of HAProxy has no reads")


def main():
    parser = checks.arguments(__doc__, PARTS)
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    if not options.brief:
        venv.packages("haproxy", "nginx")
    if not process.found("haproxy"):
        checks.skip_all("fleet", "HAProxy is not installed; `scripts/fleet PROGRAM` installs it")
    results, chosen = checks.Checks("fleet"), checks.chosen(PARTS, options.only)
    fleet = Fleet(program, HAS_ENVOY)
    test = Test(fleet, options.brief)
    functions = [
        test.files, test.through_haproxy, test.through_nginx, test.through_envoy, test.first_pass, test.address,
        test.proxy, test.two_routers, test.hot, test.kill, test.leave, test.logs,
    ]  # fmt: skip
    for name, function in zip(PARTS, functions):
        if name not in chosen:
            continue
        if getattr(fleet, name, fleet) is None:
            results.skip(name, "not installed")
            continue
        with results.part(name, function.__doc__) as part:
            part.eventually(fleet.haproxy.is_idle, "reads of an earlier part are in progress")
            function(part)
    results.equal(fleet.upstream.faults, [], "the list of faults at the upstream")
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
