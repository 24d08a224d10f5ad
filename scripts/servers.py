"""The processes that checks of a built Larder start: nginx and Larder, on ports the system chose."""

import atexit
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
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
            raise SystemExit(f"{process.args[0]} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens on {port}")


class Nginx:
    """nginx that has what `http` says between the braces of its `http` block; `{port}` in it is the port."""

    def __init__(self, directory, http, workers=1):
        self.directory, self.port = pathlib.Path(directory), free_port()
        configuration = self.directory / "nginx.conf"
        configuration.write_text(self.configuration(http.replace("{port}", str(self.port)), workers))
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen(
            [program, "-p", self.directory, "-c", configuration, "-e", self.directory / "nginx.log"]
        )
        atexit.register(self.process.kill)
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
        self.process.terminate()
        self.process.wait()


class MediaServer(Nginx):
    """nginx that serves the files of a directory and notes the range of each request."""

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
        """What was answered with bytes: the path, the Range header, how many bytes of the body were sent."""
        lines = (line.split() for line in self.log.read_text().splitlines())
        return [
            (path, header, int(sent))
            for method, path, header, status, sent in lines
            if method == "GET" and status in ("200", "206")
        ]

    def requested(self, length):
        """The runs asked for so far of files of that length."""
        return [ranges.run_of(header, length) for _, header, _ in self.answers()]

    def forget_requests(self):
        with open(self.log, "w"):
            pass


class Larder:
    """A larder process that has one origin, `media`, and what it takes up."""

    def __init__(self, program, directory, upstream_port, settings=(), descriptors=None, core=None):
        self.program, self.directory, self.descriptors = program, pathlib.Path(directory), descriptors
        #: The one it may run on; None: all.
        self.core = core
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
        """Answers how long it took to be ready; None where it did not come up."""
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
        """Starts the process, and waits for nothing."""
        self.dying.clear()
        flags = [part for setting in self.settings for part in ("--set", setting)]
        with open(self.directory / "larder.log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data-directory",
                    self.directory / "store", "--log-level", "warning", *flags,
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
        """The status and the body of one call of the API; `value` is sent as JSON."""
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
        """The exit code after SIGTERM."""
        self.note_peak(self.process)
        self.dying.set()
        self.process.terminate()
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "none within 60 s"

    def taken(self):
        """Resident memory and open descriptors of this moment."""
        pages = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE"), len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def note_peak(self, process):
        """Keeps the most memory that was ever resident, as the kernel counted it; False once the process is gone."""
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
