#!/usr/bin/env python3
"""Checks the rules and the dashboard of monitoring/, and lets Prometheus scrape a live Larder under load.

    run.py --larder .build/release/larder
    run.py --larder .build/debug/larder --brief

promtool checks the rules, their unit tests and the metrics. Then a Prometheus with a scrape interval of 1 s evaluates
the rules, and every expression of the rules and of the dashboard must return data. At last, faults of the upstream, of
jobs, of the disk and of the process must fire their alerts. --brief leaves out the faults.
"""

import argparse
import atexit
import http.client
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import documents  # noqa: E402
import exposition  # noqa: E402
from servers import Larder, MediaServer, free_port, wait_for_port  # noqa: E402

RULES = ROOT / "monitoring" / "larder.rules.yaml"
TESTS = ROOT / "monitoring" / "larder.rules.test.yaml"
DASHBOARD = ROOT / "monitoring" / "grafana" / "larder.json"

FILES, FILE_SIZE = 40, 1 << 20
DEADLINE = 60
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
#: The settings make misses, evictions and an open circuit likely: the files do not fit, and one origin has no server.
SETTINGS = [
    "policy.capacity=16MiB", "policy.minFreeDisk=1MiB", "policy.grace=1s", "origins.media.verify=always",
    "origins.broken.allowPrivateAddresses=true", "origins.broken.retries=0", "origins.broken.circuitBreaker.failures=1",
]  # fmt: skip

DURATION = re.compile(r"\[[^\]]*\]")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
SELECTOR = re.compile(r'(?<![\w:"])(larder_\w+|up|\w+:[\w:]+)(?![\w:]*\s*\()(\{[^}]*\})?')
COMPARISON = re.compile(r"\s(?:==|!=|<=|>=|<|>)\s+[+-]?(?:[0-9][0-9.e+-]*|Inf)\b")


class Failures:
    def __init__(self):
        self.count, self.checks = 0, 0

    def check(self, holds, message):
        self.checks += 1
        if not holds:
            self.count += 1
            print(f"  FAILED: {message}", flush=True)


def wait_until(condition, seconds=DEADLINE):
    """Evaluates `condition` until it is true or the time is over; returns its last value."""
    until = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < until:
        time.sleep(0.2)
    return value


def promtool(failures, *arguments, text=None):
    """Runs promtool. Any line that it prints about `text` is a complaint."""
    done = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, timeout=60)
    output = done.stdout + done.stderr
    is_fine = done.returncode == 0 and not (text and output.strip())
    failures.check(is_fine, f"promtool {' '.join(map(str, arguments))}:\n{output}")


# --- Files. ---


def check_tests(failures):
    """Each alert of the rules has unit tests in which it fires and does not fire."""
    cases = TESTS.read_text().split("alertname: ")[1:]
    for name in sorted(set(re.findall(r"- alert: (\w+)", RULES.read_text()))):
        mine = [case for case in cases if re.match(rf"{name}\b", case)]
        failures.check(any("exp_labels" in case for case in mine), f"no unit test fires {name}")
        failures.check(any("exp_alerts: []" in case for case in mine), f"no unit test leaves {name} silent")


