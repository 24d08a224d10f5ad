import CacheCore
import CacheStore
import CacheTestKit
import MediaParsing
import TestMedia
import Testing

@testable import CacheEngine

/// Jobs by time, and the calls that use a media index, with a real store and a loopback upstream.
@Suite struct PlayTests {
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

    /// Ten samples of one second and 100,000 bytes, with the index behind them.
    private static let movie: [UInt8] = {
        var movie = MovieBuilder()
        movie.mediaLength = 1_000_000
        movie.stsz = BoxBuilder.full("stsz", BoxBuilder.u32(100_000, 10))
        movie.chunkOffsets = [0, 200_000, 400_000, 600_000, 800_000]
        return movie.tailFile()
    }()

    private func play(_ path: String, _ time: Range<Double>, _ cache: AssetCache) async throws -> JobSnapshot {
        var order = CreateJobRequest.of(path)
        order.items[0].play = PlayRequest(time: time)
        return try await cache.finished(try await cache.jobs.submit(order))
    }

    private func ranges(of id: AssetID, time: Range<Double>, _ cache: AssetCache) async throws -> [ByteRange] {
        let needs = try await cache.media.needs(of: .known(id), for: PlayRequest(time: time))
        if case .ranges(let ranges) = needs { return ranges }
        Issue.record("a playlist")
        return []
    }

    private func items(of job: JobSnapshot, _ cache: AssetCache) async throws -> [JobItemRecord] {
        try await cache.jobs.items(job.record.id).items
    }

    @Test("A job without a start begins at the live position of a player", arguments: [nil, -8.0])
    func live(start: Double?) async throws {
        let lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:4"] + (0..<10).flatMap { ["#EXTINF:4,", "\($0).ts"] }
        let playlist = LoopbackAsset(
            content: Array((lines + [""]).joined(separator: "\n").utf8), contentType: "application/vnd.apple.mpegurl")
        upstream.serve("/live.m3u8", playlist)
        for number in 0..<10 { upstream.serve("/\(number).ts", LoopbackAsset(size: 5_000, seed: UInt64(number + 1))) }

        try await cache().run { cache in
            var order = CreateJobRequest.of("live.m3u8")
            let from = start ?? 0
            order.items[0].play = PlayRequest(time: from..<from + 4, hasStart: start != nil)
            let job = try await cache.finished(try await cache.jobs.submit(order))
            #expect(job.record.state == .succeeded, "\(job.record.error as Any)")
            let items = try await items(of: job, cache)
            let first = start == nil ? 6 : 7
            let expected = (first...first + 2).map { AssetReference.media("\($0).ts") }
            #expect(items.map(\.reference) == [.media("live.m3u8")] + expected)
            #expect(items[0].playResult?.playableSeconds == 4)
        }
    }

