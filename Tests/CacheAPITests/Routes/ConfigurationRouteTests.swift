import CacheCore
import CacheEngine
import CacheTestKit
import ReaderAccess
import Synchronization
import Testing

@testable import CacheAPI

/// `/v1/configuration`, and requests after a change of the live settings.
@Suite(.timeLimit(.minutes(20))) struct ConfigurationRouteTests {
    /// A configuration whose reloads have a scripted result.
    private final class ScriptedConfiguration: ConfigurationSource {
        static let time = Timestamp(milliseconds: 1_764_000_000_500)
        let result = Mutex<Result<ReloadResult, CacheError>>(
            .success(ReloadResult(loadedAt: time, changed: ["upstream.retries"], needsRestart: ["listen.address"])))

        var report: ConfigurationReport {
            let isFaulty = if case .failure = result.withLock({ $0 }) { true } else { false }
            return ConfigurationReport(
                file: "/etc/larder.yaml", loadedAt: Self.time,
                fault: isFaulty ? .init(key: "upstream.retries", message: "Wrong.", at: Self.time) : nil,
                needsRestart: ["listen.address"],
                settings: [
                    .init(key: "access.token", value: .scalar("•••"), source: "environment"),
                    .init(key: "access.readToken", value: nil, source: "default"),
                    .init(key: "cors.allowedOrigins", value: .list(["https://a.example"]), source: "file"),
                ])
        }

        var figures: ReloadFigures? { ReloadFigures(isSuccessful: report.fault == nil, loadedAt: Self.time) }

        func reload() async throws(CacheError) -> ReloadResult {
            switch result.withLock({ $0 }) {
            case .success(let result): return result
            case .failure(let error): throw error
            }
        }
    }

    private func live(_ access: AccessRules) -> LiveAPISettings {
        LiveAPISettings(.init(access: access, cors: CORSRules(origins: .none)))
    }

    @Test("The configuration and the result of a reload match the description of the API")
    func documentsMatchTheDescription() async throws {
        let document = try SchemaDocument.openAPI()
        let source = ScriptedConfiguration()
        try await TestService.run(source: source) { (service) async throws in
            let report = try await service.call("GET", "/v1/configuration")
            #expect(report.status == 200)
            let shown = try report.json()
            #expect(document.faults(of: shown, in: "Configuration") == [])
            #expect(try report.json()["loadedAt"] == "2025-11-24T16:00:00.500Z")
            #expect(try report.json()["error"] == .null)
            #expect(try report.json()["settings"]?.array[1]["value"] == .null)
            #expect(try report.json()["settings"]?.array[2]["value"] == ["https://a.example"])

            let result = try await service.call("POST", "/v1/configuration/reload")
            #expect(result.status == 200)
            let reloaded = try result.json()
            #expect(document.faults(of: reloaded, in: "ReloadResult") == [])
            #expect(try result.json()["changed"] == ["upstream.retries"])

            source.result.withLock {
                $0 = .failure(CacheError(.invalidField("upstream.retries"), "upstream.retries is wrong."))
            }
            let problem = try await service.call("POST", "/v1/configuration/reload")
            #expect(problem.status == 422)
            #expect(try problem.json()["field"] == "upstream.retries")
            let faulty = try await service.call("GET", "/v1/configuration").json()
            #expect(document.faults(of: faulty, in: "Configuration") == [])
            #expect(faulty["error"]?["key"] == "upstream.retries")
        }
    }

    @Test("The metrics state the result and the time of the last reading")
    func theMetricsStateTheLastReading() async throws {
        let source = ScriptedConfiguration()
        try await TestService.run(source: source) { (service) async throws in
            let lines = try await service.call("GET", "/metrics").text.split(separator: "\n")
            #expect(lines.contains("larder_config_reload_success 1"))
            let time = "larder_config_last_reload_success_timestamp_seconds "
            let value = lines.first { $0.hasPrefix(time) }.flatMap { Double($0.dropFirst(time.count)) }
            #expect(value == 1_764_000_000.5)

            source.result.withLock { $0 = .failure(CacheError(.invalidField("a"), "Wrong.")) }
            #expect(try await service.call("GET", "/metrics").text.contains("\nlarder_config_reload_success 0\n"))
        }
    }

    @Test("Both calls require the scope admin")
    func bothCallsRequireTheScopeAdmin() async throws {
        let access = AccessRules(tokens: [("reader", .read), ("writer", .write), ("boss", .admin)])
        try await TestService.run(access: access, source: ScriptedConfiguration()) { (service) async throws in
            for (method, path) in [("GET", "/v1/configuration"), ("POST", "/v1/configuration/reload")] {
                #expect(try await service.call(method, path).status == 401)
                for (token, status) in [("reader", 403), ("writer", 403), ("boss", 200)] {
                    let field: HeaderList = ["Authorization": "Bearer \(token)"]
                    #expect(try await service.call(method, path, field).status == status, "\(method) \(token)")
                }
            }
        }
    }

    @Test("A service without a configuration file refuses a reload")
    func aFixedConfigurationRefusesAReload() async throws {
        try await TestService.run { (service) async throws in
            #expect(try await service.call("POST", "/v1/configuration/reload").status == 409)
            #expect(try await service.call("GET", "/v1/configuration").json()["loadedAt"] == .null)
            #expect(!(try await service.call("GET", "/metrics").text.contains("larder_config_reload")))
        }
    }

    @Test("A revoked token is refused by the next request, also if its response was prepared")
    func aRevokedTokenIsRefusedByTheNextRequest() async throws {
        let live = live(AccessRules(tokens: [("old", .read)]))
        try await TestService.run(change: { $0.access = .token }, live: live) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 20_000))
            let old: HeaderList = ["Authorization": "Bearer old", "Range": "bytes=0-9"]
            let connection = try await RawConnection(port: service.port)
            for _ in 0..<4 {
                try await connection.request("GET", "/o/media/a.mp4", old)
                #expect(try await connection.response()?.status == 206)
            }
            let access = AccessRules(tokens: [("new", .read)])
            live.replace { .init(access: access, cors: $0.cors, limits: $0.limits) }
            try await connection.request("GET", "/o/media/a.mp4", old)
            #expect(try await connection.response()?.status == 401)
            let new: HeaderList = ["Authorization": "Bearer new", "Range": "bytes=0-9"]
            #expect(try await service.call("GET", "/o/media/a.mp4", new).status == 206)
        }
    }

    @Test("Changed CORS rules apply to the next response, also if it was prepared")
    func changedCORSRulesApplyToTheNextResponse() async throws {
        let live = live(AccessRules())
        try await TestService.run(live: live) { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 20_000))
            let fields: HeaderList = ["Origin": "https://a.example"]
            let connection = try await RawConnection(port: service.port)
            for _ in 0..<4 {
                try await connection.request("GET", "/o/media/a.mp4", fields)
                #expect(try await connection.response()?.headers["Access-Control-Allow-Origin"] == nil)
            }
            live.replace { .init(access: $0.access, cors: CORSRules(origins: .any), limits: $0.limits) }
            try await connection.request("GET", "/o/media/a.mp4", fields)
            #expect(try await connection.response()?.headers["Access-Control-Allow-Origin"] == "*")
        }
    }

    @Test("Changed limits apply to the next request")
    func changedLimitsApplyToTheNextRequest() async throws {
        let live = live(AccessRules())
        try await TestService.run(live: live) { (service) async throws in
            let path = "/v1/assets?prefix=" + String(repeating: "a", count: 500)
            #expect(try await service.call("GET", path).status == 200)
            let body = #"{"tags": ["\#(String(repeating: "a", count: 2000))"]}"#
            func reads() async throws -> JSON? {
                try await service.call("GET", "/v1/stats").json()["load"]?["reads"]?["limit"]
            }
            #expect(try await reads() == 8192)

            var limits = APISettings.Limits()
            (limits.urlBytes, limits.bodyBytes, limits.maxConcurrentReads) = (256, 1024, 3)
            let changed = limits
            live.replace { .init(access: $0.access, cors: $0.cors, limits: changed) }
            #expect(try await service.call("GET", path).status == 414)
            let patch = try await service.call(
                "PATCH", "/v1/policy", ["Content-Type": "application/json"], body: body)
            #expect(patch.status == 413)
            #expect(try await reads() == 3)
        }
    }

    @Test("An origin shows whether the configuration names it, and its document can be sent back")
    func anOriginShowsItsProvenance() async throws {
        try await TestService.run { (service) async throws in
            let media = try await service.call("GET", "/v1/origins/media").json()
            #expect(media["from"] == "configuration")
            let put = try await service.send("PUT", "/v1/origins/own", ["baseURL": "http://a.example"])
            #expect(try put.json()["from"] == "api")
            let again = try await service.send("PUT", "/v1/origins/media", media)
            #expect(try again.status == 200 && again.json()["from"] == "configuration")
            let patch = try await service.send("PATCH", "/v1/origins/own", ["retries": 1])
            #expect(try patch.json()["from"] == "api")
            let other: JSON = ["baseURL": "http://a.example", "from": .null]
            #expect(try await service.send("PUT", "/v1/origins/own", other).status == 422)
            let all = try await service.call("GET", "/v1/origins").json()["items"]?.array ?? []
            #expect(all.map { $0["from"] } == ["configuration", "api"])
        }
    }
}
