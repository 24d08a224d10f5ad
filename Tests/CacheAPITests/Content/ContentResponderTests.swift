import CacheCore
import CacheTestKit
import HTTPTypes
import NIOCore
import NIOHTTP1
import ReaderAccess
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// Requests that are answered without a wait, and requests that are not.
@Suite(.timeLimit(.minutes(20))) struct ContentResponderTests {
    private func asset() -> LoopbackAsset { LoopbackAsset(size: 600_000) }

    /// The response to `head` if it needs no wait.
    private func answer(
        _ head: HTTPRequestHead, _ service: TestService, access: AccessRules = AccessRules()
    ) -> ServerResponse? {
        let responder = service.responder(access: access)
        return responder.call(head).flatMap { responder.answerAtOnce($0) }
    }

    private func head(_ target: String, _ headers: HeaderList = [:], _ method: HTTPMethod = .GET) -> HTTPRequestHead {
        var fields = HTTPHeaders(headers.fields.map { ($0.name, $0.value) })
        if headers["Host"] == nil { fields.add(name: "Host", value: "localhost") }
        return HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: fields)
    }

    @Test(
        "Only fully cached requests are answered at once",
        arguments: [
            ("/o/media/a.mp4", [:], 200), ("/o/media//a.mp4", [:], nil), ("/o/media/a%2Emp4", [:], 200),
            ("/o/media/x/../a.mp4", [:], 200), ("/o/media/a.mp4?", [:], nil), ("/o/media/", [:], nil),
            ("/o/media/a.mp4", ["Range": "bytes=5-9"], 206), ("/o/media/a.mp4", ["Range": "bytes=-9"], 206),
            ("/o/media/a.mp4", ["Range": "bytes=5-9", "If-Range": "\"old\""], 200),
            ("/o/media/a.mp4", ["If-None-Match": "\"v1\""], 304), ("/o/media/a.mp4", ["If-Match": "\"old\""], nil),
            ("/o/media/a.mp4", ["Range": "bytes=600000-"], nil), ("/o/media/a.mp4", ["Range": "bytes=0-1,5-9"], 206),
            ("/o/media/a.mp4", ["CDN-Loop": "other"], 200),
            ("/o/media/a.mp4", ["Host": "evil.example"], nil), ("/o/media/part.mp4", ["Range": "bytes=0-9"], 206),
            ("/o/media/part.mp4", ["Range": "bytes=0-99999"], nil), ("/o/media/part.mp4", [:], nil),
            ("/o/media/cold.mp4", [:], nil), ("/o/nobody/a.mp4", [:], nil), ("/o/media/../x/a.mp4", [:], nil),
        ] as [(String, HeaderList, Int?)])
    func onlyWhatIsAtHandIsAnswered(target: String, headers: HeaderList, status: Int?) async throws {
        try await TestService.run { (service) async throws in
            for path in ["/a.mp4", "/part.mp4", "/cold.mp4"] { service.upstream.serve(path, asset()) }
            _ = try await service.call("GET", "/o/media/a.mp4")
            _ = try await service.call("GET", "/o/media/part.mp4", ["Range": "bytes=0-999"])
            #expect(answer(head(target, ["CDN-Loop": service.cache.reader.loopName]), service) == nil)
            let answer = answer(head(target, headers), service)
            #expect(answer.map { Int($0.head.status.code) } == status)
        }
    }

    @Test("Stale assets are not answered at once")
    func whatIsNoLongerFreshIsNot() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            _ = try await service.call("GET", "/o/media/a.mp4")
            #expect(answer(head("/o/media/a.mp4"), service) != nil)
            service.wallClock.advance(by: .seconds(7200))
            #expect(answer(head("/o/media/a.mp4"), service) == nil)
        }
    }

    @Test("A token-protected origin needs a valid token")
    func whatNeedsATokenIsAnsweredWithOneOnly() async throws {
        try await TestService.run(change: { $0.access = .token }) { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            _ = try await service.call("GET", "/o/media/a.mp4")
            let access = AccessRules(tokens: [("reader", .read)])
            let heads = [["Authorization": "Bearer reader"], ["Authorization": "Bearer other"], [:] as HeaderList]
                .map { head("/o/media/a.mp4", $0) }
            #expect(heads.map { answer($0, service, access: access) != nil } == [true, false, false])
        }
    }

    @Test("A recreated origin applies to its new assets")
    func aChangedOriginIsAskedForItsNewAssets() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            for _ in 0..<3 { #expect(try await service.call("GET", "/o/media/a.mp4").status == 200) }
            let (origin, revision) = try service.cache.configuration.origin("media")
            try await service.cache.configuration.deleteOrigin("media", if: .revision(revision))
            #expect(try await service.call("GET", "/o/media/a.mp4").status == 404)
            var changed = origin
            changed.settings.access = .token
            _ = try await service.cache.configuration.setOrigin(changed)
            #expect(answer(head("/o/media/a.mp4"), service, access: AccessRules(tokens: [("reader", .read)])) == nil)
        }
    }

    @Test("A request with a time limit is not answered at once")
    func whatHasATimeLimitIsNotAnsweredAtOnce() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            _ = try await service.call("GET", "/o/media/a.mp4")
            #expect(answer(head("/o/media/a.mp4", ["Larder-Timeout": "1"]), service) == nil)
        }
    }

    @Test(
        "A target names content, or the router answers it",
        arguments: [
            ("/o/media/a.mp4", "/o/{origin}/{path}"), ("/o/media//a.mp4?x#y", "/o/{origin}/{path}"),
            ("/o/media", nil), ("/o/media//", nil), ("/o/media?/a.mp4", nil), ("/o//", nil), ("//o/media/a.mp4", nil),
            ("/v1/content?url=x", "/v1/content"), ("/v1/content/", "/v1/content"), ("/v1/contents", nil),
            ("/v1/assets/0123/content", "/v1/assets/{assetId}/content"), ("/v1/assets/content", nil),
            ("/v1/origins/x/content", nil), ("/v1/stats", nil), ("/", nil), ("*", nil), ("", nil),
        ])
    func targetsOfContent(target: String, pattern: String?) {
        #expect(ContentTarget(target)?.pattern == pattern)
    }
}
