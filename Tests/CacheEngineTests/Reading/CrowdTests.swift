import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// More reads than upstreams can serve.
@Suite struct CrowdTests {
    @Test("A full fill queue rejects misses and still serves hits")
    func whatMustBeFetchedIsRefusedWhileTooMuchQueuesAndTheRestIsServed() async throws {
        let latch = LoopbackLatch()
        let upstream = try LoopbackUpstream()
        let directory = try TemporaryDirectory()
        for name in ["/here.mp4", "/1.mp4", "/2.mp4", "/3.mp4"] { upstream.serve(name, LoopbackAsset(size: 10_000)) }
        var origin = TestCache.origin(upstream)
        origin.settings.maxTransfers = 1
        let test = try TestCache(directory: directory.path, origins: [origin], maxQueuedFills: 1)
        try await test.run { cache in
            let here = try await cache.body(of: "here.mp4", 0..<10_000)
            upstream.failNext("/1.mp4", [.stallBeforeHead(until: latch)])
            try await withThrowingTaskGroup(of: Int.self) { group in
                group.addTask { try await cache.body(of: "1.mp4", 0..<10_000).bytes.count }
                let isUnderWay = try await eventually { !upstream.requests(for: "/1.mp4").isEmpty }
                group.addTask { try await cache.body(of: "2.mp4", 0..<10_000).bytes.count }
                let isFull = try await eventually { cache.context.upstreams.client.queuedForReaders == 1 }
                #expect(isUnderWay && isFull)

                await #expect { try await cache.body(of: "3.mp4", 0..<10_000) } throws: { error in
                    (error as? CacheError)?.code == .overloaded
                }
                let again = try await cache.body(of: "here.mp4", 0..<10_000)
                #expect(again.outcome.requestClass == .hit && again.bytes == here.bytes)
                #expect(upstream.requests(for: "/3.mp4").isEmpty)
                latch.release()
                for try await count in group { #expect(count == 10_000) }
            }
            #expect(try await cache.body(of: "3.mp4", 0..<10_000).bytes.count == 10_000)
        }
    }
}
