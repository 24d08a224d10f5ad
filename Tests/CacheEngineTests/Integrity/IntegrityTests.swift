import CacheCore
import CacheStore
import CacheTestKit
import Foundation
import Testing

@testable import CacheEngine

/// Damaged bytes on disk are never sent.
@Suite struct IntegrityTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private var whole: [UInt8] { bench.asset.bytes(0..<bench.asset.size) }

    private func file() throws -> String { try #require(try bench.directory.assetFiles().first) }

    /// Reads the whole asset and flushes the commits. Damage before the commit would be found by the commit.
    private func readAll(_ cache: AssetCache) async throws {
        _ = try await cache.body(of: "a.mp4")
        try await cache.context.commits.flush()
    }

    @Test("With verify: always damaged bytes are fetched again")
    func withVerifyAlwaysDamagedBytesAreFetchedAgain() async throws {
        try await bench.cache { $0.verification = .always }.run { cache in
            try await readAll(cache)
            for offset in [Int64(0), 300_000, 1 << 20, bench.asset.size - 1] { try damage(file(), at: offset) }

            let again = try await cache.body(of: "a.mp4")
            let third = try await cache.body(of: "a.mp4", 1 << 20..<2 << 20)

            #expect(again.bytes.isSame(as: whole))
            #expect(third.bytes.isSame(as: bench.asset.bytes(1 << 20..<2 << 20)))
            let integrity = try await cache.statistics.snapshot().integrity
            #expect(integrity.badBlocks == 4)
            #expect(integrity.badBytes == 4 * BlockChecksums.blockBytes)
            let refetched = bench.upstream.requestedBytes("/a.mp4") - bench.asset.size
            #expect(refetched == 4 * BlockChecksums.blockBytes)
        }
    }

    @Test("An asset can be verified always while its origin is not")
    func anAssetCanBeCheckedAlwaysWhereItsOriginIsNot() async throws {
        try await bench.cache().run { cache in
            try await readAll(cache)
            let id = try await bench.id(in: cache)
            #expect(try await cache.assets.patch(id, AssetPatch(verify: .value(.always))).record.verify == .always)
            try damage(file(), at: 5000)

            let again = try await cache.body(of: "a.mp4", 0..<10_000)

            #expect(again.bytes == bench.asset.bytes(0..<10_000))
            #expect(try await cache.statistics.snapshot().integrity.badBlocks == 1)
            #expect(try await cache.assets.patch(id, AssetPatch(verify: .null)).record.verify == nil)
        }
    }

    @Test("After an unclean shutdown bytes are verified before their first use")
    func afterAnEndOutOfOrderWhatIsReadFirstIsChecked() async throws {
        try await bench.cache { $0.verification = .suspect }.run { cache in _ = try await cache.body(of: "a.mp4") }
        try damage(file(), at: 700_000)
        try await bench.cache { $0.verification = .suspect }.run(isOrderly: false) { cache in
            // Nothing marks these bytes as unverified.
            let read = try await cache.body(of: "a.mp4", 690_000..<710_000)
            #expect(!read.bytes.isSame(as: bench.asset.bytes(690_000..<710_000)))
        }
        try await bench.cache { $0.verification = .suspect }.run { cache in
            let read = try await cache.body(of: "a.mp4")

            #expect(read.bytes.isSame(as: whole))
            #expect(try await cache.statistics.snapshot().integrity.badBlocks == 1)
            let isChecked = try await eventually {
                try await cache.openAsset()?.look { $0.unchecked.isEmpty } ?? false
            }
            #expect(isChecked)
        }
    }

    @Test("By default bytes are verified at their first read after each start, and once only")
    func bytesAreVerifiedAtTheirFirstRead() async throws {
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let isWritten = try #require(await cache.openAsset()).look { $0.unchecked.isEmpty }
            #expect(isWritten)
        }
        try damage(file(), at: 700_000)
        for badBlocks in [1, 0] as [Int64] {
            try await bench.cache().run { cache in
                let read = try await cache.body(of: "a.mp4", 690_000..<710_000)
                #expect(read.bytes.isSame(as: bench.asset.bytes(690_000..<710_000)))
                #expect(try await cache.statistics.snapshot().integrity.badBlocks == badBlocks)

                _ = try await cache.body(of: "a.mp4")
                let isChecked = try await eventually {
                    try await cache.openAsset()?.look { $0.unchecked.isEmpty } ?? false
                }
                #expect(isChecked)
            }
        }
    }

    @Test("A scrub finds every damaged block, and later reads are correct")
    func aScrubFindsEveryDamagedBlockAndWhatIsReadThenIsRight() async throws {
        try await bench.cache().run { cache in
            try await readAll(cache)
            for offset in [Int64(1), 900_000, 2_500_000] { try damage(file(), at: offset) }

            let order = try cache.scrubber.start(ScrubRequest(bytesPerSecond: 1 << 40))
            let isOver = try await eventually { try cache.scrubber.report(order.id).state != .running }

            #expect(isOver)
            let report = try cache.scrubber.report(order.id)
            #expect(report.state == .succeeded)
            #expect(report.badBlocks == 3)
            #expect(report.bytesDone == bench.asset.size && report.bytesTotal == bench.asset.size)
            #expect(report.assetsDone == 1 && report.assetsTotal == 1)
            #expect(try await cache.body(of: "a.mp4").bytes.isSame(as: whole))
            #expect(try await cache.statistics.snapshot().scrub?.id == order.id)
        }
    }

    @Test("Only one scrub runs at a time")
    func onlyOneScrubRunsAtATime() async throws {
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4")
            let order = try cache.scrubber.start(ScrubRequest(bytesPerSecond: 1024))
            let error = #expect(throws: CacheError.self) { try cache.scrubber.start(ScrubRequest()) }
            #expect(error?.code == .conflict)
            #expect(try cache.scrubber.report(order.id).state == .running)
            #expect(throws: CacheError.self) { try cache.scrubber.report("none") }
        }
    }

    @Test("The missing tail of a truncated file is fetched again")
    func aFileThatWasCutShortIsFetchedAgainFromThere() async throws {
        try await bench.cache { $0.verification = .always }.run { cache in
            try await readAll(cache)
            let descriptor = try SystemDisk().open(file(), .readWrite)
            try SystemDisk().truncate(descriptor, to: 1_000_000)
            SystemDisk().close(descriptor)

            #expect(try await cache.body(of: "a.mp4").bytes.isSame(as: whole))
        }
    }

    @Test("Bytes that the disk cannot read are fetched again")
    func whatTheDiskCannotReadIsFetchedAgain() async throws {
        let disk = FaultyDisk()
        try await bench.cache(disk: disk) { $0.verification = .always }.run { cache in
            try await readAll(cache)
            // A failed disk read is retried once.
            disk.fail(.read, after: 3, with: 5)
            disk.fail(.read, after: 4, with: 5)

            #expect(try await cache.body(of: "a.mp4").bytes.isSame(as: whole))
            #expect(try await cache.statistics.snapshot().integrity.badBlocks == 1)
        }
    }

    /// A punch could erase bytes that the fill has just written.
    @Test("Bad bytes that a running fill will overwrite are not punched")
    func badBytesThatATransferIsAboutToWriteAnywayAreLeftToIt() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        let bench = try Bench(LoopbackAsset(size: 80 << 20, acceptsRanges: false))
        let damaged: ByteRange = 5 << 20..<(5 << 20) + BlockChecksums.blockBytes
        try await bench.cache { $0.verification = .always }.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<6 << 20)
            #expect(try await eventually { try await cache.isAtRest() })
            try await cache.context.commits.flush()
            let path = try #require(try bench.directory.assetFiles().first)
            try damage(path, at: damaged.lowerBound)
            bench.upstream.failNext("/a.mp4", .stall(after: 1 << 20, until: latch))
            async let ahead = cache.body(of: "a.mp4", 79 << 20..<80 << 20)
            await latch.reached()

            async let again = cache.body(of: "a.mp4", damaged)
            #expect(try await eventually { try await cache.statistics.snapshot().integrity.badBlocks == 1 })
            let asset = try #require(try await cache.openAsset())
            #expect(!asset.look { $0.ledger.isLeaving(damaged) })
            try await cache.context.commits.flush()
            let content = try Data(contentsOf: URL(fileURLWithPath: path))
            latch.release()

            let kept = content[Int(damaged.lowerBound) + 1..<Int(damaged.upperBound)]
            #expect(kept.elementsEqual(bench.asset.bytes(damaged).dropFirst()))
            #expect(try await again.bytes == bench.asset.bytes(damaged))
            #expect(try await ahead.bytes == bench.asset.bytes(79 << 20..<80 << 20))
            #expect(bench.upstream.requests.count == 2)
        }
    }

    @Test("Bad bytes that a fill did not overwrite are punched at its end")
    func badBytesThatATransferWasToWriteAndDidNotLeaveTheDiskWithIt() async throws {
        let latch = LoopbackLatch()
        defer { latch.release() }
        let bench = try Bench(LoopbackAsset(size: 80 << 20, acceptsRanges: false))
        let damaged: ByteRange = 5 << 20..<(5 << 20) + BlockChecksums.blockBytes
        try await bench.cache { $0.verification = .always }.run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<6 << 20)
            #expect(try await eventually { try await cache.isAtRest() })
            try await cache.context.commits.flush()
            let path = try #require(try bench.directory.assetFiles().first)
            let before = cache.context.space.with { $0.usedBytes }
            try damage(path, at: damaged.lowerBound)
            bench.upstream.failNext("/a.mp4", .stall(after: 1 << 20, until: latch))
            let isFound = await withTaskGroup(of: Void.self) { readers in
                readers.addTask { _ = try? await cache.body(of: "a.mp4", 79 << 20..<80 << 20) }
                await latch.reached()
                readers.addTask { _ = try? await cache.body(of: "a.mp4", damaged) }
                defer { readers.cancelAll() }
                return try? await eventually { try await cache.statistics.snapshot().integrity.badBlocks == 1 }
            }
            #expect(isFound == true)
            #expect(try await eventually { try await cache.isAtRest() })
            // The bad bytes are punched after the reads, in a separate commit.
            let after = before - BlockChecksums.blockBytes
            #expect(try await eventually { cache.context.space.with { $0.usedBytes } == after })

            let content = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(content[Int(damaged.lowerBound)..<Int(damaged.upperBound)].allSatisfy { $0 == 0 })
        }
    }
}
