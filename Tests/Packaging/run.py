#!/usr/bin/env python3
"""Checks the files of an installation, the protocol of service managers and `larder doctor`.

    run.py --larder .build/debug/larder
    run.py --larder .build/debug/larder --only unit,doctor

Checks whose tools (man, zsh, fish, systemd-analyze) are missing are skipped.
"""

import contextlib
import ctypes.util
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from harness import checks  # noqa: E402
from harness.process import STARTED, Process, free_port, origin  # noqa: E402
import restarts as restarting  # noqa: E402
import sockets as inherited  # noqa: E402
from installation import Stage  # noqa: E402
from sandbox import NOBODY  # noqa: E402

CASES = []


def case(function):
    CASES.append(function)
    return function


def has(*tools):
    return all(map(shutil.which, tools))


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, **options)


@case
def manuals(stage):
    """Each command has a man page that groff formats without a warning, with the options of its help."""
    pages = {path.stem: path for path in (stage.tree / "usr/share/man/man1").iterdir()}
    for words in stage.commands():
        name = "-".join(["larder", *words])
        stage.check(name in pages, f"the man page {name}")
        if name not in pages or not has("groff"):
            continue
        page = run("groff", "-man", "-Tutf8", "-ww", "-P-cbou", pages[name])
        stage.check(page.returncode == 0 and not page.stderr, f"groff of {name}", page.stderr)
        text = re.sub(r"[‐−]", "-", page.stdout)
        for option in stage.options(words):
            stage.check(option in text, f"{option} in {name}")
    if has("man"):
        page = run("man", "-l", pages["larder-jobs"], env={**os.environ, "MANPAGER": "cat", "LC_ALL": "C.UTF-8", "MANWIDTH": "100"})
        text = re.sub(".\b|\x1b\\[[0-9;]*m", "", page.stdout)
        stage.check(page.returncode == 0 and "larder-jobs - List, show" in re.sub(r"[‐−]", "-", text), "man -l", page.stdout + page.stderr)


