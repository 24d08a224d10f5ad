import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct AdministrationTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test("Paged lists return every asset")
    func listsComeInPagesThatMissNothing() async throws {
        for index in 0..<25 { bench.upstream.serve("/\(index)", LoopbackAsset(size: 100)) }
        try await bench.cache().run { cache in
            for index in 0..<25 { _ = try await cache.body(of: "\(index)") }
            var keys: [String] = []
            var cursor: String?
            var pages = 0
            repeat {
                let page = try await cache.assets.page(AssetQuery(limit: 10, cursor: cursor))
                keys += page.items.map(\.record.key)
                cursor = page.nextCursor
                pages += 1
            } while cursor != nil && pages < 10

            #expect(pages == 3)
            #expect(Set(keys) == Set((0..<25).map { "/o/media/\($0)" }))
            #expect(keys.count == 25)
        }
    }

    @Test("A base URL with letters outside ASCII is rejected with its ASCII form")
    func internationalHosts() async throws {
        try await bench.cache().run { cache in
            let origin = Origin(name: "books", settings: OriginSettings(baseURL: "http://bücher.example/a"))
            let error = await #expect(throws: CacheError.self) { try await cache.configuration.setOrigin(origin) }

            #expect(error?.code == .invalidField("baseURL"))
            #expect(error?.message.contains("xn--bcher-kva.example") == true)
        }
    }

    @Test("A map shows the cached parts")
    func aMapShowsWhichPartsAreOnDisk() async throws {
        bench.upstream.serve("/m", LoopbackAsset(size: 1000))
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "m", 0..<250)
            let id = try await cache.resolver.resolve(.mounted(origin: "media", path: "m", key: nil)).id
            let map = try await cache.assets.map(of: id, buckets: 4)

            #expect(map.map(\.range) == [0..<250, 250..<500, 500..<750, 750..<1000])
            #expect(map.map(\.cached) == [1, 0, 0, 0])
            #expect(try await cache.assets.map(of: id, buckets: 5000).count == 1000)
        }
    }

    @Test("An asset patch outlasts a restart")
    func aPatchLastsOverARestart() async throws {
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<10)
            let patch = AssetPatch(isPinned: true, tags: ["x"], ttl: .value(.seconds(7)))
            let patched = try await cache.assets.patch(try await bench.id(in: cache), patch)

            #expect(patched.record.isPinned && patched.record.tags == ["x"] && patched.record.ttl == .seconds(7))
        }
        try await bench.cache().run { cache in
            let id = try await bench.id(in: cache)
            let record = try await cache.assets.asset(id).record
            let isKnown = try await eventually {
                cache.context.space.with { $0.pinned.contains(id) }
            }

            #expect(record.isPinned && record.tags == ["x"] && record.ttl == .seconds(7))
            #expect(isKnown)
        }
    }

    @Test("The TTL of an asset applies at once")
    func anAssetsOwnLifetimeHoldsFromNowOn() async throws {
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<10)
            _ = try await cache.assets.patch(try await bench.id(in: cache), AssetPatch(ttl: .value(.seconds(7))))
            test.wallClock.advance(by: .seconds(6))
            let fresh = try await cache.body(of: "a.mp4", 0..<10)
            test.wallClock.advance(by: .seconds(2))
            let stale = try await cache.body(of: "a.mp4", 0..<10)

            #expect(fresh.outcome.requestClass == .hit)
            #expect(stale.outcome.requestClass == .revalidated)
        }
    }

    @Test("An unknown asset is not found")
    func whatNobodyKnowsIsNotFound() async throws {
        try await bench.cache().run { cache in
            let id = AssetID(high: 1, low: 2)
            let asked = await #expect(throws: CacheError.self) { try await cache.assets.asset(id) }
            let patched = await #expect(throws: CacheError.self) { try await cache.assets.patch(id, AssetPatch()) }
            let deleted = await #expect(throws: CacheError.self) { try await cache.assets.delete(id, isSoft: false) }

            #expect([asked, patched, deleted].map { $0?.code } == [.notFound, .notFound, .notFound])
        }
    }

    @Test("A policy can be changed only at its current revision")
    func aPolicyIsChangedOnlyAtTheRevisionTheCallerSaw() async throws {
        try await bench.cache().run { cache in
            var settings = cache.configuration.policy.settings
            settings.capacityBytes = 64 << 20
            let first = try await cache.configuration.setPolicy(settings)
            let error = await #expect(throws: CacheError.self) {
                try await cache.configuration.setPolicy(settings, if: .revision(first.revision + 5))
            }

            #expect(error?.code == .preconditionFailed)
            #expect(cache.configuration.policy.settings.capacityBytes == 64 << 20)
        }
    }
}
