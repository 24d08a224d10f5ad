"""Checks: their registration by section files, and the `t` that they receive."""

import json
import re
import sys
import threading
import traceback
from dataclasses import dataclass, field

from harness import upstream as scripted
from harness.process import wait_until

from .client import Connection, Failure, Response, parse_list

REGISTRY = []
LIMIT = 30


@dataclass
class Check:
    """A named check; it runs once for each of its states."""

    name: str
    rfc: str
    module: str
    function: object
    arguments: tuple
    origin: dict
    larder_only: bool
    origin_for_peers_ok: bool
    warm: bool
    #: Runs without concurrent checks: for checks that measure time.
    alone: bool
    #: The name that all rows and states share.
    family: str

    @property
    def section(self):
        return sys.modules[self.module].SECTION

    @property
    def is_for_larder(self):
        return self.larder_only or (self.origin is not None and not self.origin_for_peers_ok)


def check(
    name, rfc, origin=None, larder_only=False, origin_for_peers_ok=False, states=("cold",), alone=False, arguments=(),
    family=None,
):  # fmt: skip
    """Registers a function as a named check.

    `origin`: settings of the check's own origin, merged into the defaults. `larder_only`: not for a plain proxy.
    `states`: "cold" (nothing cached) and "warm" (the whole asset was read before the check begins).
    """

    def register(function):
        for state in states:
            if state not in ("cold", "warm"):
                raise ValueError(f"{name}: a state is cold or warm, not {state}")
            label = name if len(states) == 1 else f"{name} ({state})"
            REGISTRY.append(
                Check(
                    label, rfc, function.__module__, function, tuple(arguments), origin, larder_only,
                    origin_for_peers_ok, state == "warm", alone, family or name,
                )
            )  # fmt: skip
        return function

    return register


def table(name, rfc, rows, **options):
    """One named check for each row: "name: row". A tuple's first element names it; all are given to the function."""

    def register(function):
        for row in rows:
            arguments = row if isinstance(row, tuple) else (row,)
            check(f"{name}: {arguments[0]}", rfc, arguments=arguments, family=name, **options)(function)
        return function

    return register


class Skipped(Exception):
    """The check cannot be run here."""


@dataclass
class Result:
    check: Check
    #: "passed", "failed" or "skipped".
    outcome: str
    reason: str = ""
    seconds: float = 0


