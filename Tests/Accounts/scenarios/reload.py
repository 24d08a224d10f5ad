"""Reloads of the configuration: by signal, by a change of the file, and over the API."""

import itertools
import json
import signal
import threading
import time

from mocks.base import content
from mocks.objects import Accounts, ObjectStore
from trial import nested

from . import scenario
from .readers import SIZE, Files, Tokens

#: A change of the file is noticed within this many seconds.
NOTICE = 25


def stage(t, **settings):
    upstream = t.mock(Files())
    base = t.origin("media", f"{upstream.url}/media")
    return upstream, base, t.service({**base, **settings})


def configuration(service):
    return service.api("GET", "/v1/configuration").json


def reload(service):
    return service.api("POST", "/v1/configuration/reload")


def is_mounted(service, name="extra"):
    return service.read(f"/o/{name}/a.bin", "0-9").status == 206


def check_good(t, service, subject):
    t.equal(configuration(service).get("error", "missing"), None, f"error of the configuration {subject}")
    t.equal(service.metric("larder_config_reload_success"), 1, f"larder_config_reload_success {subject}")
    stamp = service.metric("larder_config_last_reload_success_timestamp_seconds")
    t.check(stamp and abs(stamp - time.time()) < 120, f"the metric of the last reload {subject} is {stamp}")


@scenario()
def reload_ways(t):
    """An origin is added by SIGHUP, removed by a change of the file, and added again over the API."""
    upstream, base, service = stage(t)
    check_good(t, service, "at the start")
    extra = t.origin("extra", f"{upstream.url}/extra")
    loaded = configuration(service).get("loadedAt")
    service.configure({**base, **extra})
    service.process.send_signal(signal.SIGHUP)
    t.eventually(lambda: is_mounted(service), "SIGHUP does not mount a new origin")
    t.check(configuration(service).get("loadedAt") != loaded, "loadedAt stays after SIGHUP")
    service.configure(base)
    t.eventually(lambda: not is_mounted(service), "a change of the file does not unmount a removed origin", NOTICE)
    t.equal(service.read("/o/extra/a.bin").status, 404, "the status of a removed origin")
    service.configure({**base, **extra, "log.level": "trace", "limits.writeTimeout": "4m"})
    reply = reload(service)
    if t.equal(reply.status, 200, f"the status of a reload ({reply})"):
        t.equal(set(reply.json), {"loadedAt", "changed", "needsRestart"}, "the members of a reload")
        t.equal(reply.json.get("needsRestart"), [], "needsRestart")
        changed = str(reply.json.get("changed"))
        t.check("limits.writeTimeout" in changed and "extra" in changed, f"changed is {changed}")
    t.check(is_mounted(service), "a reload over the API does not mount an origin")
    t.equal(reload(service).json.get("changed"), [], "changed of a reload without a change")
    t.refused(service.send("POST", "/v1/configuration/reload"), "a reload without a token", (401,))
    check_good(t, service, "after the reloads")


@scenario()
def reload_link(t):
    """The file is behind links that are swapped, as in a ConfigMap of Kubernetes."""
    upstream, base, service = stage(t)
    service.stop()
    volume = service.file.parent / "volume"
    volume.mkdir()

    def publish(version, settings):
        """A new directory, and an atomic swap of the link `..data`."""
        service.configure(settings)
        folder = volume / f"..{version}"
        folder.mkdir()
        service.file.replace(folder / "larder.json")
        link = volume / "..part"
        link.symlink_to(folder.name)
        link.replace(volume / "..data")

    publish("first", base)
    (volume / "larder.json").symlink_to("..data/larder.json")
    regular, service.file = service.file, volume / "larder.json"
    service.start()
    service.file = regular
    publish("second", {**base, **t.origin("extra", f"{upstream.url}/extra")})
    t.eventually(lambda: is_mounted(service), "a swapped link is not noticed", NOTICE)
    publish("third", base)
    t.eventually(lambda: not is_mounted(service), "a second swap is not noticed", NOTICE)
    check_good(t, service, "after the swaps")
    service.file = volume / "larder.json"


