"""Fields of the reader that the upstream gets: private answers, and shared ones after a proof of the right."""

import hashlib

from mocks.tenants import SIZE, Tenants

from . import scenario


def stage(t, **settings):
    """Two users with rights and one without; a service that forwards Authorization."""
    users = {f"Bearer {t.vault.new('userToken')}": name for name in ("first", "second", "third")}
    upstream = t.mock(Tenants(users, {"/shared/large.bin": 8 << 20}))
    origin = t.origin("media", upstream.url, forward=["Authorization"], access="public", **settings)
    service = t.service(origin)
    fields = {name: {"Authorization": value} for value, name in users.items()}
    return upstream, service, fields


def get(service, path, fields, part=None):
    return service.send("GET", path, {**fields, **({"Range": f"bytes={part}"} if part else {})})


@scenario()
def forward_private(t):
    """Two users get their own bytes under one path, from the cache, too; nobody else gets them."""
    upstream, service, fields = stage(t)
    for attempt in ("first", "second"):
        for user in ("first", "second"):
            reply = get(service, "/o/media/own/film.bin", fields[user])
            t.bytes(reply, upstream.own(user, "/own/film.bin"), f"the {attempt} read of the {user} user")
    downloads = [request for request in upstream.of("film.bin", "GET") if request.sent == SIZE]
    t.equal(len(downloads), 2, "the number of downloads")
    for user in ("first", "second"):
        part = get(service, "/o/media/own/film.bin", fields[user], "500-599")
        t.bytes(part, upstream.own(user, "/own/film.bin")[500:600], f"a range of the {user} user", 206)
    for name, value in {"no": {}, "an unknown": {"Authorization": f"Bearer {t.vault.new('userToken')}"}}.items():
        reply = get(service, "/o/media/own/film.bin", value)
        t.check(reply.status in (401, 403, 502), f"a read with {name} Authorization: the answer is {reply}")
        for user in ("first", "second"):
            t.check(
                upstream.own(user, "/own/film.bin")[:16] not in reply.body, f"bytes of a user were sent with {name} Authorization"
            )
    together = t.together(16, lambda i: (i % 2, get(service, "/o/media/own/herd.bin", fields[("first", "second")[i % 2]])))
    for index, reply in together:
        t.bytes(reply, upstream.own(("first", "second")[index], "/own/herd.bin"), "one of 16 reads at once")


@scenario()
def forward_shared(t):
    """Shared bytes: one download for all, a proof for each user, and not one byte for a user without the right."""
    upstream, service, fields = stage(t, forwardShared=True)
    upstream.permitted = {"first", "second"}
    data = upstream.shared("/shared/film.bin")
    t.bytes(get(service, "/o/media/shared/film.bin", fields["first"]), data, "the read of the first user")
    t.bytes(get(service, "/o/media/shared/film.bin", fields["second"]), data, "the read of the second user")
    sent = sum(request.sent for request in upstream.of("film.bin", "GET"))
    t.check(sent <= SIZE + 1000, f"the upstream sent {sent} bytes for a file of {SIZE}")
    t.equal(len(upstream.proofs("second")), 1, "the number of proofs of the second user")
    reply = get(service, "/o/media/shared/film.bin", fields["third"])
    t.refused(reply, "a read without the right", (403,))
    t.check(not any(data[i : i + 32] in reply.body for i in (0, 1000, SIZE - 32)), "bytes were sent without the right")
    for part in ("0-99", "-100"):
        t.check(
            get(service, "/o/media/shared/film.bin", fields["third"], part).status == 403, "a range without the right is sent"
        )
    head = service.send("HEAD", "/o/media/shared/film.bin", fields["third"])
    t.check(head.status in (401, 403), f"HEAD without the right: the status is {head.status}")
    for _ in range(5):
        t.bytes(get(service, "/o/media/shared/film.bin", fields["second"], "10-19"), data[10:20], "a range with the right", 206)
    t.equal(len(upstream.proofs("second")), 1, "the number of proofs within a minute")
    unknown = get(service, "/o/media/shared/film.bin", {})
    t.check(unknown.status in (401, 403), f"a read without Authorization: the answer is {unknown}")


