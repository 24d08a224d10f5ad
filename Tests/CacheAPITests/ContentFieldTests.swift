import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import Testing

/// What stands in the heads of content answers, and what of readers' heads goes on.
@Suite(.timeLimit(.minutes(1))) struct ContentFieldTests {
    private static let date = "Thu, 01 Jan 2026 00:00:00 GMT"

    @Test func everyAnswerHasOneDateAndThoseOfContentTheUpstreams() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 1000))
            let whole = try await service.call("GET", "/o/media/a")
            #expect(whole.headers.values("Date") == [Self.date])
            #expect(whole.headers["Larder-Content-Date"] == nil)
            let part = try await service.call("GET", "/o/media/a", ["Range": "bytes=1-2"])
            #expect(part.status == 206 && part.headers.values("Date") == [Self.date])
            for target in ["/o/media/missing", "/v1/stats", "/nowhere", "/health/live"] {
                let dates = try await service.call("GET", target).headers.values("Date")
                #expect(dates.count == 1 && dates != [Self.date], "\(target): \(dates)")
            }
            let connection = try await RawConnection(port: service.port)
            try await connection.send("nonsense\r\n\r\n")
            let refused = try #require(try await connection.response())
            #expect(refused.status == 400)
            #expect(refused.headers.values("Date") == [HTTPDate.format(service.wallClock.now())])
            #expect(refused.headers["Cache-Control"] == "no-store")
        }
    }

    @Test func viaAndCacheStatusStandBehindTheUpstreamsOwn() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve(
                "/a",
                LoopbackAsset(size: 10, headers: ["Via": "1.0 edge", "Cache-Status": "Edge; hit", "Age": "7"]))
            for member in ["Larder;fwd=miss", "Larder;hit"] {
                let response = try await service.call("GET", "/o/media/a")
                #expect(response.headers.combined("Via") == "1.0 edge, 1.1 larder")
                let statuses = response.headers.values("Cache-Status")
                #expect(statuses.count == 1 && statuses[0].hasPrefix("Edge;hit, \(member)"), "\(statuses)")
                #expect(response.headers.values("Age").count == 1)
            }
        }
    }

    @Test func aRefusalIsPassedOnWithoutTheUpstreamsWords() async throws {
        try await TestService.run(change: { $0.retries = 0 }) { (service) async throws in
            service.upstream.serve("/private") { _ in
                .response(
                    status: 401, headers: ["WWW-Authenticate": "Basic realm=\"inside\"", "ETag": "\"e\""],
                    body: Array("who?".utf8))
            }
            service.upstream.serve("/busy") { _ in .response(status: 503) }
            let locked = try await service.call("GET", "/o/media/private")
            #expect(locked.status == 401)
            #expect(locked.headers.values("WWW-Authenticate") == ["Upstream"])
            #expect(!locked.text.contains("who?") && locked.headers["ETag"] == nil)
            #expect(locked.headers["Cache-Control"] == "no-store")
            let busy = try await service.call("GET", "/o/media/busy")
            #expect(busy.status == 503 && busy.headers["Content-Type"] == "application/problem+json")
            #expect(busy.headers["Cache-Status"]?.hasSuffix(";detail=upstreamRefused") ?? false)
        }
    }
}
