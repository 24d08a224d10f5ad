@testable import CacheAPI
import CacheCore
@testable import CacheEngine
import Foundation
import HTTPTypes
import ReaderAccess
import Testing

/// `openapi.yaml` matches the code.
@Suite struct OpenAPITests {
    private let document: SchemaDocument

    init() throws { document = try SchemaDocument.openAPI() }

    @Test("Every route is described in openapi.yaml, and every described route exists")
    func everyRouteIsDescribedAndEveryDescriptionIsARoute() {
        let routes = Set(RouteTable.lines.map { "\($0.method.rawValue) \($0.pattern)" })
        let described = Set(document.operations.map { "\($0.method) \($0.path)" })
        #expect(routes.subtracting(described) == [])
        #expect(described.subtracting(routes) == [])
        #expect(routes.count == RouteTable.lines.count)
    }

    @Test("Operations that need a token declare 401, and no other operation does")
    func callsThatNeedATokenSaySoAndOthersDoNot() {
        for line in RouteTable.lines {
            let operation = document.operations.first { $0.method == line.method.rawValue && $0.path == line.pattern }
            #expect((operation?.statuses.contains("401") ?? false) == (line.need != .nothing), "\(line.pattern)")
        }
    }

    @Test("Every error code has a documented status")
    func everyErrorHasItsStatusAndItsCode() throws {
        let codes = Self.codes
        let described = try #require(document.schema("ErrorCode")["enum"])
        #expect(Set(described.array.map(\.plain)) == Set(codes.map(\.name)))
        let statuses = Set(codes.map(\.status) + codes.map(\.contentStatus))
        #expect(Set(document.problemStatuses) == statuses)
        for operation in document.operations {
            for status in operation.statuses where Int(status).map({ $0 >= 400 }) ?? false {
                #expect(document.problemStatuses.contains(Int(status) ?? 0), "\(operation.path) \(status)")
            }
        }
    }

    @Test("Every example matches its schema")
    func everyExampleFitsItsSchema() {
        let (count, faults) = document.checkExamples()
        #expect(faults == [])
        #expect(count > 80)
    }

