import CacheCore
import CacheStore
import CacheTestKit
import Dispatch
import Testing

@testable import CacheEngine

/// Removal of an asset while its first response is being judged.
@Suite struct RowTests {
    @Test("A response judged during the removal of its asset creates no row", arguments: ["ETag", "X-Other"])
    func whatIsJudgedWhileItsAssetIsRemovedMakesNoRow(_ validator: String) async throws {
        let directory = try TemporaryDirectory()
        let origin = Origin(name: "media", settings: OriginSettings(baseURL: "http://127.0.0.1:1"))
        var made: ManualUpstream?
        let test = try TestCache(directory: directory.path, origins: [origin]) { pool in
            let upstream = ManualUpstream(parser: pool)
            made = upstream
            return upstream
        }
        let upstream = try #require(made)
        try await test.run { cache in
            let open = try await cache.resolver.open(try await cache.resolver.resolve(Bench.media))
            let reader = try open.join(opening: .closed(0..<1000), priority: .live, mustConfirm: false)
            let transfer = await upstream.transfer(0)
            transfer.leaveQueue()
            // The judging thread notifies the reader after its decision. The removal runs during this notification.
            let removed = DispatchSemaphore(value: 0)
            let (sent, command) = AsyncStream<Void>.makeStream()
            _ = try open.presence(of: reader) { _ in
                command.finish()
                removed.wait()
            }
            async let judged: Void = answer(transfer, validator)
            for await _ in sent {}
            try await cache.evictor.remove(
                [open.id], because: .purge, telling: CacheError(.assetChanged, "As the test says."))
            removed.signal()
            await judged
            transfer.end(.cancelled)
            open.leave(reader)
            cache.context.openAssets.release(open)
            try await cache.context.commits.flush()

            #expect(try await test.store.load(open.id) == nil)
        }
    }

    /// Sends the response from a thread that may block. Returns when the response is judged.
    private func answer(_ transfer: ManualTransfer, _ validator: String) async {
        await withCheckedContinuation { done in
            DispatchQueue.global().async {
                var headers: HeaderList = ["Content-Range": "bytes 0-999/1048576", "Content-Length": "1000"]
                headers.set(validator, "\"v1\"")
                transfer.answer(206, headers)
                done.resume()
            }
        }
    }
}
