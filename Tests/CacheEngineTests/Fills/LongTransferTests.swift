import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

/// Bodies that only a single transfer can deliver, from an HTTP/2 upstream.
@Suite struct LongTransferTests {
    private func answered(
        size: Int64, _ body: @Sendable (AssetCache, ManualUpstream, HeaderList) async throws -> Void
    ) async throws {
        var settings = OriginSettings(baseURL: "https://127.0.0.1:1")
        settings.allowPrivateAddresses = true
        let directory = try TemporaryDirectory()
        var made: ManualUpstream?
        let test = try TestCache(directory: directory.path, origins: [Origin(name: "media", settings: settings)]) {
            let upstream = ManualUpstream(parser: $0)
            made = upstream
            return upstream
        }
        let upstream = try #require(made)
        try await test.run { cache in
            try await body(cache, upstream, ["Content-Length": "\(size)", "ETag": "\"v1\""])
        }
    }

    @Test("A long response that cannot be paused is requested again")
    func aLongOneIsAskedForAgainWhereItCanRest() async throws {
        try await answered(size: 100 << 20) { cache, upstream, fields in
            let asset = LoopbackAsset(size: 100 << 20)
            async let read = cache.body(of: "a.mp4", 0..<1000)
            let first = await upstream.transfer(0)
            first.leaveQueue()
            #expect(!first.answer(200, fields, httpVersion: "2"))
            first.end()
            let second = await upstream.transfer(1)
            #expect(second.request.mayBePaused && second.request.window == .whole)
            second.leaveQueue()
            #expect(second.answer(200, fields))
            try second.bring(asset.bytes(0..<1000))
            #expect(try await read.bytes == asset.bytes(0..<1000))
            second.end(.cancelled)
            #expect(upstream.transfers.count == 2)
        }
    }

    @Test("A short response that cannot be paused is accepted")
    func aShortOneIsTakenAsItComes() async throws {
        try await answered(size: 1 << 20) { cache, upstream, fields in
            let asset = LoopbackAsset(size: 1 << 20)
            async let read = cache.body(of: "a.mp4", 0..<1000)
            let only = await upstream.transfer(0)
            only.leaveQueue()
            #expect(only.answer(200, fields, httpVersion: "2"))
            try only.bring(asset.bytes(0..<1 << 20))
            only.end()
            #expect(try await read.bytes == asset.bytes(0..<1000))
            #expect(upstream.transfers.count == 1)
        }
    }
}
