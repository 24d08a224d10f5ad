import NIOHTTP1
import Testing

@testable import CacheAPI

/// The framing of responses, by the version, method and fields of their requests (RFC 9112 §6, §9).
@Suite struct HTTPFramingTests {
    private static func head(
        _ method: HTTPMethod = .GET, _ version: HTTPVersion = .http1_1, _ headers: HTTPHeaders = [:]
    ) -> HTTPRequestHead {
        HTTPRequestHead(version: version, method: method, uri: "/", headers: headers)
    }

    @Test("The connection ends after a request that says so, an old one without keep-alive, and a faulty one")
    func lastRequests() {
        func isLast(_ version: HTTPVersion, _ headers: HTTPHeaders, _ isLast: Bool = false) -> Bool {
            RequestFraming(Self.head(.GET, version, headers), isLast: isLast).isLast
        }
        #expect(!isLast(.http1_1, [:]) && isLast(.http1_1, [:], true))
        #expect(isLast(.http1_1, ["Connection": "TE, close"]))
        #expect(isLast(.http1_0, [:]) && !isLast(.http1_0, ["Connection": "keep-alive"]))
        #expect(isLast(.http1_0, ["Connection": "keep-alive", "Transfer-Encoding": "chunked"]))
    }

    @Test(
        "The end of a body is marked, hidden to HEAD, or the end of the connection for HTTP/1.0",
        arguments: [
            (HTTPMethod.GET, HTTPVersion.http1_1, false, ResponseFraming.End.marked),
            (.GET, .http1_1, true, .marked), (.HEAD, .http1_1, false, .marked), (.HEAD, .http1_1, true, .hidden),
            (.GET, .http1_0, false, .marked), (.GET, .http1_0, true, .connection), (.HEAD, .http1_0, true, .hidden),
        ])
    func ends(method: HTTPMethod, version: HTTPVersion, isUnbounded: Bool, end: ResponseFraming.End) {
        let head = Self.head(method, version, ["Connection": "keep-alive"])
        let framing = RequestFraming(head, isLast: false).response(isUnbounded: isUnbounded, isLast: false)
        #expect(framing.end == end && framing.isLast == (end == .connection))
        var response = HTTPResponseHead(version: .http1_1, status: .ok)
        framing.apply(to: &response)
        #expect(response.version == (version == .http1_0 && end != .marked ? .http1_0 : .http1_1))
        let isOld = version == .http1_0
        #expect(response.headers["Connection"] == (framing.isLast ? ["close"] : isOld ? ["keep-alive"] : []))
    }

    @Test("A client waits for 100 (Continue) only with HTTP/1.1 and a body")
    func continues() {
        func awaits(_ version: HTTPVersion, _ headers: HTTPHeaders) -> Bool {
            Self.head(.POST, version, headers).awaitsContinue
        }
        #expect(awaits(.http1_1, ["Expect": "100-Continue", "Content-Length": "3"]))
        #expect(awaits(.http1_1, ["Expect": "100-continue", "Transfer-Encoding": "chunked"]))
        #expect(!awaits(.http1_1, ["Expect": "100-continue", "Content-Length": "0"]))
        #expect(!awaits(.http1_1, ["Content-Length": "3"]))
        #expect(!awaits(.http1_0, ["Expect": "100-continue", "Content-Length": "3"]))
    }
}
