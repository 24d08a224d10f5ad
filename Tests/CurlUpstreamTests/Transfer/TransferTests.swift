import CacheCore
import CacheTestKit
import Testing

@testable import CurlUpstream

@Suite(.timeLimit(.minutes(20)))
struct TransferTests {
    let upstream: LoopbackUpstream
    let pool = CurlWorkerPool.forTest()
    let asset = LoopbackAsset(size: 1_000_000)

    init() throws {
        upstream = try LoopbackUpstream()
        upstream.serve("/a", asset)
    }

    @Test("A whole asset arrives in order")
    func aWholeAssetArrivesInOrder() async {
        let recorder = pool.fetch(upstream.request("/a"))
        let end = await recorder.end()
        #expect(end.error == nil)
        #expect(end.storedBytes == asset.size)
        #expect(end.droppedBytes == 0)
        #expect(recorder.bytes == asset.bytes(0..<asset.size))
        #expect(recorder.progress.last == asset.size)
        #expect(recorder.progress == recorder.progress.sorted())
        #expect(recorder.calls.prefix(2) == ["started", "began"])
        #expect(recorder.calls.last == "ended")
        #expect(recorder.writes.allSatisfy { $0 <= 256 << 10 })
    }

    @Test(
        "A window delivers its bytes",
        arguments: [
            (UpstreamRequest.Window.closed(0..<1), 0..<1), (.closed(12_345..<700_001), 12_345..<700_001),
            (.closed(999_999..<1_000_000), 999_999..<1_000_000), (.suffix(777), 999_223..<1_000_000),
        ] as [(UpstreamRequest.Window, ByteRange)])
    func aWindowBringsItsBytes(_ window: UpstreamRequest.Window, _ range: ByteRange) async {
        let recorder = pool.fetch(upstream.request("/a", window))
        #expect(await recorder.end().error == nil)
        #expect(recorder.head?.status == 206)
        #expect(recorder.bytes == asset.bytes(range))
        #expect(upstream.requests.map(\.range) == [range])
    }

    @Test("The request asks for identity coding and sends its fields")
    func theRequestAsksForIdentityAndSendsItsFields() async {
        var request = upstream.request("/a?sign=1", .closed(0..<10))
        request.headers = ["If-Range": "\"v1\"", "X-Empty": "", "accept-encoding": "br", "Range": "bytes=7-8"]
        request.originHeaders = ["Authorization": "Bearer t"]
        await _ = pool.fetch(request).end()
        let sent = upstream.requests[0].headers
        #expect(upstream.requests[0].target == "/a?sign=1")
        #expect(sent.values("Accept-Encoding") == ["identity"])
        #expect(sent.values("Range") == ["bytes=0-9"])
        #expect(sent["If-Range"] == "\"v1\"")
        #expect(sent["X-Empty"] == "")
        #expect(sent["Authorization"] == "Bearer t")
        #expect(sent["User-Agent"] == "larder/0.1")
        #expect(sent["Expect"] == nil)
    }

