"""Object stores: each source of credentials, wrong keys, expiry, rotation and clocks."""

import datetime
import hashlib
import threading
import time
import urllib.parse

from mocks.base import content
from mocks.metadata import ROLE_ARN, ContainerCredentials, InstanceMetadata, SecurityTokenService
from mocks.objects import SIZE, Accounts, BlobStore, ObjectStore
from harness.checks import Broken

from . import scenario

#: Words of a detail that names the permission which is missing.
PERMISSION = r"credential|access key|signature|sign|permission|authori[sz]|token|s3:GetObject|role"
LARGE = 64 << 20
#: Bytes that a reader takes before the credentials end.
BEFORE_EXPIRY = 6 << 20
#: The length of a range of a player.
RANGE = 4 << 20


def credentials_file(keys, profile="default", before=""):
    """An AWS shared credentials file, with comments and another profile."""
    token = f"aws_session_token = {keys.token}\n" if keys.token else ""
    return (
        f"# made by a test\n{before}[other]\naws_access_key_id=AKIAOTHER\naws_secret_access_key=other\n\n[{profile}]\n"
        f"aws_access_key_id = {keys.access_key}\naws_secret_access_key={keys.secret}\n{token}region = eu-west-1\n"
    )


def environment(keys):
    variables = {"AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret}
    return {**variables, **({"AWS_SESSION_TOKEN": keys.token} if keys.token else {})}


def check_reads(t, service, store, origin="media"):
    """A whole read, ranges, HEAD, a suffix and special names; every sent byte is compared."""
    path = f"/o/{origin}"
    data = content("film one.bin", SIZE)
    t.bytes(service.read(f"{path}/film%20one.bin"), data, "a whole read")
    t.bytes(service.read(f"{path}/film%20one.bin"), data, "a repeated read")
    other = content("a+b=c.bin", SIZE)
    t.bytes(service.read(f"{path}/a+b=c.bin", "1000-1999"), other[1000:2000], "a range", 206)
    t.bytes(service.read(f"{path}/a+b=c.bin", "-500"), other[-500:], "a suffix", 206)
    head = service.read(f"{path}/head.bin", method="HEAD")
    t.equal((head.status, head.fields.get("content-length")), (200, str(SIZE)), "status and length of HEAD")
    t.equal(store.codes(), [], "the refusals of the store")
    ranges = [request.fields.get("range") for request in store.of(method="GET") if "a+b=c" in request.name]
    t.check(any(ranges), f"no request for a range reached the store: {ranges}")


def check_statistics(t, service, kind="s3", origin="media", has_expiry=True):
    """The credentials are in statistics and metrics, with their expiry."""
    shown = service.credential(origin)
    if not t.check(shown, f"origins[].credentials is missing: {str(service.stats().get('origins'))[:300]}"):
        return
    t.equal(shown.get("kind"), kind, "credentials.kind")
    t.equal(set(shown) >= {"kind", "expiresAt", "refreshedAt", "refreshes", "failures", "error"}, True, "all members")
    t.equal(shown.get("error"), None, "credentials.error")
    t.equal(isinstance(shown.get("expiresAt"), str), has_expiry, "whether expiresAt is a time")
    stamp = service.metric("larder_origin_credentials_expiry_timestamp_seconds", origin=origin)
    if has_expiry:
        expires = datetime.datetime.fromisoformat(shown["expiresAt"].replace("Z", "+00:00")).timestamp()
        t.check(stamp and abs(stamp - expires) < 1, f"the metric of the expiry is {stamp} instead of {expires}")
        count = service.metric("larder_origin_credentials_refreshes_total", origin=origin, result="success")
        t.check(count and count >= 1, f"the metric of refreshes is {count}")


def stage(t, store, settings, **options):
    """A service with the origin `media` in front of the bucket `media`."""
    return t.service(t.origin("media", f"{store.url}/media", auth_type="s3", **settings), **options)


@scenario()
def s3_static(t):
    """Keys in the settings: whole reads, ranges and HEAD with verified signatures; the API masks the keys."""
    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts, "eu-central-1")), accounts.permanent()
    service = stage(t, store, {
        "auth_credentials": "static", "auth_accessKeyId": keys.access_key, "auth_secretAccessKey": keys.secret,
        "auth_region": "eu-central-1",
    })  # fmt: skip
    t.equal(service.send("GET", "/o/media/film.bin").status, 401, "the status without a token")
    check_reads(t, service, store)
    check_statistics(t, service, has_expiry=False)
    shown = service.api("GET", "/v1/origins/media").json
    t.equal(shown.get("auth", {}).get("secretAccessKey"), "•••", "auth.secretAccessKey in the API")
    t.equal(shown.get("access"), "token", "access of an origin with auth")


