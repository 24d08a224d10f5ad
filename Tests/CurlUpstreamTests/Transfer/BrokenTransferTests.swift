import CCurl
import CacheCore
import CacheTestKit
import Glibc
import Testing

@testable import CurlUpstream

@Suite(.timeLimit(.minutes(20)))
struct BrokenTransferTests {
    let upstream: LoopbackUpstream
    let pool = CurlWorkerPool.forTest()
    let asset = LoopbackAsset(size: 400_000)

    init() throws {
        upstream = try LoopbackUpstream()
        upstream.serve("/a", asset)
        upstream.serve("/chunked", LoopbackAsset(size: 400_000, framing: .chunked))
    }

    /// libcurl before 8.1 crashed if the handle had been used before.
    @Test("A folded first line after another response does not break later transfers")
    func aFoldedFirstLineBehindAnotherResponseDoesNoHarm() async {
        upstream.serve("/folded") { _ in .raw(Array("HTTP/1.1 200 OK\r\n X: y\r\nContent-Length: 2\r\n\r\nhi".utf8)) }
        for _ in 0..<20 {
            _ = await pool.fetch(upstream.request("/a", .closed(0..<10))).end()
            _ = await pool.fetch(upstream.request("/folded")).end()
        }
        #expect(await pool.fetch(upstream.request("/a", .closed(0..<10))).end().error == nil)
    }

    /// Bytes received on a persistent connection before a request are no response (RFC 9112 §9.2).
    @Test("Surplus response bytes do not answer a later request")
    func bytesThatNobodyAskedForAnswerNoLaterRequest() async {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
        upstream.serve("/twice") { _ in .raw(Array((answer + "good" + answer + "evil").utf8)) }
        for _ in 0..<20 {
            _ = await pool.fetch(upstream.request("/twice")).end()
            let recorder = pool.fetch(upstream.request("/a", .closed(0..<10)))
            #expect(await recorder.end().error == nil)
            #expect(recorder.bytes == asset.bytes(0..<10))
        }
    }

    @Test("A truncated response keeps its prefix", arguments: ["/a", "/chunked"])
    func aResponseCutShortKeepsItsPrefix(_ path: String) async {
        upstream.failNext(path, .cut(after: 123_456))
        let recorder = pool.fetch(upstream.request(path))
        let end = await recorder.end()
        #expect(end.error?.code == .upstreamProtocol)
        #expect(end.storedBytes == 123_456)
        #expect(recorder.bytes == asset.bytes(0..<123_456))
        #expect(recorder.progress.last == 123_456)
    }

    @Test("A reset connection keeps the received bytes", arguments: ["/a", "/chunked"])
    func aResetConnectionKeepsWhatHadArrived(_ path: String) async {
        upstream.failNext(path, .reset(after: 50_000))
        let recorder = pool.fetch(upstream.request(path))
        let end = await recorder.end()
        #expect(end.error?.code == .upstreamProtocol)
        #expect(end.storedBytes == Int64(recorder.bytes.count))
        #expect(recorder.bytes == asset.bytes(0..<end.storedBytes))
        #expect(end.storedBytes <= 50_000)
    }

    @Test("A transfer restarted at the break completes the body")
    func aTransferBegunAgainFromTheBreakCompletesTheBody() async {
        upstream.failNext("/a", .cut(after: 1000))
        let first = pool.fetch(upstream.request("/a", .closed(0..<5000)))
        let stored = await first.end().storedBytes
        var rest = upstream.request("/a", .closed(stored..<5000))
        rest.headers = ["If-Range": "\"v1\""]
        let second = pool.fetch(rest)
        #expect(await second.end().error == nil)
        #expect(first.bytes + second.bytes == asset.bytes(0..<5000))
        #expect(upstream.requests.map(\.range) == [0..<5000, 1000..<5000])
    }

    @Test("A break after the last wanted byte is no failure")
    func aBreakBehindTheLastWantedByteIsNoFailure() async {
        upstream.failNext("/a", .cut(after: 9000))
        let recorder = pool.fetch(upstream.request("/a"), into: .limited(9000))
        let end = await recorder.end()
        #expect(end.error == nil)
        #expect(recorder.bytes == asset.bytes(0..<9000))
    }

