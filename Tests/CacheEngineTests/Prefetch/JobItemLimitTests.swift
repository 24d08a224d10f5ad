import CacheCore
import CacheEngine
import CacheStore
import CacheTestKit
import Testing

/// The limits of the number of items of jobs.
@Suite struct JobItemLimitTests {
    private let upstream: LoopbackUpstream
    private let directory: TemporaryDirectory

    init() throws {
        upstream = try LoopbackUpstream()
        directory = try TemporaryDirectory()
    }

    private func cache(_ limits: PrefetchSchedule.Limits) throws -> TestCache {
        try TestCache(directory: directory.path("data"), origins: [TestCache.origin(upstream)], jobLimits: limits)
    }

    /// Serves a playlist of `count` segments of six seconds.
    private func serve(_ name: String, segments count: Int) {
        let segments = (0..<count).flatMap { ["#EXTINF:6,", "\(name)-\($0).ts"] }
        let lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:6"] + segments + ["#EXT-X-ENDLIST", ""]
        upstream.serve(
            "/\(name).m3u8",
            LoopbackAsset(
                content: Array(lines.joined(separator: "\n").utf8), contentType: "application/vnd.apple.mpegurl"))
        for number in 0..<count { upstream.serve("/\(name)-\(number).ts", LoopbackAsset(size: 1000)) }
    }

    /// A request for all segments of playlists, and for whole files.
    private func order(_ playlists: String..., files: [String] = []) -> CreateJobRequest {
        var order = CreateJobRequest(items: (playlists.map { $0 + ".m3u8" } + files).map { (.media($0), []) })
        for index in playlists.indices { order.items[index].play = PlayRequest(time: 0..<600) }
        return order
    }

    @Test("A playlist above the limit of a job fails with jobTooLarge, smaller ones and other jobs succeed")
    func aPlaylistAboveTheLimitFails() async throws {
        serve("long", segments: 20)
        serve("short", segments: 3)
        upstream.serve("/a.mp4", LoopbackAsset(size: 1000))
        try await cache(PrefetchSchedule.Limits(jobItems: 10)).run { cache in
            let mixed = try await cache.jobs.submit(order("long", "short", files: ["a.mp4"]))
            let small = try await cache.jobs.submit(order("short", files: ["a.mp4"]))

            let (ended, other) = (try await cache.finished(mixed), try await cache.finished(small))

            #expect(other.record.state == .succeeded && other.tally[.succeeded] == 5)
            #expect(ended.record.state == .failed && ended.record.error?.code == "jobTooLarge")
            #expect(ended.tally[.failed] == 1 && ended.tally[.succeeded] == 5)
            let items = try await cache.jobs.items(mixed.record.id).items
            #expect(items.map(\.error?.code) == ["jobTooLarge"] + Array(repeating: nil, count: 5))
        }
        #expect(upstream.requests(for: "/long-0.ts").isEmpty)
    }

    @Test("A request with more items than the limit is refused with the remedy")
    func aListAboveTheLimitIsRefused() async throws {
        try await cache(PrefetchSchedule.Limits(jobItems: 2)).run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.jobs.submit(.of("a", "b", "c")) }

            #expect(error?.code == .jobTooLarge)
            #expect(error?.message.contains("limits.jobItems") == true)
            let kept = try await cache.jobs.page().items
            #expect(kept.isEmpty)
        }
    }

    @Test("Unfinished items count again after a restart, and a repeated idempotency key is still answered")
    func unfinishedItemsAreCountedAfterARestart() async throws {
        let latch = LoopbackLatch()
        for name in ["a", "b", "c"] {
            upstream.serve("/\(name)", LoopbackAsset(size: 1000, faults: [.stallBeforeHead(until: latch)]))
        }
        let limits = PrefetchSchedule.Limits(unfinishedItems: 3)
        let first = try await cache(limits).run { cache in
            let job = try await cache.jobs.submit(.of("a", "b"), idempotencyKey: "k")
            await latch.reached()
            return job
        }

        try await cache(limits).run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.jobs.submit(.of("b", "c")) }
            #expect(error?.code == .overloaded && error?.message.contains("limits.unfinishedJobItems") == true)
            let again = try await cache.jobs.submit(.of("a", "b"), idempotencyKey: "k")
            #expect(again.record.id == first.record.id)
            latch.release()
            #expect(try await cache.finished(again).record.state == .succeeded)
            #expect(try await cache.finished(try await cache.jobs.submit(.of("b", "c"))).record.state == .succeeded)
        }
    }
}
