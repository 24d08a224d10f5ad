#!/usr/bin/env python3
"""Asks a Larder process about titles: playlists and manifests, before anything is cached, after a job, and live.

    titles.py --larder .build/debug/larder

The upstream is a small server in this process, which counts its requests and decides the header fields.
"""

import datetime
import pathlib
import re
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import checks, upstream  # noqa: E402
from harness.process import Larder  # noqa: E402

SEGMENT, COUNT, BYTES = 4, 15, 20_000
OLD = "Wed, 01 Jan 2025 00:00:00 GMT"
#: The beginning of the live manifest, in seconds since 1970.
BEGIN = int(time.time()) - 1000


def multivariant():
    return "\n".join([
        "#EXTM3U", '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="s",NAME="Deutsch",LANGUAGE="de",URI="sound/de.m3u8"',
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="s",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="sound/en.m3u8"',
        '#EXT-X-STREAM-INF:BANDWIDTH=500000,RESOLUTION=640x360,CODECS="avc1.4d401e,mp4a.40.2",AUDIO="s"', "low/v.m3u8",
        '#EXT-X-STREAM-INF:BANDWIDTH=3000000,RESOLUTION=1920x1080,CODECS="hvc1.1,mp4a.40.2",AUDIO="s"', "high/v.m3u8", "",
    ])  # fmt: skip


def media(name, target=SEGMENT, ends=True):
    lines = ["#EXTM3U", f"#EXT-X-TARGETDURATION:{target}"]
    lines += [line for number in range(COUNT) for line in (f"#EXTINF:{SEGMENT},", f"{name}{number}.ts")]
    return "\n".join(lines + (["#EXT-X-ENDLIST"] if ends else []) + [""])


