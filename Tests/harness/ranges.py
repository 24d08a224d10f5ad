"""The Range field of requests. As a program: the numbers of requested and of distinct requested bytes in a log.

    python3 -m harness.ranges LOG /path=length …

A line of the log is `METHOD path Range status bytes`; the Range is `-` if it is absent. Requests other than GET and
responses without bytes of the file (304, 416, …) are ignored. Prints one line per file, and `ratio R`.
"""

import re
import sys


def requested(header, length):
    """The half-open range of bytes that a Range field requests; None: the whole file, because the field is absent or has
    not exactly one valid byte range (RFC 9110, section 14.2). The range is empty if no byte of it exists."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header or "", re.A)
    if not match or header == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return max(0, length - int(last)), length
    if last and int(last) < int(first):
        return None
    return int(first), min(length, int(last) + 1) if last else length


def run_of(header, length):
    """The requested range of a log's field, in which `-` stands for an absent one."""
    run = (0, length) if header == "-" else requested(header, length)
    if run is None:
        raise ValueError(f"not a single byte range: {header}")
    return run


def union(runs):
    """The number of bytes in the union of the ranges."""
    total, end = 0, 0
    for first, last in sorted(runs):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total


def main():
    lengths = dict((path, int(length)) for path, length in (argument.rsplit("=", 1) for argument in sys.argv[2:]))
    runs = {path: [] for path in lengths}
    for line in open(sys.argv[1], encoding="utf-8"):
        method, path, header, status, _ = line.split()
        if method == "GET" and status in ("200", "206") and path in runs:
            runs[path].append(run_of(header, lengths[path]))
    asked = different = 0
    for path, wanted in runs.items():
        sum_of_runs, union_of_runs = sum(last - first for first, last in wanted), union(wanted)
        print(f"{path}: {len(wanted)} requests for {sum_of_runs} bytes, {union_of_runs} distinct")
        asked, different = asked + sum_of_runs, different + union_of_runs
    print(f"ratio {asked / different:.4f}" if different else "ratio 0")


if __name__ == "__main__":
    main()
