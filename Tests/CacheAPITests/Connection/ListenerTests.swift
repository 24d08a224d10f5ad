import CacheAPI
import CacheCore
import CacheTestKit
import Testing

/// Valid requests of real clients, and requests that a server must reject.
@Suite(.bothRoads, .timeLimit(.minutes(5))) struct ListenerTests {
    private static let live = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    private static let upgrade =
        "Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n"

    @Test("An upgrade is ignored and the connection continues")
    func anUpgradeIsIgnoredAndTheConnectionGoesOn() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 1000))
            let connection = try await RawConnection(port: service.port)
            for _ in 0..<3 {
                try await connection.send("GET /o/media/a HTTP/1.1\r\n\(Self.upgrade)\r\n")
                let response = try #require(try await connection.response())
                #expect(response.status == 200 && response.body.count == 1000)
                #expect(response.headers["Connection"] == nil)
            }
            try await connection.send(Self.live)
            #expect(try await connection.response()?.status == 200)
        }
    }

    @Test("Requests pipelined behind an upgrade are answered")
    func requestsPipelinedBehindAnUpgradeAreAnswered() async throws {
        try await TestService.run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            let order = #"{"freeBytes": 1, "dryRun": true}"#
            let post =
                "POST /v1/evictions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: \(order.count)\r\n"
            try await connection.send(
                "GET /health/live HTTP/1.1\r\n\(Self.upgrade)\r\n" + post + Self.upgrade + "\r\n" + order + Self.live
                    + "GET /health/ready HTTP/1.1\r\n\(Self.upgrade)\r\n" + Self.live)
            for _ in 0..<5 { #expect(try await connection.response()?.status == 200) }
        }
    }

    /// Splits the requests into two segments at every byte, also within a method.
    @Test("Requests are parsed when split at any byte")
    func requestsMayBeCutAnywhere() async throws {
        try await TestService.run { (service) async throws in
            let post = "POST /v1/evictions HTTP/1.9\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            let body = #"{"freeBytes": 1, "dryRun": true}"#
            let chunked =
                post + "Transfer-Encoding: chunked\r\n\r\n5\r\n\(body.prefix(5))\r\n"
                + String(body.count - 5, radix: 16) + ";a=b\r\n\(body.dropFirst(5))\r\n0\r\nX-T: 1\r\n\r\n"
            let text =
                "GET /health/live HTTP/1.2\r\nHost: localhost\r\nX-A: some words HTTP/1.5\r\n\r\n\r\n"
                + "GET /health/live HTTP/1.1\r\n\(Self.upgrade)\r\n" + post + "Content-Length: \(body.count)\r\n\r\n"
                + body
                + chunked + "FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n"
            for cut in 1..<text.count {
                let connection = try await RawConnection(port: service.port)
                try await connection.send(String(text.prefix(cut)))
                try await connection.send(String(text.dropFirst(cut)))
                for status in [200, 200, 200, 200, 501] {
                    let response = try await connection.response()
                    #expect(response?.status == status, "cut at \(cut)")
                    guard response != nil else { break }
                }
            }
        }
    }

    @Test("100 Continue for a pipelined body is sent after the earlier responses")
    func aPipelinedBodyIsAskedForWhenItsTurnComes() async throws {
        try await TestService.run { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/slow", LoopbackAsset(size: 10, faults: [.stallBeforeHead(until: latch)]))
            let connection = try await RawConnection(port: service.port)
            try await connection.send("GET /o/media/slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await connection.send(
                "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Expect: 100-continue\r\nContent-Length: 11 \r\n\r\n")
            latch.release()
            #expect(try await connection.response()?.status == 200)
            #expect(try await connection.response()?.status == 100)
            try await connection.send(#"{"items":1}"#)
            #expect(try await connection.response()?.status == 422)
        }
    }

    /// The parser may or may not stop at these fields. The connection continues in both cases, at any split.
    @Test(
        "Every spelling of an upgrade is ignored",
        arguments: [
            "Connection: Upgrade\t\r\nUpgrade: h2c", "Connection: Upgrade\r\nUpgrade:",
            "Connection: upgrade;x\r\nUpgrade: h2c",
            "Connection: keep-alive , Upgrade\r\nUpgrade: websocket", "Connection: \"Upgrade\"\r\nUpgrade: h2c",
            "Upgrade: h2c\r\nConnection: upgrade, close-not", "Upgrade: h2c",
            "Proxy-Connection: Upgrade\r\nUpgrade: h2c",
        ])
    func everySpellingOfAnUpgradeIsIgnored(_ fields: String) async throws {
        try await TestService.run { (service) async throws in
            let first = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n\r\n"
            let whole = try await RawConnection(port: service.port)
            try await whole.send(first + first + Self.live)
            for _ in 0..<3 { #expect(try await whole.response()?.status == 200) }
            let single = try await RawConnection(port: service.port)
            for text in [first, first, Self.live] {
                try await single.send(text)
                #expect(try await single.response()?.status == 200)
            }
            #expect(try await service.call("GET", "/health/live").status == 200)
        }
    }

    @Test("Later HTTP/1 minor versions are handled as HTTP/1.1", arguments: ["HTTP/1.2", "HTTP/1.9"])
    func laterMinorVersionsAreHandledAsHTTP11(_ version: String) async throws {
        try await TestService.run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            for _ in 0..<2 {
                try await connection.send("GET /health/live \(version)\r\nHost: localhost\r\n\r\n")
                #expect(try await connection.response()?.status == 200)
            }
        }
    }

    @Test(
        "Unsupported versions, methods and codings are rejected",
        arguments: [
            ("FOO / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501, "notImplemented"),
            ("TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501, "notImplemented"),
            ("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", 501, "notImplemented"),
            ("PROPFIND /v1/policy HTTP/1.1\r\nHost: localhost\r\n\r\n", 501, "notImplemented"),
            (
                "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501,
                "notImplemented"
            ),
            ("FOO BAR BAZ HTTP/1.1\r\n\r\n", 400, "malformedRequest"),
            ("GET ftp://localhost/a HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformedRequest"),
            ("GET http:///a HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformedRequest"),
            ("GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nHost:\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nHost: user@a\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nHost: a:80x\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nHost: a:99999\r\n\r\n", 400, "malformedRequest"),
            ("GET /health/live HTTP/1.1\r\nHost: [::1\r\n\r\n", 400, "malformedRequest"),
        ])
    func whatTheServerDoesNotSupportIsRejected(text: String, status: Int, code: String) async throws {
        try await TestService.run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.send(text)
            let response = try #require(try await connection.response())
            #expect(response.status == status, "\(response.text)")
            #expect(try response.json()["code"] == .string(code))
            #expect(await connection.rest().isEmpty)
        }
    }

    @Test(
        "Valid hosts are accepted",
        arguments: [
            "localhost", "LOCALHOST:80", "a_b.example", "[::1]:8080", "127.0.0.1:", "xn--bcher-kva.example",
        ])
    func validHostsAreAccepted(_ host: String) async throws {
        try await TestService.run { (service) async throws in
            #expect(try await service.call("GET", "/health/live", ["Host": host]).status == 200)
        }
    }

    @Test("An oversized body is rejected before the client sends it", arguments: ["Expect: 100-continue\r\n", ""])
    func aBodyThatIsTooLongIsRejectedBeforeItIsSent(_ expect: String) async throws {
        try await TestService.run(limits: .init(bodyBytes: 1000, jobBodyBytes: 2000)) { (service) async throws in
            let fields = "Host: localhost\r\nContent-Type: application/json\r\n\(expect)"
            for (path, length) in [("/v1/purges", 1001), ("/v1/jobs", 2001)] {
                let connection = try await RawConnection(port: service.port)
                try await connection.send("POST \(path) HTTP/1.1\r\n\(fields)Content-Length: \(length)\r\n\r\n")
                let response = try #require(try await connection.response())
                #expect(response.status == 413 && response.headers["Connection"] == "close")
                #expect(await connection.rest().isEmpty)
            }
        }
    }

    @Test("A body within the limit gets 100 Continue")
    func aBodyWithinTheLimitIsAskedFor() async throws {
        try await TestService.run(limits: .init(bodyBytes: 10, jobBodyBytes: 2000)) { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.send(
                "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n"
            )
            #expect(try await connection.response()?.status == 100)
            try await connection.send(#"{"items":1}"#)
            #expect(try await connection.response()?.status == 422)
        }
    }

    @Test("Content is sent with nosniff, and active types are sandboxed")
    func contentIsOfTheDeclaredTypeAndActiveTypesAreSandboxed() async throws {
        try await TestService.run { (service) async throws in
            let types = [
                ("video/mp4", false), ("text/html; charset=utf-8", true), ("image/svg+xml", true), ("Text/XML", true),
                ("application/xhtml+xml", true), ("video/mp4, text/html", true), (",Text/HTML", true),
                ("application/vnd.apple.mpegurl", false), ("text/plain, text/html", true), ("text/plain", true),
                ("Text/Plain; charset=utf-8", true),
            ]
            for (index, (type, isActive)) in types.enumerated() {
                var asset = LoopbackAsset(size: 100)
                asset.contentType = type
                service.upstream.serve("/\(index)", asset)
                for _ in 0..<2 {  // from the upstream, then from disk
                    let response = try await service.call("GET", "/o/media/\(index)")
                    #expect(response.status == 200)
                    // Browsers do not play media of this type with `nosniff`.
                    let isPlain = type.lowercased().hasPrefix("text/plain") && !type.contains("html")
                    #expect(response.headers["X-Content-Type-Options"] == (isPlain ? nil : "nosniff"), "\(type)")
                    #expect((response.headers["Content-Security-Policy"] == "sandbox") == isActive, "\(type)")
                }
            }
        }
    }
}