@dataclass
class Trial:
    """One run of one check: its upstream, its client and its expectations."""

    check: Check
    peer: object
    label: str
    slot: int
    upstreams: list = field(default_factory=list)
    secrets: list = field(default_factory=list)

    def __post_init__(self):
        port, prefix = self.peer.upstream_place(self.slot, self.label)
        self.own = scripted.Upstream(port=port, prefix=prefix)
        self.upstreams.append(self.own)
        self.settings = dict(self.check.origin or {})
        self.mounted = None
        self.warmed = False
        self.skipped = False

    # Upstream

    @property
    def warm(self):
        """Whether the whole asset was read before."""
        return self.check.warm

    @property
    def is_larder(self):
        return self.peer.is_larder

    def upstream(self, handler, tls=None):
        """Sets the behaviour of the upstream from now on: a handler, or a list of handlers in order.

        In the warm state the whole asset is read first; those requests do not count.
        """
        self.own.tls = tls
        self.own.serve(handler)
        if self.warm and not self.warmed:
            self.warmed = True
            response = self.get()
            if response.status != 200 or not response.complete:
                raise Failure(f"warming: {response}")
            self.own.requests.clear()
            self.own.serve(handler)

    def other_upstream(self, handler, host="127.0.0.2", tls=None):
        """A second server, on another address; it has `.url`, `.port` and `.requests`."""
        other = scripted.Upstream(host=host, tls=tls)
        other.serve(handler)
        self.upstreams.append(other)
        return other

    def stop_upstream(self):
        """Refuses connections to the upstream from now on."""
        self.own.close()

    @property
    def upstream_url(self):
        """The URL of the check's own path for the cache."""
        return self.own.url + self.own.prefix

    @property
    def requests(self):
        """The requests that the upstream received, in order."""
        return list(self.own.requests)

    @staticmethod
    def bytes(first, end, seed=0):
        """The asset's bytes `first ..< end`."""
        return scripted.pattern(first, end, seed)

    # Client

    @property
    def mount(self):
        """The start of the check's own path at the cache."""
        if self.mounted is None:
            self.mounted = self.peer.mount(self.label, self.own, self.settings)
        return self.mounted

    def origin(self, **settings):
        """Changes settings of the check's origin (Larder only); `{port}` in a baseURL is the upstream's."""
        self.settings.update(settings)
        self.mounted = self.peer.mount(self.label, self.own, self.settings)

    def target(self, path="", query=""):
        """A request target below the mount; without a path it is /media.mp4."""
        path = path or "/media.mp4"
        return self.mount + (path if path.startswith("/") else "/" + path) + (f"?{query}" if query else "")

    def get(self, range=None, headers=(), method="GET", path="", query="", http="1.1", timeout=10):
        """Sends a request on a new connection and reads the whole response."""
        target = self.target(path, query)
        fields = list(headers.items()) if isinstance(headers, dict) else list(headers)
        if range is not None:
            fields.insert(0, ("Range", range))
        with self.connect(timeout) as connection:
            connection.request(method, target, fields, http)
            shown = "; ".join(f"{name}: {value[:60]}" for name, value in fields)
            response = connection.response(method, f"{method} {target.removeprefix(self.mount)} {shown}".strip())
            connection.finish(response)
            return response

    def attempt_get(self, **options):
        """As `get` for a failing upstream: a plain proxy may close the connection instead; the result is then a 502."""
        try:
            return self.get(**options)
        except Failure as failure:
            if self.is_larder or "ended without a response" not in str(failure):
                raise
            return Response(502, "", [], complete=True, asked=str(failure))

    def head(self, **options):
        """As `get`, with HEAD."""
        return self.get(method="HEAD", **options)

    def connect(self, timeout=10):
        """A connection, for pipelining, partial reads and early closes."""
        return Connection(self.peer.address, timeout, self.peer.tls)

    def raw(self, data, method="GET", timeout=10):
        """Sends bytes unchanged and reads one response; replaces `b"{mount}"`."""
        with self.connect(timeout) as connection:
            connection.send(data.replace(b"{mount}", self.mount.encode()))
            return connection.response(method, asked=repr(data[:60]))

    def together(self, *functions):
        """Runs the functions concurrently and returns their results in order; the first failure is the check's."""
        handles = [self.spawn(function) for function in functions]
        return [handle() for handle in handles]

    def spawn(self, function):
        """Starts the function in a thread; the returned function waits for its result."""
        outcome = {}

        def run():
            try:
                outcome["result"] = function()
            except BaseException as error:
                outcome["error"] = error

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def result(limit=20):
            thread.join(limit)
            if thread.is_alive():
                raise Failure(f"a concurrent function did not end within {limit} s")
            if "error" in outcome:
                raise outcome["error"]
            return outcome["result"]

        return result

    @staticmethod
    def event():
        """An event for a handler: `connection.wait(event)`."""
        return threading.Event()

    def await_requests(self, count, limit=5):
        """Waits until the upstream has received this many requests."""
        if not self.own.await_requests(count, limit):
            raise Failure(f"{len(self.requests)} upstream requests within {limit} s, expected {count}")

    @staticmethod
    def eventually(condition, what, limit=5):
        """Waits until the condition is true; its value."""
        if not (value := wait_until(condition, limit)):
            raise Failure(f"not within {limit} s: {what}")
        return value

    # Expectations

    def skip(self, reason):
        """Ends the check: it cannot run here."""
        raise Skipped(reason)

    def fail(self, text):
        raise Failure(text)

    def expect(self, response, status=None, body=None, headers=(), complete=True):
        """Compares a response: `status` one or several, `headers` {name: value, re.compile(…) or None: absent}."""
        statuses = status if isinstance(status, tuple) else (status,)
        if status is not None and response.status not in statuses:
            raise Failure(f"{response}: expected {' or '.join(map(str, statuses))}")
        for name, wanted in dict(headers).items():
            self.expect_header(response, name, wanted)
        if complete and not response.complete:
            raise Failure(f"{response}: the body was truncated")
        if not complete and response.complete:
            raise Failure(f"{response}: ended as if it were complete")
        if body is not None:
            self.expect_body(response, body)

    def expect_header(self, response, name, wanted):
        value = response.get(name)
        if wanted is None:
            if value is not None:
                raise Failure(f"{response}: {name} must be absent")
        elif isinstance(wanted, re.Pattern):
            if value is None or not wanted.fullmatch(value):
                raise Failure(f"{response}: {name} must match {wanted.pattern}")
        elif value != str(wanted):
            raise Failure(f"{response}: {name} must be {wanted}")

    def expect_body(self, response, body):
        if response.body == body:
            return
        if len(response.body) != len(body):
            same = response.body[: len(body)] == body[: len(response.body)]
            raise Failure(
                f"{response}: {len(response.body)} bytes, expected {len(body)}{'' if same else ', and WRONG BYTES'}"
            )
        at = next(at for at, (one, other) in enumerate(zip(response.body, body)) if one != other)
        raise Failure(f"{response}: WRONG BYTES from {at} on: {response.body[at:at + 16].hex()}")

    def expect_honest(self, response, size, run=None, seed=0):
        """Accepts the correct bytes to their end, or a visible failure: never a wrong byte, never a short clean end.

        `run` is the requested range, (first, end); a 200 with the whole asset is accepted as well.
        """
        if response.status not in (200, 206):
            if response.status < 400:
                raise Failure(f"{response}: expected the correct bytes, or a failure")
            if self.is_larder and response.status == 500 and b'"internal"' in response.body:
                raise Failure(f"{response}: an internal error")
            return
        first, end = run if run and response.status == 206 else (0, size)
        wanted = scripted.pattern(first, end, seed)
        if response.body != wanted[: len(response.body)]:
            raise Failure(f"{response}: WRONG BYTES")
        if response.complete and len(response.body) != len(wanted):
            raise Failure(f"{response}: a CLEAN END after {len(response.body)} of {len(wanted)} bytes")
        place = f"bytes {first}-{end - 1}/"
        if response.status == 206 and not (response.get("Content-Range") or "").startswith(place):
            raise Failure(f"{response}: Content-Range must begin with {place}")
        if response.status == 200 and response.get("Content-Range"):
            raise Failure(f"{response}: a Content-Range in a 200")

    def expect_recovery(self, size, seed=0, path="", **options):
        """The upstream recovers now: no wrong byte was stored before, and every read is correct.

        The first range may get the whole asset, as long as the length is unknown.
        """
        self.own.serve(scripted.asset(size, seed=seed, **options))
        whole, middle = scripted.pattern(0, size, seed), (size // 3, max(size // 3 + 1, size // 2))
        first = self.get(range=f"bytes={middle[0]}-{middle[1] - 1}", path=path)
        self.expect(first, (200, 206), body=whole if first.status == 200 else whole[slice(*middle)])
        for _ in range(2):
            self.expect(self.get(path=path), 200, body=whole, headers={"Content-Range": None})
        last = self.get(range="bytes=-1", path=path)
        self.expect(last, 206 if self.is_larder else (200, 206), body=whole if last.status == 200 else whole[-1:])

    def expect_problem(self, response, code, status=None, **members):
        """Expects a problem document (RFC 9457) with this code and these members; a peer's response is not checked."""
        if not self.is_larder:
            return
        self.expect(response, status, headers={"Content-Type": "application/problem+json"})
        document = json.loads(response.body)
        for name, value in {"code": code, **members}.items():
            if document.get(name) != value:
                raise Failure(f"{response}: {name} must be {value}: {document}")
        if len(document.get("detail", "")) < 20:
            raise Failure(f"{response}: a detail without a remedy: {document}")

    def expect_requests(self, count):
        """Expects this number of upstream requests."""
        if len(self.requests) != count:
            asked = ", ".join(f"{request.method} {request.range or 'whole'}" for request in self.requests)
            raise Failure(f"{len(self.requests)} upstream requests ({asked}), expected {count}")

    def expect_cache_status(self, response, hit=None, fwd=None, **parameters):
        """Compares Larder's member of Cache-Status (RFC 9211); underscores stand for hyphens, None for absent.

        `hit=False` means that `hit` is absent; a peer's response is not checked.
        """
        if not self.is_larder:
            return
        members = [found for name, found in parse_list(response.get("Cache-Status") or "") if name == "Larder"]
        if len(members) != 1:
            raise Failure(f"{response}: Cache-Status must have one member Larder")
        wanted = {name.replace("_", "-"): value for name, value in parameters.items()}
        if hit is not None:
            wanted["hit"] = True if hit else None
        if fwd is not None:
            wanted["fwd"] = fwd
        for name, value in wanted.items():
            found = members[0].get(name)
            matches = value(found) if callable(value) else found == value
            if not matches:
                shown = "something else" if callable(value) else "absent" if value is None else value
                raise Failure(f"{response}: {name} in Cache-Status must be {shown}")

    # Larder only

    def api(self, method, path, json_body=None, headers=()):
        """Calls Larder's API; the response has `.document` if it is JSON."""
        body = None if json_body is None else json.dumps(json_body).encode()
        response = self.peer.api(method, path, body, headers)
        kind = response.get("Content-Type") or ""
        response.document = json.loads(response.body) if "json" in kind and response.body else None
        return response

    def credentials(self, text):
        """Writes a file in credentialsDirectory; its name for `credentialsFile`. Its values must not be logged."""
        if not self.peer.has_credentials:
            raise Failure("the service has no credentialsDirectory")
        values = [line.partition(":")[2].strip() for line in text.splitlines() if not line.startswith("#")]
        self.secret(*values, *(word for value in values for word in value.split() if len(word) > 7))
        # Atomic: the service may read the file at any moment.
        written = self.peer.credentials / f".{self.label}.new"
        written.write_text(text)
        written.replace(self.peer.credentials / self.label)
        return self.label

    def fallback_file(self, data):
        """Writes a file in fallbackDirectory; its name for `fallback`."""
        if not self.peer.has_fallbacks:
            raise Failure("the service has no fallbackDirectory")
        (self.peer.fallbacks / self.label).write_bytes(data)
        return self.label

    def secret(self, *texts):
        """These texts must not appear in the log."""
        self.secrets += texts

    # Execution

    def run(self):
        """Runs the check within its time limit; the reason of its failure, or None."""
        reason = [f"no end within {LIMIT} s"]

        def body():
            reason[0] = self.attempt()

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        thread.join(LIMIT)
        self.end()
        return reason[0]

    def attempt(self):
        try:
            self.check.function(self, *self.check.arguments)
        except Failure as failure:
            return str(failure)
        except Skipped as reason:
            self.skipped = True
            return str(reason)
        except Exception:
            return traceback.format_exc(limit=-3).strip().replace("\n", " ")
        faults = [fault for upstream in self.upstreams for fault in upstream.faults]
        return faults[0] if faults else None

    def end(self):
        for upstream in self.upstreams:
            upstream.close()
        if self.mounted is not None:
            try:
                self.peer.unmount(self.label)
            except (OSError, Failure):
                pass  # a cache that has exited is reported when it is stopped
