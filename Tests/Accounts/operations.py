"""The access matrix: one row for each operation of openapi.yaml. From its columns the expected response follows for each
kind of credentials and each object."""

import pathlib
from dataclasses import dataclass, field

METHODS = ("get", "head", "put", "post", "patch", "delete")
#: The scopes of tokens that permit operations of a scope. `nothing` needs no token, `node` the key of a fleet; `content` is the scope `read`, and
#: nothing for public origins.
SUFFICIENT = {
    "content": {"read", "write", "admin"}, "read": {"read", "write", "admin"}, "write": {"write", "admin"},
    "sign": {"sign", "admin"}, "admin": {"admin"},
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """An operation. `scope` is the one that it requires. `limits` is its handling of limited tokens: `refused`,
    `unaffected`, `asset` (the one in the path must be inside the limits) or `checked` (so must all that it names).
    `about` names the kind of its object, `status` is that of a permitted request."""

    scope: str
    limits: str
    about: str = "service"
    status: int = 200
    #: Whether a permitted request uses the object up, so that each one needs a new object.
    consumes: bool = False
    query: str = ""
    #: The scope that tokens without limits need, if it is not `scope`.
    whole: str = ""
    #: Whether the token must be one of the configuration, of the tokens file or of the API.
    needs_entry: bool = False
    body: object = None
    fields: dict = field(default_factory=dict)
    #: Parameters of the path that name no object.
    place: dict = field(default_factory=dict)


SEEN = {"Last-Event-ID": "9000000000000000000"}
HTML = {"Accept": "text/html"}
#: Operation → row, in the order of openapi.yaml.
ROWS = {
    "readMounted": Row("content", "checked", "content"),
    "readMountedHead": Row("content", "checked", "content"),
    "readURL": Row("content", "refused", "url"),
    "readURLHead": Row("content", "refused", "url"),
    "readAsset": Row("content", "checked", "contentOfAsset"),
    "readAssetHead": Row("content", "checked", "contentOfAsset"),
    "probeURL": Row("read", "checked", "named"),
    "probe": Row("read", "checked", "probe"),
    "listFiles": Row("read", "checked", "folder"),
    "listAssets": Row("read", "checked", "assets"),
    "getUsage": Row("read", "checked", "usage"),
    "getAsset": Row("read", "asset", "asset"),
    "patchAsset": Row("write", "asset", "asset", body={"tags": ["changed"], "pinned": True}),
    "deleteAsset": Row("write", "asset", "asset", 204, consumes=True),
    "listExtents": Row("read", "asset", "asset"),
    "dropExtents": Row("write", "asset", "asset", query="offset=0&length=1"),
    "mapAsset": Row("read", "asset", "asset"),
    "getIntegrity": Row("read", "asset", "asset"),
    "getMedia": Row("read", "asset", "playlist"),
    "prefetchItem": Row("node", "unaffected", "asset", body={"item": {}, "priority": "normal"}),
    "cancelFills": Row("write", "asset", "asset"),
    "listFills": Row("read", "checked", "fills"),
    "getFill": Row("read", "checked", "fill"),
    "cancelFill": Row("write", "checked", "fill", 204, consumes=True),
    "explainRead": Row("read", "checked", "known"),
    "getWorkers": Row("read", "refused"),
    "createJob": Row("write", "checked", "newJob", fields={"Prefer": "wait=60"}),
    "listJobs": Row("read", "checked", "jobs"),
    "getJob": Row("read", "checked", "job"),
    "patchJob": Row("write", "checked", "runningJob", body={"priority": "low"}),
    "cancelJob": Row("write", "checked", "runningJob", consumes=True),
    "listJobItems": Row("read", "checked", "job"),
    "retryJob": Row("write", "checked", "endedJob", 202, consumes=True),
    "watchJob": Row("read", "checked", "job", 204, fields=SEEN),
    "listSchedules": Row("read", "checked", "schedules"),
    "getSchedule": Row("read", "checked", "schedule"),
    "putSchedule": Row("write", "checked", "newSchedule", 201, consumes=True, needs_entry=True),
    "deleteSchedule": Row("write", "checked", "schedule", 204, consumes=True),
    "getStats": Row("read", "refused"),
    "getLiveStats": Row("read", "refused"),
    "getHistory": Row("read", "refused"),
    "getTop": Row("read", "refused"),
    "listRequests": Row("read", "checked", "requests", whole="admin"),
    "getEvents": Row("read", "checked", "events"),
    "createEventTicket": Row("read", "refused", status=201),
    "createSignature": Row("sign", "checked", "signature", 201),
    "getMetrics": Row("read", "refused"),
    "getPolicy": Row("read", "refused"),
    "putPolicy": Row("admin", "refused", body={"maxIdleSeconds": 1001}),
    "patchPolicy": Row("admin", "refused", body={"maxIdleSeconds": 1002}),
    "getPolicyCurve": Row("read", "refused"),
    "planPolicy": Row("read", "refused", body={}),
    "simulatePolicies": Row("read", "refused", body={}),
    "listEvictions": Row("read", "refused"),
    "evict": Row("admin", "refused", body={"targetBytes": 1 << 40}),
    "listNextEvictions": Row("read", "refused"),
    "purge": Row("write", "checked", "purge"),
    "getPurge": Row("read", "checked", "plan"),
    "cancelPurge": Row("write", "checked", "plan", 204, consumes=True),
    "commitPurge": Row("write", "checked", "plan", consumes=True),
    "getEncryption": Row("admin", "refused"),
    "rotateMasterKey": Row("admin", "refused", status=409),
    "beginScrub": Row("admin", "refused", status=202, body={}),
    "listScrubs": Row("read", "refused"),
    "getScrub": Row("read", "refused", "scrub"),
    "getFleet": Row("read", "refused"),
    "getFleetDigest": Row("node", "unaffected"),
    "getFleetPurge": Row("read", "refused", status=404, place={"number": "1"}),
    "getFleetStats": Row("read", "refused"),
    "leaveFleet": Row("admin", "refused"),
    "joinFleet": Row("admin", "refused"),
    "listOrigins": Row("read", "refused"),
    "getOrigin": Row("read", "refused", "origin"),
    "putOrigin": Row("admin", "refused", "newOrigin", 201, consumes=True),
    "patchOrigin": Row("admin", "refused", "origin", body={"retries": 1}),
    "deleteOrigin": Row("admin", "refused", "origin", 204, consumes=True),
    "testOrigin": Row("admin", "refused", "origin", body={}),
    "forgetObservations": Row("admin", "refused", "origin", 204),
    "closeCircuits": Row("admin", "refused", "origin", 204),
    "listTokens": Row("admin", "checked", "tokens"),
    "createToken": Row("admin", "checked", "newToken", 201, consumes=True),
    "getToken": Row("admin", "checked", "token"),
    "patchToken": Row("admin", "checked", "token", body={"maxBytesPerSecond": 1 << 30}),
    "deleteToken": Row("admin", "checked", "token", 204, consumes=True),
    "listWebhooks": Row("admin", "refused"),
    "getConfiguration": Row("admin", "refused"),
    "reloadConfiguration": Row("admin", "refused"),
    "getLive": Row("nothing", "unaffected"),
    "getReady": Row("nothing", "unaffected"),
    "getStartup": Row("nothing", "unaffected"),
    "getVersion": Row("read", "unaffected"),
    "getAccess": Row("read", "unaffected"),
    "getOpenAPI": Row("read", "unaffected"),
    "getRoot": Row("nothing", "unaffected", status=302, fields=HTML),
    "getDashboard": Row("nothing", "unaffected", status=301),
    "getDashboardFile": Row("nothing", "unaffected", "dashboard"),
}  # fmt: skip


@dataclass(frozen=True)
class Operation:
    """An operation of openapi.yaml."""

    name: str
    method: str
    path: str
    statuses: frozenset

    @property
    def is_changing(self):
        return self.method not in ("GET", "HEAD")


def described(file=pathlib.Path(__file__).resolve().parents[2] / "openapi.yaml"):
    """The operations of openapi.yaml by identifier."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with open(file, encoding="utf-8") as text:
        document = yaml.load(text, loader)
    return {
        operation["operationId"]: Operation(
            operation["operationId"], method.upper(), path, frozenset(map(str, operation["responses"]))
        )
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    }


@dataclass(frozen=True)
class Expected:
    """The status of a response, and of a refusal also its code and the parameters of `WWW-Authenticate`."""

    status: int
    code: str = ""
    challenge: tuple = ()
    without: str = ""

    def __str__(self):
        return " ".join(filter(None, [str(self.status), self.code, *self.challenge]))


def refused_scope(*more):
    return Expected(403, "tokenScope", ("Bearer", 'error="insufficient_scope"', *more))


INVALID = Expected(401, "unauthorized", ("Bearer", 'error="invalid_token"'))
MISSING = Expected(401, "unauthorized", ("Bearer",), without="error=")


def needed_scopes(row, credential, case):
    """The scopes that the operation, and then its object, require of this token."""
    if credential.is_limited:
        return [row.scope]
    return [row.whole or row.scope, *([case.whole] if case.whole else [])]


def expected(row, credential, case):
    """The response to an operation with a credential on an object, derived from the columns of its row."""
    permitted = Expected(case.status or row.status, "notFound" if case.status == 404 else "")
    if row.scope == "nothing":
        return permitted
    if row.scope == "node":
        return INVALID if credential.token else MISSING
    if credential.signature and case.kind == "content":
        # A signature decides alone. It is no bearer token, so that the challenge has no error.
        code = "tokenScope" if credential.is_genuine and not case.is_inside else credential.refusal
        return Expected(403, code, without="error=") if code else permitted
    if case.is_public:
        return INVALID if credential.is_ended else permitted
    if not credential.scope:
        return INVALID if credential.token else MISSING
    for needed in needed_scopes(row, credential, case):
        if credential.scope not in SUFFICIENT[needed]:
            return refused_scope(f'scope="{"read" if needed == "content" else needed}"')
    if row.needs_entry and "JWT" in credential.name:
        return refused_scope()
    if credential.is_limited:
        is_inside = (case.is_inside and credential.has_own) or case.also == credential.name
        if row.limits == "refused" or (row.limits in ("asset", "checked") and not is_inside):
            return refused_scope()
    return permitted


def depends_on_object(row, credential):
    """Whether the response can differ between objects: other credentials are refused, or accepted, for all of them."""
    return row.about == "content" or (row.scope in SUFFICIENT and credential.scope in SUFFICIENT[row.scope])


def is_permitted(row, credential):
    """Whether GET /v1/access lists the operation."""
    if row.scope not in SUFFICIENT:
        return row.scope == "nothing"
    needed = row.scope if credential.is_limited else row.whole or row.scope
    return credential.scope in SUFFICIENT[needed] and not (credential.is_limited and row.limits == "refused")
