"""The data directory: no plain text in it, changes of the setting, and tampered files and tables."""

import os
import random
import threading

from harness import http
from harness.process import wait_until
from stage import MARKS, Reading, Service, body

FILM = "film-5000011"
SMALL = ["song-70001", "clip-300007", "note-40", "part-262144"]


def ranges(name, chance, count):
    size = len(body("secret", name))
    starts = [chance.randrange(size) for _ in range(count)]
    return [(first, min(size, first + chance.choice([1, 15, 17, 4097, 300_001]))) for first in starts]


def read_all(service, stop, failures):
    """Reads files and ranges until the service is killed; only complete responses and right prefixes are no failure."""
    chance = random.Random()
    while not stop.is_set():
        origin, name = chance.choice(["secret", "secret", "open"]), chance.choice([FILM, *SMALL])
        first, end = chance.choice([(None, None), *ranges(name, chance, 2)])
        try:
            reply = service.read(origin, name, first, end)
        except (OSError, http.ERROR):
            continue
        right = body(origin, name)[first:end]
        if reply.status not in (200, 206) or not right.startswith(reply.body) or reply.is_complete and reply.body != right:
            failures.append(f"{origin}/{name} {first}-{end}: {reply}")


def disk(stage):
    """Reads files and ranges beside kills, and searches the data directory."""
    service, chance = Service(stage, "disk"), random.Random()
    service.key("one")
    service.start()
    for _ in range(2 if stage.is_brief else 10):
        stop, failures = threading.Event(), []
        readers = [threading.Thread(target=read_all, args=(service, stop, failures)) for _ in range(4)]
        limit = sum(request.sent for request in stage.source.requests) + chance.randrange(1 << 20, 6 << 20)
        for reader in readers:
            reader.start()
        # A store that has everything already fetches nothing: then the kill comes a little later.
        wait_until(lambda limit=limit: sum(request.sent for request in stage.source.requests) >= limit, 1.5)
        stop.set()
        service.kill()
        for reader in readers:
            reader.join()
        stage.check(not failures, "a read got wrong bytes", "\n".join(failures[:3]))
        stage.no_plain_text(service)
        service.start()
        for origin in ("secret", "open"):
            stage.check(service.is_right(origin, SMALL[0]), f"{origin}/{SMALL[0]} is wrong after a kill")
        service.ask("POST", "/v1/purges", {"keys": [f"/o/secret/film/{FILM}"]})
    for origin in ("secret", "open"):
        for name in [FILM, *SMALL]:
            stage.check(service.is_right(origin, name), f"{origin}/{name} is wrong")
            for first, end in ranges(name, chance, 8):
                stage.check(service.is_right(origin, name, first, end), f"{origin}/{name} {first}-{end} is wrong")
    service.commit()
    stage.no_plain_text(service)
    stage.check(service.found(MARKS["open"]), "the search does not find the plain text of an origin without encrypt")
    listed = service.assets("/o/secret/")
    stage.check(all(item.get("filePath") is None for item in listed.values()), "an encrypted asset has a file path")
    not_kept(stage, service)
    stage.equal(service.stop(), 0, "the exit code")
    stage.no_plain_text(service, subject="the stopped store")


def not_kept(stage, service):
    """Bytes of responses that are not stored are in deleted files while they are read."""
    for kind, is_deleted in (("held-private", True), ("held", False)):
        name, stage.source.release = f"{kind}-600011", threading.Event()
        readings = {origin: Reading(service, f"/o/{origin}/{kind}/{name}") for origin in ("secret", "open")}
        for reading in readings.values():
            reading.take(300_000)
        hits = service.found(MARKS["open"])
        stage.check(
            not is_deleted or os.geteuid() or any("(deleted)" in hit for hit in hits), "the search finds no deleted file",
            "\n".join(hits),
        )
        stage.no_plain_text(service, subject=f"a fill ({kind})")
        stage.source.release.set()
        for origin, reading in readings.items():
            is_whole = reading.finish() and reading.body == body(origin, name)
            stage.check(is_whole, f"the {kind} response of {origin} is wrong")
            if not is_deleted:
                exported(stage, service, f"/o/{origin}/{kind}/{name}", body(origin, name))


