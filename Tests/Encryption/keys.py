"""Master keys: missing and wrong ones, rotation, and key files and commands that are refused."""

import base64
import os
import random
import signal
import time

from stage import MARKS, Service, body

NAMES = [f"song{number}-70001" for number in range(4)]


def file_count(service, key):
    service.commit()
    return next((item["files"] for item in service.get("/v1/encryption")["keys"] if item["keyId"] == key), 0)


def missing(stage):
    """Takes keys away, changes them and restores them."""
    service = Service(stage, "keys", activeKey="one")
    one = service.key("one")
    service.start()
    for name in NAMES:
        for origin in MARKS:
            stage.check(service.is_right(origin, name), f"{origin}/{name} is wrong")
    service.commit()
    service.stop()
    (service.keys / "one").unlink()
    code, output = service.refusal()
    stage.check(code == 78 and '"one"' in output, f"a start without the active key: {code}", output)
    service.key("two")
    service.encryption["activeKey"] = "two"
    service.write()
    service.start()
    locked(stage, service, "a missing key")
    tools(stage, service)
    service.start()
    removed(stage, service)
    # The key comes back while the service runs: by a reload, and by a signal.
    service.key("one", one)
    stage.check(service.reload().status == 200, "a reload with the restored key")
    stage.source.forget()
    stage.check(not service.wrong("secret", NAMES[2:]), "the restored key does not open the content")
    stage.check(not stage.source.of("song2") + stage.source.of("song3"), "content with a restored key is fetched again")
    (service.keys / "one").unlink()
    service.stop()
    service.start()
    stage.equal(service.read("secret", NAMES[2]).status, 503, "the status without the key")
    service.key("one", one)
    os.kill(service.process.pid, signal.SIGHUP)
    stage.eventually(lambda: service.read("secret", NAMES[2]).status == 200, "the key is not there after SIGHUP")
    if not stage.is_brief:
        stage.eventually(lambda: service.metric("larder_store_locked_files") == 0, "locked files are still counted", 30)
    service.stop()
    # A key with other bytes is as good as none.
    service.key("one")
    service.start()
    locked(stage, service, "a wrong key", NAMES[2:])
    # With `refetch` the content is fetched again under the active key.
    service.encryption["onMissingKey"] = "refetch"
    stage.check(service.reload().status == 200, "a reload with onMissingKey")
    service.stop()
    service.start()
    stage.check(not service.wrong("secret", NAMES), "content is not fetched again with onMissingKey: refetch")
    stage.no_plain_text(service)
    stage.eventually(lambda: file_count(service, "one") == 0, "files of the missing key are still there")


def locked(stage, service, case, names=NAMES):
    """Reads of the key's assets are refused, and the service says so."""
    for name in names:
        reply = service.read("secret", name)
        stage.check(reply.status == 503 and reply.code == "encryptionKeyMissing", f"{case}: a read gets {reply}")
        stage.check('\\"one\\"' in str(reply), f"{case}: the error does not name the key", str(reply))
    stage.source.forget()
    stage.check(not service.wrong("open", names), f"{case}: another origin is not served")
    stage.check(not stage.source.requests, f"{case}: another origin is fetched again")
    files = len(names)
    counted = stage.eventually(
        lambda: service.metric("larder_store_locked_files") == files, f"{case}: the metric is not {files}", 25
    )
    ready = service.get("/health/ready")
    if counted:
        stage.check("master key" in ready.get("detail", ""), f"{case}: readiness does not report it", str(ready))
    known = {key["keyId"]: key for key in service.get("/v1/encryption")["keys"]}
    stage.check(known["one"]["available"] is False, f"{case}: the key counts as available")


def tools(stage, service):
    """Commands on a store whose key is missing."""
    service.stop()
    code, output = service.tool("verify")
    stage.check(code == 0 and "master key is missing" in output, f"verify of a locked store: {code}", output)
    code, output = service.tool("doctor")
    stage.check(code in (0, 1), f"doctor of a locked store: {code}", output)
    target = service.place / "exported"
    for origin, is_locked in (("secret", True), ("open", False)):
        target.unlink(missing_ok=True)
        code, output = service.tool("export", f"/o/{origin}/film/{NAMES[0]}", target)
        if is_locked:
            stage.check(code == 1 and '"one"' in output, f"export of a locked asset: {code}", output)
        else:
            is_right = code == 0 and target.read_bytes() == body(origin, NAMES[0])
            stage.check(is_right, f"export of a plain asset: {code}", output)
        stage.check(is_locked != target.exists(), f"the exported file of {origin}")