def panels_of(dashboard):
    """All panels, with those inside collapsed rows."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def check_dashboard(failures, dashboard):
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    failures.check(dashboard["uid"] == "larder" and dashboard["id"] is None, "dashboard: uid and id are not fixed")
    failures.check(list(variables) == ["datasource", "instance", "origin"], f"dashboard: variables {list(variables)}")
    failures.check(variables["datasource"]["type"] == "datasource", "dashboard: datasource is not of its type")
    source = {"type": "prometheus", "uid": "${datasource}"}
    users = [variables["instance"], variables["origin"], *dashboard["annotations"]["list"]]
    identifiers, places = [], {}
    for panel in panels_of(dashboard):
        name, place = f"panel {panel['title']!r}", panel["gridPos"]
        identifiers.append(panel["id"])
        columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(x, y) for x in columns for y in rows}
        failures.check(all(0 <= x < 24 for x, _ in cells), f"{name} exceeds the 24 columns")
        for other, taken in places.items():
            failures.check(not cells & taken, f"{name} overlaps {other}")
        places[name] = cells
        if panel["type"] == "row":
            continue
        users += [panel, *panel["targets"]]
        failures.check(panel["description"].endswith("."), f"{name} has no description")
        failures.check(panel["fieldConfig"]["defaults"].get("unit"), f"{name} has no unit")
        references = [target["refId"] for target in panel["targets"]]
        failures.check(references and len(references) == len(set(references)), f"{name}: refIds {references}")
        for target in panel["targets"]:
            selected = selectors(target["expr"])
            failures.check(
                selected and all('instance=~"$instance"' in labels for _, labels in selected),
                f"{name}: {target['expr']} does not select $instance everywhere",
            )
            failures.check(target["legendFormat"], f"{name}: {target['expr']} has no legend")
    failures.check(len(identifiers) == len(set(identifiers)), f"dashboard: panel ids {sorted(identifiers)}")
    failures.check(len(places) == len(list(panels_of(dashboard))), "dashboard: two panels have the same title")
    for user in users:
        failures.check(user["datasource"] == source, f"dashboard: no datasource variable in {str(user)[:100]}")


# --- Expressions. ---


def selectors(expression):
    """The selected metrics: name and label matchers."""
    return SELECTOR.findall(GROUPING.sub(" ", DURATION.sub("", expression)))


def without_thresholds(expression):
    """The expression without comparisons with numbers, so that it has a value while the alert is silent."""
    return COMPARISON.sub("", expression)


def substituted(expression, instance):
    """The expression with a value for each variable of Grafana."""
    pattern = re.escape(instance).replace("\\", "\\\\")
    values = {"__rate_interval": "15s", "__range": "1m", "__interval": "5s", "instance": pattern, "origin": ".*"}
    return re.sub(r"\$\{?(\w+)\}?", lambda match: values[match.group(1)], expression)


class Prometheus:
    """A Prometheus process that scrapes one Larder each second."""

    def __init__(self, directory, rules, target):
        self.directory, self.port = pathlib.Path(directory), free_port()
        (self.directory / "rules.yaml").write_text(rules)
        configuration = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{"job_name": "larder", "static_configs": [{"targets": [target]}]}],
        }
        # JSON is a subset of YAML.
        (self.directory / "prometheus.yml").write_text(json.dumps(configuration))
        with open(self.directory / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                [
                    "prometheus", f"--config.file={self.directory}/prometheus.yml",
                    f"--storage.tsdb.path={self.directory}/data", f"--web.listen-address=127.0.0.1:{self.port}",
                    "--enable-feature=exemplar-storage", "--log.level=warn",
                ],
                stdout=log, stderr=log,
            )  # fmt: skip
        atexit.register(self.process.kill)
        wait_for_port(self.port, self.process)
        if not wait_until(lambda: self.ask("/-/ready")[0] == 200):
            raise SystemExit("Prometheus does not start")

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def get(self, path, **parameters):
        """The `data` of an API call."""
        status, body = self.ask(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        if status != 200:
            raise SystemExit(f"Prometheus: {parameters}: {status} {body.decode()}")
        return json.loads(body)["data"]

    def has_data(self, expression):
        """Whether the expression returns at least one sample with a number."""
        found = self.get("query", query=expression)["result"]
        return any(math.isfinite(float(series["value"][1])) for series in found)

    def firing(self):
        """The firing alerts by name."""
        return {
            alert["labels"]["alertname"]: alert for alert in self.get("alerts")["alerts"] if alert["state"] == "firing"
        }

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Load:
    """Reads of a client: hits, ranges, misses, partial hits, a missing file, an unreachable origin, an account, and jobs."""

    def __init__(self, larder):
        self.larder, self.stopping = larder, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        connection, turn = http.client.HTTPConnection("127.0.0.1", self.larder.port, timeout=30), 0
        while not self.stopping.wait(0.05):
            file = f"{turn % FILES:02}"
            reads = [
                ("media/hot", None), ("media/hot", "bytes=1000-1999"), (f"media/{file}", "bytes=0-65535"),
                (f"media/{file}", None), ("media/missing", None), ("broken/file", None), ("signed/hot", "bytes=0-99"),
            ]  # fmt: skip
            for path, window in reads:
                try:
                    headers = {"traceparent": f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"}
                    connection.request("GET", f"/o/{path}", headers=headers | ({"Range": window} if window else {}))
                    connection.getresponse().read()
                except (OSError, http.client.HTTPException):
                    connection.close()
            if turn % 20 == 0:
                try:
                    post_job(self.larder, "hot", file)
                except OSError:
                    pass
            turn += 1
        connection.close()

    def stop(self):
        self.stopping.set()
        self.thread.join()


# --- Checks of the live service. ---


def scrape(larder, accept):
    """Content-Type and text of /metrics."""
    connection = http.client.HTTPConnection("127.0.0.1", larder.port, timeout=30)
    try:
        connection.request("GET", "/metrics", headers={"Accept": accept})
        response = connection.getresponse()
        return response.headers["Content-Type"], response.read().decode()
    finally:
        connection.close()


def check_texts(failures, larder):
    """Both text formats are valid and have the same metrics. Returns the types of the metrics."""
    kind, text = scrape(larder, "text/plain")
    failures.check(kind.startswith("text/plain; version=0.0.4"), f"Content-Type of the text format: {kind}")
    promtool(failures, "check", "metrics", text=text)
    metrics, faults = exposition.parse(text, is_openmetrics=False)
    kind, text = scrape(larder, OPENMETRICS)
    failures.check(kind.startswith(OPENMETRICS), f"Content-Type of OpenMetrics: {kind}")
    open_metrics, open_faults = exposition.parse(text, is_openmetrics=True)
    failures.check(not faults, f"/metrics as text: {faults[:5]}")
    failures.check(not open_faults, f"/metrics as OpenMetrics: {open_faults[:5]}")
    failures.check(metrics == open_metrics, f"the formats differ: {sorted(metrics.items() ^ open_metrics.items())}")
    return metrics


def check_names(failures, metrics, rules, expressions):
    """Each selected metric exists, with the type that its use requires."""
    recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
    series = exposition.series(metrics)
    for place, expression in expressions:
        for name, _ in selectors(expression):
            failures.check(name in series or name in recorded or name == "up", f"{place}: {name} does not exist")
        for name in re.findall(r"\b(?:rate|increase)\(\s*(\w+)", expression):
            kind = series.get(name)
            failures.check(kind in ("counter", "histogram", None), f"{place}: {name} is a {kind}")


def check_expressions(failures, prometheus, larder, rules, dashboard):
    instance = f"127.0.0.1:{larder.port}"
    wanted = {}
    for panel in panels_of(dashboard):
        for target in panel.get("targets", []):
            wanted[substituted(target["expr"], instance)] = f"panel {panel['title']!r}"
    for rule in rules:
        stripped = without_thresholds(rule["query"])
        failures.check(not re.search(r"[<>]|==", stripped), f"{rule['name']}: a threshold is not a number: {stripped}")
        wanted[stripped] = rule["name"]
        for name, labels in selectors(rule["query"]):
            wanted[name + labels] = rule["name"]

    def missing():
        for expression in [expression for expression in wanted if prometheus.has_data(expression)]:
            del wanted[expression]
        return wanted

    count = len(wanted)
    wait_until(lambda: not missing())
    for expression, place in wanted.items():
        failures.check(False, f"{place}: no data: {expression}")
    failures.checks += count - len(wanted)
    return count


def check_variables(failures, prometheus, larder, dashboard):
    instance = f"127.0.0.1:{larder.port}"
    expected = {"instance": [instance], "origin": ["broken", "media", "signed"]}
    for variable in dashboard["templating"]["list"][1:]:
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
        values = prometheus.get(f"label/{label}/values", **{"match[]": substituted(selector, instance)})
        failures.check(values == expected.get(label), f"variable {label}: {values}")


def check_target(failures, prometheus):
    """Whether Prometheus scrapes Larder without an error."""

    def errors():
        return [target["lastError"] or target["health"] for target in prometheus.get("targets")["activeTargets"]]

    wait_until(lambda: errors() == ["up"], 20)
    failures.check(errors() == ["up"], f"scrapes: {errors()}")
    return errors() == ["up"]


def check_scrapes(failures, prometheus, larder, metrics):
    """Prometheus negotiates OpenMetrics: it stores exemplars, and the metadata of counters has no suffix `_total`."""
    metadata = wait_until(lambda: prometheus.get("metadata"))
    for name, kind in metrics.items():
        found = metadata.get(name.removesuffix("_total") if kind == "counter" else name, [{}])[0]
        failures.check(found.get("type") == kind and found.get("help"), f"metadata of {name}: {found}")
    traced = re.findall(r"^(larder_\w+)_bucket\{.* # \{trace_id=", scrape(larder, OPENMETRICS)[1], re.M)
    for name in sorted(set(traced)):
        found = wait_until(lambda: exemplars(prometheus, name))
        failures.check(found, f"Prometheus stored no exemplar of {name}")
    print(f"  histograms with exemplars: {len(set(traced))}")
    failures.check(prometheus.has_data('scrape_samples_scraped{job="larder"} > 100'), "few samples")


def exemplars(prometheus, name):
    now = time.time()
    return prometheus.get("query_exemplars", query=f"{name}_bucket", start=now - 600, end=now)


def check_annotations(failures, rules):
    runbooks = (ROOT / "docs" / "troubleshooting.md").read_text()
    headings = set(map(documents.anchor, documents.HEADING.findall(runbooks)))
    for rule in rules:
        if rule["type"] != "alerting":
            continue
        name, annotations, severity = rule["name"], rule["annotations"], rule["labels"].get("severity")
        failures.check(severity in ("critical", "warning", "info"), f"{name}: severity {severity}")
        failures.check(set(annotations) == {"summary", "description", "runbook_url"}, f"{name}: {set(annotations)}")
        failures.check("{{" not in annotations["summary"], f"{name}: the summary depends on the instance")
        page, _, heading = annotations["runbook_url"].partition("#")
        failures.check(page == "docs/troubleshooting.md" and heading in headings, f"{name}: no runbook {heading}")


def check_counts(failures, larder):
    """After the load, the histograms have counted each request once."""
    text = scrape(larder, "text/plain")[1]
    totals = {}
    for result, count in re.findall(r'(?m)^larder_requests_total\{.*result="(\w+)"\} (\d+)$', text):
        totals[result] = totals.get(result, 0) + int(count)
    counts = re.findall(r'(?m)^larder_request_duration_seconds_count\{result="(\w+)"\} (\d+)$', text)
    counts = {result: int(count) for result, count in counts}
    failures.check(counts == totals, f"request durations {counts}, requests {totals}")


# --- Faults. ---


def post_job(larder, *paths):
    """Creates a job; returns the status of the response."""
    return larder.ask("POST", "/v1/jobs", {"items": [{"origin": "media", "path": path} for path in paths]})[0]


def damage(larder, content):
    """Changes one byte of the file that begins with `content`."""
    for file in (larder.directory / "store" / "assets").rglob("*"):
        if file.is_file() and file.read_bytes()[: len(content)] == content:
            with open(file, "r+b") as stored:
                stored.seek(100)
                stored.write(bytes([content[100] ^ 1]))
            return
    raise SystemExit("the file of an asset was not found")


def check_faults(failures, prometheus, larder, hot):
    """Causes faults; their alerts must fire with complete texts."""
    load = Load(larder)
    atexit.register(load.stop)

    def fires(name, labels):
        alert = wait_until(lambda: prometheus.firing().get(name))
        failures.check(alert, f"{name} does not fire; firing: {sorted(prometheus.firing())}")
        if alert:
            print(f"  {name}: {alert['annotations']['description']}", flush=True)
            texts = " ".join(alert["annotations"].values())
            failures.check(not re.search(r"<no value>|<error|  |%!", texts), f"{name}: {texts}")
            failures.check(all(alert["labels"].get(key) for key in labels), f"{name}: {alert['labels']}")

    everywhere = ["job", "instance", "severity"]
    fires("CircuitOpen", [*everywhere, "origin"])
    silent = {"JobsFailing", "ChecksumFailures", "NotReady", "LarderDown"} & set(prometheus.firing())
    failures.check(not silent, f"firing without a fault: {silent}")
    for number in range(3):
        failures.check(post_job(larder, f"missing-{number}") == 202, "a job was refused")
    fires("JobsFailing", everywhere)
    damage(larder, hot)
    fires("ChecksumFailures", everywhere)
    (larder.directory / "store").rename(larder.directory / "moved")
    fires("NotReady", everywhere)
    load.stop()
    larder.kill()
    fires("LarderDown", everywhere)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--larder", required=True)
    parser.add_argument("--brief", action="store_true")
    options = parser.parse_args()
    has_nginx = shutil.which("nginx") or os.path.exists("/usr/sbin/nginx")
    if options.brief and not (shutil.which("promtool") and shutil.which("prometheus") and has_nginx):
        print("monitoring: skipped, prometheus or nginx is not installed; `scripts/monitoring PROGRAM` installs them")
        return

    failures = Failures()
    promtool(failures, "check", "rules", RULES)
    promtool(failures, "test", "rules", TESTS)
    check_tests(failures)
    dashboard = json.loads(DASHBOARD.read_text())
    check_dashboard(failures, dashboard)

    directory = pathlib.Path(tempfile.mkdtemp(prefix="larder-monitoring."))
    atexit.register(shutil.rmtree, directory, True)
    for name in ("media", "nginx", "prometheus"):
        (directory / name).mkdir()
    hot = os.urandom(FILE_SIZE)
    (directory / "media" / "hot").write_bytes(hot)
    for number in range(FILES):
        (directory / "media" / f"{number:02}").write_bytes(os.urandom(FILE_SIZE))
    upstream = MediaServer(directory / "nginx", directory / "media")
    atexit.register(upstream.stop)
    broken = f"origins.broken.baseURL=http://127.0.0.1:{free_port()}"
    (directory / "credentials").mkdir()
    (directory / "credentials" / "sas.txt").write_text("sv=2023-11-03&se=2099-01-01T00:00:00Z&sp=r&sig=c2ln\n")
    signed = [
        f"credentialsDirectory={directory / 'credentials'}", f"origins.signed.baseURL=http://127.0.0.1:{upstream.port}",
        "origins.signed.allowPrivateAddresses=true", "origins.signed.access=public", "origins.signed.auth.type=sas",
        "origins.signed.auth.file=sas.txt",
    ]  # fmt: skip
    larder = Larder(os.path.abspath(options.larder), directory, upstream.port, [*SETTINGS, broken, *signed])
    if larder.start() is None:
        raise SystemExit("Larder does not start")
    load = Load(larder)
    atexit.register(load.stop)
    # Alerts fire without the delay of `for`.
    rules = re.sub(r"(?m)^( +for:) .*$", r"\1 0s", RULES.read_text())
    prometheus = Prometheus(directory / "prometheus", rules, f"127.0.0.1:{larder.port}")

    rules = wait_until(lambda: [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]])
    check_annotations(failures, rules)
    metrics = check_texts(failures, larder)
    check_names(failures, metrics, rules, [(rule["name"], rule["query"]) for rule in rules])
    panels = [panel for panel in panels_of(dashboard) if "targets" in panel]
    check_names(failures, metrics, rules, [(p["title"], target["expr"]) for p in panels for target in p["targets"]])
    count = 0
    if check_target(failures, prometheus):
        count = check_expressions(failures, prometheus, larder, rules, dashboard)
        check_variables(failures, prometheus, larder, dashboard)
        check_scrapes(failures, prometheus, larder, metrics)
        load.stop()
        check_counts(failures, larder)
        if not options.brief:
            check_faults(failures, prometheus, larder, hot)
    larder.stop()
    prometheus.stop()
    print(f"monitoring: {len(metrics)} metrics, {count} expressions, {failures.checks} checks, {failures.count} failed")
    sys.exit(1 if failures.count else 0)


if __name__ == "__main__":
    main()
