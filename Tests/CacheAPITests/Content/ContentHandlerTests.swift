import CacheCore
import CacheTestKit
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// Content responses during a body: connections, leases and shutdown.
@Suite(.serialized, .timeLimit(.minutes(20))) struct ContentHandlerTests {
    /// More bytes than the socket buffers hold.
    private static let large: Int64 = 24 << 20
    private static let target = "/o/media/large.mp4"
    private let asset = LoopbackAsset(size: Self.large)
    /// Computed once, because it is slow.
    private static let bytes = LoopbackAsset(size: large).bytes(0..<large)
    private let small = LoopbackAsset(size: 200_000, seed: 2)

    /// Runs a service with both assets cached.
    private func run(
        limits: APISettings.Limits = .init(), _ body: @Sendable @escaping (TestService) async throws -> Void
    ) async throws {
        try await TestService.run(limits: limits) { (service) async throws in
            service.upstream.serve("/large.mp4", asset)
            service.upstream.serve("/small.mp4", small)
            for path in ["/large.mp4", "/small.mp4"] { _ = try await service.cache.body(of: path) }
            try await body(service)
        }
    }

    /// A connection that has read the response head of the large asset and then reads nothing more.
    private func halted(_ service: TestService, _ headers: HeaderList = [:]) async throws -> RawConnection {
        let connection = try await RawConnection(port: service.port)
        try await connection.read(false)
        try await connection.request("GET", Self.target, headers)
        connection.readOnce()
        #expect(await connection.head()?.status == 200)
        return connection
    }

    private func id(_ service: TestService) async throws -> AssetID {
        try await service.cache.resolver.resolve(.mounted(origin: "media", path: "/large.mp4", key: nil)).id
    }

    /// The current number of readers.
    private func readers(_ service: TestService) -> Int {
        service.cache.context.openAssets.all.reduce(0) { $0 + $1.look { $0.ledger.readerCount } }
    }

    @Test("Responses keep the request order, whether they need a wait or come from the router")
    func answersLeaveInTheOrderOfTheirRequestsWhateverTheirRoad() async throws {
        try await run { (service) async throws in
            service.upstream.serve("/cold.mp4", LoopbackAsset(size: 100_000, seed: 3))
            let connection = try await RawConnection(port: service.port)
            let targets = [
                Self.target, "/o/media/small.mp4", "/health/live", "/o/media/small.mp4", "/o/media/cold.mp4",
                "/o/media/small.mp4", "/o/media/missing", "/o/media/cold.mp4",
            ]
            try await connection.send(
                targets.map { "GET \($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined())
            let bodies: [Int?] = [Int(Self.large), 200_000, nil, 200_000, 100_000, 200_000, nil, 100_000]
            for (target, length) in zip(targets, bodies) {
                let response = try #require(try await connection.response())
                #expect(response.status == (target.hasSuffix("missing") ? 404 : 200))
                if let length { #expect(response.body.count == length, "\(target)") }
            }
            try await connection.request("GET", "/o/media/small.mp4", ["Range": "bytes=7-9"])
            #expect(try await connection.response()?.body == small.bytes(7..<10))
            try await connection.hangUp()
        }
    }

    @Test("Five hundred pipelined requests are all answered")
    func manyRequestsAtOnceAreAllAnswered() async throws {
        try await run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            let request = "GET /o/media/small.mp4 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=5-9\r\n\r\n"
            try await connection.send(String(repeating: request, count: 500))
            for _ in 0..<500 {
                let response = try await connection.response()
                #expect(response?.body == small.bytes(5..<10))
            }
            try await connection.hangUp()
        }
    }

    @Test("A client that disconnects mid-body is counted and releases its reader")
    func aClientThatLeavesInTheMiddleIsCountedAndHoldsNothing() async throws {
        try await run { (service) async throws in
            let connection = try await halted(service)
            // Earlier readers leave after their responses.
            let isAlone = try await eventually { readers(service) == 1 }
            #expect(isAlone)
            try await connection.hangUp()
            let line = await service.log.line { $0["path"] == Self.target && $0["aborted"] == "true" }
            #expect(line?["outcome"] == "hit")
            let isGone = try await eventually { readers(service) == 0 }
            #expect(isGone)
            #expect(try await service.cache.statistics.snapshot().all.clientAborted == 1)
            #expect(try await service.call("GET", "/o/media/small.mp4").body == small.bytes(0..<200_000))
        }
    }

    @Test("A client that shuts down only its sending side gets the whole response")
    func aClientThatOnlySendsNoMoreGetsAllOfItsAnswer() async throws {
        try await run { (service) async throws in
            let connection = try await halted(service)
            try await connection.endSending()
            try await connection.read(true)
            #expect(await connection.bytes(Int(Self.large)) == Self.bytes)
            #expect(await connection.rest().isEmpty)
        }
    }

    @Test("A client that sends no more gets all of its prepared responses", arguments: [1, 3, 8])
    func preparedResponsesAreCompleteAfterAHalfClose(count: Int) async throws {
        try await run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            let request = "GET \(Self.target) HTTP/1.1\r\nHost: localhost\r\nRange: bytes=5-1999999\r\n\r\n"
            try await connection.send(request)
            #expect(try await connection.response()?.status == 206)
            try await connection.read(false)
            try await connection.send(String(repeating: request, count: count))
            try await connection.endSending()
            try await connection.read(true)
            for _ in 0..<count {
                #expect(try await connection.response()?.body == Array(Self.bytes[5..<2_000_000]))
            }
            #expect(await connection.rest().isEmpty)
        }
    }

    @Test("A response in progress is completed after its asset is purged")
    func aPurgedAssetIsSentToItsEnd() async throws {
        try await run { (service) async throws in
            let connection = try await halted(service)
            try await service.cache.assets.delete(try await id(service), isSoft: false)
            try await connection.read(true)
            #expect(await connection.bytes(Int(Self.large)) == Self.bytes)
            let again = try await service.call("GET", Self.target, ["Range": "bytes=0-9"])
            #expect(again.headers["Cache-Status"]?.contains("fwd=miss") ?? false)
            try await connection.hangUp()
        }
    }

    @Test("Bytes evicted ahead of the response are fetched again")
    func whatIsEvictedAheadOfItIsFetchedAgain() async throws {
        try await run { (service) async throws in
            let connection = try await halted(service)
            let freed = try await service.cache.evictor.drop(
                [0..<Self.large], of: try await id(service), because: .purge)
            #expect(freed > 0 && freed < Self.large)
            try await connection.read(true)
            #expect(await connection.bytes(Int(Self.large)) == Self.bytes)
            #expect(try await eventually { readers(service) == 0 })
            // Bytes that are already sent are not refetched.
            let again = service.upstream.requestedBytes("/large.mp4") - Self.large
            #expect(again > 0 && again <= freed)
            try await connection.hangUp()
        }
    }

    @Test("A response that cannot be completed is cut off")
    func aBodyThatCannotBeCompletedIsCutOff() async throws {
        try await run { (service) async throws in
            let connection = try await halted(service)
            // The upstream changes before the eviction, because the end of the eviction starts a fill for the reader.
            service.upstream.serve("/large.mp4", LoopbackAsset(size: Self.large, seed: 9, etag: "\"v2\""))
            let freed = try await service.cache.evictor.drop(
                [0..<Self.large], of: try await id(service), because: .purge)
            #expect(freed > 0)
            try await connection.read(true)
            let rest = await connection.rest()
            #expect(rest.count < Int(Self.large) && rest.elementsEqual(Self.bytes.prefix(rest.count)))
            let line = await service.log.line { $0["path"] == Self.target }
            #expect(line?["aborted"] == "true")
        }
    }

    @Test("Shutdown waits for the response body")
    func theEndOfServiceWaitsForTheBody() async throws {
        let reading = AsyncStream<(Task<[UInt8], Never>, LogRecord)>.makeStream()
        try await run { (service) async throws in
            let connection = try await halted(service)
            let port = service.port
            let task = Task {
                // The shutdown has begun once the service accepts no connection.
                _ = try? await eventually { (try? await RawConnection(port: port).hangUp()) == nil }
                try? await connection.read(true)
                return await connection.rest()
            }
            reading.continuation.yield((task, service.log))
        }
        let (task, log) = try #require(await reading.stream.first { _ in true })
        #expect(await task.value == Self.bytes)
        let line = await log.line { $0["path"] == Self.target }
        #expect(line != nil && line?["aborted"] == nil)
    }

    @Test("A response that begins after a shutdown says Connection: close")
    func aResponseAfterAShutdownIsTheLast() async throws {
        let reading = AsyncStream<Task<RawResponse?, any Error>>.makeStream()
        try await run { (service) async throws in
            let latch = LoopbackLatch()
            service.upstream.serve("/slow.mp4", LoopbackAsset(size: 1000, faults: [.stallBeforeHead(until: latch)]))
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/slow.mp4")
            let isAsked = try await eventually { !service.upstream.requests(for: "/slow.mp4").isEmpty }
            #expect(isAsked)
            let port = service.port
            reading.continuation.yield(
                Task {
                    // The shutdown has begun once the service accepts no connection.
                    _ = try await eventually { (try? await RawConnection(port: port).hangUp()) == nil }
                    latch.release()
                    return try await connection.response()
                })
        }
        let response = try await reading.stream.first { _ in true }?.value
        #expect(response?.status == 200 && response?.headers["Connection"] == "close")
    }

    @Test("The idle timeout closes idle connections but no slow reader")
    func restIsLimitedButNoAnswerIsCutForItsReadersPace() async throws {
        try await run(limits: .init(idleTimeout: .seconds(1))) { (service) async throws in
            let slow = try await halted(service)
            let idle = try await RawConnection(port: service.port)
            try await idle.request("GET", "/o/media/small.mp4")
            #expect(try await idle.response()?.body == small.bytes(0..<200_000))
            #expect(await idle.rest().isEmpty)  // closed by the idle timeout
            try await slow.read(true)
            #expect(await slow.bytes(Int(Self.large)) == Self.bytes)
            #expect(await slow.rest().isEmpty)
        }
    }

    @Test("The write timeout cuts off a client that stops receiving")
    func aClientThatTakesNothingIsCutOff() async throws {
        let limits = APISettings.Limits(headerTimeout: .seconds(2), writeTimeout: .milliseconds(100))
        try await run(limits: limits) { (service) async throws in
            let connection = try await halted(service)
            #expect(try await eventually { readers(service) == 0 })
            try await connection.read(true)
            #expect(await connection.rest().count < Int(Self.large))
        }
    }

    @Test("The last response of a connection says Connection: close")
    func theLastAnswerOfAConnectionSaysSo() async throws {
        try await run { (service) async throws in
            let connection = try await RawConnection(port: service.port)
            try await connection.request("GET", "/o/media/small.mp4", ["Connection": "close"])
            let response = try #require(try await connection.response())
            #expect(response.headers["Connection"] == "close" && response.body == small.bytes(0..<200_000))
            #expect(await connection.rest().isEmpty)
        }
    }
}
