@testable import CacheAPI
import CacheCore
import CacheTestKit
import HTTPTypes
import ReaderAccess
import Testing

/// The scopes of tokens over all routes.
@Suite(.timeLimit(.minutes(20))) struct ScopeTests {
    /// Routes that need the scope `write`.
    private static let writing: Set<String> = [
        "PATCH /v1/assets/{assetId}", "DELETE /v1/assets/{assetId}", "DELETE /v1/assets/{assetId}/extents",
        "POST /v1/assets/{assetId}/cancel", "DELETE /v1/fills/{fillId}", "POST /v1/jobs", "DELETE /v1/jobs/{jobId}",
        "PATCH /v1/jobs/{jobId}", "POST /v1/jobs/{jobId}/retry", "POST /v1/purges", "POST /v1/purges/{planId}/commit",
        "DELETE /v1/purges/{planId}", "PUT /v1/schedules/{name}", "DELETE /v1/schedules/{name}",
    ]
    /// Routes that change something and need the scope `read` only.
    private static let harmless: Set<String> = [
        "POST /v1/probe", "POST /v1/list", "POST /v1/policy/plans", "POST /v1/policy/simulations",
        "POST /v1/events/tickets",
    ]
    /// Reading routes that need the scope `admin`.
    private static let confidential: Set<String> = [
        "GET /v1/configuration", "GET /v1/encryption", "GET /v1/webhooks", "GET /v1/tokens", "GET /v1/tokens/{tokenId}",
    ]

    private static func name(_ line: RouteLine) -> String { "\(line.method.rawValue) \(line.pattern)" }

    /// A request target for the pattern.
    private static func target(_ line: RouteLine) -> String {
        line.pattern.split(separator: "/").map { part in
            switch part {
            case "{assetId}": Samples.id.description
            case "{origin}": "locked"
            default: part.hasPrefix("{") ? "none" : String(part)
            }
        }.reduce("") { $0 + "/" + $1 }
    }

    @Test("Every route has the expected scope")
    func everyRouteHasItsScope() {
        for line in RouteTable.lines {
            let name = Self.name(line)
            let expected: AccessRules.Need
            switch line.pattern {
            case let pattern where pattern.hasPrefix("/health/") || pattern.hasPrefix("/ui"): expected = .nothing
            case "/": expected = .nothing
            case "/o/{origin}/{path}", "/v1/content", "/v1/assets/{assetId}/content": expected = .content
            case "/v1/events": expected = .ticketOrRead
            case "/v1/requests": expected = .requests
            case "/v1/assets/{assetId}/prefetch", "/v1/fleet/digest": expected = .node
            default:
                let isReading = line.method == .get || Self.harmless.contains(name)
                if Self.writing.contains(name) {
                    expected = .scope(.write)
                } else if name == "POST /v1/signatures" {
                    expected = .scope(.sign)
                } else {
                    expected = .scope(isReading && !Self.confidential.contains(name) ? .read : .admin)
                }
            }
            #expect(line.need == expected, "\(name)")
        }
        #expect(Self.writing.subtracting(RouteTable.lines.map(Self.name)) == [])
    }

    @Test("Each route refuses smaller scopes and names the missing one")
    func eachRouteRefusesSmallerScopes() async throws {
        let access = AccessRules(tokens: AccessScope.allCases.map { ("token-\($0.rawValue)", $0) })
        var locked = OriginSettings(baseURL: "http://127.0.0.1:1")
        locked.access = .token
        locked.allowPrivateAddresses = true
        locked.retries = 0
        try await TestService.run(access: access, origins: [Origin(name: "locked", settings: locked)]) {
            (service) async throws in
            for line in RouteTable.lines {
                // The tokens have no limits.
                let reader = Reader(id: "any", scope: .read)
                guard let needed = line.need.scope(for: reader) else { continue }
                let (name, target) = (Self.name(line), Self.target(line))
                let anonymous = try await service.call(line.method.rawValue, target)
                #expect(anonymous.status == 401, "\(name)")
                for scope in AccessScope.allCases {
                    let response = try await service.call(
                        line.method.rawValue, target, ["Authorization": "Bearer token-\(scope.rawValue)"])
                    if scope.includes(needed) {
                        #expect(![401, 403].contains(response.status), "\(name) with \(scope): \(response.text)")
                    } else {
                        #expect(response.status == 403, "\(name) with \(scope)")
                        guard line.method != .head else { continue }
                        let problem = try response.json()
                        #expect(problem["code"] == "tokenScope", "\(name) with \(scope)")
                        let text = problem["detail"]?.plain ?? ""
                        #expect(text.contains("\(needed.rawValue) is required"), "\(name): \(text)")
                        #expect(text.contains("has the scope \(scope.rawValue)"), "\(name): \(text)")
                        #expect(
                            response.headers["WWW-Authenticate"]
                                == "Bearer error=\"insufficient_scope\", scope=\"\(needed.rawValue)\"", "\(name)")
                    }
                }
            }
        }
    }
}
