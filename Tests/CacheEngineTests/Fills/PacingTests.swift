import CacheCore
import CacheTestKit
import NIOCore
import Testing

@testable import CacheEngine

/// Number of bytes fetched for readers that are slow, stop or wait, over real sockets.
@Suite struct PacingTests {
    private static let size: Int64 = 64 << 20

    private func open(_ cache: AssetCache) async throws -> ContentRead {
        do {
            return try await cache.reader.read(Bench.media, request: ContentRequest(headers: ["Range": "bytes=0-"]))
        } catch {
            throw error.error
        }
    }

    /// Reads at least `bytes` from `position` and compares them, unless the body ends. Returns the new position.
    private func take(
        _ bytes: Int64, from position: Int64, of read: ContentRead, _ asset: LoopbackAsset
    ) async throws -> Int64 {
        var position = position
        let end = position + bytes
        while position < end, let buffer = try await read.next() {
            let range = ByteRange(offset: position, length: Int64(buffer.readableBytes))
            #expect(Array(buffer.readableBytesView).isSame(as: asset.bytes(range)))
            position = range.upperBound
        }
        return position
    }

    @Test("A reader that disconnects early has little fetched ahead of it")
    func aReaderWhoHangsUpEarlyHasHadLittleFetchedAheadOfIt() async throws {
        let bench = try Bench(LoopbackAsset(size: Self.size))
        try await bench.cache().run { cache in
            let read = try await open(cache)
            let position = try await take(100_000, from: 0, of: read, bench.asset)
            read.finish(.clientGone)
            let isAtRest = try await eventually { try await cache.isAtRest() }

            #expect(isAtRest)
            #expect(position < 200_000)
            #expect(try await cache.statistics.snapshot().all.requestedBytes < 512 << 10)
            #expect(bench.upstream.requests.count == 1)
        }
    }

    @Test("A transfer without ranges pauses ahead of a slow reader and resumes")
    func aTransferWithoutRangesRestsAheadOfASlowReaderAndGoesOnToTheEnd() async throws {
        let bench = try Bench(LoopbackAsset(size: Self.size, acceptsRanges: false))
        try await bench.cache { $0.readAheadBytes = 1 << 20 }.run { cache in
            let read = try await open(cache)
            var position = try await take(100_000, from: 0, of: read, bench.asset)
            let isResting = try await eventually { cache.context.upstreams.client.load.paused == 1 }
            let fetched = try await cache.openAsset()?.look { $0.ledger.extents.byteCount } ?? 0
            position = try await take(Self.size, from: position, of: read, bench.asset)
            read.finish(.sent)

            #expect(isResting)
            #expect(fetched < 4 << 20)
            #expect(position == Self.size)
            #expect(bench.upstream.requests.count == 1)
        }
    }

    @Test("A paused transfer closed by its upstream is restarted with correct bytes")
    func aRestingTransferWhoseUpstreamClosedIsBegunAgainAndNothingIsWrong() async throws {
        let bench = try Bench(LoopbackAsset(size: Self.size, acceptsRanges: false))
        bench.upstream.failNext("/a.mp4", .cut(after: 20 << 20))
        try await bench.cache { $0.readAheadBytes = 1 << 20 }.run { cache in
            let read = try await open(cache)
            var position = try await take(100_000, from: 0, of: read, bench.asset)
            let isResting = try await eventually { cache.context.upstreams.client.load.paused == 1 }
            position = try await take(Self.size, from: position, of: read, bench.asset)
            read.finish(.sent)

            #expect(isResting)
            #expect(position == Self.size)
            #expect(bench.upstream.requests.count == 2)
        }
    }

    @Test("A reader in mid-body waits no longer than its timeout")
    func aReaderInMidBodyWaitsNoLongerThanItMay() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        let bench = try Bench()
        let cached: Int64 = 128 << 10
        // Stored by a cache with a longer timeout: only the wait in mid-body depends on the upstream's speed.
        try await bench.cache().run { cache in _ = try await cache.body(of: "a.mp4", 0..<cached) }
        bench.upstream.failNext("/a.mp4", .stallBeforeBody(until: latch))
        try await bench.cache { $0.readTimeout = .seconds(2) }.run { cache in
            let read = try await open(cache)
            let position = try await take(cached, from: 0, of: read, bench.asset)
            let error = await #expect(throws: CacheError.self) { try await read.next() }
            read.finish(.sent)

            #expect(position == cached)
            #expect(error?.code == .upstreamTimedOut(.read))
            #expect(try await cache.statistics.snapshot().all.waits["timedOut"] == 1)
        }
    }

    @Test("A stopped fill is not restarted for its reader, but a new reader starts one")
    func aReaderWhoseFillWasStoppedIsNotFetchedForAnyMoreAndANewOneIs() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        let bench = try Bench()
        bench.upstream.failNext("/a.mp4", .stall(after: 100_000, until: latch))
        try await bench.cache().run { cache in
            let read = try await open(cache)
            await latch.reached()
            let fill = try #require(try await cache.openAsset()?.look { $0.fills.keys.first })
            try await cache.openAsset()?.cancel(fill: fill)
            let error = await #expect(throws: CacheError.self) {
                _ = try await take(200_000, from: 0, of: read, bench.asset)
            }
            read.finish(.clientGone)
            let again = try await cache.body(of: "a.mp4", 0..<200_000)

            #expect(error?.code == .conflict)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<200_000)))
        }
    }

    @Test("A broken transfer of many readers is restarted once")
    func aBrokenTransferOfManyReadersIsBegunAgainOnce() async throws {
        let bench = try Bench()
        bench.upstream.failNext("/a.mp4", .cut(after: 200_000))
        try await bench.cache().run { cache in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<40 {
                    group.addTask {
                        let read = try await cache.body(of: "a.mp4", 0..<500_000)
                        #expect(read.bytes.isSame(as: bench.asset.bytes(0..<500_000)))
                    }
                }
                try await group.waitForAll()
            }

            #expect(bench.upstream.requests.map(\.range) == [0..<500_000, 200_000..<500_000])
        }
    }
}
