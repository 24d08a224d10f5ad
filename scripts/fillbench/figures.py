"""Measured values, their limits, and the result table."""

import statistics
from dataclasses import dataclass, field

MEBI = 1 << 20


def number(value):
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


#: Text format of the values of each unit.
UNITS = {
    "": number,
    "ratio": lambda value: f"{value:.4f}",
    "bytes": lambda value: f"{value / MEBI:.1f} MiB",
    "ms": lambda value: f"{value:.1f} ms",
    "%": lambda value: f"{value:.2f} %",
    "s": lambda value: f"{value:.1f} s",
}


@dataclass
class Figure:
    """One measured value. A value without limits is reported and not judged."""

    name: str
    value: float
    unit: str = ""
    most: float = None
    least: float = None
    #: Whether the limit applies to the median of the rounds, or to each round.
    by_median: bool = False

    def text(self, value):
        return UNITS[self.unit](value)

    @property
    def rule(self):
        bounds = []
        if self.most is not None:
            bounds.append(f"≤ {self.text(self.most)}" if self.most != 0 else "0")
        if self.least is not None:
            bounds.append(f"≥ {self.text(self.least)}")
        return ", ".join(bounds) + (" (median)" if self.by_median and bounds else "")

    def allows(self, value):
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)


@dataclass
class Row:
    """One figure over all rounds; `by_peer` has the list of values of each cache."""

    scenario: str
    figure: Figure
    by_peer: dict = field(default_factory=dict)

    @property
    def verdict(self):
        figure, values = self.figure, self.by_peer.get("larder", [])
        if figure.most is None and figure.least is None:
            return ""
        judged = [statistics.median(values)] if figure.by_median and values else values
        return "held" if values and all(figure.allows(value) for value in judged) else "FAILED"

    def shown(self, peer):
        values = self.by_peer.get(peer)
        if not values:
            return "" if peer != "larder" else "no value"
        median, least, most = statistics.median(values), min(values), max(values)
        text = self.figure.text(median)
        return text if self.figure.text(least) == self.figure.text(most) else (
            f"{text} ({self.figure.text(least)} … {self.figure.text(most)})"
        )


class Results:
    """All rows in the order of measurement, and the faults."""

    def __init__(self):
        self.rows = {}
        self.faults = {}

    def add(self, scenario, peer, figures, faults):
        for figure in figures:
            row = self.rows.setdefault((scenario, figure.name), Row(scenario, figure))
            row.by_peer.setdefault(peer, []).append(figure.value)
        if faults:
            self.faults.setdefault((scenario, peer), []).extend(faults)

    def held(self):
        """Whether Larder met all limits without faults; nginx is not judged."""
        return all(row.verdict != "FAILED" for row in self.rows.values()) and not any(
            peer == "larder" for _, peer in self.faults
        )

    def table(self):
        rows = [["scenario", "figure", "limit", "Larder", "nginx slice 1m", ""]]
        before = None
        for row in self.rows.values():
            name = row.scenario if row.scenario != before else ""
            before = row.scenario
            rows.append([name, row.figure.name, row.figure.rule, row.shown("larder"), row.shown("nginx"), row.verdict])
        widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows)

    def as_json(self):
        return [
            {
                "scenario": row.scenario, "figure": row.figure.name, "unit": row.figure.unit,
                "most": row.figure.most, "least": row.figure.least, "values": row.by_peer, "verdict": row.verdict,
            }
            for row in self.rows.values()
        ]  # fmt: skip
