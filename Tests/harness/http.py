"""Requests of the test programs with the client of the standard library. Conformance has a stricter client of its own."""

import contextlib
import http.client
import json
import ssl
from dataclasses import dataclass, field

ERROR = http.client.HTTPException


@dataclass
class Reply:
    """A response; names of header fields are lower-case. `is_complete` is false for a body that ended early."""

    status: int
    fields: dict = field(default_factory=dict)
    body: bytes = b""
    is_complete: bool = True

    @property
    def json(self):
        """The document of the body; empty without one."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def is_problem(self):
        return self.fields.get("content-type", "").startswith("application/problem+json")

    @property
    def code(self):
        """The code of a problem document, or the status."""
        return self.json.get("code", str(self.status)) if self.is_problem else str(self.status)

    def __str__(self):
        is_shown = self.status >= 300 or self.is_problem
        return f"{self.status} {self.body[:400].decode(errors='replace') if is_shown else f'{len(self.body)} bytes'}"


def encoded(value):
    return json.dumps(value).encode()


def unverified():
    """A TLS context for certificates of tests, which are not verified."""
    return ssl._create_unverified_context()


def connect(port, tls=None, timeout=60, host="127.0.0.1", source=None):
    """A connection to a port of loopback, from the address `source`."""
    options = {"timeout": timeout, "source_address": source and (source, 0)}
    if tls is not None:
        return http.client.HTTPSConnection(host, port, context=tls, **options)
    return http.client.HTTPConnection(host, port, **options)


def connection(port, **options):
    """A connection that the end of a block closes."""
    return contextlib.closing(connect(port, **options))


def exchange(opened, method, target, fields=None, body=None):
    """Sends a request on an open connection; returns its `Reply`."""
    opened.request(method, target, body, fields or {})
    response = opened.getresponse()
    try:
        data, is_complete = response.read(), True
    except http.client.IncompleteRead as error:
        data, is_complete = error.partial, False
    return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, data, is_complete)


def send(port, method, target, fields=None, body=None, **options):
    """Sends a request on a connection of its own; returns its `Reply`."""
    with connection(port, **options) as opened:
        return exchange(opened, method, target, fields, body)
