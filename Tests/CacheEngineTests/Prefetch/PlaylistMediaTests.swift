import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// The time-based calls for playlists, with a real store and a loopback upstream.
@Suite struct PlaylistMediaTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    private func cache(_ settings: (inout OriginSettings) -> Void = { _ in }) throws -> TestCache {
        var origin = TestCache.origin(upstream)
        settings(&origin.settings)
        return try TestCache(directory: directory.path("data"), origins: [origin], policy: TestCache.policy)
    }

    private func serve(_ path: String, _ lines: [String], type: String = "application/vnd.apple.mpegurl") {
        let text = (lines + [""]).joined(separator: "\n")
        upstream.serve(path, LoopbackAsset(content: Array(text.utf8), contentType: type))
    }

    /// A title with two variant streams and a sound rendition, each with ten segments of four seconds.
    private func serveTitle() {
        serve(
            "/title/index.m3u8",
            [
                "#EXTM3U", "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"s\",NAME=\"de\",URI=\"sound/a.m3u8\"",
                "#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS=\"avc1,mp4a\",AUDIO=\"s\"", "low/v.m3u8",
                "#EXT-X-STREAM-INF:BANDWIDTH=9000,CODECS=\"avc1,mp4a\",AUDIO=\"s\"", "high/v.m3u8",
            ])
        for (folder, name) in [("low", "v"), ("high", "v"), ("sound", "a")] {
            let segments = (0..<10).flatMap { ["#EXTINF:4,", "\($0).ts"] }
            serve(
                "/title/\(folder)/\(name).m3u8",
                ["#EXTM3U", "#EXT-X-TARGETDURATION:4"] + segments + ["#EXT-X-ENDLIST"])
            for number in 0..<10 {
                upstream.serve("/title/\(folder)/\(number).ts", LoopbackAsset(size: 5000, seed: UInt64(number + 1)))
            }
        }
    }

    private func files(
        of path: String, _ play: PlayRequest, _ cache: AssetCache, owner: TokenOwner? = nil
    ) async throws -> [MediaNeeds.File] {
        guard case .files(let files) = try await cache.media.needs(of: .media(path), for: play, owner: owner) else {
            Issue.record("no playlist")
            return []
        }
        return files
    }

    @Test("A title is explained and mapped before anything is cached, with requests for playlists only")
    func preview() async throws {
        serveTitle()
        try await cache().run { cache in
            let files = try await files(of: "title/index.m3u8", PlayRequest(time: 20..<24), cache)
            let names = ["low/v.m3u8", "low/0.ts", "low/1.ts", "low/4.ts", "low/5.ts", "low/6.ts"]
            let sound = ["sound/a.m3u8", "sound/0.ts", "sound/1.ts", "sound/4.ts", "sound/5.ts", "sound/6.ts"]
            #expect(files.map(\.reference) == (names + sound).map { .media("title/" + $0) })
            #expect(files.allSatisfy { $0.error == nil })

            let explanation = try await cache.reader.explain(
                .media("title/index.m3u8"), request: ContentRequest(headers: [:]), files: files)
            // The playlists are on disk now, and each segment needs a request.
            #expect(explanation.total.requests == 10 && explanation.total.files == 12)
            #expect(explanation.total.bytes == nil && explanation.total.errors == 0)

            let id = try await cache.resolver.resolve(.media("title/index.m3u8")).id
            let report = try #require(try await cache.media.media(of: id).playlist)
            #expect(report.renditions.map(\.segments) == [10, 10, 10] && report.duration == 40)
            #expect(report.playable.isEmpty)
            let map = try await cache.media.map(of: id, buckets: 10)
            #expect(map.count == 10 && map.allSatisfy { $0.cached == 0 && $0.heat == 0 })
        }
        #expect(upstream.requests.allSatisfy { $0.path.hasSuffix(".m3u8") }, "\(upstream.requests.map(\.path))")
    }

    @Test("The playable time after a job is that of the files on disk, also after a restart")
    func playable() async throws {
        serveTitle()
        try await cache().run { cache in
            var order = CreateJobRequest.of("title/index.m3u8")
            order.items[0].play = PlayRequest(time: 0..<20)
            let job = try await cache.finished(try await cache.jobs.submit(order))
            #expect(job.record.state == .succeeded, "\(job.record.error as Any)")
            let before = upstream.requests.count
            let id = try await cache.resolver.resolve(.media("title/index.m3u8")).id
            let report = try await cache.media.media(of: id)
            // The segment that begins at the end of the span is part of the job.
            #expect(report.playable == [0..<24])
            // The high variant was not selected.
            #expect(report.playlist?.renditions.map(\.playable) == [[0..<24], [0..<24], []])
            let map = try await cache.media.map(of: id, buckets: 10)
            #expect(map.map(\.cached) == [1, 1, 1, 1, 1, 1, 0, 0, 0, 0])
            let explanation = try await cache.reader.explain(
                .media("title/index.m3u8"), request: ContentRequest(headers: [:]),
                files: try await files(of: "title/index.m3u8", PlayRequest(time: 0..<4), cache))
            #expect(explanation.total.requests == 0 && explanation.total.bytes == 0)
            #expect(explanation.total.cachedBytes > 20_000)
            #expect(upstream.requests.count == before + 1, "only the high variant's playlist is fetched")
            // A file that is evicted ends the playable time there.
            let segment = try await cache.resolver.resolve(.media("title/sound/2.ts")).id
            _ = try await cache.assets.dropExtents(of: segment, in: 0..<100)
            #expect(try await cache.media.media(of: id).playable == [0..<8, 12..<24])
        }
        try await cache().run { cache in
            let id = try await cache.resolver.resolve(.media("title/index.m3u8")).id
            #expect(try await cache.media.media(of: id).playable == [0..<8, 12..<24])
        }
    }

    @Test("Files outside the limits of a token are neither fetched nor reported")
    func limits() async throws {
        serve(
            "/a/index.m3u8",
            [
                "#EXTM3U", "#EXT-X-STREAM-INF:BANDWIDTH=1000", "../b/v.m3u8", "#EXT-X-STREAM-INF:BANDWIDTH=2000",
                "v.m3u8",
            ])
        let head = ["#EXTM3U", "#EXT-X-TARGETDURATION:4", "#EXTINF:4,"]
        serve("/b/v.m3u8", head + ["0.ts", "#EXT-X-ENDLIST"])
        serve("/a/v.m3u8", head + ["0.ts", "#EXTINF:4,", "../b/0.ts", "#EXT-X-ENDLIST"])
        for path in ["/a/0.ts", "/b/0.ts"] { upstream.serve(path, LoopbackAsset(size: 5000)) }
        let owner = TokenOwner(id: "t", limits: ContentLimits(prefixes: ["/o/media/a/"]))
        try await cache().run { cache in
            for path in ["a/0.ts", "b/0.ts"] { _ = try await cache.body(of: path) }
            let cold = try await files(
                of: "a/index.m3u8", PlayRequest(time: 0..<8, renditions: .all), cache, owner: owner)
            #expect(cold.first?.error?.code == .tokenScope)
            #expect(cold.last?.reference == .media("b/0.ts") && cold.last?.error?.code == .tokenScope)
            let id = try await cache.resolver.resolve(.media("a/index.m3u8")).id
            let report = try #require(try await cache.media.media(of: id, for: owner).playlist)
            #expect(report.renditions.map(\.error?.code) == [.tokenScope, nil])
            #expect(report.renditions[0].segments == nil && report.playable == [0..<4])
            #expect(upstream.requests(for: "/b/v.m3u8").isEmpty)
            #expect(try await cache.media.map(of: id, buckets: 2, for: owner).map(\.cached) == [1, 0])

            let all = try await cache.media.media(of: id)
            #expect(all.playable == [0..<8])
        }
    }

    @Test("A choice that matches no rendition is an error that lists them")
    func noMatch() async throws {
        serveTitle()
        try await cache().run { cache in
            let filter = RenditionFilter(language: "fr")
            var order = CreateJobRequest.of("title/index.m3u8")
            order.items[0].play = PlayRequest(time: 0..<20, renditions: .matching(filter))
            let job = try await cache.finished(try await cache.jobs.submit(order))
            let item = try #require(try await cache.jobs.items(job.record.id).items.first)
            #expect(item.error?.code == "outOfRange", "\(item.error as Any)")
            #expect(item.error?.message.contains("language=fr") == true)
            #expect(item.error?.message.contains("audio; video avc1,mp4a 1000 bit/s; ") == true, "\(item.error as Any)")
        }
    }

    @Test("A file of another host is an error of that file only")
    func otherHost() async throws {
        serve(
            "/index.m3u8",
            ["#EXTM3U", "#EXT-X-TARGETDURATION:4", "#EXTINF:4,", "http://other.example/0.ts", "#EXT-X-ENDLIST"])
        try await cache().run { cache in
            let files = try await files(of: "index.m3u8", PlayRequest(time: 0..<4), cache)
            #expect(files.map(\.error?.code) == [.upstreamForbidden])
            let id = try await cache.resolver.resolve(.media("index.m3u8")).id
            #expect(try await cache.media.media(of: id).playlist?.renditions.first?.segments == 1)
        }
    }

    @Test("A media playlist that fails is an error of its rendition only")
    func failedRendition() async throws {
        serve("/index.m3u8", ["#EXTM3U", "#EXT-X-STREAM-INF:BANDWIDTH=1", "missing.m3u8"])
        try await cache().run { cache in
            let files = try await files(of: "index.m3u8", PlayRequest(time: 0..<4), cache)
            #expect(files.map { $0.error == nil } == [false])
            let id = try await cache.resolver.resolve(.media("index.m3u8")).id
            let report = try #require(try await cache.media.media(of: id).playlist)
            #expect(report.renditions.first?.error != nil && report.playable.isEmpty)
        }
    }
}
