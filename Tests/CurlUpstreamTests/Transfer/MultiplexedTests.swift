import CacheCore
import CacheTestKit
import Testing

@testable import CurlUpstream

/// Streams of one HTTP/2 connection: one stream affects neither the others nor the connection.
@Suite(.timeLimit(.minutes(20)))
struct MultiplexedTests {
    private let upstream: MultiplexedUpstream
    private let pool = CurlWorkerPool.forTest(workers: 1)
    private let asset = LoopbackAsset(size: 4_000_000)

    init() async throws {
        upstream = try await MultiplexedUpstream()
        upstream.serve("/whole") { [asset] in $0.serve(asset) }
        upstream.serve("/part") { [asset] stream in
            stream.answer(asset)
            stream.send(asset, 0..<100_000)
        }
    }

    private func request(_ path: String, _ window: UpstreamRequest.Window = .whole) -> UpstreamRequest {
        var request = UpstreamRequest(
            url: upstream.url(path), window: window, originName: "test", allowPrivateAddresses: true)
        request.tls.verify = false
        return request
    }

    /// A transfer that has received 100,000 bytes, and its stream at the upstream.
    private func part() async throws -> (Recorder, any Transfer, MultiplexedStream) {
        let recorder = Recorder()
        let count = upstream.streams.count
        let transfer = pool.start(request("/part"), delivering: recorder)
        await recorder.wait { $0.progress.last == 100_000 }
        return (recorder, transfer, try #require(upstream.streams.dropFirst(count).first { $0.path == "/part" }))
    }

    @Test("Many transfers share one connection")
    func manyTransfersShareOneConnection() async {
        let windows = (0..<20).map { UpstreamRequest.Window.closed($0 * 200_000..<($0 + 1) * 200_000) }
        let recorders = windows.map { pool.fetch(request("/whole", $0)) }
        for recorder in recorders { #expect(await recorder.end().error == nil) }
        #expect(recorders.flatMap(\.bytes).isSame(as: asset.bytes(0..<4_000_000)))
        #expect(recorders.allSatisfy { $0.head?.httpVersion == "2" })
        #expect(upstream.connections == 1)
    }

    @Test("Cancelling a stream resets it without further traffic")
    func aStreamThatIsCutIsResetAtOnceThoughNothingElseHappens() async throws {
        let (recorder, transfer, stream) = try await part()
        transfer.cancel()
        #expect(await recorder.failure() == .cancelled)
        #expect(try await eventually { stream.isReset })
        #expect(await pool.fetch(request("/whole")).end().error == nil)
        #expect(upstream.connections == 1)
    }

    @Test("A shortened stream ends at its new end and is reset")
    func aStreamThatIsShortenedEndsThereAndIsReset() async throws {
        let (recorder, transfer, stream) = try await part()
        let (beside, _, other) = try await part()
        transfer.shorten(to: 150_000)
        stream.send(asset, 100_000..<400_000)
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes.isSame(as: asset.bytes(0..<150_000)))
        #expect(try await eventually { stream.isReset })
        other.send(asset, 100_000..<asset.size, isLast: true)
        #expect(await beside.end().error == nil)
        #expect(beside.bytes.isSame(as: asset.bytes(0..<asset.size)))
        #expect(upstream.connections == 1)
    }

    @Test("A refused response does not affect other streams")
    func anAnswerThatIsRefusedCostsTheOthersNothing() async throws {
        let (recorder, _, stream) = try await part()
        let refusing = Recorder(judging: { _, _ in .refuse(CacheError(.upstreamProtocol, "No.")) })
        pool.fetch(request("/whole"), into: refusing)
        #expect(await refusing.failure() == .upstreamProtocol)
        stream.send(asset, 100_000..<asset.size, isLast: true)
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes.isSame(as: asset.bytes(0..<asset.size)))
        #expect(upstream.connections == 1)
    }

    @Test("A stream aborted by the upstream fails alone")
    func aStreamThatTheUpstreamEndsBreaksAlone() async throws {
        let (recorder, _, stream) = try await part()
        let (beside, _, other) = try await part()
        stream.abort()
        let end = await recorder.end()
        #expect(end.error?.code == .upstreamProtocol)
        #expect(end.storedBytes == 100_000)
        other.send(asset, 100_000..<asset.size, isLast: true)
        #expect(await beside.end().error == nil)
        #expect(upstream.connections == 1)
    }

    @Test("A rate limit delays only its own stream")
    func aRateHoldsOneStreamBackAndNotTheOthers() async {
        var limited = request("/whole")
        limited.bytesPerSecond = 50_000
        let slow = Recorder()
        let transfer = pool.start(limited, delivering: slow)
        await slow.wait { !$0.progress.isEmpty }
        let fast = pool.fetch(request("/whole"))
        #expect(await fast.end().error == nil)
        #expect(fast.bytes.isSame(as: asset.bytes(0..<asset.size)))
        #expect(slow.ends.isEmpty)
        transfer.cancel()
        #expect(await slow.failure() == .cancelled)
        #expect(upstream.connections == 1)
    }

    @Test("Over HTTP/2 a pause is not kept")
    func aPauseIsNotKeptOverHTTP2() async throws {
        let (recorder, transfer, stream) = try await part()
        transfer.pause()
        stream.send(asset, 100_000..<asset.size, isLast: true)
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes.isSame(as: asset.bytes(0..<asset.size)))
    }

    @Test("A stream that is reset with HTTP_1_1_REQUIRED is repeated over HTTP/1.1 (RFC 9113 §7)")
    func http1Required() async throws {
        let upstream = try await MultiplexedUpstream(acceptsHTTP1: true)
        upstream.serve("/a") { [asset] in $0.isHTTP1 ? $0.serve(asset) : $0.requireHTTP1() }
        var request = request("/a")
        request.url = upstream.url("/a")
        let first = pool.fetch(request)
        #expect(await first.end().error == nil)
        request.requiresHTTP1 = { [url = request.url] in $0 == url }
        let second = pool.fetch(request)
        #expect(await second.end().error == nil)

        for recorder in [first, second] {
            #expect(recorder.bytes.isSame(as: asset.bytes(0..<asset.size)))
            #expect(recorder.head?.httpVersion == "1.1")
        }
        #expect(first.head?.requiredHTTP1 == true && second.head?.requiredHTTP1 == false)
        #expect(upstream.streams.map(\.isHTTP1) == [false, true, true])
    }

    @Test("An upstream without HTTP/2 does not require HTTP/1.1")
    func http1Only() async throws {
        let pool = CurlWorkerPool.forTest(workers: 1)
        let upstream = try await MultiplexedUpstream(acceptsHTTP1: true)
        upstream.serve("/a") { [asset] in $0.serve(asset) }
        var request = request("/a")
        request.url = upstream.url("/a")
        request.mayBePaused = true
        let recorder = pool.fetch(request)
        #expect(await recorder.end().error == nil)
        #expect(recorder.head?.requiredHTTP1 == false && upstream.streams.map(\.isHTTP1) == [true])
    }
}
