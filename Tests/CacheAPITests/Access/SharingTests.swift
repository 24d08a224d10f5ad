@testable import CacheAPI
import CacheCore
import CacheTestKit
import ReaderAccess
import Testing

/// The caching fields of responses by the credentials that opened the content, on both paths.
@Suite(.timeLimit(.minutes(20)), .bothRoads) struct SharingTests {
    private static let key = SigningKeys.File(name: "k1", content: Array("0123456789abcdef0123456789abcdef".utf8))

    /// A service with the protected origin `media`, the tokens `boss`, `player` and `cdn`, which is a shared cache.
    private func run(
        change: @Sendable (inout OriginSettings) -> Void = { $0.access = .token },
        _ body: @Sendable @escaping (TestService) async throws -> Void
    ) async throws {
        let access = try TestAccess.rules(
            [
                ("boss", #""scope":"admin""#), ("player", #""scope":"read""#),
                ("cdn", #""scope":"read","sharedCache":true"#),
            ], signatures: ContentSignatures(keys: try SigningKeys(files: [Self.key])))
        let settings: @Sendable (inout OriginSettings) -> Void = {
            $0.freshness = .respect
            change(&$0)
        }
        try await TestService.run(access: access, change: settings) { (service) async throws in
            // The date of all assets of the upstream.
            let date = Timestamp(seconds: 1_767_225_600)
            service.wallClock.advance(by: date.since(service.wallClock.now()))
            service.upstream.serve(
                "/a.mp4",
                LoopbackAsset(
                    size: 30_000,
                    headers: [
                        "Cache-Control": "public, max-age=3600, s-maxage=7200", "CDN-Cache-Control": "max-age=9000",
                        "Surrogate-Control": "max-age=9000", "X-Accel-Expires": "9000", "Age": "500",
                    ]))
            service.upstream.serve("/gone.mp4") { _ in
                .response(
                    status: 404,
                    headers: ["Cache-Control": "public, max-age=300, s-maxage=300", "Date": HTTPDate.format(date)])
            }
            try await body(service)
        }
    }

    private static func bearer(_ token: String) -> HeaderList { ["Authorization": "Bearer \(token)"] }

    private static func sign(_ service: TestService, _ form: String, _ path: String = "a.mp4") async throws -> String {
        let response = try await service.send(
            "POST", "/v1/signatures", bearer("boss"),
            ["path": .string("/o/media/" + path), "form": .string(form), "expiresInSeconds": 60])
        return try #require(response.json()["url"]?.plain)
    }

    /// The requests whose responses have different statuses and layouts.
    private static let requests: [(method: String, fields: HeaderList, status: Int)] = [
        ("GET", [:], 200), ("GET", ["Range": "bytes=0-9"], 206), ("GET", ["Range": "bytes=5-9"], 206),
        ("GET", ["Range": "bytes=0-1,5-9"], 206), ("HEAD", [:], 200), ("GET", ["If-None-Match": "\"v1\""], 304),
        ("GET", ["Range": "bytes=99999-"], 416), ("GET", ["If-Match": "\"other\""], 412),
    ]

    /// Sends each request several times, on one connection so that prepared responses are used.
    private static func responses(
        _ service: TestService, _ target: String, _ fields: HeaderList,
        _ check: (RawResponse, String) -> Void
    ) async throws {
        let connection = try await RawConnection(port: service.port)
        for request in requests + requests {
            let sent = HeaderList(fields.fields + request.fields.fields)
            try await connection.request(request.method, target, sent)
            let response = try #require(try await connection.response(toHead: request.method == "HEAD"))
            #expect(response.status == request.status)
            check(response, "\(request.method) \(request.fields.fields): \(response.headers.fields)")
        }
        try await connection.hangUp()
    }

    private static func hasFieldsForOtherCaches(_ response: RawResponse) -> Bool {
        ["CDN-Cache-Control", "Surrogate-Control", "X-Accel-Expires", "Expires"].contains {
            response.headers[$0] != nil
        }
    }

    private static func members(_ response: RawResponse) -> [String] {
        response.headers.values("Cache-Control").flatMap { FieldText.members(of: $0) }.map(String.init)
    }

    @Test("Responses to a reader's token are private")
    func aReadersResponsesArePrivate() async throws {
        try await run { (service) async throws in
            try await Self.responses(service, "/o/media/a.mp4", Self.bearer("player")) { response, text in
                let members = Self.members(response)
                #expect(members.contains("private"), "\(text)")
                #expect(!members.contains("public") && !members.contains { $0.hasPrefix("s-maxage") }, "\(text)")
                #expect(!Self.hasFieldsForOtherCaches(response), "\(text)")
            }
            let error = try await service.call("GET", "/o/media/gone.mp4", Self.bearer("player"))
            #expect(error.status == 404 && Self.members(error).contains("private"))
        }
    }

    @Test("Responses to a token of a shared cache are as the upstream states")
    func aSharedCachesResponsesAreUnchanged() async throws {
        try await run { (service) async throws in
            try await Self.responses(service, "/o/media/a.mp4", Self.bearer("cdn")) { response, text in
                guard response.status < 400 else { return }
                #expect(response.headers["Cache-Control"] == "public, max-age=3600, s-maxage=7200", "\(text)")
                #expect(response.headers["CDN-Cache-Control"] == "max-age=9000", "\(text)")
            }
            // The response to another token of the same asset is not prepared from it.
            let own = try await service.call("GET", "/o/media/a.mp4", Self.bearer("player"))
            #expect(Self.members(own).contains("private"))
        }
    }

    @Test("Responses to a signed URL may be shared until its end", arguments: ["query", "path", "uriSigning"])
    func aSignedURLsResponsesEnd(form: String) async throws {
        try await run { (service) async throws in
            let url = try await Self.sign(service, form)
            for left in [60, 20, 1] {
                try await Self.responses(service, url, [:]) { response, text in
                    guard response.status < 400 else { return }
                    let members = Self.members(response)
                    #expect(members.contains("max-age=\(left)") && members.contains("s-maxage=\(left)"), "\(text)")
                    #expect(!members.contains("private") && !Self.hasFieldsForOtherCaches(response), "\(text)")
                    #expect(response.headers["Age"] == nil, "\(text)")
                    #expect(response.headers["Date"] == HTTPDate.format(service.wallClock.now()), "\(text)")
                }
                service.wallClock.advance(by: left == 60 ? .seconds(40) : .seconds(19))
            }
            // The signature has ended; the reader continues within the grace, which RFC 9246 packages do not have.
            let late = try await service.call("GET", url)
            guard form != "uriSigning" else {
                #expect(late.status == 403 && Self.members(late).contains("no-store"))
                return
            }
            #expect(late.status == 200 && Self.members(late).contains("private"))
            #expect(Self.members(late).contains("max-age=0"))
        }
    }

    @Test("The lifetime of an error ends with the signed URL", arguments: ["query", "path"])
    func aSignedURLsErrorsEnd(form: String) async throws {
        try await run { (service) async throws in
            let url = try await Self.sign(service, form, "gone.mp4")
            let first = try await service.call("GET", url)
            #expect(first.status == 404 && Self.members(first).contains("no-store"))
            // The stored refusal has a lifetime.
            let second = try await service.call("GET", url)
            #expect(second.status == 404 && Self.members(second).contains("max-age=60"))
        }
    }

    @Test("Responses to a cookie are private")
    func aCookiesResponsesArePrivate() async throws {
        try await run { (service) async throws in
            let url = try await Self.sign(service, "uriSigning")
            let package = try #require(url.split(separator: "URISigningPackage=").last)
            try await Self.responses(service, "/o/media/a.mp4", ["Cookie": "URISigningPackage=\(package)"]) {
                #expect(Self.members($0).contains("private") && !Self.hasFieldsForOtherCaches($0), "\($1)")
            }
        }
    }

    @Test("Public content keeps its fields, with and without a token")
    func publicContentIsUnchanged() async throws {
        try await run(change: { $0.access = .public }) { (service) async throws in
            for fields in [[:], Self.bearer("player"), Self.bearer("unknown")] {
                try await Self.responses(service, "/o/media/a.mp4", fields) { response, text in
                    guard response.status < 400 else { return }
                    #expect(response.headers["Cache-Control"] == "public, max-age=3600, s-maxage=7200", "\(text)")
                    #expect(response.headers["CDN-Cache-Control"] == "max-age=9000", "\(text)")
                }
            }
        }
    }

    @Test("Responses of an origin that gets fields of the reader are private", arguments: [false, true])
    func forwardedContentIsPrivate(isShared: Bool) async throws {
        try await run(change: {
            ($0.access, $0.forwarded, $0.sharesForwarded) = (.public, ["Authorization", "Cookie"], isShared)
        }) { (service) async throws in
            for fields in [["Authorization": "Basic eA=="], ["Cookie": "session=1"], [:]] as [HeaderList] {
                try await Self.responses(service, "/o/media/a.mp4", fields) {
                    #expect(Self.members($0).contains("private") && !Self.hasFieldsForOtherCaches($0), "\($1)")
                }
                let error = try await service.call("GET", "/o/media/gone.mp4", fields)
                #expect(error.status == 404 && Self.members(error).contains("private"))
            }
        }
    }
}
