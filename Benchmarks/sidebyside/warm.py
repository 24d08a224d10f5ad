"""Random ranges of a file on disk and in the page cache: processor time, request rate, and tail latency."""

import os

from .load import Load
from .processes import processor_seconds
from .stage import LOAD_CORE, fetch

KIBI, MEBI = 1 << 10, 1 << 20
SIZES = {"1 KiB": KIBI, "64 KiB": 64 * KIBI, "1 MiB": MEBI, "8 MiB": 8 * MEBI}
#: Processor time of Larder ÷ that of nginx slice: the limit, and the aim.
PROCESSOR = {"1 KiB": (0.9, "0.8"), "64 KiB": (0.9, "0.8"), "1 MiB": (0.5, "0.4"), "8 MiB": (0.4, "0.3")}
TARGET = "/warm"


class Warm:
    """The servers, each with the whole file in its cache."""

    def __init__(self, stage, length):
        self.length, self.load, self.stage = length, Load(stage.directory, core=LOAD_CORE), stage
        original = stage.original(TARGET[1:], length)
        upstream = stage.upstream()
        self.larder, self.floor = stage.larder(upstream), stage.floor(original.file)
        self.slices = [
            self.better([stage.slices(upstream, nopush, sendfile) for nopush in ("off", "on")])
            for sendfile in ("off", "on")
        ]
        self.static = self.better([stage.static(nopush) for nopush in ("off", "on")])
        self.best = {}
        self.settle()

    def settle(self, server=None):
        """Reads the file into the cache of Larder, and writes it to the disk."""
        fetch((server or self.larder).url(TARGET))
        # Otherwise the kernel writes the new file half a minute later, for seconds, on either core, which doubles the
        # measured 99th percentile.
        os.sync()

    def better(self, two):
        """The faster of nginx's `tcp_nopush off` and `on`, in requests of 64 KiB per second; in a brief run the first."""
        for server in two:
            fetch(server.url(TARGET))
        best = two[0]
        if not self.stage.is_brief:
            best = max(two, key=lambda server: self.run(server, 64 * KIBI, 16, 1, 0)[0].rate)
        self.stage.configurations[best.name.removeprefix("nginx ")] = best.process.configuration
        return best

    def slice(self, size):
        """nginx slice in its best configuration for ranges of `size` bytes: with or without `sendfile`."""
        if size not in self.best:
            self.best[size] = self.slices[0]
            if not self.stage.is_brief:
                self.best[size] = min(self.slices, key=lambda server: self.run(server, size, 16, 1, 0)[1])
        return self.best[size]

    def run(self, server, size, connections, seconds, seed, pause=0.0):
        """The results of wrk, and the server's processor time for each request."""
        if server is not self.floor:  # the floor has the file of the static server
            fetch(server.url(TARGET))  # some machines drop idle pages from the page cache after a minute
        before = processor_seconds(server.number)
        run = self.load.run(
            server.port, server.prefix + TARGET, size, self.length, connections, seconds, seed, pause=pause,
            scheme=server.scheme,
        )
        return run, (processor_seconds(server.number) - before) / run.requests


def rounds_apart(stage, rounds, kind=Warm):
    """Each round has new servers: the placement of their memory and file pages changes a rate by a tenth."""
    for number in range(rounds):
        with stage.apart() as here:
            yield number + 1, kind(here, (64 if stage.is_brief else 1024) * MEBI)
            stage.configurations.update(here.configurations)


def warm(table, stage, rounds):
    for seed, servers in rounds_apart(stage, rounds):
        for connections in (16,) if stage.is_brief else (16, 64):
            for name, size in stage.sizes(SIZES).items():
                one(table, servers, name, size, connections, 1 if stage.is_brief else 3, seed)


def one(table, servers, name, size, connections, seconds, seed):
    rates, spent = {}, {}
    for server in (servers.larder, servers.slice(size), servers.static, servers.floor):
        run, spent[server.name] = servers.run(server, size, connections, seconds, seed)
        rates[server.name] = run.rate
        spent[server.name] *= 1e6
    title, (most, aim) = f"{name}, {connections} connections", PROCESSOR[name]
    table.add(
        f"processor µs per request ÷ slice, {title}", spent["larder"] / spent["nginx slice"], spent, most=most, aim=aim
    )
    table.add(f"processor µs per request of the floor ÷ slice, {title}", spent["floor"] / spent["nginx slice"])
    table.add(
        f"requests per second ÷ slice, {title}", rates["larder"] / rates["nginx slice"], rates, least=1.0, aim="1.3"
    )
    limit = {"most": 1.5, "aim": "1.2"} if name == "1 KiB" else {}
    table.add(f"processor µs per request ÷ static, {title}", spent["larder"] / spent["nginx static"], **limit)


#: Processor time of Larder ÷ that of nginx slice, both with TLS: the limit, and the aim.
PROCESSOR_TLS = {"1 KiB": (1.5, "1.1"), "64 KiB": (1.0, "0.9"), "1 MiB": (0.8, "0.7")}


class WarmTLS(Warm):
    """As `Warm`, with TLS 1.3, and without the servers that have none."""

    def __init__(self, stage, length):
        self.length, self.load, self.stage = length, Load(stage.directory, core=LOAD_CORE), stage
        self.floor, files = None, stage.certificate()
        stage.original(TARGET[1:], length)
        upstream = stage.upstream()
        settings = (f"listen.tls.certificateFile={files[0]}", f"listen.tls.keyFile={files[1]}")
        self.larder = stage.larder(upstream, *settings)
        # nginx sends no file with `sendfile` here, but the setting changes its buffers.
        self.slices = [stage.slices(upstream, sendfile=sendfile, tls=files) for sendfile in ("off", "on")]
        self.best = {}
        self.settle()


def tls(table, stage, rounds):
    for seed, servers in rounds_apart(stage, rounds, WarmTLS):
        for name, (most, aim) in stage.sizes(PROCESSOR_TLS).items():
            spent, rates = {}, {}
            for server in (servers.larder, servers.slice(SIZES[name])):
                run, seconds = servers.run(server, SIZES[name], 16, 1 if stage.is_brief else 3, seed)
                spent[server.name], rates[server.name] = seconds * 1e6, run.rate
            ratio = spent["larder"] / spent["nginx slice"]
            table.add(f"TLS: processor µs per request ÷ slice, {name}", ratio, spent, most=most, aim=aim)
            table.add(f"TLS: requests per second ÷ slice, {name}", rates["larder"] / rates["nginx slice"], rates)


def tail(table, stage, rounds):
    """The 99th percentile at half the rate of the slower server, from at least 200 requests."""
    connections, least = 64, 200
    for seed, servers in rounds_apart(stage, rounds if stage.is_brief else max(7, rounds)):
        for name, size in stage.sizes(SIZES).items():
            two = (servers.larder, servers.slice(size))
            rate = min(servers.run(server, size, connections, 2, 99)[0].rate for server in two) / 2
            late, seconds = {}, 1 if stage.is_brief else max(4, least / rate)
            for server in two:
                run, _ = servers.run(server, size, connections, seconds, seed, pause=1000 * connections / rate)
                late[server.name] = run.p99 * 1000
            table.add(
                f"p99 latency, ms ÷ slice, {name}", late["larder"] / late["nginx slice"], late,
                most=1.15, aim="0.9",
            )  # fmt: skip
