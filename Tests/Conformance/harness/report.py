"""What was found, as a table for people and as JSON for programs."""

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
    """Each failure with its reason."""
    for result in results:
        if result.outcome == "failed":
            print(f"\n✗ {result.check.section[0]}. {result.check.name} (RFC {result.check.rfc})")
            print(f"    {result.reason[:400]}")


def print_families(results):
    """A line for each check, table or not, of which something failed, and the first reason."""
    families = {}
    for result in results:
        families.setdefault((result.check.section[0], result.check.family), []).append(result)
    for (section, family), members in families.items():
        failed = [result for result in members if result.outcome == "failed"]
        if failed:
            print(f"\n✗ {section}. {family} ({len(failed)} of {len(members)})")
            print(f"    {failed[0].reason[:200]}")


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
