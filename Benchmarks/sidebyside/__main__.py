"""    python3 -m sidebyside LARDER [--brief] [--only NAME,NAME] [--rounds N] [--json FILE] [--list]

Exits 0 if every figure with a limit meets it; a brief run only checks that all parts can be measured.
"""

import argparse
import datetime
import json
import pathlib
import shutil
import sys
import tempfile
import time

from fillbench.__main__ import machine, version

from .catalog import catalog
from .cold import cold
from .core import core
from .encrypted import encrypted
from .memory import memory
from .stage import Stage
from .table import Table
from .warm import tail, tls, warm

PARTS = {
    "warm": warm, "tls": tls, "core": core, "encrypted": encrypted, "tail": tail, "cold": cold, "memory": memory,
    "catalog": catalog,
}  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(prog="bench", description="The cost of a read, beside nginx.")
    parser.add_argument("larder")
    parser.add_argument("--brief", action="store_true", help="one short run of everything, without limits")
    parser.add_argument("--only", default="", help=f"parts, separated by commas: {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=0, help="rounds for each figure (3)")
    parser.add_argument("--json", default="", help="a file for all values")
    parser.add_argument("--list", action="store_true", help="prints the parts")
    return parser.parse_args()


def main():
    options = arguments()
    if options.list:
        print("\n".join(PARTS))
        return 0
    names = [name for name in options.only.split(",") if name] or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        raise SystemExit(f"bench: unknown parts: {', '.join(unknown)} (there are {', '.join(PARTS)})")
    rounds = options.rounds or (1 if options.brief else 3)
    table, began = Table(), time.monotonic()
    media = pathlib.Path(tempfile.mkdtemp(prefix="larder-bench-media."))
    report = {
        "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "machine": machine(),
        "larder": version(options.larder, "--version"),
        "nginx": version(shutil.which("nginx") or "/usr/sbin/nginx", "-v"), "rounds": rounds, "brief": options.brief,
        "congestionControl": pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
    }  # fmt: skip
    try:
        for name in names:
            started = time.monotonic()
            with Stage(options.larder, media, options.brief) as stage:
                PARTS[name](table, stage, rounds)
                report.setdefault("nginxConfiguration", {}).update(stage.configurations)
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(media, ignore_errors=True)
    return tell(table, report, options, time.monotonic() - began)


def tell(table, report, options, seconds):
    for name, text in report["nginxConfiguration"].items():
        print(f"nginx, {name}: {' '.join(text.split())}")
    kept = report["machine"]
    print(
        f"\n{report['larder']}, {report['nginx']}, {kept['cores']} × {kept['processor']}, "
        f"congestion control {report['congestionControl']}, {seconds:.0f} s"
    )
    print(f"\n{table.text()}\n")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({**report, "figures": table.as_json()}, indent=1))
    held = options.brief or table.held()
    print("bench: measured" if options.brief else "bench: held" if held else "bench: NOT MET")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
