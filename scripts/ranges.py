"""Reads an upstream's log and prints the number of requested bytes and of distinct requested bytes.

    ranges.py LOG /path=length …

A line of the log is `METHOD path Range status bytes`; the Range is `-` if it is absent. Requests other than GET and
responses without bytes of the file (304, 416, …) are ignored. Prints one line per file, and `ratio R`.
"""

import re
import sys


def run_of(header, length):
    """The half-open byte range that a Range header requests."""
    if header == "-":
        return 0, length
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header)
    if not match or header == "bytes=-":
        sys.exit(f"ranges.py: not a single byte range: {header}")
    first, last = match.groups()
    if not first:
        return max(0, length - int(last)), length
    return int(first), min(length, int(last) + 1 if last else length)


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
