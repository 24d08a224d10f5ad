import CacheCore
import CacheTestKit
import NIOCore
import NIOEmbedded
import NIOHTTP1
import ReaderAccess
import Synchronization
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// Prepared responses: requests that differ from an earlier one in `Range` only.
@Suite(.timeLimit(.minutes(20))) struct PreparedResponseTests {
    /// Source of identifiers that counts them: one for each response that was not prepared.
    final class Counted: RandomSource {
        private let base = SeededChance()
        private let calls = Mutex(0)
        var count: Int { calls.withLock { $0 } }

        func uniform() -> Double { base.uniform() }

        func identifier() -> String {
            calls.withLock { $0 += 1 }
            return base.identifier()
        }
    }

    /// A connection with the handler of content on an embedded channel. Responses must not need a wait.
    final class Line {
        let channel = EmbeddedChannel()
        private let random = Counted()
        /// Responses that were not prepared.
        var made: Int { random.count }

        init(
            _ service: TestService, responseCache: PreparedResponseCache = PreparedResponseCache(random: SeededChance())
        ) throws {
            let responder = service.responder(random: random)
            let connections = ConnectionPermits(limit: 1)
            let permit = connections.take {}
            let connection = HTTPConnectionHandler(
                disconnection: AsyncEvent(), wallClock: service.wallClock, limits: .init(), connections: connections,
                permit: permit,
                makeRequestID: { "id" })
            let sendBuffer = SendBufferTuning(in: .none)
            let prepared = PreparedResponseSender(
                responseCache: responseCache, responder: responder, sendBuffer: sendBuffer, connection: connection)
            try RequestDecoder.add(to: channel.pipeline.syncOperations, .init(), prepared: prepared)
            let handlers: [any ChannelHandler] = [
                connection,
                ContentHandler(
                    responder: responder, sendBuffer: sendBuffer, rates: ReaderRates(), prepared: prepared),
            ]
            try channel.pipeline.syncOperations.addHandlers(handlers)
        }

        /// The head and body of the response.
        func ask(_ range: String?, path: String = "/a.mp4", _ more: String = "") throws -> String {
            let field = range.map { "Range: \($0)\r\n" } ?? ""
            return try send("GET /o/media\(path) HTTP/1.1\r\nHost: localhost\r\n\(field)\(more)\r\n")
        }

        func send(_ text: String) throws -> String {
            try channel.writeInbound(ByteBuffer(string: text))
            channel.embeddedEventLoop.run()
            var answer = String.UnicodeScalarView()
            while let piece = try channel.readOutbound(as: IOData.self) {
                guard case .byteBuffer(let bytes) = piece else { continue }  // sent by the kernel from the file
                answer.append(contentsOf: bytes.readableBytesView.map { Unicode.Scalar($0) })
            }
            return String(answer)
        }

        deinit { _ = try? channel.finish(acceptAlreadyClosed: true) }
    }

    private let asset = LoopbackAsset(size: 20_000)

    private func run(_ body: @Sendable @escaping (TestService) async throws -> Void) async throws {
        try await TestService.run { (service) async throws in
            for path in ["/a.mp4", "/b.mp4"] {
                service.upstream.serve(path, asset)
                _ = try await service.call("GET", "/o/media" + path)
            }
            try await body(service)
        }
    }

    /// The response without its request id, with sorted fields.
    private func essence(_ answer: String) -> [String] {
        let parts = answer.split(separator: "\r\n\r\n", maxSplits: 1).map(String.init)
        let fields = (parts.first ?? "").split(separator: "\r\n").filter { !$0.hasPrefix("X-Request-Id") }
        return fields.map(String.init).sorted() + parts.dropFirst()
    }

    @Test(
        "A repeated request gets the prepared response, identical to the regular one",
        arguments: ["bytes=5-9", "bytes=19000-", "bytes=-7", "bytes=0-99999999", nil])
    func whatIsAskedAgainIsAnsweredInFrontAndInTheSameWords(range: String?) async throws {
        try await run { (service) async throws in
            let known = try Line(service)
            _ = try known.ask(range == nil ? nil : "bytes=1-2")
            let before = known.made
            let again = try known.ask(range)
            #expect(known.made == before, "the response to the repeated request must be prepared")
            let first = try Line(service).ask(range)
            #expect(again.hasPrefix("HTTP/1.1 20"))
            for (one, other) in zip(essence(again), essence(first)) { #expect(one == other) }
            #expect(essence(again).count == essence(first).count)
        }
    }

    @Test(
        "A request with conditions or other range semantics gets no prepared response",
        arguments: [
            ("bytes=1-2,5-6", ""), ("bytes=9-5", ""), ("lines=1-2", ""), ("bytes= 1-2", ""),
            ("bytes=1-2", "If-Range: \"v1\"\r\n"),
            ("bytes=1-2", "Connection: close\r\n"),
            ("bytes=1-2", "Range: bytes=3-4\r\n"),
        ])
    func whatIsJudgedByMoreThanOneRangeIsPassedOn(range: String, more: String) async throws {
        try await run { (service) async throws in
            let responseCache = PreparedResponseCache(random: SeededChance())
            for _ in 0..<2 {
                let line = try Line(service, responseCache: responseCache)
                _ = try line.ask("bytes=0-0")
                let before = line.made
                _ = try line.ask(range, more)
                #expect(line.made == before + 1)
            }
        }
    }

    @Test(
        "A request after which the connection is closed gets no prepared response",
        arguments: [
            ("HTTP/1.0", ""), ("HTTP/1.1", "Proxy-Connection: close\r\n"), ("HTTP/1.1", "Connection: close\r\n"),
        ])
    func theLastRequestOfAConnectionGetsNone(version: String, more: String) async throws {
        try await run { (service) async throws in
            let responseCache = PreparedResponseCache(random: SeededChance())
            for _ in 0..<2 {
                let line = try Line(service, responseCache: responseCache)
                let answer = try line.send("GET /o/media/a.mp4 \(version)\r\nHost: localhost\r\n\(more)\r\n")
                #expect(line.made == 1 && answer.contains("Connection: close\r\n"))
            }
        }
    }

    @Test("Another path, reader or method misses the prepared response")
    func anotherPathAnotherReaderAndAnotherMethodAreOtherQuestions() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            for more in ["", "User-Agent: a\r\n", "User-Agent: b\r\n"] {
                for path in ["/a.mp4", "/b.mp4"] {
                    let before = line.made
                    #expect(try line.ask("bytes=0-5", path: path, more).hasPrefix("HTTP/1.1 206"))
                    #expect(line.made == before + 1)
                }
            }
            let head = try line.send("HEAD /o/media/a.mp4 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-5\r\n\r\n")
            #expect(head.hasSuffix("\r\n\r\n") && line.made == 7)
        }
    }

    /// The response to a request for six bytes on `connection`.
    private func ask(_ connection: RawConnection) async throws -> RawResponse {
        try await connection.request("GET", "/o/media/a.mp4", ["Range": "bytes=0-5"])
        return try #require(try await connection.response())
    }

    @Test("A stale or purged asset is looked up again")
    func anAssetThatIsOldOrPurgedIsLookedUpAgain() async throws {
        try await run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            func status() async throws -> String? { try await ask(connection).headers["Cache-Status"] }
            for _ in 0..<2 { #expect(try await status()?.hasPrefix("Larder;hit") == true) }
            let age = Int(try await ask(connection).headers["Age"] ?? "")
            service.wallClock.advance(by: .seconds(1800))
            #expect(Int(try await ask(connection).headers["Age"] ?? "") == age.map { $0 + 1800 })
            service.wallClock.advance(by: .seconds(7200))
            #expect(try await status()?.hasPrefix("Larder;fwd=stale") == true)

            for _ in 0..<2 { #expect(try await status()?.hasPrefix("Larder;hit") == true) }
            let id = try await service.cache.resolver.resolve(.mounted(origin: "media", path: "/a.mp4", key: nil)).id
            weak let asset = service.cache.context.openAssets[id]
            #expect(asset != nil)
            try await service.cache.assets.delete(id, isSoft: false)
            #expect(try await eventually { asset == nil }, "prepared responses must not retain the asset")
            #expect(try await status()?.hasPrefix("Larder;fwd=miss") == true)
            try await connection.hangUp()
        }
    }

    @Test("A prepared response is dropped when its origin changes")
    func aChangedOriginIsAskedAnew() async throws {
        try await TestService.run(
            access: AccessRules(tokens: [("reader", .read)]), change: { $0.access = .public }
        ) { (service) async throws in
            service.upstream.serve("/a.mp4", asset)
            let connection = try await RawConnection(port: service.port)
            for _ in 0..<3 { #expect(try await ask(connection).status == 206) }
            var (origin, revision) = try service.cache.configuration.origin("media")
            origin.settings.access = .token
            _ = try await service.cache.configuration.setOrigin(origin, if: .revision(revision))
            #expect(try await ask(connection).status == 401)
            try await connection.hangUp()
        }
    }

    @Test("Requests in several reads, and several requests in one read, get their responses in order")
    func requestsNeedNotComeOneByOne() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            let request = "GET /o/media/a.mp4 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-5\r\n\r\n"
            _ = try line.send(request)
            let answers = try line.send(request + request + request)
            #expect(answers.ranges(of: "HTTP/1.1 206").count == 3)
            #expect(line.made == 1)
            // A request in two reads may have been given to the parser in part.
            #expect(try line.send(String(request.prefix(40))).isEmpty)
            #expect(try line.send(String(request.dropFirst(40)) + request).ranges(of: "HTTP/1.1 206").count == 2)
            #expect(line.made <= 2)
            let others = "HEAD /o/media/a.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            #expect(try line.send(others + request + others + request).ranges(of: "HTTP/1.1 20").count == 4)
            #expect(line.made <= 4)
        }
    }

    @Test("Pipelined requests get 16 responses before other connections have their turn")
    func aPipeliningClientPauses() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            let request = "GET /o/media/a.mp4 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-5\r\n\r\n"
            _ = try line.send(request)
            var answers = [try line.send(String(repeating: request, count: 40)).ranges(of: "HTTP/1.1 206").count]
            for _ in 0..<3 {
                line.channel.embeddedEventLoop.advanceTime(by: .microseconds(100))
                answers.append(try line.send("").ranges(of: "HTTP/1.1 206").count)
            }
            #expect(answers == [16, 16, 8, 0])
        }
    }

    @Test("Prepared responses are counted and logged")
    func readsAreCountedAndLogged() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            let before = try await service.cache.statistics.snapshot().all
            for _ in 0..<10 { _ = try line.ask("bytes=0-99") }
            #expect(line.made == 1)
            // A request is counted and written after its response was sent.
            let areCounted = try await eventually {
                let after = try await service.cache.statistics.snapshot().all
                return after.servedFromCacheBytes - before.servedFromCacheBytes == 1000
                    && (after.requests["hit"] ?? 0) - (before.requests["hit"] ?? 0) == 10
            }
            #expect(areCounted)
            let isLogged = try await eventually {
                service.log.requests.count {
                    $0["bytes"] == "100" && $0["path"] == "/o/media/a.mp4" && $0["status"] == "206"
                } == 10
            }
            #expect(isLogged, "\(service.log.requests)")
        }
    }

    @Test("Age and Date of a prepared response are correct at every moment")
    func whatAnAnswerSaysOfTimeIsRightInEachMoment() async throws {
        try await run { (service) async throws in
            let known = try Line(service)
            _ = try known.ask("bytes=1-2")
            for step in [1, 398, 1, 2, 599, 1, 998, 1, 300, 3600, 17] {
                service.wallClock.advance(by: .milliseconds(step))
                #expect(try essence(known.ask("bytes=5-9")) == essence(Line(service).ask("bytes=5-9")))
            }
            #expect(known.made == 1)
        }
    }
}
