import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Status of running fills, and their cancellation.
@Suite struct FillStatusTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test("A fill is listed while it runs and removed at its end")
    func aFillIsSeenWhileItRunsAndGoneWhenItHasEnded() async throws {
        try await bench.withStalledRead { cache, read in
            let (id, fill) = (try await bench.id(in: cache), read.fill)

            #expect(fill.position == 100_000 && fill.readers == 1)
            #expect(fill.assetID == id && fill.origin == "media" && fill.key == "/o/media/a.mp4")
            #expect(fill.kind == .opening && fill.range == 0..<400_000)
            let progress = fill.progress
            #expect(progress.stage == .running && progress.priority == .live && progress.attempt == 0)
            #expect(progress.httpVersion == "1.1")
            #expect(try cache.fills.fill(String(fill.number)).number == fill.number)

            read.resume()
            _ = try await read.task.value
            let isGone = try await eventually { try cache.fills.page(FillQuery()).items.isEmpty }
            #expect(isGone)
            #expect(throws: CacheError.self) { try cache.fills.fill(String(fill.number)) }
        }
    }

    @Test("Fills are listed in pages and filtered")
    func theListIsCutIntoPagesAndChosenFrom() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        for name in ["b", "c", "d"] {
            bench.upstream.serve("/\(name)", LoopbackAsset(size: 1000, faults: [.stallBeforeHead(until: latch)]))
        }
        try await bench.cache().run { cache in
            let readers = ["b", "c", "d"].map { name in Task { try await cache.body(of: name, 0..<1000) } }
            await bench.upstream.waitForRequests(3)
            let first = try cache.fills.page(FillQuery(limit: 2))
            let rest = try cache.fills.page(FillQuery(limit: 2, cursor: first.nextCursor))
            let one = try cache.fills.page(FillQuery(assetID: first.items[0].assetID))

            #expect(first.items.count == 2 && rest.items.count == 1 && rest.nextCursor == nil)
            #expect(Set((first.items + rest.items).map(\.number)).count == 3)
            #expect(one.items.map(\.number) == [first.items[0].number])
            #expect(try cache.fills.page(FillQuery(origin: "other")).items.isEmpty)
            #expect(try cache.fills.page(FillQuery(stage: .paused)).items.isEmpty)
            #expect(throws: CacheError.self) { try cache.fills.page(FillQuery(cursor: "x")) }
            latch.release()
            for reader in readers { _ = try await reader.value }
        }
    }

    @Test("A stopped fill fails its waiting readers, and later readers start a new fill")
    func aStoppedFillStaysStoppedForWhoWaitedAndNotForWhoComes() async throws {
        try await bench.withStalledRead { cache, read in
            try cache.fills.cancel(String(read.fill.number))
            let error = await #expect(throws: CacheError.self) { try await read.task.value }
            let isAtRest = try await eventually { try await cache.isAtRest() }

            #expect(isAtRest)
            #expect(error?.code == .conflict)
            #expect(bench.upstream.requests.count == 1)
            #expect(throws: CacheError.self) { try cache.fills.cancel(String(read.fill.number)) }
            let later = try await cache.body(of: "a.mp4", 0..<400_000)
            #expect(later.bytes.isSame(as: bench.asset.bytes(0..<400_000)))
            #expect(bench.upstream.requests.map(\.range) == [0..<400_000, 100_000..<400_000])
        }
    }

    @Test("Requests, bytes and connections are counted")
    func requestsBytesAndConnectionsAreCounted() async throws {
        try await bench.cache().run { cache in
            for start in 0..<4 as Range<Int64> {
                _ = try await cache.body(of: "a.mp4", (start * 1000)..<(start * 1000 + 1000))
            }
            // A transfer is counted after its reader was notified.
            let isCounted = try await eventually {
                try await cache.statistics.snapshot().load.workers.reduce(0) { $0 + $1.ended } == 4
            }
            let stats = try await cache.statistics.snapshot()
            #expect(isCounted)
            #expect(stats.all.requestedBytes == 4000)
            #expect(stats.load.openedConnections >= 1)
            #expect(stats.load.openedConnections + stats.load.reusedConnections == 4)
        }
    }
}
