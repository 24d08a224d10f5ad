import CacheAPI
import CacheCore
import CacheTestKit
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import CacheEngine
@testable import CacheStore

/// Locks that all assets share are not taken by answers that are at hand.
@Suite(.timeLimit(.minutes(20))) struct SharedLockTests {
    /// What `body` answers while another thread holds every such lock; nil where that had to let go of them first.
    private func holdingAll<Value>(of cache: AssetCache, _ body: () throws -> Value) rethrows -> Value? {
        let (taken, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let wasEnough = Mutex(true)
        let context = cache.context
        Thread.detachNewThread {
            context.commits.pending.withLock { _ in
                context.readLog.trace.withLock { _ in
                    context.store.shelf.circle.withLock { _ in
                        taken.signal()
                        if done.wait(timeout: .now() + 20) == .timedOut { wasEnough.withLock { $0 = false } }
                    }
                }
            }
            taken.signal()
        }
        taken.wait()
        let value = try body()
        done.signal()
        taken.wait()
        return wasEnough.withLock { $0 } ? value : nil
    }

    @Test(arguments: [1000, 300_000])
    func answersAtHandWaitForNoLockThatAllShare(size: Int) async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1 << 20))
            _ = try await service.call("GET", "/o/media/a.mp4")
            let assets = service.cache.context.openAssets.all
            #expect(try await eventually { assets.allSatisfy { $0.look { $0.fills.isEmpty } } })
            try await service.cache.context.commits.flush()
            let ranges = ["bytes=1-\(size)", "bytes=2-\(size)"]
            let answers = try holdingAll(of: service.cache) {
                let line = try RepriseTests.Line(service)
                // The first one by the express lane, the other one in front of it.
                return try ranges.map { try line.ask($0) }
            }
            let heads = try #require(answers).map { $0.prefix(12) }
            #expect(heads == ["HTTP/1.1 206", "HTTP/1.1 206"])
            try await service.cache.context.commits.flush()
            let hits = try await service.call("GET", "/v1/assets").json()["items"]?.array.first?["hits"]
            #expect(hits == 2)
        }
    }
}
