"""Conversion of stored assets after a change of `encrypt`: no byte is fetched again, and none stays in the earlier form."""

import random

from harness.process import wait_until
from stage import MARKS, Reading, Service, body

FILM, LONG = "film-5000011", "reel-30000017"
NAMES = [FILM, "song-70001", "clip-300007", "note-40", "part-262144"]
#: The stored part of a file that is not complete.
PART = ("reel-3000017", 1_000_003, 2_500_009)


def convert(stage):
    service, chance = Service(stage, "convert", onChange="convert"), random.Random()
    service.encrypted["secret"] = False
    service.write()
    service.key("one")
    service.start()
    names = [*NAMES, *(f"small{number}-{number + 70_001}" for number in range(20 if stage.is_brief else 200)), LONG]
    service.hold("secret", names)
    stage.check(service.is_right("secret", *PART), "a range is wrong before the change")
    pinned = service.assets("/o/secret/")[f"/o/secret/film/{FILM}"]["assetId"]
    service.ask("PATCH", f"/v1/assets/{pinned}", {"pinned": True, "tags": ["kept"]})
    service.commit()
    before = disk_bytes(service)

    def left():
        origins = {origin["name"]: origin for origin in service.get("/v1/encryption")["origins"]}
        return origins.get("secret", {}).get("assetsLeft", 0)

    def change(is_encrypted):
        service.encrypted["secret"] = is_encrypted
        reply = service.reload()
        stage.check(reply.status == 200, f"encrypt {is_encrypted}: {reply}")

    def all_right(moment):
        stage.check(not service.wrong("secret", names), f"a file is wrong {moment}")
        stage.check(service.is_right("secret", *PART), f"a range is wrong {moment}")
        stage.equal(len(stage.source.requests), fetched, f"the number of requests to the upstream {moment}")
        asset = service.get(f"/v1/assets/{pinned}")
        stage.check(asset["pinned"] and asset["tags"] == ["kept"], f"the pin is lost {moment}")

    fetched = len(stage.source.requests)
    for is_encrypted in (True, False) if stage.is_brief else (True, False) * 3:
        moment = f"after encrypt was switched {'on' if is_encrypted else 'off'}"
        # The reader of a film holds it in the earlier form.
        reading = Reading(service, f"/o/secret/film/{LONG}")
        reading.take(100_000)
        change(is_encrypted)
        stage.eventually(lambda: left() <= 1, f"assets are left {moment}", 60)
        all_right(f"{moment}, beside a reader")
        stage.equal(left(), 1, f"the number of assets in use {moment}")
        stage.check(reading.finish() and reading.body == body("secret", LONG), f"the film of a reader is wrong {moment}")
        stage.eventually(lambda: left() == 0, f"the film of the reader is left {moment}", 60)
        service.commit()
        if is_encrypted:
            stage.no_plain_text(service, subject=f"the store {moment}")
        else:
            stage.check(service.found(MARKS["secret"]), f"no plain text {moment}")
        all_right(moment)
        difference = abs(disk_bytes(service) - before)
        stage.check(difference < 4 << 20, f"the disk usage differs by {difference} bytes {moment}")
    killed(stage, service, chance, change, left, all_right)
    stage.equal(service.stop(), 0, "the exit code")
    code, output = service.tool("verify")
    stage.check(code == 0, f"verify: {code}", output)
    full(stage)
    damaged(stage)
    purged(stage)
    grown(stage)
    shredded(stage)


def killed(stage, service, chance, change, left, all_right):
    """Kills the service during conversions; each start goes on."""
    kills = 0
    for number in range(2 if stage.is_brief else 8):
        is_encrypted = not service.encrypted["secret"]
        change(is_encrypted)
        count = len(service.assets("/o/secret/"))
        few = chance.randrange(1, count)
        remaining = wait_until(lambda few=few: (left() or -1) <= few and left(), 60)
        service.kill()
        kills += 1 if remaining else 0
        service.start()
        stage.eventually(lambda: left() == 0, f"assets are left after the kill {number + 1}", 60)
        all_right(f"after the kill {number + 1}")
        service.commit()
        if is_encrypted:
            stage.no_plain_text(service, subject=f"the store after the kill {number + 1}")
    stage.check(kills, "no kill has met a conversion: the test is vain")


def plain(stage, name, names, **settings):
    """A service with these files in plain text."""
    service = Service(stage, name, onChange="convert")
    service.encrypted["secret"] = False
    vars(service).update(settings)
    service.write()
    service.key("one")
    service.start()
    for file in names:
        stage.check(service.is_right("secret", file), f"{file} is wrong")
    service.commit()
    return service


def converted(stage, service, names, subject):
    """Waits until all assets are encrypted, and reads the files."""
    def left():
        return service.get("/v1/encryption")["origins"][0]["assetsLeft"]

    stage.eventually(lambda: left() == 0, f"an asset of {subject} is left")
    service.commit()
    stage.no_plain_text(service, subject=subject)
    stage.check(not service.wrong("secret", names), f"a file of {subject} is wrong")


