"""Erasure with a receipt: keys, content, readers and copies."""

import contextlib
import hashlib
import sqlite3

from stage import Reading, Service, body, found

FILM = "film-24000011"
NAMES = [f"song{number}-70001" for number in range(6)]


def sealed(service, prefix=""):
    """The sealed keys of assets by their names."""
    query = "SELECT key, sealed, master_key, generation FROM assets JOIN file_keys ON file = file_serial"
    return {row[0]: row[1:] for row in service.rows(query) if row[0].startswith(prefix)}


def check_receipt(stage, receipt, keys, subject):
    """The receipt names exactly these assets."""
    if not stage.check(receipt, f"{subject} has no receipt"):
        return
    stage.check(receipt["sequence"] > 0 and receipt["erasedAt"] and receipt["coverage"], f"{subject}: {receipt}")
    stated = {(item["nameDigest"], item["masterKey"], item["generation"]) for item in receipt["assets"]}
    expected = {(hashlib.sha256(name.encode()).hexdigest(), row[1], row[2]) for name, row in keys.items()}
    stage.check(stated == expected, f"the assets of {subject} are not right", f"{stated}\n{expected}"[:2000])


def gone(stage, service, keys, subject):
    """No sealed key of these assets is anywhere in the data directory."""
    hits = service.found(*[row[0] for row in keys.values()])
    stage.check(not hits, f"{subject}: a sealed key is still in the store", "\n".join(hits))


def shred(stage):
    """Erases a film under a slow reader, and opens a copy of the store from before."""
    service = Service(stage, "shred")
    one = service.key("one")
    service.start()
    for name in [FILM, *NAMES]:
        reply = service.read("secret", name)
        is_right = reply.body == body("secret", name)
        stage.check(is_right, f"secret/{name}: status {reply.status}, {len(reply.body)} bytes")
    service.read("open", NAMES[0])
    service.commit()
    service.stop()
    copy = stage.copy(service, "copy")
    keys = sealed(service, "/o/secret/film/")
    stage.check(found(copy, None, [row[0] for row in keys.values()]), "the search does not find sealed keys")
    service.start()
    slow = Reading(service, f"/o/secret/film/{FILM}")
    slow.take(200_000)
    victims = [f"/o/secret/film/{name}" for name in [FILM, *NAMES[:3]]]
    reply = service.call("POST", "/v1/purges", {"keys": victims, "shred": True})
    stage.check(reply.status == 200, f"the erasure is refused: {reply}")
    erased = {name: keys[name] for name in victims}
    check_receipt(stage, reply.json.get("receipt"), erased, "the receipt")
    is_whole = slow.finish()
    is_prefix = body("secret", FILM).startswith(slow.body)
    stage.check(is_prefix and not is_whole, f"a slow reader got {len(slow.body)} bytes, right {is_prefix}")
    gone(stage, service, erased, "after the erasure")
    stage.check(not set(service.assets("/o/secret/")) & set(victims), "an erased asset is still listed")
    stage.source.forget()
    for name in [FILM, *NAMES]:
        stage.check(service.is_right("secret", name), f"secret/{name} is wrong after the erasure")
    fetched = {request.name.rsplit("/", 1)[1] for request in stage.source.requests}
    stage.equal(fetched, {FILM, *NAMES[:3]}, "the files that were fetched again")
    refused(stage, service)
    planned(stage, service)
    service.stop()
    gone(stage, service, erased, "after the end")
    # The copy opens with the old key only.
    old = Service(stage, "old", copy)
    old.key("one", one)
    old.start()
    stage.source.forget()
    stage.check(not old.wrong("secret", [FILM, *NAMES]), "the copy does not open with its key")
    stage.check(not stage.source.requests, "the content of the copy is fetched again")
    old.stop()
    (old.keys / "one").unlink()
    old.key("two")
    old.start()
    replies = {name: old.read("secret", name).code for name in [FILM, *NAMES]}
    stage.equal(set(replies.values()), {"encryptionKeyMissing"}, "the responses of the copy without its key")


def refused(stage, service):
    """Erasures of plain assets and contradictions are refused, and change nothing."""
    for request in ({"origin": "open"}, {"prefix": "/o/"}):
        reply = service.call("POST", "/v1/purges", {**request, "shred": True})
        stage.check(reply.status == 422 and "shred" in str(reply), f"an erasure of plain assets: {reply}")
    reply = service.call("POST", "/v1/purges", {"origin": "secret", "shred": True, "soft": True})
    stage.check(reply.status == 422, f"a soft erasure: {reply}")
    stage.source.forget()
    stage.check(not service.wrong("secret", NAMES) and not stage.source.requests, "a refused erasure has an effect")


