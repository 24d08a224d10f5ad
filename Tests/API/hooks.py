"""Hooks of schemathesis: requests stay on loopback and end soon; failures that no document can prevent are dropped."""

import os
import urllib.request

import schemathesis
from schemathesis.core.parameters import ParameterLocation

UPSTREAM = os.environ["LARDER_UPSTREAM"]
FILES = ("one.bin", "two.bin", "films/one.mp4", "missing.bin")

# Fields with rules that JSON Schema cannot state, by operation. A 422 that names one of them is no failure of the document.
RULES = {
    # Field names that belong to the transfer; a readable file.
    # Members of an account that depend on each other. Names of fields (RFC 9110, section 5.1), and patterns of hosts.
    "putOrigin": ("headers", "tls", "auth", "resolve", "access", "forward", "redirectHosts"),
    "patchOrigin": ("headers", "tls", "auth", "resolve", "access", "forward", "redirectHosts"),
    # One way to state the end, in the future; a key that exists.
    "createSignature": ("expiresInSeconds", "expiresAt", "kid"),
    # An instant in the future.
    "patchAsset": ("pinnedUntilAt",),
    # Names of time zones, and windows that are not empty; items of an origin with forward or resolve.
    # A dry run of a list in a format that the origin does not have.
    "createJob": ("deadlineAt", "windows", "items", "when"),
    # A format that the origin does not have.
    "listFiles": ("format", "origin"),
    "patchJob": ("deadlineAt", "windows"),
    # Names of time zones, times of day, and intervals from a minute to a year; rules of the job.
    "putSchedule": ("repeat", "at", "job", "job.windows", "job.deadlineAt", "job.notBefore", "deadlineSeconds"),
    # Filters of the topic requests.
    "getEvents": ("kind", "origin", "prefix", "assetId", "token", "status", "result", "minSeconds"),
    # A prefix is a directory of keys; prefix and depth belong to by=path.
    "getUsage": ("prefix", "depth"),
    # Either a range or a time span with its length; a word or a number.
    "explainRead": ("range", "startSeconds", "seconds", "renditions"),
    # The rules of origins and of the policy, and the names of origins.
    "testOrigin": ("settings", "settings.headers", "settings.tls", "settings.auth", "settings.resolve", "settings.redirectHosts", "name"),
    "planPolicy": ("originQuotas", "policy"),
    # At most 64 combinations of an algorithm and a capacity.
    "simulatePolicies": ("capacities",),
}
# A cursor is opaque: only values that a list has returned are valid.
CURSOR = "cursor"


def pick(value):
    """One of the files, always the same for a value."""
    return FILES[len(str(value)) % len(FILES)]


def local(value, name=""):
    """A valid value with the addresses of the upstream, and with the rules kept that JSON Schema cannot state."""
    if isinstance(value, dict):
        return local_object({key: local(inner, key) for key, inner in value.items()})
    if isinstance(value, list):
        if name == "mirrors":
            return [f"{UPSTREAM}/mirror{index}" for index in range(len(value))]
        return [local(inner, name) for inner in value]
    if isinstance(value, float) and 0 < value < 1e-3:
        # A time below the resolution of the service's clock is 0.
        return 1e-3
    if name == "minBytes" and isinstance(value, int):
        # A quota's minimum is at most its maximum, and all minimums fit into the capacity.
        return min(value, 1)
    if name == "maxBytesPerSecond" and isinstance(value, int):
        # A job at one byte per second would keep watchJob waiting.
        return max(value, 1 << 30)
    if not isinstance(value, str):
        return value
    if name == "baseURL":
        return UPSTREAM
    if name in ("url", "urls"):
        return f"{UPSTREAM}/{pick(value)}"
    if name == "path":
        return pick(value)
    if name in ("credentialsFile", "file"):
        return "file.txt"
    if name == "ranges":
        return f"bytes={len(value)}-{len(value) + 99}"
    return value


