"""Black-box benchmark of fills: their cost for the upstream and for readers.

    python3 -m fillbench LARDER [--brief] [--only NAME,NAME] [--rounds N] [--json FILE] [--list]

Exits 0 if every figure of Larder is within its limits.
"""

import argparse
import asyncio
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

from . import broken, cold, crowds, hangups, multiplexed, players, road  # noqa: F401: the modules register scenarios
from .figures import Figure, Results
from .scenarios import SCENARIOS
from .stage import ScriptedUpstream, Stage

ORDER = [
    "overlap", "herd", "hangup", "leave", "seeks", "cuts", "far", "link", "prefetch", "rangeless", "closing", "files", "slow", "http2",
]  # fmt: skip


def arguments():
    parser = argparse.ArgumentParser(prog="fills", description="Measures the cost of fills for upstream and readers.")
    parser.add_argument("larder")
    parser.add_argument("--brief", action="store_true", help="a few small scenarios, one round, without nginx")
    parser.add_argument("--only", default="", help="scenarios, separated by commas")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of each scenario (default: 3)")
    parser.add_argument("--json", default="", help="write all figures to this file")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    return parser.parse_args()


def chosen(only, brief):
    """The selected scenarios in the order of `ORDER`."""
    names = [name for name in only.split(",") if name]
    if unknown := [name for name in names if name not in SCENARIOS]:
        raise SystemExit(f"fills: unknown scenario: {', '.join(unknown)}; known: {', '.join(ORDER)}")
    return [SCENARIOS[name] for name in ORDER if (name in names if names else not brief or SCENARIOS[name].brief)]


def measure(scenario, program, media, brief, peer, number):
    """Runs one round; returns its figures and faults."""
    figures = []
    with Stage(program, media, brief, peer, number) as stage:
        try:
            figures = asyncio.run(asyncio.wait_for(scenario.play(stage), scenario.limit))
        except asyncio.TimeoutError:
            stage.faults.append(f"the round did not end within {scenario.limit:.0f} s")
        except Exception as error:  # a failed round is a fault; the other rounds are run
            stage.faults.append(f"{type(error).__name__}: {error}")
    return [*figures, Figure("faults", len(stage.faults), most=0)], stage.faults


def ceilings(media):
    """The capacity of the scripted upstream: bytes per second of one transfer, and small requests per second."""
    file = media / "ceiling"
    with open(file, "wb") as opened:
        opened.write(bytes(1 << 30))
    upstream = ScriptedUpstream(media)
    url = f"http://127.0.0.1:{upstream.port}/ceiling"
    try:
        quiet = ["curl", "--silent", "--fail", "--output", "/dev/null"]
        whole = subprocess.run([*quiet, "--write-out", "%{speed_download}", url], capture_output=True, check=True)
        began = time.monotonic()
        subprocess.run([*quiet, "--range", "0-4095", f"{url}?[1-2000]"], capture_output=True, check=True)
        return {"bytesPerSecond": float(whole.stdout), "requestsPerSecond": 2000 / (time.monotonic() - began)}
    finally:
        upstream.stop()
        file.unlink()


def machine():
    """Processor, cores, memory and kernel, for the report."""
    model = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"processor": model, "cores": os.cpu_count(), "memoryBytes": memory, "kernel": platform.release()}


def version(*command):
    found = subprocess.run(command, capture_output=True, text=True)
    return (found.stdout or found.stderr).strip().splitlines()[0]


def main():
    options = arguments()
    if options.list:
        for name in ORDER:
            print(f"  {name:10} {SCENARIOS[name].title}")
        return 0
    rounds = options.rounds or (1 if options.brief else 3)
    results, began = Results(), time.monotonic()
    media = pathlib.Path(tempfile.mkdtemp(prefix="larder-fills-media."))
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    report = {
        "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "machine": machine(),
        "larder": version(options.larder, "--version"), "rounds": rounds, "brief": options.brief,
    }  # fmt: skip
    try:
        if not options.brief:
            report["nginx"] = version(nginx, "-v")
            report["upstreamCeiling"] = ceilings(media)
        for scenario in chosen(options.only, options.brief):
            for number in range(1, rounds + 1):
                for peer in ["larder"] + (["nginx"] if scenario.beside_nginx and not options.brief else []):
                    started = time.monotonic()
                    figures, faults = measure(scenario, options.larder, media, options.brief, peer, number)
                    results.add(scenario.name, peer, figures, faults)
                    spent = time.monotonic() - started
                    print(f"{scenario.name}: round {number}, {peer}, {spent:.1f} s", file=sys.stderr, flush=True)
                    for fault in faults[:5]:
                        print(f"    fault: {fault}", file=sys.stderr)
                    if len(faults) > 5:
                        print(f"    … and {len(faults) - 5} more; the last one: {faults[-1]}", file=sys.stderr)
            for file in media.iterdir():
                file.unlink()
    finally:
        shutil.rmtree(media, ignore_errors=True)
    return tell(results, report, options.json, time.monotonic() - began)


def tell(results, report, file, seconds):
    """Prints the table and writes the report; returns the exit code."""
    ceiling = report.get("upstreamCeiling")
    kept = report["machine"]
    print(f"\n{report['larder']}, {kept['cores']} × {kept['processor']}, {report['rounds']} rounds, {seconds:.0f} s")
    if ceiling:
        print(
            f"capacity of the scripted upstream: {ceiling['bytesPerSecond'] / 1e6:,.0f} MB/s, "
            f"{ceiling['requestsPerSecond']:,.0f} requests/s on one connection"
        )
    print(f"\n{results.table()}\n")
    if file:
        faults = [{"scenario": s, "peer": p, "faults": texts} for (s, p), texts in results.faults.items()]
        pathlib.Path(file).write_text(json.dumps({**report, "figures": results.as_json(), "faults": faults}, indent=1))
    held = results.held()
    print("fills: held" if held else "fills: FAILED")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
