import CacheCore
import CacheTestKit
import ReaderAccess
import Testing

@testable import CacheAPI

/// The list and the stream of ended requests over HTTP.
@Suite(.timeLimit(.minutes(5))) struct RequestRouteTests {
    private func items(_ service: TestService, _ query: String = "", _ headers: HeaderList = [:]) async throws -> [JSON]
    {
        let response = try await service.call("GET", "/v1/requests\(query)", headers)
        #expect(response.status == 200, "\(response.text)")
        return try response.json()["items"]?.array ?? []
    }

    @Test("Each way to a response leaves one entry with its result, its range and its sources")
    func requestsAreListed() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 100_000))
            let secret: HeaderList = ["Range": "bytes=0-99"]
            for _ in 0..<3 { _ = try await service.call("GET", "/o/media/a?signature=s3cret", secret) }
            _ = try await service.call("GET", "/o/media/a?signature=s3cret", ["Range": "bytes=-10"])
            _ = try await service.call("GET", "/o/media/none")
            _ = try await service.call("GET", "/health/live")
            _ = try await service.call("GET", "/ui/main.js")
            _ = try await service.call("GET", "/v1/stats", ["Larder-Dashboard": "1"])
            let areListed = try await eventually { try await items(service, "?kind=content").count == 5 }
            #expect(areListed)
            let id = try #require(try await items(service, "?status=404").first?["requestId"]?.plain)
            #expect(id.count == 32)

            let found = try await items(service, "?kind=content&limit=10")
            #expect(
                found.compactMap { $0["path"]?.plain } == ["/o/media/none"] + Array(repeating: "/o/media/a", count: 4))
            #expect(found.map { $0["result"]?.plain } == ["error", "miss", "hit", "hit", "miss"])
            #expect(
                found.map { $0["range"]?.plain }
                    == ["", "bytes=99990-99999", "bytes=0-99", "bytes=0-99", "bytes=0-99"])
            let miss = found[4]
            #expect(miss["bytes"] == 100 && miss["bytesFromUpstream"] == 100 && miss["bytesFromCache"] == 0)
            #expect(miss["client"] == "127.0.0.1" && miss["origin"] == "media")
            #expect(found[3]["bytesFromCache"] == 100 && found[3]["complete"] == .bool(true))
            var paths = Set<String>()
            let hasOwnRequests = try await eventually {
                paths = Set(try await items(service).compactMap { $0["path"]?.plain })
                return paths.contains("/v1/requests")
            }
            #expect(hasOwnRequests)
            #expect(!paths.contains("/health/live") && !paths.contains("/ui/main.js") && !paths.contains("/v1/stats"))
            let text = try await service.call("GET", "/v1/requests").text
            #expect(!text.contains("s3cret"))

            let first = try await service.call("GET", "/v1/requests?kind=content&limit=3&total=true").json()
            #expect(first["total"] == 5 && first["items"]?.array.count == 3)
            let cursor = try #require(first["nextCursor"]?.plain)
            let next = try await items(service, "?kind=content&limit=3&cursor=\(cursor)")
            #expect(next.compactMap { $0["id"] } == found[3...].compactMap { $0["id"] })
        }
    }

    @Test("Tokens see the requests of their limits, and addresses of clients with the scope admin only")
    func tokensAreLimited() async throws {
        let access = try TestAccess.rules([
            ("boss", #""scope":"admin""#), ("any", #""scope":"read""#),
            ("team", #""scope":"read","prefixes":["/o/media/a"]"#),
        ])
        @Sendable func bearer(_ token: String) -> HeaderList { ["Authorization": "Bearer \(token)"] }
        try await TestService.run(access: access) { (service) async throws in
            for name in ["/a", "/b"] {
                service.upstream.serve(name, LoopbackAsset(size: 10))
                _ = try await service.call("GET", "/o/media\(name)", bearer("boss"))
            }
            _ = try await service.call("GET", "/o/media/a2", bearer("team"))
            let areListed = try await eventually {
                try await items(service, "?kind=content", bearer("boss")).count == 3
            }
            #expect(areListed)
            let all = try await items(service, "?kind=content", bearer("boss"))
            #expect(all.count == 3 && all.allSatisfy { $0["client"] == "127.0.0.1" })
            #expect(all.map { $0["token"]?.plain } == ["team", "boss", "boss"])
            let own = try await items(service, "", bearer("team"))
            #expect(own.compactMap { $0["path"]?.plain } == ["/o/media/a2", "/o/media/a"])
            #expect(own.allSatisfy { $0["client"] == nil })
            for path in ["/v1/requests", "/v1/events?topics=requests"] {
                let refused = try await service.call("GET", path, bearer("any"))
                #expect(refused.status == 403, "\(path)")
                #expect(refused.headers["WWW-Authenticate"]?.contains("scope=\"admin\"") == true, "\(path)")
                #expect(try await service.call("GET", path, bearer("team")).status == 200, "\(path)")
            }
            #expect(try await service.call("GET", "/v1/events", bearer("any")).status == 200)
            for topics in ["", "?topics=health", "?topics=requests,health"] {
                #expect(try await service.call("GET", "/v1/events\(topics)", bearer("team")).status == 403)
            }
            let events = try await service.call("GET", "/v1/events?topics=requests", bearer("team")).json()
            let seen = events["items"]?.array.compactMap { $0["request"]?["path"]?.plain } ?? []
            #expect(Set(seen) == ["/o/media/a", "/o/media/a2"])
        }
    }

    @Test("A stream has each request that meets its conditions")
    func requestsAreStreamed() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a", LoopbackAsset(size: 10))
            let connection = try await RawConnection(port: service.port)
            try await connection.send(
                "GET /v1/events?topics=requests&status=2xx&origin=media&after=0 HTTP/1.1\r\nHost: localhost\r\n"
                    + "Accept: text/event-stream\r\n\r\n")
            _ = try await service.call("GET", "/o/media/none")
            _ = try await service.call("GET", "/o/media/a")
            let text = try #require(await connection.text(through: "\"path\":\"/o/media/a\""))
            #expect(text.contains("event: requests") && !text.contains("/o/media/none"))
            try await connection.hangUp()
            #expect(try await service.call("GET", "/v1/events?origin=media").status == 422)
        }
    }
}
