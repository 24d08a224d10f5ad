"""Resident memory: with many slow connections, and idle with many assets."""

import http.client
import select
import socket
import time

from .processes import resident_bytes
from .stage import fetch

MEBI = 1 << 20


def memory(table, stage, rounds):
    for _ in range(rounds):
        streaming(table, stage, 50 if stage.is_brief else 1000, 2 if stage.is_brief else 8)
        idle(table, stage, 200 if stage.is_brief else 10_000)


def streaming(table, stage, connections, seconds):
    """Each connection reads 8 MiB at 1 MiB/s; the peak of resident memory."""
    stage.original("stream", 256 * MEBI)
    with stage.apart() as here:
        larder = here.larder(here.upstream(), core=None)
        fetch(larder.url("/stream"))
        rested = resident_bytes(larder.number)
        peers = [stream(larder.port, number) for number in range(connections)]
        poll = select.epoll()
        for peer in peers:
            poll.register(peer.fileno(), select.EPOLLIN)
        received, most, began = 0, 0, time.monotonic()
        by_number = {peer.fileno(): peer for peer in peers}
        due = dict.fromkeys(by_number, began)
        while (now := time.monotonic()) - began < seconds:
            for number, _ in poll.poll(0.01):
                if due[number] <= now:
                    received += len(by_number[number].recv(64 << 10))
                    due[number] = max(due[number] + 1 / 16, now - 0.5)
            most = max(most, resident_bytes(larder.number))
        for peer in peers:
            peer.close()
    table.add(
        f"resident MB, {connections} connections at 1 MiB/s", most / 1e6,
        {"before": rested / 1e6, "received MB/s": received / seconds / 1e6}, most=120, aim="80",
    )  # fmt: skip


def stream(port, number):
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 << 10)
    peer.connect(("127.0.0.1", port))
    first = number % 31 * 8 * MEBI
    peer.sendall(
        f"GET /o/media/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes={first}-{first + 8 * MEBI - 1}\r\n\r\n".encode()
    )
    return peer


def idle(table, stage, count):
    """After a restart, with this many assets in the store."""
    stage.original("small", 1 << 10)
    with stage.apart() as here:
        upstream, place = here.upstream(), here.place("assets")
        larder = here.larder(upstream, place=place, core=None)
        connection = http.client.HTTPConnection("127.0.0.1", larder.port)
        for number in range(count):
            connection.request("GET", f"/o/media/many/{number}")
            answer = connection.getresponse()
            if answer.status != 200 or len(answer.read()) != 1 << 10:
                raise RuntimeError(f"asset {number}: {answer.status}")
        connection.close()
        larder.process.stop()
        again = here.larder(upstream, place=place, core=None)
        time.sleep(3)
        table.add(f"resident MB, idle with {count:,} assets", resident_bytes(again.number) / 1e6, most=60, aim="40")
