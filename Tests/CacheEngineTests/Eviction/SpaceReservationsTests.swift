import CacheCore
import CacheStore
import CacheTestKit
import Glibc
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct SpaceReservationsTests {
    @Test("A full disk is bypassed, and fills are stored again once it has space")
    func aFullDiskIsReadThroughAndKeepsAgainWhatComesWhenThereIsRoom() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            disk.fail(.write, with: ENOSPC, isLasting: true)
            let through = try await cache.body(of: "a.mp4", 0..<200_000)
            disk.heal()
            #expect(try await eventually { try await cache.isAtRest() })
            #expect(try await eventually { try cache.trustsDisk() })
            let again = try await cache.body(of: "a.mp4", 0..<200_000)
            #expect(try await eventually { try await cache.isAtRest() })
            let kept = try await cache.body(of: "a.mp4", 0..<200_000)

            for read in [through, again, kept] { #expect(read.bytes.isSame(as: bench.asset.bytes(0..<200_000))) }
            #expect(kept.outcome.requestClass == .hit)
        }
    }

    @Test("A plan waits until the bytes on the disk are counted")
    func nothingIsPlannedBeforeTheCount() async throws {
        let space = SpaceReservations(settings: PolicySettings())
        await #expect(throws: CacheError.self) { try await space.untilCounted(within: .zero, ContinuousClock()) }
        async let waiting: Void = space.untilCounted(within: .seconds(300), ContinuousClock())
        space.counted()
        try await waiting
        try await space.untilCounted(within: .zero, ContinuousClock())
    }

    @Test("An asset with unsynced bytes lost by the disk is refetched correctly")
    func anAssetWhoseBytesTheDiskLostIsFetchedAnewAndRight() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<200_000)
            disk.fail(.sync, with: EIO)
            _ = try? await cache.assets.page(AssetQuery())
            let same = try await cache.body(of: "a.mp4", 0..<200_000)
            let more = try await cache.body(of: "a.mp4", 1_000_000..<1_200_000)

            #expect(same.bytes.isSame(as: bench.asset.bytes(0..<200_000)))
            #expect(more.bytes.isSame(as: bench.asset.bytes(1_000_000..<1_200_000)))
        }
    }

    @Test("The accounted bytes equal the disk usage")
    func whatIsCountedIsWhatTheDiskHolds() async throws {
        let bench = try Bench()
        let test = try bench.cache()
        try await test.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1_000_000)
            _ = try await cache.body(of: "a.mp4", 2_000_000..<2_000_001)
            _ = try await cache.assets.dropExtents(of: try await bench.id(in: cache), in: 0..<500_000)
            let used = try await test.store.usedDiskBytes()

            // The transfers end shortly after their last byte was read.
            #expect(try await eventually { cache.context.space.with { $0.reservedBytes } == 0 })
            #expect(try await eventually { cache.context.space.with { $0.usedBytes } == used })
            #expect(try await cache.assets.asset(try await bench.id(in: cache)).diskBytes == used)
        }
        let again = try bench.cache()
        try await again.run { cache in
            let used = try await again.store.usedDiskBytes()
            #expect(used > 500_000)
            #expect(try await eventually { cache.context.space.with { $0.usedBytes } == used })
        }
    }

    @Test("Waiting reservations of readers are granted before those of items of jobs, also if a reader joins later")
    func readersGetSpaceFirst() {
        let space = SpaceReservations(settings: PolicySettings(capacityBytes: 100))
        let granted = Mutex<[String]>([])
        let fills = ["item", "second item", "reader", "second reader"].map { Named($0) }
        func reserve(_ fill: Named, _ bytes: Int64, _ priority: TransferPriority) {
            space.reserve(bytes, for: ObjectIdentifier(fill), priority, expecting: nil) {
                granted.withLock { $0.append(fill.name) }
            }
        }
        reserve(Named("first"), 100, .live)
        reserve(fills[0], 60, .prefetch)
        reserve(fills[1], 60, .prefetch)
        reserve(fills[2], 60, .live)
        reserve(fills[3], 60, .readAhead)
        space.promote(ObjectIdentifier(fills[1]), to: .live)
        #expect(granted.withLock(\.self) == ["first"])
        space.release(100)
        for _ in 0..<4 { space.release(60) }

        #expect(granted.withLock(\.self) == ["first", "reader", "second item", "second reader", "item"])
    }

    private final class Named: Sendable {
        let name: String
        init(_ name: String) { self.name = name }
    }
}