@case
def completions(stage):
    """The shells accept the completions, and bash completes a command and an option."""
    share = stage.tree / "usr/share"
    script = share / "bash-completion/completions/larder"
    environment = {**os.environ, "PATH": f"{stage.tree / 'usr/bin'}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(stage.directory / "contexts")}
    run(stage.program, "context", "set", "production", "--url", "http://127.0.0.1:1", env=environment)
    for line, word in (
        ("larder heal", "healthcheck"), ("larder verify --rep", "--repair"), ("larder jo", "jobs"), ("larder jobs pa", "pause"),
        ("larder jobs list --stat", "--state"), ("larder jobs list --state fai", "failed"), ("larder stats --context pro", "production"),
    ):  # fmt: skip
        words = line.split()
        program = (
            f"shopt -s extglob; source {script}; COMP_WORDS=({' '.join(words)}) COMP_CWORD={len(words) - 1} "
            f"COMP_LINE='{line}' COMP_POINT={len(line)}; _larder larder {words[-1]} {words[-2]}; echo ${{COMPREPLY[@]}}"
        )
        shown = run("bash", "--norc", "-c", program, env=environment)
        stage.check(word in shown.stdout.split(), f"bash completes {line}", shown.stdout + shown.stderr)
    for shell, file in (("zsh", "zsh/vendor-completions/_larder"), ("fish", "fish/vendor_completions.d/larder.fish")):
        if has(shell):
            shown = run(shell, "-n", share / file)
            stage.check(shown.returncode == 0, f"{shell} parses the completions", shown.stderr)
    if has("fish"):
        shown = run("fish", "-c", f"source {share / 'fish/vendor_completions.d/larder.fish'}; complete -C 'larder heal'")
        stage.check("healthcheck" in shown.stdout, "fish completes larder heal", shown.stdout + shown.stderr)


@case
def unit(stage):
    """The unit is valid and hardened, and its configuration is accepted."""
    if has("systemd-analyze"):
        path = stage.directory / "larder.service"
        text = (stage.tree / "lib/systemd/system/larder.service").read_text()
        path.write_text(text.replace("/usr/bin/larder", str(stage.tree / "usr/bin/larder")))
        sockets = stage.directory / "larder.socket"
        sockets.write_text((stage.tree / "usr/share/doc/larder/examples/larder.socket").read_text())
        shown = run("systemd-analyze", "verify", "--man=no", path, sockets)
        stage.check(shown.returncode == 0 and not shown.stderr, "systemd-analyze verify", shown.stderr)
        shown = run("systemd-analyze", "security", "--offline=yes", path)
        level = re.search(r"exposure level for larder.service: ([\d.]+)", shown.stdout)
        stage.check(level and float(level[1]) <= 2.0, "systemd-analyze security is at most 2.0", shown.stdout[-200:])
    shown = run(stage.program, "config", "--config", stage.tree / "etc/larder/larder.yaml")
    stage.check(shown.returncode == 0 and "dataDirectory: /var/lib/larder" in shown.stdout, "the configuration", shown.stderr)


@case
def bill(stage):
    """The bill of materials names each package of Package.resolved with its version."""
    document = json.loads((stage.tree / "usr/share/doc/larder/sbom.cdx.json").read_text())
    named = {(each["name"], each.get("version")) for each in document["components"]}
    for pin in json.loads((ROOT / "Package.resolved").read_text())["pins"]:
        version = pin["state"].get("version") or pin["state"]["revision"]
        stage.check((pin["identity"], version) in named, f"{pin['identity']} {version} in the bill of materials")
    stage.check(any(name.startswith("libcurl.so") for name, _ in named), "libcurl in the bill of materials")


class Manager:
    """A service manager: it receives the states of a service on a datagram socket."""

    def __init__(self, stage, name, *, watchdog=None, data=None, listen=None, prefix=(), options=()):
        # A leading @ is an abstract name.
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.socket.settimeout(60)
        environment = {**os.environ, "NOTIFY_SOCKET": name}
        if watchdog:
            environment["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        data = data or tempfile.mkdtemp(dir=stage.directory)
        listen = listen or f"127.0.0.1:{free_port()}"
        self.log = open(pathlib.Path(data).with_suffix(".log"), "w+b")
        self.process = subprocess.Popen(
            [*prefix, stage.program, "serve", "--listen", listen, "--data-directory", data, *options],
            env=environment, stdout=self.log, stderr=self.log, start_new_session=True,
        )  # fmt: skip
        STARTED.append(self.process)

    def states(self, *names):
        """Receives states until one has any of the names; returns all fields that were received."""
        fields = {}
        while not fields.keys() & set(names):
            fields |= dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())
        return fields

    def close(self):
        self.process.kill()
        self.process.wait()
        self.socket.close()


@case
def notifications(stage):
    """The service tells its manager that it is ready, reloads, and stops; the watchdog is served by running event loops."""
    with contextlib.closing(Manager(stage, f"@larder-{os.getpid()}")) as manager:
        ready = manager.states("READY")
        stage.check(ready["READY"] == "1" and "http://127.0.0.1:" in ready["STATUS"], "READY with the address", ready)
        manager.process.send_signal(1)
        reloading = manager.states("RELOADING")
        stage.check(reloading["RELOADING"] == "1" and int(reloading["MONOTONIC_USEC"]) > 0, "RELOADING", reloading)
        stage.check(manager.states("READY")["READY"] == "1", "READY after a reload")
        manager.process.send_signal(15)
        stage.check(manager.states("STOPPING")["STOPPING"] == "1", "STOPPING")
        stage.check(manager.process.wait(60) == 0, "the end of the service")
    with contextlib.closing(Manager(stage, str(stage.directory / "manager"), watchdog=0.2)) as manager:
        manager.states("READY")
        for _ in range(3):
            stage.check(manager.states("WATCHDOG")["WATCHDOG"] == "1", "WATCHDOG")


def health(made):
    """The status of the health check over a socket that is connected already."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = made
    made.settimeout(60)
    connection.request("GET", "/health/ready")
    return connection.getresponse().status


def connected(listener):
    made = socket.socket(listener.family)
    made.connect(listener.getsockname())
    return made


@case
def activation(stage):
    """The service serves the sockets of its manager; connections that came before its start, or after its end, wait."""
    data, log = tempfile.mkdtemp(dir=stage.directory), stage.directory / "activation.log"
    taken = inherited.listener(("127.0.0.1", 0))
    words = [stage.program, "serve", "--data-directory", data, "--listen", "%s:%d" % taken.getsockname()]
    both = [inherited.listener(("127.0.0.1", 0)), inherited.listener(str(stage.directory / "larder.sock"))]
    for _ in range(2):
        early = [connected(each) for each in both]
        service = inherited.start(words, log, both, names=["web", "local"])
        for made in early:
            stage.check(health(made) == 200, "a connection from before the start", log.read_text())
        stage.check(health(connected(both[1])) == 200, "a connection to the Unix socket")
        service.terminate()
        stage.check(service.wait(60) == 0, "the end of the service", log.read_text())
    lines = [line for line in log.read_text().splitlines() if "serving" in line]
    stage.check(all("http://127.0.0.1:%d" % both[0].getsockname()[1] in line for line in lines), "the addresses in the log", lines)

    for made, problem in [
        (socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "is no stream socket"),
        (socket.socket(), "does not listen"),
        (open(log), "is not a socket"),
        (inherited.listener(("0.0.0.0", 0)), "is reachable from other machines"),
    ]:
        wrong = stage.directory / "wrong.log"
        wrong.write_text("")
        service = inherited.start(words, wrong, [both[0], made], names=["web", "wrong"])
        status, text = service.wait(60), wrong.read_text()
        stage.check(status == 78 and problem in text, problem, f"{status}: {text}")
        stage.check("0.0.0.0" in text or "descriptor 4 (wrong)" in text, f"the name of what {problem}", text)
    service = inherited.start(words, log, [both[0]], own=False)
    stage.check(service.wait(60) == 78 and "listen.address" in log.read_text().splitlines()[-1], "the sockets of another process", log)
    if has("systemd-socket-activate"):
        port = free_port()
        service = Process(["systemd-socket-activate", "-l", f"127.0.0.1:{port}", *words], stage.directory / "systemd.log", port)
        with service:
            with socket.create_connection(("127.0.0.1", port)) as made:
                stage.check(health(made) == 200, "systemd-socket-activate", service.text())


@case
def restarts(stage):
    """Restarts under readers: the next process starts while the former one finishes its responses."""
    restarting.restarts(stage, rounds=3 if stage.is_brief else 10)
    restarting.evictions(stage)
    restarting.signals(stage)


@case
def calls(stage):
    """The system call filter of the unit permits all calls of a start, a read through the cache, a reload and a stop."""
    if not has("systemd-analyze") or not ctypes.util.find_library("seccomp"):
        return
    port, address, data = free_port(), f"127.0.0.1:{free_port()}", tempfile.mkdtemp(dir=stage.directory)
    if os.geteuid() == 0:
        os.chown(data, NOBODY, NOBODY)
    files = Process([sys.executable, "-B", ROOT / "scripts/files.py", f"127.0.0.1:{port}"], stage.directory / "files.log", port)
    confined = [sys.executable, "-B", HERE / "sandbox.py", ROOT / "packaging/larder.service"]
    options = [f"--set={setting}" for setting in origin("media", f"http://127.0.0.1:{port}")]
    with files, contextlib.closing(
        Manager(stage, f"@larder-{os.getpid()}-calls", data=data, listen=address, prefix=confined, options=options)
    ) as service:
        service.states("READY")
        for _ in range(2):
            with urllib.request.urlopen(f"http://{address}/o/media/film.mp4", timeout=60) as response:
                stage.check(len(response.read()) == int(response.headers["Content-Length"]), "a read under the filter")
        service.process.send_signal(1)
        service.states("RELOADING")
        service.states("READY")
        service.process.send_signal(15)
        stage.check(service.process.wait(60) == 0, "the end under the filter", service.process.returncode)


class Doctor:
    """`larder doctor` with a store of its own."""

    def __init__(self, stage):
        self.program, self.store = stage.program, tempfile.mkdtemp(dir=stage.directory)
        self.address = f"127.0.0.1:{free_port()}"

    def ask(self, *options, **variables):
        words = [self.program, "doctor", "--json", "--data-directory", self.store, "--listen", self.address]
        shown = run(*words, *options, env={**os.environ, "LARDER_TOKEN": SECRET, **variables})
        report = json.loads(shown.stdout)
        findings = {(each["subject"], each["level"]): each["message"] for each in report["findings"]}
        return shown, findings


SECRET = "a-secret-that-is-never-printed"


@case
def doctor(stage):
    """Findings and exit statuses; no output contains a secret."""
    doctor = Doctor(stage)
    shown, findings = doctor.ask()
    stage.check(shown.returncode in (0, 1), "a valid configuration has no errors", shown.stdout)
    stage.check(("dataDirectory", "ok") in findings and ("listen.address", "ok") in findings, "the directory", findings)
    shown, findings = doctor.ask(LARDER_POLICY_CAPACTIY="1GiB")
    stage.check("LARDER_POLICY_CAPACTIY" in findings.get(("environment", "warning"), ""), "an unknown variable", findings)
    text = run(stage.program, "doctor", "--data-directory", doctor.store, "--listen", doctor.address)
    stage.check(text.returncode in (0, 1) and re.search(r"^0 errors, \d+ warnings?$", text.stdout, re.M), "the text", text.stdout)

    for options, subject, level in [
        (["--set", "policy.capacity=lots"], "policy.capacity", "error"),
        (["--set", "listen.tls.certificateFile=/nowhere", "--set", "listen.tls.keyFile=/nowhere"], "listen.tls.certificateFile", "error"),
        (["--set", "access.tokensFile=/nowhere"], "access.tokensFile", "error"),
        (["--data-directory", "/proc/larder"], "file system", "error"),
        (["--data-directory", "/usr"], "dataDirectory", "error"),
        (["--listen", "192.0.2.1:80"], "listen.address", "error"),
        (["--listen", f"0.0.0.0:{free_port()}"], "listen.tls.certificateFile", "warning"),
        (["--set", "policy.capacity=900TiB"], "policy.capacity", "warning"),
        (["--set", "access.readToken=short"], "access.readToken", "warning"),
    ]:  # fmt: skip
        shown, findings = doctor.ask(*options)
        stage.check((subject, level) in findings, f"{options} has {level} {subject}", shown.stdout)
        stage.check(shown.returncode == {"warning": 1, "error": 2}[level], f"the exit status with {options}", shown)
        stage.check(SECRET not in shown.stdout + shown.stderr, f"no secret with {options}", shown)

    with contextlib.closing(Manager(stage, f"@larder-{os.getpid()}-doctor", data=doctor.store, listen=doctor.address)) as service:
        service.states("READY")
        before = sorted(os.listdir(doctor.store))
        shown, findings = doctor.ask()
        stage.check("It is in use by process" in findings.get(("dataDirectory", "ok"), ""), "the user of the store", findings)
        stage.check("A running service" in findings.get(("listen.address", "ok"), ""), "the running service", findings)
        stage.check(sorted(os.listdir(doctor.store)) == before, "the store is unchanged")


@case
def upstreams(stage):
    """With --online, the upstreams are asked; the others are not."""
    doctor = Doctor(stage)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port, closed = silent.getsockname()[1], free_port()
        settings = [*origin("silent", f"http://127.0.0.1:{port}"), *origin("closed", f"http://127.0.0.1:{closed}")]
        options = [f"--set={setting}" for setting in settings]
        shown, findings = doctor.ask(*options)
        stage.check(not any("origins" in subject for subject, _ in findings), "no request without --online", findings)
        shown, findings = doctor.ask("--online", *options)
        for name in ("silent", "closed"):
            stage.check((f"origins.{name}", "error") in findings, f"the error of {name}", shown.stdout)
        stage.check(shown.returncode == 2, "the exit status", shown)


def main():
    parser = checks.arguments(__doc__, [function.__name__ for function in CASES])
    options = parser.parse_args()
    program, directory = pathlib.Path(checks.program_of(parser, options)), checks.directory("packaging")
    # The unprivileged user of the system call filter needs access.
    os.chmod(directory, 0o755)
    stage, results = Stage(program, directory, ROOT), checks.Checks("packaging")
    stage.is_brief = options.brief
    cases = {function.__name__: function for function in CASES}
    for name in checks.chosen(cases, options.only):
        with results.part(name, cases[name].__doc__) as part:
            stage.check = part.check
            cases[name](stage)
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