@scenario(brief=False)
def s3_session(t):
    """Temporary keys in the settings: the session token is sent and signed."""
    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts)), accounts.temporary()
    service = stage(t, store, {
        "auth_credentials": "static", "auth_accessKeyId": keys.access_key, "auth_secretAccessKey": keys.secret,
        "auth_sessionToken": keys.token,
    })  # fmt: skip
    check_reads(t, service, store)


@scenario()
def s3_file(t):
    """A profile of an AWS credentials file."""
    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts)), accounts.permanent()
    settings = {"auth_credentials": "file", "auth_file": "aws", "auth_profile": "media"}
    service = stage(t, store, settings, files={"aws": credentials_file(keys, "media")})
    check_reads(t, service, store)
    check_statistics(t, service, has_expiry=False)


@scenario(brief=False)
def s3_environment(t):
    """Keys in the variables of AWS, which are the default source."""
    accounts = Accounts(t.vault)
    store = t.mock(ObjectStore(accounts))
    service = stage(t, store, {}, environment=environment(accounts.temporary()))
    check_reads(t, service, store)


@scenario()
def s3_container(t):
    """The endpoint of a container with a token from a variable, and with one from a file."""
    accounts = Accounts(t.vault)
    store, token = t.mock(ObjectStore(accounts)), t.vault.new("containerToken")
    endpoint = t.mock(ContainerCredentials(accounts, token))
    file = t.directory / "container-token"
    file.write_text(token)
    for name, value in (("AWS_CONTAINER_AUTHORIZATION_TOKEN", token), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(file))):
        before = endpoint.issued
        variables = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": endpoint.url + endpoint.PATH, name: value}
        service = stage(t, store, {"auth_credentials": "container"}, environment=variables)
        check_reads(t, service, store)
        check_statistics(t, service)
        t.equal(endpoint.issued - before, 1, f"the number of documents with {name}")


@scenario()
def s3_instance(t):
    """The metadata service of an instance, with a session (IMDSv2)."""
    accounts = Accounts(t.vault)
    store, metadata = t.mock(ObjectStore(accounts)), t.mock(InstanceMetadata(accounts))
    service = stage(t, store, {"auth_credentials": "instance", "auth_metadataURL": metadata.url})
    check_reads(t, service, store)
    check_statistics(t, service)
    t.equal([r.status for r in metadata.requests], [200, 200, 200], "the statuses at the metadata service")
    variable = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.url}
    check_reads(t, stage(t, store, {"auth_credentials": "instance"}, environment=variable), store)


@scenario()
def s3_web_identity(t):
    """AssumeRoleWithWebIdentity with a token file, which is read again at each refresh."""
    accounts, first = Accounts(t.vault), t.vault.new("webIdentity")
    store, sts = t.mock(ObjectStore(accounts)), t.mock(SecurityTokenService(accounts, identity=first))
    settings = {
        "auth_credentials": "webIdentity", "auth_file": "identity", "auth_roleArn": ROLE_ARN, "auth_stsURL": sts.url,
        "auth_roleSessionName": "larder-test",
    }  # fmt: skip
    service = stage(t, store, settings, files={"identity": first + "\n"})
    check_reads(t, service, store)
    check_statistics(t, service)
    t.check(all("authorization" not in r.fields for r in sts.requests), "AssumeRoleWithWebIdentity has a signature")
    sts.identity = t.vault.new("webIdentity")
    service.write("identity", sts.identity)
    accounts.revoke_all()
    t.bytes(service.read("/o/media/rotated.bin"), content("rotated.bin", SIZE), "a read with the new identity")


