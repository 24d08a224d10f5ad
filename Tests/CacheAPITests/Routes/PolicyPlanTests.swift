import CacheAPI
import CacheCore
@testable import CacheEngine
import CacheTestKit
import Testing

/// Plans of changes of the policy, and tests of origins.
@Suite(.timeLimit(.minutes(20))) struct PolicyPlanTests {
    /// Reads assets of 10,000 bytes until none is being fetched.
    private static func fill(_ service: TestService, _ names: [String]) async throws {
        for name in names {
            service.upstream.serve("/\(name).mp4", LoopbackAsset(size: 10_000))
            _ = try await service.call("GET", "/o/media/\(name).mp4")
        }
        let isIdle = try await eventually {
            service.cache.context.openAssets.all.allSatisfy { $0.look { $0.ledger.fillCount } == 0 }
        }
        try #require(isIdle)
    }

    private static func plan(_ service: TestService, _ body: JSON) async throws -> JSON {
        let answer = try await service.send("POST", "/v1/policy/plans", body)
        #expect(answer.status == 200, "\(answer.text)")
        return try answer.json()
    }

    @Test("A plan names the assets that the applied policy evicts", arguments: EvictionAlgorithm.allCases)
    func theAppliedPolicyEvictsWhatThePlanNames(_ algorithm: EvictionAlgorithm) async throws {
        try await TestService.run { (service) async throws in
            try await Self.fill(service, ["a", "b", "c", "d"])
            let policy: JSON = [
                "capacityBytes": 16_777_216, "highWatermark": .number(0.002), "lowWatermark": .number(0.001),
                "graceSeconds": 0,
                "algorithm": .string(algorithm.rawValue),
            ]
            let plan = try await Self.plan(service, ["policy": policy])
            let before = try await service.call("GET", "/v1/evictions").json()["items"]?.array
            #expect(before == [], "a plan evicts nothing")
            let planned = Set((plan["items"]?.array ?? []).compactMap { $0["assetId"]?.plain })
            #expect(!planned.isEmpty && plan["items"]?.array.allSatisfy { $0["reason"] == "capacity" } ?? false)
            #expect(try await service.send("PATCH", "/v1/policy", policy).status == 200)
            let isDone = try await eventually {
                let gone = try await service.call("GET", "/v1/evictions").json()["items"]?.array ?? []
                return Set(gone.compactMap { $0["assetId"]?.plain }) == planned
            }
            #expect(isDone)
        }
    }

    @Test("A plan counts owners that have no quota yet")
    func aPlanCountsOwnersWithoutQuota() async throws {
        try await TestService.run { (service) async throws in
            try await Self.fill(service, ["a", "b"])
            let plan = try await Self.plan(service, ["originQuotas": ["media": ["maxBytes": 10_000]]])
            #expect(plan["freedBytes"] == 10_000 && plan["assets"] == 1, "\(plan.text)")
            #expect(plan["items"]?.array.map { $0["reason"] } == ["quota"])
            let both = try await Self.plan(service, ["originQuotas": ["media": ["maxBytes": 20_000]]])
            #expect(both["freedBytes"] == 0 && both["items"] == [], "\(both.text)")
            let none = try await service.send("POST", "/v1/policy/plans", ["originQuotas": ["nobody": .null]])
            #expect(none.status == 422 && none.text.contains("originQuotas.nobody"), "\(none.text)")
            #expect(try await service.call("GET", "/v1/stats").json()["store"]?["quotas"] == [])
        }
    }

    @Test("A plan names the assets that exceed a time limit")
    func aPlanNamesExpiredAssets() async throws {
        try await TestService.run { (service) async throws in
            try await Self.fill(service, ["a"])
            let young = try await Self.plan(service, ["policy": ["maxAgeSeconds": 60]])
            #expect(young["items"] == [])
            service.wallClock.advance(by: .seconds(61))
            let old = try await Self.plan(service, ["policy": ["maxAgeSeconds": 60]])
            #expect(old["items"]?.array.map { $0["reason"] } == ["age"] && old["freedBytes"] == 10_000, "\(old.text)")
            let idle = try await Self.plan(service, ["policy": ["maxIdleSeconds": 60]])
            #expect(idle["items"]?.array.map { $0["reason"] } == ["idle"], "\(idle.text)")
        }
    }

    @Test("A test of an origin is sent although its circuit is open, and leaves it open")
    func aTestDoesNotAskTheCircuit() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 10_000))
            let target = try service.cache.resolver.mounted("media", "a.mp4")
            for _ in 0..<100 {
                guard let permit = try? service.cache.context.upstreams.health.admit(target) else { break }
                service.cache.context.upstreams.health.settle(
                    permit, .broken(CacheError(.upstreamUnreachable(), "No answer.")),
                    by: target.settings.circuitBreaker)
            }
            #expect(throws: CacheError.self) { try service.cache.context.upstreams.health.admit(target) }
            let test = try await service.send("POST", "/v1/origins/media/test", ["path": "a.mp4"]).json()
            #expect(test["outcome"] == "succeeded" && test["contentLength"] == 10_000, "\(test.text)")
            #expect(throws: CacheError.self) { try service.cache.context.upstreams.health.admit(target) }
        }
    }
}
