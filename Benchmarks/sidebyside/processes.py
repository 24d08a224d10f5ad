"""What processes spend: processor time and memory, as the kernel counts them."""

import pathlib


def members(process):
    """The process and those it started."""
    found = [process]
    for children in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text().split():
            found += members(int(child))
    return found


def processor_seconds(process):
    """Of all threads of the process and of those it started, to the nanosecond."""
    spent = 0
    for member in members(process):
        for thread in pathlib.Path(f"/proc/{member}/task").iterdir():
            try:
                spent += int((thread / "schedstat").read_text().split()[0])
            except OSError:
                pass  # a thread that has just ended
    return spent / 1e9


def resident_bytes(process, name="VmRSS"):
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def peak_bytes(process):
    """The most that was ever resident."""
    return resident_bytes(process, "VmHWM")