    @Test(
        "A response that is not HTTP is a protocol error",
        arguments: [
            ("hello", "an answer that is no HTTP"), ("HTTP/1.1 abc no\r\n\r\n", "a status that is no number"),
            ("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", "a line that is no field"), ("", "no answer"),
        ])
    func whatIsNotHTTPIsAProtocolError(_ answer: String, _ kind: String) async {
        upstream.serve("/raw") { _ in .raw(Array(answer.utf8)) }
        let recorder = pool.fetch(upstream.request("/raw"))
        #expect(await recorder.failure() == .upstreamProtocol, "\(kind)")
        #expect(recorder.bytes == [])
    }

    @Test("An upstream that closes the connection is a protocol error")
    func anUpstreamThatHangsUpIsAProtocolError() async {
        upstream.serve("/gone") { _ in .hangUp }
        #expect(await pool.fetch(upstream.request("/gone")).failure() == .upstreamProtocol)
    }

    @Test("Too many header lines are rejected")
    func tooManyHeaderLinesAreRefused() async {
        let lines = String(repeating: "X-A: b\r\n", count: 1001)
        upstream.serve("/lines") { _ in .raw(Array("HTTP/1.1 200 OK\r\n\(lines)\r\n".utf8)) }
        #expect(await pool.fetch(upstream.request("/lines")).failure() == .upstreamProtocol)
    }

    @Test("Too many header bytes are rejected")
    func tooManyHeaderBytesAreRefused() async {
        let lines = String(repeating: "X-A: \(String(repeating: "b", count: 30_000))\r\n", count: 9)
        upstream.serve("/bytes") { _ in .raw(Array("HTTP/1.1 200 OK\r\n\(lines)\r\n".utf8)) }
        let recorder = pool.fetch(upstream.request("/bytes"))
        #expect(await recorder.failure() == .upstreamProtocol)
        #expect(recorder.head == nil)
    }

    @Test("The error of a refused connection names the address and no secret")
    func aRefusedConnectionSaysWhatToCheckAndNoSecret() async throws {
        let gone = try LoopbackUpstream()
        let request = gone.request("/a?sign=secret")
        gone.stop()
        let error = await pool.fetch(request).end().error
        #expect(error?.code == .upstreamUnreachable())
        #expect(error?.message.contains("127.0.0.1:\(gone.port) refused the connection") == true)
        #expect(error?.message.contains("secret") == false)
    }

    @Test(
        "A failure before the connection names the host",
        arguments: [
            (CURLE_COULDNT_RESOLVE_HOST, "upstreamUnreachable"), (CURLE_COULDNT_CONNECT, "upstreamUnreachable"),
            (CURLE_PEER_FAILED_VERIFICATION, "upstreamUnreachable"), (CURLE_SSL_CONNECT_ERROR, "upstreamUnreachable"),
            (CURLE_SSL_CACERT_BADFILE, "upstreamUnreachable"), (CURLE_GOT_NOTHING, "upstreamUnreachable"),
            (CURLE_UNSUPPORTED_PROTOCOL, "upstreamProtocol"), (CURLE_OUT_OF_MEMORY, "internal"),
        ])
    func whatFailsBeforeTheConnectionNamesTheHost(_ code: CURLcode, _ name: String) {
        let error = CurlError(code: code, systemError: 0).cacheError(host: "media.example:443", isConnected: false)
        #expect(error.code.name == name)
        #expect(error.message.contains("media.example:443") || name == "internal")
    }

    /// The process cannot create a socket, so the upstream has not failed.
    @Test("Descriptor exhaustion is no failure of the upstream", arguments: [EMFILE, ENFILE])
    func exhaustedDescriptorsAreNoFailureOfTheUpstream(_ number: Int32) {
        let lack = CurlError(code: CURLE_COULDNT_CONNECT, systemError: number)
        #expect(lack.cacheError(host: "media.example:443", isConnected: false).code == .overloaded)
        let refusal = CurlError(code: CURLE_COULDNT_CONNECT, systemError: ECONNREFUSED)
        #expect(refusal.cacheError(host: "media.example:443", isConnected: false).code == .upstreamUnreachable())
    }
}