@scenario()
def forward_refused(t):
    """A refusal of shared bytes is remembered for each user and file: one request for many reads, with its status."""
    upstream, service, fields = stage(t, forwardShared=True)
    upstream.permitted = {"first"}
    unknown = {"Authorization": f"Bearer {t.vault.new('userToken')}"}
    for sent, status in ((fields["second"], 403), (unknown, 401)):
        upstream.forget()
        replies = t.together(20, lambda i, sent=sent: get(service, "/o/media/shared/film.bin", sent, ("0-9", None)[i % 2]))
        replies += [get(service, "/o/media/shared/film.bin", sent) for _ in range(5)]
        t.equal({reply.status for reply in replies}, {status}, "the statuses of refused reads")
        t.equal(len(upstream.requests), 1, f"the number of requests for reads that get {status}")
        marks = {reply.fields.get("www-authenticate") for reply in replies}
        t.check(len(marks) == 1 and (status == 403 or None not in marks), f"WWW-Authenticate of refused reads is {marks}")
        get(service, "/o/media/shared/other.bin", sent)
        t.equal(len(upstream.requests), 2, "the number of requests for two files")
    data = upstream.shared("/shared/film.bin")
    t.bytes(get(service, "/o/media/shared/film.bin", fields["first"]), data, "a read with the right after refusals")


@scenario(brief=False)
def forward_shared_herd(t):
    """Many readers of two users with and one without the right at the same time."""
    upstream, service, fields = stage(t, forwardShared=True, maxTransfers=64)
    upstream.permitted = {"first", "second"}
    data = upstream.shared("/shared/large.bin")
    count = 12 if t.is_brief else 60
    names = ("first", "second", "third")
    digest = hashlib.sha256(data).hexdigest()
    replies = t.together(count, lambda i: (names[i % 3], get(service, "/o/media/shared/large.bin", fields[names[i % 3]])))
    for user, reply in replies:
        if user == "third":
            t.check(reply.status == 403 and len(reply.body) < 4000, f"a reader without the right: the answer is {reply}")
        else:
            t.check(reply.status == 200 and hashlib.sha256(reply.body).hexdigest() == digest, f"a reader with the right: {reply}")
    t.check(len(upstream.proofs("second")) <= 2, f"{len(upstream.proofs('second'))} proofs of one user")


@scenario()
def forward_marked(t):
    """Answers that depend on another field than Authorization say so to caches behind Larder: `Vary` or `private`."""
    users = {t.vault.new("userKey"): name for name in ("first", "second")}
    upstream = t.mock(Tenants(users, field="x-user-key"))
    service = t.service(t.origin("media", upstream.url, forward=["X-User-Key"], access="public"))
    for key, user in users.items():
        for attempt in ("first", "second"):
            reply = service.send("GET", "/o/media/own/film.bin", {"X-User-Key": key})
            t.bytes(reply, upstream.own(user, "/own/film.bin"), f"the {attempt} read of the {user} user")
            marks = f"{reply.fields.get('vary', '')}; {reply.fields.get('cache-control', '')}".lower()
            t.check("x-user-key" in marks or "private" in marks or "no-store" in marks, f"Vary and Cache-Control are {marks!r}")


@scenario()
def forward_versions(t):
    """With shared bytes, a user to whom the upstream shows another version does not get the cached one."""
    upstream, service, fields = stage(t, forwardShared=True)
    upstream.personal = {"second"}
    for user in ("first", "second", "first", "second"):
        reply = get(service, "/o/media/shared/film.bin", fields[user])
        expected = upstream.own(user, "/shared/film.bin") if user in upstream.personal else upstream.shared("/shared/film.bin")
        if reply.status == 200:
            t.bytes(reply, expected, f"the read of the {user} user")
        else:
            t.check(reply.is_problem and user == "second", f"the {user} user: the answer is {reply}")


@scenario()
def forward_challenge(t):
    """The challenge of the upstream reaches the reader whose Authorization is forwarded, and no other."""
    upstream, service, fields = stage(t)
    upstream.challenges = ['Basic realm="films, all", charset="UTF-8"', 'Digest realm="films", nonce="n1"']
    service.configure({
        **service.settings, **t.origin("own", upstream.url, forward=["Authorization"], access="public", errorBodies="upstream"),
        **t.origin("shared", upstream.url, forward=["Authorization"], access="public", forwardShared=True),
        **t.origin("none", upstream.url, access="public"),
    })  # fmt: skip
    t.equal(service.api("POST", "/v1/configuration/reload").status, 200, "the status of the reload")
    for origin in ("media", "own", "shared", "none"):
        for method, sent in (("GET", {}), ("GET", {"Authorization": "Basic eDp5"}), ("HEAD", {}), ("GET", {"Range": "bytes=0-9"})):
            reply = service.send(method, f"/o/{origin}/own/film.bin", sent)
            expected = "Upstream" if origin == "none" else ", ".join(upstream.challenges)
            subject = f"{origin}: {method} with {list(sent)}"
            t.equal(reply.status, 401, f"{subject}: the status")
            t.equal(reply.fields.get("www-authenticate"), expected, f"{subject}: the challenge")
    t.equal(get(service, "/o/media/own/film.bin", fields["first"]).status, 200, "the status after the log-in")
