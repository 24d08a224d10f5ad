#!/usr/bin/env python3
"""Runs each command of the client against a real service and a real upstream, in pipes and on pseudo-terminals.

    run.py --larder .build/debug/larder
    run.py --larder .build/debug/larder --only purge,watch
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import tasks as operating  # noqa: E402
from console import Client  # noqa: E402
from harness import certificates, checks, venv  # noqa: E402
from harness.process import Larder, MediaServer, free_port, origin, wait_until  # noqa: E402

MIB = 1 << 20
#: File and size. The origin `slow` sends SLOW_RATE bytes per second.
FILES = {"film.mp4": 8 * MIB, "song.mp3": MIB, "a b.mp4": 4096}
SLOW_RATE = 2 * MIB
#: The exit status of usage errors of all commands.
USAGE = 64
ALTERNATE_SCREEN, USUAL_SCREEN, SHOWN_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"

CASES = []


def case(function):
    CASES.append(function)
    return function


class Stage:
    """The upstream, the service and the client of all cases, and the checks of the current one."""

    def __init__(self, program):
        self.program, self.directory = program, checks.directory("client")
        (self.directory / "files").mkdir()
        for name, size in FILES.items():
            (self.directory / "files" / name).write_bytes(os.urandom(size))
        self.upstream = MediaServer(self.directory / "nginx", self.directory / "files")
        self.service = self.start("larder", *origin("slow", f"{self.upstream_url}/", maxBytesPerSecond=SLOW_RATE))
        self.url = f"http://127.0.0.1:{self.service.port}"
        self.client = Client(program, self.url)
        self.check = self.equal = None

    @property
    def upstream_url(self):
        return f"http://127.0.0.1:{self.upstream.port}"

    def use(self, part):
        """The checks of the next case belong to this part."""
        self.check, self.equal = part.check, part.equal

    def start(self, folder, *settings):
        place = self.directory / folder
        place.mkdir(exist_ok=True)
        return Larder(self.program, place, self.upstream.port, settings).start()

    def api(self, method, path, value=None):
        return self.service.call(method, path, value).json

    def purge_all(self):
        for name in ("media", "slow"):
            self.service.ask("POST", "/v1/purges", {"origin": name})


class Listening(Larder):
    """A service with an address of its own, which `larder healthcheck` asks."""

    def __init__(self, stage, folder, address, *settings):
        place = stage.directory / folder
        place.mkdir(exist_ok=True)
        super().__init__(stage.program, place, stage.upstream.port, settings, address=address, level="info")
        self.log.unlink(missing_ok=True)
        self.launch()

    def is_up(self):
        """Waits until the service is ready; False if it ends."""
        return wait_until(lambda: not self.is_running or self.is_ready()) and self.is_running

    def is_ready(self):
        command = [self.program, "healthcheck", "--listen", self.address]
        return subprocess.run(command, capture_output=True, timeout=60).returncode == 0


@case
def usage(stage):
    """Usage errors of all commands have the exit status 64; with --json they are JSON."""
    for line, part in [
        ("prefetch", "Name the assets"), ("purge", "Select the assets"), ("assets --limit 0", "at least 1"),
        ("jobs --state broken", "--state"), ("stats --url ftp://x", "is not a URL"), ("stats --token x", "--token"),
        ("serve --capcity 1GiB", "--capacity"), ("verify --nothing", "--nothing"), ("export", "asset"), ("version x", "x"),
        ("monitoring colours", "colours"), ("token new", "--id"), ("context set", "name"), ("doctor x", "x"),
        ("stats -c one --url http://127.0.0.1:1", "exclude each other"),
    ]:  # fmt: skip
        status, output, errors = stage.client.run(*line.split())
        stage.check(status == USAGE and part in errors and not output, f"{line}: {status}", errors)
        for option in (["--json"], ["-o", "json"]):
            status, output, errors = stage.client.run(*line.split(), *option)
            error = json.loads(errors)["error"] if errors.startswith("{") else {}
            stage.check(status == USAGE and error.get("code") == "usage" and not output, f"{line} {option}: {status}", errors)
    both = Client(stage.program, stage.url, LARDER_TOKEN="a", LARDER_TOKEN_FILE="/nowhere")
    stage.equal(both.run("stats")[0], USAGE, "two tokens")
    for name in ("stats", "assets", "jobs", "prefetch", "purge"):
        status, output, _ = stage.client.run(name, "--help")
        stage.check(status == 0 and f"larder {name}" in output and "--url" in output or name == "jobs", f"help of {name}")


@case
def suggestions(stage):
    """Commands and names that do not exist are compared with those that do."""
    identifier = stage.api("POST", "/v1/jobs", {"items": [{"origin": "media", "path": "song.mp3"}]})["jobId"]
    wrong = identifier[:-1] + ("0" if identifier[-1] != "0" else "1")
    for line, meant, expected in [
        ("jbos", "jobs", USAGE), ("stast --watch", "stats", USAGE), ("jobs cancle x", "cancel", USAGE), ("token lsit", "list", USAGE),
        ("jobs pasue", "pause", 1), (f"jobs {wrong}", identifier, 1), (f"jobs cancel {wrong}", identifier, 1),
        ("origins medai", "media", 1), ("origins delete medai", "media", 1), ("explain /o/medai/a.mp4", "media", 1),
        ("list medai", "media", 1), ("prefetch --origin medai --path a.mp4", "media", 1),
        ("assets --origin medai", "media", 0), ("requests --origin medai", "media", 0),
    ]:  # fmt: skip
        status, output, errors = stage.client.run(*line.split())
        stage.check(status == expected and f"Did you mean {meant}?" in errors, f"{line}: {status}", output + errors)
    error = json.loads(stage.client.run("origins", "medai", "--json")[2])["error"]
    stage.equal((error["code"], error["remedy"]), ("notFound", "Did you mean media?"), "the error as JSON")
    for line in ("jobs xyzxyz", "xyzxyz"):
        stage.check("Did you mean" not in stage.client.run(*line.split())[2], f"a suggestion for {line}")


#: The only meaning of each short flag, and a command that has it.
SHORT = {
    "c": ("context", "assets"), "o": ("output", "stats"), "n": ("limit", "jobs list"), "q": ("quiet", "assets"),
    "l": ("label", "jobs list"), "f": ("from-file", "prefetch"), "r": ("recursive", "prefetch"), "w": ("watch", "stats"),
    "y": ("yes", "purge"), "d": ("depth", "du"), "h": ("help", "stats"),
}  # fmt: skip


@case
def short_flags(stage):
    """A short flag has one meaning in all commands, and stands in the table of the documentation."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text()
    for flag, (option, _) in SHORT.items():
        stage.check(re.search(rf"^\| `-{flag}` \| `--{option}` \|", page, re.M), f"-{flag} in docs/client.md")

    def walk(command, words):
        for argument in command.get("arguments", []):
            names = {kind: [name["name"] for name in argument.get("names", []) if name["kind"] == kind] for kind in ("short", "long")}
            for short in names["short"]:
                is_known = names["long"] and SHORT.get(short, [""])[0] in names["long"] or short == "v" and not words
                stage.check(is_known, f"-{short} of larder {' '.join(words)}", names)
            if any(option in names["long"] for option, _ in SHORT.values()):
                stage.check(names["short"], f"a short flag for {names['long']} of larder {' '.join(words)}")
        for each in command.get("subcommands", []):
            if each["commandName"] != "help":
                walk(each, [*words, each["commandName"]])

    walk(json.loads(stage.client.run("--experimental-dump-help")[1])["command"], [])
    stage.equal(stage.client.run("-v"), stage.client.run("--version"), "-v")
    stage.service.ask("GET", "/o/media/song.mp3")
    names = stage.client.run("assets", "-n", "1", "-q")[1]
    stage.check(re.fullmatch(r"[0-9a-f]{32}\n", names), "assets -n 1 -q", names)
    stage.equal(stage.client.run("origins", "-q")[1].split(), ["media", "slow"], "origins -q")
    stage.check(json.loads(stage.client.run("stats", "-o", "json")[1])["requests"], "stats -o json")


