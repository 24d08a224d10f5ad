"""Parser of the text formats of Prometheus: version 0.0.4 and OpenMetrics 1.0.0."""

import re

NAME = r"[a-zA-Z_:][\w:]*"
LABELS = r'\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\.)*",?)*\}'
NUMBER = r"(?:[+-]?Inf|NaN|[+-]?[0-9.]+(?:e[+-]?\d+)?)"
SAMPLE = re.compile(rf"({NAME})({LABELS})? ({NUMBER})(?: ({NUMBER}))?(?: # ({LABELS}) ({NUMBER})(?: ({NUMBER}))?)?")
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


def series(metrics):
    """The names of the samples of these metrics, with the type of the metric."""
    return {
        name + suffix: kind
        for name, kind in metrics.items()
        for suffix in (SUFFIXES[kind] if kind == "histogram" else ("",))
    }


def parse(text, is_openmetrics):
    """The metrics of a text, name to type, counters with their suffix `_total`; and a list of faults."""
    metrics, faults, samples = {}, [], {}
    name, kind, has_help = None, None, False
    lines = text.split("\n")
    if lines[-1]:
        faults.append("the last line has no end")
    lines.pop()
    if is_openmetrics and (not lines or lines.pop() != "# EOF"):
        faults.append("the last line is not # EOF")
    for number, line in enumerate(lines, 1):
        if match := re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line):
            word, other, value = match.groups()
            if other != name:
                name, kind, has_help = other, None, False
            if word == "HELP":
                has_help = True
            else:
                kind = value
                full = name + "_total" if is_openmetrics and kind == "counter" else name
                if full in metrics:
                    faults.append(f"{full} occurs twice")
                if kind not in SUFFIXES:
                    faults.append(f"{full} has the type {kind}")
                metrics[full] = kind
            continue
        match = SAMPLE.fullmatch(line)
        if not match:
            faults.append(f"line {number} is not a sample: {line[:100]}")
            continue
        sample, labels, value, time, exemplar, exemplar_value, _ = match.groups()
        if not has_help or kind is None:
            faults.append(f"{sample} has no HELP or no TYPE")
            continue
        suffixes = SUFFIXES[kind] if kind != "counter" or is_openmetrics else ("",)
        suffix = sample.removeprefix(name)
        if not sample.startswith(name) or suffix not in suffixes:
            faults.append(f"{sample} is below {name} of the type {kind}")
            continue
        if time is not None:
            faults.append(f"{sample} has a time")
        pairs = dict(LABEL.findall(labels or ""))
        bound = float(pairs.pop("le")) if suffix == "_bucket" else None
        key = (name, suffix, tuple(sorted(pairs.items())))
        found = samples.setdefault(key, [])
        if bound is None and found:
            faults.append(f"{sample}{labels or ''} occurs twice")
        found.append((bound, float(value)))
        if exemplar is not None:
            is_allowed = is_openmetrics and suffix in ("_bucket", "_total")
            length = sum(len(key) + len(value) for key, value in LABEL.findall(exemplar))
            lower = found[-2][0] if len(found) > 1 else float("-inf")
            is_within = bound is None or lower < float(exemplar_value) <= bound
            if not is_allowed or length > 128 or not is_within:
                faults.append(f"invalid exemplar: {line}")
    for (name, suffix, pairs), found in samples.items():
        if suffix == "_bucket":
            bounds, counts = [bound for bound, _ in found], [count for _, count in found]
            totals = samples.get((name, "_count", pairs)), samples.get((name, "_sum", pairs))
            is_complete = None not in totals and bounds[-1] == float("inf") and totals[0][0][1] == counts[-1]
            if bounds != sorted(set(bounds)) or counts != sorted(counts) or not is_complete:
                faults.append(f"{name}{dict(pairs)}: inconsistent buckets: {found}")
    return metrics, faults
