import CacheCore
import Testing
import TestChance

@Suite struct SpaceLedgerTests {
    let asset = AssetID(high: 0, low: 1)
    let other = AssetID(high: 0, low: 2)
    let start = Timestamp(seconds: 1_780_000_000)

    func ledger(
        capacity: Int64? = 100 << 20, minFree: Int64 = 0, _ algorithm: EvictionAlgorithm = .lru
    ) -> SpaceLedger {
        SpaceLedger(
            settings: PolicySettings(
                capacityBytes: capacity, highWatermark: 0.9, lowWatermark: 0.5, minFreeDiskBytes: minFree,
                algorithm: algorithm, grace: .seconds(60)))
    }

    @Test("Used and reserved bytes stay within the capacity")
    func whatIsUsedAndPromisedStaysUnderTheCapacity() {
        var space = ledger()
        space.usedBytes = 60 << 20

        let answers = [space.reserve(40 << 20), space.reserve(1)]
        space.release(40 << 20)
        let afterwards = space.reserve(1)

        #expect(answers == [true, false])
        #expect(afterwards)
        #expect(space.reservedBytes == 1)
    }

    @Test("A grant over the limit is released without falling below zero")
    func anOverdraftIsGrantedAndGivenBackAndNeverFallsBelowZero() {
        var space = ledger()
        space.grantOverLimit(200 << 20)
        let fits = space.reserve(1)
        space.release(300 << 20)

        #expect(!fits)
        #expect(space.reservedBytes == 0)
    }

    @Test("The minimum of free disk space stays free")
    func whatOthersNeedOfTheDiskIsLeftToThem() {
        var space = ledger(capacity: nil, minFree: 10 << 20)
        space.freeDiskBytes = 30 << 20

        let answers = [space.reserve(20 << 20), space.reserve(1)]

        #expect(answers == [true, false])
    }

    @Test("Written bytes are not free until the disk is measured again")
    func whatIsWrittenIsNotFreeUntilTheDiskIsMeasuredAgain() {
        var space = ledger(capacity: nil, minFree: 10 << 20)
        space.freeDiskBytes = 30 << 20
        let isPromised = space.reserve(20 << 20)
        space.used(changedBy: 20 << 20)
        space.release(20 << 20)
        let fits = space.reserve(1)
        space.used(changedBy: -(5 << 20))

        #expect(isPromised && !fits)
        #expect(!space.isShortOfDisk(waitingBytes: 0) && space.isShortOfDisk(waitingBytes: 1))
        #expect(space.usedBytes == 15 << 20)
    }

    /// Used, waiting and excess bytes, in MiB.
    static let excesses: [(used: Int64, waiting: Int64, excess: Int64)] = [
        (90, 0, 0), (91, 0, 41), (80, 20, 50), (10, 200, 10), (0, 200, 0),
    ]

    @Test("Usage above the high watermark is evicted down to the low one", arguments: excesses)
    func evictionGoesFromAboveTheHighWatermarkToTheLowOne(used: Int64, waiting: Int64, excess: Int64) {
        var space = ledger()
        space.usedBytes = used << 20

        #expect(space.excess(waitingBytes: waiting << 20) == excess << 20)
    }

    @Test("The largest possible capacity does not overflow")
    func theLargestCapacityThereIsIsNoTrouble() {
        var space = SpaceLedger(settings: PolicySettings(capacityBytes: .max, highWatermark: 1, minFreeDiskBytes: 0))
        space.usedBytes = 100
        space.arrived(0..<100, of: asset, at: start)

        #expect(space.excess(waitingBytes: 5) == 0)
        #expect(space.victims(toFree: 1, at: start, isUrgent: true).count == 1)
    }

    @Test("A full disk causes eviction below the capacity")
    func aFullDiskMakesRoomWhateverTheCapacitySays() {
        var space = ledger(minFree: 10 << 20)
        space.usedBytes = 20 << 20
        space.freeDiskBytes = 7 << 20

        #expect(space.excess(waitingBytes: 0) == 3 << 20)
        #expect(space.excess(waitingBytes: 2 << 20) == 5 << 20)
    }