@case
def contexts(stage):
    """A context names the service and its token; options and variables come first; the file is private."""
    home = stage.directory / "configuration"
    service = stage.start("context", "access.token=admin-secret", "access.readToken=read-secret")
    url, file = f"http://127.0.0.1:{service.port}", home / "larder" / "contexts.json"
    (stage.directory / "context-token").write_text("admin-secret\n")

    def run(*words, given=None, **variables):
        return Client(stage.program, "", XDG_CONFIG_HOME=str(home), **variables).run(*words, given=given)

    def reaches(*words, **variables):
        """The service that the command calls: the named one, the one of the other cases, or an error."""
        status, output, errors = run("origins", *words, "-q", **variables)
        return {"media\n": "named", "media\nslow\n": "other"}.get(output, (status, errors))

    stage.equal(run("context"), (0, "There are no contexts.\n", ""), "no contexts")
    stage.equal(run("context", "set", "prod")[0], USAGE, "a context without a URL")
    stage.equal(run("context", "set", "prod", "--url", url, "--token-file", "/nowhere")[0], USAGE, "a missing token file")
    stage.equal(run("context", "set", "prod", "--url", url, "--token-file", "-", given="read-secret\n")[0], 0, "a stored token")
    stage.equal(run("context", "set", "other", "--url", stage.url)[0], 0, "a context without a token")
    stage.equal((oct(file.stat().st_mode & 0o777), oct(file.parent.stat().st_mode & 0o777)), ("0o600", "0o700"), "the modes")
    stage.equal(reaches("--context", "prod"), "named", "--context")
    stage.equal(reaches("-c", "other"), "other", "-c")
    stage.equal(reaches(LARDER_CONTEXT="prod"), "named", "LARDER_CONTEXT")
    stage.equal(reaches("--url", stage.url, LARDER_CONTEXT="prod"), "other", "--url before LARDER_CONTEXT")
    stage.equal(reaches("-c", "prod", LARDER_URL=stage.url), "named", "--context before LARDER_URL")
    stage.equal(reaches("-c", "prod", LARDER_TOKEN="wrong"), "named", "the token of --context before LARDER_TOKEN")
    status, errors = reaches(LARDER_CONTEXT="prod", LARDER_TOKEN="wrong")
    stage.check(status == 1 and "code unauthorized" in errors, "LARDER_TOKEN before the token of the context", errors)
    status, errors = reaches(LARDER_CONTEXT="prod", LARDER_URL=stage.url)
    stage.check(status == USAGE and "remove one of them" in errors, "LARDER_URL and LARDER_CONTEXT", errors)
    status, errors = reaches("-c", "prd")
    stage.check(status == USAGE and "Did you mean prod?" in errors, "an unknown context", errors)
    stage.check(run("context", "use", "prod")[0] == 0 and reaches() == "named", "the selected context")
    stage.equal(reaches(LARDER_URL=stage.url), "other", "LARDER_URL before the selected context")
    status, output, errors = run("context", "list")
    stage.check(re.search(rf"^\*  prod +{url} +stored +system$", output, re.M), "the list", output + errors)
    shown = [run("context", *words) for words in ([], ["-o", "json"], ["list", "-q"])]
    stage.check(not any("secret" in text for each in shown for text in each[1:]), "a secret in the output", shown)
    stage.equal(json.loads(shown[1][1])["items"][1]["hasToken"], True, "the list as JSON")
    stage.equal(shown[2][1], "other\nprod\n", "the names")
    stage.equal(run("context", "set", "prod", "--token-file", str(stage.directory / "context-token"))[0], 0, "a token file")
    stage.check("secret" not in file.read_text() and run("token", "list")[0] == 0, "the token of the file", file.read_text())
    stage.check(run("context", "remove", "prod")[0] == 0 and "prod" not in file.read_text(), "a removed context")
    for mode in (0o644, 0o660, 0o602):
        file.chmod(mode)
        status, _, errors = run("stats")
        stage.check(status == USAGE and "chmod 600" in errors, f"a file of the mode {mode:o}", errors)
    file.chmod(0o600)
    file.write_text('{"contexts": [{"token": "admin-secret"')
    status, output, errors = run("context", "--json")
    stage.check(status == USAGE and "secret" not in output + errors and json.loads(errors), "an invalid file", errors)
    stage.equal(reaches("--url", stage.url), "other", "--url with an invalid file")
    service.stop()


@case
def unreachable(stage):
    """A refused connection names the URL and the start of the service; another server is recognised."""
    url = f"http://127.0.0.1:{free_port()}"
    for line in ("stats", "stats --watch", "assets", "jobs", "prefetch http://a/x", "purge --tag x --yes"):
        status, output, errors = Client(stage.program, url).run(*line.split())
        named = f"No service listens on {url}" in errors and "`larder serve`" in errors
        stage.check(status == 1 and named and not output, f"{line} without a service: {status}", errors)
    status, _, errors = stage.client.run("stats", "--url", f"http://127.0.0.1:{stage.upstream.port}")
    stage.check(status == 1 and "another server may listen there" in errors, f"nginx as the service: {status}", errors)
    status, _, errors = stage.client.run("stats", "--url", "http://larder.invalid")
    stage.check(status == 1 and "could not be resolved" in errors, "an unknown host", errors)


