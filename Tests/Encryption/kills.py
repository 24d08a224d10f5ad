"""Kills of a full store beside readers, evictions and aborts: no committed block may differ from its checksum."""

import random
import threading
import time

from harness import http
from harness.process import wait_until
from stage import Service, body

#: Sizes that end inside a block of checksums.
SIZES = [15_070_905 + 1_001 * number for number in range(5)]
#: Findings of `verify` after a kill that are no damage: files without a row.
HARMLESS = ("orphanFile", "problems found")


def read_some(service, names, stop, failures, seed):
    """Reads ranges at different rates, and closes some connections early, until the service is killed."""
    chance = random.Random(seed)
    while not stop.is_set():
        origin, name = chance.choice(["secret", "secret", "open"]), chance.choice(names)
        right = body(origin, name)
        first = chance.choice([0, chance.randrange(len(right))])
        end = chance.choice([len(right), min(len(right), first + chance.choice([1_000, 300_007, 5_000_000]))])
        pause, wanted = chance.choice([0, 0, 0.02]), chance.choice([end - first, chance.randint(1, end - first)])
        fields = {"Range": f"bytes={first}-" if end == len(right) else f"bytes={first}-{end - 1}"}
        try:
            with http.connection(service.port) as opened:
                opened.request("GET", f"/o/{origin}/film/{name}", headers=fields)
                response, got = opened.getresponse(), 0
                while got < wanted and not stop.is_set() and (part := response.read(min(1 << 18, wanted - got))):
                    if response.status == 206 and part != right[first + got :][: len(part)]:
                        failures.append(f"{origin}/{name} at {first + got}")
                    got += len(part)
                    time.sleep(pause)
        except (OSError, http.ERROR, ValueError):
            continue


def kills(stage):
    """Kills the service at random moments; `verify` and a scrub beside readers find no damage."""
    service, chance = Service(stage, "kills"), random.Random()
    service.capacity = "40MiB"
    service.write()
    service.key("one")
    names = [f"reel{number}-{size}" for number, size in enumerate(SIZES)]
    for number in range(4 if stage.is_brief else 40):
        service.start()
        stop, failures = threading.Event(), []
        readers = [
            threading.Thread(target=read_some, args=(service, names, stop, failures, chance.random())) for _ in range(8)
        ]
        for reader in readers:
            reader.start()
        time.sleep(chance.random())  # any moment will do
        scrub = scrubbed(service)
        stage.check(scrub["badBlocks"] == 0, f"the scrub {number + 1} finds damage", str(scrub))
        time.sleep(2 * chance.random())
        service.kill()
        stop.set()
        for reader in readers:
            reader.join()
        stage.check(not failures, "a read got wrong bytes", "\n".join(failures[:3]))
        _, output = service.tool("verify")
        damage = [line for line in output.splitlines() if line.strip() and not any(word in line for word in HARMLESS)]
        damage = [line for line in damage if "no problems found" not in line]
        stage.check(not damage, f"verify finds damage after the kill {number + 1}", "\n".join(damage[:20]))


def scrubbed(service):
    """The report of a scrub of all assets."""
    place = f"/v1/scrubs/{service.call('POST', '/v1/scrubs', {}).json['scrubId']}"
    wait_until(lambda: service.get(place)["state"] != "running", 60, 0.1)
    return service.get(place)
