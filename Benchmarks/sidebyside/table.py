"""Ratios of the measured values, and their limits."""

import statistics
from dataclasses import dataclass, field


@dataclass
class Line:
    """One figure over all rounds. It is judged by its median."""

    name: str
    unit: str = ""
    most: float = None
    least: float = None
    aim: str = ""
    #: Larder's value ÷ the peer's, or the value itself, of each round.
    values: list = field(default_factory=list)
    #: The underlying values, by server.
    behind: dict = field(default_factory=dict)

    @property
    def verdict(self):
        if self.most is None and self.least is None:
            return ""
        median = statistics.median(self.values)
        held = (self.most is None or median <= self.most) and (self.least is None or median >= self.least)
        return "held" if held else "NOT MET"

    @property
    def rule(self):
        return f"≤ {self.most:g}" if self.most is not None else f"≥ {self.least:g}" if self.least is not None else ""

    def text(self, value):
        return f"{value:.3g}{self.unit}"

    def cells(self):
        median, least, most = statistics.median(self.values), min(self.values), max(self.values)
        behind = ", ".join(f"{name} {statistics.median(values):.4g}" for name, values in self.behind.items())
        return [
            self.name, self.rule, self.aim, self.text(median), f"{self.text(least)} … {self.text(most)}", behind,
            self.verdict,
        ]  # fmt: skip


class Table:
    def __init__(self):
        self.lines = {}

    def add(self, name, value, behind=None, **rules):
        line = self.lines.setdefault(name, Line(name, **rules))
        line.values.append(value)
        for server, number in (behind or {}).items():
            line.behind.setdefault(server, []).append(number)

    def held(self):
        return bool(self.lines) and all(line.verdict != "NOT MET" for line in self.lines.values())

    def text(self):
        rows = [["figure", "limit", "aim", "median", "spread", "values (medians)", ""]]
        rows += [line.cells() for line in self.lines.values()]
        widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows)

    def as_json(self):
        return [
            {
                "figure": line.name, "unit": line.unit, "most": line.most, "least": line.least,
                "values": line.values, "behind": line.behind, "verdict": line.verdict,
            }
            for line in self.lines.values()
        ]  # fmt: skip