@scenario(brief=False)
def s3_assume_role(t):
    """AssumeRole with an external ID, signed with keys of a file."""
    accounts = Accounts(t.vault)
    keys = accounts.permanent()
    store, sts = t.mock(ObjectStore(accounts)), t.mock(SecurityTokenService(accounts, external_id="media-7"))
    settings = {
        "auth_credentials": "assumeRole", "auth_source": "file", "auth_file": "aws", "auth_roleArn": ROLE_ARN,
        "auth_stsURL": sts.url, "auth_externalId": "media-7",
    }  # fmt: skip
    service = stage(t, store, settings, files={"aws": credentials_file(keys)})
    check_reads(t, service, store)
    check_statistics(t, service)
    t.equal(sts.issued, 1, "the number of roles")


@scenario(brief=False)
def gcs_hmac(t):
    """HMAC keys of Google Cloud Storage: Signature Version 4 with the region `auto`."""
    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts, "auto")), accounts.permanent()
    settings = {"auth_credentials": "file", "auth_file": "hmac", "auth_region": "auto"}
    check_reads(t, stage(t, store, settings, files={"hmac": credentials_file(keys)}), store)


@scenario()
def azure_sas(t):
    """A shared access signature from a file is sent with each request as it is, and read again after a change."""
    signature = t.vault.keep("sharedAccessSignature", "c2lnbmF0dXJl-7f1d2a9e4b%2Bx%2F%3D")
    query = f"sv=2024-11-04&se=2030-01-01T00%3A00%3A00Z&sr=c&sp=r&sig={signature}"
    store = t.mock(BlobStore(query))
    settings = t.origin("media", f"{store.url}/media", auth_type="sas", auth_file="sas", **{"headers.x-ms-version": "2024-11-04"})
    service = t.service(settings, files={"sas": f"?{query}\n"})
    data = content("film one.bin", SIZE)
    t.bytes(service.read("/o/media/film%20one.bin"), data, "a whole read")
    t.bytes(service.read("/o/media/other.bin", "100-199"), content("other.bin", SIZE)[100:200], "a range", 206)
    t.equal(service.read("/o/media/head.bin", method="HEAD").status, 200, "the status of HEAD")
    t.equal({r.fields.get("x-ms-version") for r in store.requests}, {"2024-11-04"}, "x-ms-version")
    check_statistics(t, service, kind="sas", has_expiry=bool(service.credential("media").get("expiresAt")))
    other = t.vault.keep("sharedAccessSignature", "c2lnbmF0dXJl-0a8e3f6c9d%2Bx%2F%3D")
    store.expected = query.replace(signature, other)
    service.write("sas", store.expected)
    t.bytes(service.read("/o/media/rotated.bin"), content("rotated.bin", SIZE), "a read with the new signature")


@scenario()
def wrong_keys(t):
    """Wrong keys, roles and files cause problems that name the permission, without a secret and without a body."""
    accounts = Accounts(t.vault)
    store, right = t.mock(ObjectStore(accounts)), accounts.permanent()
    wrong = t.vault.new("secretAccessKey")
    sts = t.mock(SecurityTokenService(accounts, identity=t.vault.new("webIdentity")))
    static = {"auth_credentials": "static", "auth_accessKeyId": right.access_key, "auth_secretAccessKey": wrong}
    cases = {
        "secret": static,
        "key": {**static, "auth_accessKeyId": "AKIAUNKNOWN0UNKNOWN0"},
        "region": {**static, "auth_secretAccessKey": right.secret, "auth_region": "eu-west-9"},
        "identity": {
            "auth_credentials": "webIdentity", "auth_file": "identity", "auth_roleArn": ROLE_ARN, "auth_stsURL": sts.url,
        },
        "file": {"auth_credentials": "file", "auth_file": "nofile"},
        "environment": {"auth_credentials": "environment"},
    }  # fmt: skip
    settings = {}
    for name, values in cases.items():
        settings |= t.origin(name, f"{store.url}/media", auth_type="s3", retries=0, **values)
    service = t.service(settings, files={"identity": t.vault.new("webIdentity")})
    for name in cases:
        reply = service.read(f"/o/{name}/film.bin")
        t.refused(reply, f"a read with a wrong {name}", (403, 502, 503), words=PERMISSION)
        t.check(content("film.bin", SIZE)[:64] not in reply.body, f"bytes were sent with a wrong {name}")
    shown = service.credential("identity")
    t.check(shown.get("error"), f"credentials.error of a refused role is empty: {shown}")
    t.check((shown.get("failures") or 0) >= 1, f"credentials.failures is {shown.get('failures')}")
    failures = service.metric("larder_origin_credentials_refreshes_total", origin="identity", result="failure")
    t.check(failures and failures >= 1, f"the metric of failures is {failures}")
    events = service.api("GET", "/v1/events").body.decode()
    t.check("identity" in events and "credential" in events, f"no event names the origin and its credentials: {events[-400:]}")