@case
def tokens(stage):
    """The token is sent from a variable or a file."""
    service = stage.start("secret", "access.token=admin-secret", "access.readToken=read-secret")
    url, file = f"http://127.0.0.1:{service.port}", stage.directory / "token"
    file.write_text("admin-secret\n")
    status, _, errors = Client(stage.program, url).run("stats")
    stage.check(status == 1 and "code unauthorized" in errors and "LARDER_TOKEN" in errors, "no token", errors)
    status, _, errors = Client(stage.program, url, LARDER_TOKEN="read-secret").run("purge", "--tag", "x", "--yes")
    named = "The token read (scope read) does not permit POST /v1/purges" in errors
    stage.check(status == 1 and "code tokenScope" in errors and named, "the read token", errors)
    for variables in ({"LARDER_TOKEN": "read-secret"}, {"LARDER_TOKEN_FILE": str(file)}):
        status, _, errors = Client(stage.program, url, **variables).run("stats")
        stage.check(status == 0, f"{variables}: {status}", errors)
    service.stop()


@case
def limited_tokens(stage):
    """A command that the token does not permit says so; the list of assets uses the limits of the token."""
    tokens = [
        {"id": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "scope": scope, "prefixes": prefixes}
        for name, scope, prefixes in [
            ("reader", "read", ["/o/media/a%20"]), ("writer", "write", ["/o/media/song"]),
            ("both", "read", ["/o/media/a%20", "/o/media/song"]),
        ]
    ] + [{"id": "boss", "sha256": hashlib.sha256(b"boss").hexdigest(), "scope": "admin"}]
    file = stage.directory / "tokens.json"
    file.write_text(json.dumps({"tokens": tokens}))
    service = stage.start("limited", f"access.tokensFile={file}", "origins.media.access=token")
    url = f"http://127.0.0.1:{service.port}"

    def run(token, line):
        return Client(stage.program, url, LARDER_TOKEN=token).run(*line.split())

    status, output, errors = run("boss", "prefetch --origin media --path song.mp3 --path a%20b.mp4 --wait")
    stage.check(status == 0, f"prefetch: {status}", output + errors)
    status, output, errors = run("reader", "assets")
    stage.check(status == 0 and "/o/media/a%20b.mp4" in output and "song" not in output, "the only prefix", output + errors)
    status, output, errors = run("both", "assets")
    named = "--prefix /o/media/a%20 or --prefix /o/media/song" in errors
    stage.check(status == 1 and named and not output, f"a choice of prefixes: {status}", output + errors)
    stage.check("song.mp3" in run("both", "assets --prefix /o/media/song")[1], "a chosen prefix")
    for line, operation in [
        ("stats", "GET /v1/stats"), ("stats --watch", "GET /v1/stats/live"), ("purge --prefix /o/media/a --yes", "POST /v1/purges"),
        ("prefetch --origin media --path x", "POST /v1/jobs"), (f"jobs cancel {'0' * 32}", "DELETE /v1/jobs/{jobId}"),
        ("sign /o/media/a", "POST /v1/signatures"),
    ]:  # fmt: skip
        status, output, errors = run("reader", line)
        named = f"does not permit {operation}, which this command needs. (code tokenScope)" in errors
        stage.check(status == 1 and named and not output and errors.count("larder: ") == 1, f"{line}: {status}", errors)
    status, output, errors = run("writer", "prefetch --origin media --path song.mp3 --wait")
    stage.check(status == 0 and "The job succeeded" in output, f"prefetch of a limited writer: {status}", output + errors)
    status, output, errors = run("writer", "purge --prefix /o/media/song --yes")
    permitted = {f"{each['method']} {each['path']}" for each in json.loads(service.call("GET", "/v1/access", token="writer").body)["operations"]}
    if "POST /v1/purges/{planId}/commit" in permitted:
        stage.check(status == 0 and "Purged 1 asset" in output, f"purge of a limited writer: {status}", output + errors)
    else:
        stage.check(status == 1 and "code tokenScope" in errors, f"purge of a limited writer: {status}", output + errors)
    service.stop()


@case
def issued_tokens(stage):
    """Tokens are made, listed, changed and revoked at a running service; the output of `create` is the secret."""
    service = stage.start("issued", "access.token=admin-secret", "origins.media.access=token")
    url = f"http://127.0.0.1:{service.port}"
    run = Client(stage.program, url, LARDER_TOKEN="admin-secret").run
    status, output, errors = run(*"token create player --scope read --prefix /o/media/ --expires 30d".split())
    stage.check(status == 0 and re.fullmatch(r"[0-9a-f]{64}\n", output), f"create: {status}", output + errors)
    secret = output.strip()
    player = Client(stage.program, url, LARDER_TOKEN=secret).run
    service.call("GET", "/o/media/song.mp3", fields={"Range": "bytes=0-999"}, token=secret)
    row = re.search(r"^player +1 +0 +1000 B +0 B +100\.0 %$", run("readers")[1], re.M)
    stage.check(row and run("readers", "-q")[1] == "player\n", "the traffic of the token", run("readers")[1])
    stage.equal(json.loads(run("readers", "--json")[1])["items"][0]["bytes"], 1000, "the traffic as JSON")
    stage.equal(player("assets")[0], 0, "a command with the token")
    status, output, errors = run("token", "list")
    row = next((line for line in output.splitlines() if line.startswith("player ")), "")
    stage.check(status == 0 and re.search(r"read +active +/o/media/ +20\S+ +api$", row), "the list", output + errors)
    status, output, errors = run(*"token change player --scope write --unset expiresAt --max-bytes-per-second 1000".split())
    changed = re.search(r"^scope +write$", output, re.M) and re.search(r"^expires +never$", output, re.M)
    stage.check(status == 0 and changed and re.search(r"^prefixes +/o/media/$", output, re.M), "change", output + errors)
    document = json.loads(run("token", "list", "player", "--json")[1])
    stage.check(document["maxBytesPerSecond"] == 1000 and "token" not in document, "one token as JSON", str(document))
    for words, part in (("player --scope read", "choose another id"), ("a/b --scope read", "id")):
        status, output, errors = run("token", "create", *words.split())
        stage.check(status == 1 and not output and part in errors, f"create {words}: {status}", errors)
    stage.check(run("token", "revoke", "player")[0] == 0 and "player" not in run("token", "list")[1], "revoke")
    status, _, errors = player("assets")
    stage.check(status == 1 and "revoked" in errors, "a command with the revoked token", errors)
    stage.equal(run("token", "revoke", "player")[0], 1, "a second removal")
    service.stop()


@case
def explain(stage):
    """A read is explained before and after the asset is cached, and by a wrong name."""
    stage.purge_all()
    status, output, errors = stage.client.run("explain", "/o/media/song.mp3", "--range", "0-99")
    stage.check(status == 0 and re.search(r"^cached +0 B in 0 ranges$", output, re.M), "a missing asset", output + errors)
    stage.check(re.search(r"^fetches +1 request, ", output, re.M) and re.search(r"^response +.*miss", output, re.M), "its cost", output)
    stage.service.ask("GET", "/o/media/song.mp3")
    status, output, errors = stage.client.run("explain", "/o/media/song.mp3")
    stage.check(status == 0 and re.search(r"^fetches +0 requests, 0 B$", output, re.M), "a cached asset", output + errors)
    document = json.loads(stage.client.run("explain", "/o/media/song.mp3", "--json")[1])
    stage.equal(document["response"]["result"], "hit", "the document")
    stage.equal(stage.client.run("explain", "song.mp3")[0], USAGE, "a name that is none")
    stage.equal(stage.client.run("explain", "/o/media/song.mp3", "--start", "3")[0], USAGE, "a start without seconds")


