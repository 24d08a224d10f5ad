"""Calls every operation of openapi.yaml with the generated client and checks the results."""

import datetime
import importlib
import threading

from openapi_python_client.strings import PythonIdentifier

import upstream as files

PACKAGE = "larder_client"


class Failure(Exception):
    pass


def expect(holds, message):
    if not holds:
        raise Failure(message)


def operations(document):
    """The operations by identifier: method, path and tag."""
    methods = ("get", "head", "put", "post", "patch", "delete")
    return {
        operation["operationId"]: (method, path, operation["tags"][0])
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in methods
    }


#: Operations that succeed in a fleet with etcd only; Tests/Fleet/state.py calls them.
NEED_ETCD = {"getFleetPurge", "prefetchItem", "getFleetDigest"}


#: Operations that succeed at a service with tokens only.
NEED_TOKEN = {"createToken", "getToken", "patchToken", "deleteToken"}


class Calls:
    def __init__(self, document, base_url, upstream, token=None):
        self.upstream = upstream
        self.operations = operations(document)
        self.document = document
        self.called = set()
        self.faults = []
        self.models = importlib.import_module(f"{PACKAGE}.models")
        self.types = importlib.import_module(f"{PACKAGE}.types")
        client = importlib.import_module(PACKAGE)
        options = {"base_url": base_url, "timeout": 60}
        self.client = client.AuthenticatedClient(token=token, **options) if token else client.Client(**options)

    def response(self, name, *arguments, **parameters):
        """The response of an operation, with its parsed body."""
        tag = self.operations[name][2]
        module = importlib.import_module(f"{PACKAGE}.api.{tag}.{PythonIdentifier(name, '')}")
        response = module.sync_detailed(*arguments, client=self.client, **parameters)
        if response.status_code < 400:
            self.called.add(name)
        return response

    def call(self, name, *arguments, status=200, kind=None, **parameters):
        """The parsed body of an operation; its status and type are checked."""
        response = self.response(name, *arguments, **parameters)
        text = f"{name} answered {response.status_code}: {response.content[:300]!r}"
        expect(response.status_code == status, f"{text}; expected {status}")
        if kind:
            kind = getattr(self.models, kind) if isinstance(kind, str) else kind
            expect(isinstance(response.parsed, kind), f"{text}; parsed as {type(response.parsed).__name__}, not {kind}")
        return response.parsed

    def refused(self, name, *arguments, code, status, **parameters):
        """The problem of an operation that must fail."""
        problem = self.call(name, *arguments, status=status, kind="Problem", **parameters)
        expect(problem.code == code, f"{name}: the code is {problem.code}, not {code}")
        return problem

    def send(self, method, path, body):
        """A request that the client's types do not permit."""
        return self.client.get_httpx_client().request(method, path, json=body)

    def null_is_refused(self, method, path, body):
        response = self.send(method, path, body)
        if response.status_code != 422 or response.json()["code"] != "invalidField":
            self.faults.append(f"{method} {path} {body} answered {response.status_code}, expected 422 invalidField")

    def run(self):
        """Calls everything; the order matters, since each part uses the results of the parts before it."""
        with self.client:
            self.service()
            self.configuration()
            self.origins()
            self.content()
            self.signatures()
            self.probes()
            self.lists()
            self.assets()
            self.fills()
            self.jobs()
            self.policy()
            self.evictions()
            self.purges()
            self.scrubs()
            self.encryption()
            self.webhooks()
            expect(self.call("listTokens").items == [], "listTokens: a token")
            self.fleet()
            self.statistics()
            self.nulls()
            self.removals()
        missing = sorted(set(self.operations) - self.called - NEED_ETCD - NEED_TOKEN)
        expect(not missing, f"operations without a successful call: {', '.join(missing)}")

    def run_with_tokens(self):
        """Calls the operations about tokens."""
        with self.client:
            self.tokens()

    # Tokens

    def tokens(self):
        order = self.models.TokenRequest(id="player", scope=self.models.AccessScope.READ, prefixes=["/o/media/"])
        made = self.call("createToken", body=order, status=201, kind="Token")
        expect(len(made.token) == 64 and made.source == "api" and made.created_by == "admin", f"createToken: {made}")
        self.refused("createToken", body=order, status=409, code="conflict")
        found = self.response("getToken", "player")
        expect(not found.parsed.token and found.parsed.prefixes == ["/o/media/"], f"getToken: {found.parsed}")
        self.call("getToken", "player", if_none_match=found.headers["ETag"], status=304)
        patch = self.models.TokenPatch(max_bytes_per_second=1000)
        changed = self.call("patchToken", "player", body=patch, if_match=found.headers["ETag"], kind="Token")
        expect(changed.max_bytes_per_second == 1000 and changed.prefixes == ["/o/media/"], f"patchToken: {changed}")
        self.refused("patchToken", "player", body=patch, if_match=found.headers["ETag"], status=412, code="preconditionFailed")
        expect([each.id for each in self.call("listTokens").items] == ["admin", "player"], "listTokens: wrong names")
        for method, path, name, body in (
            ("POST", "/v1/tokens", "TokenRequest", {"id": "null", "scope": "read"}), ("PATCH", "/v1/tokens/player", "TokenPatch", {}),
        ):  # fmt: skip
            for nested in self.objects_with_null(self.schema(name)):
                self.null_is_refused(method, path, {**body, **nested})
        self.call("deleteToken", "player", status=204)
        self.refused("getToken", "player", status=404, code="notFound")

    # Service

    def service(self):
        for name, status in (("getLive", "live"), ("getReady", "ready"), ("getStartup", "started")):
            expect(self.call(name, kind="Health").status == status, f"{name}: wrong status")
        expect(self.call("getVersion", kind="Version").name == "larder", "getVersion: wrong name")
        access = self.call("getAccess", kind="Access")
        expect(access.token is None and len(access.operations) > len(self.operations) / 2, "getAccess: wrong operations")
        text = self.call("getOpenAPI", kind=str)
        expect(f"title: {self.document['info']['title']}" in text, "getOpenAPI: not the document")
        expect(self.response("getDashboard").headers["Location"] == "/ui/", "getDashboard: not redirected to /ui/")
        expect("{" in self.call("getDashboardFile", "style.css", kind=str), "getDashboardFile: no style sheet")
        self.refused("getRoot", status=404, code="notFound")
        browser = self.client.with_headers({"Accept": "text/html"})
        module = importlib.import_module(f"{PACKAGE}.api.service.get_root")
        expect(module.sync_detailed(client=browser).headers["Location"] == "/ui/", "getRoot: not redirected to /ui/")
        self.called.add("getRoot")

    # Configuration

    def configuration(self):
        configuration = self.call("getConfiguration", kind="Configuration")
        expect(configuration.file is None and configuration.error is None, "getConfiguration: a file or an error")
        settings = {setting.key: setting for setting in configuration.settings}
        hosts = settings["upstream.allowedHosts"]
        expect(hosts.source == "flag" and len(hosts.value) == 1, f"getConfiguration: {hosts.to_dict()}")
        expect(settings["limits.bodyBytes"].to_dict() == {
            "key": "limits.bodyBytes", "value": "1MiB", "source": "default",
        }, "getConfiguration: wrong limits.bodyBytes")  # fmt: skip
        expect(settings["access.token"].value is None, "getConfiguration: a token")
        result = self.call("reloadConfiguration", kind="ReloadResult")
        expect(result.changed == [] and result.needs_restart == [], f"reloadConfiguration: {result.to_dict()}")
        expect(result.loaded_at > configuration.loaded_at, "reloadConfiguration: loadedAt stays")

    # Origins

    def origins(self):
        change = self.models.OriginChange(
            base_url=self.upstream.url, allow_private_addresses=True, retries=1,
            headers=self.models.OriginChangeHeaders.from_dict({"X-Key": "secret"}),
            freshness=self.models.FreshnessType1(ttl_seconds=600),
            key_query=self.models.KeyQueryType1(include=["version"]),
            circuit_breaker=False, negative_caching=False, mirrors=[],
            quota=self.models.Quota(max_bytes=1 << 30),
        )  # fmt: skip
        expect(change.to_dict().keys() <= {
            "baseURL", "allowPrivateAddresses", "retries", "headers", "freshness", "keyQuery", "circuitBreaker",
            "negativeCaching", "mirrors", "quota",
        }, "OriginChange: fields that were not set are sent")  # fmt: skip
        origin = self.call("putOrigin", "demo", body=change, status=201, kind="Origin")
        read = self.call("getOrigin", "demo", kind="Origin")
        expect(origin == read, "getOrigin: not the same as putOrigin's result")
        expect(read.retries == 1 and read.max_transfers == 16, "putOrigin: wrong retries or maxTransfers")
        expect(read.freshness.ttl_seconds == 600, "putOrigin: wrong freshness")
        expect(read.key_query.include == ["version"], "putOrigin: wrong keyQuery")
        expect(read.circuit_breaker is False and read.negative_caching is False, "putOrigin: false was not kept")
        expect(read.from_ == "api", "putOrigin: wrong from")
        expect(read.headers["X-Key"] == "•••" and read.access == "token", "putOrigin: the header is not masked")
        # A read document can be sent back and changes nothing.
        again = self.models.OriginChange.from_dict(read.to_dict())
        expect(self.call("putOrigin", "demo", body=again, kind="Origin") == read, "putOrigin: no round trip")
        again.headers = self.models.OriginChangeHeaders()
        again.access = self.models.OriginChangeAccessType1.PUBLIC
        expect(self.call("putOrigin", "demo", body=again, kind="Origin").access == "public", "putOrigin: access stays")
        revision = self.response("getOrigin", "demo").headers["ETag"]
        self.refused("putOrigin", "demo", body=again, if_match='"999"', status=412, code="preconditionFailed")
        self.call("putOrigin", "demo", body=again, if_match=revision, kind="Origin")
        names = [item.name for item in self.call("listOrigins").items]
        expect(names == ["demo"], f"listOrigins: {names}")
        if "patchOrigin" in self.operations:
            self.patch_origin()
        other = self.models.OriginChange(base_url=self.upstream.url)
        self.call("putOrigin", "other", body=other, status=201, kind="Origin")
        expect(read.observations == [], f"getOrigin: observations {read.observations}")
        expect(len(read.addresses) == 1, f"getOrigin: addresses {read.addresses}")
        self.call("forgetObservations", "other", status=204)
        self.call("closeCircuits", "other", status=204)
        self.test_origin()
        self.call("deleteOrigin", "other", status=204)
        self.refused("forgetObservations", "other", status=404, code="notFound")
        self.refused("closeCircuits", "other", status=404, code="notFound")
        self.refused("getOrigin", "other", status=404, code="notFound")

    def test_origin(self):
        order = self.models.OriginTestRequest
        test = self.call("testOrigin", "demo", body=order(path="one.bin"), kind="OriginTest")
        expect(test.outcome == "succeeded" and test.status == 206 and test.accepts_ranges, f"testOrigin: {test}")
        settings = self.models.OriginChange(base_url=self.upstream.url, allow_private_addresses=True)
        test = self.call("testOrigin", "fresh", body=order(settings=settings, path="missing.bin"), kind="OriginTest")
        expect(test.outcome == "refused" and test.status == 404 and test.code == "upstreamRefused", f"testOrigin: {test}")
        settings.base_url = "http://127.0.0.1:9"
        test = self.call("testOrigin", "fresh", body=order(settings=settings), kind="OriginTest")
        expect(test.outcome == "failed" and test.code == "upstreamUnreachable", f"testOrigin: {test}")
        settings.allow_private_addresses = False
        test = self.call("testOrigin", "fresh", body=order(settings=settings), kind="OriginTest")
        expect(test.outcome == "failed" and test.code == "upstreamForbidden", f"testOrigin: {test}")
        self.refused("testOrigin", "fresh", body=order(), status=404, code="notFound")
        settings.base_url = "ftp://media"
        refused = self.refused("testOrigin", "fresh", body=order(settings=settings), status=422, code="invalidField")
        expect(refused.field == "settings.baseURL", f"testOrigin: {refused.field}")

    def patch_origin(self):
        before = self.call("getOrigin", "demo", kind="Origin").to_dict()
        kind = next(
            getattr(self.models, name) for name in ("OriginPatch", "OriginChange") if hasattr(self.models, name)
        )
        after = self.call("patchOrigin", "demo", body=kind.from_dict({"retries": 2}), kind="Origin").to_dict()
        expect(after == {**before, "retries": 2}, "patchOrigin: more than retries changed")

    # Content

    def content(self):
        one, tag = files.FILES["one.bin"], files.tag("one.bin")
        whole = self.call("readMounted", "demo", "one.bin", kind=self.types.File)
        expect(whole.payload.read() == one, "readMounted: other bytes")
        part = self.call("readMounted", "demo", "one.bin", range_="bytes=1000-1999", status=206, kind=self.types.File)
        expect(part.payload.read() == one[1000:2000], "readMounted: other bytes of a range")
        nested = self.call("readMounted", "demo", "films/one.mp4", kind=self.types.File)
        expect(nested.payload.read() == files.FILES["films/one.mp4"], "readMounted: other bytes below a directory")
        expect(self.call("readMounted", "demo", "one.bin", if_none_match=tag, status=304) is None, "304 with a body")
        self.refused("readMounted", "demo", "one.bin", range_="bytes=900000-", status=416, code="rangeNotSatisfiable")
        problem = self.refused("readMounted", "demo", "missing.bin", status=404, code="upstreamRefused")
        expect(problem.upstream_status == 404, "readMounted: wrong upstreamStatus")
        head = self.response("readMountedHead", "demo", "one.bin")
        expect(head.status_code == 200 and head.parsed is None and not head.content, "readMountedHead: a body")
        expect(head.headers["Content-Length"] == str(files.SIZE), "readMountedHead: wrong length")
        self.one = head.headers["Larder-Asset-Id"]
        expect(self.call("readMountedHead", "demo", "missing.bin", status=404) is None, "readMountedHead: a problem")

        self.url = f"{self.upstream.url}/two.bin"
        two = self.call("readURL", url_query=self.url, kind=self.types.File)
        expect(two.payload.read() == files.FILES["two.bin"], "readURL: other bytes")
        self.refused("readURL", url_query="http://other.example/", status=403, code="upstreamForbidden")
        self.two = self.response("readURLHead", url_query=self.url).headers["Larder-Asset-Id"]
        expect(self.call("readURLHead", url_query=self.url, if_none_match=files.tag("two.bin"), status=304) is None, "a body")
        read = self.call("readAsset", self.two, range_="bytes=-10", status=206, kind=self.types.File)
        expect(read.payload.read() == files.FILES["two.bin"][-10:], "readAsset: other bytes")
        length = self.response("readAssetHead", self.two).headers["Content-Length"]
        expect(length == str(files.SIZE), "readAssetHead: wrong length")

    # Probes

    def signatures(self):
        order = self.models.SignatureRequest(path="/o/demo/one.bin", expires_in_seconds=60)
        signed = self.call("createSignature", body=order, status=201, kind="SignedURL")
        expect(signed.kid == "test", f"createSignature: the key is {signed.kid}")
        client = self.client.get_httpx_client()
        expect(client.get(signed.url).status_code == 200, "createSignature: the URL is not readable")
        problem = client.get(signed.url.replace("sig=", "sig=A"))
        expect(problem.status_code == 403 and problem.json()["code"] == "tokenInvalid", "an altered URL is readable")
        order = self.models.SignatureRequest(path="/v1/stats", expires_in_seconds=60)
        self.refused("createSignature", body=order, status=422, code="invalidField")

    def probes(self):
        report = self.call("probeURL", url_query=self.url, kind="ProbeReport")
        expect(report.content_length == files.SIZE and report.asset_id == self.two, "probeURL: wrong report")
        expect(report.method == "cached" and report.accepts_ranges is True, "probeURL: wrong method")
        report = self.call("probe", body=self.models.ProbeRequest(origin="demo", path="one.bin"), kind="ProbeReport")
        expect(report.asset_id == self.one and report.etag == files.tag("one.bin"), "probe: wrong report")
        items = [self.models.ProbeItem(url=self.url), self.models.ProbeItem(origin="demo", path="missing.bin")]
        expect("timeoutSeconds" not in items[0].to_dict(), "ProbeItem: a default is sent")
        many = self.call("probe", body=self.models.ProbeRequest(items=items, timeout_seconds=9))
        expect(isinstance(many.items[0], self.models.ProbeReport), "probe: the first item is no report")
        expect(isinstance(many.items[1], self.models.Problem), "probe: the second item is no problem")
        expect(many.items[1].outcome == "failed" and many.items[1].upstream_status == 404, "probe: wrong problem")

    # Lists

    def lists(self):
        models = self.models
        order = models.ListingRequest(origin="demo", path="files.txt", format_=models.ListingRequestFormat.TEXT, limit=2)
        page = self.call("listFiles", body=order, kind="Listing")
        found = [(item.path, item.is_folder) for item in page.items]
        expect(found == [("films/", True), ("films/one.mp4", False)], f"listFiles: {found}")
        expect(page.skipped_entries == 1 and page.next_cursor, "listFiles: no second page")
        order.cursor = page.next_cursor
        page = self.call("listFiles", body=order, kind="Listing")
        expect([item.path for item in page.items] == ["one.bin"] and page.next_cursor is None, "listFiles: wrong second page")
        self.refused("listFiles", body=models.ListingRequest(origin="nobody"), status=404, code="notFound")
        self.refused("listFiles", body=models.ListingRequest(origin="demo", path="two.bin"), status=502, code="upstreamProtocol")
        order = models.ListingRequest(origin="demo", path="list.m3u8", format_=models.ListingRequestFormat.S3)
        page = self.call("listFiles", body=order, kind="Listing")
        expect(not page.items and page.next_cursor == "t", f"listFiles: {page}")

        for path, selection, code in (
            ("files.txt", {"format": "text", "include": ["**/one.*"]}, None),
            ("files.txt", {"format": "text", "limit": 1}, "jobTooLarge"),
            ("foreign.txt", {"format": "text"}, "upstreamForbidden"),
            ("", {"format": "s3"}, "upstreamProtocol"),
        ):
            self.listed(path, selection, code)
        self.planned()

    def planned(self):
        """A dry run has the files of a list and creates no job."""
        items = [{"origin": "demo", "path": "files.txt", "list": {"format": "text"}}, {"url": self.url, "ranges": ["bytes=0-9"]}]
        before = len(self.call("listJobs", limit=1000).items)
        body = self.models.CreateJobRequest.from_dict({"items": items, "dryRun": True})
        plan = self.call("createJob", body=body, kind="JobPlan")
        found = [(entry.path or None, entry.parent) for entry in plan.entries]
        expect(found == [("films/one.mp4", 0), ("one.bin", 0), (None, None)], f"createJob, dry run: {found}")
        expect(plan.files == 3 and plan.skipped_entries == 1 and plan.to_dict()["bytes"] >= 10, f"createJob, dry run: {plan}")
        expect(len(self.call("listJobs", limit=1000).items) == before, "a dry run has created a job")
        # A URL below the origin names the folder of a list.
        items[0] = {"url": f"{self.upstream.url}/files.txt", "list": {"format": "text", "include": ["films/*"]}}
        by_url = self.call("createJob", body=self.models.CreateJobRequest.from_dict({"items": items, "dryRun": True}))
        expect([entry.path or None for entry in by_url.entries] == ["films/one.mp4", None], f"createJob, by URL: {by_url}")
        body.items[0].path = "foreign.txt"
        self.refused("createJob", body=body, status=403, code="upstreamForbidden")

    def listed(self, path, selection, code):
        """A job with a list ends with this code; nil: it has fetched the files that match."""
        client = self.client.get_httpx_client()
        item = {"origin": "demo", "path": path, "list": selection}
        job = client.post("/v1/jobs", json={"items": [item]}, headers={"Prefer": "wait=30"}).json()
        items = self.call("listJobItems", job["jobId"]).items
        error = items[0].error.code if items[0].error else None
        expect(error == code, f"a list of {path} {selection}: {error}, not {code}")
        if not code:
            expect({item.path for item in items[1:]} == {"one.bin", "films/one.mp4"}, f"a list of {path}: {items}")

    # Assets

    def assets(self):
        page = self.call("listAssets", limit=1, sort=self.models.ListAssetsSort.HITS)
        expect(len(page.items) == 1 and page.next_cursor, "listAssets: no second page")
        rest = self.call("listAssets", cursor=page.next_cursor, sort=self.models.ListAssetsSort.HITS)
        expect({item.asset_id for item in page.items + rest.items} >= {self.one, self.two}, "listAssets: incomplete")
        usage = self.call("getUsage", by=self.models.GetUsageBy.PATH, prefix="/o/demo/", kind="Usage")
        expect(usage.total.assets >= 2 and usage.prefix == "/o/demo/", f"getUsage: {usage}")
        self.refused("getUsage", by=self.models.GetUsageBy.TAG, prefix="/o/demo/", status=422, code="invalidField")
        asset = self.call("getAsset", self.one, kind="Asset")
        expect(asset.complete and asset.cached_bytes == files.SIZE and asset.origin == "demo", "getAsset: wrong")
        expect(isinstance(asset.created_at, datetime.datetime), "getAsset: createdAt is no instant")
        patch = self.models.AssetPatch
        asset = self.call("patchAsset", self.one, body=patch(pinned=True, tags=["feature"]), kind="Asset")
        expect(asset.pinned and asset.tags == ["feature"], "patchAsset: not pinned or tagged")
        asset = self.call("patchAsset", self.one, body=patch(ttl_seconds=60), kind="Asset")
        expect(asset.pinned and asset.tags == ["feature"] and asset.ttl_seconds == 60, "patchAsset: others changed")
        asset = self.call("patchAsset", self.one, body=patch(ttl_seconds=None, pinned=False), kind="Asset")
        expect(asset.ttl_seconds is None and not asset.pinned, "patchAsset: null kept the lifetime")
        for field in ("pinned", "tags"):
            self.null_is_refused("PATCH", f"/v1/assets/{self.one}", {field: None})
        self.refused("patchAsset", self.one, body=patch(tags=[""]), status=422, code="invalidField")
        extents = self.call("listExtents", self.one).to_dict()["items"]
        expect(sum(extent["length"] for extent in extents) == files.SIZE, "listExtents: wrong sum")
        checksums = self.call("getIntegrity", self.one, kind="Integrity")
        expect(checksums.complete and checksums.next_cursor is None, "getIntegrity: incomplete")
        expect(sum(item.length for item in checksums.items) == files.SIZE, "getIntegrity: wrong sum")
        self.refused("getMedia", self.one, status=422, code="unsupportedMedia")
        self.call("readMounted", "demo", "list.m3u8", kind=self.types.File)
        playlist = self.call("probe", body=self.models.ProbeRequest(origin="demo", path="list.m3u8"), kind="ProbeReport")
        media = self.call("getMedia", playlist.asset_id, kind="Media")
        expect(media.duration_seconds == 4 and media.renditions[0].segments == 1, "getMedia: wrong playlist")
        buckets = self.call("mapAsset", self.one, buckets=10).buckets
        expect(len(buckets) == 10 and all(bucket.cached == 1 for bucket in buckets), "mapAsset: wrong buckets")
        dropped = self.call("dropExtents", self.one, offset=0, length=65536).dropped_bytes
        expect(dropped == 65536, f"dropExtents: {dropped}")
        expect(self.call("cancelFills", self.one).cancelled == 0, "cancelFills: a fill was under way")
        self.refused("getAsset", "0" * 32, status=404, code="notFound")

    # Fills

    def fills(self):
        explanation = self.call("explainRead", origin="demo", path="one.bin", kind="Explanation")
        expect(explanation.response.result == "partial", f"explainRead: {explanation.response.result}")
        expect(explanation.fetch.bytes_ == 65536, f"explainRead: {explanation.fetch.bytes_} bytes")
        expect(self.call("getWorkers", kind="Workers").workers, "getWorkers: none")
        with self.held_read():
            fill = self.held_fill()
            expect(fill.origin == "demo" and fill.state == "running", "listFills: wrong fill")
            expect(self.call("getFill", fill.fill_id, kind="Fill").asset_id == fill.asset_id, "getFill: another asset")
            self.call("cancelFill", fill.fill_id, status=204)
        # The fill ends after the call that cancels it.
        self.until("the cancelled fill goes on", lambda: self.response("getFill", fill.fill_id).status_code != 200)
        self.refused("getFill", fill.fill_id, status=404, code="notFound")

    def held_read(self):
        """A reader of a file with a delayed second half."""
        calls = self

        class Read(threading.Thread):
            def run(self):
                try:
                    calls.client.get_httpx_client().get("/o/demo/held.bin")
                except Exception:  # noqa: BLE001  the service cuts the body off
                    pass

            def __enter__(self):
                self.start()

            def __exit__(self, *_):
                self.join(30)

        return Read(daemon=True)

    def held_fill(self):
        return self.until(
            "no fill runs", lambda: next((fill for fill in self.call("listFills", state=self.models.FillState.RUNNING).items), None)
        )

    def until(self, message, condition):
        """Polls until there is a result, at most 20 s."""
        pause = threading.Event()
        for _ in range(400):
            if result := condition():
                return result
            pause.wait(0.05)
        raise Failure(message)

    # Jobs

    def jobs(self):
        item = self.models.JobItemRequest(origin="demo", path="one.bin", ranges=["bytes=0-99999"])
        order = self.models.CreateJobRequest(items=[item], label="tonight", queue="player-1")
        job = self.call("createJob", body=order, prefer="wait=30", idempotency_key="one", kind="Job")
        expect(job.state == "succeeded" and job.bytes_done == 100_000 and job.label == "tonight", "createJob: failed")
        same = self.call("createJob", body=order, prefer="wait=30", idempotency_key="one", kind="Job")
        expect(same.job_id == job.job_id, "createJob: another job for the same Idempotency-Key")
        expect(self.call("getJob", job.job_id, kind="Job").error is None, "getJob: an error")
        listed = self.call("listJobs", state=self.models.JobState.SUCCEEDED, queue="player-1").items
        expect([entry.job_id for entry in listed] == [job.job_id], "listJobs: wrong jobs")
        items = self.call("listJobItems", job.job_id).items
        expect(items[0].asset_id == self.one and items[0].ranges == ["bytes=0-99999"], "listJobItems: wrong item")
        events = self.call("watchJob", job.job_id, kind=str)
        expect("event: state" in events and '"state":"succeeded"' in events, f"watchJob: {events[:200]!r}")
        last = events.rpartition("id: ")[2].partition("\n")[0]
        expect(self.call("watchJob", job.job_id, last_event_id=last, status=204) is None, "watchJob: more events")
        held = self.models.CreateJobRequest(items=[self.models.JobItemRequest(url=f"{self.upstream.url}/held.bin")])
        held = self.call("createJob", body=held, status=202, kind="Job")
        self.refused("retryJob", held.job_id, status=409, code="conflict")
        paused = self.models.JobPatch(state=self.models.JobPatchState.PAUSED, priority=self.models.JobPriority.LOW)
        etag = self.response("getJob", held.job_id).headers["ETag"]
        job = self.call("patchJob", held.job_id, body=paused, if_match=etag, kind="Job")
        expect(job.state == "paused" and job.priority == "low", f"patchJob: {job.state}, {job.priority}")
        self.refused("patchJob", held.job_id, body=paused, if_match=etag, status=412, code="preconditionFailed")
        job = self.call("patchJob", held.job_id, body=self.models.JobPatch(state=self.models.JobPatchState.QUEUED), kind="Job")
        expect(job.state in ("queued", "running"), f"patchJob: {job.state}")
        job = self.call("cancelJob", held.job_id, kind="Job")
        job = self.until("the job is not cancelled", lambda: self.finished(held.job_id))
        expect(job.state == "cancelled", f"cancelJob: {job.state}")
        self.upstream.release.set()
        self.call("retryJob", held.job_id, status=202, kind="Job")
        expect('"state":"succeeded"' in self.call("watchJob", held.job_id, kind=str), "retryJob: it failed again")
        self.refused("patchJob", held.job_id, body=paused, status=409, code="conflict")
        self.schedules(item)
        empty = self.models.CreateJobRequest(items=[])
        problem = self.refused("createJob", body=empty, status=422, code="invalidField")
        expect(problem.field == "items", f"createJob: {problem.field}")

    def schedules(self, item):
        order = self.models.ScheduleRequest(
            repeat="weekly:mon,thu", at="02:30 Europe/Berlin", deadline_seconds=600, job=self.models.CreateJobRequest(items=[item])
        )
        made = self.call("putSchedule", "tonight", body=order, status=201)
        expect(made.repeat == "weekly:mon,thu" and made.state == "active" and made.last_run is None, f"putSchedule: {made}")
        found = self.response("getSchedule", "tonight")
        self.call("getSchedule", "tonight", if_none_match=found.headers["ETag"], status=304)
        expect([each.name for each in self.call("listSchedules").items] == ["tonight"], "listSchedules: wrong names")
        self.refused("putSchedule", "tonight", body=order, if_none_match="*", status=412, code="preconditionFailed")
        expect(self.call("putSchedule", "tonight", body=order, if_match=found.headers["ETag"]).name == "tonight", "putSchedule: not replaced")
        order.at = "02:30 Europe/Atlantis"
        expect(self.refused("putSchedule", "tonight", body=order, status=422, code="invalidField").field == "at", "putSchedule: wrong field")
        self.call("deleteSchedule", "tonight", status=204)
        self.refused("getSchedule", "tonight", status=404, code="notFound")

    def finished(self, job):
        job = self.call("getJob", job, kind="Job")
        return job if job.finished_at else None

    # Policy

    def policy(self):
        change = self.models.PolicyChange
        before = self.call("getPolicy", kind="Policy").to_dict()
        quotas = self.models.PolicyChangeTagQuotasType0.from_dict({"promo": {"maxBytes": 1 << 30}})
        changed = self.call("patchPolicy", body=change(capacity_bytes=1 << 34, tag_quotas=quotas), kind="Policy").to_dict()
        expect(changed["tagQuotas"]["promo"]["maxBytes"] == 1 << 30, "patchPolicy: no quota")
        expect(change(grace_seconds=30).to_dict() == {"graceSeconds": 30}, "PolicyChange: defaults are sent")
        after = self.call("patchPolicy", body=change(grace_seconds=30), kind="Policy").to_dict()
        expect(after == {**changed, "graceSeconds": 30}, "patchPolicy: more than graceSeconds changed")
        admission = change(admission=self.models.Admission(min_uses=2))
        after = self.call("patchPolicy", body=admission, kind="Policy").to_dict()
        expect(after == {**changed, "graceSeconds": 30, "admission": {"minUses": 2}}, "patchPolicy: wrong admission")
        after = self.call("patchPolicy", body=change(capacity_bytes=None), kind="Policy")
        expect(after.capacity_bytes is None, "patchPolicy: null is not unlimited")
        for field in ("graceSeconds", "admission", "highWatermark", "algorithm"):
            self.null_is_refused("PATCH", "/v1/policy", {field: None})
        self.refused("patchPolicy", body=change(high_watermark=2), status=422, code="invalidField")
        revision = self.response("getPolicy").headers["ETag"]
        self.refused("putPolicy", body=change(), if_match='"999"', status=412, code="preconditionFailed")
        after = self.call("putPolicy", body=change(), if_match=revision, kind="Policy").to_dict()
        expect(after == before, "putPolicy: not the defaults")
        plan = self.models.PolicyPlanRequest
        empty = self.call("planPolicy", body=plan(), kind="PolicyPlan")
        expect(empty.freed_bytes == 0 and empty.items == [], f"planPolicy: {empty}")
        tight = change(capacity_bytes=1 << 24, high_watermark=0.0002, low_watermark=0.0001, grace_seconds=0)
        small = self.call("planPolicy", body=plan(policy=tight), kind="PolicyPlan")
        expect(0 < small.freed_bytes <= small.used_bytes and small.items[0].reason == "capacity", f"planPolicy: {small}")
        wrong = self.refused("planPolicy", body=plan(policy=change(high_watermark=2)), status=422, code="invalidField")
        expect(wrong.field == "policy.highWatermark", f"planPolicy: {wrong.field}")
        curve = self.call("getPolicyCurve", window_seconds=3600, kind="PolicyCurve")
        expect(curve.algorithm == "s3fifo", "getPolicyCurve: another algorithm")
        algorithm = self.models.EvictionAlgorithm.LRU
        order = self.models.SimulationRequest(algorithms=[algorithm], capacities=[1 << 30, 1 << 31])
        trials = self.call("simulatePolicies", body=order, kind="SimulationResults")
        expect([trial.capacity_bytes for trial in trials.items] == [1 << 30, 1 << 31], "simulatePolicies: wrong items")

    def evictions(self):
        self.call("listNextEvictions", bytes_=1024)
        order = self.models.EvictRequest(free_bytes=1024, dry_run=True)
        report = self.call("evict", body=order, kind="EvictionReport")
        expect(report.dry_run and report.plan_id is not None, "evict: no plan of a dry run")
        both = self.models.EvictRequest(free_bytes=1024, target_bytes=0)
        self.refused("evict", body=both, status=422, code="invalidField")
        expect(isinstance(self.call("listEvictions").items, list), "listEvictions: no list")

    def purges(self):
        order = self.models.PurgeRequest
        plan = self.call("purge", body=order(origin="demo", dry_run=True), kind="EvictionReport").plan_id
        expect(self.call("getPurge", plan, kind="PurgePlan").state == "planned", "getPurge: wrong state")
        self.call("cancelPurge", plan, status=204)
        plan = self.call("purge", body=order(asset_ids=[self.one], dry_run=True), kind="EvictionReport").plan_id
        done = self.call("commitPurge", plan, kind="PurgePlan")
        expect(done.state == "done" and done.assets_done == 1, f"commitPurge: {done.state}")
        self.refused("getAsset", self.one, status=404, code="notFound")
        later = self.call("purge", body=order(asset_ids=[self.one]), prefer="respond-async", status=202, kind="PurgePlan")
        expect(self.call("getPurge", later.plan_id, kind="PurgePlan").assets == 0, "purge: wrong assets")
        self.refused("commitPurge", later.plan_id, prefer="respond-async", status=409, code="conflict")
        self.refused("purge", body=order(), status=422, code="invalidField")

    def scrubs(self):
        scrub = self.call("beginScrub", body=self.models.ScrubRequest(asset_id=self.two), status=202, kind="Scrub")

        def ended():
            report = self.call("getScrub", scrub.scrub_id, kind="Scrub")
            return report if report.finished_at else None

        report = self.until("the scrub does not end", ended)
        expect(report.state == "succeeded" and report.bad_blocks == 0, f"getScrub: {report.state}")
        if "listScrubs" in self.operations:
            listed = [entry.scrub_id for entry in self.call("listScrubs").items]
            expect(listed == [scrub.scrub_id], "listScrubs: wrong scrubs")

    def encryption(self):
        keys = self.call("getEncryption", kind="Encryption")
        expect([key.key_id for key in keys.keys] == ["first"] and keys.active_key == "first", "getEncryption: wrong keys")
        rotated = self.call("rotateMasterKey", status=202, kind="Encryption")
        expect(rotated.rotation.active_key == "first", "rotateMasterKey: wrong key")

    def webhooks(self):
        webhooks = self.call("listWebhooks", kind="WebhookList")
        expect([each.name for each in webhooks.items] == ["ops"] and webhooks.capacity == 10000, "listWebhooks: wrong webhooks")
        expect(webhooks.items[0].state.value in ("active", "failing"), "listWebhooks: wrong state")

    def fleet(self):
        expect(self.call("getFleet", kind="Fleet").peers == [], "getFleet: wrong nodes")
        expect(self.call("getFleetStats").total.bytes_["served"] > 0, "getFleetStats: nothing counted")
        self.call("getFleetPurge", 1, status=404, kind="Problem")
        item = self.models.NodeItemRequest.from_dict({"item": {"reference": {"origin": "media", "path": "a"}}, "priority": "low"})
        self.call("prefetchItem", "0" * 32, body=item, status=401, kind="Problem")
        self.call("getFleetDigest", status=401, kind="Problem")
        for name, state in (("leaveFleet", "leaving"), ("joinFleet", "ready")):
            expect(self.call(name, kind="Fleet").state == state, f"{name}: wrong state")

    # Statistics

    def statistics(self):
        live = self.call("getLiveStats", window_seconds=5, kind="LiveStats")
        expect(len(live.seconds) <= 5 and live.step_seconds == 1, "getLiveStats: wrong seconds")
        events = self.call("getEvents", topics="fills,jobs")
        expect({event.topic for event in events.items} == {"fills", "jobs"}, "getEvents: wrong topics")
        expect(self.call("getEvents", after=events.last_id).is_complete, "getEvents: not complete")
        hits = {"origin": "demo", "result": self.models.CacheResult.HIT}
        requests = self.call("listRequests", **hits, limit=2, total=True)
        expect(len(requests.items) == 2 and requests.total > 2, f"listRequests: {requests.total} requests")
        expect(all(entry.status in (200, 206) for entry in requests.items), "listRequests: wrong statuses")
        older = self.call("listRequests", **hits, cursor=requests.next_cursor)
        expect(older.items[0].id < requests.items[1].id, "listRequests: wrong page")
        self.refused("listRequests", cursor="x", status=422, code="invalidField")
        ended = self.call("getEvents", topics="requests", asset_id=self.one).items
        expect(ended and all(event.request.asset_id == self.one for event in ended), "getEvents: wrong requests")
        expect(len(self.call("createEventTicket", status=201).ticket) == 64, "createEventTicket: wrong ticket")
        expect(self.call("listAssets", total=True, limit=1).total > 0, "listAssets: no total")
        stats = self.call("getStats", kind="Stats")
        expect(stats.requests.total > 0 and stats.store.cached_bytes > 0, "getStats: nothing counted")
        self.call("getHistory", window_seconds=120)
        top = self.call("getTop", by=self.models.GetTopBy.REQUESTS, limit=5).items
        expect(top and top[0].requests > 0, "getTop: nothing")
        metrics = self.call("getMetrics", kind=str)
        expect("larder_uptime_seconds" in metrics, "getMetrics: no uptime")

    # Null

    def nulls(self):
        """Sends null for every request body field with a schema that does not permit it."""
        origin = {"baseURL": self.upstream.url}
        item = {"url": self.url}
        for method, path, name, body in (
            ("PATCH", "/v1/policy", "PolicyChange", {}),
            ("PATCH", f"/v1/assets/{self.two}", "AssetPatch", {}),
            ("PUT", "/v1/origins/null", "OriginChange", origin),
            ("PATCH", "/v1/origins/demo", "OriginPatch", {}),
            ("POST", "/v1/probe", "ProbeRequest", item),
            ("POST", "/v1/list", "ListingRequest", {"origin": "demo"}),
            ("POST", "/v1/jobs", "CreateJobRequest", {"items": [item]}),
            ("PUT", "/v1/schedules/null", "ScheduleRequest", {"repeat": "daily", "job": {"items": [item]}}),
            ("POST", "/v1/purges", "PurgeRequest", {"origin": "nobody", "dryRun": True}),
            ("POST", "/v1/evictions", "EvictRequest", {"freeBytes": 0, "dryRun": True}),
            ("POST", "/v1/scrubs", "ScrubRequest", {"assetId": self.two}),
            ("POST", "/v1/policy/simulations", "SimulationRequest", {}),
            ("POST", "/v1/policy/plans", "PolicyPlanRequest", {}),
            ("POST", "/v1/origins/demo/test", "OriginTestRequest", {}),
        ):
            if name not in self.document["components"]["schemas"]:
                continue
            for nested in self.objects_with_null(self.schema(name)):
                self.null_is_refused(method, path, {**body, **nested})

    def schema(self, schema):
        """A schema by its name, or with its reference resolved."""
        name = schema if isinstance(schema, str) else schema.get("$ref", "").rpartition("/")[2]
        return self.document["components"]["schemas"][name] if name else schema

    def permits_null(self, schema):
        schema = self.schema(schema)
        choices = schema.get("oneOf") or schema.get("anyOf") or []
        return "null" in schema.get("type", ()) or any(self.permits_null(choice) for choice in choices)

    def objects_with_null(self, schema):
        """For each field that must not be null, at any depth, an object with null there."""
        for key, value in schema.get("properties", {}).items():
            value = self.schema(value)
            if not self.permits_null(value):
                yield {key: None}
            for inner in self.objects_with_null(self.schema(value.get("items", {}))):
                yield {key: [inner]}
            for choice in (value, *value.get("oneOf", ())):
                for inner in self.objects_with_null(choice):
                    yield {key: inner}

    def removals(self):
        self.call("deleteAsset", self.two, status=204)
        self.refused("getAsset", self.two, status=404, code="notFound")
        self.call("deleteOrigin", "demo", status=204)
