"""Live playlists that a job follows: growth and end, restart, cancel, deadline, rights, and limits."""

import collections
import hashlib
import json
import signal
import threading
import time

from change import MIB, start
from deadlines import instant
from harness import upstream

CASES = []


def case(function):
    CASES.append(function)
    return function


class Stream(upstream.Upstream):
    """A live HLS stream with a window of `window` segments: `grow` adds segments, `end` writes EXT-X-ENDLIST. Its playlist
    states a long lifetime, which a job that follows it must not use."""

    def __init__(self, target=1, window=4):
        self.target, self.window, self.names, self.is_ended = target, window, [], False
        self.lock, self.foreign, self.broken = threading.Lock(), None, False
        super().__init__()

    def grow(self, count=1):
        with self.lock:
            self.names += [f"segment-{number:05}.ts" for number in range(len(self.names), len(self.names) + count)]

    def end(self):
        with self.lock:
            self.is_ended = True

    @property
    def text(self):
        with self.lock:
            names = self.names if self.is_ended else self.names[-self.window :]
            lines = ["#EXTM3U", f"#EXT-X-TARGETDURATION:{self.target}", "#EXT-X-VERSION:4"]
            lines.append(f"#EXT-X-MEDIA-SEQUENCE:{len(self.names) - len(names)}")
            for name in names:
                lines += [f"#EXTINF:{self.target}.0,", name]
            if self.foreign:
                lines += [f"#EXTINF:{self.target}.0,", self.foreign]
            return "\n".join(lines + (["#EXT-X-ENDLIST"] if self.is_ended else [])) + "\n"

    def answer(self, request):
        if request.name.endswith(".m3u8") and self.broken:
            return upstream.Answer(503)
        if request.name.endswith("main.m3u8"):
            text = '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\nlive.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=9000\nhigh.m3u8\n'
            return upstream.asset(data=text.encode(), content_type="application/vnd.apple.mpegurl")
        if request.name.endswith(".m3u8"):
            data = self.text.encode()
            tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
            return upstream.asset(data=data, etag=tag, content_type="application/vnd.apple.mpegurl")
        if request.name.endswith(".mpd"):
            data = self.manifest.encode()
            tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
            return upstream.asset(data=data, etag=tag, content_type="application/dash+xml")
        return upstream.asset(1000, etag=f'"{request.name}"')

    @property
    def manifest(self):
        """A DASH manifest with the same segments as a list of times."""
        with self.lock:
            first = 0 if self.is_ended else max(0, len(self.names) - self.window)
            count = len(self.names) - first
            kind = 'type="static" mediaPresentationDuration="PT1H"' if self.is_ended else (
                f'type="dynamic" minimumUpdatePeriod="PT{self.target}S" availabilityStartTime="2020-01-01T00:00:00Z"'
            )
            times = f'<S t="{first * self.target}" d="{self.target}" r="{count - 1}"/>'
            return (
                f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" {kind}><Period id="1" start="PT0S">'
                '<AdaptationSet mimeType="video/mp4"><SegmentTemplate timescale="1" initialization="init.mp4" '
                f'media="time-$Time$.m4s"><SegmentTimeline>{times}</SegmentTimeline></SegmentTemplate>'
                '<Representation id="v" bandwidth="1000"/></AdaptationSet></Period></MPD>'
            )

    def fetched(self, ending=".ts"):
        """The number of requests of each segment."""
        return collections.Counter(request.name[1:] for request in self.requests if request.name.endswith(ending))

    def loads(self, name="live.m3u8"):
        return [request for request in self.requests if request.name.endswith(name)]


def live(path="live.m3u8", **play):
    return {"origin": "shaped", "path": path, "live": True, **({"play": play} if play else {})}


def state(service, job):
    return service.get(f"/v1/jobs/{job}")


def items(service, job):
    return service.get(f"/v1/jobs/{job}/items?limit=1000")["items"]


