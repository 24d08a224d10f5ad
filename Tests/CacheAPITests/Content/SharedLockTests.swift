import CacheAPI
import CacheCore
import CacheTestKit
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import CacheEngine
@testable import CacheStore

/// Responses from cache take no lock that all assets share: the locks of the commit queue, the access trace and the fd
/// cache.
@Suite(.timeLimit(.minutes(20))) struct SharedLockTests {
    /// The result of `body` while another thread holds all these locks; nil if that thread had to release them first.
    private func holdingAll<Value>(of cache: AssetCache, _ body: () throws -> Value) rethrows -> Value? {
        let (taken, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let wasEnough = Mutex(true)
        let context = cache.context
        Thread.detachNewThread {
            context.traceRecorder.trace.withLock { _ in
                context.commits.pending.withLock { _ in
                    context.store.descriptors.circle.withLock { _ in
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

    private static let count = 100

    @Test("Cached responses take no shared lock", arguments: [1000, 300_000])
    func answersAtHandWaitForNoLockThatAllShare(size: Int) async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 1 << 20))
            _ = try await service.call("GET", "/o/media/a.mp4")
            let assets = service.cache.context.openAssets.all
            #expect(try await eventually { assets.allSatisfy { $0.look { $0.fills.isEmpty } } })
            try await service.cache.context.commits.flush()
            let ranges = ["bytes=1-\(size)", "bytes=2-\(size)"]
            let answers = try holdingAll(of: service.cache) {
                let line = try PreparedResponseTests.Line(service)
                // All responses but the first are prepared.
                return try (0..<Self.count).map { number in
                    service.wallClock.advance(by: .milliseconds(100))
                    return try line.ask(ranges[number % 2])
                }
            }
            #expect(try #require(answers).allSatisfy { $0.hasPrefix("HTTP/1.1 206") })
            let areCounted = try await eventually {
                try await service.cache.context.commits.flush()
                let hits = try await service.call("GET", "/v1/assets").json()["items"]?.array.first?["hits"]
                return hits == .integer(Int64(Self.count))
            }
            #expect(areCounted)
        }
    }
}