@case
def origins(stage):
    """Origins are listed, shown, mounted, changed and deleted; errors are JSON with --json."""
    run = stage.client.run
    status, output, errors = run("origins")
    stage.check(status == 0 and re.search(r"^media +http\S+ +closed +none +configuration$", output, re.M), "the list", output + errors)
    url = f"baseURL=http://127.0.0.1:{free_port()}"
    status, output, errors = run("origins", "set", "extra", url, "allowPrivateAddresses=true", "maxBytesPerSecond=4MiB")
    stage.check(status == 0 and "/o/extra/" in output, "a new origin", output + errors)
    status, output, errors = run("origins", "set", "extra", "retries=7", "timeouts.idleSeconds=30")
    stage.check(status == 0 and "changed" in output, "a change", output + errors)
    status, output, errors = run("origins", "extra")
    wanted = (r"^retries +7$", r"^timeouts\.idleSeconds +30$", r"^maxBytesPerSecond +4194304$")
    stage.check(status == 0 and all(re.search(line, output, re.M) for line in wanted), "the settings", output + errors)
    status, output, errors = run("origins", "set", "extra", "colour=red", "--json")
    error = json.loads(errors)["error"]
    stage.check(status == 1 and not output and error["code"] == "invalidField" and error["status"] == 422, "an error as JSON", errors)
    stage.equal(run("origins", "set", "extra", "retries")[0], USAGE, "a setting without a value")
    stage.check(run("origins", "delete", "extra")[0] == 0 and "extra" not in run("origins")[1], "delete")
    status, output, errors = run("origins", "test", "media", "--path", "song.mp3", "--json")
    stage.check(status == 0 and json.loads(output)["outcome"] == "succeeded", "a test of a mounted origin", output + errors)
    status, output, errors = run("origins", "test", "media", "--path", "missing.mp4", "--json")
    stage.check(status == 1 and json.loads(output)["status"] == 404 and not errors, "a test that fails", output + errors)
    status, output, errors = run("origins", "test", "medai")
    stage.check(status == 1 and "Did you mean media?" in errors and not output, "a test of an unknown origin", errors)
    down = Client(stage.program, f"http://127.0.0.1:{free_port()}").run("origins", "--json")
    stage.check(down[0] == 1 and json.loads(down[2])["error"]["code"] == "unreachable", "no service, as JSON", down[2])


@case
def policy(stage):
    """The policy is shown and changed."""
    run = stage.client.run
    before = json.loads(run("policy", "--json")[1])
    stage.service.ask("GET", "/o/media/song.mp3")
    status, output, errors = run("policy", "set", "capacityBytes=16MiB", "--dry-run", "--json")
    stage.check(status == 0 and json.loads(output)["usedBytes"] >= MIB, "a plan", output + errors)
    stage.equal(run("policy", "set", "capacityBytes=1TiB", "--dry-run"), (0, "The change would evict nothing.\n", ""), "an idle plan")
    stage.equal(json.loads(run("policy", "--json")[1]), before, "the policy after a plan")
    status, output, errors = run("policy", "set", "capacityBytes=2TiB", "highWatermark=0.9")
    stage.check(status == 0 and re.search(r"^capacityBytes +2199023255552$", output, re.M), "a change", output + errors)
    status, output, errors = run("policy")
    stage.check(status == 0 and re.search(r"^highWatermark +0\.9$", output, re.M), "the policy", output + errors)
    stage.equal(run("policy", "set", "algorithm=none")[0], 1, "an unknown algorithm")
    changed = [f"{name}={json.dumps(before[name])}" for name in ("capacityBytes", "highWatermark")]
    stage.equal(run("policy", "set", *changed)[0], 0, "the former policy")


@case
def transfers(stage):
    """A transfer in progress is listed and stopped."""
    run = stage.client.run
    stage.purge_all()
    waiting = stage.client.start("prefetch", "--origin", "slow", "--path", "film.mp4", "--wait")
    listed = lambda: re.search(r"^(\d+) +running .* slow +/o/slow/film\.mp4$", run("fills", "--origin", "slow")[1], re.M)  # noqa: E731
    row = wait_until(listed)
    stage.check(row, "the transfer is not listed", run("fills")[1])
    status, output, errors = run("fills", "stop", row[1])
    stage.check(status == 0 and row[1] in output, "stop", output + errors)
    stage.check(waiting.wait(30) == 1, "the job of a stopped transfer succeeds")
    stage.check("No transfers" in run("fills", "--origin", "slow")[1], "the list after it")
    stage.equal(run("fills", "stop", row[1])[0], 1, "a transfer that has ended")


@case
def disk_usage(stage):
    """The usage is shown by origin, and by the directories of a prefix."""
    stage.purge_all()
    for name in ("song.mp3", "a%20b.mp4"):
        stage.service.ask("GET", f"/o/media/{name}")
    status, output, errors = stage.client.run("du")
    stage.check(status == 0 and re.search(r"^ *\S+ MiB +100\.0 % +2 +media$", output, re.M), "by origin", output + errors)
    document = json.loads(stage.client.run("du", "--json", "--by", "type")[1])
    stage.equal((document["by"], document["total"]["assets"]), ("type", 2), "the document by type")
    status, output, errors = stage.client.run("du", "/o/media/")
    stage.check(status == 0 and re.search(r"2 +total$", output, re.M), "the directories of the origin", output + errors)
    status, output, errors = stage.client.run("du", "/o/media")
    stage.check(status == 1 and "/o/media/films/" in errors, "a prefix that is no directory", errors)
    stage.equal(stage.client.run("du", "--by", "colour")[0], USAGE, "an unknown grouping")