    @Test("The least recently read segments are evicted first")
    func theLeastRecentlyReadSegmentsGoFirst() {
        var space = ledger()
        space.arrived(0..<(3 << 20), of: asset, at: start)
        space.read(0..<10, of: asset, at: start)
        let victims = space.victims(toFree: 2 << 20, at: start + .seconds(100), isUrgent: false)

        #expect(victims.map(\.segment.index) == [1, 2])
        #expect(victims.map(\.bytes) == [1 << 20, 1 << 20])
        let second: ByteRange = 1 << 20..<2 << 20
        #expect(space.range(of: victims[0].segment) == second)
        #expect(space.reads(of: asset, in: 0..<(1 << 20)) == 1)
    }

    @Test("Reads of a segment within five minutes count once")
    func readsOfASegmentWithinFiveMinutesCountOnce() {
        var space = ledger()
        space.arrived(0..<(3 << 20), of: asset, at: start)
        for (offset, seconds) in [(0, 0), (1, 299), (2, 300), (1 << 20, 300), (3 << 20, 300)] as [(Int64, Int64)] {
            space.read(ByteRange(offset: offset, length: 10), of: asset, at: start + .seconds(seconds))
        }

        #expect((0..<4).map { space.reads(of: asset, in: $0 << 20..<($0 + 1) << 20) } == [2, 1, 0, 0])
    }

    @Test("An evicted segment that is requested again outlasts new segments")
    func whatWasEvictedAndIsAskedForAgainOutlastsWhatIsNew() {
        for isExpected in [false, true] {
            var space = ledger(capacity: 20 << 20, .s3fifo)
            let later = start + .seconds(100)
            space.arrived(0..<(1 << 20), of: asset, at: start)
            for victim in space.victims(toFree: 1, at: later, isUrgent: false) {
                space.gone(space.range(of: victim.segment), of: victim.segment.asset)
            }
            // Evict nine more segments, so that the ghost queue drops the first one unless it was renewed.
            space.arrived(0..<(9 << 20), of: other, at: start)
            if isExpected { space.expect(0..<(1 << 20), of: asset) }
            for victim in space.victims(toFree: 9 << 20, at: later, isUrgent: false) {
                space.gone(space.range(of: victim.segment), of: victim.segment.asset)
            }
            space.arrived(0..<(1 << 20), of: asset, at: start)
            space.arrived((20 << 20)..<(21 << 20), of: other, at: start)
            let first = space.victims(toFree: 1, at: later, isUrgent: false)

            #expect(first.map(\.segment.asset) == [isExpected ? other : asset])
        }
    }

    @Test("Counted bytes replace the assumed bytes")
    func countedBytesTakeThePlaceOfWhatWasThoughtToBeThere() {
        var space = ledger()
        space.arrived(0..<(4 << 20), of: asset, at: start)
        space.count([(2 << 20)..<(2 << 20) + 5, (5 << 20)..<(6 << 20)], of: asset, lastUse: start)
        let victims = space.victims(toFree: .max, at: start + .seconds(100), isUrgent: false)

        #expect(victims.map(\.segment.index) == [2, 5])
        #expect(victims.map(\.bytes) == [5, 1 << 20])
    }

    @Test("Pinned assets are never evicted, and young bytes only when desperate")
    func pinnedAssetsNeverGoAndYoungBytesOnlyInNeed() {
        var space = ledger()
        space.arrived(0..<100, of: asset, at: start)
        space.arrived(0..<100, of: other, at: start)
        space.pinned = [asset]
        let soon = start + .seconds(59)

        let calm = space.victims(toFree: 200, at: soon, isUrgent: false)
        let desperate = space.victims(toFree: 200, at: soon, isUrgent: true)
        let grown = space.victims(toFree: 200, at: start + .seconds(60), isUrgent: false)

        #expect(calm.isEmpty)
        #expect(desperate.map(\.segment.asset) == [other])
        #expect(grown.map(\.segment.asset) == [other])
    }