def local_object(value):
    if isinstance(value.get("key"), str):
        # One key names one file: another file would change the asset, and a read of it would be aborted.
        value.update({"url": f"{UPSTREAM}/{pick(value['key'])}"} if "url" in value else {})
        value.update({"path": pick(value["key"])} if "path" in value else {})
    if "path" in value and value.keys() & {"form", "scope", "expiresInSeconds", "expiresAt", "kid"}:
        value["path"] = "/o/demo/" + pick(value["path"])
    if {"origin", "path"} <= value.keys():
        value["origin"] = "demo"
    # Any object may have these members, and the value of any type: only those of a policy are numbers.
    marks = [value[name] for name in ("lowWatermark", "highWatermark") if isinstance(value.get(name), (int, float))]
    if marks:
        value["highWatermark"] = max(marks)
        value["lowWatermark"] = max(marks) / 2
    return value


def one_name(query):
    """The query with one way to name an asset: OpenAPI has no alternatives between parameters."""
    if "assetId" in query and "key" not in query:
        dropped = ("url", "origin", "path")
    elif "url" in query:
        dropped = ("assetId", "origin", "path")
    else:
        query = {"path": pick(query), "origin": "demo", **query}
        dropped = ("assetId", "url")
    return {name: value for name, value in query.items() if name not in dropped}


def is_positive(case, component):
    info = case.meta.components.get(component) if case.meta else None
    return info is None or info.mode.is_positive


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """A body in lines, for which a schema has a text only."""
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Changes the valid components of a request; the others must be rejected as they are."""
    operation = case.operation.definition.raw["operationId"]
    if is_positive(case, ParameterLocation.QUERY):
        query = dict(case.query or {})
        case.query = local(one_name(query) if operation in ("probeURL", "explainRead") else query)
    if case.path_parameters and is_positive(case, ParameterLocation.PATH):
        if operation.startswith("readMounted"):
            case.path_parameters = {"origin": "demo", "path": pick(case.path_parameters["path"])}
        elif operation in ("putOrigin", "patchOrigin", "deleteOrigin") and case.path_parameters["name"] == "demo":
            # The origin of content reads stays mounted.
            case.path_parameters = {"name": "changed"}
    if isinstance(case.body, (dict, list)) and is_positive(case, ParameterLocation.BODY):
        case.body = local(case.body)
        if isinstance(case.body, dict) and operation in ("putOrigin", "patchOrigin"):
            # The name is the path's.
            case.body.pop("name", None)
        if isinstance(case.body, dict) and operation == "testOrigin" and isinstance(case.body.get("settings"), dict):
            case.body["settings"].pop("name", None)
        if isinstance(case.body, dict) and operation == "planPolicy" and isinstance(case.body.get("originQuotas"), dict):
            case.body["originQuotas"] = {"demo": quota for quota in case.body["originQuotas"].values()}
    if isinstance(case.body, str) and case.media_type == "application/x-ndjson" and is_positive(case, ParameterLocation.BODY):
        case.body = '{"job": {"label": "lines"}}\n{"origin": "demo", "path": "one.bin"}\n'
    if case.headers and "wait" in str(case.headers.get("Prefer", "")):
        case.headers["Prefer"] = "wait=0"
    if case.headers and len(case.headers.get("If-Match", "")) % 2:
        # Half of the conditions hold.
        case.headers["If-Match"] = "*"


@schemathesis.hook
def after_call(context, case, response):
    """A service that has left its fleet is not ready, as no document of another operation can say: it joins again."""
    if case.operation.definition.raw["operationId"] == "leaveFleet":
        base = response.request.url.partition("/v1/")[0]
        urllib.request.urlopen(urllib.request.Request(f"{base}/v1/fleet/join", method="POST"), timeout=60).close()


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """False for a failure that no document can prevent."""
    if failure.code == "ST201" and "in header - object with unexpected properties" in failure.message:
        # A recipient ignores header fields that it does not know (RFC 9110, section 5.1).
        return False
    if failure.code != "ST202" or response.status_code != 422:
        return True
    operation = case.operation.definition.raw["operationId"]
    if operation in ("getMedia", "mapAsset", "createJob") and "field" not in (response.json() if response.content else {}):
        # The content of the asset is no media; a dry run of a list selects too many files.
        return False
    field = response.json()["field"] if response.content else ""
    return field != CURSOR and field.split(".")[0].split("[")[0] not in RULES.get(operation, ())
