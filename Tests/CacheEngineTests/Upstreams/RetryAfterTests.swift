import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct RetryAfterTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    /// Sends `status` and Retry-After to the first `count` requests, and the asset to later requests.
    private func refuse(first count: Int = 1, _ status: Int, _ wait: String) {
        bench.upstream.serve("/a.mp4") { [asset = bench.asset] request in
            request.number < count ? .response(status: status, headers: ["Retry-After": wait]) : .asset(asset)
        }
    }

    @Test("A retry waits for Retry-After in seconds", arguments: [429, 503])
    func aRetryWaitsAsLongAsTheUpstreamAsks(_ status: Int) async throws {
        refuse(status, "1")
        try await bench.cache().run { cache in
            let begun = ContinuousClock.now
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.bytes == bench.asset.bytes(0..<1000))
            #expect(ContinuousClock.now - begun >= .seconds(1))
            #expect(bench.upstream.requests.map(\.status) == [status, 206])
        }
    }

    @Test("A retry waits for Retry-After as a date")
    func aDateIsWaitedForAsWell() async throws {
        let test = try bench.cache()
        refuse(503, HTTPDate.format(test.wallClock.now() + .seconds(1)))
        try await test.run { cache in
            let begun = ContinuousClock.now
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.bytes == bench.asset.bytes(0..<1000))
            #expect(ContinuousClock.now - begun >= .milliseconds(900))
        }
    }

    @Test("A Retry-After beyond the read timeout fails at once", arguments: [429, 503])
    func aWaitThatDoesNotFitIsToldAtOnce(_ status: Int) async throws {
        refuse(first: 9, status, "31")
        try await bench.cache { $0.readTimeout = .seconds(30) }.run { cache in
            let error = await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }

            #expect(error?.code == .upstreamRefused(status: status, retryAfter: .seconds(31)))
            #expect(bench.upstream.requests.count == 1)
        }
    }

    @Test("The next read after a refusal sends a request again")
    func aReadAfterARefusalAsksAgain() async throws {
        refuse(503, "3600")
        try await bench.cache().run { cache in
            await #expect(throws: CacheError.self) { try await cache.body(of: "a.mp4", 0..<1000) }
            let read = try await cache.body(of: "a.mp4", 0..<1000)

            #expect(read.bytes == bench.asset.bytes(0..<1000))
        }
    }

    @Test("Waits that together exceed the read timeout are not awaited")
    func waitsThatDoNotFitTogetherAreNotAllWaitedFor() throws {
        let refusal = CacheError.Code.upstreamRefused(status: 503, retryAfter: .seconds(20))
        let first = try #require(refusal.retry(after: FillRetry(), within: .seconds(30)))

        #expect(first == FillRetry(delay: .seconds(20), waited: .seconds(20)))
        #expect(refusal.retry(after: first, within: .seconds(30)) == nil)
    }

    @Test("Only transient refusals are retried")
    func onlyRefusalsThatPassByThemselvesAreWaitedFor() {
        let limit = Duration.seconds(30)
        let wait = Duration.seconds(2)
        let codes: [(CacheError.Code, FillRetry?)] = [
            (.upstreamRefused(status: 503), FillRetry()),
            (.upstreamRefused(status: 503, retryAfter: .zero), FillRetry(delay: .zero, waited: .zero)),
            (.upstreamRefused(status: 429, retryAfter: wait), FillRetry(delay: wait, waited: wait)),
            (.upstreamRefused(status: 500, retryAfter: wait), FillRetry()),
            (.upstreamRefused(status: 404, retryAfter: wait), nil), (.upstreamTimedOut(.idle), FillRetry()),
            (.upstreamUnreachable(), FillRetry()), (.conflict, nil),
        ]
        for (code, retry) in codes { #expect(code.retry(after: FillRetry(), within: limit) == retry, "\(code)") }
    }
}
