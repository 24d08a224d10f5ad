"""The scenarios; each module adds its functions to `SCENARIOS` with the decorator `scenario`."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Scenario:
    name: str
    function: Callable
    needs: tuple
    is_brief: bool

    @property
    def summary(self):
        return (self.function.__doc__ or "").strip().split("\n")[0]


#: In the order of the report.
MODULES = (
    "doubles", "s3", "transient", "waiting", "purges", "paths", "oauth", "links", "redirects", "forward", "readers", "issued", "signed", "caches", "streams", "proxies",
    "certificates", "matrix", "reload", "secret",
)  # fmt: skip
#: In order of definition.
SCENARIOS: dict[str, Scenario] = {}


def scenario(needs=(), brief=True):
    """Adds a function as a scenario; its name in camelCase selects it. `needs` are names of tools; with `brief` false it
    runs in the full test only."""

    def add(function):
        first, *rest = function.__name__.split("_")
        name = first + "".join(word.capitalize() for word in rest)
        SCENARIOS[name] = Scenario(name, function, tuple(needs), brief)
        return function

    return add


def load():
    """Imports all modules; returns the scenarios by name."""
    for module in MODULES:
        importlib.import_module(f"{__name__}.{module}")
    return SCENARIOS
