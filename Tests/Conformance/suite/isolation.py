"""A private network namespace with only loopback and a scripted name server (Linux, root)."""

import ctypes
import fcntl
import os
import socket
import struct
import threading

from harness import upstream as scripted
from harness.process import NotStarted

from . import peers

NEW_MOUNTS, NEW_NETWORK = 0x20000, 0x40000000
RECURSIVE_PRIVATE, BIND = 0x4000 | 0x40000, 0x1000


class Unavailable(Exception):
    """The namespace cannot be created here."""


def system(call, *arguments):
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, call)(*arguments) != 0:
        raise Unavailable(f"{call}: {os.strerror(ctypes.get_errno())}")


def enter(resolv_conf):
    """Moves this thread, and the processes it starts, into a private network with this resolv.conf."""
    if not hasattr(ctypes.CDLL(None), "unshare"):
        raise Unavailable("no namespaces")
    system("unshare", NEW_MOUNTS | NEW_NETWORK)
    system("mount", b"none", b"/", None, ctypes.c_ulong(RECURSIVE_PRIVATE), None)
    place = os.path.realpath("/etc/resolv.conf")
    system("mount", os.fsencode(resolv_conf), os.fsencode(place), None, ctypes.c_ulong(BIND), None)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:  # loopback, up
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)
        fcntl.ioctl(any_socket, 0x8914, request)


class NameServer:
    """`hang…` is never answered, `nx…` does not exist, `fail…` fails; every other name is 127.0.0.1."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        while True:
            try:
                query, sender = self.socket.recvfrom(512)
            except OSError:
                return
            end = query.index(b"\0", 12) + 5
            name, kind = query[13 : end - 5], struct.unpack(">H", query[end - 4 : end - 2])[0]
            if name.startswith(b"hang"):
                continue
            code = 3 if name.startswith(b"nx") else 2 if name.startswith(b"fail") else 0
            found = code == 0 and kind == 1
            record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton("127.0.0.1") if found else b""
            head = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, 1 if found else 0, 0, 0)
            self.socket.sendto(head + query[12:end] + record, sender)

    def close(self):
        self.socket.close()


class Isolated:
    """A Larder for one check in a private network: `with Isolated(t, settings): …`."""

    def __init__(self, t, settings=()):
        self.t, self.settings = t, list(settings)

    def __enter__(self):
        t = self.t
        self.outer = t.peer
        peer = peers.Larder(1, t.peer.program, self.settings)
        resolv_conf = peer.directory / "resolv.conf"
        resolv_conf.write_text("nameserver 127.0.0.1\noptions timeout:20 attempts:1\n")
        try:
            enter(resolv_conf)
        except (Unavailable, OSError) as reason:
            peer.remove()
            t.skip(f"a private network: {reason}")
        self.names = NameServer()
        t.own = scripted.Upstream(prefix="/base")
        t.upstreams.append(t.own)
        try:
            peer.start()
        except NotStarted as refusal:
            t.fail(str(refusal))
        t.peer = peer
        return self

    def __exit__(self, *_):
        faults = self.t.peer.stop()
        self.t.peer.remove()
        self.t.peer, self.t.mounted = self.outer, None
        self.names.close()
        if faults:
            self.t.own.faults.extend(faults)