@case
def https(stage):
    """A certificate is verified, with the system's authorities or those of a file."""
    if not certificates.available():
        return
    authority = certificates.Authority()
    certificate, key = authority.issue("service")
    service = stage.start("tls", f"listen.tls.certificateFile={certificate}", f"listen.tls.keyFile={key}")
    url = f"https://127.0.0.1:{service.port}"
    status, _, errors = Client(stage.program, url).run("stats")
    stage.check(status == 1 and "--ca-file" in errors, f"an unknown authority: {status}", errors)
    status, output, errors = Client(stage.program, url).run("stats", "--ca-file", str(authority.file))
    stage.check(status == 0 and "hit ratio" in output, f"a known authority: {status}", errors)
    plain = url.replace("https:", "http:")
    status, _, errors = Client(stage.program, plain).run("stats")
    stage.check(status == 1 and errors.startswith("larder: "), f"http to a TLS listener: {status}", errors)
    settings = {"LARDER_LISTEN_TLS_CERTIFICATE_FILE": str(certificate), "LARDER_LISTEN_TLS_KEY_FILE": str(key)}
    probe = ("healthcheck", "--listen", f"127.0.0.1:{service.port}")
    status, _, errors = Client(stage.program, url, **settings).run(*probe)
    stage.equal(status, 0, f"healthcheck with TLS, by an authority that is not trusted: {errors}")
    status, _, errors = Client(stage.program, url).run(*probe)
    stage.check(status == 1 and "sent" in errors, f"healthcheck without TLS of a TLS listener: {status}", errors)
    probe = ("healthcheck", "--listen", f"127.0.0.1:{stage.upstream.port}")
    status, _, errors = Client(stage.program, url, **settings).run(*probe)
    stage.check(status == 1 and "completed no TLS handshake" in errors, f"an open port without TLS: {status}", errors)
    service.stop()


@case
def prefetch(stage):
    """A job is created and awaited; failed items and their causes are on standard error."""
    stage.purge_all()
    status, output, errors = stage.client.run("prefetch", "--origin", "media", "--path", "song.mp3", "--label", "e v")
    identifier = re.search(r"Created the job (\w+) with 1 item; ", output)
    stage.check(status == 0 and identifier and not errors, f"a job without --wait: {status}", output + errors)
    stage.equal(stage.api("GET", f"/v1/jobs/{identifier[1]}")["label"], "e v", "label")

    status, output, errors = stage.client.run(
        "prefetch", "--origin", "media", "--path", "film.mp4", "--path", "song.mp3", "--range", "bytes=0-99", "--wait"
    )
    succeeded = "The job succeeded: 2 of 2 items succeeded; 200 B of 200 B" in output
    stage.check(status == 0 and succeeded, f"a job that succeeds: {status}", output + errors)
    stage.check("succeeded: 100 %" in errors and "\x1b" not in errors + output, "plain lines", errors)

    status, output, errors = stage.client.run(
        "prefetch", "--origin", "media", "--path", "missing.mp4", "--path", "song.mp3", "--wait"
    )
    cause = "/o/media/missing.mp4: upstreamRefused: " in errors
    stage.check(status == 1 and cause and "The job failed: 1 of 2" in output, f"a job that fails: {status}", output + errors)

    status, output, errors = stage.client.run("prefetch", "--origin", "nowhere", "--path", "x")
    named = "code invalidField, field items[0].origin" in errors
    stage.check(status == 1 and named and not output, f"an unknown origin: {status}", errors)

    status, output, errors = stage.client.run("prefetch", "--origin", "media", "--path", "film.mp4", "--wait", "--json")
    documents = [json.loads(line) for line in output.splitlines()]
    stage.check(status == 0 and not errors and documents[-1]["state"] == "succeeded", "JSON events", output + errors)


@case
def progress_bar(stage):
    """The progress bar is redrawn on a terminal, and the outcome follows it."""
    stage.purge_all()
    began = time.monotonic()
    console = stage.client.console("prefetch", "--origin", "slow", "--path", "film.mp4", "--wait", columns=70)
    status, elapsed = console.end(), time.monotonic() - began
    bars = re.findall(r"\r\[[█░]+\] [^\r\n\x1b]*", console.text)
    stage.check(status == 0 and "The job succeeded" in console.text, f"status {status}", console.text)
    stage.check(any("█" in bar and "░" in bar and "MiB/s" in bar for bar in bars), "no bar in between", console.text)
    stage.check(len(bars) <= 4 * elapsed + 2, f"{len(bars)} updates in {elapsed:.1f} s")
    stage.check(all(len(bar) <= 70 for bar in bars), "a bar is wider than the terminal", console.text)


@case
def interruption(stage):
    """Ctrl-C ends the wait, not the job; the job can be cancelled and retried."""
    stage.purge_all()
    console = stage.client.console("prefetch", "--origin", "slow", "--path", "film.mp4", "--wait")
    stage.check(console.wait_for(" %"), "no progress", console.text)
    console.interrupt()
    status = console.end(10)
    identifier = re.search(r"Created the job (\w+)", console.text)[1]
    hint = f"The job {identifier} continues on the service." in console.text
    stage.check(status == 130 and hint, f"Ctrl-C: {status}", console.text)
    stage.equal(stage.api("GET", f"/v1/jobs/{identifier}")["state"], "running", "state after Ctrl-C")
    status, output, errors = stage.client.run("jobs", "cancel", identifier)
    stage.check(status == 0 and "is cancelled" in output, f"cancel: {status}", output + errors)
    stage.equal(stage.api("GET", f"/v1/jobs/{identifier}")["state"], "cancelled", "state after cancel")
    status, output, errors = stage.client.run("jobs", "retry", identifier, "--json")
    stage.check(status == 0 and json.loads(output)["state"] in ("queued", "running"), f"retry: {status}", errors)
    status, _, errors = stage.client.run("jobs", "cancel", "0" * 32)
    stage.check(status == 1 and "code notFound" in errors, f"cancel of an unknown job: {status}", errors)
    stage.service.ask("DELETE", f"/v1/jobs/{identifier}")


@case
def dry_run(stage):
    """A dry run shows the files of a job and creates none."""
    before = len(stage.api("GET", "/v1/jobs?limit=1000")["items"])
    line = ("prefetch", "--origin", "media", "--path", "song.mp3", "--path", "new.mp4", "--range", "bytes=0-9", "--dry-run")
    status, output, errors = stage.client.run(*line)
    stage.check(status == 0 and "media song.mp3" in output and "2 files" in output, f"dry run: {status}", output + errors)
    status, output, errors = stage.client.run(*line, "--json")
    stage.check(status == 0 and json.loads(output)["dryRun"] is True, f"dry run as JSON: {status}", output + errors)
    stage.equal(len(stage.api("GET", "/v1/jobs?limit=1000")["items"]), before, "the jobs after a dry run")
    # The URL of a host that is not allowed names the asset of the origin.
    url = f"http://127.0.0.1:{stage.upstream.port}/song.mp3"
    status, output, errors = stage.client.run("prefetch", url, "--dry-run", "--json")
    entry = json.loads(output)["entries"][0] if status == 0 else {}
    stage.check(entry.get("origin") in ("media", "slow") and entry.get("path") == "song.mp3", f"a URL: {status}", output + errors)
    status, _, errors = stage.client.run("prefetch", "--origin", "media", "--path", "missing/", "--list", "--dry-run")
    stage.check(status == 1 and "code upstreamRefused" in errors, f"a dry run of a missing folder: {status}", errors)


