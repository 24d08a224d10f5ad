import CacheCore
import CacheStore
import CacheTestKit
import Glibc
import NIOCore
import Testing

@testable import CacheEngine

/// Bytes that cannot or may not be stored still reach their readers, and occupy only the space the readers need.
@Suite struct PassingOnTests {
    private func open(_ cache: AssetCache, _ ranges: String? = nil) async throws -> ContentRead {
        var headers: HeaderList = [:]
        if let ranges { headers.set("Range", ranges) }
        do { return try await cache.reader.read(Bench.media, request: ContentRequest(headers: headers)) } catch {
            throw error.error
        }
    }

    @Test(
        "If the disk cannot create a file, the asset is bypassed",
        arguments: [ENOSPC, EDQUOT, EIO, EROFS], [nil, "no-store"])
    func whatTheDiskGivesNoFileForIsPassedOn(_ number: Int32, _ rules: String?) async throws {
        let bench = try Bench(LoopbackAsset(size: 3 << 20, cacheControl: rules))
        let disk = FaultyDisk()
        try await bench.cache(disk: disk) { if rules != nil { $0.freshness = .respect } }.run { cache in
            disk.fail(.open, with: number, isLasting: true)
            let through = try await cache.body(of: "a.mp4")
            #expect(try await eventually { try await cache.isAtRest() })
            #expect(try bench.directory.assetFiles().isEmpty)
            disk.heal()
            #expect(try await eventually { try cache.trustsDisk() })

            let again = try await cache.body(of: "a.mp4")
            for read in [through, again] { #expect(read.bytes.isSame(as: bench.asset.bytes(0..<(3 << 20)))) }
            #expect(try await eventually { try await cache.isAtRest() })
            #expect(try await cache.body(of: "a.mp4").outcome.requestClass == (rules == nil ? .hit : .bypass))
        }
    }

    @Test("An item waits while the disk cannot create its file, and succeeds later")
    func itemWaitsForFile() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        let test = try bench.cache(disk: disk)
        try await test.run { cache in
            disk.fail(.open, with: ENOSPC, isLasting: true)
            let job = try await cache.jobs.submit(.of("a.mp4"))
            let item = try await cache.waitingItem(of: job)
            #expect(item.wait?.hold.cause == .disk && item.error?.code == "storageFull")
            disk.heal()
            #expect(try await test.succeeds(job, in: cache))
        }
    }

    /// Bytes in spill memory do not complete a job, and are not fetched a second time before the item waits.
    @Test(
        "An item waits while the disk cannot hold its bytes, and succeeds later",
        arguments: [true, false], [nil, Int64(50_000_000)])
    func aJobForWhatTheDiskHasNoRoomForSaysSo(_ acceptsRanges: Bool, _ rate: Int64?) async throws {
        let bench = try Bench(LoopbackAsset(size: 3 << 20, acceptsRanges: acceptsRanges))
        let disk = FaultyDisk()
        let test = try bench.cache(disk: disk)
        try await test.run { cache in
            disk.fail(.write, with: ENOSPC, isLasting: true)
            var order = CreateJobRequest.of("a.mp4")
            order.maxBytesPerSecond = rate
            let job = try await cache.jobs.submit(order)
            let item = try await cache.waitingItem(of: job)
            #expect(item.wait?.hold.cause == .disk && item.error?.code == "storageFull")
            let most = Int64(3 << 20) * Int64(item.attempts)
            #expect(bench.upstream.requestedBytes("/a.mp4") <= most)
            #expect(try await cache.body(of: "a.mp4").bytes.isSame(as: bench.asset.bytes(0..<(3 << 20))))
            disk.heal()
            #expect(try await test.succeeds(job, in: cache))
        }
    }

