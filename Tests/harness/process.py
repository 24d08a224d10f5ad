"""Processes of the test programs: Larder, nginx and other servers, each with a log file, on free ports of loopback."""

import atexit
import contextlib
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

from . import http, ranges

#: Seconds until a process answers, and until it ends after SIGTERM.
LIMIT = 60
STARTED = []
#: Sockets whose names reserve ports among all test programs.
RESERVED = []


class NotStarted(Exception):
    """A process that did not become ready; the text has the end of its log."""


def free_port():
    """A port for a server. No other call in any process gets it while this one runs, and no client's connection has it."""
    while port := next_port():
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0larder-test-port-{port}")
            with socket.socket() as listener:
                listener.bind(("", port))
        except OSError:
            mark.close()
            continue
        RESERVED.append(mark)
        return port
    raise NotStarted("No port outside net.ipv4.ip_local_port_range is free.")


def server_ports():
    """Ports that the system does not choose by itself, each once, from a random one on."""
    low, high = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = [port for port in range(10_000, 65_536) if not low <= port <= high]
    first = random.randrange(len(ports)) if ports else 0
    yield from ports[first:] + ports[:first]


SERVER_PORTS, PORTS_LOCK = server_ports(), threading.Lock()


def next_port():
    with PORTS_LOCK:
        return next(SERVER_PORTS, None)


def is_open(port, host="127.0.0.1"):
    """Whether a process listens on this port, of loopback by default."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


def wait_until(condition, seconds=LIMIT, pause=0.02):
    """Evaluates a condition until it is true or the time is over; returns its last value."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(pause)
    return value


def found(name):
    """The path of a program, also in /usr/sbin; None without it."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def clean_environment(**variables):
    """The environment without settings of Larder and of the libraries that it uses."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LARDER_", "AWS_", "OTEL_"))}
    return {**kept, **variables}


def at_end(function, *arguments):
    """Calls a function at the end of the program, after all processes have ended."""
    atexit.unregister(end_all)
    atexit.register(function, *arguments)
    atexit.register(end_all)


@atexit.register
def end_all():
    """Kills all processes that still run, with their children."""
    for process in STARTED:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def exit_at_signal(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # another one would interrupt the functions of atexit
    sys.exit(143)


# Without a handler the functions of atexit are not called.
signal.signal(signal.SIGTERM, exit_at_signal)


class Process:
    """A program with its output in a log file, in a session of its own. It ends with the test program."""

    #: The address of the program for the test.
    host = "127.0.0.1"

    def __init__(self, command, log, port=None, environment=None, directory=None, name=None):
        self.words, self.log, self.port = command, pathlib.Path(log), port
        self.environment, self.directory, self.name = environment, directory, name or pathlib.Path(str(command[0])).name
        self.process = None
        #: Set before the test ends the process: a broken connection is no fault then.
        self.dying = threading.Event()

    @property
    def command(self):
        return self.words

    def launch(self):
        """Starts the process without waiting for readiness."""
        self.dying.clear()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in self.command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment, cwd=self.directory, start_new_session=True, preexec_fn=self.limit,
            )  # fmt: skip
        STARTED.append(self.process)
        return self

    def limit(self):
        """Sets limits in the new process."""

    def start(self, seconds=LIMIT):
        """Starts the process and waits until it is ready."""
        self.launch()
        if not wait_until(lambda: not self.is_running or self.is_ready(), seconds) or not self.is_running:
            ended = f"ended with {self.process.returncode}" if not self.is_running else f"is not ready after {seconds} s"
            raise NotStarted(f"{self.name} {ended}; the end of its log:\n{self.last_words()}")
        return self

    def is_ready(self):
        return self.port is None or is_open(self.port, self.host)

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def wait(self, seconds=LIMIT):
        return self.process.wait(seconds)

    def kill(self):
        """Sends SIGKILL; the processes that it has started remain."""
        self.dying.set()
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Sends SIGTERM; returns the exit code."""
        self.dying.set()
        self.process.terminate()
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return f"none within {LIMIT} s"

    def text(self):
        """The log."""
        return self.log.read_text(errors="replace")

    def last_words(self, count=2000):
        return self.text()[-count:]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.is_running:
            self.stop()


NGINX = """
    {user} daemon off; worker_processes {workers}; worker_rlimit_nofile 16384; pid {place}/nginx.pid;
    error_log {place}/nginx.log;
    events {{ worker_connections 8192; }}
    http {{
        client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place}; uwsgi_temp_path {place};
        scgi_temp_path {place};
        {http}
    }}
