import CacheCore
import Testing

@Suite struct SpaceLedgerTests {
    let asset = AssetID(high: 0, low: 1)
    let other = AssetID(high: 0, low: 2)
    let start = Timestamp(seconds: 1_780_000_000)

    func ledger(capacity: Int64? = 100 << 20, minFree: Int64 = 0) -> SpaceLedger {
        SpaceLedger(
            settings: PolicySettings(
                capacityBytes: capacity, highWatermark: 0.9, lowWatermark: 0.5, minFreeDiskBytes: minFree,
                grace: .seconds(60)))
    }

    @Test func whatIsUsedAndPromisedStaysUnderTheCapacity() {
        var space = ledger()
        space.usedBytes = 60 << 20

        let answers = [space.reserve(40 << 20), space.reserve(1)]
        space.release(40 << 20)
        let afterwards = space.reserve(1)

        #expect(answers == [true, false])
        #expect(afterwards)
        #expect(space.reservedBytes == 1)
    }

    @Test func anOverdraftIsGrantedAndGivenBackAndNeverFallsBelowZero() {
        var space = ledger()
        space.overdraw(200 << 20)
        let fits = space.reserve(1)
        space.release(300 << 20)

        #expect(!fits)
        #expect(space.reservedBytes == 0)
    }

    @Test func whatOthersNeedOfTheDiskIsLeftToThem() {
        var space = ledger(capacity: nil, minFree: 10 << 20)
        space.freeDiskBytes = 30 << 20

        let answers = [space.reserve(20 << 20), space.reserve(1)]

        #expect(answers == [true, false])
    }

    /// In MiB: what is used, what waits, what is to go.
    static let excesses: [(used: Int64, waiting: Int64, excess: Int64)] = [
        (90, 0, 0), (91, 0, 41), (80, 20, 50), (10, 200, 10), (0, 200, 0),
    ]

    @Test(arguments: excesses)
    func evictionGoesFromAboveTheHighWatermarkToTheLowOne(used: Int64, waiting: Int64, excess: Int64) {
        var space = ledger()
        space.usedBytes = used << 20

        #expect(space.excess(waitingBytes: waiting << 20) == excess << 20)
    }

    @Test func aFullDiskMakesRoomWhateverTheCapacitySays() {
        var space = ledger(minFree: 10 << 20)
        space.usedBytes = 20 << 20
        space.freeDiskBytes = 7 << 20

        #expect(space.excess(waitingBytes: 0) == 3 << 20)
        #expect(space.excess(waitingBytes: 2 << 20) == 5 << 20)
    }

    @Test func theLeastRecentlyReadSegmentsGoFirst() {
        var space = ledger()
        space.arrived(0..<(3 << 20), of: asset, at: start)
        space.read(0..<10, of: asset)
        let victims = space.victims(toFree: 2 << 20, at: start + .seconds(100), isDesperate: false)

        #expect(victims.map(\.segment.index) == [1, 2])
        #expect(victims.map(\.bytes) == [1 << 20, 1 << 20])
        #expect(space.range(of: victims[0].segment) == (1 << 20)..<(2 << 20))
        #expect(space.reads(of: asset, in: 0..<(1 << 20)) == 1)
    }

    @Test func pinnedAssetsNeverGoAndYoungBytesOnlyInNeed() {
        var space = ledger()
        space.arrived(0..<100, of: asset, at: start)
        space.arrived(0..<100, of: other, at: start)
        space.pinned = [asset]
        let soon = start + .seconds(59)

        let calm = space.victims(toFree: 200, at: soon, isDesperate: false)
        let desperate = space.victims(toFree: 200, at: soon, isDesperate: true)
        let grown = space.victims(toFree: 200, at: start + .seconds(60), isDesperate: false)

        #expect(calm.isEmpty)
        #expect(desperate.map(\.segment.asset) == [other])
        #expect(grown.map(\.segment.asset) == [other])
    }

    @Test func aSegmentIsForgottenWithItsLastByte() {
        var space = ledger()
        space.arrived(0..<1000, of: asset, at: start)
        space.gone(0..<400, of: asset)
        let later = start + .seconds(100)

        let rest = space.victims(toFree: 1, at: later, isDesperate: false)
        space.gone(400..<1000, of: asset)
        let none = space.victims(toFree: 1, at: later, isDesperate: false)

        #expect(rest.map(\.bytes) == [600])
        #expect(none.isEmpty)
    }
}
