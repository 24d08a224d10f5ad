import CacheAPI
import CacheCore
@testable import CacheEngine
import CacheTestKit
import Testing

/// The policy and its evictions over the API.
@Suite(.timeLimit(.minutes(20))) struct PolicyChangeTests {
    private func document() throws -> SchemaDocument { try SchemaDocument.openAPI() }

    @Test("The policy can be changed only at its current revision")
    func thePolicyIsChangedUnderItsRevision() async throws {
        try await TestService.run { (service) async throws in
            let before = try await service.call("GET", "/v1/policy")
            let tag = try #require(before.headers["ETag"])
            let patch = try await service.send(
                "PATCH", "/v1/policy", ["If-Match": tag], ["capacityBytes": 1_073_741_824])
            #expect(patch.status == 200, "\(patch.text)")
            #expect(try patch.json()["capacityBytes"] == 1_073_741_824)
            #expect(patch.headers["ETag"] != tag)
            #expect(try await service.send("PATCH", "/v1/policy", ["If-Match": tag], .object([])).status == 412)
            let free = try await service.send("PATCH", "/v1/policy", ["capacityBytes": .null])
            #expect(try free.json()["capacityBytes"] == .null)
            let put = try await service.send("PUT", "/v1/policy", ["highWatermark": .number(0.9)])
            #expect(try put.json()["highWatermark"] == .number(0.9) && put.json()["capacityBytes"] == 21_474_836_480)
            #expect(try document().faults(of: try put.json(), in: "Policy") == [])
        }
    }

    @Test("A tag quota evicts assets of the tag")
    func tagsGetQuotasAndTheirAssetsGoForThem() async throws {
        try await TestService.run { (service) async throws in
            for name in ["a", "b", "c"] {
                service.upstream.serve("/\(name).mp4", LoopbackAsset(size: 10_000))
                _ = try await service.call("GET", "/o/media/\(name).mp4")
                guard name != "c" else { continue }
                let list = try await service.call("GET", "/v1/assets?prefix=/o/media/\(name)").json()
                let id = try #require(list["items"]?.array.first?["assetId"]?.plain)
                #expect(try await service.send("PATCH", "/v1/assets/\(id)", ["tags": ["promo"]]).status == 200)
            }
            let quotas: JSON = ["promo": ["maxBytes": 10_000], "other": ["minBytes": 1]]
            let patch = try await service.send("PATCH", "/v1/policy", ["tagQuotas": quotas])
            let isKept = try await eventually {
                try await service.call("GET", "/v1/evictions?reason=quota").json()["items"]?.array.count == 1
            }
            let gone = try await service.call("GET", "/v1/evictions?reason=quota").json()["items"]?.array.first
            let rest = try await service.send("PATCH", "/v1/policy", ["tagQuotas": ["promo": .null]])

            #expect(patch.status == 200 && isKept)
            #expect(try patch.json()["tagQuotas"]?["promo"] == ["minBytes": 0, "maxBytes": 10_000])
            #expect(gone?["bytes"] == 10_000 && gone?["key"] != "/o/media/c.mp4")
            #expect(try rest.json()["tagQuotas"] == ["other": ["minBytes": 1, "maxBytes": .null]])
            let wrong = try await service.send("PATCH", "/v1/policy", ["tagQuotas": ["promo": ["maxBytes": -1]]])
            #expect(wrong.status == 422 && wrong.text.contains("tagQuotas.promo.maxBytes"))
        }
    }

    @Test("Eviction candidates and the eviction log state the reason")
    func whatGoesNextAndWhatWentIsToldWithItsReason() async throws {
        try await TestService.run { (service) async throws in
            service.upstream.serve("/a.mp4", LoopbackAsset(size: 10_000))
            service.upstream.serve("/b.mp4", LoopbackAsset(size: 20_000))
            for name in ["a", "b", "b"] { _ = try await service.call("GET", "/o/media/\(name).mp4") }
            // A running fill pins its bytes.
            let isIdle = try await eventually {
                service.cache.context.openAssets.all.allSatisfy { $0.look { $0.ledger.fillCount } == 0 }
            }
            #expect(isIdle)
            var lists: [[JSON]] = []
            for algorithm in EvictionAlgorithm.allCases {
                let change: JSON = ["algorithm": .string(algorithm.rawValue), "graceSeconds": 0]
                #expect(try await service.send("PATCH", "/v1/policy", change).status == 200)
                lists.append(
                    try await service.call("GET", "/v1/evictions/next?bytes=1000").json()["items"]?.array ?? [])
            }
            for list in lists {
                #expect(list.map { $0["key"] } == ["/o/media/a.mp4"])
                #expect(list.first?["bytes"] == 10_000 && list.first?["reason"] == "capacity")
                #expect(try document().faults(of: list.first ?? .null, in: "EvictionCandidate") == [])
            }
            #expect(try await service.send("POST", "/v1/evictions", ["freeBytes": 1]).status == 200)
            #expect(try await service.send("POST", "/v1/purges", ["prefix": "/o/media/b"]).status == 200)
            let first = try await service.call("GET", "/v1/evictions?limit=1").json()
            let cursor = try #require(first["nextCursor"]?.plain)
            let second = try await service.call("GET", "/v1/evictions?limit=1&cursor=\(cursor)").json()
            let items = [first, second].flatMap { $0["items"]?.array ?? [] }
            #expect(items.map { $0["reason"] } == ["purge", "request"])
            #expect(items.map { $0["bytes"] } == [20_000, 10_000])
            for item in items { #expect(try document().faults(of: item, in: "Eviction") == []) }
            let purges = try await service.call("GET", "/v1/evictions?reason=purge&origin=media").json()
            #expect(purges["items"]?.array == [items[0]] && second["nextCursor"] == .null)
            for wrong in ["/v1/evictions?reason=x", "/v1/evictions?cursor=x", "/v1/evictions/next?bytes=0"] {
                #expect(try await service.call("GET", wrong).status == 422)
            }
        }
    }
}