@scenario()
def reload_broken(t):
    """A broken file keeps the last good settings, names its first fault, and a repaired one is loaded."""
    upstream, base, service = stage(t)
    extra = t.origin("extra", f"{upstream.url}/extra")
    good = service.file.read_text()
    broken = {
        "no JSON": good[:-20], "an unknown key": json.dumps(nested({**base, **extra, "nonsense.key": 1})),
        "a wrong value": json.dumps(nested({**base, **extra, "policy.capacity": "20GG"})),
        "a wrong origin": json.dumps(nested({**base, **t.origin("extra", "ftp://127.0.0.1/x")})),
    }  # fmt: skip
    loaded = configuration(service).get("loadedAt")
    for name, text in broken.items():
        service.replace_file(text)
        reply = reload(service)
        t.refused(reply, f"a reload of {name}", (409, 422))
        service.process.send_signal(signal.SIGHUP)
        t.eventually(lambda: configuration(service).get("error"), f"{name}: the configuration shows no error", 5)
        error = configuration(service).get("error") or {}
        t.check({"key", "message", "at"} <= set(error), f"{name}: the members of error are {sorted(error)}")
        if name == "a wrong value":
            t.equal(error.get("key"), "policy.capacity", f"{name}: the key of the error")
        t.equal(configuration(service).get("loadedAt"), loaded, f"{name}: loadedAt")
        t.equal(service.metric("larder_config_reload_success"), 0, f"{name}: larder_config_reload_success")
        t.equal((is_mounted(service, "media"), is_mounted(service)), (True, False), f"{name}: the origins")
    service.configure({**base, **extra})
    t.equal(reload(service).status, 200, "the status of a reload of the repaired file")
    t.check(is_mounted(service), "the repaired file is not loaded")
    check_good(t, service, "after the repair")
    service.file.unlink()
    t.refused(reload(service), "a reload without a file", (409, 422))
    t.check(is_mounted(service), "a missing file unmounts origins")
    service.configure({**base, **extra})


@scenario()
def reload_truncated(t):
    """A file that a writer has truncated and not written yet unmounts nothing."""
    upstream, base, service = stage(t)
    good, loaded = service.file.read_text(), configuration(service).get("loadedAt")
    for text in ("", "\n"):
        service.replace_file(text)
        reply = reload(service)
        t.refused(reply, f"a reload of the file {text!r}", (409, 422))
        t.check(is_mounted(service, "media"), f"the file {text!r} unmounts the origins")
        t.equal(configuration(service).get("loadedAt"), loaded, f"loadedAt after the file {text!r}")
        service.replace_file(good)
        reload(service)
        loaded = configuration(service).get("loadedAt")


@scenario()
def reload_slow_writer(t):
    """A file that is written slowly in place unmounts nothing, and is applied at its end; an incomplete one is refused."""
    upstream, base, service = stage(t)
    extra = t.origin("extra", f"{upstream.url}/extra")
    service.configure({**base, **extra})
    t.equal(reload(service).status, 200, "the status of a reload")
    document, loaded = json.loads(service.file.read_text()), configuration(service).get("loadedAt")
    origins = document.pop("origins")
    document["limits"]["writeTimeout"] = "7m"
    start = "".join(f"{name}: {json.dumps(value)}\n" for name, value in document.items()) + "origins:\n"
    start += f"  media: {json.dumps(origins['media'])}\n"
    with open(service.file, "w") as file:
        file.write(start)
        file.flush()
        for _ in range(25):
            t.check(is_mounted(service), "the first half of a file unmounts an origin")
            time.sleep(0.1)
        file.write(f"  extra: {json.dumps(origins['extra'])}\n")
    t.eventually(lambda: configuration(service).get("loadedAt") != loaded, "the whole file is not applied", NOTICE)
    t.check(is_mounted(service), "the whole file unmounts an origin")
    service.replace_file(start.rstrip("\n"))
    t.eventually(lambda: "incomplete" in str(configuration(service).get("error")), "an incomplete file is no error", NOTICE)
    t.check(is_mounted(service), "an incomplete file unmounts an origin")
    t.refused(reload(service), "a reload of an incomplete file", (409, 422))


@scenario(brief=False)
def reload_restart(t):
    """Settings that need a restart are reported, the others of the same file come into force."""
    upstream, base, service = stage(t)
    extra = t.origin("extra", f"{upstream.url}/extra")
    service.configure({**base, **extra, "dataDirectory": str(service.store) + "-other"})
    reply = reload(service)
    t.check(reply.status in (200, 409, 422), f"a reload that needs a restart: the answer is {reply}")
    t.eventually(
        lambda: "dataDirectory" in configuration(service).get("needsRestart", []), "needsRestart does not name dataDirectory"
    )
    if reply.status == 200:
        t.equal(reply.json.get("needsRestart"), ["dataDirectory"], "needsRestart of the reload")
        t.check(is_mounted(service), "the other settings of the file are not in force")
    t.equal(service.read("/o/media/b.bin", "0-9").status, 206, "the status of a read afterwards")
    service.configure({**base, **extra})
    t.equal(reload(service).status, 200, "the status of a reload of the former directory")
    t.equal(configuration(service).get("needsRestart"), [], "needsRestart after the former directory")


