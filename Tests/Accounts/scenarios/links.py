"""Links that expire: three shapes of APIs, refusals, hosts, changed files, and redirects to pre-signed URLs."""

import hashlib
import os
import time
import urllib.parse

from mocks.base import Answer, Mock, content
from mocks.links import Downloads, LinkService
from harness.process import Nginx

from . import scenario
from .s3 import LARGE, RANGE, read_ranges, read_whole

SIZE = 300_000
REFUSALS = (401, 403, 404, 410)
YANDEX = {
    "resolve_url": "/v1/disk/resources/download?path={path}", "resolve_pointer": "/href", "resolve_lifetime": "4m",
}  # fmt: skip
DROPBOX = {
    "resolve_url": "/2/files/get_temporary_link", "resolve_method": "POST", "resolve_body": '{"path":"/{path}"}',
    "resolve_pointer": "/link", "resolve_lifetime": "3h",
}  # fmt: skip


YANDEX_LIST = {
    "resolve_list_url": "/v1/disk/resources?path=disk:/{path}&offset={offset}", "resolve_list_pointer": "/_embedded/items",
}  # fmt: skip
DROPBOX_LIST = {
    "resolve_list_url": "/2/files/list_folder", "resolve_list_method": "POST", "resolve_list_body": '{"path":"{/path}"}',
    "resolve_list_pointer": "/entries", "resolve_list_type": "/.tag", "resolve_list_folder": "folder",
    "resolve_list_modified": "/server_modified", "resolve_list_cursor": "/cursor", "resolve_list_more": "/has_more",
    "resolve_list_nextURL": "/2/files/list_folder/continue", "resolve_list_nextBody": '{"cursor":"{cursor}"}',
}  # fmt: skip
DRIVE_LIST = {
    "resolve_list_url": "/drive/v3/files?q='{path}'+in+parents", "resolve_list_path": "/id", "resolve_list_type": "/mimeType",
    "resolve_list_folder": "application/vnd.google-apps.folder", "resolve_list_query": "alt=media",
    "resolve_list_modified": "/modifiedTime", "resolve_list_pointer": "/files", "resolve_list_cursor": "/nextPageToken",
    "resolve_list_nextURL": "/drive/v3/files?q='{path}'+in+parents&pageToken={cursor}",
}  # fmt: skip


class Stage:
    """An API of one shape, its download host and a service with the origin `media`."""

    def __init__(self, t, shape, settings=None, sends_credentials=False, files=(), uses_nginx=True, scheme="OAuth", **options):
        self.t, self.directory = t, t.directory / f"site-{shape}-{len(t.mocks)}"
        self.directory.mkdir()
        self.token = t.vault.new("apiToken")
        self.value = f"{scheme} {self.token}"
        for name, size in files:
            self.write(name, content(name, size))
        credential = (lambda given: given == self.value) if sends_credentials else None
        self.downloads = t.mock(Downloads(self.directory, t.vault, credential))
        self.api = t.mock(LinkService(shape, self.downloads, lambda given: given == self.value))
        if uses_nginx and not t.tools.missing(["nginx"]):
            self.front()
        values = dict(settings or {})
        if "resolve_url" in values:
            values["resolve_url"] = self.api.url + values["resolve_url"]
            values.setdefault("resolve_hosts", [self.downloads.front])
            values["resolve_sendCredentials"] = sends_credentials
        for key in ("resolve_list_url", "resolve_list_nextURL"):
            if values.get(key, "").startswith("/"):
                values[key] = self.api.url + values[key]
        base = self.api.url + ("/drive/v3/files" if shape == "drive" else "")
        origin = t.origin("media", base, **{"headers.Authorization": self.value, "readAhead": "4MiB", **values})
        self.service = t.service({**origin, **options})

    def front(self):
        """Puts nginx before the download host."""
        place = self.t.directory / f"nginx-{self.directory.name}"
        place.mkdir()
        # The workers of nginx read the files.
        for folder in (self.t.directory, self.directory):
            folder.chmod(0o755)
        nginx = Nginx(place, self.downloads.nginx())
        self.t.processes.append(nginx)
        self.downloads.is_accelerated, self.downloads.front = True, f"127.0.0.1:{nginx.port}"

    def write(self, name, data, age=86_400):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(data)
        os.utime(part, (time.time() - age, time.time() - age))
        part.replace(path)

    def bytes(self, name, subject, target=None, **options):
        reply = self.service.read(f"/o/media/{target or name}", **options)
        return self.t.bytes(reply, content(name, SIZE), subject)

    def check_waiting(self, name, target=None):
        """One call for readers that wait for the same file."""
        readers = 30 if self.t.is_brief else 100
        before = len(self.api.requests)
        self.api.gate.clear()
        released = []

        def read(index):
            if index == readers:
                self.api.wait(lambda: len(self.api.requests) > before)
                # The other readers join while the call is held back.
                joined = lambda: len(self.service.api("GET", "/v1/fills").json.get("items", [])) >= 1  # noqa: E731
                self.t.eventually(joined, "no fill is active while the API is silent")
                self.api.gate.set()
                released.append(True)
                return None
            return self.service.read(f"/o/media/{target or name}")

        replies = self.t.together(readers + 1, read)
        good = sum(reply.status == 200 and reply.body == content(name, SIZE) for reply in replies)
        self.t.equal(good, readers, "the number of readers with all bytes")
        self.t.equal(len(self.api.requests) - before, 1, f"the number of calls for {readers} waiting readers")

    def check_shape(self, count=3, target="{}"):
        """Reads, expiry, refusals of each kind, and waiting readers."""
        t = self.t
        for number in range(count):
            name = f"folder/film {number}.bin"
            path = target.format(f"folder/film%20{number}.bin")
            self.bytes(name, f"a read of {name}", path)
            self.bytes(name, f"a repeated read of {name}", path)
        t.equal(len(self.api.requests), count, "the number of calls")
        reply = self.service.read("/o/media/" + target.format("range.bin"), "100-199")
        t.bytes(reply, content("range.bin", SIZE)[100:200], "a range", 206)
        self.check_waiting("waiting.bin", target.format("waiting.bin"))


