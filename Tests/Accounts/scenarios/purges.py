"""Purges that take effect at once and delete their assets in the background."""

import random
import threading
import time

from mocks.base import Answer, Mock

from . import scenario

UNFINISHED = ("queued", "running")


class Editions(Mock):
    """Small files that state their edition; all of them change with `edition`."""

    def __init__(self):
        self.edition = 1
        super().__init__()

    def answer(self, request):
        body = f"{request.name} {self.edition} ".encode() * 20
        return Answer(200, {"ETag": f'"{self.edition}"', "Cache-Control": "max-age=86400"}, body)


def names(count):
    return [f"p/{index}.bin" for index in range(count)]


def fill(t, service, count):
    """Prefetches the assets, which are complete then."""
    items = [{"origin": "m", "path": name} for name in names(count)]
    job = service.api("POST", "/v1/jobs", {"items": items}).json["jobId"]
    t.eventually(
        lambda: service.api("GET", f"/v1/jobs/{job}").json["state"] not in UNFINISHED, "the prefetch does not end", seconds=300
    )
    t.equal(service.api("GET", f"/v1/jobs/{job}").json["state"], "succeeded", "the prefetch")


def edition(reply):
    return int(reply.body.split()[1])


def is_hit(reply):
    return "hit" in reply.fields.get("cache-status", "")


def purge(t, service, upstream, fields=None):
    """Purges all assets, whose next edition the upstream has from now on; returns the identifier of the purge."""
    upstream.edition += 1
    reply = service.api("POST", "/v1/purges", {"prefix": "/o/m/p/"}, fields=fields)
    t.equal(reply.status, 202, "the status of a large purge")
    t.equal(reply.fields.get("location"), f"/v1/purges/{reply.json['planId']}", "its location")
    return reply.json["planId"]


def ends(t, service, identifier, count):
    """Waits until a purge has deleted its assets."""
    t.eventually(lambda: service.api("GET", f"/v1/purges/{identifier}").json["state"] == "done", "the purge does not end", seconds=120)
    found = service.api("GET", f"/v1/purges/{identifier}").json
    t.equal([found["assets"], found["assetsDone"], found["assetsChanged"]], [count, count, 0], "the progress at its end")


@scenario()
def purge_readers(t):
    """Readers get no byte of a selected asset after the 202; an asset that is stored again is a hit and stays one."""
    upstream, count = t.mock(Editions()), 1000 if t.is_brief else 10_000
    service = t.service(t.origin("m", upstream.url, access="public"))
    fill(t, service, count)
    ended, replies = threading.Event(), []

    def read(seed):
        choice = random.Random(seed)
        while not ended.is_set():
            name, began = choice.choice(names(count)), time.monotonic()
            replies.append((began, name, service.send("GET", f"/o/m/{name}")))

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for reader in readers:
        reader.start()
    t.eventually(lambda: len(replies) > 40, "no reads before the purge")
    identifier = purge(t, service, upstream)
    answered = time.monotonic()
    t.equal(service.api("GET", "/v1/assets/" + "0" * 32).status, 404, "an unknown asset")
    ends(t, service, identifier, count)
    before = len(replies)
    t.eventually(lambda: len(replies) > before + 40, "no reads after the purge")
    ended.set()
    for reader in readers:
        reader.join()
    later = [(name, reply) for began, name, reply in replies if began > answered]
    t.equal({edition(reply) for _, reply in later if reply.status == 200}, {2}, "the editions after the 202")
    t.equal({reply.status for _, reply in later}, {200}, "the statuses after the 202")
    name = later[0][0]
    again = service.send("GET", f"/o/m/{name}")
    t.check(is_hit(again) and edition(again) == 2, f"an asset that was stored again is answered {again}")
    stored = {name for _, name, reply in replies if reply.status == 200 and edition(reply) == 2}
    page = service.api("GET", "/v1/assets?prefix=/o/m/p/&limit=1&total=true").json
    t.equal(page["total"], len(stored), "the assets at the end")


@scenario()
def purge_killed(t):
    """kill -9 directly after the 202: the first responses of the next start know the purge, which goes on."""
    upstream, count = t.mock(Editions()), 2000 if t.is_brief else 10_000
    service = t.service(t.origin("m", upstream.url, access="public"))
    fill(t, service, count)
    identifier = purge(t, service, upstream)
    service.kill()
    service.start()
    first = [service.send("GET", f"/o/m/{name}") for name in random.Random(1).sample(names(count), 30)]
    t.equal({edition(reply) for reply in first}, {2}, "the editions after the restart")
    t.check(not any(map(is_hit, first)), "a hit of a selected asset after the restart")
    t.note(f"{service.api('GET', f'/v1/purges/{identifier}').json['assetsDone']} of {count} deleted soon after the restart")
    ends(t, service, identifier, count)
    t.equal(service.api("GET", "/v1/assets?limit=1&total=true").json["total"], 30, "the assets after the restart")
    service.stop()
    status, output, errors = service.run("verify", "--data-directory", service.store)
    t.check(status == 0 and "30 assets, 30 files" in output, f"larder verify: {status} {output[:200]} {errors[:200]}")
    service.start()


@scenario()
def purge_preferred(t):
    """`Prefer: respond-async`, the commit of a plan, and the client."""
    upstream, count = t.mock(Editions()), 1200
    service = t.service(t.origin("m", upstream.url, access="public"))
    preference = {"Prefer": "respond-async"}
    service.send("GET", "/o/m/p/1.bin")
    reply = service.api("POST", "/v1/purges", {"prefix": "/o/m/p/"}, fields=preference)
    t.equal([reply.status, reply.fields.get("preference-applied")], [202, "respond-async"], "a small purge that prefers it")
    ends(t, service, reply.json["planId"], 1)
    t.equal(service.api("POST", "/v1/purges", {"prefix": "/o/m/p/"}).status, 200, "a small purge")
    fill(t, service, count)
    plan = service.api("POST", "/v1/purges", {"prefix": "/o/m/p/", "dryRun": True}, fields=preference)
    t.equal([plan.status, plan.json["assets"]], [200, count], "a dry run")
    committed = service.api("POST", f"/v1/purges/{plan.json['planId']}/commit")
    t.equal([committed.status, committed.json["planId"]], [202, plan.json["planId"]], "the commit of a large plan")
    ends(t, service, plan.json["planId"], count)
    again = service.api("POST", f"/v1/purges/{plan.json['planId']}/commit")
    t.equal(again.status, 409, "a second commit")
    fill(t, service, count)
    status, output, errors = service.run("purge", "--prefix", "/o/m/p/", "--yes")
    t.check(status == 0 and f"Purged {count:,} assets, freed" in output, f"larder purge: {status} {output[-200:]} {errors[-200:]}")
    t.equal(service.api("GET", "/v1/assets?limit=1&total=true").json["total"], 0, "the assets after the command")
