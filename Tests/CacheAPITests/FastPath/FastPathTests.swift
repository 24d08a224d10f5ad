import CacheCore
import CacheTestKit
import HTTPTypes
import NIOCore
import NIOHTTP1
import ReaderAccess
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// Requests served by the fast path, and requests forwarded to the regular path.
@Suite(.timeLimit(.minutes(20))) struct FastPathTests {
    private func asset() -> LoopbackAsset { LoopbackAsset(size: 600_000) }

    private func responder(_ service: TestService, access: AccessRules = AccessRules()) -> FastPathResponder {
        FastPathResponder(
            reader: service.cache.reader,
            gate: Authorizer(access: access, cors: CORSRules(), wallClock: service.wallClock),
            random: SeededChance(),
            clock: ContinuousClock(), recorder: service.recorder)
    }

    private func head(_ target: String, _ headers: HeaderList = [:], _ method: HTTPMethod = .GET) -> HTTPRequestHead {
        var fields = HTTPHeaders(headers.fields.map { ($0.name, $0.value) })
        if headers["Host"] == nil { fields.add(name: "Host", value: "localhost") }
        return HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: fields)
    }

    @Test(
        "The fast path answers only fully cached requests",
        arguments: [
            ("/o/media/a.mp4", [:], 200), ("/o/media//a.mp4", [:], nil), ("/o/media/a%2Emp4", [:], 200),
            ("/o/media/x/../a.mp4", [:], 200), ("/o/media/a.mp4?", [:], nil), ("/o/media/", [:], nil),
            ("/o/media/a.mp4", ["Range": "bytes=5-9"], 206), ("/o/media/a.mp4", ["Range": "bytes=-9"], 206),
            ("/o/media/a.mp4", ["Range": "bytes=5-9", "If-Range": "\"old\""], 200),
            ("/o/media/a.mp4", ["If-None-Match": "\"v1\""], 304), ("/o/media/a.mp4", ["If-Match": "\"old\""], nil),
            ("/o/media/a.mp4", ["Range": "bytes=600000-"], nil), ("/o/media/a.mp4", ["Range": "bytes=0-1,5-9"], nil),
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
            #expect(responder(service).answer(head(target, ["CDN-Loop": service.cache.reader.loopName])) == nil)
            let answer = responder(service).answer(head(target, headers))
            #expect(answer.map { Int($0.head.status.code) } == status)
        }
    }

    @Test("The fast path does not answer stale assets")
    func whatIsNoLongerFreshIsNot() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            _ = try await service.call("GET", "/o/media/a.mp4")
            #expect(responder(service).answer(head("/o/media/a.mp4")) != nil)
            service.wallClock.advance(by: .seconds(7200))
            #expect(responder(service).answer(head("/o/media/a.mp4")) == nil)
        }
    }

    @Test("A token-protected origin needs a valid token on the fast path")
    func whatNeedsATokenIsAnsweredWithOneOnly() async throws {
        try await TestService.run(change: { $0.access = .token }) { (service) async throws in
            service.upstream.serve("/a.mp4", asset())
            _ = try await service.call("GET", "/o/media/a.mp4")
            let responder = responder(service, access: AccessRules(tokens: [("reader", .read)]))
            #expect(responder.answer(head("/o/media/a.mp4", ["Authorization": "Bearer reader"])) != nil)
            #expect(responder.answer(head("/o/media/a.mp4", ["Authorization": "Bearer other"])) == nil)
            #expect(responder.answer(head("/o/media/a.mp4")) == nil)
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
            let responder = responder(service, access: AccessRules(tokens: [("reader", .read)]))
            #expect(responder.answer(head("/o/media/a.mp4")) == nil)
        }
    }

    @Test(
        "The fast path accepts only plain GETs of content over HTTP/1.1",
        arguments: ["Content-Length", "Transfer-Encoding", "Expect", "Upgrade", "Larder-Timeout"])
    func whatWantsMoreThanContentIsLeftAlone(name: String) {
        #expect(FastPathResponder.takes(head("/o/media/a.mp4")))
        #expect(!FastPathResponder.takes(head("/o/media/a.mp4", [name: "1"])))
        #expect(!FastPathResponder.takes(head("/v1/stats")))
        #expect(!FastPathResponder.takes(head("/o/media/a.mp4", [:], .POST)))
        var old = head("/o/media/a.mp4")
        old.version = .http1_0
        #expect(!FastPathResponder.takes(old))
    }
}
