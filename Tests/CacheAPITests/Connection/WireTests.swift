import CacheAPI
import CacheCore
import CacheTestKit
import Testing

/// Versions, framing and connections (RFC 9112), byte by byte.
@Suite(.bothRoads, .timeLimit(.minutes(20))) struct WireTests {
    private static let live = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"

    private func unbounded(_ size: Int64 = 300_000, _ faults: [LoopbackFault] = []) -> LoopbackAsset {
        LoopbackAsset(size: size, acceptsRanges: false, framing: .chunked, faults: faults)
    }

    @Test(
        "The connection persists if both sides allow it",
        arguments: [
            ("GET /health/live HTTP/1.0\r\n", false), ("GET /health/live HTTP/1.0\r\nConnection: close\r\n", false),
            ("GET /health/live HTTP/1.0\r\nConnection: Keep-Alive\r\n", true),
            ("GET /health/live HTTP/1.1\r\n", true), ("GET /health/live HTTP/1.1\r\nConnection: TE, Close\r\n", false),
            ("HEAD /o/media/unbounded HTTP/1.0\r\nConnection: keep-alive\r\n", true),
            ("GET /o/media/unbounded HTTP/1.0\r\nConnection: keep-alive\r\n", false),
        ])
    func theConnectionStaysAsLongAsBothSidesSay(head: String, stays: Bool) async throws {
        try await TestService.run { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/unbounded", unbounded(300_000, [.stall(after: 100_000, until: latch)]))
            let connection = try await RawConnection(port: service.port)
            try await connection.send(head + "Host: localhost\r\n\r\n")
            let response = try #require(await connection.head())
            #expect(response.status == 200)
            latch.release()
            let fillRequest = response.headers["Connection"]
            #expect(fillRequest == (stays ? (head.contains("1.0") ? "keep-alive" : nil) : "close"))
            if stays {
                let length = response.headers["Content-Length"].flatMap { Int($0) } ?? 0
                if head.hasPrefix("GET") { _ = await connection.bytes(length) }
                try await connection.send(Self.live)
                #expect(try await connection.response()?.json() == ["status": "live"])
            } else {
                _ = await connection.rest()
                #expect(!connection.isBroken)
            }
        }
    }

    @Test("A body without a length ends with the connection for an HTTP/1.0 client")
    func aBodyWithoutALengthEndsWithTheConnectionForAnOldClient() async throws {
        try await TestService.run(change: { $0.retries = 0 }) { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/whole", unbounded(300_000, [.stall(after: 100_000, until: latch)]))
            let connection = try await RawConnection(port: service.port)
            try await connection.send("GET /o/media/whole HTTP/1.0\r\nHost: localhost\r\n\r\n")
            let head = try #require(await connection.head())
            latch.release()
            #expect(head.status == 200 && head.headers["Transfer-Encoding"] == nil)
            #expect(head.headers["Content-Length"] == nil && head.headers["Connection"] == "close")
            #expect(await connection.rest() == unbounded().bytes(0..<300_000))
            #expect(!connection.isBroken)
        }
    }

    @Test("A cut body without a length resets the connection of an HTTP/1.0 client")
    func aCutBodyWithoutALengthIsAResetForAnOldClient() async throws {
        try await TestService.run(change: { $0.retries = 0 }) { (service) async throws in
            let broken = unbounded(300_000, [.cut(after: 100_000)])
            service.upstream.serve("/cut") { $0.number == 0 ? .asset(broken) : .hangUp }
            let connection = try await RawConnection(port: service.port)
            try await connection.send("GET /o/media/cut HTTP/1.0\r\nHost: localhost\r\n\r\n")
            _ = await connection.rest()
            #expect(connection.isBroken)
        }
    }

    @Test("An unread request body is not parsed as a request")
    func aBodyThatIsNotWantedIsNoRequest() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 10))
            let connection = try await RawConnection(port: service.port)
            let body = String(repeating: Self.live, count: 5000)
            for (method, status) in [("GET", 200), ("POST", 405), ("DELETE", 405), ("HEAD", 200)] {
                try await connection.request(method, "/o/media/a", body: body)
                #expect(try await connection.response(toHead: method == "HEAD")?.status == status, "\(method)")
            }
            try await connection.send(
                "POST /o/media/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "5\r\nGET /\r\n0\r\n\r\n" + Self.live)
            #expect(try await connection.response()?.status == 405)
            #expect(try await connection.response()?.json() == ["status": "live"])
            #expect(service.upstream.requests.count == 1)
        }
    }

    @Test("Expect: 100-continue gets exactly one 100 response")
    func aClientThatAsksForLeaveToSendGetsItOnce() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 10))
            let connection = try await RawConnection(port: service.port)
            let expecting: HeaderList = ["Expect": "100-Continue", "Content-Length": "3"]
            try await connection.request("GET", "/o/media/a", expecting)
            #expect(await connection.head()?.status == 100)
            try await connection.send("abc")
            #expect(try await connection.response()?.body == LoopbackAsset(size: 10).bytes(0..<10))
            // A request without a body gets no 100 (Continue).
            try await connection.request("GET", "/o/media/a", ["Expect": "100-continue"])
            #expect(try await connection.response()?.status == 200)
        }
    }

    @Test("Bytes behind the last request are ignored")
    func whatIsBehindTheLastRequestIsNotListenedTo() async throws {
        try await TestService.run { (service) async throws in
            for rest in ["nonsense\r\n\r\n", Self.live] {
                let connection = try await RawConnection(port: service.port)
                try await connection.send(
                    "GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + rest)
                #expect(try await connection.response()?.json() == ["status": "live"])
                #expect(await connection.rest().isEmpty)
            }
        }
    }

    @Test("OPTIONS * lists the methods of the server")
    func theServerAsAWholeHasMethodsToo() async throws {
        try await TestService.run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.request("OPTIONS", "*")
            let response = try #require(try await connection.response())
            #expect(response.status == 204)
            #expect(response.headers["Allow"] == "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
            try await connection.request("GET", "*")
            #expect(try await connection.response()?.status == 400)
            #expect(service.upstream.requests.isEmpty)
        }
    }

    @Test("A client that shuts down only its sending side gets its response")
    func aClientThatOnlySendsNoMoreGetsItsAnswer() async throws {
        try await TestService.run(limits: .init(halfClosedTimeout: .seconds(50))) { (service) async throws in
            let asset = LoopbackAsset(size: 7 << 20)
            service.upstream.serve("/a", asset)
            // The regular path, the fast path, and twice a prepared response, larger than the socket's buffer.
            for _ in 0..<4 {
                let connection = try await RawConnection(port: service.port)
                try await connection.request("GET", "/o/media/a")
                try await connection.endSending()
                let response = try #require(try await connection.response())
                #expect(response.status == 200 && response.body == asset.bytes(0..<7 << 20))
                #expect(await connection.rest().isEmpty)
            }
        }
    }
}
