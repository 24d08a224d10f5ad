"""A synthetic store of many assets: rows inserted without the service, and sparse files."""

import hashlib
import os
import pathlib
import random
import sqlite3
import time

from . import sums

KIBI, MEBI = 1 << 10, 1 << 20
#: Without a configured capacity, eviction segments have this size; each extent lies in its own segment.
SEGMENT, EXTENT = 16 * MEBI, 64 * KIBI
#: File serials have a separate high half for each run of the service; this is that of the first run.
FIRST_RUN = 1 << 32


class Stock:
    """`assets` assets named /o/media/many/0 and on, of `extents` extents each, in the directory of a stopped service.

    The row of the one asset in it is the template. Last use, hits and creation have three different orders. The
    first `solid` extents in eviction order have blocks on the disk; the others read as zeros.
    """

    def __init__(self, place, assets, extents, solid):
        self.store, self.assets, self.extents = pathlib.Path(place) / "store", assets, extents
        chance, now = random.Random(1), int(time.time() * 1000)
        ages = chance.sample(range(assets), assets)
        #: The numbers of the assets, least recently used first.
        self.oldest = sorted(range(assets), key=lambda number: -ages[number])
        self.make_rows(lambda number: (now - 1000 * (ages[number] + 1), chance.randrange(1000), now - 1000 * number))
        for place, number in enumerate(self.oldest):
            self.make_file(number, isSolid=place * extents < solid)

    def target(self, number):
        return f"/o/media/many/{number}"

    def identifier(self, number):
        return hashlib.sha256(self.target(number).encode()).digest()[:16]

    def first(self, extent):
        """The first byte of one of an asset's extents."""
        return extent * SEGMENT

    @property
    def length(self):
        """Of each asset: its last segment has only the extent."""
        return self.first(self.extents - 1) + EXTENT

    def make_rows(self, figures):
        catalog = sqlite3.connect(self.store / "catalog.sqlite", isolation_level=None)
        catalog.row_factory = sqlite3.Row
        catalog.create_function("larder_sum", -1, sums.of_row)
        catalog.create_function("larder_usage", 5, sums.groups)
        catalog.execute("BEGIN")
        pattern = dict(catalog.execute("SELECT * FROM assets").fetchone())
        catalog.execute("DELETE FROM extents")
        catalog.execute("DELETE FROM sums")
        catalog.execute("DELETE FROM assets")
        columns = ", ".join(pattern)
        catalog.executemany(
            f"INSERT INTO assets ({columns}) VALUES ({', '.join(f':{name}' for name in pattern)})",
            ({**pattern, **self.row(number, pattern, *figures(number))} for number in range(self.assets)),
        )
        catalog.executemany(
            "INSERT INTO extents VALUES (?, ?, ?)",
            (
                (FIRST_RUN + number, self.first(extent), self.first(extent) + EXTENT)
                for number in range(self.assets)
                for extent in range(self.extents)
            ),
        )
        zeros = sums.crc32c(bytes(EXTENT))
        catalog.executemany(
            "INSERT INTO sums VALUES (?, ?, ?)",
            (
                (FIRST_RUN + number, extent, sums.row_of_one(FIRST_RUN + number, extent, EXTENT, zeros))
                for number in range(self.assets)
                for extent in range(self.extents)
            ),
        )
        catalog.execute("COMMIT")
        catalog.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        catalog.close()

    def row(self, number, pattern, used, hits, created):
        base = pattern["clear_url"].rpartition("/")[0]
        return {
            "id": self.identifier(number), "key": self.target(number), "clear_url": f"{base}/{number}",
            "file_serial": FIRST_RUN + number, "length": self.length, "cached_bytes": self.extents * EXTENT,
            "last_access_at": used, "hits": hits, "created_at": created,
        }  # fmt: skip

    def make_file(self, number, isSolid):
        name = self.identifier(number).hex()
        path = self.store / "assets" / name[:2] / f"{name}-1-{FIRST_RUN + number:x}.bytes"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.truncate(descriptor, self.length)
        for extent in range(self.extents if isSolid else 0):
            os.posix_fallocate(descriptor, self.first(extent), EXTENT)
        os.close(descriptor)
