"""One scenario: its checks, mocks, Larder processes and secrets."""

import contextlib
import hashlib
import http.client
import json
import pathlib
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.parse

from harness import checks
from harness import http as requests
from harness.process import Larder
from leaks import examine_running, examine_stopped
from vault import Search, Vault


def nested(settings):
    """A tree of mappings from dotted keys; keys below `headers` are header fields and stay whole."""
    tree = {}
    for key, value in settings.items():
        *parents, last = key.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        if isinstance(value, dict):
            value = {**place.get(last, {}), **nested(value)} if last != "headers" else value
        place[last] = value
    return tree


class Service(Larder):
    """A Larder process with a configuration file that `configure` writes; log and access log are as detailed as
    possible. `token` has the scope admin."""

    def __init__(self, trial, settings, environment=None, files=None):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="service.", dir=trial.directory))
        super().__init__(trial.program, directory, token=trial.vault.new("readerAdminToken"), environment=environment)
        self.trial, self.vault = trial, trial.vault
        self.credentials, self.file = directory / "credentials", directory / "larder.json"
        self.credentials.mkdir(mode=0o700)
        #: Heads of all responses and bodies of all problems, for the search for secrets.
        self.heads, self.problems = [], []
        for name, text in (files or {}).items():
            self.write(name, text)
        self.configure(settings)

    def configure(self, settings):
        """Writes the configuration file: a rename, so that no reader sees a part of it."""
        self.settings = settings
        values = {
            "log.level": "trace", "log.format": "json", "log.access": "json", "credentialsDirectory": str(self.credentials),
            "limits.shutdownDelay": "1ms", "policy.minFreeDisk": "64MiB", "dataDirectory": str(self.store),
            "listen.address": f"127.0.0.1:{self.port}", **settings,
        }  # fmt: skip
        self.replace_file(json.dumps(nested(values), indent=2))

    def replace_file(self, text):
        part = self.file.with_suffix(".part")
        part.write_text(text)
        part.replace(self.file)

    def write(self, name, text):
        """Writes a file below the credentials directory."""
        path = self.credentials / name
        part = path.with_name(f".{path.name}.part")
        part.write_text(text)
        part.chmod(0o600)
        part.replace(path)
        return path

    @property
    def command(self):
        return [self.program, "serve", "--config", self.file]

    def last_words(self, count=800):
        words = [line for line in self.text().splitlines() if '"level":"trace"' not in line]
        return " | ".join(words[-4:])[-count:]

    def refusal(self):
        code, output = super().refusal()
        self.problems.append(output.encode())
        return code, output

    def run(self, *arguments, data=None):
        """Runs a command of the program as a client of this service; returns exit code, output and errors."""
        environment = {**self.environment, "LARDER_URL": self.url}
        result = subprocess.run(
            [self.program, *map(str, arguments)], env=environment, capture_output=True, input=data, timeout=60
        )
        return result.returncode, result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")

    # Requests

    def connection(self, context=None):
        return requests.connect(self.port, context or self.tls)

    def send(self, method, target, fields=None, body=None, context=None):
        """Sends a request without a token; returns its reply. A body that ends early is returned as it is."""
        return self.remember(super().send(method, target, fields, body, tls=context or self.tls))

    def remember(self, reply):
        head = "\n".join(f"{name}: {value}" for name, value in reply.fields.items() if name != "set-cookie")
        self.heads.append(head.encode())
        if reply.is_problem:
            self.problems.append(reply.body)
        return reply

    def api(self, method, path, value=None, token=None, fields=None):
        """Sends `value` as JSON with a token, by default that of the administrator."""
        return self.call(method, path, value, fields, token)

    def read(self, path, range=None, token=None, method="GET", fields=None):
        """Reads content with a token."""
        sent = {"Authorization": f"Bearer {token or self.token}", **(fields or {})}
        if range:
            sent["Range"] = f"bytes={range}"
        return self.send(method, path, sent)

    @contextlib.contextmanager
    def stream(self, path, fields=None):
        """A response whose body the caller reads in parts; it has an attribute `digest` of the bytes that `take` read."""
        with contextlib.closing(self.connection()) as connection:
            connection.request("GET", path, None, {"Authorization": f"Bearer {self.token}", **(fields or {})})
            yield Stream(connection.getresponse())

    # State

    def stats(self):
        return self.api("GET", "/v1/stats").json

    def credential(self, origin):
        """`credentials` of an origin in the statistics; empty without it."""
        for entry in self.stats().get("origins", []):
            if entry.get("origin") == origin:
                return entry.get("credentials") or {}
        return {}

    def metrics(self):
        """The samples of /metrics: name with labels → value."""
        lines = self.api("GET", "/metrics").body.decode(errors="replace").splitlines()
        pairs = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}

    def metric(self, name, **labels):
        """The sum of the samples with these labels; None without any."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        found = [
            value for sample, value in self.metrics().items()
            if sample.partition("{")[0] == name and all(text in sample for text in wanted)
        ]  # fmt: skip
        return sum(found) if found else None


class Stream:
    """A body that is read in parts."""

    def __init__(self, response):
        self.response, self.status = response, response.status
        self.count, self.hash = 0, hashlib.sha256()

    def take(self, count):
        """Reads up to `count` bytes; fewer at the end of the body or of the connection."""
        rest = count
        while rest > 0:
            try:
                data = self.response.read(min(rest, 256 << 10))
            except (http.client.HTTPException, OSError):
                return count - rest
            if not data:
                break
            self.hash.update(data)
            self.count += len(data)
            rest -= len(data)
        return count - rest

    @property
    def digest(self):
        return self.hash.hexdigest()


class Trial(checks.Part):
    """The `t` of a scenario. `tools` starts real servers; `is_brief` asks for small amounts."""

    def __init__(self, name, program, tools, is_brief):
        super().__init__(name)
        self.program, self.tools, self.is_brief = program, tools, is_brief
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"accounts-{name}."))
        self.vault = Vault()
        self.services, self.mocks, self.processes = [], [], []
        self.places, self.secrets = set(), 0

    # Checks

    def bytes(self, reply, expected, subject, status=200):
        """Checks status and bytes of a reply."""
        if not self.check(reply.status == status, f"{subject}: the answer is {reply} instead of {status}"):
            return False
        if reply.body == expected:
            return self.check(True, "")
        same = next((i for i, pair in enumerate(zip(reply.body, expected, strict=False)) if pair[0] != pair[1]), "the end")
        return self.check(False, f"{subject}: WRONG BYTES, {len(reply.body)} of {len(expected)}, first difference at {same}")

    def refused(self, reply, subject, statuses, codes=(), words=""):
        """Checks that a reply is a problem document with one of the statuses and codes, and words in its detail."""
        if not self.check(reply.status in statuses, f"{subject}: the answer is {reply} instead of {statuses}"):
            return False
        self.check(reply.is_problem, f"{subject}: the answer is no problem document but {reply}")
        if codes:
            self.check(reply.code in codes, f"{subject}: the problem is {reply.code} instead of {' or '.join(codes)}: {reply}")
        detail = str(reply.json.get("detail", ""))
        return self.check(not words or re.search(words, detail, re.I), f"{subject}: the detail does not name {words}: {detail!r}")

    # Parts

    def mock(self, mock):
        """Keeps a mock; its faults are failures of the scenario."""
        self.mocks.append(mock)
        return mock

    def service(self, settings, environment=None, files=None, is_started=True):
        """A Larder process with these settings; `files` are below the credentials directory."""
        service = Service(self, settings, environment, files)
        self.services.append(service)
        return service.start() if is_started else service

    def origin(self, name, url, **settings):
        """Settings of an origin on loopback; underscores in names stand for dots."""
        values = {f"origins.{name}.{key.replace('_', '.')}": value for key, value in settings.items()}
        return {f"origins.{name}.baseURL": url, f"origins.{name}.allowPrivateAddresses": True, **values}

    def together(self, count, function):
        """Calls `function(index)` in threads that begin at the same time; returns the results in order."""
        results, barrier, errors = [None] * count, threading.Barrier(count), queue.SimpleQueue()

        def call(index):
            barrier.wait()
            try:
                results[index] = function(index)
            except Exception as error:
                errors.put(error)

        threads = [threading.Thread(target=call, args=(index,)) for index in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not errors.empty():
            self.check(False, f"{errors.qsize()} of {count} requests failed, one with {errors.get()!r}")
        return [result for result in results if result is not None]

    # End

    def close(self, has_failed):
        """Searches for secrets, ends all processes and mocks."""
        search = Search(self.vault.needles())
        self.secrets = len(self.vault.kinds)
        for service in self.services:
            if service.process is None:
                continue
            if service.is_running:
                if not has_failed:
                    examine_running(service, search)
                code = service.stop()
                self.check(has_failed or code == 0, f"the exit code of Larder is {code}: {service.last_words()}")
            else:
                self.check(has_failed, f"Larder ended by itself with {service.process.returncode}: {service.last_words()}")
            examine_stopped(service, search)
        readers = Search({needle: kind for needle, kind in search.needles.items() if kind.startswith("reader")})
        for mock in self.mocks:
            for fault in dict.fromkeys(mock.faults):
                self.check(False, fault)
            heads = [f"{r.method} {r.target}\n{r.fields}\n".encode() + r.body for r in list(mock.requests)]
            readers.text(f"requests at {type(mock).__name__}", b"\n".join(heads))
            mock.close()
        for found in dict.fromkeys(search.found + readers.found):
            self.check(False, f"LEAK: {found}")
        self.places = set(search.places) | set(readers.places)
        for process in self.processes:
            if process.is_running:
                process.stop()

    def keep_logs(self, directory):
        """Copies the logs of a failed scenario."""
        directory.mkdir(parents=True, exist_ok=True)
        kept = []
        for number, service in enumerate(self.services):
            if service.log.exists():
                kept.append(directory / f"{self.name}-{number}.log")
                shutil.copy(service.log, kept[-1])
                shutil.copy(service.file, kept[-1].with_suffix(".json"))
        return kept

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)


def quoted(path):
    """A path as a client sends it: all but unreserved characters and slashes are encoded."""
    return urllib.parse.quote(path, safe="/-._~")


def sha256(data):
    return hashlib.sha256(data).hexdigest()
