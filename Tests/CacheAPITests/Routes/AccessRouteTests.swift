@testable import CacheAPI
import CacheCore
import CacheTestKit
import HTTPTypes
import ReaderAccess
import Testing

/// `GET /v1/access`: the permissions of the caller.
@Suite(.timeLimit(.minutes(20))) struct AccessRouteTests {
    private static let limits = #""prefixes":["/o/media/public/"]"#

    private func run(_ body: @Sendable @escaping (TestService) async throws -> Void) async throws {
        let access = try TestAccess.rules([
            ("read", #""scope":"read""#), ("write", #""scope":"write""#), ("admin", #""scope":"admin""#),
            ("limited-read", #""scope":"read",\#(Self.limits),"expiresAt":"2999-01-01T00:00:00Z""#),
            ("limited-write", #""scope":"write","origins":["media"],\#(Self.limits)"#),
        ])
        try await TestService.run(access: access, change: { $0.access = .token }, body)
    }

    private static func bearer(_ token: String) -> HeaderList { ["Authorization": "Bearer \(token)"] }

    @Test("The token and its limits are reported")
    func theTokenIsReported() async throws {
        try await run { (service) async throws in
            let limited = try await service.call("GET", "/v1/access", Self.bearer("limited-write")).json()
            #expect(
                limited["token"] == [
                    "id": "limited-write", "scope": "write", "origins": ["media"], "prefixes": ["/o/media/public/"],
                    "expiresAt": .null,
                ])
            #expect(limited["assetPrefixes"] == ["/o/media/public/"])
            let ending = try await service.call("GET", "/v1/access", Self.bearer("limited-read")).json()
            #expect(ending["token"]?["expiresAt"]?.plain.hasPrefix("2999-01-01T00:00:00") ?? false)
            let full = try await service.call("GET", "/v1/access", Self.bearer("read")).json()
            #expect(full["token"]?["origins"] == .null && full["assetPrefixes"] == .null)
            #expect(try await service.call("GET", "/v1/access").status == 401)
        }
    }

    @Test("A key set that could not be read is named by the check of the readiness, without its query")
    func aMissingKeySetIsNamed() async throws {
        let access = try TestAccess.rules([("read", #""scope":"read""#)])
        access.directory.update(missingKeySet: "https://login.example/keys?secret")
        try await TestService.run(access: access) { (service) async throws in
            let ready = try await service.call("GET", "/health/ready")
            #expect(ready.status == 200 && ready.text.contains("https://login.example/keys)"), "\(ready.text)")
            #expect(!ready.text.contains("secret"))
            access.directory.update(missingKeySet: nil)
            #expect(try await service.call("GET", "/health/ready").json() == ["status": "ready"])
        }
    }

    @Test("A service without tokens permits every operation")
    func anOpenServicePermitsAll() async throws {
        try await TestService.run { (service) async throws in
            let access = try await service.call("GET", "/v1/access").json()
            #expect(access["token"] == .null && access["assetPrefixes"] == .null)
            #expect(access["operations"]?.array.count == RouteTable.lines.count)
            #expect(access["operations"]?.array.allSatisfy { $0["limited"] == .bool(false) } ?? false)
        }
    }

    @Test(
        "Exactly the reported operations are permitted",
        arguments: ["read", "write", "admin", "limited-read", "limited-write"])
    func theReportedOperationsArePermitted(token: String) async throws {
        try await run { (service) async throws in
            let report = try await service.call("GET", "/v1/access", Self.bearer(token)).json()
            let operations = try #require(report["operations"]?.array)
            // A response to HEAD has no code; its lines are those of GET.
            for line in RouteTable.lines where line.method != .head {
                let reported = operations.first {
                    $0["method"]?.plain == line.method.rawValue && $0["path"]?.plain == line.pattern
                }
                var target = line.pattern.replacing("{assetId}", with: "\(Samples.id)")
                    .replacing("{origin}", with: "media").replacing("{path}", with: "public/a")
                    .replacing("{planId}", with: "none").replacing("{jobId}", with: "none")
                if target == "/v1/content" { target += "?url=http://a.example/x" }
                let response = try await service.call(line.method.rawValue, target, Self.bearer(token))
                guard line.need != .node else {
                    #expect(reported == nil && response.status == 401, "\(line.pattern): a token is no proof of a node")
                    continue
                }
                // A limited operation is refused for other assets than its own, and without a filter.
                guard reported?["limited"] != .bool(true) else { continue }
                #expect(
                    (reported == nil) == response.text.contains(#""code":"tokenScope""#),
                    "\(line.method) \(line.pattern): \(response.status) \(response.text)")
            }
        }
    }

    @Test(
        "Lists of a limited token are selected by the prefixes inside its limits",
        arguments: [
            (nil, ["/o/media/a/", "/o/b/"], ["/o/media/a/", "/o/b/"]), (["media", "b"], nil, ["/o/b/", "/o/media/"]),
            (["media"], ["/o/media/a/", "/o/b/"], ["/o/media/a/"]), (["media"], ["/o/"], ["/o/media/"]),
            (nil, ["/o/med"], []), ([], nil, []), (nil, nil, nil),
        ] as [(Set<String>?, [String]?, [String]?)])
    func assetPrefixes(origins: Set<String>?, prefixes: [String]?, expected: [String]?) {
        let reader = Reader(id: "r", scope: .read, origins: origins, prefixes: prefixes)

        #expect(reader.assetPrefixes == expected)
        for prefix in reader.assetPrefixes ?? [] {
            #expect(ReaderLimits.confines(prefix: prefix, origin: nil, reader), "\(prefix)")
        }
    }
}