@scenario()
def reload_document(t):
    """GET /v1/configuration names the source of each value and masks secrets."""
    secret = t.vault.new("originHeader")
    upstream = t.mock(Files())
    settings = t.origin("media", f"{upstream.url}/media", **{"headers.X-Key": secret})
    service = t.service(settings, {"LARDER_JOBS_CONCURRENCY": "7"})
    document = configuration(service)
    t.equal(set(document), {"file", "loadedAt", "error", "needsRestart", "settings"}, "the members")
    t.equal(document.get("file"), str(service.file), "file")
    shown = {entry["key"]: entry for entry in document.get("settings", [])}
    expected = {
        "jobs.concurrency": "environment", "access.token": "environment", "log.level": "file", "policy.algorithm": "default",
        "origins.media.baseURL": "file",
    }  # fmt: skip
    for key, source in expected.items():
        t.equal(shown.get(key, {}).get("source"), source, f"the source of {key}")
    values = json.dumps(document, ensure_ascii=False)
    t.check(secret not in values and service.token not in values, "the document shows a secret")
    t.check("•••" in str(shown.get("access.token", {}).get("value")), f"access.token is {shown.get('access.token')}")
    tokens = Tokens(t)
    reader = tokens.add("reader", "read")
    service.configure({**settings, "access.tokensFile": tokens.write()})
    reload(service)
    reply = service.api("GET", "/v1/configuration", token=reader)
    t.refused(reply, "the configuration with a read token", (403,), ("tokenScope", "forbidden"), "admin")


@scenario()
def reload_under_load(t):
    """No request fails during 30 reloads by signal, file and API, and no answer has wrong bytes."""
    upstream, base, service = stage(t)
    extra = t.origin("extra", f"{upstream.url}/extra")
    rounds, readers = (9, 6) if t.is_brief else (30, 16)
    done, failures, counts = threading.Event(), [], itertools.count()

    def reader(index):
        number = 0
        while not done.is_set():
            name = f"load{index}-{number % 20}.bin"
            reply = service.read(f"/o/media/{name}", "0-9999")
            if reply.status != 206 or reply.body != content(f"media/{name}", SIZE)[:10_000]:
                failures.append(str(reply))
            number += 1
            next(counts)

    def change():
        for number in range(rounds):
            has_extra = number % 2 == 0
            service.configure({**base, **(extra if has_extra else {}), "limits.writeTimeout": f"{number + 1}m"})
            if number % 3 == 0:
                service.process.send_signal(signal.SIGHUP)
            elif number % 3 == 1:
                reply = reload(service)
                t.check(reply.status == 200, f"reload {number}: the answer is {reply}")
            t.eventually(lambda wanted=has_extra: is_mounted(service) == wanted, f"reload {number} is not in force", NOTICE)
        done.set()

    t.together(readers + 1, lambda index: change() if index == readers else reader(index))
    done.set()
    t.check(not failures, f"{len(failures)} requests failed during the reloads, one with {failures[:1]}")
    t.note(f"{next(counts)} reads during {rounds} reloads")
    t.check(service.process.poll() is None, "the service has ended")
    check_good(t, service, "after the load")


@scenario()
def reload_keys(t):
    """Keys of the settings change with a reload; cached content stays, and the next request is signed with the new keys."""
    accounts = Accounts(t.vault)
    store = t.mock(ObjectStore(accounts))

    def settings(keys):
        return t.origin(
            "media", f"{store.url}/media", auth_type="s3", auth_credentials="static", auth_accessKeyId=keys.access_key,
            auth_secretAccessKey=keys.secret,
        )  # fmt: skip

    first, second = accounts.permanent(), accounts.permanent()
    service = t.service(settings(first))
    t.bytes(service.read("/o/media/a.bin"), content("a.bin", SIZE), "a read with the first keys")
    first.is_revoked = True
    service.configure(settings(second))
    reply = reload(service)
    t.equal(reply.status, 200, f"the status of the reload ({reply})")
    t.check("auth" in str(reply.json.get("changed")), f"changed is {reply.json.get('changed')}")
    t.bytes(service.read("/o/media/b.bin"), content("b.bin", SIZE), "a read with the second keys")
    before = len(store.requests)
    t.bytes(service.read("/o/media/a.bin"), content("a.bin", SIZE), "a read of cached content")
    second.secret = t.vault.new("secretAccessKey")
    service.configure(settings(second))
    reply = reload(service)
    t.check(
        "secretAccessKey" in str(reply.json.get("changed")) or "origins.media" in reply.json.get("changed"),
        f"changed of another secret is {reply.json.get('changed')}",
    )
    t.bytes(service.read("/o/media/c.bin"), content("c.bin", SIZE), "a read with another secret of the same key")
    t.check(all(r.account == second.access_key for r in store.requests[before:]), "a request has the first keys")