@case
def follow(check, program, directory):
    """A live playlist is followed until its end: each new segment once, at the intervals of RFC 8216, conditionally."""
    stream = Stream()
    stream.grow(6)
    service = start(program, directory, stream)
    job = service.job(live())
    # A player begins three target durations before the end.
    check.eventually(lambda: sorted(stream.fetched()) == stream.names[3:], "the first segments", 10)
    check.eventually(lambda: items(service, job)[0]["state"] == "waiting", "the playlist does not wait")
    item = items(service, job)[0]
    check.equal((item["live"], item["waitingFor"], item["error"]), (True, "live", None), "the playlist")
    check(item["retryAt"], "the time of the next load", item)
    check.equal(state(service, job)["state"], "running", "the job")
    for _ in range(3):
        stream.grow(2)
        check.eventually(lambda: sorted(stream.fetched()) == stream.names[3:], "new segments", 10)
    before = len(stream.loads())
    time.sleep(5)
    loads = stream.loads()[before:]
    check(4 <= len(loads) <= 6, f"{len(loads)} loads in 5 s without a change")
    check(all(load.get("If-None-Match") and load.status == 304 for load in loads), "unconditional loads")
    stream.grow(1)
    stream.end()
    done = service.finished(job)
    check.equal((done["state"], done["atRisk"]), ("succeeded", False), "the end")
    check.equal(sorted(stream.fetched()), stream.names[3:], "segments")
    check.equal(set(stream.fetched().values()), {1}, "requests of each segment")
    found = items(service, job)
    check.equal(found[0]["state"], "succeeded", "the playlist")
    check(all(each["parent"] == 0 and each["state"] == "succeeded" for each in found[1:]), "files", found[-1])
    check.equal(len(found), 1 + len(stream.names[3:]), "items")
    done = service.finished(service.job(live("live.m3u8")))
    check.equal((done["state"], done["itemsTotal"]), ("succeeded", 1 + len(stream.names)), "a playlist that has ended")


@case
def variants(check, program, directory):
    """The playlists of a multivariant playlist are followed, and a DASH manifest; `play` selects renditions and the start."""
    stream = Stream()
    stream.grow(4)
    service = start(program, directory, stream)
    job = service.job(live("main.m3u8", startSeconds=0, renditions="all"))
    check.eventually(lambda: sorted(stream.fetched()) == stream.names, "all segments of the window", 10)
    other = service.job(live("index.mpd", startSeconds=0))
    times = lambda: sorted(stream.fetched(".m4s"))  # noqa: E731
    wanted = lambda: sorted(f"time-{number}.m4s" for number in range(len(stream.names)))  # noqa: E731
    check.eventually(lambda: times() == wanted(), "the segments of the manifest", 10)
    stream.grow(3)
    check.eventually(lambda: sorted(stream.fetched()) == stream.names, "new segments", 10)
    check.eventually(lambda: times() == wanted(), "new segments of the manifest", 10)
    check.equal(stream.fetched(".mp4"), {"init.mp4": 1}, "the initialization section")
    check.eventually(lambda: len([each for each in items(service, job) if each["waitingFor"] == "live"]) == 2, "two playlists")
    stream.end()
    check.equal(service.finished(job)["state"], "succeeded", "the job")
    check.equal(service.finished(other)["state"], "succeeded", "the job of the manifest")
    check.equal(set(stream.fetched().values()), {1}, "requests of each segment")
    for value, field in [
        (live(seconds=5), "play.seconds"), ({**live(), "ranges": ["bytes=0-1"]}, "live"), ({**live(), "list": {}}, "live"),
        ({**live(), "live": False, "play": {"renditions": "all"}}, "play.seconds"),
    ]:  # fmt: skip
        reply = service.call("POST", "/v1/jobs", {"items": [value]})
        check.equal((reply.status, reply.json.get("field")), (422, f"items[0].{field}"), f"{value}")
    done = service.finished(service.job({**live("a-1000.ts")}))
    check.equal(done["error"]["code"], "unsupportedMedia", "an item that is no playlist")


@case
def restart(check, program, directory):
    """A job goes on after a kill and after a pause, without a second request of a segment, and over an outage."""
    stream = Stream(window=50)
    stream.grow(3)
    service = start(program, directory, stream)
    job = service.job(live(startSeconds=0))
    # A segment that is requested but not yet stored when the job is stopped has to be requested again.
    done = lambda: state(service, job)["itemsDone"] == len(stream.names)  # noqa: E731
    saved = "SELECT count(*) FROM job_items WHERE state = 'succeeded'"
    check.eventually(done, "the first segments", 10)
    check.eventually(lambda: items(service, job)[0]["waitingFor"] == "live", "it does not wait")
    check.eventually(lambda: service.rows(saved) == [(3,)], "the items are not saved")
    service.process.send_signal(signal.SIGKILL)
    service.wait()
    stream.grow(2)
    service.start()
    check.eventually(done, "segments after the kill", 15)
    service.call("PATCH", f"/v1/jobs/{job}", {"state": "paused"})
    stream.grow(2)
    before = len(stream.requests)
    time.sleep(2.5)
    check(len(stream.requests) <= before + 1, "requests while paused")
    service.call("PATCH", f"/v1/jobs/{job}", {"state": "queued"})
    check.eventually(done, "segments after the pause", 15)
    stream.broken = True
    stream.grow(1)
    time.sleep(3)
    check.equal(state(service, job)["state"], "running", "the job in an outage")
    stream.broken = False
    check.eventually(done, "segments after the outage", 60)
    check.equal(sorted(stream.fetched()), stream.names, "segments")
    check.equal(set(stream.fetched().values()), {1}, "requests of each segment")
    service.stop()
    service.start()
    stream.grow(1)
    stream.end()
    check.equal(service.finished(job)["state"], "succeeded", "the job")
    check.equal(sorted(stream.fetched()), stream.names, "segments")
    check.equal(set(stream.fetched().values()), {1}, "requests of each segment")


