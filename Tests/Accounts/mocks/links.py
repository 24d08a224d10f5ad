"""Services with download links that expire: Yandex.Disk, Dropbox, Google Drive, and redirects to pre-signed URLs. The
files are sent by a download host that checks signature and end of its links; nginx can stand in front of it."""

import hashlib
import hmac
import json
import pathlib
import threading
import time
import urllib.parse
import uuid

from .base import Answer, Mock, serve

#: The status for an invalid signature; `Downloads.expired_status` is that for an expired link.
FORGED = 403


class Downloads(Mock):
    """Sends `directory / name` for links that `link` made. `credential` is the Authorization that each download needs;
    with None, a download that has one is a fault. With `is_accelerated`, nginx sends the file (X-Accel-Redirect)."""

    def __init__(self, directory, vault, credential=None):
        self.directory, self.vault, self.credential = pathlib.Path(directory), vault, credential
        self.key = uuid.uuid4().bytes
        self.lock = threading.Lock()
        self.ends, self.expired_status, self.is_accelerated = {}, 410, False
        super().__init__()
        #: The host in the links: that of nginx, if it stands in front.
        self.front = f"127.0.0.1:{self.port}"

    def link(self, name, lifetime=300, extra=None):
        """A new link; its signature is a secret."""
        identity = uuid.uuid4().hex
        end = int(time.time() + lifetime)
        with self.lock:
            self.ends[identity] = end
        query = {"id": identity, "exp": end, **(extra or {}), "sig": self.vault.keep("link", self.sign(name, identity, end))}
        return f"http://{self.front}/dl/{urllib.parse.quote(name)}?{urllib.parse.urlencode(query)}"

    def sign(self, name, identity, end):
        return hmac.new(self.key, f"{name} {identity} {end}".encode(), hashlib.sha256).hexdigest()

    def expire(self):
        """Ends all links that exist now."""
        with self.lock:
            self.ends = dict.fromkeys(self.ends, 0)

    def answer(self, request):
        if not request.name.startswith("/dl/"):
            return Answer(404)
        name, values = request.name.removeprefix("/dl/"), request.parameters
        given = request.fields.get("authorization")
        if self.credential is None and given is not None:
            self.fault(f"the download of {name} has the credentials of the API")
        identity, end = values.get("id", ""), values.get("exp", "0")
        if not hmac.compare_digest(values.get("sig", ""), self.sign(name, identity, int(end))):
            return Answer(FORGED)
        if self.credential is not None and not self.credential(given):
            return Answer(401)
        with self.lock:
            is_expired = self.ends.get(identity, 0) <= time.time()
        if is_expired:
            return Answer(self.expired_status)
        path = self.directory / name
        if not path.is_file():
            return Answer(404)
        request.account = identity
        if self.is_accelerated:
            return Answer(200, {"X-Accel-Redirect": f"/files/{urllib.parse.quote(name)}"})
        return serve(request, path.read_bytes())

    def completed(self):
        """The accepted downloads."""
        return [request for request in list(self.requests) if request.status in (200, 206)]

    def nginx(self):
        """The `http` block of an nginx in front."""
        return f"""
            server {{
                listen 127.0.0.1:{{port}}; access_log off; sendfile on;
                location /dl/ {{
                    proxy_pass http://127.0.0.1:{self.port}; proxy_http_version 1.1; proxy_set_header Connection "";
                }}
                location /files/ {{ internal; alias {self.directory}/; }}
            }}
        """