def removed(stage, service):
    """Locked assets can be deleted and purged; then they are fetched again."""
    assets = service.assets("/o/secret/film/")
    identifier = assets[f"/o/secret/film/{NAMES[0]}"]["assetId"]
    stage.check(service.call("DELETE", f"/v1/assets/{identifier}").status in (200, 204), "a locked asset is not deleted")
    reply = service.call("POST", "/v1/purges", {"keys": [f"/o/secret/film/{NAMES[1]}"]})
    stage.check(reply.status == 200 and reply.json["assets"] == 1, f"a locked asset is not purged: {reply}")
    for name in NAMES[:2]:
        stage.check(service.is_right("secret", name), f"{name} is wrong after its removal")
    service.commit()
    target = service.place / "again"
    code, output = service.tool("export", f"/o/secret/film/{NAMES[0]}", target)
    stage.check(code == 0 and target.read_bytes() == body("secret", NAMES[0]), f"export: {code}", output)


def rotation(stage):
    """Rotates many keys beside kills, and opens half-rotated stores with each of both keys."""
    names = [f"tiny{number}-{600 + number % 97}" for number in range(400 if stage.is_brief else 2000)]
    service = Service(stage, "rotation")
    one = service.key("one")
    service.start()
    service.hold("secret", names)
    stage.check(not service.wrong("secret", names), "the content is wrong before the rotation")
    stage.equal(file_count(service, "one"), len(names), "the number of files of the first key")
    stage.source.forget()
    two = service.key("two")
    service.reload()
    reply = service.call("POST", "/v1/encryption/rotate")
    stage.check(reply.status == 202, f"the rotation is refused: {reply}")
    time.sleep(random.random() / 10)  # any moment will do
    service.kill()
    service.start()
    done = stage.eventually(
        lambda: (service.get("/v1/encryption")["rotation"] or {}).get("state") == "done", "the rotation does not end", 60
    )
    if not done:
        return
    stage.equal((file_count(service, "one"), file_count(service, "two")), (0, len(names)), "the files of both keys")
    service.stop()
    rotated = dict(service.rows("SELECT file, sealed FROM file_keys"))
    (service.keys / "one").unlink()
    service.start()
    stage.check(not service.wrong("secret", names), "content is lost after the rotation")
    stage.check(not stage.source.requests, "content is fetched again after the rotation")
    stage.check(service.call("POST", "/v1/encryption/rotate").status == 202, "a rotation without anything to do")
    # Back to the first key, for a store that is rotated by half.
    service.key("one", one)
    service.encryption["activeKey"] = "one"
    service.reload()
    service.call("POST", "/v1/encryption/rotate")
    stage.eventually(lambda: file_count(service, "two") == 0, "the second rotation does not end", 60)
    service.stop()
    half = sorted(rotated)[: len(rotated) // 2]
    with service.catalog() as db:
        for file in half:
            db.execute("UPDATE file_keys SET master_key = 'two', sealed = ? WHERE file = ?", (rotated[file], file))
    keyed = dict(service.rows("SELECT key, master_key FROM assets JOIN file_keys ON file = file_serial"))
    for kept, key in (("one", one), ("two", two)):
        for path in service.keys.iterdir():
            path.unlink()
        service.key(kept, key)
        service.encryption["activeKey"] = kept
        service.write()
        service.start()
        statuses = {name: service.read("secret", name).status for name in names[:: max(1, len(names) // 60)]}
        expected = {name: 200 if keyed[f"/o/secret/film/{name}"] == kept else 503 for name in statuses}
        stage.equal(statuses, expected, f"the responses of a half-rotated store with the key {kept}")
        service.stop()
    service.key("one", one)
    service.key("two", two)
    service.start()
    stage.check(not service.wrong("secret", names), "a half-rotated store is wrong with both keys")
    stage.check(not stage.source.requests, "a half-rotated store is fetched again")


def bad_input(stage):
    """Each mistake is refused at the start, with exit status 78 and the key's name, and by a reload."""
    service = Service(stage, "input")
    script = service.place / "command"

    def command(text):
        script.write_text("#!/bin/sh\n" + text)
        script.chmod(0o700)

    def write(name, data, mode=0o600):
        def change():
            service.key(name, data, mode)

        return change

    def use(text, **more):
        def change():
            command(text)
            service.encryption = {"keyCommand": [str(script)], "activeKey": "kms", **more}

        return change

    key = os.urandom(32)
    stage.secrets.append(key)
    cases = {
        "a short key": (write("short", b"x" * 31), "short"),
        "a long key": (write("long", b"\xff" * 33), "long"),
        "an empty key file": (write("empty", b" "), "empty"),
        "a large key file": (write("large", b"a" * 100_000), "large"),
        "32 letters": (write("letters", b"0123456789abcdef" * 2), "letters"),
        "a pipe": (lambda: os.mkfifo(service.keys / "pipe", 0o600), "pipe"),
        "a key that others can read": (write("shared", os.urandom(32), 0o644), "0600"),
        "a key that the group can read": (write("group", os.urandom(32), 0o640), "0600"),
        "two files of one key": (lambda: (service.key("twin.a"), service.key("twin.b")), '"twin"'),
        "a name that is no identifier": (write("a b", os.urandom(32)), "a b"),
        "no key file": (lambda: None, "secret"),
        "an absent directory": (lambda: service.encryption.update(keysDirectory="/nowhere/keys"), "/nowhere/keys"),
        "an unknown active key": (lambda: (service.key("one"), service.encryption.update(activeKey="two")), '"two"'),
        "no setting at all": (lambda: service.encryption.clear(), "encryption.keysDirectory"),
        "a command that fails": (use("echo leaked-output >&2; exit 3"), '"kms"'),
        "a command that is absent": (
            lambda: service.encryption.update(keyCommand=["/nowhere/kms"], activeKey="kms", keysDirectory=None), '"kms"'
        ),
        "a command that prints garbage": (use("echo leaked-output"), '"kms"'),
        "a command without an active key": (use(f"echo {key.hex()}", activeKey=None), "encryption.activeKey"),
    }  # fmt: skip
    slow = {
        "a command that hangs": (use("exec sleep 600"), '"kms"'),
        "a command whose child hangs": (use("sleep 600 & sleep 600"), '"kms"'),
        "a command that prints too much": (use(f"yes {key.hex()}"), '"kms"'),
    }
    good = dict(service.encryption)
    brief = {case: cases[case] for case in list(cases)[::4]}
    for case, (change, text) in (brief if stage.is_brief else {**cases, **slow}).items():
        for path in service.keys.iterdir():
            path.unlink()
        service.encryption = dict(good)
        change()
        service.write()
        began = time.monotonic()
        code, output = service.refusal()
        stage.check(code == 78, f"{case}: the exit status is {code}", output)
        stage.check(text in output, f"{case}: the error does not name it", output)
        stage.check("encryption" in output or "encrypt" in output, f"{case}: the error names no setting", output)
        stage.check(not stage.revealed(output) and "leaked" not in output, f"{case}: the error has a key", output)
        stage.check(time.monotonic() - began < 55, f"{case}: the refusal takes too long")
    for path in service.keys.iterdir():
        path.unlink()
    service.encryption = dict(good)
    if not stage.is_brief:
        forms(stage, service, script)
        reloads(stage, service, cases)


def forms(stage, service, script):
    """Every form of a key is accepted, from a file and from a command; the environment of the command is empty."""
    seen = service.place / "environment"
    key = os.urandom(32)
    stage.secrets.append(key)
    script.write_text(f"#!/bin/sh\nenv > {seen}\necho \"$*\" >> {seen}\nprintf %s {key.hex()}\n")
    script.chmod(0o700)
    service.encryption = {"keyCommand": [str(script), "--unseal"], "activeKey": "kms"}
    service.write()
    service.start()
    stage.check(service.is_right("secret", NAMES[0]), "content with the key of a command is wrong")
    lines = [line for line in seen.read_text().splitlines() if not line.startswith(("PWD=", "_=", "SHLVL=", "OLDPWD="))]
    stage.equal(lines, ["--unseal kms"], "the environment and the arguments of the command")
    service.commit()
    service.stop()
    for path in service.keys.iterdir():
        path.unlink()
    for name, text in {
        "kms.raw": key, "kms.hex": key.hex().encode() + b"\n", "kms.b64": base64.b64encode(key) + b"\n",
        "kms.url": base64.urlsafe_b64encode(key).rstrip(b"="),
    }.items():  # fmt: skip
        service.encryption = {"keysDirectory": str(service.keys)}
        service.key(name, text)
        service.write()
        service.start()
        stage.source.forget()
        is_cached = service.is_right("secret", NAMES[0]) and not stage.source.requests
        stage.check(is_cached, f"the key file {name} does not open the content")
        service.stop()
        (service.keys / name).unlink()
    service.key("kms", key)


def reloads(stage, service, cases):
    """A running service refuses the same mistakes and goes on with its keys."""
    service.start()
    good = dict(service.encryption)
    for case, (change, text) in cases.items():
        service.encryption = dict(good)
        for path in service.keys.iterdir():
            if path.name != "kms":
                path.unlink()
        if case in ("no key file", "an unknown active key"):
            continue
        change()
        reply = service.reload()
        stage.check(reply.status == 422 and reply.is_problem, f"a reload with {case}: {reply}")
        stage.check(text.strip('"') in str(reply) or "encrypt" in str(reply), f"a reload with {case} names nothing: {reply}")
        stage.check(not stage.revealed(reply.body) and b"leaked" not in reply.body, f"a reload with {case} shows a key")
        stage.check(service.is_right("secret", NAMES[0]), f"a refused reload with {case} has an effect")
    service.encryption = dict(good)
    service.reload()
    service.stop()
    # Without keys, the API refuses an encrypted origin.
    plain = Service(stage, "plain")
    plain.encryption, plain.encrypted["secret"] = {}, False
    plain.write()
    plain.start()
    reply = plain.call("PUT", "/v1/origins/more", {
        "baseURL": f"{stage.source.url}/open", "allowPrivateAddresses": True, "encrypt": True
    })  # fmt: skip
    is_named = reply.status == 422 and "encryption.keysDirectory" in str(reply)
    stage.check(is_named, f"an encrypted origin without keys: {reply}")
    stage.equal(plain.call("POST", "/v1/encryption/rotate").status, 409, "the status of a rotation without keys")
