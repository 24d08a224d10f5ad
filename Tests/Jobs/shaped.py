"""Upstreams whose connections share one rate, which can change while they send."""

import socket
import threading
import time

from harness import upstream


class Shaped(upstream.Upstream):
    """Sends `pattern` assets of the size in the path, such as `/film-3000000.mp4`, at `rate` bytes per second in all."""

    #: Bytes that are sent at once; small, so that connections share the rate evenly.
    PIECE = 16 << 10
    #: The send buffer of a connection: without a limit, the kernel would hide the rate.
    BUFFER = 32 << 10

    def __init__(self, rate):
        self.rate, self.slots, self.next_at = rate, threading.Lock(), 0.0
        super().__init__()

    def answer(self, request):
        size = int(request.name.rpartition("-")[2].partition(".")[0])
        whole = upstream.asset(size, etag=f'"{request.name}"', seed=size)

        def handler(request, connection):
            answer = whole.answer(request)
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.BUFFER)
            connection.request.status = answer.status
            connection.send(answer.head())
            if request.method == "HEAD":
                return
            for at in range(0, len(answer.body), self.PIECE):
                piece = answer.body[at : at + self.PIECE]
                self.wait(len(piece))
                connection.send(piece)
                connection.request.sent += len(piece)

        return handler

    def wait(self, count):
        """Waits for the time slot of some bytes."""
        with self.slots:
            now = time.monotonic()
            start = max(now, self.next_at)
            self.next_at = start + count / self.rate
        if start > now:
            self.ended.wait(start - now)