NAMES = [*((f"folder/film {number}.bin", SIZE) for number in range(3)), ("range.bin", SIZE), ("waiting.bin", SIZE)]


@scenario()
def links_yandex(t):
    """Yandex.Disk: the link is in `/href`, and the download needs the token of the API, too."""
    stage = Stage(t, "yandex", YANDEX, sends_credentials=True, files=NAMES)
    stage.check_shape()
    missing = stage.service.read("/o/media/none.bin")
    t.check(missing.status in (404, 502), f"a missing file: the answer is {missing}")


@scenario()
def links_dropbox(t):
    """Dropbox: POST with a JSON body; the download host must not get the token."""
    stage = Stage(t, "dropbox", DROPBOX, scheme="Bearer", files=[*NAMES, ('quote".bin', SIZE), ("back\\slash ü.bin", SIZE)])
    stage.check_shape()
    stage.bytes('quote".bin', "a name with a quote", "quote%22.bin")
    stage.bytes("back\\slash ü.bin", "a name with a backslash and an umlaut", "back%5Cslash%20%C3%BC.bin")
    t.check(all("authorization" not in r.fields for r in stage.downloads.requests), "a download has the token")


@scenario()
def links_drive(t):
    """Google Drive: `alt=media` with a bearer token redirects to an expiring host without the token."""
    stage = Stage(t, "drive", {}, scheme="Bearer", files=[("one.bin", SIZE), ("range.bin", SIZE)])
    stage.bytes("one.bin", "a read", "one.bin?alt=media")
    reply = stage.service.read("/o/media/range.bin?alt=media", "100-199")
    t.bytes(reply, content("range.bin", SIZE)[100:200], "a range", 206)
    stage.downloads.expire()
    t.bytes(
        stage.service.read("/o/media/range.bin?alt=media", "200-299"), content("range.bin", SIZE)[200:300], "a later range", 206
    )
    t.check(all("authorization" not in r.fields for r in stage.downloads.requests), "a download has the token")


@scenario()
def links_refused(t):
    """A refused link (401, 403, 404, 410) is resolved once again; a link that is refused always ends in a problem."""
    names = [(f"{kind}{status}.bin", SIZE) for kind in ("a", "b") for status in REFUSALS]
    stage = Stage(t, "yandex", YANDEX, files=names, uses_nginx=False)
    for status in REFUSALS:
        stage.downloads.expired_status = status
        name = f"a{status}.bin"
        reply = stage.service.read(f"/o/media/{name}", "0-99")
        t.bytes(reply, content(name, SIZE)[:100], "a first range", 206)
        before = len(stage.api.requests)
        stage.downloads.expire()
        reply = stage.service.read(f"/o/media/{name}", "200000-200099")
        t.bytes(reply, content(name, SIZE)[200000:200100], f"a range after {status} for its link", 206)
        t.equal(len(stage.api.requests) - before, 1, f"the number of calls after {status}")
    for status in REFUSALS:
        stage.downloads.expired_status, stage.api.lifetime = status, -1
        before = len(stage.api.requests)
        reply = stage.service.read(f"/o/media/b{status}.bin")
        t.check(reply.status >= 400 and reply.is_problem, f"a link that is always refused with {status}: the answer is {reply}")
        count = len(stage.api.requests) - before
        t.check(count <= 2 * 4, f"{count} calls for a link that is always refused with {status}")


