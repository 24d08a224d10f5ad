import CacheCore
import CacheTestKit
import HTTPTypes
import NIOCore
import ReaderAccess
import Testing

@testable import CacheAPI

/// The files of the dashboard, and compression.
@Suite(.timeLimit(.minutes(5))) struct DashboardTests {
    private let token = AccessRules(tokens: [("secret", .admin)])

    @Test("The dashboard needs no token and allows no foreign code")
    func thePageIsPublic() async throws {
        try await TestService.run(access: token) { (service) async throws in
            let page = try await service.call("GET", "/ui/")
            #expect(page.status == 200 && page.headers["Content-Type"] == "text/html; charset=utf-8")
            let policy = try #require(page.headers["Content-Security-Policy"])
            #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"))
            #expect(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"))
            let tag = try #require(page.headers["ETag"])
            let again = try await service.call("GET", "/ui/", ["If-None-Match": "\"x\", \(tag)"])
            #expect(again.status == 304 && again.body.isEmpty)
            #expect(
                try await service.call("GET", "/ui/main.js").headers["Content-Type"]?.hasPrefix("text/javascript")
                    == true)
            #expect(try await service.call("GET", "/ui").headers["Location"] == "/ui/")
            let authorized: HeaderList = ["Authorization": "Bearer secret"]
            let document = try await service.call("GET", "/openapi.yaml", authorized)
            let documentTag = try #require(document.headers["ETag"])
            let unchanged: HeaderList = ["Authorization": "Bearer secret", "If-None-Match": documentTag]
            #expect(try await service.call("GET", "/openapi.yaml", unchanged).status == 304)
            for path in ["/ui/none.js", "/ui/../openapi.yaml", "/ui/%2e%2e/x"] {
                #expect(try await service.call("GET", path).status == 404, "\(path)")
            }
        }
    }

    @Test("Browsers are redirected to the dashboard, other clients are not")
    func browsersAreRedirected() async throws {
        try await TestService.run { (service) async throws in
            let browser = try await service.call("GET", "/", ["Accept": "text/html,application/xhtml+xml,*/*;q=0.8"])
            #expect(browser.status == 302 && browser.headers["Location"] == "/ui/")
            #expect(try await service.call("GET", "/", ["Accept": "*/*"]).status == 404)
        }
        try await TestService.run(settings: { $0.dashboard = [] }) { (service) async throws in
            #expect(try await service.call("GET", "/ui/").status == 404)
            #expect(try await service.call("GET", "/", ["Accept": "text/html"]).status == 404)
        }
    }

    @Test("Documents are compressed on request, content is not")
    func documentsAreCompressed() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.json", LoopbackAsset(size: 50_000, contentType: "application/json"))
            let gzip: HeaderList = ["Accept-Encoding": "gzip"]
            let plain = try await service.call("GET", "/v1/stats")
            let compressed = try await service.call("GET", "/v1/stats", gzip)
            func vary(_ response: RawResponse) -> [String] {
                response.headers.fields.filter { $0.name.lowercased() == "vary" }.map(\.value)
            }
            #expect(plain.headers["Content-Encoding"] == nil && vary(plain) == ["Accept, Accept-Encoding"])
            #expect(vary(try await service.call("HEAD", "/v1/stats")) == ["Accept, Accept-Encoding"])
            let file = try await service.call("GET", "/openapi.yaml")
            let tag = try #require(file.headers["ETag"])
            let known = try await service.call("GET", "/openapi.yaml", ["If-None-Match": tag])
            #expect(known.status == 304 && vary(known) == vary(file))
            let unchanged = ResponseCompression.notModified(
                [.contentType: "text/css"], of: ByteBuffer(repeating: 0, count: 2000))
            #expect(unchanged.headers[.vary] == "Accept-Encoding")
            for (types, type) in [
                ("application/openmetrics-text;q=0, text/plain", "text/plain"),
                ("application/openmetrics-text;q=0.5, text/plain;q=0.9", "text/plain"),
                ("application/openmetrics-text, */*;q=0.1", "application/openmetrics-text"),
            ] {
                let metrics = try await service.call("GET", "/metrics", ["Accept": types])
                #expect(
                    metrics.headers["Content-Type"]?.hasPrefix(type) == true
                        && vary(metrics) == ["Accept, Accept-Encoding"])
            }
            #expect(compressed.headers["Content-Encoding"] == "gzip")
            #expect(compressed.body.count < plain.body.count / 2 && compressed.body.starts(with: [0x1F, 0x8B]))
            for coding in ["gzip;q=0, *", "identity", "gzip;q=0.5, identity", "br", "deflate", "gzip; q=0"] {
                let response = try await service.call("GET", "/v1/stats", ["Accept-Encoding": coding])
                #expect(response.headers["Content-Encoding"] == nil, "\(coding)")
            }
            let old = try await RawConnection(port: service.port)
            try await old.send("GET /v1/stats HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")
            let plainOld = try #require(try await old.response())
            #expect(plainOld.headers["Transfer-Encoding"] == nil && plainOld.headers["Content-Encoding"] == nil)
            #expect(try plainOld.json()["requests"] != nil)
            let head = try await service.call("HEAD", "/v1/stats", gzip)
            #expect(head.status == 200 && head.headers["Content-Encoding"] == nil)
            for _ in 0..<2 {
                let content = try await service.call("GET", "/o/media/a.json", gzip)
                #expect(content.headers["Content-Encoding"] == nil && content.body.count == 50_000)
            }
            let small = try await service.call("GET", "/version", gzip)
            #expect(small.headers["Content-Encoding"] == nil && small.headers["Larder-Compress"] == nil)
        }
    }

    @Test("A connection serves compressed and other responses in turn")
    func compressedResponsesShareAConnection() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 200_000))
            let connection = try await RawConnection(port: service.port)
            for _ in 0..<3 {
                try await connection.send(
                    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
                        + "GET /o/media/a HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
                        + "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let metrics = try #require(try await connection.response())
                #expect(metrics.headers["Content-Encoding"] == "gzip" && metrics.body.count < 10_000)
                #expect(try await connection.response()?.body.count == 200_000)
                #expect(try await connection.response()?.status == 200)
            }
            try await connection.hangUp()
        }
    }

    @Test("A malformed request gets a response beside the compressor")
    func malformedRequests() async throws {
        try await TestService.run { (service) async throws in
            for text in [
                "GARBAGE\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /\u{1} HTTP/1.1\r\n\r\n",
            ] {
                let connection = try await RawConnection(port: service.port)
                try await connection.send(
                    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n" + text)
                #expect(try await connection.response()?.status == 200)
                #expect(try await connection.response()?.status == 400, "\(text)")
                try await connection.hangUp()
            }
            #expect(try await service.call("GET", "/health/live").status == 200)
        }
    }
}
