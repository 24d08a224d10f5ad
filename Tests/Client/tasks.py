"""The tasks of an operator, done with the program alone: no other program can be found in its PATH."""

import re
import struct

from console import Client
from harness.process import Larder, MediaServer, Nginx, free_port, origin

MIB = 1 << 20
ADMIN = "admin-secret-of-the-tasks"
FILMS, SECONDS, SAMPLE = 50, 60, 16000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"

TASKS = []


def task(function):
    TASKS.append(function)
    return function


def box(kind, *parts):
    payload = b"".join(parts)
    return struct.pack(">I4s", len(payload) + 8, kind) + payload


def table(kind, *numbers):
    return box(kind, struct.pack(f">{len(numbers) + 1}I", 0, *numbers))


def film():
    """A film with one sample of SAMPLE bytes for each second; each is a sync sample and a chunk."""
    start = box(b"ftyp", b"isom", bytes(4), b"isom")

    def movie(first):
        chunks = [first + SAMPLE * second for second in range(SECONDS)]
        samples = box(
            b"stbl", box(b"stsd", struct.pack(">II", 0, 1), box(b"avc1", bytes(70))), table(b"stts", 1, SECONDS, 1000), table(b"stsc", 1, 1, 1, 1),
            table(b"stsz", SAMPLE, SECONDS), table(b"stco", SECONDS, *chunks),
        )  # fmt: skip
        media = box(
            b"mdia", table(b"mdhd", 0, 0, 1000, SECONDS * 1000, 0),
            box(b"hdlr", bytes(8), b"vide", bytes(13)), box(b"minf", samples),
        )  # fmt: skip
        track = box(b"trak", table(b"tkhd", 0, 0, 1, 0, SECONDS * 1000, *[0] * 15), media)
        return box(b"moov", table(b"mvhd", 0, 0, 1000, SECONDS * 1000, *[0] * 20), track)

    head = start + movie(len(start) + len(movie(0)) + 8)
    return head + box(b"mdat", bytes(SECONDS * SAMPLE))


class Operator:
    """A service with upstreams, and the client of its operator."""

    def __init__(self, stage):
        self.stage, self.check = stage, stage.check
        place = stage.directory / "tasks"
        files, tools, secrets = place / "files", place / "no-tools", place / "secrets"
        for folder in (files / "films", files / "series", tools, secrets, place / "larder"):
            folder.mkdir(parents=True)
        for number in range(1, FILMS + 1):
            (files / "films" / f"{number:02}.mp4").write_bytes(film())
        for name, size in (("series/one.mp4", 3 * MIB), ("series/two.mp4", 3 * MIB), ("big.mp4", 24 * MIB)):
            (files / name).write_bytes(bytes(size))
        for name, word in (("first.txt", "one"), ("second.txt", "two")):
            (secrets / name).write_text(f"Authorization: Bearer {word}\n")
        self.upstream = MediaServer(place / "nginx", files)
        self.url = f"http://127.0.0.1:{self.upstream.port}"
        self.closed = f"http://127.0.0.1:{free_port()}"
        guarded = (
            f'server {{ listen 127.0.0.1:{{port}}; root {files}; '
            'location / { if ($http_authorization != "Bearer two") { return 401; } } }'
        )
        self.guarded = Nginx(place / "guarded", guarded)
        settings = [
            *origin("films", self.url), *origin("slow", self.url, maxBytesPerSecond=MIB), *origin("broken", self.closed),
            *origin("private", f"http://127.0.0.1:{self.guarded.port}", credentialsFile="first.txt", access="public"),
            f"credentialsDirectory={secrets}",
        ]  # fmt: skip
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        }  # fmt: skip
        self.service = Larder(stage.program, place / "larder", None, settings, token=ADMIN, environment=variables).start()
        url = f"http://127.0.0.1:{self.service.port}"
        self.client = Client(stage.program, url, LARDER_TOKEN=ADMIN, PATH=str(tools))

    def run(self, line, status=0, errors=None, **options):
        """The output of a command, which must end with the status; of a failed one the errors, unless `errors` is False."""
        ended, output, failures = self.client.run(*line.split(), **options)
        self.check(ended == status, f"`larder {line}` ends with {ended}", output + failures)
        return failures if status and errors is None else output

    def shows(self, text, pattern, meaning):
        found = re.search(pattern, text, re.M)
        self.check(found, meaning, text)
        return found

    def read(self, path, token=None, **fields):
        return self.service.call("GET", path, fields=fields, token=token).status

    def close(self):
        self.service.stop()


