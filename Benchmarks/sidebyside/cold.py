"""Uncached files: the throughput, and the added latency of the first byte."""

import random
import socket
import statistics
import time

from fillbench.stage import ScriptedUpstream

from .stage import fetch

KIBI, MEBI = 1 << 10, 1 << 20
GIGABIT = 125_000_000


def cold(table, stage, rounds):
    sequential(table, stage, rounds, (64 if stage.is_brief else 1024) * MEBI)
    paced(table, stage, rounds, (16 if stage.is_brief else 512) * MEBI)
    first_byte(table, stage, rounds, 20 if stage.is_brief else 200)


def sequential(table, stage, rounds, length):
    stage.original("cold", length)
    for _ in range(rounds):
        with stage.apart() as here:
            upstream = here.upstream()
            rates = {
                server.name: fetch(server.url("/cold")) / 1e6
                for server in (here.larder(upstream, core=None), here.slices(upstream))
            }
        table.add(
            "cold sequential read, MB/s ÷ slice", rates["larder"] / rates["nginx slice"], rates, least=1.0, aim="1.5"
        )


def paced(table, stage, rounds, length):
    stage.original("paced", length)
    for _ in range(rounds):
        with stage.apart() as here:
            scripted = ScriptedUpstream(here.media, totalBytesPerSecond=GIGABIT)
            here.callback(scripted.stop)
            larder = here.larder(scripted.port, core=None)
            rates = {
                "larder": fetch(larder.url("/paced")) / 1e6,
                "curl": fetch(f"http://127.0.0.1:{scripted.port}/paced") / 1e6,
            }
        table.add(
            "cold sequential read at 1 Gbit/s, MB/s ÷ direct", rates["larder"] / rates["curl"], rates, least=0.95,
            aim="0.98",
        )  # fmt: skip


def first_byte(table, stage, rounds, count):
    """One connection each, one range after the other, alternating."""
    stage.original("first", 512 * MEBI)
    for number in range(rounds):
        with stage.apart() as here:
            upstream = here.upstream()
            larder = here.larder(upstream, core=None)
            chance = random.Random(number)
            places = chance.sample(range(512 * MEBI // (1 * MEBI)), count + 1)
            with Asker(larder.port, "/o/media/first") as through, Asker(upstream, "/first") as direct:
                through.ask(places[0] * MEBI), direct.ask(places[0] * MEBI)  # opens the asset and the connections
                late = [(through.ask(place * MEBI), direct.ask(place * MEBI)) for place in places[1:]]
        medians = {"larder": statistics.median(one for one, _ in late), "direct": statistics.median(b for _, b in late)}
        table.add(
            "first byte of a cold range of 64 KiB, ms added", medians["larder"] - medians["direct"], medians,
            most=1.0, aim="0.5",
        )  # fmt: skip


class Asker:
    """A connection for repeated reads of 64 KiB."""

    def __init__(self, port, target):
        self.target = target
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, offset):
        """Milliseconds until the first byte of the body."""
        began = time.perf_counter()
        self.socket.sendall(
            f"GET {self.target} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Range: bytes={offset}-{offset + 64 * KIBI - 1}\r\n\r\n".encode()
        )
        got, body = b"", None
        while not body:
            got += self.receive()
            head, mark, body = got.partition(b"\r\n\r\n")
        late = (time.perf_counter() - began) * 1000
        if b" 206 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(head.decode("latin-1"))
        left = 64 * KIBI - len(body)
        while left > 0:
            left -= len(self.receive())
        return late

    def receive(self):
        part = self.socket.recv(256 * KIBI)
        if not part:
            raise RuntimeError("the connection was closed")
        return part

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
