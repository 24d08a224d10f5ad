"""Processes for checks of a built Larder: nginx and Larder, on free ports."""

import atexit
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import ranges


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for_port(port, process):
    for _ in range(200):
        if process.poll() is not None:
            raise SystemExit(f"{process.args[0]} exited with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"no process listens on port {port}")


class Nginx:
    """An nginx process; `http` is the content of its `http` block, in which `{port}` is replaced by the port."""

    def __init__(self, directory, http, workers=1):
        self.directory, self.port = pathlib.Path(directory), free_port()
        configuration = self.directory / "nginx.conf"
        configuration.write_text(self.configuration(http.replace("{port}", str(self.port)), workers))
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        # Its workers must not hold the pipes of the caller open.
        self.process = subprocess.Popen(
            [program, "-p", self.directory, "-c", configuration, "-e", self.directory / "nginx.log"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        atexit.register(self.stop)
        wait_for_port(self.port, self.process)

    def configuration(self, http, workers):
        user = "user root;" if os.geteuid() == 0 else ""
        places = " ".join(
            f"{name}_temp_path {self.directory};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        return f"""
            {user} daemon off; worker_processes {workers}; worker_rlimit_nofile 16384; pid {self.directory}/nginx.pid;
            error_log {self.directory}/nginx.log;
            events {{ worker_connections 8192; }}
            http {{ {places} {http} }}
        """

    def stop(self):
        """Ends the master process, which ends its workers. A killed master would leave them behind."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


class MediaServer(Nginx):
    """nginx that serves the files of a directory and logs the range of each request."""

    def __init__(self, directory, media):
        self.log = pathlib.Path(directory) / "upstream.log"
        super().__init__(
            directory,
            f"""
                log_format ranges '$request_method $uri $http_range $status $body_bytes_sent';
                sendfile on; keepalive_requests 10000000;
                server {{
                    listen 127.0.0.1:{{port}} backlog=4096; root {media};
                    access_log {self.log} ranges; add_header Cache-Control max-age=86400;
                }}
            """,
        )

    def answers(self):
        """The responses 200 and 206: path, Range header and number of sent body bytes."""
        lines = (line.split() for line in self.log.read_text().splitlines())
        return [
            (path, header, int(sent))
            for method, path, header, status, sent in lines
            if method == "GET" and status in ("200", "206")
        ]

    def requested(self, length):
        """The requested ranges so far, for files of that length."""
        return [ranges.run_of(header, length) for _, header, _ in self.answers()]

    def forget_requests(self):
        with open(self.log, "w"):
            pass


class Larder:
    """A Larder process with the origin `media`, and its resource usage."""

    def __init__(self, program, directory, upstream_port, settings=(), descriptors=None, core=None):
        self.program, self.directory, self.descriptors = program, pathlib.Path(directory), descriptors
        #: The level of the log.
        self.level = "warning"
        #: The only processor core of the process; None: all.
        self.core = core
        self.is_tls = any(setting.startswith("listen.tls.") for setting in settings)
        self.settings = [
            f"origins.media.baseURL=http://127.0.0.1:{upstream_port}",
            "origins.media.allowPrivateAddresses=true",
            *settings,
        ]
        self.port = free_port()
        self.process = None
        self.peak = 0
        self.dying = threading.Event()

    def start(self):
        """Starts the process; returns the seconds until it was ready, or None if it was not ready within 30 s."""
        began = time.monotonic()
        self.launch()
        while time.monotonic() - began < 30:
            if self.process.poll() is not None:
                return None
            try:
                if self.ask("GET", "/health/ready")[0] == 200:
                    threading.Thread(target=self.sample, args=(self.process,), daemon=True).start()
                    return time.monotonic() - began
            except OSError:
                pass
            time.sleep(0.02)
        return None

    def launch(self):
        """Starts the process without waiting for readiness."""
        self.dying.clear()
        flags = [part for setting in self.settings for part in ("--set", setting)]
        with open(self.directory / "larder.log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data-directory",
                    self.directory / "store", "--log-level", self.level, *flags,
                ],
                stdout=log, stderr=log, preexec_fn=self.limit,
            )  # fmt: skip
        atexit.register(self.process.kill)

    def limit(self):
        if self.descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))
        if self.core is not None:
            os.sched_setaffinity(0, {self.core})

    def ask(self, method, path, value=None):
        """Sends an API request with `value` as JSON; returns status and body."""
        if self.is_tls:  # a certificate of the test; it is not verified
            context = ssl._create_unverified_context()
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            body = None if value is None else json.dumps(value)
            connection.request(method, path, body, {} if body is None else {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def kill(self):
        self.dying.set()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Sends SIGTERM; returns the exit code."""
        self.note_peak(self.process)
        self.dying.set()
        self.process.terminate()
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "none within 60 s"

    def taken(self):
        """The current resident memory in bytes and number of open descriptors."""
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE"), len(os.listdir(f"/proc/{self.process.pid}/fd"))

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
