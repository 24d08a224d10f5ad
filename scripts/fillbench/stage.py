"""Environment of one round: test files, upstreams, and the measured cache in front of them."""

import asyncio
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from harness import http, process

from .originals import Original
from .secure import SecureServer

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]


class ScriptedUpstream:
    """A process of `fillbench.upstream` with the given behaviour."""

    def __init__(self, root, **behaviour):
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-m", "fillbench.upstream", json.dumps({"root": str(root), **behaviour})],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=SCRIPTS, text=True,
            env={**os.environ, "PYTHONPATH": str(SCRIPTS.parent / "Tests")},
        )  # fmt: skip
        self.port = int(self.process.stdout.readline())

    def log(self):
        return http.send(self.port, "GET", "/-/log").json

    def requests(self):
        """The GET requests so far."""
        return [request for request in self.log()["requests"] if request["method"] == "GET"]

    def bytes_received(self):
        """Bytes that the clients' kernel has acknowledged, including response heads."""
        return self.log()["acked"]

    def bytes_sent(self):
        return sum(request["sent"] for request in self.requests())

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Cache:
    """The measured cache; `target` maps a path of the upstream to the request target of the cache."""

    def __init__(self, name, process, prefix):
        self.name, self.process, self.prefix, self.port = name, process, prefix, process.port

    def target(self, original, query=""):
        return self.prefix + original.path + query

    def stats(self):
        return self.ask("/v1/stats")

    def fills(self):
        """All active fills; None if the service does not have this call."""
        return self.process.items("/v1/fills")

    def ask(self, path, method="GET", value=None):
        status, body = self.process.ask(method, path, value)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {body[:300]}")
        return json.loads(body)

    @property
    def peak(self):
        return self.process.peak


class Stage(contextlib.ExitStack):
    """Context manager of a round: at its end all started processes are stopped and all files are deleted."""

    def __init__(self, program, media, brief, peer, round_number):
        super().__init__()
        self.program, self.media, self.brief, self.peer, self.round = program, media, brief, peer, round_number
        self.seed = round_number
        self.faults = []

    def __enter__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="larder-fills."))
        self.callback(self.clear)
        return super().__enter__()

    def clear(self):
        if self.faults:
            for heavy in [*self.directory.glob("larder-*/store"), *self.directory.glob("nginx-*/cache")]:
                shutil.rmtree(heavy, ignore_errors=True)
            self.faults.append(f"the logs are in {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    def size(self, full, brief):
        """Selects the size for a full or a brief run."""
        return brief if self.brief else full

    def original(self, name, length, dense=None, step=1 << 20):
        """A test file at the upstream, created once for all rounds. It is sparse after `dense` bytes; None: dense."""
        original = Original(self.media, f"/{name}-{length}", length)
        if not original.file.exists():
            if dense is None:
                original.make_dense(name)
            else:
                original.make_sparse(name, dense, step)
        return original

    def place(self, name):
        """Creates a new directory for a process."""
        place = next(p for p in (self.directory / f"{name}-{n}" for n in itertools.count(1)) if not p.exists())
        place.mkdir()
        return place

    def media_server(self):
        server = process.MediaServer(self.place("upstream"), self.media)
        self.callback(server.stop)
        return server

    def secure_server(self, **behaviour):
        server = SecureServer(self.place("upstream"), self.media, **behaviour)
        self.callback(server.stop)
        return server

    def scripted(self, **behaviour):
        upstream = ScriptedUpstream(self.media, **behaviour)
        self.callback(upstream.stop)
        return upstream

    def cache(self, upstream, *settings, descriptors=None):
        """Starts the measured cache in front of the upstream; `settings` apply to Larder only."""
        if self.peer == "nginx":
            return self.nginx(upstream)
        return self.larder(upstream, *settings, descriptors=descriptors)

    def larder(self, upstream, *settings, descriptors=None):
        settings = (
            "policy.capacity=none", "origins.media.freshness=1d",
            *getattr(upstream, "settings", ()), *settings,
        )  # fmt: skip
        place = self.place("larder")
        larder = process.Larder(self.program, place, upstream.port, settings, descriptors=descriptors).start()
        self.callback(self.end, larder)
        return Cache("larder", larder, "/o/media")

    def end(self, larder):
        if larder.dying.is_set():
            return
        code = larder.stop()
        if code != 0:
            self.faults.append(f"larder exited with {code}")

    def nginx(self, upstream):
        directory = self.place("nginx")
        nginx = process.Nginx(
            directory,
            f"""
                access_log off; keepalive_requests 10000000;
                proxy_cache_path {directory}/cache levels=1:2 keys_zone=cache:64m max_size=30g use_temp_path=off;
                upstream media {{ server 127.0.0.1:{upstream.port}; keepalive 64; keepalive_requests 10000000; }}
                server {{
                    listen 127.0.0.1:{{port}} backlog=4096; tcp_nopush off;
                    location / {{
                        slice 1m; proxy_cache cache; proxy_cache_key $uri$is_args$args$slice_range;
                        proxy_set_header Range $slice_range; proxy_cache_valid 200 206 1d; proxy_cache_lock on;
                        proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://media;
                    }}
                }}
            """,
            workers=os.cpu_count(),
        )
        nginx.peak = None
        self.callback(nginx.stop)
        return Cache("nginx", nginx, "")

    async def play(self, readers):
        """Runs the coroutines concurrently and records their exceptions as faults."""
        for outcome in await asyncio.gather(*readers, return_exceptions=True):
            if isinstance(outcome, BaseException):
                self.faults.append(f"{type(outcome).__name__}: {outcome}")

    @staticmethod
    def settle(counted, still=0.5, limit=30):
        """Waits until the result of `counted` is unchanged for `still` seconds, so that running windows have ended."""
        deadline, changed_at, before = time.monotonic() + limit, time.monotonic(), counted()
        while time.monotonic() < deadline and time.monotonic() - changed_at < still:
            time.sleep(0.1)
            now = counted()
            if now != before:
                before, changed_at = now, time.monotonic()
        return before