@scenario(brief=False)
def links_lifetime(t):
    """A link is used for its lifetime and replaced before its end."""
    stage = Stage(t, "yandex", {**YANDEX, "resolve_lifetime": "1500ms"}, files=[("a.bin", SIZE)], uses_nginx=False)
    stage.api.lifetime = 2
    data = content("a.bin", SIZE)
    for number in range(3):
        at = number * 1000
        t.bytes(stage.service.read("/o/media/a.bin", f"{at}-{at + 99}"), data[at : at + 100], "a range", 206)
    t.equal(len(stage.api.requests), 1, "the number of calls within the lifetime")
    end = time.time() + 2.2
    t.eventually(lambda: time.time() > end, "the link never ends")
    t.bytes(stage.service.read("/o/media/a.bin", "290000-290099"), data[290000:290100], "a range after the end", 206)
    t.equal(len(stage.api.requests), 2, "the number of calls after the end")
    t.equal([r.status for r in stage.downloads.requests if r.status >= 400], [], "the refusals of the download host")


@scenario()
def links_hosts(t):
    """A link to a host outside `resolve.hosts` is not followed."""
    stage = Stage(t, "yandex", {**YANDEX, "resolve_hosts": ["downloads.example", "*.disk.example"]}, files=[("a.bin", SIZE)])
    reply = stage.service.read("/o/media/a.bin")
    t.refused(reply, "a link to another host", (403,), codes=("upstreamForbidden",))
    t.equal(len(stage.downloads.requests), 0, "the number of requests at the forbidden host")
    stage = Stage(t, "yandex", {**YANDEX, "resolve_hosts": ["127.0.0.1:*"]}, files=[("a.bin", SIZE)])
    stage.bytes("a.bin", "a read with a pattern of ports")


@scenario(brief=False)
def links_expiry_in_read(t):
    """All links end in the middle of a 64 MiB read, once for each status."""
    names = [(f"large{status}.bin", LARGE) for status in (403, 410)]
    # Without nginx, so that the connections of transfers can be closed.
    stage = Stage(t, "yandex", YANDEX, sends_credentials=True, files=names, uses_nginx=False)
    for name, _ in names:
        stage.downloads.expired_status = int(name[5:8])
        read = read_whole if name == "large403.bin" else read_ranges
        calls = len(stage.api.requests)
        read(t, stage.service, f"/o/media/{name}", content(name, LARGE), stage.downloads.expire, stage.downloads)
        t.check(len(stage.api.requests) - calls <= 3, f"{len(stage.api.requests) - calls} calls for one expiry")


@scenario()
def links_changed(t):
    """A file that changes behind a new link: one answer never has bytes of two versions."""
    stage = Stage(t, "yandex", YANDEX, files=[("film.bin", 16 << 20)], uses_nginx=False)
    old, new = content("film.bin", 16 << 20), content("film, second cut", 16 << 20)
    with stage.service.stream("/o/media/film.bin") as body:
        body.take(2 << 20)
        stage.write("film.bin", new, age=100)
        stage.downloads.expire()
        body.take(len(old))
    if body.count == len(old):
        digests = {hashlib.sha256(data).hexdigest() for data in (old, new)}
        t.check(body.digest in digests, "MIXED BYTES: a complete answer has bytes of two versions")
    else:
        t.check(body.count < len(old), f"the answer has {body.count} bytes")
    stage.service.api("POST", "/v1/purges", {"origin": "media", "soft": True})
    t.bytes(stage.service.read("/o/media/film.bin"), new, "a read after the change")
    first = stage.service.read("/o/media/film.bin", "0-99")
    t.bytes(first, new[:100], "a range after the change", 206)


