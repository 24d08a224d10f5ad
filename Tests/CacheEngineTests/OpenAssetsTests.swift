import CacheCore
import CacheStore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct OpenAssetsTests {
    @Test func idleAssetsBeyondTheLimitAreClosedLongestIdleFirst() async throws {
        let bench = try Bench()
        let table = OpenAssets(idleLimit: 2)
        try await bench.cache().run { cache in
            for number in 1...4 as ClosedRange<UInt64> {
                let target = AssetTarget(
                    id: AssetID(high: 0, low: number), key: "\(number)", originName: "media",
                    settings: OriginSettings(baseURL: "http://127.0.0.1"), url: "http://127.0.0.1/", path: "/")
                let asset = try #require(
                    table.acquire(
                        orInsert: OpenAsset(target: target, context: cache.context), asOf: table.moment(for: target.id))
                )
                if number > 1 { table.release(asset) }
            }
            let surplus = table.idleSurplus()
            table.close(surplus)

            #expect(surplus.map(\.asset.id.low) == [2])
            #expect(Set(table.all.map(\.id.low)) == [1, 3, 4])
        }
    }

    @Test func anAssetThatWasClosedIsOpenedAgainWithEverythingItHad() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<700_000)
            _ = try await eventually { try await cache.isAtRest() }
            try await cache.context.commits.flush()
            cache.context.openAssets.closeAll()
            let again = try await cache.body(of: "a.mp4", 0..<700_000)

            #expect(again.outcome.requestClass == .hit)
            #expect(again.bytes.isSame(as: bench.asset.bytes(0..<700_000)))
        }
    }
}