@scenario()
def herd(t):
    """Readers of many files at the expiry cause one call of the credential service."""
    readers = 40 if t.is_brief else 200
    accounts = Accounts(t.vault)
    store, metadata = t.mock(ObjectStore(accounts)), t.mock(InstanceMetadata(accounts))
    settings = {
        "auth_credentials": "instance", "auth_metadataURL": metadata.url, "maxTransfers": 256, "timeouts_read": "60s",
        "circuitBreaker": "off",
    }  # fmt: skip
    service = stage(t, store, settings)
    read = lambda index: service.read(f"/o/media/herd{index}.bin", "0-999")  # noqa: E731
    for kind in ("first use", "revocation"):
        before = metadata.issued
        if kind == "revocation":
            accounts.revoke_all()
        replies = t.together(readers, lambda index, kind=kind: read(f"{kind[:5]}{index}"))
        t.equal({(r.status, len(r.body)) for r in replies}, {(206, 1000)}, f"statuses and sizes at the {kind}")
        t.equal(metadata.issued - before, 1, f"the number of refreshes at the {kind} with {readers} readers")


@scenario()
def expiry_by_time(t):
    """Keys that end by their own time are replaced once, before a store refuses them; a failing service keeps the old
    ones in use."""
    accounts = Accounts(t.vault)
    store, metadata = t.mock(ObjectStore(accounts)), t.mock(InstanceMetadata(accounts))
    accounts.lifetime = 3
    service = stage(t, store, {"auth_credentials": "instance", "auth_metadataURL": metadata.url})
    t.bytes(service.read("/o/media/first.bin"), content("first.bin", SIZE), "the first read")
    end = accounts.issued[0].expiration
    accounts.lifetime = 3600
    t.eventually(lambda: time.time() > end, "the first keys never end")
    readers = 40 if t.is_brief else 200
    replies = t.together(readers, lambda index: service.read(f"/o/media/late{index}.bin", "0-99"))
    t.equal({r.status for r in replies}, {206}, "the statuses after the expiry")
    t.check(metadata.issued <= 3, f"{metadata.issued} calls of the metadata service instead of at most 3")
    t.check("ExpiredToken" not in store.codes(), "a request was signed with expired keys")
    t.eventually(lambda: (service.credential("media").get("refreshes") or 0) >= 2, "credentials.refreshes is below 2")
    metadata.failing = 500
    t.bytes(service.read("/o/media/kept.bin"), content("kept.bin", SIZE), "a read while the metadata service fails")


def read_whole(t, service, path, data, expire, server):
    """Reads a large file as one response. In the middle `expire` ends the credentials, and `server` closes the transfer;
    all bytes must arrive."""
    server.forget()
    with service.stream(path) as body:
        if not t.equal(body.status, 200, f"the status of {path}"):
            return
        body.take(BEFORE_EXPIRY)
        expire()
        server.cut()
        body.take(len(data))
    t.equal(body.count, len(data), f"the number of bytes of {path} across the expiry")
    t.equal(body.digest, hashlib.sha256(data).hexdigest(), f"the digest of {path} across the expiry")
    check_refused(t, server, f"the read of {path}")


