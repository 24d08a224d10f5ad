import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct HedgingTests {
    private let directory: TemporaryDirectory
    private let asset = LoopbackAsset(size: 1 << 20)

    init() throws { directory = try TemporaryDirectory() }

    /// Runs a cache with a manual upstream that has responded to 20 requests without delay.
    private func hedged(
        mirrors: [String] = [], _ body: @Sendable (AssetCache, ManualUpstream) async throws -> Void
    ) async throws {
        var settings = OriginSettings(baseURL: "http://127.0.0.1:1")
        settings.allowPrivateAddresses = true
        settings.freshness = .ttl(.seconds(3600))
        settings.hedging = true
        settings.mirrors = mirrors
        let kept = Kept()
        let test = try TestCache(
            directory: directory.path, origins: [Origin(name: "media", settings: settings)],
            upstream: { pool in kept.keep(ManualUpstream(parser: pool)) })
        let upstream = try #require(kept.upstream)
        try await test.run { cache in
            for number in 0..<20 {
                async let read = cache.body(of: "a.mp4", Int64(number) * 100..<Int64(number) * 100 + 100)
                try await upstream.transfer(number).succeed(with: asset)
                _ = try await read
            }
            #expect(upstream.transfers.count == 20)
            try await body(cache, upstream)
        }
    }

    /// The next request, which is sent, and its hedge, which is still queued.
    private func pair(_ upstream: ManualUpstream) async -> (first: ManualTransfer, second: ManualTransfer) {
        let first = await upstream.transfer(20)
        first.leaveQueue()
        return (first, await upstream.transfer(21))
    }

    @Test("A hedge stays queued and is not sent if the first response is in time")
    func aSecondRequestWaitsInTheQueueAndIsNeverSentWhereTheFirstIsInTime() async throws {
        try await hedged { cache, upstream in
            async let read = cache.body(of: "a.mp4", 5000..<6000)
            let (first, second) = await pair(upstream)
            #expect(second.request.delay >= .milliseconds(20) && second.request.delay < .seconds(5))
            #expect(second.request.window == first.request.window && second.request.url == first.request.url)
            #expect(first.answer(of: asset))
            let isSecondCancelled = try await eventually { second.isCancelled }
            #expect(isSecondCancelled && !first.isCancelled)
            try first.bring(asset.bytes(5000..<6000))
            first.end()
            let bytes = try await read.bytes
            second.end(.cancelled)
            let figures = try await cache.statistics.snapshot().all

            #expect(bytes == asset.bytes(5000..<6000))
            #expect(figures.fillsHedged == 0 && figures.hedgesWon == 0 && figures.fillsCancelled == 0)
        }
    }

    @Test("The faster response wins, and the bytes of the other are counted")
    func theQuickerAnswerWinsAndTheLosersBytesAreCounted() async throws {
        try await hedged { cache, upstream in
            async let read = cache.body(of: "a.mp4", 5000..<6000)
            let (first, second) = await pair(upstream)
            second.leaveQueue()
            #expect(second.answer(of: asset))
            let isFirstCancelled = try await eventually { first.isCancelled }
            #expect(isFirstCancelled)
            #expect(!first.answer(of: asset), "a response after the winning one must be rejected")
            try second.bring(asset.bytes(5000..<5500))
            first.end(.cancelled, dropped: 700)
            try second.bring(asset.bytes(5500..<6000))
            second.end()
            let bytes = try await read.bytes
            let figures = try await cache.statistics.snapshot().all

            #expect(bytes == asset.bytes(5000..<6000))
            #expect(figures.fillsHedged == 1 && figures.hedgesWon == 1)
            #expect(figures.refetchedBytes == 700 && figures.upstreamBytes == 20 * 100 + 1700)
            #expect(figures.fillsSucceeded == 21 && figures.fillsCancelled == 1)
            #expect(try await eventually { try await cache.isAtRest() })
        }
    }

    @Test("A late failure of the losing transfer has no effect")
    func aLosersLateFailureBreaksNothing() async throws {
        try await hedged { cache, upstream in
            async let read = cache.body(of: "a.mp4", 5000..<6000)
            let (first, second) = await pair(upstream)
            second.leaveQueue()
            #expect(first.answer(of: asset))
            try first.bring(asset.bytes(5000..<6000))
            first.end()
            second.end(.upstreamTimedOut(.firstByte))
            let figures = try await cache.statistics.snapshot().all

            #expect(try await read.bytes == asset.bytes(5000..<6000))
            #expect(figures.fillsHedged == 1 && figures.hedgesWon == 0)
        }
    }

    @Test("The hedge continues alone if the first transfer fails")
    func theHedgeCarriesOnAloneWhereTheFirstFails() async throws {
        try await hedged { cache, upstream in
            async let read = cache.body(of: "a.mp4", 5000..<6000)
            let (first, second) = await pair(upstream)
            second.leaveQueue()
            first.end(.upstreamUnreachable())
            #expect(!second.isCancelled)
            #expect(second.answer(of: asset))
            try second.bring(asset.bytes(5000..<6000))
            second.end()

            #expect(try await read.bytes == asset.bytes(5000..<6000))
            #expect(upstream.transfers.count == 22)
        }
    }

    @Test("A queued hedge is cancelled if the first transfer fails")
    func aHedgeThatIsNotSentYetGoesWithTheFirst() async throws {
        try await hedged { cache, upstream in
            async let read = cache.body(of: "a.mp4", 5000..<6000)
            let (first, second) = await pair(upstream)
            first.end(.upstreamUnreachable())
            let isSecondCancelled = try await eventually { second.isCancelled }
            #expect(isSecondCancelled)
            try await upstream.transfer(22).succeed(with: asset)

            #expect(try await read.bytes == asset.bytes(5000..<6000))
        }
    }

    @Test("The hedge is sent to a mirror")
    func theHedgeGoesToAMirror() async throws {
        try await hedged(mirrors: ["http://127.0.0.2:1/copy/"]) { cache, upstream in
            async let read = cache.body(of: "a.mp4", 5000..<6000)
            let (first, second) = await pair(upstream)
            #expect(second.request.url == "http://127.0.0.2:1/copy/a.mp4")
            second.leaveQueue()
            var other = asset
            other.etag = "\"v2\""
            #expect(!second.answer(of: other), "a hedge response of another version must be rejected")
            second.end(.upstreamProtocol)
            #expect(first.answer(of: asset))
            try first.bring(asset.bytes(5000..<6000))
            first.end()

            #expect(try await read.bytes == asset.bytes(5000..<6000))
            #expect(upstream.transfers.count == 22)
        }
    }

    @Test("Both attempts get the allowance and the shortened window")
    func bothAreToldWhatIsWanted() async throws {
        try await hedged { cache, upstream in
            async let read = cache.body(of: "a.mp4", 5000..<6000)
            let first = await upstream.transfer(20)
            let fill = try #require(
                try await cache.openAsset()?.look { state in
                    state.fills.first { state.ledger.state(of: $0.key)?.window == 5000..<6000 }?.value
                })
            fill.allow(upTo: 5500)
            fill.allow(upTo: 5300)
            first.leaveQueue()
            let second = await upstream.transfer(21)
            #expect(first.answer(of: asset))
            // Another thread may still be sending the commands.
            #expect(try await eventually { first.orders == [.allow(500)] && second.orders == [.cancel] })
            fill.allow(upTo: 5600)
            #expect(try await eventually { first.orders == [.allow(500), .allow(600)] })
            fill.shorten(to: 5400)
            #expect(try await eventually { first.orders.last == .shorten(400) })
            try first.bring(asset.bytes(5000..<5400))
            first.end()
            try await upstream.transfer(22).succeed(with: asset)

            #expect(try await read.bytes == asset.bytes(5000..<6000))
            #expect(upstream.transfers[22].request.window == .closed(5400..<6000))
        }
    }

    /// Captures the upstream created by the factory closure.
    private final class Kept {
        var upstream: ManualUpstream?

        func keep(_ upstream: ManualUpstream) -> ManualUpstream {
            self.upstream = upstream
            return upstream
        }
    }
}