    @Test("Restored young segments are protected only up to the grace budget")
    func whatIsTakenUpAfterARestartIsSparedOnlyWhileItIsFew() {
        var before = ledger()
        for second in 0..<60 as Range<Int64> {
            before.arrived(
                ByteRange(offset: second << 20, length: 1 << 20), of: asset, at: start + .seconds(second))
        }
        var space = ledger()
        for record in before.records { space.restore(record) }
        space.count([0..<(60 << 20)], of: asset, lastUse: start)
        let now = start + .seconds(59)
        #expect(space.victims(toFree: .max, at: now, isUrgent: false).count < 2)

        space.beginRecent(at: space.recentStart)

        let victims = space.victims(toFree: .max, at: now, isUrgent: false)
        #expect((56...59).contains(victims.count))
    }

    @Test("Young segments are protected only up to the grace budget")
    func youngBytesAreSparedOnlyWhileTheyAreFew() {
        var space = ledger()
        for second in 0..<60 as Range<Int64> {
            let segment = ByteRange(offset: second << 20, length: 1 << 20)
            space.arrived(segment, of: asset, at: start + .seconds(second))
        }

        let victims = space.victims(toFree: .max, at: start + .seconds(59), isUrgent: false)

        // The grace budget is 5 % of the low watermark (50 MiB), or two and a half segments.
        #expect((57...59).contains(victims.count))
        #expect(victims.map(\.segment.index) == Array(0..<Int32(victims.count)))
    }

    @Test("Chooses no more victims than requested and none twice")
    func choosesNoMoreThanAskedForAndNoneTwice() {
        var space = ledger()
        space.arrived(0..<(8 << 20), of: asset, at: start)
        let later = start + .seconds(100)

        let first = space.victims(toFree: 8 << 20, at: later, isUrgent: false, limit: 3)
        let next = space.victims(
            toFree: 8 << 20, at: later, isUrgent: false, besides: Set(first.map(\.segment)), limit: 3)

        #expect(first.map(\.segment.index) == [0, 1, 2])
        #expect(next.map(\.segment.index) == [3, 4, 5])
    }

    /// Adds and removes ranges of many assets at random and compares with a dictionary of the remaining ranges.
    @Test("Knows the bytes of each segment")
    func knowsTheBytesOfEachSegment() {
        var (random, seed) = SeededRandom.announced()
        var space = ledger()
        var model: [SegmentID: Set<Int64>] = [:]
        for _ in 0..<5000 {
            let id = SegmentID(
                asset: AssetID(high: 0, low: UInt64.random(in: 0..<5, using: &random)),
                index: Int32.random(in: 0..<9, using: &random))
            let slot = Int64.random(in: 0..<4, using: &random)
            let range = ByteRange(offset: space.range(of: id).lowerBound + slot * 100, length: 100)
            if model[id, default: []].insert(slot).inserted {
                space.arrived(range, of: id.asset, at: start)
            } else {
                model[id]?.remove(slot)
                space.gone(range, of: id.asset)
            }
            let victims = space.victims(toFree: .max, at: start, isUrgent: true)
            let left = model.filter { !$0.value.isEmpty }.mapValues { Int64($0.count * 100) }
            #expect(Dictionary(uniqueKeysWithValues: victims.map { ($0.segment, $0.bytes) }) == left, "seed \(seed)")
        }
    }

    @Test("A segment is forgotten with its last byte")
    func aSegmentIsForgottenWithItsLastByte() {
        var space = ledger()
        space.arrived(0..<1000, of: asset, at: start)
        space.gone(0..<400, of: asset)
        let later = start + .seconds(100)

        let rest = space.victims(toFree: 1, at: later, isUrgent: false)
        space.gone(400..<1000, of: asset)
        let none = space.victims(toFree: 1, at: later, isUrgent: false)

        #expect(rest.map(\.bytes) == [600])
        #expect(none.isEmpty)
    }
}