@case
def restart(stage):
    """A wait survives a restart of the service."""
    stage.purge_all()
    waiting = stage.client.start("prefetch", "--origin", "slow", "--path", "film.mp4", "--wait")
    # The first line of the progress: the job is watched.
    line = waiting.stderr.readline()
    stage.service.kill()
    stage.service.start()
    output, errors = waiting.communicate(timeout=60)
    stage.check(line.startswith("running: "), "the progress before the restart", line)
    stage.check(waiting.returncode == 0 and "Trying again." in errors, f"status {waiting.returncode}", output + errors)


@case
def jobs(stage):
    """Jobs are listed, and one is shown with its failed items; JSON is the document of the API."""
    missing = {"origin": "media", "path": "missing.mp4"}
    body = {"items": [{"origin": "media", "path": "song.mp3"}, missing], "label": "colour \x1b[31m"}
    identifier = stage.api("POST", "/v1/jobs", body)["jobId"]
    stage.service.finished(identifier)
    status, output, errors = stage.client.run("jobs", "--state", "failed", "--limit", "5")
    row = next((line for line in output.splitlines() if line.startswith(identifier)), "")
    stage.check(status == 0 and re.search(r"failed +1/2 +1 +1\.0 MiB", row), "the row of a job", output + errors)
    stage.check("\x1b" not in output and "colour \ufffd[31m" in row, "a control character", output)
    status, output, errors = stage.client.run("jobs", identifier)
    stage.check(status == 0 and re.search(r"^items +1 of 2 items succeeded, 1 failed$", output, re.M), "details", output)
    stage.check(re.search(r"1  failed .*/o/media/missing.mp4  upstreamRefused: ", output), "failed item", output)
    stage.check("song.mp3" not in output, "only failed items", output)
    stage.check("song.mp3" in stage.client.run("jobs", identifier, "--items")[1], "all items")
    document = stage.service.ask("GET", f"/v1/jobs/{identifier}")[1].decode()
    stage.equal(stage.client.run("jobs", identifier, "--json")[1], document.rstrip("\n") + "\n", "JSON of a job")
    page = stage.service.ask("GET", "/v1/jobs?label=none&limit=100")[1].decode()
    stage.equal(stage.client.run("jobs", "--label", "none", "--json")[1], page.rstrip("\n") + "\n", "JSON of a list")
    stage.equal(stage.client.run("jobs", "--label", "none")[1], "No jobs match.\n", "an empty list")
    status, output, errors = stage.client.run("jobs", "cancel", identifier)
    stage.check(status == 1 and "has ended before, in the state failed: 1 of 2" in errors and not output, "a late cancel", errors)
    done = stage.api("POST", "/v1/jobs", {"items": [{"origin": "media", "path": "song.mp3"}]})["jobId"]
    stage.service.finished(done)
    for change, part in (("cancel", "in the state succeeded"), ("retry", "has no items to restart")):
        status, output, errors = stage.client.run("jobs", change, done, "--json")
        error = json.loads(errors)["error"]
        stage.check(status == 1 and error["code"] == "unchanged" and part in error["message"], f"{change} of a finished job", errors)
        stage.equal(json.loads(output)["state"], "succeeded", f"the document of {change}")
    status, _, errors = stage.client.run("jobs", "../stats")
    stage.check(status == 1 and "code notFound" in errors, "an identifier with a slash", errors)


@case
def schedules(stage):
    """Schedules are written from a file, listed, shown and deleted; a wrong one names the member."""
    run, file = stage.client.run, stage.directory / "job.json"
    file.write_text(json.dumps({"items": [{"origin": "media", "path": "song.mp3"}]}))
    words = ("schedules", "set", "nightly", str(file), "--repeat", "weekly:mon,sun", "--at", "02:30 Europe/Berlin", "--deadline", "3h")
    status, output, errors = run(*words)
    stage.check(status == 0 and re.search(r"^repeat +weekly:mon,sun at 02:30 Europe/Berlin$", output, re.M), "set", output + errors)
    stage.check(re.search(r"^deadline +3h$", output, re.M) and re.search(r"^state +active$", output, re.M), "a new schedule", output)
    status, output, errors = run("schedules")
    row = next((line for line in output.splitlines() if line.startswith("nightly")), "")
    stage.check(status == 0 and "active" in row and "none" in row, "the list", output + errors)
    status, output, errors = run("schedules", "nightly", "--json")
    stage.check(status == 0 and json.loads(output)["deadlineSeconds"] == 10800, "one schedule as JSON", output + errors)
    status, output, errors = run("schedules", "set", "nightly", str(file), "--repeat", "hourly")
    stage.check(status == 1 and not output and "every:6h" in errors, "a wrong repetition", errors)
    file.write_text("{")
    status, output, errors = run("schedules", "set", "nightly", str(file), "--repeat", "daily")
    stage.check(status == USAGE and "is no JSON document" in errors, "a file that is no JSON", errors)
    stage.check(run("schedules", "delete", "nightly")[0] == 0 and "No schedules" in run("schedules")[1], "delete")
    stage.check(run("schedules", "delete", "nightly")[0] == 1, "a schedule that does not exist")


@case
def requests(stage):
    """Requests are listed with conditions; tail prints new ones, and ends at Ctrl-C with status 0."""
    stage.purge_all()
    for _ in range(2):
        stage.service.ask("GET", "/o/media/song.mp3?sig=s3cret", fields={"Range": "bytes=0-99"})
    stage.service.ask("GET", "/o/media/missing.mp4")
    status, output, errors = stage.client.run("requests", "--origin", "media", "--limit", "3")
    rows = output.splitlines()
    stage.check(status == 0 and len(rows) == 4, "three rows", output + errors)
    stage.check(re.search(r" 404 +upstreamRefused .*/o/media/missing.mp4$", rows[1]), "a failed request", rows[1])
    stage.check(re.search(r" 206 +hit +100 B +0 B .*/o/media/song.mp3  \(bytes=0-99\)$", rows[2]), "a hit", rows[2])
    stage.check(re.search(r" 206 +miss +100 B +100 B ", rows[3]) and "s3cret" not in output, "a miss", rows[3])
    status, output, errors = stage.client.run("requests", "--status", "404", "--prefix", "/o/media/missing", "--limit", "1", "--json")
    stage.check(status == 0 and json.loads(output)["items"][0]["code"] == "upstreamRefused", "JSON", output + errors)
    stage.check("raise --limit" in stage.client.run("requests", "--limit", "1")[1], "more requests")
    stage.equal(stage.client.run("requests", "--token", "nobody")[1], "No requests match.\n", "an empty list")
    stage.equal(stage.client.run("requests", "--status", "9xx")[0], 1, "an invalid status")
    for options, pattern in (([], r" 404 upstreamRefused GET /o/media/missing.mp4 "), (["--json"], r'"path":"/o/media/missing.mp4"')):
        tail = stage.client.start("tail", "--status", "4xx", "--prefix", "/o/media/", *options)
        # The stream has begun when its first request is printed.
        printed = threading.Event()

        def ask():
            while not printed.wait(0.2):
                stage.service.ask("GET", "/o/media/missing.mp4")

        thread = threading.Thread(target=ask)
        thread.start()
        line = tail.stdout.readline()
        printed.set()
        thread.join()
        tail.send_signal(signal.SIGINT)
        tail.communicate(timeout=30)
        stage.check(re.search(pattern, line), "a line of tail", line)
        stage.equal(tail.returncode, 0, "the status of tail")