@scenario()
def redirects_presigned(t):
    """The pre-signed target of a redirect is used for later windows, and asked for once again when it is refused."""
    stage = Stage(t, "presigned", {"freshness": "1d"}, files=[("film.bin", LARGE), ("other.bin", SIZE)])
    data = content("film.bin", LARGE)
    for first in range(0, LARGE, RANGE):
        reply = stage.service.read("/o/media/film.bin", f"{first}-{first + RANGE - 1}")
        t.bytes(reply, data[first : first + RANGE], f"a range at {first}", 206)
    windows, calls = len(stage.downloads.completed()), len(stage.api.calls())
    t.check(windows >= 4, f"the file came in {windows} windows only")
    t.check(calls <= 2, f"{calls} calls of the API for {windows} windows of one file")
    for status in (403, 410):
        stage.downloads.expired_status, path = status, f"/o/media/other.bin?v={status}"
        t.bytes(stage.service.read(path, "0-99"), content("other.bin", SIZE)[:100], "a first range", 206)
        before = len(stage.api.requests)
        stage.downloads.expire()
        reply = stage.service.read(path, "250000-250099")
        t.bytes(reply, content("other.bin", SIZE)[250000:250100], f"a range after {status}", 206)
        t.equal(len(stage.api.requests) - before, 1, f"the number of calls after {status}")


@scenario(brief=False)
def redirects_forwarded_secret(t):
    """The token of the API never reaches the target of a redirect, and its signature no log."""
    stage = Stage(t, "presigned", {}, files=[(f"f{number}.bin", SIZE) for number in range(8)])
    for number in range(8):
        stage.bytes(f"f{number}.bin", "a read")
    t.check(all("authorization" not in r.fields for r in stage.downloads.requests), "a target of a redirect has the token")
    t.equal(len(stage.api.calls()), 8, "the number of calls")


@scenario(needs=["seaweedfs"], brief=False)
def redirects_boto(t):
    """Redirects to URLs that boto3 has pre-signed for SeaweedFS, which verifies them."""
    weed = t.tools.SeaweedFS(t)
    data = content("film.bin", 24 << 20)
    weed.s3.put_object(Bucket=weed.bucket, Key="film one.bin", Body=data)

    class Redirector(Mock):
        def answer(self, request):
            parameters = {"Bucket": weed.bucket, "Key": request.name.lstrip("/")}
            url = weed.s3.generate_presigned_url("get_object", Params=parameters, ExpiresIn=600)
            t.vault.keep("link", url.partition("Signature=")[2].partition("&")[0])
            return Answer(302, {"Location": url})

    redirector = t.mock(Redirector())
    service = t.service(t.origin("media", redirector.url, readAhead="2MiB"))
    t.bytes(service.read("/o/media/film%20one.bin", "0-99"), data[:100], "a range over a pre-signed URL", 206)
    t.bytes(service.read("/o/media/film%20one.bin"), data, "a read over pre-signed URLs")
    t.check(len(redirector.requests) <= 2, f"{len(redirector.requests)} calls for one file")


TREE = [f"films/{number} ä+&%.bin" for number in range(5)] + ["films/more/x.bin", "films/more/deep/y.bin", "other.bin"]


def listed(stage, path, limit):
    """All entries of a folder, page by page."""
    found, cursor = [], None
    for _ in range(20):
        order = {"origin": "media", "path": path, "limit": limit, **({"cursor": cursor} if cursor else {})}
        page = stage.service.api("POST", "/v1/list", order)
        if not stage.t.equal(page.status, 200, f"the status of a list ({page})"):
            return found
        stage.t.equal((page.json["format"], page.json["skippedEntries"]), ("api", 0), "the format of a list")
        stage.t.check(len(page.json["items"]) <= limit, f"a page of {len(page.json['items'])} entries")
        found += page.json["items"]
        cursor = page.json["nextCursor"]
        if not cursor:
            return found
    stage.t.check(False, "the list has no last page")
    return found


