#!/usr/bin/env python3
"""Checks the rules and the dashboard of monitoring/, and lets Prometheus scrape a live Larder under load.

    run.py --larder .build/release/larder
    run.py --larder .build/debug/larder --brief

promtool checks the rules, their unit tests and the metrics. Then a Prometheus with a scrape interval of 1 s evaluates
the rules, and every expression of the rules and of the dashboard must return data. At last, faults of the upstream, of
jobs, of the disk and of the process must fire their alerts. --brief leaves out the faults.
"""

import atexit
import http.client
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests"), str(ROOT / "scripts")]

import documents  # noqa: E402
import exposition  # noqa: E402
from harness import checks, venv  # noqa: E402
from harness import http as requests  # noqa: E402
from harness.process import Larder, MediaServer, Process, free_port, origin, wait_until  # noqa: E402

RULES = ROOT / "monitoring" / "larder.rules.yaml"
TESTS = ROOT / "monitoring" / "larder.rules.test.yaml"
DASHBOARD = ROOT / "monitoring" / "grafana" / "larder.json"

FILES, FILE_SIZE = 40, 1 << 20
#: Between two requests to Prometheus, in seconds.
PAUSE = 0.2
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
#: The settings make misses, evictions and an open circuit likely: the files do not fit, and one origin has no server.
SETTINGS = [
    "policy.capacity=16MiB", "policy.minFreeDisk=1MiB", "policy.grace=1s", "origins.media.verify=always",
    "origins.broken.retries=0", "origins.broken.circuitBreaker.failures=1", "metrics.tokens=player",
]  # fmt: skip

DURATION = re.compile(r"\[[^\]]*\]")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
SELECTOR = re.compile(r'(?<![\w:"])(larder_\w+|process_\w+|up|\w+:[\w:]+)(?![\w:]*\s*\()(\{[^}]*\})?')
COMPARISON = re.compile(r"\s(?:==|!=|<=|>=|<|>)\s+[+-]?(?:[0-9][0-9.e+-]*|Inf)\b")


def promtool(check, *arguments, text=None):
    """Runs promtool. Any line that it prints about `text` is a complaint."""
    done = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, timeout=300)
    output = done.stdout + done.stderr
    is_fine = done.returncode == 0 and not (text and output.strip())
    check(is_fine, f"promtool {' '.join(map(str, arguments))}:\n{output}")


# --- Files. ---


def check_tests(check):
    """Each alert of the rules has unit tests in which it fires and does not fire."""
    cases = TESTS.read_text().split("alertname: ")[1:]
    for name in sorted(set(re.findall(r"- alert: (\w+)", RULES.read_text()))):
        mine = [case for case in cases if re.match(rf"{name}\b", case)]
        check(any("exp_labels" in case for case in mine), f"no unit test fires {name}")
        check(any("exp_alerts: []" in case for case in mine), f"no unit test leaves {name} silent")


