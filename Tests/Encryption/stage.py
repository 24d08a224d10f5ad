"""The upstream, the services and the search of the tests of encryption."""

import base64
import contextlib
import functools
import json
import os
import pathlib
import shutil
import stat
import subprocess
import threading
import zlib

from harness import http
from harness.process import Larder
from harness.upstream import Upstream, asset

#: Plain bytes are records of a mark and a number: any 14 bytes in a row contain the whole mark. Each origin has its own.
MARKS = {"secret": b"\xf1\x9b\x03\xd7\x8e\xa6", "open": b"\xe4\x05\xbb\x92\x1f\xc8"}
RECORD = 9
PIECE = 4 << 20


@functools.lru_cache(maxsize=256)
def body(origin, name):
    """The bytes of a file; its name ends with its size."""
    size, number = int(name.rsplit("-", 1)[1]), zlib.crc32(name.encode())
    records = (MARKS[origin] + (number + at & 0xFFFFFF).to_bytes(3, "big") for at in range(size // RECORD + 1))
    return b"".join(records)[:size]


class Source(Upstream):
    """Serves `/origin/kind/name`. `private` is not stored, and `held` waits for `release` after half of the body."""

    def __post_init__(self):
        self.release, self.head = threading.Event(), threading.Event()
        self.head.set()
        super().__post_init__()

    def answer(self, request):
        origin, kind, name = request.path.strip("/").split("/")
        if kind.startswith("late"):
            self.head.wait(60)
        data = body(origin, name)
        whole = asset(
            data=data, etag=f'"{name}"', cache_control="no-store" if "private" in kind else "max-age=86400"
        )
        answer = whole.answer(request)
        answer.hold = self.release if "held" in kind else None
        return answer


class Reading:
    """A GET on a connection of its own, whose body is read as far as the test needs it."""

    def __init__(self, service, path, **options):
        self.connection = http.connect(service.port, **options)
        self.connection.request("GET", path)
        self.response, self.body = self.connection.getresponse(), b""

    def take(self, count):
        """Reads up to `count` bytes more, fewer only at the end."""
        self.body += self.response.read(count)

    def finish(self):
        """Reads the rest; whether the response ended as its head states."""
        try:
            while part := self.response.read1(1 << 16):
                self.body += part
            return self.response.length in (0, None)
        except (OSError, http.ERROR):
            return False
        finally:
            self.connection.close()


class Service(Larder):
    """Larder with a configuration file and a directory of master keys. Its origins are `secret` and `open`."""

    def __init__(self, stage, name, store=None, **encryption):
        place = stage.directory / name
        place.mkdir(exist_ok=True)
        self.file, self.keys, self.stage = place / "larder.json", place / "keys", stage
        super().__init__(stage.program, place, options=["--config", self.file], level="debug")
        self.keys.mkdir(exist_ok=True)
        self.store = store or self.store
        self.encryption = {"keysDirectory": str(self.keys), **encryption}
        self.encrypted, self.capacity = {"secret": True, "open": False}, "none"
        stage.services.append(self)
        self.write()

    def write(self):
        """Writes the configuration file."""
        origins = {
            name: {
                "baseURL": f"{self.stage.source.url}/{name}", "allowPrivateAddresses": True, "encrypt": is_encrypted
            } for name, is_encrypted in self.encrypted.items()
        }  # fmt: skip
        encryption = {name: value for name, value in self.encryption.items() if value is not None}
        settings = {"origins": origins, "policy": {"capacity": self.capacity}}
        if encryption:
            settings["encryption"] = encryption
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(settings) + "\n")
        new.replace(self.file)

    def key(self, name, key=None, mode=0o600):
        """Writes a key file; returns the key."""
        key = key or os.urandom(32)
        path = self.keys / name
        path.write_bytes(key)
        path.chmod(mode)
        if len(key) >= 32 and len(set(key)) > 8:
            self.stage.secrets.append(key)
        return key

    def reload(self):
        """Reads configuration and keys again; returns the `Reply`."""
        self.write()
        return self.call("POST", "/v1/configuration/reload")

    def read(self, origin, name, first=None, end=None, kind="film"):
        """Reads a file, or the half-open range of it."""
        fields = {} if first is None else {"Range": f"bytes={first}-{end - 1}"}
        return self.send("GET", f"/o/{origin}/{kind}/{name}", fields)

    def is_right(self, origin, name, first=None, end=None, kind="film"):
        """Whether a read gets exactly the bytes of the upstream."""
        reply = self.read(origin, name, first, end, kind)
        return reply.status == (200 if first is None else 206) and reply.body == body(origin, name)[first:end]

    def wrong(self, origin, names):
        """The first names that a read does not get, with their responses."""
        with http.connection(self.port) as opened:
            replies = [(name, http.exchange(opened, "GET", f"/o/{origin}/film/{name}")) for name in names]
        return [f"{name}: {reply}" for name, reply in replies if reply.body != body(origin, name)][:3]

    def hold(self, origin, names):
        """Stores files with one job."""
        job = self.job(*({"origin": origin, "path": f"film/{name}"} for name in names))
        self.finished(job)
        return job

    def commit(self):
        """Waits until everything that was fetched is in the catalog: each purge does."""
        return self.call("POST", "/v1/purges", {"keys": ["/o/none/of/them"], "dryRun": True})

    def assets(self, prefix=""):
        """The stored assets by their keys."""
        return {item["key"]: item for item in self.items("/v1/assets") if item["key"].startswith(prefix)}

    def metric(self, name):
        lines = self.send("GET", "/metrics").body.decode().splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(name + " ")), None)

    def tool(self, name, *arguments):
        """Runs a command of the program with the configuration and the store; returns exit status and output."""
        return self.stage.run(
            name, *arguments, "--config", self.file, "--data-directory", self.store, environment=self.environment
        )

    def found(self, *texts):
        """The files below the data directory that contain one of the texts, and those open descriptors of it."""
        return found(self.store, self.process, texts)


