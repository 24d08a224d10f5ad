import CacheCore
import CacheTestKit
import Testing

@testable import CurlUpstream

@Suite(.timeLimit(.minutes(20)))
struct RedirectTests {
    let upstream: LoopbackUpstream
    let other: LoopbackUpstream
    let pool = CurlWorkerPool.forTest()
    let asset = LoopbackAsset(size: 10_000)

    init() throws {
        upstream = try LoopbackUpstream()
        other = try LoopbackUpstream()
        upstream.serve("/d/a", asset)
        other.serve("/d/a", asset)
    }

    private func request(_ path: String, _ window: UpstreamRequest.Window = .whole) -> UpstreamRequest {
        var request = upstream.request(path, window)
        request.originHeaders = ["Authorization": "Bearer secret", "X-Key": "k"]
        request.headers = ["X-Trace": "7"]
        return request
    }

    @Test("A redirect is followed with its window", arguments: [301, 302, 303, 307, 308])
    func aRedirectIsFollowedWithItsWindow(_ status: Int) async {
        upstream.serve("/old") { _ in .redirect(to: "/d/a?x=1", status: status) }
        let recorder = pool.fetch(request("/old", .closed(10..<2000)))
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == asset.bytes(10..<2000))
        #expect(recorder.headCount == 1)
        #expect(recorder.head?.finalURL == upstream.url("/d/a?x=1"))
        #expect(recorder.head?.redirects == 1)
        #expect(recorder.calls.count { $0 == "started" } == 1)
        #expect(upstream.requests.map(\.target) == ["/old", "/d/a?x=1"])
        #expect(Set(upstream.requests.map(\.connection)) == [0], "the redirect must reuse the connection")
    }

    @Test(
        "A location is resolved against its URL",
        arguments: ["../d/a", "a", "/d/a", "//127.0.0.1:{port}/d/a", "http://127.0.0.1:{port}/d/./x/../a#part"])
    func aLocationIsResolvedAgainstItsURL(_ location: String) async {
        let target = location.replacing("{port}", with: "\(upstream.port)")
        upstream.serve("/d/old") { _ in .redirect(to: target) }
        let recorder = pool.fetch(request("/d/old"))
        #expect(await recorder.end().error == nil)
        #expect(recorder.head?.finalURL == upstream.url("/d/a"))
    }

    @Test("Origin headers are sent only to the host of the origin")
    func theOriginsHeadersStayWithItsHost() async {
        upstream.serve("/out") { [other] _ in .redirect(to: other.url("/back")) }
        other.serve("/back") { [upstream] _ in .redirect(to: upstream.url("/d/a")) }
        #expect(await pool.fetch(request("/out")).end().error == nil)
        #expect(upstream.requests.map { $0.headers["Authorization"] } == ["Bearer secret", "Bearer secret"])
        #expect(other.requests.map { $0.headers["Authorization"] } == [nil])
        #expect(other.requests.map { $0.headers["X-Key"] } == [nil])
        #expect(other.requests.map { $0.headers["X-Trace"] } == ["7"])
    }

    /// Signs requests for a region, in words.
    private struct Signer: RequestAuthorizer {
        let region: String?

        func authorize(_ request: OutgoingRequest) throws(CacheError) -> AuthorizedFields {
            AuthorizedFields(
                url: request.url.text, headers: ["Authorization": "for \(request.region ?? "own")"])
        }
    }

    @Test(
        "A redirect to the region of a bucket is signed again, once, for hosts of the same service only",
        arguments: [
            ("eu-west-1", nil, ["for own", "for eu-west-1"]), ("eu-west-1", "/there", ["for own", "for eu-west-1"]),
            ("us-east-1", nil, ["for own"]), ("eu-west-1", "other", ["for own"]),
        ] as [(String, String?, [String])])
    func aBucketsRegionIsSignedFor(_ region: String, _ location: String?, _ signatures: [String]) async {
        let place = location == "other" ? other.url("/back") : location
        other.serve("/back", asset)
        for path in ["/moved", "/there"] {
            upstream.serve(path) { request in
                guard request.headers["Authorization"] == "for own" else { return .response(status: 200, body: [1]) }
                var headers: HeaderList = ["x-amz-bucket-region": region]
                if let place { headers.append("Location", place) }
                return .response(status: 301, headers: headers)
            }
        }
        var request = upstream.request("/moved")
        request.authorizer = Signer(region: "us-east-1")
        let recorder = pool.fetch(request)
        _ = await recorder.end()
        #expect(upstream.requests.map { $0.headers["Authorization"] } == signatures)
        #expect(other.requests.allSatisfy { $0.headers["Authorization"] == nil })
        #expect(recorder.head?.status == (signatures.count == 2 || location == "other" ? 200 : 301))
    }

    @Test("An account without a region follows no redirect without a place")
    func noRegionNoRedirect() async {
        upstream.serve("/moved") { _ in .response(status: 301, headers: ["x-amz-bucket-region": "eu-west-1"]) }
        var request = upstream.request("/moved")
        request.authorizer = Signer(region: nil)
        let recorder = pool.fetch(request)
        _ = await recorder.end()
        #expect(recorder.head?.status == 301 && upstream.requests.count == 1)
    }

    @Test("Redirects lead to permitted hosts only", arguments: [true, false])
    func redirectsLeadToPermittedHostsOnly(isMirror: Bool) async {
        upstream.serve("/out") { [other] _ in .redirect(to: other.url("/d/a")) }
        upstream.serve("/in") { _ in .redirect(to: "/d/a") }
        func error(_ path: String, _ patterns: [String], _ own: [String] = []) async -> CacheError? {
            var request = request(path)
            request.redirectHosts = RedirectHosts(patterns: HostPatterns(patterns), ownURLs: own)
            return await pool.fetch(request).end().error
        }
        let refused = await error("/out", ["127.0.0.1", "cdn.example", "127.0.0.1:\(upstream.port)"])
        #expect(refused?.code == .upstreamForbidden)
        #expect(refused?.message.contains("127.0.0.1:\(other.port), which redirectHosts") == true)
        #expect(other.requests.isEmpty)
        #expect(await error("/in", ["cdn.example"]) == nil)
        let (patterns, own) = isMirror ? (["cdn.example"], [other.url("/x")]) : (["127.0.0.1:*"], [])
        #expect(await error("/out", patterns, own) == nil)
        #expect(other.requests.map { $0.headers["Authorization"] } == [nil])
    }

    @Test("The head lists the redirects before it")
    func theHeadTellsTheRedirectsThatLedToIt() async {
        upstream.serve("/one") { _ in .redirect(to: "/two", status: 302) }
        upstream.serve("/two") { _ in .redirect(to: "/d/a", status: 308) }
        let recorder = pool.fetch(request("/one"))
        #expect(await recorder.end().error == nil)
        #expect(recorder.head?.earlier.map(\.status) == [302, 308])
        #expect(recorder.head?.earlier.map { $0.headers["Location"] } == ["/two", "/d/a"])
    }

    @Test("An empty Location is not followed")
    func anEmptyLocationLeadsNowhere() async {
        upstream.serve("/d/old") { _ in .redirect(to: "") }
        let recorder = pool.fetch(request("/d/old"))
        _ = await recorder.end()
        #expect(recorder.head?.status == 302)
        #expect(upstream.requests.count == 1)
    }

    @Test("HEAD stays HEAD through a redirect")
    func aHeadRequestStaysOne() async {
        upstream.serve("/old") { _ in .redirect(to: "/d/a", status: 303) }
        var head = request("/old")
        head.method = .head
        #expect(await pool.fetch(head).end().error == nil)
        #expect(upstream.requests.map(\.method) == ["HEAD", "HEAD"])
    }

    @Test("Redirects end at the limit")
    func redirectsEndAtTheLimit() async {
        upstream.serve("/loop") { _ in .redirect(to: "/loop") }
        let recorder = pool.fetch(request("/loop"))
        #expect(await recorder.failure() == .upstreamUnusable())
        #expect(upstream.requests.count == 6)
        #expect(recorder.head == nil)
    }

    @Test("A response without a Location is final", arguments: [300, 304, 301])
    func aResponseWithoutALocationIsFinal(_ status: Int) async {
        upstream.serve("/final") { _ in .response(status: status) }
        let recorder = pool.fetch(request("/final"), into: Recorder(judging: { _, _ in .enough }))
        #expect(await recorder.end().error == nil)
        #expect(recorder.head?.status == status)
        #expect(recorder.head?.redirects == 0)
    }

    @Test(
        "A redirect to an unsupported URL makes the upstream unusable",
        arguments: ["ftp://127.0.0.1/a", "file:///etc/passwd", "http://u:p@127.0.0.1/", "http://", "gopher://x/"])
    func aRedirectToWhatIsNotFetchedIsAProtocolError(_ location: String) async {
        upstream.serve("/bad") { _ in .redirect(to: location) }
        #expect(await pool.fetch(request("/bad")).failure() == .upstreamUnusable())
    }

    @Test("The long body of a redirect is not read to its end")
    func aLongBodyOfARedirectIsNotReadToItsEnd() async {
        let body = [UInt8](repeating: 65, count: 8 << 20)
        upstream.serve("/old") { _ in .response(status: 302, headers: ["Location": "/d/a"], body: body) }
        let recorder = pool.fetch(request("/old"))
        let end = await recorder.end()
        #expect(end.error == nil)
        #expect(recorder.bytes == asset.bytes(0..<10_000))
        #expect(end.droppedBytes < 1 << 20)
    }

    @Test("The timings count from the first request")
    func theTimingsCountFromTheFirstRequest() async {
        upstream.serve("/old") { _ in .redirect(to: "/d/a") }
        let latch = LoopbackLatch()
        upstream.failNext("/old", .stallBeforeHead(until: latch))
        let clock = ContinuousClock()
        let began = clock.now
        let recorder = pool.fetch(request("/old"))
        await latch.reached()
        latch.release()
        let end = await recorder.end()
        #expect((end.timings.total ?? .zero) >= (recorder.head?.timings.firstByte ?? .seconds(99)))
        #expect((end.timings.total ?? .seconds(99)) <= began.duration(to: clock.now))
    }

    @Test("A redirect from HTTPS to HTTP is forbidden")
    func aSecureURLDoesNotLeadToAnInsecureOne() throws {
        let base = try CurlURL.parse("https://media.example/a")
        let error = #expect(throws: CacheError.self) { try CurlURL.resolve("http://media.example/b", from: base) }
        #expect(error?.code == .upstreamForbidden)
        #expect(try CurlURL.resolve("/b c", from: base).text == "https://media.example/b%20c")
    }
}