def evict(stage):
    """Reads more than the capacity from several threads, so that ranges are evicted, punched and written again."""
    service = Service(stage, "evict")
    service.capacity = "16MiB"
    service.write()
    service.key("one")
    service.start()
    names, failures = [f"reel{number}-3000017" for number in range(12)], []

    def read(seed):
        chance = random.Random(seed)
        for _ in range(60):
            name = chance.choice(names)
            first = chance.randrange(3_000_000)
            end = min(3_000_017, first + chance.choice([7, 4096, 70_001, 300_007, 1_500_000]))
            reply = service.read("secret", name, first, end)
            if reply.status != 206 or reply.body != body("secret", name)[first:end]:
                failures.append(f"{name} {first}-{end}: {reply}")

    for _ in range(3):
        readers = [threading.Thread(target=read, args=(random.random(),)) for _ in range(6)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        service.commit()
        stage.no_plain_text(service)
        service.kill()
        service.start()
    stage.check(not failures, f"{len(failures)} reads beside evictions are wrong", "\n".join(failures[:3]))
    sent = sum(request.sent for request in stage.source.requests)
    stage.check(sent > sum(len(body("secret", name)) for name in names), "nothing was fetched again: the check is vain")
    found = service.metric("larder_checksum_failures_total")
    stage.equal(found, 0, "the number of blocks that failed their checksum")
    stage.check(not service.wrong("secret", names), "a film is wrong after the evictions")
    service.stop()
    code, output = service.tool("verify")
    stage.check(code == 0, f"verify after evictions: {code}", output)


def exported(stage, service, key, right):
    """An asset whose blocks have arrived in several writes can be exported."""
    service.commit()
    target = service.place / "exported"
    target.unlink(missing_ok=True)
    code, output = service.tool("export", key, target)
    stage.check(code == 0 and target.read_bytes() == right, f"the export of {key}: {code}", output)


def switch(stage):
    """Switches `encrypt` on and off, by a reload and by the API, also while a response is awaited and read."""
    service, names = Service(stage, "switch"), [FILM, *SMALL]
    service.encrypted["secret"] = False
    service.write()
    service.key("one")
    service.start()

    def fill():
        for name in names:
            stage.check(service.is_right("secret", name), f"secret/{name} is wrong")
        service.commit()

    def left():
        origins = {origin["name"]: origin for origin in service.get("/v1/encryption")["origins"]}
        return origins.get("secret", {}).get("assetsLeft", 0)

    def change(is_encrypted, through_api):
        if through_api:
            reply = service.call("PATCH", "/v1/origins/secret", {"encrypt": is_encrypted}, {
                "Content-Type": "application/merge-patch+json"
            })  # fmt: skip
        else:
            service.encrypted["secret"] = is_encrypted
            reply = service.reload()
        stage.check(reply.status == 200, f"encrypt {is_encrypted}: {reply}")

    for through_api in (False,) if stage.is_brief else (False, True):
        way = "PATCH" if through_api else "a reload"
        fill()
        stage.check(service.found(MARKS["secret"]), "no plain text before the change: the search is wrong")
        # One read waits for the second half of its body.
        stage.source.release = threading.Event()
        held = Reading(service, f"/o/secret/held/h{through_api}-600011")
        held.take(300_000)
        if through_api:
            service.ask("DELETE", "/v1/origins/secret")
            service.ask("PUT", "/v1/origins/secret", {
                "baseURL": f"{stage.source.url}/secret", "allowPrivateAddresses": True
            })  # fmt: skip
        change(True, through_api)
        stage.eventually(lambda: left() == 0, f"assets in plain text are left after {way}")
        stage.source.release.set()
        # The purge of the old form ends this read, or it gets the rest.
        is_whole, right = held.finish(), body("secret", f"h{through_api}-600011")
        is_right = held.body == right if is_whole else right.startswith(held.body)
        stage.check(is_right, f"a read that {way} has met is wrong")
        stage.eventually(lambda: not service.found(MARKS["secret"]), f"plain text of the origin is left after {way}")
        fill()
        stage.no_plain_text(service)
        change(False, through_api)
        stage.eventually(lambda: left() == 0, "encrypted assets are left after encrypt was switched off")
        fill()
        stage.check(service.found(MARKS["secret"]), "an origin without encrypt is stored encrypted")
    if not stage.is_brief:
        late(stage, service, change, left)


def late(stage, service, change, left):
    """A read that waits for its head during the change stores no plain text that stays."""
    name, replies, stage.source.head = "late-300007", [], threading.Event()
    path = f"/o/secret/late/{name}"
    reading = threading.Thread(target=lambda: replies.append(service.send("GET", path)))
    reading.start()
    wait_until(lambda: stage.source.of(name))
    change(True, True)
    stage.eventually(lambda: left() == 0, "assets in plain text are left after the change")
    stage.source.head.set()
    reading.join()
    is_right = replies and replies[0].body == body("secret", name)
    stage.check(is_right, "a read that waited during the change is wrong", str(replies))
    stage.eventually(lambda: not service.found(MARKS["secret"]), "plain text of a read from before the change stays", 90, 1)


def tamper(stage):
    """Changes files and tables of a stopped store: no read gets a wrong byte."""
    service, chance = Service(stage, "tamper"), random.Random()
    names = [f"file{number}-300007" for number in range(4 if stage.is_brief else 12)]
    service.key("one")
    service.start()
    for name in names:
        service.read("secret", name)
    service.commit()
    service.stop()
    whole = stage.copy(service, "whole")

    def files():
        rows = service.rows("SELECT key, generation, file_serial, lower(hex(id)) FROM assets ORDER BY key")
        paths = {path.name: path for path in service.store.rglob("*") if path.is_file()}
        return [(key, serial, next(path for name, path in paths.items() if id in name)) for key, _, serial, id in rows]

    def flip(path):
        data = bytearray(path.read_bytes())
        for _ in range(3):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)

    def swap():
        (_, _, one), (_, _, other) = files()[:2]
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)

    def flip_blobs(table, column):
        with service.catalog() as db:
            for (value,) in db.execute(f"SELECT DISTINCT {column} FROM {table}").fetchall():
                data = bytearray(value)
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (bytes(data), value))

    def older():
        for (_, _, path), (_, _, old) in zip(files(), before):
            path.write_bytes(old)

    def sql(*texts):
        with service.catalog() as db:
            for text in texts:
                db.execute(text)

    ways = {
        "flipped bytes": lambda: [flip(path) for _, _, path in files()],
        "two swapped files": swap,
        "flipped nonces": lambda: sql("UPDATE nonces SET nonce = nonce + 1"),
        "swapped nonces": lambda: sql(
            "UPDATE nonces SET nonce = (SELECT n.nonce FROM nonces n WHERE n.file <> nonces.file LIMIT 1)"
        ),
        "no nonces": lambda: sql("DELETE FROM nonces"),
        "moved nonces": lambda: sql('UPDATE nonces SET "end" = "end" - 1000'),
        "flipped sealed keys": lambda: flip_blobs("file_keys", "sealed"),
        "swapped sealed keys": lambda: sql(
            "CREATE TEMP TABLE k AS SELECT file, sealed FROM file_keys",
            "UPDATE file_keys SET sealed = (SELECT sealed FROM k WHERE k.file <> file_keys.file LIMIT 1)",
        ),
        "no sealed keys": lambda: sql("DELETE FROM file_keys"),
        "flipped sums": lambda: flip_blobs("sums", "sums"),
        "no sums": lambda: sql("DELETE FROM sums"),
        # The state of a file from before checksums existed.
        "unverified files": lambda: (
            [flip(path) for _, _, path in files()],
            sql("INSERT INTO unsummed SELECT file FROM file_keys", "DELETE FROM sums"),
        ),
    }
    brief = ("flipped bytes", "flipped nonces")
    for way, change in ways.items():
        if stage.is_brief and way not in brief:
            continue
        service.store = stage.copy_of(whole, way)
        change()
        service.start()
        for name in names:
            reply = service.read("secret", name)
            # A read is refused, or cut, or gets the right bytes.
            right = body("secret", name)
            is_safe = reply.status >= 500 if reply.status != 200 else right.startswith(reply.body)
            is_short = reply.status == 200 and reply.is_complete and reply.body != right
            stage.check(is_safe and not is_short, f"{way}: {name} is wrong", str(reply))
        if way in ("flipped bytes", "no nonces"):
            service.commit()
            stage.check(not service.wrong("secret", names), f"{way}: the bytes are not fetched again")
        service.stop()
    # An older version of each file over a newer one of the same asset: purged and fetched again with another key.
    service.store = stage.copy_of(whole, "older")
    before = [(key, serial, path.read_bytes()) for key, serial, path in files()]
    service.start()
    service.ask("POST", "/v1/purges", {"origin": "secret"})
    for name in names:
        service.read("secret", name)
    service.commit()
    service.stop()
    older()
    service.start()
    stage.check(not service.wrong("secret", names), "older versions of files are served")
    service.stop()
