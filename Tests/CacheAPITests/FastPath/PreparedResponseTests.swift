import CacheCore
import CacheTestKit
import NIOCore
import NIOEmbedded
import NIOHTTP1
import ReaderAccess
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// Prepared responses, sent by a handler in front of the HTTP decoder.
@Suite(.timeLimit(.minutes(20))) struct PreparedResponseTests {
    /// Handler that counts forwarded events: reads, read completions and changes of writability.
    final class Passed: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        var count = 0
        var completed = 0
        var writable: [Bool] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            count += 1
            context.fireChannelRead(data)
        }

        func channelReadComplete(context: ChannelHandlerContext) {
            completed += 1
            context.fireChannelReadComplete()
        }

        func channelWritabilityChanged(context: ChannelHandlerContext) {
            writable.append(context.channel.isWritable)
            context.fireChannelWritabilityChanged()
        }
    }

    /// Handler that holds writes back like a client that does not receive.
    final class SlowClient: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        var takes = true
        private var waiting: [(NIOAny, EventLoopPromise<Void>?)] = []

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if takes { context.write(data, promise: promise) } else { waiting.append((data, promise)) }
        }

        func take(_ context: ChannelHandlerContext) {
            takes = true
            for (data, promise) in waiting { context.write(data, promise: promise) }
            waiting = []
            context.flush()
        }
    }

    /// A connection with the fast-path handlers on an embedded channel.
    final class Line {
        let channel = EmbeddedChannel()
        let passed = Passed()
        let client = SlowClient()

        init(
            _ service: TestService, responseCache: PreparedResponseCache = PreparedResponseCache(random: SeededChance())
        ) throws {
            let responder = FastPathResponder(
                reader: service.cache.reader,
                gate: Authorizer(access: AccessRules(), cors: CORSRules(), wallClock: service.wallClock),
                random: SeededChance(), clock: ContinuousClock(), recorder: service.recorder)
            let connections = ConnectionPermits(limit: 1)
            let watch = ConnectionTimeoutHandler(
                presence: DisconnectSignal(), limits: .init(), connections: connections, permit: connections.take {},
                makeRequestID: { "id" })
            let sendBuffer = SendBufferTuning(in: .none)
            let preparedResponses = PreparedResponseHandler(
                responseCache: responseCache, responder: responder, sendBuffer: sendBuffer, watch: watch)
            let handlers: [any ChannelHandler] = [
                client, preparedResponses, passed, HTTPResponseEncoder(), ByteToMessageHandler(HTTPRequestDecoder()),
                HTTP1FramingHandler(wallClock: service.wallClock, limits: .init(), isForOneRequest: false), watch,
                FastPathHandler(responder: responder, sendBuffer: sendBuffer, preparedResponses: preparedResponses),
            ]
            try channel.pipeline.syncOperations.addHandlers(handlers)
        }

        /// The head and body of the response; empty if the request was forwarded to the regular path.
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

        func canWrite(_ isWritable: Bool) {
            channel.isWritable = isWritable
            channel.pipeline.fireChannelWritabilityChanged()
        }

        func take() throws { client.take(try channel.pipeline.syncOperations.context(handler: client)) }

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
            let before = known.passed.count
            let again = try known.ask(range)
            #expect(known.passed.count == before, "the repeated request must not be forwarded")
            let first = try Line(service).ask(range)
            #expect(again.hasPrefix("HTTP/1.1 20"))
            for (one, other) in zip(essence(again), essence(first)) { #expect(one == other) }
            #expect(essence(again).count == essence(first).count)
        }
    }

    @Test(
        "A request with conditions or other range semantics is forwarded",
        arguments: [
            ("bytes=1-2,5-6", ""), ("bytes=99999999-", ""), ("bytes=9-5", ""), ("lines=1-2", ""), ("bytes= 1-2", ""),
            ("bytes=1-2", "If-Range: \"v1\"\r\n"), ("bytes=1-2", "Cache-Control: no-cache\r\n"),
            ("bytes=1-2", "X-Request-Id: mine\r\n"), ("bytes=1-2", "Connection: close\r\n"),
            ("bytes=1-2", "Range: bytes=3-4\r\n"),
        ])
    func whatIsJudgedByMoreThanOneRangeIsPassedOn(range: String, more: String) async throws {
        try await run { (service) async throws in
            let responseCache = PreparedResponseCache(random: SeededChance())
            for _ in 0..<2 {
                let line = try Line(service, responseCache: responseCache)
                _ = try line.ask("bytes=0-0")
                let before = line.passed.count
                _ = try line.ask(range, more)
                #expect(line.passed.count == before + 1)
            }
        }
    }

    @Test("Another path, reader or method misses the prepared response")
    func anotherPathAnotherReaderAndAnotherMethodAreOtherQuestions() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            for more in ["", "User-Agent: a\r\n", "User-Agent: b\r\n"] {
                for path in ["/a.mp4", "/b.mp4"] {
                    let before = line.passed.count
                    #expect(try line.ask("bytes=0-5", path: path, more).hasPrefix("HTTP/1.1 206"))
                    #expect(line.passed.count == before + 1)
                }
            }
            let head = try line.send("HEAD /o/media/a.mp4 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-5\r\n\r\n")
            #expect(head.hasSuffix("\r\n\r\n") && line.passed.count == 7)
        }
    }

    private func age(_ line: Line) throws -> Int {
        let field = essence(try line.ask("bytes=0-5")).first { $0.hasPrefix("Age: ") }
        return try #require(field.flatMap { Int($0.dropFirst(5)) })
    }

    @Test("A stale or purged asset is looked up again")
    func anAssetThatIsOldOrTakenOutIsLookedAtAnew() async throws {
        try await run { (service) async throws in
            let (aged, purged) = (try Line(service), try Line(service))
            for line in [aged, purged] { for _ in 0..<2 { _ = try line.ask("bytes=0-5") } }
            #expect([aged, purged].map(\.passed.count) == [1, 1])
            let age = try age(aged)

            service.wallClock.advance(by: .seconds(1800))
            #expect(try self.age(aged) == age + 1800)
            #expect(aged.passed.count == 1)
            service.wallClock.advance(by: .seconds(7200))
            #expect(try aged.ask("bytes=0-5").isEmpty && aged.passed.count == 2)

            let id = try await service.cache.resolver.resolve(.mounted(origin: "media", path: "/a.mp4", key: nil)).id
            weak let asset = service.cache.context.openAssets[id]
            #expect(asset != nil)
            try await service.cache.assets.delete(id, isSoft: false)
            #expect(try await eventually { asset == nil }, "prepared responses must not retain the asset")
            #expect(try purged.ask("bytes=0-5").isEmpty && purged.passed.count == 2)
        }
    }

    @Test("A prepared response is dropped when its origin changes")
    func aChangedOriginIsAskedAnew() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            for _ in 0..<2 { _ = try line.ask("bytes=0-5") }
            var (origin, revision) = try service.cache.configuration.origin("media")
            origin.settings.access = .token
            _ = try await service.cache.configuration.setOrigin(origin, if: .revision(revision))
            _ = try line.ask("bytes=0-5")
            #expect(line.passed.count == 2)
        }
    }

    @Test(
        "A read that is not exactly one request removes the handler",
        arguments: [
            "GET /o/media/a.mp4 HTTP/1.1\r\nHost: loc", "alhost\r\nRange: bytes=0-5\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "POST /v1/probes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
        ])
    func whereRequestsDoNotComeOneByOneNothingIsAnsweredInFront(piece: String) async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            for _ in 0..<2 { _ = try line.ask("bytes=0-5") }
            #expect(line.passed.count == 1)
            _ = try? line.send(piece)
            #expect(throws: (any Error).self) {
                try line.channel.pipeline.syncOperations.handler(type: PreparedResponseHandler.self)
            }
        }
    }

    @Test("Prepared responses are counted and logged")
    func readsAreCountedAndLogged() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            let before = try await service.cache.statistics.snapshot().all
            for _ in 0..<10 { _ = try line.ask("bytes=0-99") }
            let after = try await service.cache.statistics.snapshot().all
            #expect(line.passed.count == 1)
            #expect(after.servedFromCacheBytes - before.servedFromCacheBytes == 1000)
            #expect((after.requests["hit"] ?? 0) - (before.requests["hit"] ?? 0) == 10)
            let told = service.log.requests.suffix(9)
            #expect(told.allSatisfy { $0["bytes"] == "100" && $0["path"] == "/o/media/a.mp4" && $0["status"] == "206" })
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
            #expect(known.passed.count == 1)
        }
    }

    @Test("Later handlers get no event while prepared responses are served")
    func thoseBehindHearOfNothingWhileAnswersAreGivenInFront() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            _ = try line.ask("bytes=0-5")
            #expect(line.passed.completed == 1)
            line.client.takes = false
            #expect(try line.ask("bytes=0-5").isEmpty)
            line.canWrite(false)
            #expect((line.passed.count, line.passed.completed) == (1, 1))
            #expect(line.passed.writable.isEmpty)
            try line.take()
            line.canWrite(true)
            _ = try line.ask("bytes=6-9")
            #expect((line.passed.count, line.passed.completed) == (1, 1))
            #expect(line.passed.writable.isEmpty, "later handlers must not get an event for an unchanged writability")
        }
    }

    @Test("Writability is re-fired before a request is forwarded")
    func whoeverIsToAnswerBehindAnAnswerInFrontKnowsWhetherItMayWrite() async throws {
        try await run { (service) async throws in
            let line = try Line(service)
            _ = try line.ask("bytes=0-5")
            line.client.takes = false
            _ = try line.ask("bytes=0-5")
            line.canWrite(false)
            _ = try line.ask("bytes=0-5", path: "/b.mp4")
            #expect(line.passed.count == 2)
            #expect(line.passed.writable == [false], "later handlers must get the writability before the request")
            line.canWrite(true)
            #expect(line.passed.writable == [false, true])
            line.canWrite(true)
            #expect(line.passed.writable == [false, true], "an unchanged writability must not be fired again")
        }
    }
}
