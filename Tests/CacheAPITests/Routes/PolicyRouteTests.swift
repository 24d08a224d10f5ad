import CacheAPI
import CacheCore
@testable import CacheEngine
import CacheTestKit
import Foundation
import Testing

/// Purge plans and policy simulations.
@Suite(.timeLimit(.minutes(20))) struct PolicyRouteTests {
    private func document() throws -> SchemaDocument { try SchemaDocument.openAPI() }

    @Test("A purge plan is committed exactly as planned")
    func aPurgeIsPlannedAndExactlyThatIsCarriedOut() async throws {
        try await TestService.run { (service) async throws in
            for (name, type) in [("a", "video/mp4"), ("b", "video/webm; codecs=vp9"), ("c", "audio/mpeg")] {
                service.upstream.serve("/\(name)", LoopbackAsset(size: 1000, contentType: type))
                _ = try await service.call("GET", "/o/media/\(name)")
            }
            let plan: JSON = ["contentType": "video/*", "olderThanSeconds": 0, "dryRun": .bool(true)]
            let dry = try await service.send("POST", "/v1/purges", plan).json()
            let id = try #require(dry["planId"]?.plain)
            #expect(try document().faults(of: dry, in: "EvictionReport") == [])
            #expect(dry["assets"] == 2 && dry["freedBytes"] == 2000 && dry["pinnedAssets"] == 0)
            service.wallClock.advance(by: .seconds(1))
            let again = try #require(try await service.call("GET", "/o/media/b").headers["Larder-Asset-Id"])
            #expect(try await service.call("DELETE", "/v1/assets/\(again)").status == 204)
            _ = try await service.call("GET", "/o/media/b")
            let before = try await service.call("GET", "/v1/purges/\(id)").json()
            let done = try await service.call("POST", "/v1/purges/\(id)/commit").json()
            #expect(before["state"] == "planned" && done["state"] == "done")
            #expect(try document().faults(of: done, in: "PurgePlan") == [])
            #expect(done["assetsDone"] == 1 && done["assetsChanged"] == 1, "\(done.text)")
            #expect(done["freedBytes"] == 1000)
            #expect(try await service.call("POST", "/v1/purges/\(id)/commit").status == 409)
            let left = try await service.call("GET", "/v1/assets").json()["items"]?.array.map { $0["key"]?.plain }
            #expect(left.map(Set.init) == ["/o/media/b", "/o/media/c"])
            let other = try await service.send("POST", "/v1/purges", plan).json()["planId"]?.plain ?? ""
            #expect(try await service.call("DELETE", "/v1/purges/\(other)").status == 204)
            #expect(try await service.call("POST", "/v1/purges/\(other)/commit").status == 404)
            for wrong in [["assetIds": ["x"]], ["contentType": "video"], ["olderThanSeconds": -1]] as [JSON] {
                #expect(try await service.send("POST", "/v1/purges", wrong).status == 422)
            }
        }
    }

    @Test("Simulations and the curve replay the recorded reads")
    func otherPoliciesAreTriedOnTheReadsOfTheService() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 300_000))
            for _ in 0..<4 { #expect(try await service.call("GET", "/o/media/a.mp4").status == 200) }
            let order: JSON = ["algorithms": ["lru", "s3fifo"], "capacities": [1_048_576, 33_554_432]]
            // A read is recorded after its response was sent.
            let areRecorded = try await eventually {
                try await service.send("POST", "/v1/policy/simulations", order).json()["reads"] == 4
            }
            #expect(areRecorded)
            let simulations = try await service.send("POST", "/v1/policy/simulations", order).json()
            let curve = try await service.call("GET", "/v1/policy/curve?windowSeconds=60").json()

            #expect(try document().faults(of: simulations, in: "SimulationResults") == [])
            #expect(
                simulations["reads"] == 4 && simulations["sampleShare"] == 1 && simulations["items"]?.array.count == 4)
            let ratios = simulations["items"]?.array.map { $0["byteHitRatio"] }
            #expect(ratios == Array(repeating: .number(0.75), count: 4), "\(simulations.text)")
            #expect(try document().faults(of: curve, in: "PolicyCurve") == [])
            // Without a capacity and with fewer used bytes.
            #expect(curve["capacityBytes"] == 16_777_216)
            #expect(curve["points"]?.array.last?["byteMissRatio"] == .number(0.25), "\(curve.text)")
            let wrong: [JSON] = [
                ["algorithms": ["best"]], ["capacities": [0]], ["windowSeconds": 0], ["algorithms": []], ["x": 1],
                ["capacities": .array((0..<65).map { _ in 1_048_576 })],
            ]
            for order in wrong {
                #expect(try await service.send("POST", "/v1/policy/simulations", order).status == 422)
            }
        }
    }
}