@case
def ends(check, program, directory):
    """A cancel and a deadline end the following; a foreign segment and a limit of items fail alone."""
    stream = Stream()
    stream.grow(3)
    service = start(program, directory, stream, "limits.jobItems=7")
    job = service.job(live(), deadlineAt=instant(6))
    check.eventually(lambda: state(service, job)["itemsDone"] == 3, "the first segments", 10)
    check.equal(state(service, job)["predictedFinishAt"], None, "the predicted end")
    done = service.finished(job)
    check.equal((done["state"], done["atRisk"]), ("timedOut", False), "the deadline")
    job = service.job(live())
    check.eventually(lambda: items(service, job)[0]["waitingFor"] == "live", "it does not wait")
    check.equal(service.call("DELETE", f"/v1/jobs/{job}").json["state"], "cancelled", "the cancel")
    time.sleep(1)
    before = len(stream.loads())
    time.sleep(2)
    check.equal(len(stream.loads()), before, "loads after the cancel")
    stream.foreign = "http://127.0.0.2:1/other.ts"
    job = service.job(live())
    found = lambda: {each.get("url") or each["path"]: each for each in items(service, job)}  # noqa: E731
    check.eventually(lambda: stream.foreign in found() and found()[stream.foreign]["state"] == "failed", "a foreign segment", 10)
    check.equal(found()[stream.foreign]["error"]["code"], "upstreamForbidden", "the error of a foreign segment")
    check.equal(found()["live.m3u8"]["state"], "waiting", "the playlist")
    stream.foreign = None
    stream.grow(4)
    check.eventually(lambda: found()["live.m3u8"]["state"] == "failed", "too many files", 10)
    check.equal(found()["live.m3u8"]["error"]["code"], "jobTooLarge", "the error of too many files")
    check.equal(service.finished(job)["state"], "failed", "the job")


@case
def owners(check, program, directory):
    """A segment outside the limits of the token fails, as every named item does."""
    token = "part" * 12
    tokens = directory / "tokens.json"
    tokens.write_text(json.dumps({"tokens": [
        {"id": "part", "sha256": hashlib.sha256(token.encode()).hexdigest(), "scope": "write", "prefixes": ["/o/shaped/mine/"]},
    ]}))  # fmt: skip
    tokens.chmod(0o600)
    stream = Stream()
    stream.grow(2)
    stream.foreign = "../other/x.ts"
    service = start(program, directory, stream, f"access.tokensFile={tokens}")
    service.token = token
    job = service.job(live("mine/live.m3u8"))
    found = lambda: {each["path"]: each for each in items(service, job)}  # noqa: E731
    check.eventually(lambda: found().get("other/x.ts", {}).get("state") == "failed", "a segment outside", 10)
    check.equal(found()["other/x.ts"]["error"]["code"], "tokenScope", "its error")
    check.eventually(lambda: found()["mine/segment-00001.ts"]["state"] == "succeeded", "a segment inside", 10)
    check.equal([request.name for request in stream.requests if "other" in request.name], [], "requests outside")
    service.call("DELETE", f"/v1/jobs/{job}")


@case
def endless(check, program, directory):
    """The segments of a stream do not stay protected: a stream larger than the cache is followed."""
    stream = Stream(window=20)
    service = start(program, directory, stream, "policy.capacity=16MiB")
    stream.answer = lambda request, answer=stream.answer: (  # 1 MB each
        upstream.asset(1_000_000, etag=f'"{request.name}"') if request.name.endswith(".ts") else answer(request)
    )
    stream.grow(1)
    job = service.job(live(startSeconds=0))
    for count in range(8):
        stream.grow(4)
        check.eventually(lambda: len(stream.fetched()) == len(stream.names), f"segments of round {count}", 20)
    stream.end()
    done = service.finished(job)
    check.equal((done["state"], done["itemsFailed"]), ("succeeded", 0), "the job")
    check(done["bytesDone"] > 30 * MIB, "bytes", done)
