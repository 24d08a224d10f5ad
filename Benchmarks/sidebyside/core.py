"""Larder alone on one core: processor seconds per GB of bodies, and requests per processor second, with and without TLS."""

from .load import Load
from .processes import processor_seconds
from .stage import LOAD_CORE
from .warm import MEBI, SIZES, TARGET, Warm

#: Requests of the API with small responses.
CALLS = {"a health check": "/health/ready", "a list of jobs": "/v1/jobs?limit=1"}
CONNECTIONS = 16


class Alone(Warm):
    """A Larder with the whole file in its cache."""

    def __init__(self, stage, length, tls):
        self.length, self.load, self.stage, self.floor = length, Load(stage.directory, core=LOAD_CORE), stage, None
        stage.original(TARGET[1:], length)
        settings = []
        if tls:
            certificate, key = stage.certificate()
            settings = [f"listen.tls.certificateFile={certificate}", f"listen.tls.keyFile={key}"]
        self.larder = stage.larder(stage.upstream(), *settings)
        self.settle()

    def call(self, target, seconds, seed):
        """The processor time of a request of the API. Its body is shorter than the longest head that `Load` permits."""
        before = processor_seconds(self.larder.number)
        run = self.load.run(self.larder.port, target, 1, 1, CONNECTIONS, seconds, seed, scheme=self.larder.scheme)
        return (processor_seconds(self.larder.number) - before) / run.requests


def core(table, stage, rounds):
    seconds = 1 if stage.is_brief else 3
    for seed in range(1, rounds + 1):
        for tls in (False, True):
            with stage.apart() as here:
                alone, title = Alone(here, (64 if stage.is_brief else 1024) * MEBI, tls), "TLS: " if tls else ""
                for name in ("64 KiB", "1 MiB"):
                    spent = alone.run(alone.larder, SIZES[name], CONNECTIONS, seconds, seed)[1]
                    table.add(f"{title}processor seconds per GB, {name}", spent / SIZES[name] * 1e9)
                    table.add(f"{title}requests per processor second, {name}", 1 / spent)
                for name, target in CALLS.items():
                    table.add(f"{title}requests per processor second, {name}", 1 / alone.call(target, seconds, seed))
