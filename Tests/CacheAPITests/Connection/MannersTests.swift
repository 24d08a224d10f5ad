import CacheAPI
import CacheCore
import CacheTestKit
import Foundation
import Synchronization
import ReaderAccess
import Testing

@Suite(.bothRoads, .timeLimit(.minutes(20))) struct MannersTests {
    /// An invalid request with the expected status and problem code.
    private struct Bad: Sendable {
        var method: String
        var target: String
        var headers: HeaderList = [:]
        var body: String?
        var status: Int
        var code: String

        init(_ method: String, _ target: String, _ headers: HeaderList, _ body: String?, _ status: Int, _ code: String)
        {
            self.method = method
            self.target = target
            self.headers = headers
            self.body = body
            self.status = status
            self.code = code
        }

        init(_ method: String, _ target: String, _ status: Int, _ code: String) {
            self.init(method, target, [:], nil, status, code)
        }

        init(_ method: String, _ target: String, _ headers: HeaderList, _ status: Int, _ code: String) {
            self.init(method, target, headers, nil, status, code)
        }
    }

    private static let json: HeaderList = ["Content-Type": "application/json"]

    private static let bad: [Bad] = [
        Bad("GET", "/", 404, "notFound"), Bad("GET", "/v2/stats", 404, "notFound"),
        Bad("GET", "/v1/nothing", 404, "notFound"),
        Bad("POST", "/o/media/a", 405, "methodNotAllowed"), Bad("DELETE", "/v1/stats", 405, "methodNotAllowed"),
        Bad("DELETE", "/v1/assets/usage", 405, "methodNotAllowed"),
        Bad("PROPFIND", "/v1/policy", 501, "notImplemented"), Bad("PUT", "/v1/jobs", 405, "methodNotAllowed"),
        Bad("GET", "/o/nobody/a", 404, "notFound"), Bad("GET", "/o/media/../../etc/passwd", 400, "malformedRequest"),
        Bad("GET", "/o/media/a%2", 400, "malformedRequest"), Bad("GET", "/o/media/a%00b", 400, "malformedRequest"),
        Bad("GET", "/o/media/a", ["Larder-Timeout": "soon"], 400, "malformedRequest"),
        Bad("GET", "/v1/content", 422, "invalidField"), Bad("GET", "/v1/content?url=x&from=y", 422, "invalidField"),
        Bad("GET", "/v1/content?url=nonsense", 400, "malformedRequest"),
        Bad("GET", "/v1/content?url=http%3A%2F%2F10.0.0.1%2F", 403, "upstreamForbidden"),
        Bad("GET", "/v1/assets/xyz", 404, "notFound"), Bad("GET", "/v1/assets/\(Samples.id)", 404, "notFound"),
        Bad("GET", "/v1/assets?limit=0", 422, "invalidField"), Bad("GET", "/v1/assets?limit=1001", 422, "invalidField"),
        Bad("GET", "/v1/assets?sort=size", 422, "invalidField"),
        Bad("GET", "/v1/assets?pinned=maybe", 422, "invalidField"),
        Bad("GET", "/v1/assets?limit=1&limit=2", 422, "invalidField"), Bad("GET", "/v1/jobs/nope", 404, "notFound"),
        Bad("GET", "/v1/jobs?state=lost", 422, "invalidField"),
        Bad("GET", "/v1/stats/top?by=luck", 422, "invalidField"),
        Bad("GET", "/v1/stats/history?stepSeconds=61", 422, "invalidField"),
        Bad("POST", "/v1/jobs", [:], "{}", 415, "unsupportedMediaType"),
        Bad("POST", "/v1/jobs", ["Content-Type": "text/plain"], "{}", 415, "unsupportedMediaType"),
        Bad("POST", "/v1/jobs", json, "{", 400, "malformedRequest"),
        Bad("POST", "/v1/jobs", json, "", 400, "malformedRequest"),
        Bad("POST", "/v1/jobs", json, "[]", 422, "invalidField"),
        Bad("POST", "/v1/jobs", json, #"{"item":[]}"#, 422, "invalidField"),
        Bad("POST", "/v1/jobs", json, #"{"items":[{"url":1}]}"#, 422, "invalidField"),
        Bad("PATCH", "/v1/policy", json, #"{"capacityBytes":"all"}"#, 422, "invalidField"),
        Bad(
            "PATCH", "/v1/policy", ["Content-Type": "application/json", "If-Match": "\"999\""], "{}", 412,
            "preconditionFailed"),
        Bad("PUT", "/v1/origins/Upper", json, #"{"baseURL":"http://x"}"#, 422, "invalidField"),
        Bad("PUT", "/v1/origins/x", json, #"{"baseURL":"http://x","hedged":true}"#, 422, "invalidField"),
        Bad("DELETE", "/v1/origins/nobody", 404, "notFound"),
        Bad("POST", "/v1/probe", json, #"{"url":"http://10.0.0.1/"}"#, 403, "upstreamForbidden"),
        Bad("POST", "/v1/purges", json, "{}", 422, "invalidField"),
        Bad("POST", "/v1/purges", json, #"{"prefix":""}"#, 422, "invalidField"),
        Bad("POST", "/v1/purges", json, #"{"origin":"media","tag":""}"#, 422, "invalidField"),
        Bad("POST", "/v1/purges", json, #"{"urls":[""]}"#, 422, "invalidField"),
        Bad("POST", "/v1/purges", json, #"{"urls":["http://a.example/b","not a url"]}"#, 422, "invalidField"),
        Bad("POST", "/v1/purges", json, #"{"prefix":"a\u0000b"}"#, 422, "invalidField"),
        Bad("GET", "/v1/stats?x=1", 422, "invalidField"), Bad("GET", "/v1/policy?x=1", 422, "invalidField"),
        Bad("GET", "/v1/origins?x=1", 422, "invalidField"),
        Bad("GET", "/v1/assets/\(Samples.id)/content?x=1", 422, "invalidField"),
        Bad("POST", "/v1/evictions", json, "{}", 422, "invalidField"),
        Bad("GET", "/v1/stats?x=" + String(repeating: "y", count: 9000), 414, "uriTooLong"),
    ]

    @Test("A bad request gets a problem document with the right status")
    func badRequestsGetAProblemWithTheRightStatus() async throws {
        try await TestService.run { (service) async throws in
            for bad in Self.bad {
                let response = try await service.call(bad.method, bad.target, bad.headers, body: bad.body)
                let name = "\(bad.method) \(bad.target.prefix(60)) \(bad.body ?? "")"
                #expect(response.status == bad.status, "\(name): \(response.text)")
                #expect(response.headers["Content-Type"] == "application/problem+json", "\(name)")
                let problem = try response.json()
                #expect(problem["code"] == .string(bad.code), "\(name)")
                #expect(problem["requestId"] == .string(response.headers["X-Request-Id"] ?? "none"), "\(name)")
                if bad.status == 405 { #expect(response.headers["Allow"] != nil) }
            }
            #expect(service.upstream.requests.isEmpty)
        }
    }

    @Test("An oversized body gets 413")
    func tooLargeABodyIsRefused() async throws {
        try await TestService.run(limits: .init(bodyBytes: 1000)) { (service) async throws in
            let response = try await service.call(
                "POST", "/v1/purges", Self.json, body: String(repeating: " ", count: 1001))
            #expect(response.status == 413)
            #expect(try response.json()["code"] == "payloadTooLarge")
        }
    }

    private static let post =
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    @Test(
        "Bytes that are not HTTP get a problem document",
        arguments: [
            ("nonsense\r\n\r\n", 400, "malformedRequest"), ("GET / HTTP/9.9\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400, "malformedRequest"),
            (post + "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n", 400, "malformedRequest"),
            (post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", 400, "malformedRequest"),
            (post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nBad Header: x\r\n\r\n", 400, "malformedRequest"),
            (
                "GET /health/live HTTP/1.1\r\nA: \(String(repeating: "a", count: 70_000))\r\n\r\n", 431,
                "headersTooLarge"
            ),
        ])
    func whatIsNotHTTPGetsAProblemToo(text: String, status: Int, code: String) async throws {
        try await TestService.run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.send(text)
            let response = try #require(try await connection.response())
            #expect(response.status == status)
            #expect(try response.json()["code"] == .string(code))
            #expect(await connection.rest().isEmpty)
        }
    }

    @Test("Requests before malformed bytes are answered")
    func whatIsAskedInFrontOfNonsenseIsAnswered() async throws {
        try await TestService.run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            let good = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
            try await connection.send(good + good + "nonsense\r\n\r\n")
            for status in [200, 200, 400] { #expect(try await connection.response()?.status == status) }
            #expect(await connection.rest().isEmpty)
        }
    }

    @Test("A body that never arrives times out with 408")
    func aBodyThatStaysAwayIsNotAwaitedForEver() async throws {
        try await TestService.run(limits: .init(headerTimeout: .milliseconds(50))) { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            // On a slow machine the timeout may expire before the request is sent; the status is 408 as well.
            try? await connection.send(Self.post + "Content-Length: 1000\r\n\r\n{")
            let response = try #require(try await connection.response())
            #expect(response.status == 408)
            #expect(await connection.rest().isEmpty)
        }
    }

    @Test("A second request head that never ends times out")
    func aSecondHeadThatNeverEndsIsNotAwaitedForEver() async throws {
        let isAnswered = Mutex(false)
        // On a slow machine the timeout may expire before the first head arrives.
        for deadline in [2, 20, 200] where !isAnswered.withLock({ $0 }) {
            try await TestService.run(limits: .init(headerTimeout: .seconds(deadline))) { (service) async throws in
                let connection = try await RawConnection(port: service.port)
                try? await connection.request("GET", "/health/live")
                guard try await connection.response()?.status == 200 else { return }
                isAnswered.withLock { $0 = true }
                try await connection.send("GET /health/live HTTP/1.1\r\nHost: loc")
                #expect(try await connection.response()?.status == 408)
                #expect(await connection.rest().isEmpty)
            }
        }
        #expect(isAnswered.withLock { $0 })
    }

    @Test("The host of an absolute-form target takes precedence")
    func anAbsoluteTargetNamesTheHost() async throws {
        try await TestService.run { (service) async throws in
            #expect(try await service.call("GET", "http://evil.example/v1/stats").status == 403)
            #expect(try await service.call("GET", "http://localhost/v1/stats", ["Host": "evil.example"]).status == 200)
        }
    }

    @Test("A connection without a complete request times out with 408")
    func aConnectionThatAsksNothingIsClosed() async throws {
        try await TestService.run(limits: .init(headerTimeout: .milliseconds(500))) { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.send("GET /health/live HTTP/1.1\r\nHost: loc")
            let response = try #require(try await connection.response())
            #expect(response.status == 408)
            #expect(await connection.rest().isEmpty)
        }
    }

    @Test("A TLS handshake that never ends times out", arguments: ["", "\u{16}\u{3}\u{1}"])
    func aHandshakeThatNeverEndsIsNotAwaitedForEver(_ begun: String) async throws {
        let directory = try TemporaryDirectory()
        let files = [directory.path("certificate.pem"), directory.path("key.pem")]
        for (file, text) in zip(files, [MultiplexedUpstream.certificate, MultiplexedUpstream.key]) {
            try text.write(toFile: file, atomically: true, encoding: .utf8)
        }
        let tls = APISettings.TLS(certificateFile: files[0], keyFile: files[1])
        try await TestService.run(limits: .init(headerTimeout: .milliseconds(50)), tls: tls) { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try? await connection.send(begun)
            #expect(await connection.rest().isEmpty)
        }
    }

    @Test("Routes require a token of their scope")
    func tokensAndTheirScopesAreAskedFor() async throws {
        let rules = AccessRules(tokens: [("reader", .read), ("boss", .admin)])
        var locked = OriginSettings(baseURL: "http://127.0.0.1:1")
        locked.access = .token
        locked.allowPrivateAddresses = true
        locked.retries = 0
        try await TestService.run(access: rules, origins: [Origin(name: "locked", settings: locked)]) {
            (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 10))
            let reader: HeaderList = ["Authorization": "Bearer reader"]
            let boss: HeaderList = ["Authorization": "Bearer boss"]
            #expect(try await service.call("GET", "/health/live?x=1").status == 200)
            #expect(try await service.call("GET", "/o/media/a").status == 200)
            #expect(try await service.call("GET", "/o/locked/a").status == 401)
            #expect(try await service.call("GET", "/v1/content").status == 401)
            #expect(try await service.call("GET", "/v1/content", reader).status == 422)
            #expect(try await service.call("GET", "/v1/assets/none/content").status == 401)
            #expect(try await service.call("GET", "/v1/stats?x=1").status == 401)
            #expect(try await service.call("GET", "/o/locked/a", reader).status == 502)
            let anonymous = try await service.call("GET", "/v1/stats")
            #expect(anonymous.status == 401 && anonymous.headers["WWW-Authenticate"] == "Bearer realm=\"Larder\"")
            #expect(try await service.call("GET", "/v1/stats", reader).status == 200)
            #expect(try await service.call("DELETE", "/v1/assets/\(Samples.id)", reader).status == 403)
            #expect(try await service.call("DELETE", "/v1/assets/\(Samples.id)", boss).status == 404)
        }
    }

    @Test("Without tokens a foreign host is rejected")
    func withoutTokensAForeignHostIsRefused() async throws {
        try await TestService.run { (service) async throws in
            #expect(try await service.call("GET", "/v1/stats", ["Host": "evil.example"]).status == 403)
            #expect(try await service.call("GET", "/v1/stats", ["Host": "127.0.0.1:\(service.port)"]).status == 200)
            #expect(try await service.call("GET", "/health/live", ["Host": "evil.example"]).status == 200)
        }
    }

    @Test("Preflights are answered, and request identifiers are kept")
    func preflightsAreAnsweredAndRequestIdentifiersKept() async throws {
        try await TestService.run { (service) async throws in
            let preflight = try await service.call(
                "OPTIONS", "/o/media/a",
                [
                    "Origin": "https://p.example", "Access-Control-Request-Method": "GET",
                    "Access-Control-Request-Headers": "range",
                ])
            #expect(preflight.status == 204 && preflight.headers["Allow"] == "GET, HEAD, OPTIONS")
            #expect(preflight.headers["Access-Control-Allow-Headers"] == "range")
            let live = try await service.call(
                "GET", "/health/live", ["X-Request-Id": "mine-1", "Origin": "https://p.example"])
            #expect(live.headers["X-Request-Id"] == "mine-1" && live.headers["Access-Control-Allow-Origin"] == "*")
        }
    }
}