def full(stage):
    """An asset without space beside its earlier form is purged, and the others then have space; no plain text stays."""
    names = ["film-9000011", "song-70001"]
    service = plain(stage, "full", names, capacity="16MiB")
    service.encrypted["secret"] = True
    stage.equal(service.reload().status, 200, "the reload")
    converted(stage, service, names, "the full store")
    films = [f"part{number}-14900003" for number in range(4)]
    service = plain(stage, "crowded", films, capacity="64MiB")
    fetched = len(stage.source.requests)
    service.encrypted["secret"] = True
    stage.equal(service.reload().status, 200, "the reload")
    converted(stage, service, films, "the crowded store")
    again = {request.path for request in stage.source.requests[fetched:]}
    stage.equal(len(again), 1, "the number of films that were fetched again")


def purged(stage):
    """Assets that are purged beside their conversion do not come back."""
    names = [f"title{number}-20011" for number in range(300 if stage.is_brief else 1500)]
    service = plain(stage, "purged", [])
    service.hold("secret", names)
    service.commit()
    for is_encrypted in (True, False) if stage.is_brief else (True, False) * 2:
        service.encrypted["secret"] = is_encrypted
        stage.equal(service.reload().status, 200, "the reload")
        wait_until(lambda: service.get("/v1/encryption")["origins"][0]["assetsLeft"] < 0.9 * len(names), 30, 0.01)
        asked = service.call("POST", "/v1/purges", {"prefix": "/o/secret/"}, {"Prefer": "respond-async"})
        stage.equal(asked.status, 202, f"the purge: {asked}")
        stage.eventually(lambda: not service.assets("/o/secret/"), "assets are left after the purge", 60)
        stage.eventually(lambda: not left_in_other_form(service), "the search does not end", 60)
        stage.equal(len(service.assets("/o/secret/")), 0, "the number of assets that came back")
        service.hold("secret", names)
        service.commit()


def left_in_other_form(service):
    return sum(origin["assetsLeft"] for origin in service.get("/v1/encryption")["origins"])


def grown(stage):
    """Bytes that are fetched during a conversion stay, and it counts no space twice."""
    film, others = "epic-60000011", [f"extra{number}-3000011" for number in range(4)]
    service = plain(stage, "grown", others, capacity="180MiB")
    stage.check(service.is_right("secret", film, 0, 50_000_000), "a range is wrong")
    service.commit()
    before = service.get("/v1/evictions")["items"]
    service.encrypted["secret"] = True
    stage.equal(service.reload().status, 200, "the reload")
    stage.check(service.is_right("secret", film, 55_000_000, 56_000_000), "a range beside the conversion is wrong")
    fetched = len(stage.source.requests)
    stage.eventually(lambda: not left_in_other_form(service), "an asset is left", 60)
    stage.check(service.is_right("secret", film, 55_000_000, 56_000_000), "a range is wrong after the conversion")
    stage.check(service.is_right("secret", film, 0, 50_000_000), "the film is wrong after the conversion")
    stage.equal(len(stage.source.requests), fetched, "the number of requests to the upstream")
    stage.equal(service.get("/v1/evictions")["items"], before, "the evictions")
    stage.no_plain_text(service, subject="the grown store")


def shredded(stage):
    """An asset that is erased during its conversion does not stop the others."""
    film, others = "long-60000011", [f"short{number}-30011" for number in range(20)]
    service = plain(stage, "shredded", [])
    service.encrypted["secret"] = True
    stage.equal(service.reload().status, 200, "the reload")
    service.hold("secret", [film, *others])
    service.commit()
    service.encrypted["secret"] = False
    stage.equal(service.reload().status, 200, "the reload")
    reply = service.call("POST", "/v1/purges", {"keys": [f"/o/secret/film/{film}"], "shred": True})
    # Its conversion can be done already: then it is plain text, and the purge says so.
    stage.check(reply.status in (200, 202, 422), f"the erasure: {reply}")
    stage.eventually(lambda: not left_in_other_form(service), "an asset is left", 60)
    fetched = len(stage.source.requests)
    stage.check(not service.wrong("secret", others), "a file is wrong")
    stage.equal(len(stage.source.requests), fetched, "the number of requests to the upstream")
    if reply.status != 422:
        stage.check(f"/o/secret/film/{film}" not in service.assets(), "an erased film came back")


def damaged(stage):
    """A damaged block is not converted, but fetched again."""
    names = [FILM, "song-70001"]
    service = plain(stage, "damaged", names)
    file = max(service.store.rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
    service.stop()
    with open(file, "r+b") as bytes_on_disk:
        bytes_on_disk.seek(1_000_000)
        bytes_on_disk.write(b"damage")
    service.encrypted["secret"] = True
    service.write()
    service.start()
    fetched = sum(request.sent for request in stage.source.requests)
    converted(stage, service, names, "the damaged store")
    again = sum(request.sent for request in stage.source.requests) - fetched
    stage.check(0 < again < 1 << 20, f"{again} bytes were fetched again for one damaged block")


def disk_bytes(service):
    return service.get("/v1/stats")["store"]["diskBytes"]
