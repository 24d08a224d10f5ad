"""What was found, as a table for people and as JSON for programs."""

import json
from collections import Counter


def print_table(results, titles):
    """Section, checks, passed, failed, skipped; then each failure with its reason."""
    counts = {section: Counter() for section in sorted(titles)}
    for result in results:
        counts[result.check.section[0]][result.outcome] += 1
    print(f"  {'section':<52}{'checks':>8}{'passed':>8}{'failed':>8}{'skipped':>9}")
    for section, count in counts.items():
        print_row(f"{section:>2}  {titles[section]}", count)
    print_row("    all", sum(counts.values(), Counter()))
    failures = [result for result in results if result.outcome == "failed"]
    for result in failures:
        print(f"\n✗ {result.check.section[0]}. {result.check.name} (RFC {result.check.rfc})")
        print(f"    {result.reason[:600]}")


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
