"""Encrypted content beside plain content, both from Larder: processor time of a read from the page cache, and the rows
of the catalog for each GiB."""

import secrets
import sqlite3

from .load import Load
from .stage import LOAD_CORE
from .warm import MEBI, SIZES, TARGET, Warm

#: Processor time of encrypted reads ÷ that of plain ones, at most: over HTTP, and over TLS.
MOST = {"64 KiB": (2.0, 1.2), "1 MiB": (2.0, 1.2)}


class Encrypted(Warm):
    """A Larder whose origin is encrypted, and one whose origin is not. `tls`: with TLS to the client."""

    def __init__(self, stage, length, tls):
        self.length, self.load, self.stage, self.floor = length, Load(stage.directory, core=LOAD_CORE), stage, None
        stage.original(TARGET[1:], length)
        upstream, keys = stage.upstream(), stage.place("keys")
        (keys / "first").write_bytes(secrets.token_bytes(32))
        (keys / "first").chmod(0o600)
        settings = []
        if tls:
            certificate, key = stage.certificate()
            settings = [f"listen.tls.certificateFile={certificate}", f"listen.tls.keyFile={key}"]
        self.plain = stage.larder(upstream, *settings)
        self.larder = stage.larder(
            upstream, *settings, f"encryption.keysDirectory={keys}", "origins.media.encrypt=true")
        for server in (self.plain, self.larder):
            self.settle(server)

    def rows(self, server):
        """The numbers of rows for each GiB, by table."""
        path = server.process.store / "catalog.sqlite"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as catalog:
            count = {
                name: catalog.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
                for name in ("extents", "sums", "nonces")
            }
        return {name: number * 1024 * MEBI / self.length for name, number in count.items()}


def encrypted(table, stage, rounds):
    for seed in range(1, rounds + 1):
        for tls in (False, True):
            with stage.apart() as here:
                servers = Encrypted(here, (64 if stage.is_brief else 1024) * MEBI, tls)
                for name, limits in stage.sizes(MOST).items():
                    spent = {}
                    for kind, server in (("plain", servers.plain), ("encrypted", servers.larder)):
                        seconds = servers.run(server, SIZES[name], 16, 1 if stage.is_brief else 3, seed)[1]
                        spent[kind] = seconds * 1e6
                    title = f"{'TLS: ' if tls else ''}processor µs per request, encrypted ÷ plain, {name}"
                    table.add(title, spent["encrypted"] / spent["plain"], spent, most=limits[tls])
                if not tls:
                    plain, sealed = servers.rows(servers.plain), servers.rows(servers.larder)
                    more = sum(sealed.values()) - sum(plain.values())
                    table.add("rows of the catalog per GiB, encrypted − plain", more, sealed)