@case
def assets(stage):
    """Assets are listed with conditions, an order and a limit."""
    stage.purge_all()
    for name in ("song.mp3", "a%20b.mp4"):
        stage.service.ask("GET", f"/o/media/{name}")
    status, output, errors = stage.client.run("assets", "--origin", "media", "--sort", "cachedBytes")
    lines = output.splitlines()
    stage.check(status == 0 and lines[0].startswith("asset ") and len(lines) == 3, f"status {status}", output + errors)
    stage.check(re.search(r"1\.0 MiB +1\.0 MiB +complete +\d+ +\S.* +/o/media/song.mp3$", lines[1]), "a row", output)
    output = stage.client.run("assets", "--ascending", "--sort", "cachedBytes", "--limit", "1", "--state", "complete")[1]
    stage.check("b.mp4" in output and output.endswith("raise --limit, which is 1.\n"), "the limit", output)
    output = stage.client.run("assets", "--prefix", "/o/media/song", "--json")[1]
    stage.equal([item["key"] for item in json.loads(output)["items"]], ["/o/media/song.mp3"], "JSON")
    stage.equal(stage.client.run("assets", "--tag", "none")[1], "No assets match.\n", "an empty list")


@case
def stats(stage):
    """Statistics are shown as text, and as the document of the API."""
    status, output, errors = stage.client.run("stats")
    shown = all(re.search(rf"^{name} ", output, re.M) for name in ("requests", "hit ratio", "store", "jobs", "media"))
    stage.check(status == 0 and shown, f"status {status}", output + errors)
    stage.check("requests" in json.loads(stage.client.run("stats", "--json")[1]), "JSON")


@case
def watch(stage):
    """The live screen shows the traffic, and the terminal is restored; without a terminal each second is a line."""
    stage.service.ask("GET", "/o/media/song.mp3")
    console = stage.client.console("stats", "--watch", columns=90)
    stage.check(console.wait_for("to clients", 10) and ALTERNATE_SCREEN in console.text, "no screen", console.text)
    stage.check(not console.has_echo, "typed characters are echoed")
    until, traffic = time.monotonic() + 10, re.compile(r"to clients +[1-9][\d.]* MiB/s")
    figures = ("from cache", "hit ratio", "first byte", "p95", "readers", "fills", "█")

    def is_shown():
        return traffic.search(console.text) and all(name in console.text for name in figures)

    # A screen arrives in several parts.
    while not is_shown() and time.monotonic() < until:
        stage.service.ask("GET", "/o/media/song.mp3")
        console.read(0.2)
    stage.check(traffic.search(console.text), "no traffic", console.text[-3000:])
    stage.check(is_shown(), "missing figures", console.text[-3000:])
    console.interrupt()
    until = time.monotonic() + 5
    while console.process.poll() is None and time.monotonic() < until:
        console.read(0.1)
    stage.check(console.has_echo, "the echo is still off")
    status = console.end(5)
    restored = USUAL_SCREEN in console.text and SHOWN_CURSOR in console.text
    stage.check(status == 0 and restored, f"after Ctrl-C: {status}", console.text[-200:])

    for arguments, read in (([], str), (["--json"], json.loads)):
        process = stage.client.start("stats", "--watch", *arguments)
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
        stage.equal(process.returncode, 0, f"status of stats --watch {arguments}, {errors}")
        stage.check(all("clientBytesFromCache" in read(line) if arguments else "hit ratio" in line for line in lines),
                    f"lines of stats --watch {arguments}", "".join(lines))  # fmt: skip