def contains(path, texts):
    overlap, rest = max(map(len, texts)), b""
    with open(path, "rb") as file:
        while part := file.read(PIECE):
            window = rest + part
            if any(text in window for text in texts):
                return True
            rest = window[-overlap:]
    return False


def found(store, process, texts):
    """The files below `store` that contain one of the texts, deleted ones included while the process has them open."""
    places = [path for path in store.rglob("*") if path.is_file() and not path.is_symlink()]
    # Only root sees the descriptors of a process that cannot be traced.
    if process and process.poll() is None and os.geteuid() == 0:
        descriptors = pathlib.Path(f"/proc/{process.pid}/fd")
        for name in os.listdir(descriptors):
            with contextlib.suppress(OSError):
                is_file = stat.S_ISREG(os.stat(descriptors / name).st_mode)
                if is_file and os.readlink(descriptors / name).startswith(str(store)):
                    places.append(descriptors / name)
    hits = []
    for place in places:
        # A file can be deleted, and a descriptor be closed, during the search.
        with contextlib.suppress(OSError):
            if contains(place, texts):
                hits.append(os.readlink(place) if "/fd/" in str(place) else str(place))
    return hits


class Stage:
    """The upstream and the directory of one part."""

    def __init__(self, program, directory, is_brief, part):
        self.program, self.directory, self.is_brief, self.check = program, directory, is_brief, part
        self.equal, self.eventually = part.equal, part.eventually
        self.source, self.services, self.secrets = Source(), [], []

    def run(self, *command, environment=None):
        done = subprocess.run(
            [self.program, *map(str, command)], env=environment, capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stdout + done.stderr

    def copy(self, service, name):
        """Copies the store of a stopped service."""
        return pathlib.Path(shutil.copytree(service.store, self.directory / name, symlinks=True))

    def copy_of(self, store, name):
        """Another copy of a copied store."""
        return pathlib.Path(shutil.copytree(store, self.directory / name.replace(" ", "-"), symlinks=True))

    def no_plain_text(self, service, origin="secret", subject="the store"):
        hits = service.found(MARKS[origin])
        self.check(not hits, f"{subject} contains plain text of {origin}", "\n".join(hits))

    def close(self):
        """Ends the services; no log has a key."""
        self.source.close()
        for service in self.services:
            if service.is_running:
                self.check(service.stop() == 0, f"the service {service.place.name} did not end", service.last_words())
            self.check(not self.revealed(service.log.read_bytes() if service.log.exists() else b""), "a log has a key")
        self.check(not self.source.faults, f"faults of the upstream: {self.source.faults}")

    def revealed(self, text):
        """Whether the text contains a key in any of its forms."""
        forms = [form for key in self.secrets for form in (
            key, key.hex().encode(), base64.b64encode(key), base64.urlsafe_b64encode(key).rstrip(b"=")
        )]  # fmt: skip
        text = text.encode() if isinstance(text, str) else text
        return any(form in text for form in forms)