def read_ranges(t, service, path, data, expire, server):
    """Reads a large file in ranges, as a player does; in the middle `expire` ends the credentials."""
    server.forget()
    parts, answers = hashlib.sha256(), set()
    for first in range(0, len(data), RANGE):
        if first == len(data) // 2:
            expire()
        reply = service.read(path, f"{first}-{first + RANGE - 1}")
        answers.add((reply.status, len(reply.body)))
        parts.update(reply.body)
    t.equal(answers, {(206, RANGE)}, f"statuses and sizes of the ranges of {path}")
    t.equal(parts.hexdigest(), hashlib.sha256(data).hexdigest(), f"the digest of the ranges of {path}")
    check_refused(t, server, f"the ranges of {path}")


def check_refused(t, server, subject):
    """At least one request was refused; otherwise the scenario proves nothing."""
    refused = [request for request in server.of() if request.status >= 400]
    t.check(refused, f"no request of {subject} was refused after the expiry")
    t.check(len(refused) <= 3, f"{len(refused)} requests of {subject} were refused")
    server.forget()


@scenario()
def expiry_in_read(t):
    """The session ends in the middle of 64 MiB reads: S3 sends 400 ExpiredToken, its kin 403; all bytes arrive."""
    accounts = Accounts(t.vault)
    names = {"s3.bin": LARGE, "kin.bin": LARGE}
    store, metadata = t.mock(ObjectStore(accounts, sizes=names)), t.mock(InstanceMetadata(accounts))
    settings = {}
    for origin in ("s3-whole", "s3-ranges", "kin-whole", "kin-ranges"):
        settings |= t.origin(
            origin, f"{store.url}/media", auth_type="s3", auth_credentials="instance", auth_metadataURL=metadata.url,
            readAhead="4MiB",
        )  # fmt: skip
    service = t.service(settings)
    for kind, status in (("s3", 400), ("kin", 403)):
        store.expired_status = status
        for way, read in (("whole", read_whole), ("ranges", read_ranges)):
            if t.is_brief and (kind, way) not in (("s3", "whole"), ("kin", "ranges")):
                continue
            issued, name = metadata.issued, f"{kind}.bin"
            read(t, service, f"/o/{kind}-{way}/{name}", content(name, LARGE), accounts.revoke_all, store)
            t.equal(metadata.issued - issued, 2, f"the number of sessions for {kind}, {way}")


@scenario()
def expiry_after_refusal(t):
    """A missing permission for one file does not delay the refresh when the session ends directly afterwards."""
    accounts = Accounts(t.vault)
    store, metadata = t.mock(ObjectStore(accounts)), t.mock(InstanceMetadata(accounts))
    service = stage(t, store, {"auth_credentials": "instance", "auth_metadataURL": metadata.url})
    t.bytes(service.read("/o/media/a.bin"), content("a.bin", SIZE), "a first read")
    for number in range(5):
        reply = service.read(f"/o/media/forbidden{number}.bin")
        t.check(reply.status in (403, 502), f"a forbidden file: the answer is {reply}")
    t.check(metadata.issued <= 2, f"{metadata.issued} sessions for five forbidden files")
    accounts.revoke_all()
    t.bytes(service.read("/o/media/b.bin"), content("b.bin", SIZE), "a read after the end of the session")


