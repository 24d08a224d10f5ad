"""Processor time and memory of processes, as the kernel counts them."""

import pathlib
import time


def members(process):
    """The process and its descendants."""
    found = [process]
    for children in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text().split():
            found += members(int(child))
    return found


def processor_seconds(process):
    """Processor time of the process and its descendants, ended threads included, to the nanosecond."""
    spent = 0.0
    for member in members(process):
        try:
            spent += time.clock_gettime(~member << 3 | 2)  # as clock_getcpuclockid(3) encodes a process
        except OSError:
            pass  # the process has just ended
    return spent


def resident_bytes(process, name="VmRSS"):
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def peak_bytes(process):
    """The peak of resident memory."""
    return resident_bytes(process, "VmHWM")