@task
def slow_viewer(operator):
    """Why is this viewer slow?"""
    secret = operator.run("token create viewer --scope read").strip()
    for path in ("/o/films/series/one.mp4", "/o/slow/series/two.mp4"):
        operator.check(operator.read(path, secret) == 200, f"a read of {path}")
    text = operator.run("requests --token viewer --min-seconds 1")
    row = operator.shows(text, r"^\S+ +GET +200 +miss +3\.0 MiB +3\.0 MiB .* viewer .*/o/slow/series/two\.mp4$", "the slow request")
    operator.check(row and "/o/films/" not in text, "only the slow request", text)
    operator.shows(operator.run("origins slow"), rf"^maxBytesPerSecond +{MIB}$", "the rate of its upstream")


@task
def disk_usage(operator):
    """What uses the disk?"""
    rows = operator.run("du").splitlines()
    operator.check(rows[1].endswith((" films", " slow")) and rows[-1].endswith(" total"), "the origins", "\n".join(rows))
    operator.shows(operator.run("du /o/films/"), r"^ *3\.0 MiB +\S+ % +1 +/o/films/series/$", "the directory")
    name = operator.run("assets --prefix /o/films/series/ --sort cachedBytes -n 1 -q").strip()
    operator.check(re.fullmatch(r"[0-9a-f]{32}", name), "the largest asset", name)


@task
def purge_prefix(operator):
    """Purge the assets below a prefix."""
    operator.shows(operator.run("purge --prefix /o/films/series/ -y"), r"^Purged 1 asset, freed 3\.0 MiB\.$", "the purge")
    operator.check("No assets match." in operator.run("assets --prefix /o/films/series/"), "the assets after it")


@task
def prefetch_seconds(operator):
    """Prefetch the first seconds of 50 films."""
    lines = "".join(f"films/{number:02}.mp4\n" for number in range(1, FILMS + 1))
    text = operator.run("prefetch -f - --origin films --play 10s --wait", given=lines)
    operator.shows(text, rf"^The job succeeded: {FILMS} of {FILMS} items succeeded; ", "the job")
    cached = operator.shows(operator.run("du /o/films/"), rf"^ *(\S+) MiB +\S+ % +{FILMS} +/o/films/films/$", "the films")
    operator.check(cached and float(cached[1]) < FILMS * SAMPLE * SECONDS / MIB / 2, "only the first seconds", cached and cached[0])
    operator.shows(operator.run("explain /o/films/films/07.mp4 --start 0 --seconds 10"), r"^fetches +0 requests, 0 B$", "a later read")


@task
def failing_origin(operator):
    """Which origin fails, and why?"""
    operator.check(operator.read("/o/broken/film.mp4") >= 500, "a read of a broken origin")
    operator.shows(operator.run("origins test broken", 1, errors=False), r"^outcome +failed, \w+$", "the outcome of a test")
    text = operator.run("origins")
    operator.shows(text, rf"^broken +{operator.closed} +\w+ +(?!none)\w+ ", "the origin with its failure")
    operator.shows(text, r"^films +\S+ +closed +none ", "an origin without failures")


@task
def jobs(operator):
    """Pause, cancel and retry a job."""
    job = operator.run("prefetch --origin slow --path big.mp4 -q").strip()
    operator.run(f"jobs pause {job}")
    operator.shows(operator.run(f"jobs {job}"), r"^state +paused$", "a paused job")
    operator.run(f"jobs resume {job}")
    operator.shows(operator.run(f"jobs cancel {job}"), rf"^The job {job} is cancelled\. ", "a cancelled job")
    operator.shows(operator.run(f"jobs retry {job}"), rf"^The job {job} was restarted", "a restarted job")
    operator.shows(operator.run(f"jobs retry {job}", 1), r"code conflict", "a retry of a job in progress")
    operator.run(f"jobs cancel {job}")
    done = operator.run("prefetch --origin films --path series/one.mp4 -q --wait").strip()
    operator.shows(operator.run(f"jobs cancel {done}", 1), rf"The job {done} has ended before, in the state succeeded", "a late cancel")
    operator.shows(operator.run(f"jobs retry {done}", 1), rf"The job {done} has no items to restart: 1 of 1", "a needless retry")


