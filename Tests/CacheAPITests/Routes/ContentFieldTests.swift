@testable import CacheAPI
import CacheCore
import CacheEngine
import CacheTestKit
import HTTPTypes
import NIOCore
import Testing

/// Header fields of content responses, and request fields that are forwarded.
@Suite(.bothRoads, .timeLimit(.minutes(20))) struct ContentFieldTests {
    private static let date = "Thu, 01 Jan 2026 00:00:00 GMT"

    @Test("Every response has one Date, and content has the upstream Date")
    func everyAnswerHasOneDateAndThoseOfContentTheUpstreams() async throws {
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

    @Test("Via and Cache-Status are appended to the upstream values")
    func viaAndCacheStatusStandBehindTheUpstreamsOwn() async throws {
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

    @Test("An upstream refusal is forwarded without its body and private fields")
    func aRefusalIsPassedOnWithoutTheUpstreamsWords() async throws {
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

    @Test("The upstream's challenge reaches a reader whose Authorization is forwarded (RFC 9110 §11.6.1)", .bothRoads)
    func challengesOfForwardedCredentials() async throws {
        for errors in [OriginSettings.ErrorBodies.problem, .upstream] {
            let change: @Sendable (inout OriginSettings) -> Void = { settings in
                settings.retries = 0
                settings.forwarded = ["authorization"]
                settings.errorBodies = errors
                settings.negativeCaching = .seconds(60)
            }
            try await TestService.run(change: change) { (service) async throws in
                let challenges = ["Basic realm=\"a, b\", charset=\"UTF-8\"", "Digest nonce=\"n\""]
                service.upstream.serve("/a.mp4") { _ in
                    .response(
                        status: 401,
                        headers: HeaderList(
                            challenges.map { .init("WWW-Authenticate", $0) } + [.init("Cache-Control", "max-age=60")]),
                        body: Array("who?".utf8))
                }
                for fields in [[:], ["Range": "bytes=0-1"], ["Authorization": "Basic eDp5"], [:]] as [HeaderList] {
                    for method in ["GET", "HEAD"] {
                        let locked = try await service.call(method, "/o/media/a.mp4", fields)
                        #expect(locked.status == 401)
                        #expect(locked.headers.values("WWW-Authenticate") == challenges)
                    }
                }
            }
        }
    }

    @Test("Credentials, hop-by-hop and forwarding fields are not forwarded to the upstream")
    func readersFieldsGoOnButNotWhoTheyAreOrHowTheyCame() {
        var kept: HTTPFields = [
            .range: "bytes=0-1", .ifRange: "\"a\"", .ifMatch: "*", .ifNoneMatch: "\"b\"", .ifModifiedSince: "x",
            .ifUnmodifiedSince: "y", .cacheControl: "no-cache", .acceptLanguage: "mi",
            .origin: "https://p.example", .userAgent: "player",
        ]
        if let pragma = HTTPField.Name("Pragma") { kept[pragma] = "no-cache" }
        var fields = kept
        for name in [
            "Authorization", "Proxy-Authorization", "Cookie", "TE", "Trailer", "Keep-Alive", "Upgrade", "Host", "Via",
            "CDN-Loop", "X-Forwarded-For", "X-Forwarded-Anything", "Forwarded", "Expect", "X-Named", "x-other",
            "Larder-Timeout",
        ] {
            if let name = HTTPField.Name(name) { fields[name] = "1" }
        }
        fields.append(HTTPField(name: .connection, value: "close, x-named"))
        fields.append(HTTPField(name: .connection, value: "X-Other"))
        let request = ContentRequest(isHead: true, fields: fields)

        #expect(request.isHead)
        #expect(request.headers.fields.map(\.name) == kept.map(\.name.rawName))
    }

    @Test("Several Range fields are combined into one list or ignored")
    func severalRangeFieldsAreOneListOrNone() async throws {
        try await TestService.run { (service) async throws in
            let asset = LoopbackAsset(size: 100)
            service.upstream.serve("/a", asset)
            let response = try await service.call(
                "GET", "/o/media/a", HeaderList([.init("Range", "bytes=0-1"), .init("Range", "bytes=5-6")]))
            #expect(response.status == 200 && response.body == asset.bytes(0..<100))
            let set = try await service.call(
                "GET", "/o/media/a", HeaderList([.init("Range", "bytes=0-1"), .init("Range", "2-6")]))
            #expect(set.status == 206 && set.body == asset.bytes(0..<7))
        }
    }

    @Test("A negative cache hit states its remaining lifetime")
    func aRefusalWithALifetimeSaysHowMuchOfItIsLeft() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/gone") { _ in
                .response(status: 410, headers: ["Cache-Control": "max-age=100", "Age": "10"])
            }
            _ = try await service.call("GET", "/o/media/gone")
            service.wallClock.advance(by: .seconds(20))
            let again = try await service.call("GET", "/o/media/gone")
            #expect(again.status == 410 && service.upstream.requests.count == 1)
            let status = try #require(again.headers["Cache-Status"])
            // The response time is part of the age (RFC 9111 §4.2.3).
            #expect((68...70).contains { status == "Larder;hit;ttl=\($0);detail=negative" }, "\(status)")
            #expect(["30", "31"].contains(again.headers["Age"]) && again.headers["Cache-Control"] == "max-age=100")
        }
    }

    @Test("Retry-After of the upstream is forwarded")
    func theWaitThatTheUpstreamAsksForIsPassedOn() async throws {
        try await TestService.run(change: { $0.retries = 0 }) { (service) async throws in
            service.upstream.serve("/busy") { _ in .response(status: 429, headers: ["Retry-After": "120"]) }
            let busy = try await service.call("GET", "/o/media/busy")
            #expect(busy.status == 429 && busy.headers.values("Retry-After") == ["120"])
            #expect(busy.headers["Cache-Control"] == "no-store")
        }
    }
}
