import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// The freshness of live playlists, and jobs in live manifests, with a real store and a loopback upstream.
@Suite struct LivePlaylistReadTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    private func cache(_ freshness: OriginSettings.Freshness = .respect) throws -> TestCache {
        var origin = TestCache.origin(upstream)
        origin.settings.freshness = freshness
        return try TestCache(directory: directory.path("data"), origins: [origin], policy: TestCache.policy)
    }

    /// Serves a text without `Date`, so that its age is zero.
    private func serve(_ path: String, _ text: String) {
        let fields: HeaderList = [
            "Content-Type": "text/plain", "ETag": "\"v1\"", "Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT",
        ]
        upstream.serve(path) { request in
            let isUnchanged = request.headers["If-None-Match"] != nil
            return .response(
                status: isUnchanged ? 304 : 200, headers: fields, body: isUnchanged ? [] : Array(text.utf8))
        }
    }

    /// Waits until the text of the playlist has decided its lifetime.
    private func settled(_ path: String, _ cache: AssetCache) async throws -> Generation {
        let id = try await cache.resolver.resolve(.media(path)).id
        let isSettled = try await eventually {
            guard let generation = cache.context.openAssets[id]?.record?.generation else { return false }
            return generation.playlistGuess == nil
        }
        #expect(isSettled)
        return try #require(cache.context.openAssets[id]?.record?.generation)
    }

    private static let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n"

    @Test("A live playlist is fresh for half a target duration, also after a confirmation")
    func live() async throws {
        serve("/live.m3u8", Self.playlist)
        let cache = try cache()
        try await cache.run { engine in
            for round in 1...3 {
                _ = try await engine.body(of: "live.m3u8")
                let generation = try await settled("live.m3u8", engine)
                #expect(generation.freshUntil == generation.receivedAt + .seconds(2))
                cache.wallClock.advance(by: .milliseconds(1900))
                #expect(try await engine.body(of: "live.m3u8").outcome.requestClass == .hit)
                #expect(upstream.requests.count == round)
                cache.wallClock.advance(by: .milliseconds(200))
            }
        }
    }

    @Test("Other playlists and other settings keep their lifetimes")
    func others() async throws {
        serve("/vod.m3u8", Self.playlist + "#EXT-X-ENDLIST\n")
        serve("/text.m3u8", "no playlist")
        try await cache().run { engine in
            for path in ["vod.m3u8", "text.m3u8"] {
                _ = try await engine.body(of: path)
                let generation = try await settled(path, engine)
                #expect(generation.freshUntil.map { $0.since(generation.receivedAt) > .seconds(3600) } == true)
            }
        }
    }

    @Test("A ttl of the origin takes precedence")
    func ttl() async throws {
        serve("/live.m3u8", Self.playlist)
        try await cache(.ttl(.seconds(600))).run { engine in
            _ = try await engine.body(of: "live.m3u8")
            let generation = try await settled("live.m3u8", engine)
            #expect(generation.freshUntil == generation.receivedAt + .seconds(600))
        }
    }

    @Test("A job in a live manifest begins at the position of a player", arguments: [nil, -6.0])
    func manifest(start: Double?) async throws {
        // The clock of the cache is 1,000.5 s behind the beginning.
        let manifest = """
            <MPD type="dynamic" availabilityStartTime="2026-05-28T20:09:59.5Z" suggestedPresentationDelay="PT10S"
            timeShiftBufferDepth="PT60S" minimumUpdatePeriod="PT2S"><Period start="PT0S"><AdaptationSet
            contentType="video"><SegmentTemplate duration="4" startNumber="0" media="$Number$.m4s"/>
            <Representation id="a" bandwidth="1"/></AdaptationSet></Period></MPD>
            """
        serve("/live.mpd", manifest)
        for number in 230..<260 {
            upstream.serve("/\(number).m4s", LoopbackAsset(size: 5000, seed: UInt64(number)))
        }
        let cache = try cache()
        try await cache.run { engine in
            let now = engine.context.wallClock.now()
            let elapsed = try #require(RFC3339.parse("2026-05-28T20:09:59.5Z")).milliseconds
            let edge = Double(now.milliseconds - elapsed) / 1000
            for round in 0..<2 {
                var order = CreateJobRequest.of("live.mpd")
                let from = start ?? 0
                order.items[0].play = PlayRequest(time: from..<from + 4, hasStart: start != nil)
                let job = try await engine.finished(try await engine.jobs.submit(order))
                #expect(job.record.state == .succeeded, "\(job.record.error as Any)")
                let items = try await engine.jobs.items(job.record.id).items
                let begin = edge + Double(round) * 8 + (start ?? -10)
                let first = Int((begin - 0.25) / 4)
                let last = min(Int((edge + Double(round) * 8) / 4) - 1, Int((begin + 4.25) / 4))
                #expect(items.dropFirst().map(\.reference) == (first...last).map { .media("\($0).m4s") })
                #expect(items[0].playResult?.start == begin)
                cache.wallClock.advance(by: .seconds(8))
            }
        }
    }
}
