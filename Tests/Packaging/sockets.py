"""Listening sockets that a service manager opens and passes on (`sd_listen_fds(3)`)."""

import os
import socket
import subprocess

from harness import process

#: The shell sets LISTEN_PID to its own number, which the program keeps.
AS_LISTENER = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"]


def listener(address):
    """A listening socket; a text is the path of a Unix socket."""
    made = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    made.bind(address)
    made.listen(512)
    return made


def start(words, log, sockets, *, names=None, environment=None, own=True):
    """Starts a program with the sockets as its descriptors from 3 on."""
    held = [each.fileno() for each in sockets]

    def place():
        high = [os.dup2(descriptor, 200 + index) for index, descriptor in enumerate(held)]
        for index, descriptor in enumerate(high):
            os.dup2(descriptor, 3 + index)

    variables = {"LISTEN_FDS": str(len(held)), "LISTEN_FDNAMES": ":".join(names or [])}
    if not own:
        variables["LISTEN_PID"] = "1"
    with open(log, "ab") as output:
        started = subprocess.Popen(
            [*(AS_LISTENER if own else []), *map(str, words)], stdout=output, stderr=output, start_new_session=True,
            env={**process.clean_environment(), **(environment or {}), **variables}, preexec_fn=place,
            pass_fds=[3 + index for index in range(len(held))],
        )  # fmt: skip
    process.STARTED.append(started)
    return started
