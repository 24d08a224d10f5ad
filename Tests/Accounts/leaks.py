"""The places in which a service could show a secret."""

import os
import re
import subprocess

#: Documents of the API without parameters.
DOCUMENTS = [
    "/v1/stats", "/v1/stats/history", "/v1/stats/top", "/metrics", "/v1/events", "/v1/configuration", "/v1/origins",
    "/v1/assets", "/v1/jobs", "/v1/fills", "/v1/workers", "/v1/policy", "/v1/policy/curve", "/v1/evictions/next", "/v1/scrubs",
    "/v1/events?topics=health", "/v1/requests?limit=1000", "/v1/events?topics=requests", "/health/live", "/health/ready", "/health/startup", "/version", "/openapi.yaml", "/", "/ui/",
]  # fmt: skip
#: The documents that are read after each scenario with --brief.
BRIEF_DOCUMENTS = ["/v1/stats", "/metrics", "/v1/events", "/v1/requests?limit=1000", "/v1/configuration", "/v1/origins", "/v1/assets"]
#: Commands of the client and their places.
COMMANDS = [["stats"], ["assets"], ["jobs"]]
#: Assets and jobs of which each document is read.
MAX_ITEMS = 4


def examine_running(service, search):
    """Searches the documents, dashboard, responses and command output of a running service."""

    def document(path, place=None, fields=None):
        reply = service.api("GET", path, fields=fields)
        head = "\n".join(f"{name}: {value}" for name, value in reply.fields.items()).encode()
        search.text(f"GET {place or path}", head + b"\n" + reply.body)
        return reply

    is_brief = service.trial.is_brief and service.trial.name != "secrets"
    for path in BRIEF_DOCUMENTS if is_brief else DOCUMENTS:
        document(path)
    search.text("heads of responses", b"\n".join(service.heads))
    search.text("problem documents", b"\n".join(service.problems))
    if is_brief:
        return
    document("/v1/stats", "/v1/stats as CSV", {"Accept": "text/csv"})
    document("/v1/events", "/v1/events as a list", {"Accept": "application/json"})
    for origin in service.api("GET", "/v1/origins").json.get("items", [])[:MAX_ITEMS]:
        name = origin.get("name", "")
        document(f"/v1/origins/{name}", "/v1/origins/{name}")
        document(f"/v1/explain?origin={name}&path=a.bin", "/v1/explain")
    for asset in service.api("GET", "/v1/assets").json.get("items", [])[:MAX_ITEMS]:
        place = f"/v1/assets/{asset.get('assetId', '')}"
        for part in ("", "/extents", "/integrity", "/map", "/media"):
            document(place + part, "/v1/assets/{assetId}" + part)
    for job in service.api("GET", "/v1/jobs").json.get("items", [])[:MAX_ITEMS]:
        for part in ("", "/items"):
            document(f"/v1/jobs/{job.get('jobId', '')}{part}", "/v1/jobs/{jobId}" + part)
    page = service.api("GET", "/ui/").body.decode(errors="replace")
    for name in sorted(set(re.findall(r'(?:src|href)="([\w.]+)"', page))):
        document(f"/ui/{name}")
    examine_problems(service, search)
    examine_commands(service, search)
    with open(f"/proc/{service.process.pid}/cmdline", "rb") as line:
        search.text("the command line", line.read())


def examine_problems(service, search):
    """Causes problems of several kinds with the secret in the request."""
    token = {"Authorization": f"Bearer {service.token}"}
    cases = [
        ("GET", f"/v1/unknown?token={service.token}", token), ("DELETE", "/v1/stats", token), ("GET", "/v1/stats", {}),
        ("GET", "/o/unknown/a", {"Authorization": f"Basic {service.token}"}), ("GET", f"/t/{service.token}x/o/a/b", {}),
        ("PUT", "/v1/origins/BAD!", token), ("GET", f"/o/unknown/a?exp=1&kid=k&sig={service.token}", {}),
    ]  # fmt: skip
    for method, path, fields in cases:
        reply = service.send(method, path, fields)
        head = "\n".join(f"{name}: {value}" for name, value in reply.fields.items()).encode()
        search.text("problems with a secret in the request", head + reply.body, own=[service.token] if "?token=" in path else [])


def examine_commands(service, search):
    result = subprocess.run(
        [service.program, "config", "--config", service.file], env=service.environment, capture_output=True, timeout=60
    )
    search.text("larder config", result.stdout + result.stderr)
    for arguments in COMMANDS:
        _, output, errors = service.run(*arguments)
        search.text(f"larder {' '.join(arguments)}", (output + errors).encode())


def examine_stopped(service, search):
    """Searches log and store of a service that has ended."""
    if not service.log.exists():
        return
    text = service.log.read_bytes()
    lines = text.split(b"\n")
    is_access = [b'"larder.access"' in line for line in lines]
    search.text("access log", b"\n".join(line for line, access in zip(lines, is_access, strict=True) if access))
    search.text("log at level trace", b"\n".join(line for line, access in zip(lines, is_access, strict=True) if not access))
    if not service.store.exists():
        return
    search.names("names of the store's files", service.store)
    for path in sorted(service.store.iterdir()):
        if path.is_file():
            search.file(f"store/{path.name}", path)
    largest = 0
    for folder, _, names in os.walk(service.store / "assets"):
        for name in names:
            path = os.path.join(folder, name)
            largest += os.path.getsize(path)
            if largest < 256 << 20:
                search.file("files of assets", path)
    if service.trial.is_brief and service.trial.name != "secrets":
        return
    verify = subprocess.run(
        [service.program, "verify", "--data-directory", service.store], env=service.environment, capture_output=True, timeout=120
    )
    search.text("larder verify", verify.stdout + verify.stderr)