class LinkService(Mock):
    """The API side. `shape` is "yandex", "dropbox", "drive" or "presigned"; `authorize` checks Authorization.
    `lifetime` is that of the next links."""

    def __init__(self, shape, downloads, authorize):
        self.shape, self.downloads, self.authorize = shape, downloads, authorize
        self.lifetime, self.refused = 300, {}
        #: The number of entries of a part of a folder; whether the parts have no end; the host of the next part.
        self.page_size, self.is_endless, self.next_host = 3, False, None
        super().__init__()

    def answer(self, request):
        if not self.authorize(request.fields.get("authorization")):
            return Answer(401, {"Content-Type": "application/json"}, b'{"error":"UnauthorizedError"}')
        return getattr(self, self.shape)(request)

    def calls(self):
        """The answered calls for links."""
        return [request for request in list(self.requests) if request.status in (200, 302)]

    def json(self, status, value):
        return Answer(status, {"Content-Type": "application/json; charset=utf-8"}, json.dumps(value).encode())

    def exists(self, name):
        return (self.downloads.directory / name).is_file()

    def children(self, name):
        """The entries of a folder in the order of their names; nil: it does not exist."""
        folder = self.downloads.directory / name
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else None

    def part(self, name, start):
        """A part of a folder with at most `page_size` entries, and the number of the next entry; nil: there is none."""
        found = self.children(name)
        end = start + self.page_size
        if self.is_endless:
            return found[: self.page_size], end
        return found[start:end], end if end < len(found) else None

    @staticmethod
    def changed(path):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(path.stat().st_mtime))

    def yandex(self, request):
        """`GET /v1/disk/resources/download?path=…` → {"href", "method", "templated"}."""
        if request.method != "GET" or request.name not in ("/v1/disk/resources/download", "/v1/disk/resources"):
            return self.json(405, {"error": "MethodNotAllowedError"})
        if request.name == "/v1/disk/resources":
            return self.yandex_folder(request)
        name = request.parameters.get("path", "").removeprefix("disk:").removeprefix("/")
        if not self.exists(name):
            return self.json(404, {"error": "DiskNotFoundError", "message": "Не удалось найти запрошенный ресурс."})
        return self.json(200, {"href": self.downloads.link(name, self.lifetime), "method": "GET", "templated": False})

    def yandex_folder(self, request):
        """`GET /v1/disk/resources?path=…&offset=…` → {"_embedded": {"items": […], "total"}}."""
        name = request.parameters.get("path", "").removeprefix("disk:").strip("/")
        offset, found = int(request.parameters.get("offset", "0")), self.children(name)
        if found is None:
            return self.json(404, {"error": "DiskNotFoundError"})
        items = [
            {"name": path.name, "type": "dir", "path": f"disk:/{name}/{path.name}", "modified": self.changed(path)}
            | ({"type": "file", "size": path.stat().st_size} if path.is_file() else {})
            for path in self.part(name, offset)[0]
        ]
        return self.json(200, {"type": "dir", "_embedded": {"items": items, "total": len(found), "offset": offset}})

    def dropbox_folder(self, request):
        """`POST /2/files/list_folder` with {"path"}, then `…/continue` with {"cursor"} → {"entries", "cursor", "has_more"}."""
        body = json.loads(request.body)
        name, start = body.get("path", ""), 0
        if request.path.endswith("/continue"):
            name, start = json.loads(body["cursor"])
        if name == "/" or self.children(name.strip("/")) is None:
            return self.json(409, {"error_summary": "path/not_found/.."})
        found, end = self.part(name.strip("/"), start)
        entries = [
            {".tag": "folder", "name": path.name}
            | ({".tag": "file", "size": path.stat().st_size, "server_modified": self.changed(path)} if path.is_file() else {})
            for path in found
        ]
        cursor = json.dumps([name, end or 0])
        return self.json(200, {"entries": entries, "cursor": cursor, "has_more": end is not None})

    def drive_folder(self, request):
        """`GET /drive/v3/files?q='ID'+in+parents&pageToken=…` → {"files", "nextPageToken"}. `!` in identifiers stands for `/`."""
        parent = request.parameters["q"].split("'")[1]
        name = "" if parent == "root" else parent.replace("!", "/")
        if self.children(name) is None:
            return self.json(404, {"error": {"code": 404}})
        found, end = self.part(name, int(request.parameters.get("pageToken", "0")))
        kind = {True: "video/mp4", False: "application/vnd.google-apps.folder"}
        files = [
            {"id": f"{name}/{path.name}".strip("/").replace("/", "!"), "name": path.name, "mimeType": kind[path.is_file()]}
            | ({"size": str(path.stat().st_size), "modifiedTime": self.changed(path)} if path.is_file() else {})
            for path in found
        ]
        # Another service names the URL of the next part.
        link = f"http://{self.next_host or f'127.0.0.1:{self.port}'}{request.name}?q='{parent}'+in+parents&pageToken={end}"
        return self.json(200, {"files": files, **({"nextPageToken": str(end), "nextLink": link} if end else {})})

    def dropbox(self, request):
        """`POST /2/files/get_temporary_link` with {"path"} → {"metadata", "link"}."""
        folders = ("/2/files/list_folder", "/2/files/list_folder/continue")
        if request.method != "POST" or request.path not in ("/2/files/get_temporary_link", *folders):
            return self.json(400, {"error": "path"})
        if request.fields.get("content-type", "").partition(";")[0] != "application/json":
            return self.json(400, {"error": "Content-Type"})
        if request.path in folders:
            return self.dropbox_folder(request)
        name = json.loads(request.body)["path"].removeprefix("/")
        if not self.exists(name):
            return self.json(409, {"error_summary": "path/not_found/..", "error": {".tag": "path"}})
        size = (self.downloads.directory / name).stat().st_size
        link = self.downloads.link(name, self.lifetime)
        return self.json(200, {"metadata": {"name": name, "size": size}, "link": link})

    def drive(self, request):
        """`GET /drive/v3/files/{id}?alt=media` → the redirect to an expiring link."""
        if request.name == "/drive/v3/files":
            return self.drive_folder(request)
        name = request.name.removeprefix("/drive/v3/files/").replace("!", "/")
        if request.parameters.get("alt") != "media" or not self.exists(name):
            return self.json(404, {"error": {"code": 404}})
        return Answer(302, {"Location": self.downloads.link(name, self.lifetime), "Cache-Control": "no-store"})

    def presigned(self, request):
        """Any path → the redirect to a URL with the parameters of an S3 pre-signed one."""
        name = request.name.lstrip("/")
        if not self.exists(name):
            return Answer(404)
        signed = {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Expires": str(self.lifetime), "X-Amz-SignedHeaders": "host",
            "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
            "X-Amz-Signature": self.downloads.vault.keep("link", uuid.uuid4().hex * 2),
        }  # fmt: skip
        return Answer(302, {"Location": self.downloads.link(name, self.lifetime, signed)})