def planned(stage, service):
    """A dry run erases nothing, and its plan can be carried out once."""
    names = [f"/o/secret/film/{name}" for name in NAMES[3:]]
    service.commit()
    keys = {name: row for name, row in sealed(service).items() if name in names}
    reply = service.call("POST", "/v1/purges", {"keys": names, "shred": True, "dryRun": True})
    is_plan = reply.status == 200 and reply.json["receipt"] is None and reply.json["planId"]
    if not stage.check(is_plan, f"the dry run: {reply} {reply.json}"):
        return
    stage.check(not service.wrong("secret", NAMES[3:]), "a dry run has an effect")
    plan = reply.json["planId"]
    reply = service.call("POST", f"/v1/purges/{plan}/commit")
    stage.check(reply.status == 200 and reply.json["shred"] is True, f"the plan: {reply} {reply.json}")
    check_receipt(stage, reply.json.get("receipt"), keys, "the receipt of the plan")
    check_receipt(stage, service.get(f"/v1/purges/{plan}").get("receipt"), keys, "the stored receipt of the plan")
    stage.equal(service.call("POST", f"/v1/purges/{plan}/commit").status, 409, "the status of a second commit")
    gone(stage, service, keys, "after the plan")


def many(stage):
    """Erases more assets than a purge removes at once, some after others in between."""
    service = Service(stage, "many")
    service.key("one")
    service.start()
    names = [f"tiny{number}-{600 + number % 97}" for number in range(1600)]
    service.hold("secret", names)
    service.commit()
    keys = sealed(service, "/o/secret/film/")
    stage.equal(len(keys), len(names), "the number of sealed keys")
    # Every fourth one first: pages of the table become emptier and are merged.
    some = {name: row for name, row in keys.items() if int(name.split("tiny")[1].split("-")[0]) % 4 == 1}
    plain = {name: row for name, row in keys.items() if int(name.split("tiny")[1].split("-")[0]) % 4 == 3}
    for start in range(0, len(plain), 200):
        service.ask("POST", "/v1/purges", {"keys": list(plain)[start : start + 200]})
    for start in range(0, len(some), 100):
        part = list(some)[start : start + 100]
        reply = service.call("POST", "/v1/purges", {"keys": part, "shred": True})
        check_receipt(stage, reply.json.get("receipt"), {name: some[name] for name in part}, "a receipt")
        gone(stage, service, {name: some[name] for name in part}, "after a part")
    new = [f"more{number}-{600 + number % 97}" for number in range(400)]
    service.hold("secret", new)
    service.commit()
    keys = sealed(service, "/o/secret/film/")
    reply = service.call("POST", "/v1/purges", {"origin": "secret", "shred": True})
    stage.check(reply.status == 202, f"the erasure of many assets: {reply}")
    check_receipt(stage, reply.json.get("receipt"), keys, "the receipt of many assets")
    plan = reply.json.get("planId")
    gone(stage, service, keys, "after the erasure of many assets")
    stage.eventually(lambda: service.get(f"/v1/purges/{plan}")["state"] == "done", "the purge does not end", 60)
    stage.equal(service.assets("/o/secret/"), {}, "the assets after the erasure")
    stage.check(not service.wrong("secret", names[:40]), "erased content is wrong when it is read again")
    service.stop()
    gone(stage, service, {**keys, **some}, "at the end")


def torn(stage):
    """Erasures whose end is not reached: the log of the catalog is in use, or the service is killed."""
    service = Service(stage, "torn")
    service.key("one")
    service.start()
    for name in NAMES:
        service.read("secret", name)
    service.commit()
    keys = sealed(service)
    victims = {name: keys[name] for name in (f"/o/secret/film/{NAMES[0]}", f"/o/secret/film/{NAMES[1]}")}
    request = {"keys": list(victims), "shred": True}
    with contextlib.closing(sqlite3.connect(service.store / "catalog.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM assets").fetchall()
        # A later commit is needed: a reader of the latest state does not hold back the checkpoint of earlier frames.
        service.read("secret", "other-70001")
        service.commit()
        blocked = service.call("POST", "/v1/purges", request)
    stage.check(blocked.status == 200, f"an erasure beside a reader of the catalog: {blocked}")
    receipt = blocked.json.get("receipt") or {}
    check_receipt(stage, receipt, victims, "the receipt beside a reader")
    stage.check(receipt.get("logEmptied") is False, "the receipt states an empty log beside a reader")
    for name in NAMES[:2]:
        stage.check(service.is_right("secret", name), f"{name} cannot be read after the erasure")
    repeated = service.call("POST", "/v1/purges", request).json.get("receipt") or {}
    stage.check(repeated.get("logEmptied") is True, f"the repeated erasure: {repeated}")
    masters = {item["masterKey"] for item in repeated.get("assets", [])}
    stage.equal(masters, {"one"}, "the master keys of the repeated erasure")
    gone(stage, service, victims, "after the repeated erasure")
    service.kill()
    # The state after a kill between the removal of keys and of files, as the catalog stores it.
    with service.catalog() as db:
        db.execute("UPDATE file_keys SET master_key = '', sealed = zeroblob(0)")
        db.execute("DELETE FROM nonces")
    service.start()
    stage.check(not service.wrong("secret", NAMES), "erased content cannot be fetched again after a kill")
    stage.no_plain_text(service)
