"""The list of scenarios; each module below adds its own with `@scenario`."""

from dataclasses import dataclass
from typing import Callable

SCENARIOS = {}


@dataclass
class Scenario:
    name: str
    #: What happens, in one line.
    title: str
    #: `await play(stage)` answers the figures of one round.
    play: Callable
    #: Whether nginx is measured beside Larder.
    beside_nginx: bool
    #: Whether it is one of the few that `--brief` plays, in a small size.
    brief: bool
    #: After so many seconds a round has failed.
    limit: float


def scenario(name, title, beside_nginx=False, brief=False, limit=90):
    def add(play):
        SCENARIOS[name] = Scenario(name, title, play, beside_nginx, brief, limit)
        return play

    return add