def manifest():
    begin = datetime.datetime.fromtimestamp(BEGIN, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"""<MPD type="dynamic" availabilityStartTime="{begin}" minimumUpdatePeriod="PT2S" timeShiftBufferDepth="PT60S"
        suggestedPresentationDelay="PT20S"><Period start="PT0S"><AdaptationSet contentType="video">
        <SegmentTemplate duration="{SEGMENT}" startNumber="0" media="$Number$.m4s"/>
        <Representation id="a" bandwidth="1"/></AdaptationSet></Period></MPD>"""


TEXTS = {
    "/title/index.m3u8": multivariant(), "/title/low/v.m3u8": media("v"), "/title/high/v.m3u8": media("v"),
    "/title/sound/de.m3u8": media("de"), "/title/sound/en.m3u8": media("en"), "/live/index.mpd": manifest(),
    "/live/slow.m3u8": media("v", target=600, ends=False), "/live/ended.m3u8": media("v", target=600),
    "/live/stated.m3u8": media("v", target=600, ends=False),
}  # fmt: skip


class Upstream(upstream.Upstream):
    """Sends TEXTS, and zeros for each segment."""

    def answer(self, request):
        text = TEXTS.get(request.path)
        body = text.encode() if text else bytes(BYTES) if re.search(r"\.(ts|m4s)$", request.path) else None
        if body is None:
            return upstream.Answer(404)
        lifetime = "max-age=77" if request.path == "/live/stated.m3u8" else None
        options = {"data": body, "etag": f'"{len(body)}"', "last_modified": OLD, "content_type": None}
        return upstream.asset(**options, cache_control=lifetime).answer(request)

    @property
    def paths(self):
        return [request.path for request in self.requests]


class Run(checks.Part):
    """The checks of one part, with the service that they ask and its upstream."""

    def __init__(self, name, larder, origin):
        super().__init__(name)
        self.larder, self.upstream = larder, origin

    def get(self, path, /, expected=200, **query):
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        reply = self.larder.call("GET", target)
        self.check(reply.status == expected, f"{target}: {reply}")
        return reply.json

    def asset(self, path):
        return self.get("/v1/assets", key=f"/o/media/{path}")["items"][0]["assetId"]

    def job(self, path, play, expected="succeeded"):
        identifier = self.larder.job({"origin": "media", "path": path, "play": play})
        found = self.larder.finished(identifier)
        self.check(found["state"] == expected, f"the job of {path}: {found}")
        return self.larder.items(f"/v1/jobs/{identifier}/items")


def spans(found):
    return [(span["startSeconds"], span["endSeconds"]) for span in found]


def previews(run):
    """A cold title: requests for playlists only."""
    plan = run.get("/v1/explain", origin="media", path="title/index.m3u8", startSeconds=20, seconds=8)
    run.check(len(plan["files"]) == plan["total"]["files"] > 8, f"explain lists the files: {plan['total']}")
    run.check(plan["total"]["errors"] == 0 and plan["total"]["cachedBytes"] > 0, f"no errors: {plan['total']}")
    found = run.get(f"/v1/assets/{run.asset('title/index.m3u8')}/media")
    run.check(found["playable"] == [] and found["durationSeconds"] == SEGMENT * COUNT, f"nothing plays yet: {found}")
    run.check([r["segments"] for r in found["renditions"]] == [COUNT] * 4, f"segments: {found['renditions']}")
    parts = run.get(f"/v1/assets/{run.asset('title/index.m3u8')}/map", by="time", buckets=COUNT)["buckets"]
    run.check([part["cached"] for part in parts] == [0] * COUNT, f"the map of a cold title: {parts}")
    run.check(all(path.endswith(".m3u8") for path in run.upstream.paths), f"requests: {run.upstream.paths}")


def jobs(run):
    """A job of 20 s makes 20 s playable, and these calls say so."""
    items = run.job("title/index.m3u8", {"seconds": 20})
    run.check(items[0]["playableSeconds"] == 20, f"the job: {items[0]}")
    before = len(run.upstream.paths)
    path = f"/v1/assets/{run.asset('title/index.m3u8')}"
    found = run.get(f"{path}/media")
    run.check(spans(found["playable"]) == [(0, 24)] and found["playableUntilSeconds"] == 24, f"playable: {found}")
    plan = run.get("/v1/explain", origin="media", path="title/index.m3u8", startSeconds=0, seconds=20)
    run.check(plan["total"]["requests"] == 0 and plan["total"]["bytes"] == 0, f"nothing to fetch: {plan['total']}")
    parts = run.get(f"{path}/map", by="time", buckets=COUNT)["buckets"]
    run.check([part["cached"] for part in parts] == [1] * 6 + [0] * (COUNT - 6), f"the map: {parts}")
    run.check(len(run.upstream.paths) == before, f"no requests: {run.upstream.paths[before:]}")


def choices(run):
    """Renditions by language, codec and height."""
    found = run.get(f"/v1/assets/{run.asset('title/index.m3u8')}/media")["renditions"]
    shown = [(r["language"], r["height"], r["codecs"][:1]) for r in found]
    expected = [("de", None, []), ("en", None, []), (None, 360, ["avc1.4d401e"]), (None, 1080, ["hvc1.1"])]
    run.check(shown == expected, f"the renditions: {shown}")
    for choice, folders in [
        ({"language": "de"}, {"low": "v", "sound": "de"}), ({"codecs": "hvc1"}, {"high": "v", "sound": "en"}),
        ({"maxHeight": 1080, "language": "de"}, {"high": "v", "sound": "de"}),
        ({"maxHeight": 1080, "maxBitsPerSecond": 1000000}, {"low": "v", "sound": "en"}),
    ]:  # fmt: skip
        items = run.job("title/index.m3u8", {"seconds": 4, "renditions": choice})
        names = {tuple(item["path"].split("/")[1:]) for item in items[1:]}
        playlists = {folder: name[:-5] for folder, name in names if name.endswith(".m3u8")}
        run.check(playlists == folders, f"{choice}: {names}")
        query = ",".join(f"{name}={value}" for name, value in choice.items())
        plan = run.get("/v1/explain", origin="media", path="title/index.m3u8", seconds=4, renditions=query)
        run.check(plan["total"]["files"] == len(items) - 1, f"explain of {choice}: {plan['total']}")
    items = run.job("title/index.m3u8", {"seconds": 4, "renditions": {"language": "fr"}}, expected="failed")
    error = items[0]["error"]
    run.check(error["code"] == "outOfRange" and "audio de; audio en" in error["message"], f"no such language: {error}")


def freshness(run):
    """Live playlists without a lifetime have that of their text."""
    for path, seconds in [("live/slow.m3u8", 300), ("live/ended.m3u8", 86400), ("live/stated.m3u8", 77)]:
        run.check(run.larder.ask("GET", f"/o/media/{path}")[0] == 200, f"{path} is served")

        def has_lifetime():
            until = run.get("/v1/explain", origin="media", path=path)["freshness"]["freshUntilAt"]
            left = datetime.datetime.fromisoformat(until.replace("Z", "+00:00")).timestamp() - time.time()
            return seconds - 60 < left <= seconds + 1

        run.eventually(has_lifetime, f"{path} is fresh for {seconds} s")


def live(run):
    """A live manifest: the job begins 20 s before the edge."""
    before = time.time() - BEGIN
    items = run.job("live/index.mpd", {"seconds": 8})
    after = time.time() - BEGIN
    numbers = [int(re.search(r"(\d+)\.m4s", item["path"])[1]) for item in items[1:]]
    first, last = int((before - 20.3) / SEGMENT), int((after - 20 + 8.3) / SEGMENT)
    run.check(numbers and first <= numbers[0] and numbers[-1] <= last, f"{numbers} are in {first}…{last}")
    run.check(items[0]["playableSeconds"] == 8, f"the job: {items[0]}")
    plan = run.get("/v1/explain", origin="media", path="live/index.mpd", seconds=4, startSeconds=-12)
    run.check(plan["total"]["files"] in (1, 2, 3) and plan["total"]["errors"] == 0, f"explain: {plan['total']}")


def main():
    parser = checks.arguments(__doc__)
    options = parser.parse_args()
    results, origin = checks.Checks("titles"), Upstream()
    larder = Larder(checks.program_of(parser, options), checks.directory("titles"), origin.port).start()
    for part in (previews, jobs, choices, freshness, live):
        run = Run(part.__name__, larder, origin)
        part(run)
        results.add(run, part.__doc__)
    results.equal(larder.stop(), 0, "the exit code of Larder")
    sys.exit(results.finish())


if __name__ == "__main__":
    main()