    /// Samples of the documents by their schemas.
    private static let documents: [(String, [JSON])] = [
        ("Asset", [Samples.asset, Samples.bareAsset].map { AssetDocument($0).json }),
        ("ProbeReport", [ProbeDocument(Samples.probe).json]),
        ("ListSelection", Samples.items.compactMap(\.list).map(\.json)),
        ("Listing", Samples.listings.map { ListingDocument($0, of: "demo").json }),
        ("Timings", [Samples.timings, TransferTimings()].map { TimingsDocument($0).json }),
        ("Job", [Samples.job, Samples.fleetJob].map { JobDocument($0).json }),
        ("JobPlan", [JobPlanDocument(Samples.jobPlan).json]),
        ("JobPlanEntry", JobPlanDocument(Samples.jobPlan).json["entries"]?.array ?? []),
        ("JobItem", Samples.items.map { JobItemDocument($0).json }),
        ("Media", Samples.media.map { MediaDocument($0).json }),
        (
            "PlayRequest",
            (Samples.items.compactMap(\.play)
                + Samples.choices.map { PlayRequest(time: 0..<1, renditions: $0) }).map {
                    PlayRequestDocument($0).json
                }
        ),
        ("RecordedError", [RecordedErrorDocument(RecordedError(code: "internal", message: "")).json]),
        ("Stats", [Self.stats, Samples.stats(capacityBytes: nil).document().json]),
        ("ReaderStats", Self.stats["readers"]?.array ?? []),
        (
            "SignedURL",
            [SignedURLDocument(url: "/o/media/a?exp=1&kid=k&sig=s", expiresAt: Samples.time, kid: "k").json]
        ),
        ("Access", [AccessDocument(nil).json, AccessDocument(Samples.reader).json]),
        ("AccessToken", [AccessDocument(Samples.reader).json["token"] ?? .null]),
        ("AccessOperation", AccessDocument(nil).json["operations"]?.array ?? []),
        ("OriginStats", Self.stats["origins"]?.array ?? []),
        ("OriginCircuit", Self.stats["origins"]?.array.compactMap { $0["circuit"] } ?? []),
        ("Circuit", Self.stats["failingServers"]?.array ?? []),
        ("HistoryStep", [HistoryStep(at: Samples.time, figures: Samples.figures).document.json]),
        (
            "TopAsset",
            [TopAsset(assetID: Samples.id, key: "k", servedBytes: 1, servedFromCacheBytes: 1, requests: 1)].map {
                TopAssetDocument($0).json
            }
        ),
        ("Fill", Samples.fills.map { FillDocument($0).json }),
        ("Workers", [Samples.load, TransferLoad()].map { WorkersDocument($0).json }),
        ("Explanation", Self.explanations),
        ("ConnectionCounts", [WorkersDocument(Samples.load).json["connections"] ?? .null]),
        ("Policy", Samples.policies.map(\.json)),
        ("QuotaOwner", Samples.quotaOwners.map { QuotaOwnerDocument($0).json }),
        ("QuotaStatus", [QuotaDocument(Samples.quotaStanding).json]),
        ("EvictionReport", [EvictionReportDocument(Samples.eviction, FleetPurgeDocument(Samples.fleetPurge)).json]),
        ("Eviction", [EvictionDocument(Samples.evictionRecord).json]),
        ("EvictionCandidate", Self.candidates),
        ("PurgePlan", [PurgePlanDocument(Samples.purgePlan, FleetPurgeDocument(Samples.fleetPurge)).json]),
        ("FleetPurge", [FleetPurgeDocument(Samples.fleetPurge).json]),
        ("Fleet", [Samples.fleet.json]),
        ("SimulationResults", [SimulationDocument(Samples.simulations).json]),
        ("SimulationResult", SimulationDocument(Samples.simulations).json["items"]?.array ?? []),
        ("PolicyPlan", [PolicyPlanDocument(Samples.policyPlan).json]),
        ("PolicyPlanItem", PolicyPlanDocument(Samples.policyPlan).json["items"]?.array ?? []),
        ("OriginTest", Samples.originTests.map { OriginTestDocument($0).json }),
        ("PolicyCurve", [PolicyCurveDocument(Samples.curve).json]), ("ByteRun", [RangeDocument(0..<1).json]),
        ("Scrub", [Samples.scrub, ScrubReport(id: "s", startedAt: Samples.time)].map { ScrubDocument($0).json }),
        ("LoadFigures", [Self.stats["load"] ?? .null]),
        ("LoadCounts", [Self.stats["load"]?["reads"] ?? .null]),
        ("IntegrityFigures", [Self.stats["integrity"] ?? .null]),
        ("Integrity", [Samples.checksums].map { IntegrityDocument($0).json }),
        ("MapBucket", [AssetMapDocument.Bucket(MapBucket(range: 0..<10, cached: 0.5, heat: 2)).json]),
        ("Origin", Self.observedOrigins),
        ("OriginFolders", Self.observedOrigins.compactMap { $0["resolve"]?["list"] }),
        ("Observation", Self.observedOrigins[0]["observations"]?.array ?? []),
        ("Configuration", Self.configurations),
        ("ConfigurationError", Self.configurations.compactMap { $0["error"] }.filter { $0 != .null }),
        ("ConfigurationSetting", Self.configurations.flatMap { $0["settings"]?.array ?? [] }),
        ("ReloadResult", [ReloadDocument(Samples.reload).json]),
        ("Encryption", [EncryptionDocument(Samples.encryption).json]),
        ("WebhookList", [WebhookListDocument(Samples.webhooks).json]),
        ("Webhook", Samples.webhooks.map { WebhookDocument($0).json }),
        ("EndedRequest", Samples.endedRequests),
        ("CircuitEvent", Samples.circuitEvents), ("DiskEvent", [Samples.diskEvent]),
        ("CredentialsEvent", Samples.credentialsEvents),
        ("ErasureReceipt", [ErasureReceiptDocument(Samples.receipt).json]),
        ("Problem", Self.problems),
    ]