@case
def ratio(stage):
    """`stats` and `stats --watch` show the same hit ratio, also of revalidated responses."""
    stage.service.ask("GET", "/o/media/song.mp3")
    items = wait_until(lambda: stage.api("GET", "/v1/assets?prefix=/o/media/song.mp3")["items"], 20)
    asset = items[0]["assetId"]
    stage.service.ask("PATCH", f"/v1/assets/{asset}", {"ttlSeconds": 0})
    for _ in range(3):
        stage.service.ask("GET", "/o/media/song.mp3")
    stage.service.ask("PATCH", f"/v1/assets/{asset}", {"ttlSeconds": None})
    figures = json.loads(stage.client.run("stats", "--json")[1])
    stage.check(figures["requests"]["revalidated"] > 0, "no revalidated response", figures["requests"])
    expected = figures["requestHitRatio"]
    process = stage.client.start("stats", "--watch", "--json")
    until, shown = time.monotonic() + 20, None
    # The requests are part of the next second.
    while shown != expected and time.monotonic() < until:
        shown = json.loads(process.stdout.readline())["last15Minutes"]["requestHitRatio"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    stage.equal(shown, expected, "the hit ratio of stats --watch")


@case
def purge(stage):
    """A purge is shown and confirmed before it is carried out."""
    def assets():
        return len(stage.api("GET", "/v1/assets?prefix=/o/media/")["items"])

    stage.purge_all()
    for name in ("song.mp3", "a%20b.mp4"):
        stage.service.ask("GET", f"/o/media/{name}")
    selection = ("purge", "--prefix", "/o/media/")
    status, output, errors = stage.client.run(*selection, "--dry-run")
    stage.check(status == 0 and "2 assets, 1.0 MiB" in output and "/o/media/song.mp3" in output, "dry run", output + errors)
    status, _, errors = stage.client.run(*selection)
    stage.check(status == USAGE and "--yes" in errors and assets() == 2, f"no terminal: {status}", errors)
    console = stage.client.console(*selection)
    stage.check(console.wait_for("Purge 2 assets? [y/N] "), "no question", console.text)
    console.type("n\n")
    stage.check(console.end() == 1 and "Nothing was purged." in console.text and assets() == 2, "declined", console.text)
    console = stage.client.console(*selection)
    console.wait_for("[y/N] ")
    console.interrupt()
    stage.check(console.end() != 0 and assets() == 2, "Ctrl-C at the question", console.text)
    console = stage.client.console(*selection, "--soft")
    console.wait_for("as stale? [y/N] ")
    console.type("yes\n")
    stage.check(console.end() == 0 and "Marked 2 assets as stale." in console.text and assets() == 2, "soft", console.text)
    url = f"http://127.0.0.1:{stage.upstream.port}/song.mp3"
    status, output, errors = stage.client.run("purge", url, "--origin", "media", "--yes")
    stage.check(status == 0 and "Purged 1 asset, freed 1.0 MiB." in output and assets() == 1, "a URL", output + errors)
    status, output, errors = stage.client.run(*selection, "--yes", "--json")
    documents = [json.loads(line) for line in output.splitlines()]
    stage.check(status == 0 and documents[0]["dryRun"] and documents[1]["state"] == "done", "JSON", output + errors)
    status, output, _ = stage.client.run(*selection, "--yes")
    stage.check(status == 1 and output == "No assets match.\n", "nothing to purge", output)
    stage.service.ask("GET", "/o/media/song.mp3")
    for arguments, reason in (
        (("--prefix", "o/media/so"), "Keys begin with /o/media/so."), (("--prefix", "/media/so"), "Keys begin with /o/media/so."),
        (("--prefix", "/o/media/SONG"), "Keys begin with /o/media/song."), (("--origin", "medai"), "The name media is similar."),
        (("--prefix", "/o/media/none/x"), "The longest part of it with assets is /o/media/."),
        (("http://other.example/x",), "no origin has a base URL that contains it."),
        (("--prefix", "/o/media/so", "--tag", "none"), "none of them meets all conditions."),
    ):
        status, output, errors = stage.client.run("purge", *arguments, "--yes")
        stage.check(status == 1 and errors.endswith(f"{reason}\n"), f"the hint of {arguments}: {status}", output + errors)
    status, output, errors = stage.client.run("purge", "--origin", "medai", "--dry-run", "--json")
    stage.check(status == 1 and "medai" in json.loads(output)["hint"] and not errors, f"a hint as JSON: {status}", output + errors)


@case
def unix_socket(stage):
    """A Unix socket serves content, the API and the client; its file belongs to one process at a time."""
    path = stage.directory / "larder.sock"
    client = Client(stage.program, f"unix:{path}")
    address = f"unix:{path}"

    def curl(*arguments):
        return subprocess.run(["curl", "-sS", "--unix-socket", path, *arguments], capture_output=True, timeout=30).stdout

    first = Listening(stage, "socket", address, "listen.socketMode=0620")
    stage.check(first.is_up(), "the service is ready", first.text())
    stage.equal(client.run("healthcheck", "--url", f"unix:{path}")[0], 0, "healthcheck --url")
    stage.equal(oct(path.stat().st_mode & 0o777), "0o620", "mode of the socket")
    content = curl("http://localhost/o/media/song.mp3")
    stage.check(content == (stage.directory / "files" / "song.mp3").read_bytes(), "content", f"{len(content)} bytes")
    stage.check("requests" in json.loads(curl("http://localhost/v1/stats")), "API")
    status, output, errors = client.run("stats", "--json")
    stage.check(status == 0 and json.loads(output)["requests"]["total"] == 1, "client", output + errors)
    stage.check(f"address=unix:{path} " in first.text() and "client=unix " in first.text(), "log", first.text())

    second = Listening(stage, "socket2", address)
    stage.equal(second.wait(), 78, "exit status of a second process")
    stage.check("listen.address: Another process listens" in second.text(), "message of a second process", second.text())
    stage.equal(client.run("healthcheck", "--listen", address)[0], 0, "the first process keeps its socket")

    first.kill()
    stage.check(path.exists(), "a killed process leaves its file")
    stage.equal(client.run("healthcheck", "--listen", address)[0], 1, "healthcheck without a service")
    _, _, errors = client.run("stats")
    stage.check(f"unix:{path}" in errors, "client without a service", errors)
    third = Listening(stage, "socket", address)
    stage.check(third.is_up(), "the file of a killed process is replaced", third.text())
    stage.equal(oct(path.stat().st_mode & 0o777), "0o660", "default mode of the socket")
    stage.equal(third.stop(), 0, "exit status after a stop")
    stage.check(not path.exists(), "the file is removed at the stop")


@case
def localhost(stage):
    """localhost is an address of each family."""
    port = free_port()
    service = Listening(stage, "localhost", f"localhost:{port}")
    stage.check(service.is_up(), "the service is ready", service.text())
    urls = [f"http://127.0.0.1:{port}"]
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        urls.append(f"http://[::1]:{port}")
    for url in urls:
        with urllib.request.urlopen(f"{url}/health/ready", timeout=30) as response:
            stage.equal(response.status, 200, url)
    stage.check(f"address={' '.join(urls)} " in service.text(), "addresses in the log", service.text())
    stage.check(" listening on " not in service.text(), "no other form of the addresses", service.text())
    stage.equal(service.stop(), 0, "exit status after a stop")
    if len(urls) > 1:
        with socket.create_server(("::1", port), family=socket.AF_INET6):
            other = Listening(stage, "localhost", f"localhost:{port}")
            stage.equal(other.wait(), 78, "exit status if one of the addresses is in use")
            stage.check("listen.address: cannot listen on" in other.text(), "message", other.text())


@case
def tasks(stage):
    """Twelve tasks of an operator need no other program."""
    operating.perform(stage)


@case
def offline(stage):
    """verify and export show their progress on a terminal only."""
    stage.service.ask("GET", "/o/media/film.mp4")
    stage.service.stop()
    store = stage.directory / "larder" / "store"
    console = stage.client.console("verify", "--data-directory", str(store))
    status = console.end()
    progress = re.search(r"\r\[[█░]+\] +\d+ %  .* verified", console.text)
    stage.check(status == 0 and progress and "no problems found" in console.text, f"verify: {status}", console.text)
    target = stage.directory / "copy"
    console = stage.client.console("export", "/o/media/film.mp4", str(target), "--data-directory", str(store))
    status = console.end()
    stage.check(status == 0 and " copied" in console.text and f"{FILES['film.mp4']} bytes" in console.text,
                f"export: {status}", console.text)  # fmt: skip
    for command in (["export", "/o/media/none.mp4", str(stage.directory / "none")], ["verify", "--repair"]):
        # A directory without a store.
        status, output, errors = stage.client.run(*command, "--data-directory", str(stage.directory), "--json")
        stage.check(status in (1, 2) and not output and json.loads(errors)["error"]["code"] == "notFound", f"{command}: {status}", errors)
    status, output, errors = stage.client.run("verify", "--data-directory", str(store))
    stage.check(status == 0 and "\x1b" not in output + errors and "[" not in errors, "verify in a pipe", output + errors)


def main():
    parser = checks.arguments(__doc__, [function.__name__ for function in CASES])
    options = parser.parse_args()
    program = checks.program_of(parser, options)
    if not venv.has_programs("nginx", "openssl", "curl"):
        venv.packages("nginx-light", "openssl", "curl")
    results, cases = checks.Checks("client"), {function.__name__: function for function in CASES}
    stage = Stage(program)
    for name in checks.chosen(cases, options.only):
        with results.part(name, cases[name].__doc__) as part:
            stage.use(part)
            cases[name](stage)
    if stage.service.is_running:
        stage.service.stop()
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