@scenario()
def key_rotation(t):
    """The credentials file is replaced under load: once with an immediate end of the old keys, then as an administrator
    does it, who ends the old keys when the new ones are in use. No read fails."""
    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts)), accounts.temporary()
    settings = {"auth_credentials": "file", "auth_file": "aws", "maxTransfers": 64, "circuitBreaker": "off"}
    service = stage(t, store, settings, files={"aws": credentials_file(keys)})
    t.equal(service.read("/o/media/first.bin").status, 200, "the status before the rotations")
    readers, done = 8 if t.is_brief else 24, threading.Event()

    def reader(index):
        answers, count = set(), 0
        while not done.is_set():
            name = f"rotation-{index}-{count}.bin"
            reply = service.read(f"/o/media/{name}", "0-4095")
            answers.add(f"{reply}" if reply.status != 206 else f"206 {reply.body == content(name, SIZE)[:4096]}")
            count += 1
        return answers, count

    def is_used(fresh):
        return any(request.account == fresh.access_key for request in store.requests[-readers * 4 :])

    def rotate():
        old = keys
        for is_immediate in (True,) if t.is_brief else (True, False):
            fresh, began = accounts.temporary(), time.monotonic()
            service.write("aws", credentials_file(fresh))
            old.is_revoked = is_immediate
            t.check(store.wait(lambda fresh=fresh: is_used(fresh), 90), "the keys of the changed file are not used")
            t.note(f"new keys are in use after {time.monotonic() - began:.1f} s")
            old.is_revoked, old = True, fresh
            seen = len(store.requests)
            store.wait(lambda seen=seen: len(store.requests) > seen + readers * 3)
        done.set()
        return set(), 0

    results = t.together(readers + 1, lambda index: rotate() if index == readers else reader(index))
    answers = set().union(*(answers for answers, _ in results))
    t.check(answers == {"206 True"}, f"answers during the rotations: {sorted(answers)[:3]}")
    t.note(f"{sum(count for _, count in results)} reads during the rotations")


@scenario()
def clock_skew(t):
    """The store's clock is one hour ahead, then behind: the difference is learned once from a refusal."""
    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts)), accounts.permanent()
    service = stage(t, store, {
        "auth_credentials": "static", "auth_accessKeyId": keys.access_key, "auth_secretAccessKey": keys.secret,
    })  # fmt: skip
    for offset in (3600, -3600):
        store.offset = offset
        store.refusals.clear()
        for number in range(10):
            name = f"skew{offset}-{number}.bin"
            t.bytes(service.read(f"/o/media/{name}"), content(name, SIZE), f"a read with a difference of {offset} s")
        t.equal(store.codes(), ["RequestTimeTooSkewed"], f"the refusals with a difference of {offset} s")


@scenario(needs=["moto"], brief=False)
def s3_moto(t):
    """moto, which verifies signatures and policies: static keys, and a role of its STS."""
    moto = t.tools.Moto(t)
    data = content("film.bin", SIZE)
    moto.s3.put_object(Bucket=moto.bucket, Key="film one.bin", Body=data)
    keys = {"auth_credentials": "static", "auth_accessKeyId": moto.access_key, "auth_secretAccessKey": moto.secret}
    role = {
        "auth_credentials": "assumeRole", "auth_source": "environment", "auth_roleArn": moto.role_arn, "auth_stsURL": moto.url,
    }  # fmt: skip
    variables = {"AWS_ACCESS_KEY_ID": moto.access_key, "AWS_SECRET_ACCESS_KEY": moto.secret}
    settings = t.origin("static", f"{moto.url}/media", auth_type="s3", **keys)
    settings |= t.origin("role", f"{moto.url}/media", auth_type="s3", **role)
    settings |= t.origin("wrong", f"{moto.url}/media", auth_type="s3", retries=0, **{**keys, "auth_secretAccessKey": "x" * 40})
    service = t.service(settings, variables)
    for origin in ("static", "role"):
        t.bytes(service.read(f"/o/{origin}/film%20one.bin"), data, f"a whole read with {origin}")
        t.bytes(service.read(f"/o/{origin}/film%20one.bin", "5-99"), data[5:100], f"a range with {origin}", 206)
        t.equal(service.read(f"/o/{origin}/film%20one.bin", method="HEAD").status, 200, f"the status of HEAD with {origin}")
    t.refused(service.read("/o/wrong/film%20one.bin"), "a read with a wrong key", (403, 502), words=PERMISSION)
    check_statistics(t, service, origin="role")


LISTED = [f"films/{number} ä+&%.bin" for number in range(5)] + ["films/more/x.bin", "other.bin"]