    @Test("Every document matches its schema and covers all properties")
    func everyDocumentFitsItsSchemaAndUsesAllOfIt() {
        for (name, samples) in Self.documents {
            for sample in samples { #expect(document.faults(of: sample, in: name) == [], "\(name)") }
            let shown = samples.reduce(into: Set<String>()) { $0.formUnion(SchemaDocument.keys(of: $1)) }
            #expect(document.properties(of: name).subtracting(shown) == [], "\(name)")
        }
    }

    @Test("Every accepted field is described in openapi.yaml")
    func everyFieldThatIsAcceptedIsDescribed() {
        let bodies: [(String, [String])] = [
            ("AssetPatch", AssetPatch.keys), ("ProbeRequest", ProbeRequest.keys), ("ProbeItem", ProbeRequest.itemKeys),
            ("ListingRequest", ListingOrder.keys), ("ListSelectionRequest", ListSelectionRequest.keys),
            ("CreateJobRequest", CreateJobRequest.keys), ("JobPatch", JobPatch.keys),
            ("JobItemRequest", CreateJobRequest.itemKeys),
            ("PlayRequest", PlayRequest.keys),
            ("EvictRequest", EvictRequest.keys), ("PurgeRequest", PurgeRequest.members),
            ("ScrubRequest", ScrubRequest.keys), ("SignatureRequest", SignatureRequest.keys),
            ("SimulationRequest", SimulationRequest.keys), ("PolicyPlanRequest", PolicyPlanRequest.keys),
            ("OriginTestRequest", OriginTestRequest.keys),
        ]
        for (name, keys) in bodies { #expect(document.properties(of: name) == Set(keys), "\(name)") }
    }

    @Test("Every setting is described in openapi.yaml, with its type and its limits")
    func everySettingIsDescribed() {
        check(
            OriginSettings.settings, in: "OriginChange",
            besides: ["name", "from", "observations", "addresses", "headers"])
        check(
            OriginSettings.settings, in: "OriginPatch",
            besides: ["name", "from", "observations", "addresses", "headers"],
            areAllNullable: true)
        check(PolicySettings.settings, in: "PolicyChange", besides: ["tagQuotas"])
        check(Quota.settings, in: "Quota", besides: [])
    }

    /// Documents of origins with an observation of each scope.
    private static let observedOrigins = Samples.origins.map { origin in
        let scopes: [Observation.Scope] = [.origin, .asset(Samples.id), .address("https://media.example.com")]
        let observations = scopes.map { scope in
            Observation(
                kind: .rangesRefused, scope: scope, since: .zero, expiresAt: .seconds(600), evidence: "Status 403.")
        }
        let report = OriginReport(isConfigured: true, observations: observations, uptimeZero: Samples.time)
        return OriginDocument(origin, report).json
    }

    /// Compares settings with the properties of a schema, in both directions.
    private func check<Root>(
        _ settings: [Setting<Root>], in name: String, besides others: Set<String>, areAllNullable: Bool = false
    ) {
        let members = settings.compactMap(\.member)
        let described = document.leaves(of: name) { path in members.contains { $0.path.hasPrefix(path + ".") } }
        #expect(Set(described.keys) == Set(members.map(\.path)).union(others))
        for member in members {
            for keyword in SchemaDocument.keys(of: member.schema) {
                var expected = member.schema[keyword] ?? .null
                if member.isNullable || areAllNullable && member.path != "baseURL" {
                    if keyword == "type" { expected = [expected, "null"] }
                    if keyword == "enum" { expected = .array(expected.array + [.null]) }
                }
                #expect(described[member.path]?[keyword] == expected, "\(name).\(member.path): \(keyword)")
            }
        }
    }

    @Test("Every request example is accepted")
    func theExamplesOfRequestsAreAccepted() throws {
        func example(_ name: String) throws -> JSON { try #require(document.schema(name)["examples"]?.array.first) }
        _ = try AssetPatch(example("AssetPatch"))
        _ = try ProbeRequest(example("ProbeRequest"))
        _ = try CreateJobRequest(example("CreateJobRequest"), fingerprint: "")
        _ = try JobPatch(example("JobPatch"))
        _ = try PolicySettings().merging(example("PolicyChange"))
        _ = try EvictRequest(example("EvictRequest"))
        _ = try PurgeRequest(example("PurgeRequest"))
        _ = try SimulationRequest(example("SimulationRequest"), under: PolicySettings())
        let demo = Origin(name: "demo", settings: OriginSettings(baseURL: "https://media.example.com"))
        _ = try PolicyPlanRequest(example("PolicyPlanRequest"), over: PolicySettings(), [demo])
        _ = try OriginTestRequest(example("OriginTestRequest"), name: "demo", present: nil)
        _ = try ScrubRequest(example("ScrubRequest"))
        for order in try #require(document.schema("SignatureRequest")["examples"]).array {
            _ = try SignatureRequest(order, at: Samples.time)
        }
        for change in try #require(document.schema("OriginChange")["examples"]).array {
            _ = try OriginSettings(change, name: "demo", present: nil)
        }
    }

    private static let explanations = [Samples.explanation, Samples.bareExplanation, Samples.playlistExplanation].map {
        ExplanationDocument($0).json
    }
    private static let candidates = Samples.candidates.map {
        EvictionCandidateDocument($0, at: Samples.time + .seconds(5)).json
    }
    private static let configurations = Samples.configurations.map { ConfigurationDocument($0).json }
    private static let stats = Samples.stats().document(readers: readers).json

    private static var readers: [ReaderUsage] {
        let figures = ReaderFigures()
        figures.add(to: "player-1", requests: 2, bytes: 10, bytesFromCache: 5)
        return figures.snapshot()
    }

    private static let codes: [CacheError.Code] =
        CacheError.Code.table.map(\.code) + [
            .methodNotAllowed(allow: "GET"), .rangeNotSatisfiable(length: 1), .invalidField("f"),
            .upstreamRefused(status: 410), .upstreamRefused(status: 451),
        ]

    private static var problems: [JSON] {
        codes.map { Problem(CacheError($0, "Why."), instance: "/v1", requestID: "r").document.json } + [
            Problem(
                CacheError(.upstreamTimedOut(.connect), "Late."), instance: "/v1/probe", requestID: "r",
                probe: ProbeFailure(error: CacheError(.upstreamTimedOut(.connect), "Late."), timings: Samples.timings)
            ).document.json
        ]
    }
}