    @Test("A playlist is fetched with its segments, also if the upstream states no length", arguments: [true, false])
    func playlist(acceptsRanges: Bool) async throws {
        let lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:6", "#EXTINF:6,", "0.ts", "#EXTINF:6,", "1.ts", "#EXTINF:6,"]
        let text = (lines + ["2.ts", "#EXT-X-ENDLIST", ""]).joined(separator: "\n")
        var playlist = LoopbackAsset(content: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
        playlist.framing = .chunked
        playlist.acceptsRanges = acceptsRanges
        upstream.serve("/index.m3u8", playlist)
        for number in 0..<3 { upstream.serve("/\(number).ts", LoopbackAsset(size: 50_000, seed: UInt64(number + 1))) }

        try await cache().run { cache in
            let job = try await play("index.m3u8", 7..<11, cache)
            #expect(job.record.state == .succeeded, "\(job.record.error as Any)")
            let items = try await items(of: job, cache)
            // The second segment contains the time, and players open the playlist with the first one.
            #expect(items.map(\.reference) == [.media("index.m3u8"), .media("0.ts"), .media("1.ts")])
            #expect(items[0].playResult?.playableSeconds == 4)
            #expect(try await cache.body(of: "1.ts").bytes == LoopbackUpstream.bytes(at: 0..<50_000, seed: 2))
        }
        #expect(upstream.requests(for: "/index.m3u8").count == 1)
    }

    @Test("Base URLs are compared with the URLs of files after normalisation")
    func normalisedBaseURL() async throws {
        let port = upstream.url("/").split(separator: ":")[2].dropLast()
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\nhttp://LOCALHOST:\(port)/0.ts\n#EXT-X-ENDLIST\n"
        upstream.serve("/index.m3u8", LoopbackAsset(content: Array(text.utf8), contentType: nil))
        upstream.serve("/0.ts", LoopbackAsset(size: 5000))

        try await cache { $0.baseURL = "http://LocalHost:\(port)" }.run { cache in
            let job = try await play("index.m3u8", 0..<1, cache)
            #expect(job.record.state == .succeeded, "\(job.record.error as Any)")
            #expect(try await items(of: job, cache).last?.reference == .media("0.ts"))
        }
    }

    @Test("A time of a movie is made playable, explained and mapped")
    func movie() async throws {
        upstream.serve("/tail.mp4", LoopbackAsset(content: Self.movie, contentType: "video/mp4"))
        try await cache().run { cache in
            let id = try await cache.resolver.resolve(.media("tail.mp4")).id
            // The index of a cold file is fetched, its media data are not.
            let cold = try await cache.media.needs(of: .media("tail.mp4"), for: PlayRequest(time: 2..<3))
            guard case .ranges(let needed) = cold else {
                Issue.record("a playlist")
                return
            }
            #expect(needed.contains { $0.contains(250_000) })
            #expect(upstream.requests.allSatisfy { $0.range.map { !$0.contains(250_000) } ?? false })
            #expect(try await cache.media.map(of: id, buckets: 10)[2].cached < 0.5)

            let job = try await play("tail.mp4", 7..<8, cache)
            #expect(job.record.state == .succeeded, "\(job.record.error as Any)")
            let before = upstream.requests.count
            let report = try await cache.media.media(of: id)
            #expect(report.playable.contains { $0.contains(7) && $0.contains(7.9) }, "\(report.playable)")

            let cached = try await ranges(of: id, time: 7..<8, cache)
            let explained = try await cache.reader.explain(
                .known(id), request: ContentRequest(headers: [:]), ranges: cached)
            #expect(explained.forecast.requestCount == 0 && explained.wanted == cached)
            let missing = try await ranges(of: id, time: 2..<3, cache)
            let other = try await cache.reader.explain(
                .known(id), request: ContentRequest(headers: [:]), ranges: missing)
            #expect(other.forecast.requestCount == 1 && (other.forecast.requestedBytes ?? 0) > 100_000)

            let map = try await cache.media.map(of: id, buckets: 10)
            let seconds: [Range<Double>] = (0..<10).map { (number: Int) in Double(number)..<Double(number + 1) }
            #expect(map.map(\.time) == seconds)
            #expect(map.allSatisfy { $0.range.length == 100_000 })
            #expect(map[7].cached == 1 && map[3].cached == 0, "\(map.map(\.cached))")
            #expect(upstream.requests.count == before)
        }
    }

    @Test("A span of a file without an index costs few requests, and stays playable after a restart")
    func withoutIndex() async throws {
        let clusters = (0..<2000).flatMap { EBMLBuilder.cluster($0 * 100, bytes: 2500) }
        let bytes = EBMLBuilder.header + EBMLBuilder.element(0x1853_8067, EBMLBuilder.tracks + clusters)
        upstream.serve("/live.mkv", LoopbackAsset(content: bytes, contentType: "video/x-matroska"))
        try await cache().run { cache in
            let job = try await play("live.mkv", 100..<110, cache)
            #expect(job.record.state == .succeeded, "\(job.record.error as Any)")
            #expect(try await items(of: job, cache).first?.playResult?.playableSeconds == 10)
        }
        #expect(upstream.requests.count <= 7, "\(upstream.requests.map(\.range))")
        let before = upstream.requests.count
        try await cache().run { cache in
            let id = try await cache.resolver.resolve(.media("live.mkv")).id
            let playable = try await cache.media.media(of: id).playable
            #expect(playable.first.map { $0.lowerBound == 0 && $0.contains(109) } == true, "\(playable)")
        }
        #expect(upstream.requests.count == before)
    }

    @Test(
        "A failed item reports the bytes that it fetched, and names the other ways",
        arguments: [nil, LoopbackFault.pace(bytesPerSecond: 256 << 10)])
    func failure(fault: LoopbackFault?) async throws {
        let bytes = Array("RIFF....WAVE".utf8) + [UInt8](repeating: 0, count: 100_000)
        var file = LoopbackAsset(content: bytes, contentType: "audio/wav")
        file.faults = [fault].compactMap(\.self)
        upstream.serve("/a.wav", file)
        try await cache().run { cache in
            let item = try await items(of: try await play("a.wav", 0..<1, cache), cache).first
            #expect(item?.state == .failed && item?.error?.code == "unsupportedMedia")
            #expect(item?.error?.message.contains("WAV has no index") == true)
            #expect(item?.error?.message.contains("otherwise") == true)
            let sent = upstream.requests(for: "/a.wav").compactMap(\.range).map {
                $0.clamped(to: 0..<Int64(bytes.count)).length
            }
            #expect(!sent.isEmpty && item?.bytesFromUpstream == sent.reduce(0, +), "\(item as Any) \(sent)")
        }
    }

    @Test("Damaged bytes of an index are fetched again")
    func damagedIndex() async throws {
        upstream.serve("/tail.mp4", LoopbackAsset(content: Self.movie, contentType: "video/mp4"))
        try await cache { $0.verification = .always }.run { cache in
            _ = try await cache.body(of: "tail.mp4")
            let id = try await cache.resolver.resolve(.media("tail.mp4")).id
            try await cache.context.commits.flush()
            try damage(try #require(try directory.assetFiles("data").first), at: Int64(Self.movie.count - 100))
            let report = try await cache.media.media(of: id)
            guard case .index(let index) = report.document else {
                Issue.record("no index")
                return
            }
            #expect(index.duration == 10 && index.layout == .tailIndex)
        }
    }

    @Test(
        "The index at the end is fetched while a player reads the beginning",
        arguments: [(true, "bytes=0-"), (false, "bytes=0-"), (true, nil)])
    func anticipatedIndex(isSet: Bool, range: String?) async throws {
        let isOn = isSet && range != nil
        let headers: HeaderList = range.map { ["Range": $0] } ?? [:]
        upstream.serve("/tail.mp4", LoopbackAsset(content: Self.movie, contentType: "video/mp4"))
        let index = Int64(Self.movie.count) - 500..<Int64(Self.movie.count)
        try await cache { $0.anticipatesIndex = isSet }.run { cache in
            let read = try await cache.reader.read(.media("tail.mp4"), request: ContentRequest(headers: headers))
            var received: [UInt8] = []
            while received.count < 400_000, let bytes = try await read.nextBytes() { received += bytes }
            if isOn {
                await upstream.waitForRequests(2, for: "/tail.mp4")
                #expect(upstream.requests(for: "/tail.mp4").last?.range?.contains(index.lowerBound) == true)
            }
            while let bytes = try await read.nextBytes() { received += bytes }
            read.finish(.sent)
            #expect(received == Self.movie)
        }
        #expect(upstream.requests(for: "/tail.mp4").count == (isOn ? 2 : 1))
    }

    @Test("A client that hangs up early causes no request for the index")
    func earlyHangUp() async throws {
        upstream.serve("/tail.mp4", LoopbackAsset(content: Self.movie, contentType: "video/mp4"))
        try await cache().run { cache in
            let read = try await cache.reader.read(.media("tail.mp4"), request: ContentRequest(headers: [:]))
            _ = try await read.nextBytes()
            read.finish(.clientGone)
            await upstream.waitForOpenConnections(atMost: 1)
        }
        #expect(upstream.requests(for: "/tail.mp4").count == 1)
    }
}