"""


class Nginx(Process):
    """nginx; `http` is the content of its `http` block, in which `{port}` is replaced by the port. `prefix` precedes its
    command."""

    def __init__(self, directory, http, workers=1, port=None, prefix=(), is_started=True):
        place, port = pathlib.Path(directory), port or free_port()
        place.mkdir(exist_ok=True)
        configuration = place / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        configuration.write_text(
            NGINX.format(user=user, workers=workers, place=place, http=http.replace("{port}", str(port)))
        )
        command = [*prefix, found("nginx") or "nginx", "-p", place, "-c", configuration, "-e", place / "nginx.log"]
        super().__init__(command, place / "nginx.out", port, name="nginx")
        self.place = place
        if is_started:
            self.start()

    def last_words(self, count=2000):
        log = self.place / "nginx.log"
        return log.read_text(errors="replace")[-count:] if log.exists() else self.text()


class MediaServer(Nginx):
    """nginx that serves the files of a directory and logs the range of each request."""

    def __init__(self, directory, media):
        self.ranges = pathlib.Path(directory) / "upstream.log"
        super().__init__(
            directory,
            f"""
                log_format ranges '$request_method $uri $http_range $status $body_bytes_sent';
                sendfile on; keepalive_requests 10000000;
                server {{
                    listen 127.0.0.1:{{port}} backlog=4096; root {media};
                    access_log {self.ranges} ranges; add_header Cache-Control max-age=86400;
                }}
            """,
        )

    def answers(self):
        """The responses 200 and 206: path, Range header and number of sent body bytes."""
        lines = (line.split() for line in self.ranges.read_text().splitlines())
        return [
            (path, header, int(sent))
            for method, path, header, status, sent in lines
            if method == "GET" and status in ("200", "206")
        ]

    def requested(self, length):
        """The requested ranges so far, for files of that length."""
        return [ranges.run_of(header, length) for _, header, _ in self.answers()]

    def forget_requests(self):
        with open(self.ranges, "w"):
            pass


def origin(name, url, **settings):
    """The settings of an origin on loopback; underscores in names stand for dots."""
    values = {"baseURL": url, "allowPrivateAddresses": "true", **settings}
    return [f"origins.{name}.{key.replace('_', '.')}={value}" for key, value in values.items()]


class Larder(Process):
    """A Larder process with the store `directory / "store"` and, with an `upstream` port, the origin `media`."""

    def __init__(
        self, program, directory, upstream=None, settings=(), *, options=(), address=None, environment=None, prefix=(),
        level="warning", token=None, tls=None, descriptors=None, core=None,
    ):  # fmt: skip
        place, self.program = pathlib.Path(directory), str(pathlib.Path(program).resolve())
        port = None if address else free_port()
        variables = {"LARDER_TOKEN": token} if token else {}
        # No load balancer must learn of a stop first.
        variables = {**clean_environment(LARDER_LIMITS_SHUTDOWN_DELAY="1ms", **variables), **(environment or {})}
        super().__init__([program], place / "larder.log", port, variables, name="Larder")
        self.place, self.store, self.token, self.tls = place, place / "store", token, tls
        self.address, self.prefix, self.options = address or f"127.0.0.1:{port}", prefix, options
        #: The level of the log; the limit of open files, and the only processor core of the process (None: all).
        self.level, self.descriptors, self.core = level, descriptors, core
        self.settings = [*(origin("media", f"http://127.0.0.1:{upstream}") if upstream else []), *settings]
        if self.tls is None and any(setting.startswith("listen.tls.") for setting in self.settings):
            self.tls = http.unverified()
        self.peak = 0

    @property
    def command(self):
        flags = [word for setting in self.settings for word in ("--set", setting)]
        return [
            *self.prefix, self.program, "serve", "--listen", self.address, "--data-directory", self.store, "--log-level",
            self.level, *self.options, *flags,
        ]  # fmt: skip

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def limit(self):
        if self.descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))
        if self.core is not None:
            os.sched_setaffinity(0, {self.core})

    def start(self, seconds=LIMIT):
        super().start(seconds)
        threading.Thread(target=self.sample, args=(self.process,), daemon=True).start()
        return self

    def is_ready(self):
        try:
            return self.is_running and self.send("GET", "/health/ready").status == 200
        except (OSError, http.ERROR):
            return False

    def refusal(self):
        """Exit code and output of a start that must fail."""
        done = subprocess.run(
            [str(word) for word in self.command], env=self.environment, capture_output=True, text=True, timeout=LIMIT
        )
        return done.returncode, done.stdout + done.stderr

    # Requests

    def send(self, method, target, fields=None, body=None, **options):
        """Sends a request as it is; returns its `Reply`."""
        return http.send(self.port, method, target, fields, body, **{"tls": self.tls, "host": self.host, **options})

    def call(self, method, path, value=None, fields=None, token=None):
        """Sends `value` as JSON, with the token of the service or another one; returns its `Reply`."""
        sent = dict(fields or {})
        if token or self.token:
            sent.setdefault("Authorization", f"Bearer {token or self.token}")
        if value is not None:
            sent.setdefault("Content-Type", "application/json")
        return self.send(method, path, sent, None if value is None else http.encoded(value))

    def ask(self, method, path, value=None, fields=None):
        """Sends `value` as JSON; returns status and body."""
        reply = self.call(method, path, value, fields)
        return reply.status, reply.body

    def get(self, path):
        """The JSON document at a path of the API."""
        return self.call("GET", path).json

    def items(self, path):
        """All items of a list, in pages of 1000; None if the service refuses the request."""
        items, cursor = [], ""
        while cursor is not None:
            reply = self.call("GET", f"{path}?limit=1000{cursor and f'&cursor={cursor}'}")
            if reply.status != 200:
                return None
            items, cursor = items + reply.json["items"], reply.json["nextCursor"]
        return items

    # The store

    @contextlib.contextmanager
    def catalog(self):
        """The catalog of a stopped service, or for reading."""
        with contextlib.closing(sqlite3.connect(self.store / "catalog.sqlite", timeout=30)) as db:
            with db:
                yield db

    def rows(self, query, *values):
        """The rows of the catalog that a query finds."""
        with self.catalog() as db:
            return db.execute(query, values).fetchall()

    def job(self, *items, **members):
        """Creates a job; its identifier."""
        reply = self.call("POST", "/v1/jobs", {"items": items, **members})
        if reply.status != 202:
            raise RuntimeError(f"the job was refused: {reply}")
        return reply.json["jobId"]

    def finished(self, identifier, seconds=120):
        """Waits for the end of a job; its document."""
        wait_until(lambda: self.get(f"/v1/jobs/{identifier}")["state"] not in ("queued", "running"), seconds)
        return self.get(f"/v1/jobs/{identifier}")

    # State

    def taken(self):
        """The current resident memory in bytes and number of open descriptors."""
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE"), len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self):
        self.note_peak(self.process)
        return super().stop()

    def note_peak(self, process):
        """Updates `peak` from the kernel's peak of resident memory (VmHWM); False if the process has ended."""
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return False
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                self.peak = max(self.peak, int(line.split()[1]) << 10)
        return True

    def sample(self, process):
        while process.poll() is None and self.note_peak(process):
            time.sleep(0.05)
