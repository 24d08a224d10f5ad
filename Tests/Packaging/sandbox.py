"""The system call filter of a unit, without systemd: a program that runs under it is killed by any other call.

    sandbox.py UNIT PROGRAM [ARGUMENT...]
"""

import ctypes
import os
import re
import subprocess
import sys

ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000
NOBODY = 65534


def members(group):
    """The calls of a group such as @system-service, those of its groups included."""
    text = subprocess.check_output(["systemd-analyze", "syscall-filter", group], text=True)
    names = set()
    for word in re.findall(r"^\s+([@\w-]+)$", text, re.M):
        names |= members(word) if word.startswith("@") else {word}
    return names


def allowed(unit):
    """The calls that the lines `SystemCallFilter=` of a unit permit; `~` removes calls, as in systemd.exec(5)."""
    names = set()
    for value in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        words = value.removeprefix("~").split()
        listed = set().union(*(members(word) if word.startswith("@") else {word} for word in words))
        names = names - listed if value.startswith("~") else names | listed
    # systemd always permits these.
    return names | members("@default")


def confine(names):
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    filter_ = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(KILL_PROCESS)))
    for name in names:
        number = library.seccomp_syscall_resolve_name(name.encode())
        # Calls of other architectures have negative numbers.
        if number >= 0 and library.seccomp_rule_add(filter_, ctypes.c_uint32(ALLOW), ctypes.c_int(number), 0):
            raise OSError(f"seccomp_rule_add({name})")
    if library.seccomp_load(filter_):
        raise OSError("seccomp_load")


def main():
    with open(sys.argv[1]) as unit:
        names = allowed(unit.read())
    program = os.open(sys.argv[2], os.O_RDONLY)
    if os.geteuid() == 0:
        # As in the unit, the program has no privileges: SQLite calls fchown(2) as root only.
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    confine(names)
    # By descriptor, because this user may have no access to the directory.
    os.execve(program, sys.argv[2:], os.environ)


if __name__ == "__main__":
    main()
