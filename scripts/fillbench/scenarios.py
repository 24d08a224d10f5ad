"""Registry of scenarios; the modules of this package register theirs with `@scenario`."""

from dataclasses import dataclass
from typing import Callable

SCENARIOS = {}


@dataclass
class Scenario:
    name: str
    #: Description in one line.
    title: str
    #: `await play(stage)` runs one round and returns its figures.
    play: Callable
    #: Whether nginx is measured too.
    beside_nginx: bool
    #: Whether `--brief` includes the scenario, in a small size.
    brief: bool
    #: Time limit of a round in seconds.
    limit: float


def scenario(name, title, beside_nginx=False, brief=False, limit=90):
    def add(play):
        SCENARIOS[name] = Scenario(name, title, play, beside_nginx, brief, limit)
        return play

    return add
