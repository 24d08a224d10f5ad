"""The measured servers, each on one core, and the upstream behind them on the other."""

import collections
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from fillbench.originals import Original
from harness import certificates
from harness.process import Larder, Nginx

SERVER_CORE, LOAD_CORE = 0, (os.cpu_count() or 1) - 1


def pinned(process, core):
    subprocess.run(["taskset", "-a", "-p", "-c", str(core), str(process)], check=True, capture_output=True)


Listening = collections.namedtuple("Listening", "process port")


class Server:
    """A compared server; `prefix` precedes the upstream's path."""

    def __init__(self, name, process, prefix="", scheme="http"):
        self.name, self.process, self.prefix, self.scheme = name, process, prefix, scheme
        self.port, self.number = process.port, process.process.pid

    def url(self, path):
        return f"{self.scheme}://127.0.0.1:{self.port}{self.prefix}{path}"


class Stage(contextlib.ExitStack):
    """`with Stage(program, media, is_brief) as stage`: stops its processes and removes its files at the end."""

    SLICE = """
        access_log off; sendfile {sendfile}; tcp_nopush {nopush}; tcp_nodelay on; keepalive_requests 10000000;
        proxy_cache_path {directory}/cache levels=1:2 keys_zone=cache:64m max_size=30g inactive=1d use_temp_path=off;
        upstream media {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 10000000; }}
        server {{
            listen 127.0.0.1:{{port}} {tls} backlog=4096; {certificate}
            location / {{
                slice 1m; proxy_cache cache; proxy_cache_key $uri$is_args$args$slice_range;
                proxy_set_header Range $slice_range; proxy_cache_valid 200 206 1d; proxy_cache_lock on;
                proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://media;
            }}
        }}
    """
    STATIC = """
        access_log off; sendfile on; tcp_nopush {nopush}; tcp_nodelay on; keepalive_requests 10000000;
        open_file_cache max=1000;
        server {{ listen 127.0.0.1:{{port}} backlog=4096; root {media}; location /many/ {{ try_files /small =404; }} }}
    """

    def __init__(self, program, media, is_brief):
        super().__init__()
        self.program, self.media, self.is_brief, self.configurations = program, media, is_brief, {}

    def sizes(self, table):
        """The rows of a table by size; in a brief run that of 64 KiB alone."""
        return {name: row for name, row in table.items() if not self.is_brief or name == "64 KiB"}

    def apart(self):
        """A separate stage for one measurement."""
        return Stage(self.program, self.media, self.is_brief)

    def __enter__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="larder-bench."))
        self.callback(shutil.rmtree, self.directory, ignore_errors=True)
        return super().__enter__()

    def place(self, name):
        return pathlib.Path(tempfile.mkdtemp(prefix=f"{name}.", dir=self.directory))

    def original(self, name, length):
        original = Original(self.media, f"/{name}", length)
        if not original.file.exists():
            original.make_dense(name)
        return original

    def upstream(self):
        """Starts the upstream on the core of the load; its port."""
        nginx = self.start_nginx("upstream", self.STATIC.format(nopush="off", media=self.media), LOAD_CORE)
        return nginx.port

    def static(self, nopush="off"):
        return Server("nginx static", self.start_nginx("static", self.STATIC.format(nopush=nopush, media=self.media)))

    def slices(self, upstream, nopush="off", sendfile="on", tls=None):
        """`tls`: the files of certificate and key; None without TLS."""
        directory = self.place("slice")
        certificate = "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.3;".format(*tls) if tls else ""
        text = self.SLICE.format(
            nopush=nopush, sendfile=sendfile, directory=directory, upstream=upstream, tls="ssl" if tls else "",
            certificate=certificate,
        )  # fmt: skip
        nginx = self.start_nginx("slice", text, SERVER_CORE, directory)
        return Server("nginx slice", nginx, scheme="https" if tls else "http")

    def floor(self, file):
        """A minimal server (`floor.c`) with one file."""
        program = self.place("floor") / "floor"
        source = pathlib.Path(__file__).with_name("floor.c")
        subprocess.run([shutil.which("clang") or "cc", "-O2", "-o", program, source], check=True)
        process = subprocess.Popen([program, file], stdout=subprocess.PIPE, text=True)
        self.callback(process.kill)
        pinned(process.pid, SERVER_CORE)
        return Server("floor", Listening(process, int(process.stdout.readline())))

    def start_nginx(self, name, text, core=SERVER_CORE, directory=None):
        nginx = Nginx(directory or self.place(name), text)
        nginx.configuration = self.configurations[name] = text
        self.callback(nginx.stop)
        for member in [nginx.process.pid, *children(nginx.process.pid)]:
            pinned(member, core)
        return nginx

    def larder(self, upstream, *settings, place=None, core=SERVER_CORE):
        larder = self.larder_process(upstream, *settings, place=place, core=core)
        larder.start()
        self.callback(larder.stop)
        return Server("larder", larder, "/o/media", "https" if larder.tls else "http")

    def certificate(self):
        """The files of a new certificate for 127.0.0.1 and of its key."""
        return certificates.files("self-signed")

    def larder_process(self, upstream, *settings, place=None, core=SERVER_CORE):
        """A Larder that is not started yet."""
        settings = ("policy.capacity=none", "origins.media.freshness=1d", *settings)
        return Larder(self.program, place or self.place("larder"), upstream, settings, core=core)


def children(process):
    return [int(child) for child in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def fetch(url, core=LOAD_CORE):
    """Reads the whole response; bytes per second."""
    command = ["taskset", "-c", str(core), "curl", "--silent", "--fail", "--insecure", "--output", "/dev/null"]
    told = subprocess.run([*command, "--write-out", "%{speed_download}", url], capture_output=True, check=True)
    return float(told.stdout)
