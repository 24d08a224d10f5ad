import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Lists of the files of playlists.
@Suite struct PlaylistListTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
        serve(
            "/t/index.m3u8",
            """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",URI="sound/a.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=100000,AUDIO="a"
            low.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=900000,AUDIO="a"
            high.m3u8
            """)
        for name in ["low", "high", "sound/a"] {
            serve(
                "/t/\(name).m3u8",
                """
                #EXTM3U
                #EXT-X-TARGETDURATION:6
                #EXT-X-KEY:METHOD=AES-128,URI="/t/key"
                #EXT-X-MAP:URI="\(name)-init.mp4"
                #EXTINF:6,
                \(name)-0.m4s
                #EXTINF:6,
                \(name)-1.m4s
                #EXT-X-ENDLIST
                """)
        }
        for path in Self.files { upstream.serve("/" + path, LoopbackAsset(size: 100)) }
    }

    private static let names = ["t/low", "t/high", "t/sound/sound/a"]
    private static let files = ["t/key"] + names.flatMap { ["\($0)-init.mp4", "\($0)-0.m4s", "\($0)-1.m4s"] }
    private static let playlists = ["index", "low", "high", "sound/a"].map { "t/\($0).m3u8" }

    private func serve(_ path: String, _ text: String) {
        upstream.serve(
            path, LoopbackAsset(content: Array(text.utf8), contentType: "application/vnd.apple.mpegurl"))
    }

    private func cache() throws -> TestCache {
        try TestCache(directory: directory.path("data"), origins: [TestCache.origin(upstream)])
    }

    private func order(_ path: String, _ change: (inout ListSelection) -> Void = { _ in }) -> CreateJobRequest {
        var order = CreateJobRequest(items: [(.media(path), [])])
        var selection = ListSelection()
        change(&selection)
        order.items[0].list = selection
        return order
    }

    private func paths(_ order: CreateJobRequest, in cache: AssetCache) async throws -> Set<String> {
        let plan = try await cache.jobs.plan(order)
        let paths = plan.entries.compactMap { entry -> String? in
            if case .mounted(_, let path, _) = entry.reference { path } else { nil }
        }
        #expect(plan.files == paths.count, "a file is selected twice: \(paths)")
        return Set(paths)
    }

    @Test("A list of a multivariant playlist selects all playlists and files, and a job fetches them")
    func aListOfAPlaylistSelectsAll() async throws {
        try await cache().run { cache in
            let all = Set(Self.files + Self.playlists)
            #expect(try await paths(order("t/index.m3u8"), in: cache) == all)
            #expect(try await paths(order("t/index.m3u8") { $0.format = .playlist }, in: cache) == all)
            let some = try await paths(order("t/index.m3u8") { $0.include = ["**/*.m4s"] }, in: cache)
            #expect(some == all.filter { $0.hasSuffix(".m4s") })
            #expect(try await paths(order("t/low.m3u8"), in: cache).count == 5)

            let job = try await cache.finished(try await cache.jobs.submit(order("t/index.m3u8")))
            #expect(job.record.state == .succeeded && job.tally[.succeeded] == 1 + all.count)

            let page = try await cache.lister.page(ListingRequest(origin: "media", path: "t/low.m3u8"))
            #expect(page.format == .playlist && page.entries.map(\.reference).contains("t/low-0.m4s"))
        }
    }

    @Test("Files and playlists outside the limits of a token are neither read nor selected")
    func theLimitsOfTheTokenHold() async throws {
        try await cache().run { cache in
            var order = order("t/index.m3u8")
            order.owner = TokenOwner(id: "t", limits: ContentLimits(prefixes: ["/o/media/t/index", "/o/media/t/low"]))
            let found = try await paths(order, in: cache)
            #expect(found == ["t/index.m3u8", "t/low.m3u8", "t/low-init.mp4", "t/low-0.m4s", "t/low-1.m4s"])
        }
        #expect(upstream.requests(for: "/t/high.m3u8").isEmpty)
    }

    @Test("A malformed playlist, and files of another host only, are errors")
    func badPlaylists() async throws {
        serve("/bad.mpd", "<MPD")
        serve(
            "/foreign.m3u8",
            "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\nhttp://other.example/0.ts\n#EXT-X-ENDLIST\n")
        try await cache().run { cache in
            for (path, code) in [("bad.mpd", "upstreamProtocol"), ("foreign.m3u8", "upstreamForbidden")] {
                do throws(CacheError) {
                    let plan = try await cache.jobs.plan(order(path))
                    Issue.record("\(path): \(plan)")
                } catch { #expect(error.code.name == code, "\(path)") }
            }
        }
    }
}