def panels_of(dashboard):
    """All panels, with those inside collapsed rows."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def check_dashboard(check, dashboard):
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    check(dashboard["uid"] == "larder" and dashboard["id"] is None, "dashboard: uid and id are not fixed")
    check(list(variables) == ["datasource", "instance", "origin"], f"dashboard: variables {list(variables)}")
    check(variables["datasource"]["type"] == "datasource", "dashboard: datasource is not of its type")
    source = {"type": "prometheus", "uid": "${datasource}"}
    users = [variables["instance"], variables["origin"], *dashboard["annotations"]["list"]]
    identifiers, places = [], {}
    for panel in panels_of(dashboard):
        name, place = f"panel {panel['title']!r}", panel["gridPos"]
        identifiers.append(panel["id"])
        columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(x, y) for x in columns for y in rows}
        check(all(0 <= x < 24 for x, _ in cells), f"{name} exceeds the 24 columns")
        for other, taken in places.items():
            check(not cells & taken, f"{name} overlaps {other}")
        places[name] = cells
        if panel["type"] == "row":
            continue
        users += [panel, *panel["targets"]]
        check(panel["description"].endswith("."), f"{name} has no description")
        check(panel["fieldConfig"]["defaults"].get("unit"), f"{name} has no unit")
        references = [target["refId"] for target in panel["targets"]]
        check(references and len(references) == len(set(references)), f"{name}: refIds {references}")
        for target in panel["targets"]:
            selected = selectors(target["expr"])
            check(
                selected and all('instance=~"$instance"' in labels for _, labels in selected),
                f"{name}: {target['expr']} does not select $instance everywhere",
            )
            check(target["legendFormat"], f"{name}: {target['expr']} has no legend")
    check(len(identifiers) == len(set(identifiers)), f"dashboard: panel ids {sorted(identifiers)}")
    check(len(places) == len(list(panels_of(dashboard))), "dashboard: two panels have the same title")
    for user in users:
        check(user["datasource"] == source, f"dashboard: no datasource variable in {str(user)[:100]}")


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


class Prometheus(Process):
    """A Prometheus process that scrapes one Larder each second."""

    def __init__(self, directory, rules, target):
        directory.mkdir()
        (directory / "rules.yaml").write_text(rules)
        configuration = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{"job_name": "larder", "static_configs": [{"targets": [target]}]}],
        }
        # JSON is a subset of YAML.
        (directory / "prometheus.yml").write_text(json.dumps(configuration))
        port = free_port()
        command = [
            "prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage", "--log.level=warn",
        ]  # fmt: skip
        super().__init__(command, directory / "prometheus.log", port)
        self.start()

    def is_ready(self):
        return super().is_ready() and requests.send(self.port, "GET", "/-/ready").status == 200

    def get(self, path, **parameters):
        """The `data` of an API call."""
        reply = requests.send(self.port, "GET", f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        if reply.status != 200:
            raise checks.Broken(f"Prometheus: {parameters}: {reply}")
        return reply.json["data"]

    def has_data(self, expression):
        """Whether the expression returns at least one sample with a number."""
        found = self.get("query", query=expression)["result"]
        return any(math.isfinite(float(series["value"][1])) for series in found)

    def firing(self):
        """The firing alerts by name."""
        return {
            alert["labels"]["alertname"]: alert for alert in self.get("alerts")["alerts"] if alert["state"] == "firing"
        }


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
    reply = larder.send("GET", "/metrics", {"Accept": accept})
    return reply.fields["content-type"], reply.body.decode()


#: Metrics that /metrics leaves out until the load has caused their first sample.
LATE = ("larder_upstream_failures_total", "larder_origin_credentials_expiry_timestamp_seconds")
#: Metrics of a service with etcd, which Tests/Fleet/state.py checks.
ELSEWHERE = {"larder_fleet_lag_seconds"}


def check_texts(check, larder):
    """Both text formats are valid and have the same metrics. Returns the types of the metrics."""
    wait_until(lambda: all(f"# TYPE {name} " in scrape(larder, "text/plain")[1] for name in LATE), pause=PAUSE)
    kind, text = scrape(larder, "text/plain")
    check(kind.startswith("text/plain; version=0.0.4"), f"Content-Type of the text format: {kind}")
    promtool(check, "check", "metrics", text=text)
    metrics, faults = exposition.parse(text, is_openmetrics=False)
    kind, text = scrape(larder, OPENMETRICS)
    check(kind.startswith(OPENMETRICS), f"Content-Type of OpenMetrics: {kind}")
    open_metrics, open_faults = exposition.parse(text, is_openmetrics=True)
    check(not faults, f"/metrics as text: {faults[:5]}")
    check(not open_faults, f"/metrics as OpenMetrics: {open_faults[:5]}")
    check(metrics == open_metrics, f"the formats differ: {sorted(metrics.items() ^ open_metrics.items())}")
    return metrics


def check_names(check, metrics, rules, expressions):
    """Each selected metric exists, with the type that its use requires."""
    recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
    series = exposition.series(metrics)
    for place, expression in expressions:
        for name, _ in selectors(expression):
            check(name in series or name in recorded | ELSEWHERE or name == "up", f"{place}: {name} does not exist")
        for name in re.findall(r"\b(?:rate|increase)\(\s*(\w+)", expression):
            kind = series.get(name)
            check(kind in ("counter", "histogram", None), f"{place}: {name} is a {kind}")


def check_expressions(check, prometheus, larder, rules, dashboard):
    instance = f"127.0.0.1:{larder.port}"
    wanted = {}
    for panel in panels_of(dashboard):
        for target in panel.get("targets", []):
            wanted[substituted(target["expr"], instance)] = f"panel {panel['title']!r}"
    for rule in rules:
        stripped = without_thresholds(rule["query"])
        check(not re.search(r"[<>]|==", stripped), f"{rule['name']}: a threshold is not a number: {stripped}")
        if ELSEWHERE & {name for name, _ in selectors(rule["query"])}:
            continue
        wanted[stripped] = rule["name"]
        for name, labels in selectors(rule["query"]):
            wanted[name + labels] = rule["name"]

    def missing():
        for expression in [expression for expression in wanted if prometheus.has_data(expression)]:
            del wanted[expression]
        return wanted

    count = len(wanted)
    wait_until(lambda: not missing(), pause=PAUSE)
    for expression, place in wanted.items():
        check(False, f"{place}: no data: {expression}")
    check.count += count - len(wanted)
    return count


def check_variables(check, prometheus, larder, dashboard):
    instance = f"127.0.0.1:{larder.port}"
    expected = {"instance": [instance], "origin": ["broken", "media", "signed"]}
    for variable in dashboard["templating"]["list"][1:]:
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
        values = prometheus.get(f"label/{label}/values", **{"match[]": substituted(selector, instance)})
        check(values == expected.get(label), f"variable {label}: {values}")


def check_target(check, prometheus):
    """Whether Prometheus scrapes Larder without an error."""

    def errors():
        return [target["lastError"] or target["health"] for target in prometheus.get("targets")["activeTargets"]]

    wait_until(lambda: errors() == ["up"], 20, PAUSE)
    check(errors() == ["up"], f"scrapes: {errors()}")
    return errors() == ["up"]


def check_scrapes(check, prometheus, larder, metrics):
    """Prometheus negotiates OpenMetrics: it stores exemplars, and the metadata of counters has no suffix `_total`."""
    metadata = wait_until(lambda: prometheus.get("metadata"), pause=PAUSE)
    for name, kind in metrics.items():
        found = metadata.get(name.removesuffix("_total") if kind == "counter" else name, [{}])[0]
        check(found.get("type") == kind and found.get("help"), f"metadata of {name}: {found}")
    traced = re.findall(r"^(larder_\w+)_bucket\{.* # \{trace_id=", scrape(larder, OPENMETRICS)[1], re.M)
    for name in sorted(set(traced)):
        found = wait_until(lambda: exemplars(prometheus, name), pause=PAUSE)
        check(found, f"Prometheus stored no exemplar of {name}")
    print(f"  histograms with exemplars: {len(set(traced))}")
    check(prometheus.has_data('scrape_samples_scraped{job="larder"} > 100'), "few samples")


def exemplars(prometheus, name):
    now = time.time()
    return prometheus.get("query_exemplars", query=f"{name}_bucket", start=now - 600, end=now)


def check_annotations(check, rules):
    runbooks = (ROOT / "docs" / "troubleshooting.md").read_text()
    headings = set(map(documents.anchor, documents.HEADING.findall(runbooks)))
    for rule in rules:
        if rule["type"] != "alerting":
            continue
        name, annotations, severity = rule["name"], rule["annotations"], rule["labels"].get("severity")
        check(severity in ("critical", "warning", "info"), f"{name}: severity {severity}")
        check(set(annotations) == {"summary", "description", "runbook_url"}, f"{name}: {set(annotations)}")
        check("{{" not in annotations["summary"], f"{name}: the summary depends on the instance")
        page, _, heading = annotations["runbook_url"].partition("#")
        address = urllib.parse.urlsplit(page)
        is_url = address.scheme == "https" and address.netloc and address.path == "/docs/troubleshooting.md"
        check(is_url and heading in headings, f"{name}: no runbook {annotations['runbook_url']}")


def check_counts(check, larder):
    """After the load, the histograms have counted each request once."""
    text = scrape(larder, "text/plain")[1]
    totals = {}
    for result, count in re.findall(r'(?m)^larder_requests_total\{.*result="(\w+)"\} (\d+)$', text):
        totals[result] = totals.get(result, 0) + int(count)
    counts = re.findall(r'(?m)^larder_request_duration_seconds_count\{result="(\w+)"\} (\d+)$', text)
    counts = {result: int(count) for result, count in counts}
    check(counts == totals, f"request durations {counts}, requests {totals}")
    statuses = re.findall(r'(?m)^larder_responses_total\{kind="content",status="\d+"\} (\d+)$', text)
    check(sum(map(int, statuses)) == sum(totals.values()), f"responses {statuses}, requests {totals}")
    resident, opened = (float(re.search(rf"(?m)^process_{name} (\S+)$", text)[1]) for name in ("resident_memory_bytes", "open_fds"))
    status = (pathlib.Path("/proc") / str(larder.process.pid) / "status").read_text()
    measured = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024
    check(0.5 < resident / measured < 2 and opened > 5, f"process: {resident} bytes, measured {measured}; {opened} descriptors")
    check('larder_reader_requests_total{token="player"} 0' in text, "metrics.tokens has no series")


# --- Faults. ---


def post_job(larder, *paths):
    """Creates a job; returns the status of the response."""
    return larder.ask("POST", "/v1/jobs", {"items": [{"origin": "media", "path": path} for path in paths]})[0]


def damage(larder, content):
    """Changes one byte of the file that begins with `content`."""
    for file in (larder.store / "assets").rglob("*"):
        if file.is_file() and file.read_bytes()[: len(content)] == content:
            with open(file, "r+b") as stored:
                stored.seek(100)
                stored.write(bytes([content[100] ^ 1]))
            return
    raise checks.Broken("the file of an asset was not found")


def check_faults(check, prometheus, larder, hot):
    """Causes faults; their alerts must fire with complete texts."""
    load = Load(larder)
    atexit.register(load.stop)

    def fires(name, labels):
        alert = wait_until(lambda: prometheus.firing().get(name), pause=PAUSE)
        check(alert, f"{name} does not fire; firing: {sorted(prometheus.firing())}")
        if alert:
            print(f"  {name}: {alert['annotations']['description']}", flush=True)
            texts = " ".join(alert["annotations"].values())
            check(not re.search(r"<no value>|<error|  |%!", texts), f"{name}: {texts}")
            check(all(alert["labels"].get(key) for key in labels), f"{name}: {alert['labels']}")

    everywhere = ["job", "instance", "severity"]
    fires("CircuitOpen", [*everywhere, "origin"])
    fires("ErrorRatioHigh", everywhere)
    fires("DiskThrashing", everywhere)
    silent = {"JobItemsFailed", "JobsFailing", "ChecksumFailures", "NotReady", "LarderDown"} & set(prometheus.firing())
    check(not silent, f"firing without a fault: {silent}")
    for number in range(3):
        check(post_job(larder, f"missing-{number}") == 202, "a job was refused")
        if number == 0:
            fires("JobItemsFailed", everywhere)
    fires("JobsFailing", everywhere)
    damage(larder, hot)
    fires("ChecksumFailures", everywhere)
    (larder.store).rename(larder.place / "moved")
    fires("NotReady", everywhere)
    load.stop()
    larder.kill()
    fires("LarderDown", everywhere)


def main():
    parser = checks.arguments(__doc__, brief="without the alerts of faults; with installed programs only")
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    if options.brief and not venv.has_programs("promtool", "prometheus", "nginx"):
        checks.skip_all("monitoring", "prometheus or nginx is not installed; `scripts/monitoring PROGRAM` installs them")
    if not options.brief:
        venv.packages("nginx-light", "prometheus")
    results, dashboard = checks.Checks("monitoring"), json.loads(DASHBOARD.read_text())
    with results.part("files", "rules, their unit tests and the dashboard") as check:
        promtool(check, "check", "rules", RULES)
        promtool(check, "test", "rules", TESTS)
        check_tests(check)
        check_dashboard(check, dashboard)
    with results.part("service", "a Prometheus that scrapes a live service") as check:
        check_service(check, program, dashboard, options.brief)
    sys.exit(results.finish())


def check_service(check, program, dashboard, is_brief):
    directory = checks.directory("monitoring")
    for name in ("media", "credentials"):
        (directory / name).mkdir()
    hot = os.urandom(FILE_SIZE)
    (directory / "media" / "hot").write_bytes(hot)
    for number in range(FILES):
        (directory / "media" / f"{number:02}").write_bytes(os.urandom(FILE_SIZE))
    upstream = MediaServer(directory / "nginx", directory / "media")
    (directory / "credentials" / "sas.txt").write_text("sv=2023-11-03&se=2099-01-01T00:00:00Z&sp=r&sig=c2ln\n")
    (directory / "secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    settings = [
        f"webhooks.ops.secretFile={directory / 'secret'}", "webhooks.ops.url=https://ops.example/", "webhooks.ops.events=disk.full",
        *SETTINGS, *origin("broken", f"http://127.0.0.1:{free_port()}"), f"credentialsDirectory={directory / 'credentials'}",
        *origin("signed", f"http://127.0.0.1:{upstream.port}", access="public", auth_type="sas", auth_file="sas.txt"),
    ]  # fmt: skip
    larder = Larder(program, directory, upstream.port, settings).start()
    load = Load(larder)
    atexit.register(load.stop)
    # Alerts fire without the delay of `for`.
    rules = re.sub(r"(?m)^( +for:) .*$", r"\1 0s", RULES.read_text())
    prometheus = Prometheus(directory / "prometheus", rules, f"127.0.0.1:{larder.port}")

    rules = wait_until(lambda: [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]], pause=PAUSE)
    check_annotations(check, rules)
    metrics = check_texts(check, larder)
    check_names(check, metrics, rules, [(rule["name"], rule["query"]) for rule in rules])
    panels = [panel for panel in panels_of(dashboard) if "targets" in panel]
    check_names(check, metrics, rules, [(p["title"], target["expr"]) for p in panels for target in p["targets"]])
    if check_target(check, prometheus):
        count = check_expressions(check, prometheus, larder, rules, dashboard)
        check.note(f"{len(metrics)} metrics, {count} expressions")
        check_variables(check, prometheus, larder, dashboard)
        check_scrapes(check, prometheus, larder, metrics)
        load.stop()
        check_counts(check, larder)
        if not is_brief:
            check_faults(check, prometheus, larder, hot)
    larder.stop()
    prometheus.stop()


if __name__ == "__main__":
    main()