def check_folders(stage, root="", named=lambda name: urllib.parse.quote(name, safe="/+&!"), query="", is_stored=True):
    """Listings of folders, and a job that fetches the files of a tree. `named` is the path of a file or folder. With
    `is_stored` its bytes are read from the cache afterwards."""
    t = stage.t
    for limit in (1, 2, 1000):
        entries = listed(stage, named("films") + "/", limit)
        paths = [urllib.parse.unquote(entry["path"]) for entry in entries]
        wanted = [urllib.parse.unquote(named(name)) + query for name in TREE[:5]] + [urllib.parse.unquote(named("films/more")) + "/"]
        t.equal(paths, wanted, f"the folder with limit {limit}")
        t.equal([entry["bytes"] for entry in entries], [SIZE] * 5 + [None], "the lengths")
        t.check(all(entry["modifiedAt"] for entry in entries[:5]), "the times")
    t.equal(
        {urllib.parse.unquote(entry["path"]) for entry in listed(stage, root, 1000)}, {"films/", f"other.bin{query}"}, "the root"
    )
    item = {"origin": "media", "path": root, "list": {"recursive": True, "include": ["**"], "minBytes": 1}}
    plan = stage.service.api("POST", "/v1/jobs", {"items": [item], "dryRun": True})
    t.equal((plan.json.get("files"), plan.json.get("bytes")), (len(TREE), len(TREE) * SIZE), f"a dry run ({plan})")
    job = stage.service.api("POST", "/v1/jobs", {"items": [item]}, fields={"Prefer": "wait=60"})
    t.equal((job.json.get("state"), job.json.get("bytesDone")), ("succeeded", len(TREE) * SIZE), f"a job ({job})")
    before = len(stage.downloads.completed())
    for name in TREE:
        stage.bytes(name, f"a read of {name}", named(name) + query)
    if is_stored:
        t.equal(len(stage.downloads.completed()), before, "downloads after the job")


@scenario()
def links_folders(t):
    """Folders of three APIs, listed part by part, and a job that fetches the files of a tree with links."""
    files = [(name, SIZE) for name in TREE]
    check_folders(Stage(t, "yandex", {**YANDEX, **YANDEX_LIST}, sends_credentials=True, files=files))
    check_folders(Stage(t, "dropbox", {**DROPBOX, **DROPBOX_LIST}, files=files, scheme="Bearer"))


@scenario()
def links_drive_folders(t):
    """Folders of Google Drive, whose files have identifiers in place of paths."""
    stage = Stage(t, "drive", DRIVE_LIST, files=[(name, SIZE) for name in TREE], scheme="Bearer")
    # The redirect to the download must not be stored, so that each read asks again.
    named = lambda name: urllib.parse.quote(name.replace("/", "!"), safe="+&!")  # noqa: E731
    check_folders(stage, "root/", named, "?alt=media", is_stored=False)


@scenario()
def links_bad_folders(t):
    """A folder without an end, a next part on another host, and settings that do not match the response."""
    stage = Stage(t, "dropbox", {**DROPBOX, **DROPBOX_LIST}, files=[(name, SIZE) for name in TREE], scheme="Bearer")
    item = {"origin": "media", "path": "films/", "list": {}}
    stage.api.is_endless = True
    job = stage.service.api("POST", "/v1/jobs", {"items": [item]}, fields={"Prefer": "wait=60"})
    error = stage.service.api("GET", f"/v1/jobs/{job.json['jobId']}/items").json["items"][0]["error"]
    t.check(error and "does not end" in error["message"], f"a folder without an end: {error}")
    t.refused(stage.service.api("POST", "/v1/list", {"origin": "media", "path": "none/"}), "a missing folder", (502,))
    for format in ("html", "s3"):
        refused = stage.service.api("POST", "/v1/list", {"origin": "media", "format": format})
        t.equal((refused.status, refused.json["field"]), (422, "format"), f"the format {format}")
    without = Stage(t, "dropbox", DROPBOX, scheme="Bearer").service.api("POST", "/v1/list", {"origin": "media"})
    t.equal((without.status, without.json["field"]), (422, "origin"), "an origin without resolve.list")

    follows = {**DRIVE_LIST, "resolve_list_cursor": "/nextLink", "resolve_list_nextURL": "{cursor}"}
    stage = Stage(t, "drive", follows, files=[(name, SIZE) for name in TREE], scheme="Bearer")
    t.equal(len(listed(stage, "films/", 1000)), 6, "the entries with URLs of the next parts")
    stage.api.next_host = "localhost:1"
    page = stage.service.api("POST", "/v1/list", {"origin": "media", "path": "films/"}).json
    refused = stage.service.api("POST", "/v1/list", {"origin": "media", "path": "films/", "cursor": page["nextCursor"]})
    t.equal((refused.status, refused.json["code"]), (403, "upstreamForbidden"), "a next part on another host")
    for setting, value in (("resolve_list_pointer", "/entries"), ("resolve_list_path", "/path")):
        stage = Stage(t, "drive", {**DRIVE_LIST, setting: value}, files=[("a.bin", 9)], scheme="Bearer")
        refused = stage.service.api("POST", "/v1/list", {"origin": "media", "path": "root/"})
        t.check(refused.status == 502 and "resolve.list." in refused.json["detail"], f"{setting} {value}: {refused}")
