import CacheCore
@testable import CacheEngine
import CacheTestKit
import Testing

@Suite struct CancellationTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test("Cancelling the reader ends its fill, and the received bytes are a hit")
    func aCancelledReaderEndsItsFillAndWhatArrivedIsAHit() async throws {
        try await bench.withStalledRead({ $0.finishIfRemainingBytes = 0 }) { cache, read in
            read.task.cancel()
            let error = await #expect(throws: CacheError.self) { try await read.task.value }
            let isAtRest = try await eventually { try await cache.isAtRest() }
            let again = try await cache.body(of: "a.mp4", 0..<100_000)

            #expect(error?.code == .cancelled)
            #expect(isAtRest)
            #expect(again.outcome.requestClass == .hit)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<100_000)))
            #expect(bench.upstream.requests.count == 1)
        }
    }

    @Test("Cancelling a reader before its first byte does not count as a timeout")
    func aReaderCancelledBeforeItsFirstByteHasNotTimedOut() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        bench.upstream.failNext("/a.mp4", .stallBeforeHead(until: latch))
        try await bench.cache().run { cache in
            let reader = Task { try await cache.body(of: "a.mp4", 0..<1000) }
            await latch.reached()
            reader.cancel()
            let error = await #expect(throws: CacheError.self) { try await reader.value }
            let isAtRest = try await eventually { try await cache.isAtRest() }

            #expect(error?.code == .cancelled)
            #expect(isAtRest)
            #expect(try await cache.statistics.snapshot().all.count(.error) == 1)
            #expect(try await cache.statistics.snapshot().all.clientAborted == 1)
        }
    }

    @Test("If one of two readers leaves, the fill continues for the other")
    func oneReaderOfTwoMayGoAndTheOtherIsServedByTheSameFill() async throws {
        try await bench.withStalledRead { cache, evicting in
            let staying = Task { try await cache.body(of: "a.mp4", 100_000..<400_000) }
            _ = try await eventually { try await cache.openAsset()?.look { $0.ledger.readerCount } == 2 }
            evicting.task.cancel()
            _ = await evicting.task.result
            evicting.resume()
            let bytes = try await staying.value.bytes

            #expect(bytes.isSame(as: bench.asset.bytes(100_000..<400_000)))
            #expect(bench.upstream.requests.count == 1)
        }
    }

    @Test("A fill stopped by an administrator fails its reader with a conflict")
    func anAdministratorStopsAFillAndItsReaderIsTold() async throws {
        try await bench.withStalledRead { cache, read in
            let id = try await bench.id(in: cache)
            let stopped = try await cache.assets.cancelFills(of: id)
            let error = await #expect(throws: CacheError.self) { try await read.task.value }
            let isAtRest = try await eventually { try await cache.isAtRest() }

            #expect(stopped == 1)
            #expect(error?.code == .conflict)
            #expect(isAtRest)
            #expect(try await cache.assets.extents(of: id) == [0..<100_000])
        }
    }
}
