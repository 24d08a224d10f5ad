"""Hosts in network namespaces: each has an address, and all are connected by a bridge.

`enter` continues the program in namespaces of its own for network, mounts and processes. The kernel removes them with all
their processes when the program ends, however it ends.
"""

import os
import pathlib
import shutil
import subprocess
import sys

from . import process

#: The variable that tells the program that it runs in namespaces of its own.
MARK = "FLEET_NAMESPACES"
UNSHARE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
#: A hardware address that no host has: frames to it get lost without an error.
NOWHERE = "02:ff:ff:ff:ff:ff"


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        raise process.NotStarted(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def obstacle():
    """The reason why this machine has no namespaces for a test; None if it has."""
    for name in ("ip", "unshare"):
        if not process.found(name):
            return f"{name} is not installed"
    if os.geteuid() != 0:
        return "network namespaces need root"
    tried = (
        "mount -t tmpfs none /run && ip netns add try && ip link add bridge0 type bridge"
        " && ip link add veth0 type veth peer name veth1 netns try"
    )
    done = subprocess.run([*UNSHARE, "sh", "-c", tried], capture_output=True, text=True)
    return None if done.returncode == 0 else f"network namespaces cannot be made: {done.stderr.strip()}"


def enter():
    """Continues the program in namespaces of its own; there, it returns."""
    if os.environ.pop(MARK, None) is None:
        os.environ[MARK] = "1"
        os.execvp(UNSHARE[0], [*UNSHARE, sys.executable, *sys.argv])


class Host:
    """A network namespace with one address."""

    def __init__(self, name, address):
        self.name, self.address, self.link = name, address, f"v-{name}"
        #: Precedes commands that run in the namespace.
        self.prefix = (process.found("ip"), "netns", "exec", name)

    def ip(self, *words):
        return run("ip", "-n", self.name, *words)

    def down(self):
        """Disconnects the host from all others: packets get lost in both directions."""
        run("ip", "link", "set", self.link, "nomaster")

    def up(self):
        run("ip", "link", "set", self.link, "master", "bridge")


class Network:
    """A bridge with the address of the test program, and the hosts. `enter` must have returned before."""

    def __init__(self, own, hosts):
        """`own` is the address of the test program; `hosts` has the addresses by name."""
        # Names of namespaces are files below /run/netns; these are no files of the machine.
        run("mount", "-t", "tmpfs", "none", "/run")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "link", "set", "bridge", "up")
        run("ip", "addr", "add", f"{own}/24", "dev", "bridge")
        self.hosts = {name: self.added(Host(name, address)) for name, address in hosts.items()}

    @staticmethod
    def added(host):
        run("ip", "netns", "add", host.name)
        run("ip", "link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", host.name)
        host.up()
        run("ip", "link", "set", host.link, "up")
        host.ip("addr", "add", f"{host.address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            host.ip("link", "set", link, "up")
        return host

    def cut(self, some, others):
        """Packets between hosts of the two lists get lost, in both directions."""
        for one, other in self.pairs(some, others):
            one.ip("neigh", "replace", other.address, "lladdr", NOWHERE, "dev", "eth0", "nud", "permanent")

    def mend(self, some, others):
        for one, other in self.pairs(some, others):
            one.ip("neigh", "del", other.address, "dev", "eth0")

    def pairs(self, some, others):
        for one in some:
            for other in others:
                if one != other:
                    yield self.hosts[one], self.hosts[other]
                    yield self.hosts[other], self.hosts[one]

