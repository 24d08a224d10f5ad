"""The names that section files import; `case.Trial` is the `t` that every check receives."""

from harness import certificates
from harness.upstream import LAST_MODIFIED, Answer, asset, confirming, http_date, pattern

from . import isolation
from .case import check, table
from .client import Response, parse_list

__all__ = [
    "LAST_MODIFIED", "Answer", "Response", "asset", "certificates", "check", "confirming", "http_date", "isolation",
    "parse_list", "pattern", "table",
]  # fmt: skip