def listed(t, service, origin, path):
    """All entries of a folder by their decoded paths, in pages of two."""
    found, cursor = {}, None
    for _ in range(9):
        order = {"origin": origin, "path": path, "limit": 2, **({"cursor": cursor} if cursor else {})}
        page = service.api("POST", "/v1/list", order)
        if not t.equal(page.status, 200, f"the status of a list ({page})"):
            return found
        found |= {urllib.parse.unquote(item["path"]): item for item in page.json["items"]}
        cursor = page.json["nextCursor"]
        if not cursor:
            return found
    t.check(False, "the list has no last page")
    return found


def check_lists(t, url, keys, size, body):
    """Folders of the bucket `media` at `url` with a signed ListObjectsV2, and a job that fetches the files of the tree."""
    settings = t.origin("media", f"{url}/media", auth_type="s3", **keys)
    settings |= t.origin("films", f"{url}/media/films", auth_type="s3", **keys)
    settings |= t.origin("wrong", f"{url}/media", auth_type="s3", retries=0, **{**keys, "auth_secretAccessKey": "x" * 40})
    service = t.service(settings)
    films = listed(t, service, "media", "films/")
    t.equal(set(films), {*LISTED[:5], "films/more/"}, "the folder of a bucket")
    t.equal([item["bytes"] for item in films.values() if not item["isFolder"]], [size] * 5, "the lengths")
    t.check(all(item["modifiedAt"] for item in films.values() if not item["isFolder"]), "the times")
    t.equal(set(listed(t, service, "media", "")), {"films/", "other.bin"}, "the root of a bucket")
    below = {name.removeprefix("films/") for name in LISTED[:5]} | {"more/"}
    t.equal(set(listed(t, service, "films", "")), below, "an origin below the bucket")
    path = next(item["path"] for item in films.values() if not item["isFolder"])
    t.bytes(service.read(f"/o/media/{path}"), body(urllib.parse.unquote(path)), "a read by a listed path")
    t.refused(service.api("POST", "/v1/list", {"origin": "wrong"}), "a list with a wrong key", (502,), words=PERMISSION)
    item = {"origin": "media", "path": "films/", "list": {"recursive": True, "include": ["**/*.bin"], "minBytes": size}}
    plan = service.api("POST", "/v1/jobs", {"items": [item], "dryRun": True}).json
    t.equal((plan.get("files"), plan.get("bytes")), (6, 6 * size), f"a dry run ({plan})")
    job = service.api("POST", "/v1/jobs", {"items": [item]}, fields={"Prefer": "wait=60"}).json
    t.equal((job.get("state"), job.get("bytesDone")), ("succeeded", 6 * size), f"a job ({job})")


def check_real_lists(t, store):
    for name in LISTED:
        store.s3.put_object(Bucket=store.bucket, Key=name, Body=b"x" * 7)
    keys = {"auth_credentials": "static", "auth_accessKeyId": store.access_key, "auth_secretAccessKey": store.secret}
    check_lists(t, store.url, keys, 7, lambda name: b"x" * 7)


@scenario(needs=["moto"], brief=False)
def s3_lists(t):
    """Folders of a bucket of moto, page by page, at the root and below a path of the origin."""
    check_real_lists(t, t.tools.Moto(t))


@scenario(needs=["seaweedfs"], brief=False)
def seaweed_lists(t):
    """The same with SeaweedFS, a second implementation of ListObjectsV2 and of the signature."""
    store = t.tools.SeaweedFS(t)
    store.s3.delete_object(Bucket=store.bucket, Key="ready")
    check_real_lists(t, store)


@scenario()
def gcs_lists(t):
    """HMAC keys of Google Cloud Storage: lists with the parameters of its XML API, signed for the region `auto`."""
    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts, "auto")), accounts.permanent()
    store.names = LISTED
    settings = {
        "auth_credentials": "static", "auth_accessKeyId": keys.access_key, "auth_secretAccessKey": keys.secret, "auth_region": "auto",
    }  # fmt: skip
    check_lists(t, store.url, settings, SIZE, lambda name: content(name, SIZE))
    lists = [request for request in store.requests if "list-type" in request.parameters]
    t.check(lists and all(request.name.strip("/") == "media" for request in lists), "a list is a request for the bucket")


def require(holds, sentence):
    if not holds:
        raise Broken(sentence)
