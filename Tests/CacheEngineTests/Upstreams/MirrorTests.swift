import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct MirrorTests {
    private let bench: Bench
    private let mirror: LoopbackUpstream

    init() throws {
        bench = try Bench()
        mirror = try LoopbackUpstream()
        mirror.serve("/copy/a.mp4", bench.asset)
    }

    private func cache(_ change: (inout OriginSettings) -> Void = { _ in }) throws -> TestCache {
        try bench.cache { settings in
            settings.mirrors = [mirror.url("/copy/")]
            change(&settings)
        }
    }

    /// Sets the response of the origin to all further requests.
    private func turn(_ answer: LoopbackAnswer) { bench.upstream.serve("/a.mp4") { _ in answer } }

    static let failures: [LoopbackAnswer] = [
        .hangUp, .response(status: 503), .response(status: 503, headers: ["Retry-After": "9"]),
    ]

    /// Waits until a probe has found the origin healthy again.
    private func awaitOrigin(in cache: AssetCache) async throws {
        let (upstream, url) = (cache.assets.context.upstreams.client, bench.upstream.url("/a.mp4"))
        #expect(try await eventually { !upstream.isFailing(url) })
    }

    @Test("Takes over if the origin fails midway", arguments: failures)
    func takesOverWhereTheOriginFailsMidway(_ failure: LoopbackAnswer) async throws {
        try await cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<100_000)
            turn(failure)
            let read = try await cache.body(of: "a.mp4", 0..<600_000)
            let record = try await cache.assets.asset(try await bench.id(in: cache)).record

            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<600_000)))
            #expect(mirror.requests.map(\.range) == [100_000..<600_000])
            #expect(mirror.requests.first?.headers["If-Range"] == "\"v1\"")
            #expect(record.url == bench.upstream.url("/a.mp4") && record.generation.number == 1)
        }
    }

    @Test("Takes over if the origin cuts the body and then fails")
    func takesOverWhereTheOriginIsCutAndThenGone() async throws {
        bench.upstream.serve("/a.mp4") { [asset = bench.asset] request in
            var cut = asset
            cut.faults = [.cut(after: 200_000)]
            return request.number == 0 ? .asset(cut) : .hangUp
        }
        try await cache().run { cache in
            let read = try await cache.body(of: "a.mp4")

            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(bench.upstream.requests.map(\.range).prefix(2) == [0..<bench.asset.size, nil])
            #expect(mirror.requestedRanges("/copy/a.mp4") == ByteRangeSet([200_000..<bench.asset.size]))
            #expect(mirror.requestedBytes("/copy/a.mp4") == bench.asset.size - 200_000)
        }
    }

    @Test("Answers for an origin that was never reached")
    func answersForAnOriginThatNobodyHasSeenYet() async throws {
        bench.upstream.stop()
        try await cache().run { cache in
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.status == 206 && read.bytes == bench.asset.bytes(0..<1000))
        }
    }

    static let unprovable = [
        LoopbackAsset(size: 3 << 20, seed: 2, etag: "W/\"v1\"", lastModified: nil),
        LoopbackAsset(size: 3 << 20, seed: 2, etag: nil, lastModified: nil),
    ]

    @Test("An unverifiable copy is served in one transfer", arguments: unprovable)
    func servesInOneTransferWhatNothingCanBeJoinedTo(_ copy: LoopbackAsset) async throws {
        turn(.hangUp)
        mirror.serve("/copy/a.mp4", copy)
        try await cache().run { cache in
            let part = try await cache.body(of: "a.mp4", 1000..<2000)
            let whole = try await cache.body(of: "a.mp4")
            let again = try await cache.body(of: "a.mp4")

            #expect(part.status == 206 && part.bytes == copy.bytes(1000..<2000))
            #expect(whole.bytes.isSame(as: copy.bytes(0..<copy.size)))
            #expect(again.outcome.requestClass == .hit && again.bytes.isSame(as: whole.bytes))
        }
    }

    @Test("Two unverifiable copies are not combined", arguments: unprovable)
    func twoCopiesThatNothingJoinsAreNotPutTogether(_ copy: LoopbackAsset) async throws {
        turn(.hangUp)
        let second = try LoopbackUpstream()
        let other = LoopbackAsset(size: copy.size, seed: 3, etag: copy.etag, lastModified: nil)
        second.serve("/a.mp4", other)
        mirror.serve("/copy/a.mp4") { request in
            var cut = copy
            cut.faults = [.cut(after: 200_000)]
            return request.number < 2 ? .asset(cut) : .hangUp
        }
        try await cache { $0.mirrors.append(second.url("")) }.run { cache in
            // The first read is cut off, or fails because its transfer broke before the read began.
            let first = try? await cache.body(of: "a.mp4")
            let read = try await cache.body(of: "a.mp4")

            if let first { #expect(first.bytes.isSame(as: other.bytes(0..<other.size))) }
            #expect(read.bytes.isSame(as: other.bytes(0..<other.size)))
        }
    }

    @Test("A copy that differs from the description by the origin is rejected", arguments: unprovable)
    func whatTheOriginHasDescribedIsNotTakenFromACopyThatIsDescribedOtherwise(_ copy: LoopbackAsset) async throws {
        let mine = LoopbackAsset(size: 3 << 20, etag: "W/\"mine\"", lastModified: nil)
        bench.upstream.serve("/a.mp4") { $0.number == 0 ? .asset(mine) : .hangUp }
        mirror.serve("/copy/a.mp4", copy)
        try await cache { $0.retries = 1 }.run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            bench.upstream.serve("/a.mp4", mine)
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(error?.code == .upstreamProtocol, "the failure of the origin must be reported")
            #expect(read.bytes == mine.bytes(0..<1000))
        }
    }

    @Test("Only the origin opens a generation after a mirror answered")
    func onlyTheOriginOpensAGenerationAfterAMirrorAnswered() async throws {
        turn(.hangUp)
        try await cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            let changed = LoopbackAsset(size: 2 << 20, seed: 2, etag: "\"v2\"")
            bench.upstream.serve("/a.mp4", changed)
            try await awaitOrigin(in: cache)
            _ = try? await cache.body(of: "a.mp4", 1000..<2000)
            let read = try await cache.body(of: "a.mp4", 0..<2000)

            #expect(read.bytes == changed.bytes(0..<2000))
        }
    }

    static let others = [
        LoopbackAsset(size: 3 << 20, seed: 2, etag: "\"v2\""), LoopbackAsset(size: 2 << 20),
        LoopbackAsset(size: 3 << 20, etag: nil, lastModified: nil),
        LoopbackAsset(size: 3 << 20, seed: 2, etag: "\"v2\"", acceptsRanges: false),
    ]

    @Test("A different copy is never mixed in", arguments: others)
    func anotherCopyIsNeverMixedIn(_ other: LoopbackAsset) async throws {
        mirror.serve("/copy/a.mp4", other)
        try await cache { $0.retries = 2 }.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<100_000)
            turn(.response(status: 503))
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<600_000) }
            let present = try await cache.body(of: "a.mp4", 0..<100_000)
            let record = try await cache.assets.asset(try await bench.id(in: cache)).record

            #expect(error?.code == .upstreamRefused(status: 503))
            #expect(present.bytes.isSame(as: bench.asset.bytes(0..<100_000)))
            #expect(record.generation.number == 1 && record.generation.validators.entityTag?.description == "\"v1\"")
            #expect(mirror.requests.count == 1, "the mirror must be requested once per series of failures")
        }
    }

    @Test("The next mirror is requested if the first has a different copy")
    func theNextMirrorIsAskedWhereTheFirstHasAnotherCopy() async throws {
        mirror.serve("/copy/a.mp4", Self.others[0])
        let second = try LoopbackUpstream()
        second.serve("/a.mp4", bench.asset)
        let test = try cache { settings in
            settings.mirrors.append(second.url(""))
            settings.retries = 1
        }
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<100_000)
            turn(.hangUp)
            let read = try await cache.body(of: "a.mp4", 0..<200_000)

            #expect(read.bytes.isSame(as: bench.asset.bytes(0..<200_000)))
            #expect(mirror.requests.count == 1 && second.requests.map(\.range) == [100_000..<200_000])
        }
    }

    @Test("A refusal by a mirror is not attributed to the asset", arguments: [404, 410, 403])
    func whatAMirrorDoesNotHaveIsNotGone(_ status: Int) async throws {
        turn(.hangUp)
        mirror.serve("/copy/a.mp4") { _ in
            .response(status: status, headers: ["Cache-Control": "max-age=3600"])
        }
        try await cache { $0.retries = 1 }.run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            bench.upstream.serve("/a.mp4", bench.asset)
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(error?.code == .upstreamProtocol, "the failure of the origin must be reported")
            #expect(read.bytes == bench.asset.bytes(0..<1000), "the rejection by the mirror must not be cached")
        }
    }

    @Test("A mirror can confirm a matching generation")
    func aMirrorConfirmsWhatItAgreesWith() async throws {
        let test = try cache { $0.freshness = .ttl(.seconds(60)) }
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            test.wallClock.advance(by: .seconds(120))
            turn(.hangUp)
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.bytes == bench.asset.bytes(0..<1000))
            #expect(read.outcome.requestClass == .revalidated)
            #expect(mirror.requests.map(\.status) == [304])
        }
    }

    @Test("New fills start at the mirror, and at the origin again once a probe has succeeded")
    func newFillsBeginAtTheOriginAgain() async throws {
        try await cache().run { cache in
            bench.upstream.serve("/a.mp4") { [asset = bench.asset] request in
                request.number == 0 ? .hangUp : .asset(asset)
            }
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            _ = try await cache.body(of: "a.mp4", 1000..<2000)
            try await awaitOrigin(in: cache)
            _ = try await cache.body(of: "a.mp4", 2000..<3000)

            #expect(mirror.requests.map(\.range) == [0..<1000, 1000..<2000])
            #expect(bench.upstream.requests.filter { $0.method == "GET" }.map(\.range) == [nil, 2000..<3000])
        }
    }
}

