import CacheCore
import CacheTestKit
import Glibc
import Logging
import Testing

@testable import CurlUpstream

@Suite(.timeLimit(.minutes(20)))
struct GuardedTransferTests {
    let upstream: LoopbackUpstream
    let pool = CurlWorkerPool.forTest(workers: 1)

    init() throws {
        upstream = try LoopbackUpstream()
        upstream.serve("/a", LoopbackAsset(size: 1000))
    }

    @Test(
        "Loopback is refused in every form",
        arguments: ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"])
    func loopbackIsRefusedInEveryForm(_ host: String) async {
        let request = UpstreamRequest(url: "http://\(host):\(upstream.port)/a?sign=secret")
        let error = await pool.fetch(request).end().error
        #expect(error?.code == .upstreamForbidden)
        #expect(error?.message.contains("secret") == false)
        #expect(upstream.connectionCount == 0)
    }

    @Test("A connection of a trusted origin is not reused for an untrusted one")
    func aConnectionMadeForATrustedOriginIsNotLentToAnother() async {
        #expect(await pool.fetch(upstream.request("/a")).end().error == nil)
        var untrusted = upstream.request("/a")
        untrusted.allowPrivateAddresses = false
        #expect(await pool.fetch(untrusted).failure() == .upstreamForbidden)
        #expect(upstream.requests.count == 1)
        #expect(upstream.connectionCount == 1)
    }

    @Test("The failure of a permitted address counts more than another address that is refused")
    func aRefusedConnectionIsReported() async {
        var settings = CurlPoolSettings(workers: 1)
        // libcurl has an address of each family for this name.
        settings.refusal = { $0.count == 16 ? "made-up" : nil }
        let pool = CurlWorkerPool(
            settings: settings, clock: ContinuousClock(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        let error = await pool.fetch(UpstreamRequest(url: "http://localhost:1/a")).end().error
        #expect(error?.code == .upstreamUnreachable())
        #expect(error?.message.contains("refused the connection") == true, "\(error?.message ?? "")")
    }

    @Test("Every hop of a redirect is checked")
    func everyHopOfARedirectIsGuarded() async {
        var settings = CurlPoolSettings(workers: 1)
        settings.refusal = { $0 == [127, 0, 0, 1] ? nil : "made-up" }
        let pool = CurlWorkerPool(
            settings: settings, clock: ContinuousClock(),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        upstream.serve("/out") { [upstream] _ in .redirect(to: "http://127.0.0.2:\(upstream.port)/a") }
        let recorder = pool.fetch(UpstreamRequest(url: upstream.url("/out")))
        #expect(await recorder.failure() == .upstreamForbidden)
        #expect(recorder.head == nil)
        #expect(upstream.requests.map(\.path) == ["/out"])
    }

    @Test("A proxy in the environment is not used")
    func aProxyInTheEnvironmentIsNotUsed() async {
        await #expect(processExitsWith: .success) {
            for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] { setenv(name, "http://127.0.0.1:9", 1) }
            let upstream = try LoopbackUpstream()
            upstream.serve("/a", LoopbackAsset(size: 1000))
            let pool = CurlWorkerPool.forTest()
            let end = await pool.fetch(upstream.request("/a")).end()
            pool.shutdown()
            guard end.error == nil, end.storedBytes == 1000 else { exit(1) }
        }
    }

    @Test(
        "A header field with a line break is rejected",
        arguments: [
            HeaderList.Field("X-A", "b\r\nX-B: c"), .init("X-A", "b\nc"), .init("X-A", "b\0"), .init("X A", "b"),
            .init("X:A", "b"),
            .init("X-A\r\nX-B", "b"), .init("", "b"),
        ])
    func aFieldThatWouldSmuggleALineIsRefused(_ field: HeaderList.Field) async {
        var request = upstream.request("/a")
        request.originHeaders = HeaderList([field])
        #expect(await pool.fetch(request).failure() == .malformedRequest)
        #expect(upstream.connectionCount == 0)
    }

    @Test("A URL with a line break is rejected")
    func aURLThatWouldSmuggleALineIsRefused() async {
        var request = upstream.request("/a")
        request.url += " HTTP/1.1\r\nX-B: c"
        #expect(await pool.fetch(request).failure() == .malformedRequest)
        #expect(upstream.connectionCount == 0)
    }
}
