"""The results, as a table for people and as JSON for programs."""

import json
from collections import Counter


def print_table(results, titles):
    """Section, checks, passed, failed, skipped."""
    counts = {section: Counter() for section in sorted(titles)}
    for result in results:
        counts[result.check.section[0]][result.outcome] += 1
    print(f"  {'section':<52}{'checks':>8}{'passed':>8}{'failed':>8}{'skipped':>9}")
    for section, count in counts.items():
        print_row(f"{section:>2}  {titles[section]}", count)
    print_row("    all", sum(counts.values(), Counter()))


def print_failures(results):
    """Each failed check with its reason; a repeated check once, with the number of its failures."""
    for members in grouped(results, lambda check: check.name):
        failed = [result for result in members if result.outcome == "failed"]
        if failed:
            check, count = failed[0].check, f" {len(failed)} of {len(members)} times" if len(members) > 1 else ""
            print(f"\n✗ {check.section[0]}. {check.name} (RFC {check.rfc}){count}")
            print(f"    {failed[0].reason[:400]}")


def print_families(results):
    """A line for each check or table with a failure, and the first reason."""
    for members in grouped(results, lambda check: check.family):
        failed = [result for result in members if result.outcome == "failed"]
        if failed:
            check = failed[0].check
            print(f"\n✗ {check.section[0]}. {check.family} ({len(failed)} of {len(members)})")
            print(f"    {failed[0].reason[:200]}")


def grouped(results, name):
    """The results of checks of one section with the same name, in the order of their first occurrence."""
    groups = {}
    for result in results:
        groups.setdefault((result.check.section[0], name(result.check)), []).append(result)
    return groups.values()


def print_row(title, count):
    cells = f"{sum(count.values()):>8}{count['passed']:>8}{count['failed']:>8}{count['skipped']:>9}"
    print(f"  {title:<52}{cells}")


def write_json(path, results, name):
    document = {
        "peer": name,
        "results": [
            {
                "section": result.check.section[0],
                "title": result.check.section[1],
                "name": result.check.name,
                "rfc": result.check.rfc,
                "outcome": result.outcome,
                "reason": result.reason,
                "seconds": round(result.seconds, 3),
            }
            for result in results
        ],
    }
    with open(path, "w") as file:
        json.dump(document, file, indent=1, ensure_ascii=False)