@Suite struct FillFailureTests {
    private let limit = Duration.seconds(30)

    private func failure(
        _ code: CacheError.Code, at address: Int = 0, of addresses: Int = 1, after previous: FillRetry = FillRetry()
    ) -> FillFailure {
        FillFailure(code: code, previous: previous, address: address, addresses: addresses)
    }

    @Test("An origin without mirrors is retried after the backoff")
    func anOriginWithoutMirrorsIsAskedAgainAfterTheBackoff() {
        let next = failure(.upstreamUnreachable()).retry(within: limit)

        #expect(next == FillRetry(isAgain: true, failed: [0]))
        #expect(failure(.upstreamForbidden).retry(within: limit) == nil)
    }

    @Test("Addresses are tried in turn and then again with backoff")
    func addressesAreTriedInTurnAndThenAgainWithBackoff() throws {
        let first = try #require(failure(.upstreamUnreachable(), of: 3).retry(within: limit))
        #expect(first == FillRetry(delay: .zero, isAgain: true, address: 1, failed: [0]))
        let second = try #require(failure(.upstreamUnreachable(), at: 1, of: 3, after: first).retry(within: limit))
        #expect(second == FillRetry(delay: .zero, isAgain: true, address: 2, failed: [0, 1]))
        let third = try #require(failure(.upstreamUnreachable(), at: 2, of: 3, after: second).retry(within: limit))

        #expect(third == FillRetry(isAgain: true, address: 0, failed: [0, 1, 2]))
    }

