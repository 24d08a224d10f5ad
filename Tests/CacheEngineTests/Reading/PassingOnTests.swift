import CacheCore
import CacheStore
import CacheTestKit
import Glibc
import NIOCore
import Testing

@testable import CacheEngine

/// What cannot be kept, or must not be, reaches its readers all the same, and takes no more room than they need.
@Suite struct PassingOnTests {
    private func open(_ cache: AssetCache, _ ranges: String? = nil) async throws -> ContentRead {
        var headers: HeaderList = [:]
        if let ranges { headers.set("Range", ranges) }
        do { return try await cache.read(Bench.media, request: ContentRequest(headers: headers)) } catch {
            throw error.error
        }
    }

    @Test(arguments: [ENOSPC, EDQUOT, EIO, EROFS], [nil, "no-store"])
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

    @Test func aJobForWhatTheDiskGivesNoFileForSaysSo() async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            disk.fail(.open, with: ENOSPC, isLasting: true)
            let job = try await cache.finished(try await cache.submit(.of("a.mp4")))
            #expect(job.record.state == .failed)
            let item = try #require(try await cache.jobItems(job.record.id).items.first)
            #expect(item.error?.code == "storageFull")
        }
    }

    /// What memory took in its place is no help to it, and is not fetched twice to find that out.
    @Test(arguments: [true, false], [nil, Int64(50_000_000)])
    func aJobForWhatTheDiskHasNoRoomForSaysSo(_ acceptsRanges: Bool, _ rate: Int64?) async throws {
        let bench = try Bench(LoopbackAsset(size: 3 << 20, acceptsRanges: acceptsRanges))
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            disk.fail(.write, with: ENOSPC, isLasting: true)
            var order = JobOrder.of("a.mp4")
            order.maxBytesPerSecond = rate
            let job = try await cache.finished(try await cache.submit(order))
            #expect(job.record.state == .failed)
            let item = try #require(try await cache.jobItems(job.record.id).items.first)
            #expect(item.error?.code == "storageFull")
            #expect(bench.upstream.requestedBytes("/a.mp4") <= 3 << 20)
            #expect(try await cache.body(of: "a.mp4").bytes.isSame(as: bench.asset.bytes(0..<(3 << 20))))
        }
    }

    /// Of a file that is all in memory a reader's beginning goes as soon as it is sent, however little that is.
    @Test func whatAReaderIsPastLeavesMemoryThoughTheReaderStops() async throws {
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

    @Test func whatWasFetchedAheadOfAReaderThatHasStoppedLeavesMemory() async throws {
        let bench = try Bench(LoopbackAsset(size: 24 << 20))
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            disk.fail(.open, with: ENOSPC, isLasting: true)
            let read = try await open(cache)
            var position: Int64 = 0
            while position < 6 << 20, let buffer = try await read.next() { position += Int64(buffer.readableBytes) }
            let asset = try #require(cache.context.openAssets.detached.first)
            #expect(try await eventually { cache.context.upstream.load.paused == 1 })
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

    /// More readers of more bytes than there is memory for: who finds none waits until others are past theirs.
    @Test(arguments: [true, false])
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

    /// And nothing is evicted for it.
    @Test(arguments: [(EFBIG, false), (ENOSPC, true), (EDQUOT, true)])
    func aDiskThatRefusesWritesIsNotBelievedForAWhile(_ number: Int32, _ isFull: Bool) async throws {
        let bench = try Bench()
        let disk = FaultyDisk()
        try await bench.cache(disk: disk).run { cache in
            bench.upstream.serve("/b.mp4", bench.asset)
            _ = try await cache.body(of: "b.mp4")
            #expect(try await eventually { try await cache.isAtRest() })
            disk.fail(.write, with: number, isLasting: true)
            async let body = cache.body(of: "a.mp4")
            // The while is over before the body is, where the machine is slow.
            if isFull { #expect(try await eventually { try !cache.trustsDisk() }) }
            #expect(try await body.bytes.isSame(as: bench.asset.bytes(0..<bench.asset.size)))
            #expect(try isFull || cache.trustsDisk())
            try await cache.evictor.makeRoom()
            #expect(try await cache.body(of: "b.mp4").outcome.requestClass == .hit)
        }
    }

    /// An answer with more than was asked for is not written into what is just going.
    @Test func whatIsLeavingIsNotWrittenByWhoBringsMoreThanItWasAskedFor() async throws {
        let bench = try Bench()
        try await bench.cache().run { cache in
            _ = try await cache.body(of: "a.mp4", 0..<1000)
            #expect(try await eventually { try await cache.isAtRest() })
            let asset = try #require(try await cache.openAsset())
            let runs: [ByteRange] = asset.change { ($0.ledger.surrender(0..<1000), []) }
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

    /// Whatever kind of upstream it is, and however much of it there is.
    @Test(arguments: [true, false])
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

    /// A transfer that comes once only, and a reader who wants its end first.
    @Test func whatItsReaderComesBackToStays() async throws {
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
