"""The access matrix: every operation with every kind of credentials, on own and foreign assets, jobs, plans and playlists."""

import json

from operations import ROWS, depends_on_object, described, expected, is_permitted
from teams import FOREIGN, PREFIX, Case, Stage

from . import scenario


def cell(operation, credential, case):
    """The name of a cell in messages."""
    return f"{operation.name} | {credential.name} | {case.name}"


def difference(before, after):
    """The members of two states that differ."""
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return "; ".join(f"{' '.join(key)}: {before.get(key)} → {after.get(key)}" for key in keys)


class Matrix:
    """Runs the cells and reports those that differ."""

    def __init__(self, t, stage):
        self.t, self.stage, self.cells = t, stage, 0

    def run(self, operation, row):
        """All cells of an operation: first those that must be refused, on the same objects."""
        makers, kept = self.stage.cases(row), {}

        def case(name):
            if name not in kept:
                kept[name] = makers[name]()
            return kept[name]

        refused, permitted = [], []
        for credential in self.stage.credentials:
            for name in list(makers)[: self.width(row, credential)]:
                is_refused = expected(row, credential, case(name)).status in (401, 403)
                (refused if is_refused else permitted).append((credential, name))
        self.run_refused(operation, row, [(credential, case(name)) for credential, name in refused])
        for credential, name in permitted:
            # An operation that uses up its object gets a new one.
            used = makers[name]() if row.consumes or name == "playlist" else case(name)
            self.look(operation, credential, used, self.check(operation, row, credential, used))
        self.stage.release()

    def width(self, row, credential):
        """The number of objects that a credential is tried on; None: all."""
        if not self.t.is_brief:
            return None
        if not depends_on_object(row, credential):
            return 0 if credential.refusal else 1
        return 2 if row.consumes and not credential.is_limited else None

    def run_refused(self, operation, row, cells):
        """Cells that must change nothing and send nothing to the upstream."""
        upstream, objects = self.stage.upstream, {case.name: case for _, case in cells}.values()
        is_compared = cells and (operation.is_changing or not self.t.is_brief)
        before = self.stage.settled(objects) if is_compared else {}
        for credential, case in cells:
            count = len(upstream.requests)
            self.check(operation, row, credential, case)
            sent = [request.target for request in upstream.requests[count:]]
            self.t.check(not sent, f"{cell(operation, credential, case)} | requests {sent} at the upstream")
        changes = difference(before, self.stage.state(objects) if is_compared else {})
        self.t.check(not changes, f"{operation.name} | refused calls changed {changes}")

    def check(self, operation, row, credential, case):
        """One cell; returns the reply."""
        self.cells += 1
        wanted = expected(row, credential, case)
        reply = self.stage.call(operation, row, credential, case)
        challenge = reply.fields.get("www-authenticate", "")
        is_met = (
            reply.status == wanted.status
            and (operation.method == "HEAD" or not wanted.code or (reply.is_problem and reply.code == wanted.code))
            and all(part in challenge for part in wanted.challenge)
            and not (wanted.without and wanted.without in challenge)
        )
        found = " ".join(filter(None, [str(reply.status), reply.json.get("code", "") if reply.is_problem else "", challenge]))
        found += f" {reply.json.get('detail', '')}" if reply.is_problem else ""
        self.t.check(is_met, f"{cell(operation, credential, case)} | expected {wanted} | got {found}")
        self.t.check(str(reply.status) in operation.statuses, f"{operation.name} | {reply.status} is not in openapi.yaml")
        return reply

    def look(self, operation, credential, case, reply):
        """Checks the content of a permitted reply."""
        if not isinstance(reply.json, dict) or not reply.json or reply.status >= 400:
            return
        self.stage.keep_signature(reply.json)
        items, place = reply.json.get("items", []), cell(operation, credential, case)
        match operation.name:
            case "listAssets" | "listFills" if case.is_inside:
                outside = [item["key"] for item in items if not item["key"].startswith(PREFIX)]
                self.t.check(not outside, f"{place} | the list contains {outside}")
            case "listJobs":
                self.look_at_jobs(place, credential, {item["jobId"] for item in items})
            case "createJob" if case.name == "playlist":
                self.look_at_playlist(place, credential, case, reply.json["jobId"])
            case "listTokens":
                shown = {item["id"] for item in items}
                self.t.check(credential.name.replace(" ", "-") in shown or not credential.is_limited, f"{place} | {shown}")
                outside = [item for item in items if item["prefixes"] != [PREFIX] and credential.has_own]
                self.t.check(not outside or not credential.is_limited, f"{place} | the list contains {outside}")
            case "createToken":
                self.stage.t.vault.keep("readerToken", reply.json["token"])
            case "createEventTicket":
                self.look_at_ticket(place, reply.json["ticket"])

    def look_at_ticket(self, place, ticket):
        """A ticket permits one request for events."""
        self.t.vault.keep("readerTicket", ticket)
        found = [self.stage.send("GET", f"/v1/events?ticket={ticket}").code for _ in range(2)]
        self.t.equal(found, ["200", "unauthorized"], f"{place} | the result of the ticket, twice,")

    def look_at_jobs(self, place, credential, listed):
        jobs = self.stage.jobs
        shown = {"own"} if credential.has_own else set()
        shown |= {"made"} if credential.name == "limited write" else set()
        wanted = [name for name in jobs if name in shown or not credential.is_limited]
        found = [name for name, job in jobs.items() if job in listed]
        self.t.equal(found, wanted, f"{place} | the list of jobs")

    def look_at_playlist(self, place, credential, case, job):
        """The files of the other team that a playlist names are fetched, pinned and tagged for tokens without limits only."""
        stage, t = self.stage, self.t
        part = case.body["items"][0]["path"].rpartition("/")[2].replace("list", "part").replace(".m3u8", ".ts")
        requests = stage.upstream.of(f"/{FOREIGN}/{part}")
        item = stage.ask("GET", f"/v1/assets/{stage.made[FOREIGN, 'kept.ts']}")
        if not credential.is_limited:
            t.check(requests, f"{place} | the foreign file of the playlist is not fetched")
            t.check(item["pinned"], f"{place} | the foreign file of the playlist is not pinned")
            stage.ask("PATCH", f"/v1/assets/{item['assetId']}", {"pinned": False, "tags": []})
            return
        t.check(not requests, f"{place} | {len(requests)} requests for the foreign file of the playlist")
        t.check(not item["pinned"] and not item["tags"], f"{place} | the foreign file of the playlist is pinned or tagged")
        children = [i for i in stage.items(f"/v1/jobs/{job}/items") if f"{FOREIGN}/" in json.dumps(i)]
        codes = {(i.get("error") or {}).get("code") for i in children}
        t.check(len(children) == 2 and codes == {"tokenScope"}, f"{place} | the items of foreign files have the errors {codes}")

    def run_access(self, operations):
        """GET /v1/access lists exactly the permitted operations."""
        for credential in self.stage.credentials:
            if not credential.scope or credential.scope == "sign":
                continue
            reply = self.stage.call(operations["getAccess"], ROWS["getAccess"], credential, Case(""))
            listed = {(o["method"], o["path"], o["limited"]) for o in reply.json.get("operations", [])}
            wanted = {
                (operation.method, operation.path, credential.is_limited and ROWS[name].limits != "unaffected")
                for name, operation in operations.items()
                if is_permitted(ROWS[name], credential)
            }
            prefixes = [PREFIX if credential.has_own else "/o/open/"] if credential.is_limited else None
            self.t.equal(reply.json.get("assetPrefixes"), prefixes, f"getAccess | {credential.name} | assetPrefixes")
            for mark, values in (("lists", listed - wanted), ("does not list", wanted - listed)):
                self.t.check(not values, f"getAccess | {credential.name} | it {mark} {sorted(values)}")


@scenario(needs=["yaml", "openssl"])
def matrix(t):
    """The access matrix: every operation of openapi.yaml, every kind of credentials, own and foreign objects."""
    operations = described()
    for name in operations:
        t.check(name in ROWS, f"{name} has no row in Tests/Accounts/operations.py")
    for name in ROWS:
        t.check(name in operations, f"the row {name} has no operation in openapi.yaml")
    operations = {name: operation for name, operation in operations.items() if name in ROWS}
    stage = Stage(t)
    run = Matrix(t, stage)
    stage.settle()
    try:
        for name, operation in operations.items():
            run.run(operation, ROWS[name])
        run.run_access(operations)
        t.check(not stage.upstream.of(f"/{FOREIGN}/part.ts"), "a view of a playlist fetched a file that it names")
    finally:
        stage.close()
    t.note(f"{run.cells} cells of {len(operations)} operations and {len(stage.credentials)} kinds of credentials")