    @Test("A head request has no body")
    func aHeadRequestHasNoBody() async {
        var request = upstream.request("/a")
        request.method = .head
        let recorder = pool.fetch(request)
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == [])
        #expect(recorder.head?.headers["content-length"] == "1000000")
        #expect(upstream.requests.map(\.method) == ["HEAD"])
    }

    @Test("The head states the server address and the timings")
    func theHeadTellsWhoAnsweredAndHowLongItTook() async {
        let recorder = pool.fetch(upstream.request("/a#top"))
        let end = await recorder.end()
        let head = recorder.head
        #expect(head?.finalURL == upstream.url("/a"))
        #expect(head?.redirects == 0)
        #expect(head?.httpVersion == "1.1")
        #expect(head?.address == "127.0.0.1:\(upstream.port)")
        #expect(head?.headers.values("etag") == ["\"v1\""])
        #expect((head?.timings.firstByte ?? .zero) > .zero)
        #expect(head?.timings.tls == nil)
        #expect((end.timings.total ?? .zero) >= (end.timings.firstByte ?? .seconds(9)))
    }

    @Test("A body without a length ends with its framing", arguments: [LoopbackAsset.Framing.chunked, .untilClose])
    func aBodyWithoutALengthEndsWhereItEnds(_ framing: LoopbackAsset.Framing) async {
        upstream.serve("/b", LoopbackAsset(size: 300_000, framing: framing))
        let recorder = pool.fetch(upstream.request("/b"))
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == asset.bytes(0..<300_000))
    }

    @Test("An encoded body is not decoded")
    func anEncodedBodyIsNotDecoded() async {
        let body: [UInt8] = [0x1F, 0x8B, 1, 2, 3]
        upstream.serve("/z") { _ in .response(status: 200, headers: ["Content-Encoding": "gzip"], body: body) }
        let recorder = pool.fetch(upstream.request("/z"))
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == body)
        #expect(recorder.head?.headers["Content-Encoding"] == "gzip")
    }

    @Test("Surplus bytes are dropped and the transfer is cut")
    func surplusBytesAreDroppedAndTheTransferCut() async {
        upstream.serve("/b", LoopbackAsset(size: 64 << 20, acceptsRanges: false))
        let recorder = pool.fetch(upstream.request("/b", .closed(0..<100_000)), into: .limited(100_000))
        let end = await recorder.end()
        #expect(end.error == nil)
        #expect(end.storedBytes == 100_000)
        #expect(end.droppedBytes > 0)
        #expect(recorder.bytes == asset.bytes(0..<100_000))
        await upstream.waitForOpenConnections(atMost: 0)
        #expect(upstream.sentBytes("/b") < 64 << 20)
    }

    @Test("A satisfied sink ends the transfer without an error")
    func enoughEndsWithoutAnError() async {
        upstream.serve("/b", LoopbackAsset(size: 64 << 20))
        let recorder = pool.fetch(upstream.request("/b"), into: Recorder(judging: { _, _ in .enough }))
        let end = await recorder.end()
        #expect(end.error == nil)
        #expect(end.storedBytes == 0)
        #expect(recorder.progress == [])
        await upstream.waitForOpenConnections(atMost: 0)
        #expect(upstream.sentBytes("/b") < 64 << 20)
    }

    @Test("A satisfied sink keeps the connection after a short body")
    func enoughOfAShortBodyKeepsTheConnection() async {
        for _ in 0..<3 {
            let recorder = pool.fetch(
                upstream.request("/a", .closed(0..<1)), into: Recorder(judging: { _, _ in .enough }))
            #expect(await recorder.end().error == nil)
        }
        #expect(upstream.connectionCount == 1)
    }

    @Test("A satisfied sink does not wait for a stalled short body")
    func enoughOfAShortBodyThatStallsDoesNotWaitForIt() async {
        let latch = LoopbackLatch()
        upstream.failNext("/a", .stallBeforeBody(until: latch))
        let recorder = pool.fetch(upstream.request("/a", .closed(0..<1)), into: Recorder(judging: { _, _ in .enough }))
        #expect(await recorder.end().error == nil)
        latch.release()
    }

    @Test(
        "The head of a 400 or 403 has the beginning of the body, and the body is complete nevertheless",
        arguments: [(403, 0), (403, 1), (400, 4095), (400, 4096), (403, 4097), (403, 50_000), (404, 100), (200, 100)])
    func excerpts(status: Int, length: Int) async {
        let body = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7) }
        upstream.serve("/error") { _ in .response(status: status, body: body) }
        let expected = [400, 403].contains(status) ? Array(body.prefix(ErrorDocument.maxBytes)) : []

        let stored = pool.fetch(upstream.request("/error"))
        #expect(await stored.end().error == nil)
        #expect(stored.head?.excerpt == expected)
        #expect(stored.bytes == body)

        let error = CacheError(.upstreamRefused(status: status), "No.")
        let refused = pool.fetch(upstream.request("/error"), into: Recorder(judging: { _, _ in .refuse(error) }))
        #expect(await refused.failure() == .upstreamRefused(status: status))
        #expect(refused.head?.excerpt == expected && refused.calls == ["started", "began", "ended"])

        let cut = pool.fetch(upstream.request("/error"), into: .limited(10))
        #expect(await cut.end().error == nil)
        #expect(cut.bytes == Array(body.prefix(10)))
    }

    @Test("HEAD has no beginning of a body")
    func headHasNoExcerpt() async {
        upstream.serve("/error") { _ in .response(status: 403, body: [1, 2, 3]) }
        var request = upstream.request("/error")
        request.method = .head
        let recorder = pool.fetch(request)
        #expect(await recorder.end().error == nil)
        #expect(recorder.head?.status == 403 && recorder.head?.excerpt == [])
    }

    @Test("A refused response ends with the refusal")
    func aRefusedResponseEndsWithTheRefusal() async {
        let error = CacheError(.upstreamRefused(status: 404), "It is not there.")
        let recorder = pool.fetch(upstream.request("/none"), into: Recorder(judging: { _, _ in .refuse(error) }))
        #expect(await recorder.failure() == .upstreamRefused(status: 404))
        #expect(recorder.head?.status == 404)
        #expect(recorder.bytes == [])
    }

    @Test("A failing sink ends the transfer with its error")
    func aSinkThatFailsEndsTheTransferWithItsError() async {
        let recorder = Recorder(onWrite: { _ throws(CacheError) in throw CacheError(.storageFull, "The disk is full.") }
        )
        pool.fetch(upstream.request("/a"), into: recorder)
        let end = await recorder.end()
        #expect(end.error?.code == .storageFull)
        #expect(end.storedBytes == 0)
    }

    @Test("Interim responses are ignored")
    func interimResponsesAreIgnored() async {
        upstream.serve("/early") { _ in
            .raw(
                Array("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".utf8))
        }
        let recorder = pool.fetch(upstream.request("/early"))
        #expect(await recorder.end().error == nil)
        #expect(recorder.headCount == 1)
        #expect(recorder.head?.status == 200)
        #expect(recorder.head?.headers["Link"] == nil)
        #expect(recorder.bytes == Array("hi".utf8))
    }

    @Test("Header fields that are not UTF-8 are decoded as Latin-1")
    func fieldsThatAreNotUTF8KeepTheirLetters() async {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-UTF-8: é\r\nX-Latin: ".utf8
        upstream.serve("/latin") { _ in .raw(Array(head) + [0x22, 0xE9, 0x22] + Array("\r\n\r\n".utf8)) }
        let recorder = pool.fetch(upstream.request("/latin"))
        #expect(await recorder.end().error == nil)
        #expect(recorder.head?.headers["X-UTF-8"] == "é")
        #expect(recorder.head?.headers["X-Latin"] == "\"é\"")
    }

    @Test("Bytes beyond the promised length are never delivered")
    func bytesBehindThePromisedLengthAreNeverDelivered() async {
        upstream.serve("/long") { _ in .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi and more".utf8)) }
        let recorder = pool.fetch(upstream.request("/long"))
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == Array("hi".utf8))
    }

    @Test("A connection is reused")
    func aConnectionIsUsedAgain() async {
        for number in 0..<20 {
            let range = ByteRange(offset: Int64(number) * 1000, length: 1000)
            #expect(await pool.fetch(upstream.request("/a", .closed(range))).end().error == nil)
        }
        #expect(Set(upstream.requests.map(\.connection)) == [0])
        #expect(pool.load.workers.reduce(0) { $0 + $1.openedConnections } == 1)
    }

    @Test("Concurrent transfers keep their bytes separate")
    func manyTransfersAtOnceKeepTheirBytesApart() async {
        let recorders = (0..<48).map { number in
            pool.fetch(upstream.request("/a", .closed(ByteRange(offset: Int64(number) * 20_000, length: 20_000))))
        }
        for (number, recorder) in recorders.enumerated() {
            #expect(await recorder.end().error == nil)
            #expect(recorder.bytes == asset.bytes(ByteRange(offset: Int64(number) * 20_000, length: 20_000)))
        }
    }
}