@task
def cost(operator):
    """What does a read of a URL cost?"""
    for url in (f"{operator.url}/series/two.mp4", f"http://127.0.0.1:{operator.service.port}/o/films/series/two.mp4"):
        text = operator.run(f"explain {url} --range 0-1048575")
        operator.shows(text, r"^fetches +1 request, 1\.0 MiB$", f"the cost of {url}")


@task
def capacity(operator):
    """Change the capacity."""
    before = operator.run("policy")
    operator.run("prefetch --origin films --path big.mp4 --wait")
    plan = operator.run("policy set capacityBytes=16MiB --dry-run")
    operator.shows(plan, r"^ *\S+ MiB +capacity +/o/\S+\.mp4$", "an asset of the plan")
    operator.shows(plan, r"^\d+ assets would lose \S+ MiB of the \S+ MiB that are used\.$", "the sum of the plan")
    operator.check(operator.run("policy") == before, "the policy after the plan")
    operator.shows(operator.run("policy set capacityBytes=50GiB"), rf"^capacityBytes +{50 << 30}$", "the change")
    operator.shows(operator.run("policy"), rf"^capacityBytes +{50 << 30}$", "the policy")


@task
def new_origin(operator):
    """Add an origin."""
    settings = "allowPrivateAddresses=true"
    refused = operator.run(f"origins test extra baseURL={operator.url}/nowhere {settings} --path two.mp4", 1, errors=False)
    operator.shows(refused, r"^outcome +refused, \w+$", "the outcome of a wrong URL")
    operator.shows(refused, r"^detail +.*404.*baseURL", "its reason")
    tested = operator.run(f"origins test extra baseURL={operator.url}/series {settings} --path two.mp4")
    operator.shows(tested, r"^length +3\.0 MiB$", "the file of the new origin")
    operator.check(not re.search(r"^extra ", operator.run("origins"), re.M), "an origin that is only tested")
    operator.run(f"origins set extra baseURL={operator.url}/series {settings}")
    operator.shows(operator.run("prefetch --origin extra --path two.mp4 --wait"), r"^The job succeeded", "a prefetch from it")


@task
def rotation(operator):
    """Rotate the credentials of an origin, and the token of a reader."""
    line = "prefetch --origin private --path series/one.mp4 --wait"
    operator.shows(operator.run(line, 1), r"401|credentials", "a refused prefetch")
    tested = operator.run("origins test private --path series/one.mp4", 1, errors=False)
    operator.shows(tested, r"^detail +.*401.*credentials", "the reason of the refusal")
    operator.run("origins set private credentialsFile=second.txt")
    operator.run("origins test private --path series/one.mp4")
    operator.run(line)
    secret = operator.run("token create reader-1 --scope read").strip()
    operator.run("token create reader-2 --scope read")
    operator.run("token revoke reader-1")
    operator.check(operator.read("/v1/assets", secret) == 401, "a revoked token")


@task
def top_reader(operator):
    """Which token reads most bytes?"""
    operator.check(operator.run("readers -n 1 -q") == "viewer\n", "the name of the reader")
    operator.shows(operator.run("readers"), r"^viewer +2 +0 +6\.0 MiB +0 B +\S+ %$", "its bytes")


@task
def slow_trace(operator):
    """Which request is behind a slow trace?"""
    operator.read("/o/slow/series/one.mp4", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    for name in (TRACE, f"00-{TRACE}-00f067aa0ba902b7-01"):
        text = operator.run(f"requests {name}")
        operator.shows(text, r"^request +GET /o/slow/series/one\.mp4$", "the request")
        operator.shows(text, r"^bytes +3\.0 MiB, 0 B from the cache, 3\.0 MiB from the upstream", "the source of its bytes")
    operator.run("requests 0123456789abcdef0123456789abcdef", 1)


def perform(stage):
    operator = Operator(stage)
    for function in TASKS:
        function(operator)
    operator.close()