    @Test("Retry-After is not awaited if another address can be tried")
    func aWaitIsNotKeptWhereSomebodyElseMayBeAsked() {
        let refusal = CacheError.Code.upstreamRefused(status: 503, retryAfter: .seconds(3600))

        #expect(failure(refusal).retry(within: limit) == nil)
        #expect(failure(refusal, of: 2).retry(within: limit)?.address == 1)
    }

    @Test("A fill without spill memory retries at the same address without cost")
    func whoFindsNoMemoryForWhatTheDiskCannotTakeTriesOnAtTheSameAddress() {
        let next = failure(.storageFull, at: 1, of: 3).retry(within: limit)

        #expect(next == FillRetry(delay: .milliseconds(500), isAgain: true, isFree: true, address: 1))
    }

    @Test("Repeated retries without spill memory back off exponentially")
    func whoFindsNoMemoryAgainAndAgainTriesMoreSeldom() throws {
        var retry = FillRetry()
        var delays: [Duration?] = []
        for _ in 0..<6 {
            retry = try #require(failure(.storageFull, after: retry).retry(within: limit))
            delays.append(retry.delay)
        }
        #expect(delays == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4), .seconds(4), .seconds(4)])

        var some = failure(.storageFull, after: retry)
        some.hasProgressed = true
        #expect(some.retry(within: limit)?.delay == .milliseconds(500))
    }

    @Test("A transfer broken midway resumes at once at the same address")
    func whatBrokeOnTheWayGoesOnAtOnceWhereItWas() {
        var broken = failure(.upstreamTimedOut(.idle), at: 1, of: 3)
        broken.hasProgressed = true

        #expect(broken.retry(within: limit) == FillRetry(delay: .zero, isAgain: true, address: 1))
    }

    @Test("A skipped mirror does not count as a retry")
    func aMirrorThatIsSkippedCostsNoTry() throws {
        var skipped = failure(.upstreamProtocol, at: 1, of: 2, after: FillRetry(isAgain: true, address: 1, failed: [0]))
        skipped.isSkip = true
        let next = try #require(skipped.retry(within: limit))

        #expect(next.isFree && next.address == 0 && next.skipped == [1])
        #expect(next.delay == nil && !skipped.movesOn(next))
    }

    @Test("An open circuit is not waited for")
    func whatWasLeftAloneIsNotWaitedFor() {
        var refused = failure(.upstreamUnreachable())
        refused.wasLeftAlone = true

        #expect(refused.retry(within: limit) == nil)
    }
}