    /// If all bytes are in memory, consumed bytes are released as soon as they are sent, however few they are.
    @Test("Consumed bytes leave memory even if the reader then stops")
    func whatAReaderIsPastLeavesMemoryThoughTheReaderStops() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            disk.fail(.open, with: ENOSPC, isLasting: true)
            let read = try await open(cache)
            var position: Int64 = 0
            while position < 200_000, let buffer = try await read.next() { position += Int64(buffer.readableBytes) }
            #expect(
                try await eventually(within: .seconds(20)) {
                    let asset = cache.context.openAssets.detached.first
                    return asset?.look { $0.ledger.extents.runs.first?.lowerBound } ?? 0 >= 100_000
                })
            read.finish(.clientGone)
        }
    }

    @Test("Bytes fetched ahead of a stopped reader leave memory")
    func whatWasFetchedAheadOfAReaderThatHasStoppedLeavesMemory() async throws {
        let bench = try Bench(LoopbackAsset(size: 24 << 20))
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            disk.fail(.open, with: ENOSPC, isLasting: true)
            let read = try await open(cache)
            var position: Int64 = 0
            while position < 6 << 20, let buffer = try await read.next() { position += Int64(buffer.readableBytes) }
            let asset = try #require(cache.context.openAssets.detached.first)
            #expect(try await eventually { cache.context.upstreams.client.load.paused == 1 })
            #expect(
                try await eventually(within: .seconds(60)) {
                    asset.look { $0.ledger.extents.byteCount } <= FilePiece.mostBytes
                })
            var rest: [UInt8] = []
            while let buffer = try await read.next() { rest += buffer.readableBytesView }
            read.finish(.sent)
            #expect(rest.isSame(as: bench.asset.bytes(position..<bench.asset.size)))
        }
    }

    /// The readers need more bytes than the spill memory holds. A reader without memory waits until others have
    /// consumed their bytes.
    @Test("Many readers of large assets share the spill memory of a full disk", arguments: [true, false])
    func manyReadersOfLargeAssetsShareTheMemoryThatStandsInForAFullDisk(_ isTold: Bool) async throws {
        let asset = LoopbackAsset(size: 12 << 20)
        let bench = try Bench(asset)
        let disk = FaultyDisk()
        let policy = PolicySettings(capacityBytes: nil, minFreeDiskBytes: isTold ? 1 << 30 : 0)
        let names = (0..<24).map { "\($0).mp4" }
        for name in names { bench.upstream.serve("/\(name)", asset) }
        let whole = asset.bytes(0..<asset.size)
        try await bench.cache(policy: policy, disk: disk).run { cache in
            if isTold { disk.pretendFree(0) } else { disk.fail(.write, with: ENOSPC, isLasting: true) }
            let memory = cache.context.store.spareMemory
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for name in names {
                    group.addTask { try await cache.body(of: name).bytes.isSame(as: whole) }
                }
                for try await isRight in group { #expect(isRight) }
            }
            #expect(try await eventually { cache.context.store.spareMemory == memory })
        }
    }

    /// Nothing is evicted for the rejected writes.
    @Test(
        "A disk that rejects writes is not trusted for a while",
        arguments: [(EFBIG, false), (ENOSPC, true), (EDQUOT, true)])
    func aDiskThatRefusesWritesIsNotBelievedForAWhile(_ number: Int32, _ isFull: Bool) async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            bench.upstream.serve("/b.mp4", bench.asset)
            _ = try await cache.body(of: "b.mp4")
            #expect(try await eventually { try await cache.isAtRest() })
            disk.fail(.write, with: number, isLasting: true)
            async let body = cache.body(of: "a.mp4")
            // On a slow machine this period may end before the body is complete.
            if isFull { #expect(try await eventually { try !cache.trustsDisk() }) }
            #expect(try await body.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(try isFull || cache.trustsDisk())
            try await cache.evictor.makeRoom()
            #expect(try await cache.body(of: "b.mp4").outcome.requestClass == .hit)
        }
    }

    /// A response with more bytes than requested is not written to an evicting range.
    @Test("A fill with more bytes than requested does not write an evicting range")
    func whatIsLeavingIsNotWrittenByWhoBringsMoreThanItWasAskedFor() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            #expect(try await eventually { try await cache.isAtRest() })
            let asset = try #require(try await cache.openAsset())
            let runs: [ByteRange] = asset.change { ($0.ledger.beginEviction(0..<1000), []) }
            var deaf = bench.asset
            deaf.acceptsRanges = false
            bench.upstream.serve("/a.mp4", deaf)
            async let body = cache.body(of: "a.mp4", 2_000_000..<2_001_000)
            #expect(
                try await eventually {
                    asset.look { $0.ledger.acceptsRanges == false && $0.ledger.fillCount == 0 }
                })
            asset.change { ((), $0.ledger.left(runs)) }

            #expect(runs == [0..<1000])
            #expect(try await body.bytes.isSame(as: bench.asset.bytes(2_000_000..<2_001_000)))
            #expect(try await cache.body(of: "a.mp4").bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
        }
    }

    /// Covers upstreams with and without ranges.
    @Test("Bytes that may not be stored are on disk only until they are consumed", arguments: [true, false])
    func whatMustNotBeKeptIsOnDiskOnlyBetweenItsTransferAndItsReaders(_ acceptsRanges: Bool) async throws {
        let size: Int64 = 64 << 20
        let bench = try Bench(
            LoopbackAsset(size: size, cacheControl: "no-store", acceptsRanges: acceptsRanges))
        try await bench.cache { $0.freshness = .respect }.run { cache in
            let read = try await open(cache)
            var (position, most): (Int64, Int64) = (0, 0)
            while let buffer = try await read.next() {
                let range = ByteRange(offset: position, length: Int64(buffer.readableBytes))
                #expect(Array(buffer.readableBytesView).isSame(as: bench.asset.bytes(range)))
                position = range.upperBound
                most = max(most, cache.context.space.with { $0.usedBytes })
            }
            read.finish(.sent)
            #expect(position == size)
            #expect(most < 32 << 20)
            #expect(try await eventually { cache.context.space.with { $0.usedBytes } == 0 })
        }
    }

    /// The upstream sends a single transfer, and the reader requests the end of the asset first.
    @Test("Bytes needed by a later range of the same reader stay")
    func whatItsReaderComesBackToStays() async throws {
        let asset = LoopbackAsset(
            size: 16 << 20, etag: nil, lastModified: nil, cacheControl: "no-store", acceptsRanges: false)
        let bench = try Bench(asset)
        try await bench.cache { $0.freshness = .respect }.run { cache in
            let read = try await open(cache, "bytes=15000000-15999999,100-1099")
            #expect(read.plan.status == 206)
            var bytes: [UInt8] = []
            while let buffer = try await read.next() { bytes += buffer.readableBytesView }
            read.finish(.sent)
            let (end, beginning) = (asset.bytes(15_000_000..<16_000_000), asset.bytes(100..<1100))
            #expect(bytes.count > 1_001_000 && Self.holds(bytes, end) && Self.holds(bytes, beginning))
            #expect(bench.upstream.requests(for: "/a.mp4").count == 1)
        }
    }

    private static func holds(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0] == part[0] && bytes[$0...].starts(with: part) }
    }
}

extension TestCache {
    /// Whether the job succeeds while the clock goes on; its items can wait several times.
    fileprivate func succeeds(_ job: JobSnapshot, in cache: AssetCache) async throws -> Bool {
        try await eventually {
            wallClock.advance(by: .seconds(1))
            return try await cache.jobs.job(job.record.id).record.state == .succeeded
        }
    }
}
