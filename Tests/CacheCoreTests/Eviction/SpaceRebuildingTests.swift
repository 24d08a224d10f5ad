import Testing

@testable import CacheCore

/// Changes of the algorithm or the capacity on a ledger with known segments.
@Suite struct SpaceRebuildingTests {
    let start = Timestamp(seconds: 1_780_000_000)
    let mebibyte: Int64 = 1 << 20

    private func asset(_ number: UInt64) -> AssetID { AssetID(high: 0, low: number) }

    private func settings(_ algorithm: EvictionAlgorithm, capacity: Int64? = 100 << 20) -> PolicySettings {
        PolicySettings(
            capacityBytes: capacity, highWatermark: 0.9, lowWatermark: 0.5, minFreeDiskBytes: 0, algorithm: algorithm,
            grace: .zero)
    }

    /// Six assets of one segment each. The first was read last, the third before it.
    private func ledger(_ algorithm: EvictionAlgorithm) -> SpaceLedger {
        var ledger = SpaceLedger(settings: settings(algorithm))
        for number in UInt64(1)...6 {
            ledger.arrived(0..<mebibyte, of: asset(number), at: start + .seconds(Int64(number)))
        }
        ledger.read(0..<1, of: asset(3), at: start + .seconds(100))
        ledger.read(0..<1, of: asset(1), at: start + .seconds(200))
        return ledger
    }

    private func order(of ledger: SpaceLedger) -> [UInt64] {
        var copy = ledger
        return copy.victims(toFree: .max, at: start + .seconds(1000), isUrgent: true).map(\.segment.asset.low)
    }

    private func adopt(_ settings: PolicySettings, in ledger: inout SpaceLedger) throws -> Bool {
        ledger.adopt(settings)
        let begun = ledger.beginRebuilding()
        let copy = try #require(begun)
        return ledger.finishRebuilding(copy.rebuilt()).isGuess
    }

    @Test(
        "Segments read again outlast segments read once after any change of algorithm",
        arguments: EvictionAlgorithm.allCases,
        EvictionAlgorithm.allCases)
    func whatWasReadOutlastsWhatWasNotWhateverTakesOver(from: EvictionAlgorithm, to: EvictionAlgorithm) throws {
        guard from != to else { return }
        var ledger = ledger(from)
        let mustBeCounted = try adopt(settings(to), in: &ledger)

        let order = order(of: ledger)
        #expect(Set(order) == Set(1...6))
        #expect(Set(order.prefix(4)) == [2, 4, 5, 6])
        #expect(ledger.reads(of: asset(3), in: 0..<mebibyte) == 1)
        #expect(!mustBeCounted)
    }

    @Test("The same algorithm and grid need no rebuild")
    func nothingIsRebuiltForTheSameAlgorithmAndGrid() {
        var ledger = ledger(.s3fifo)
        ledger.adopt(settings(.s3fifo, capacity: 90 << 20))

        let begun = ledger.beginRebuilding()
        #expect(begun == nil)
        #expect(ledger.settings.capacityBytes == 90 << 20)
    }

    @Test("Changes during a rebuild are not lost", arguments: EvictionAlgorithm.allCases)
    func whatHappensMeanwhileIsNotLost(algorithm: EvictionAlgorithm) throws {
        var ledger = ledger(algorithm == .lru ? .sieve : .lru)
        ledger.adopt(settings(algorithm))
        let begun = ledger.beginRebuilding()
        let copy = try #require(begun)
        let isBegunAgain = ledger.beginRebuilding() != nil
        let rebuilt = copy.rebuilt()
        ledger.usedBytes = 7
        ledger.pinned = [asset(5)]
        ledger.gone(0..<mebibyte, of: asset(2))
        ledger.arrived(0..<mebibyte, of: asset(7), at: start + .seconds(10))
        ledger.read(0..<1, of: asset(4), at: start + .seconds(300))
        _ = ledger.finishRebuilding(rebuilt)

        #expect(Set(order(of: ledger)) == [1, 3, 4, 6, 7])
        #expect([4, 6].map { ledger.reads(of: asset($0), in: 0..<mebibyte) } == [1, 0])
        #expect(ledger.usedBytes == 7)
        #expect(!isBegunAgain)
    }

    @Test("A larger grid joins segments, and a smaller grid divides them", arguments: EvictionAlgorithm.allCases)
    func aLargerGridJoinsSegmentsAndASmallerOneDividesThem(algorithm: EvictionAlgorithm) throws {
        var ledger = SpaceLedger(settings: settings(algorithm, capacity: 100 << 20))
        ledger.arrived(0..<(5 << 20), of: asset(1), at: start)
        ledger.arrived((6 << 20)..<(7 << 20), of: asset(2), at: start)
        let mustBeCountedFirst = try adopt(settings(algorithm, capacity: 16 << 30), in: &ledger)
        let joined = victims(of: ledger)
        let mustBeCountedThen = try adopt(settings(algorithm, capacity: 8 << 30), in: &ledger)
        ledger.count([(6 << 20)..<(7 << 20)], of: asset(2), lastUse: start)
        ledger.count([0..<(5 << 20)], of: asset(1), lastUse: start)
        let divided = victims(of: ledger)

        #expect(joined == ["1.0": 4 << 20, "1.1": mebibyte, "2.1": mebibyte])
        #expect(divided == ["1.0": 2 << 20, "1.1": 2 << 20, "1.2": mebibyte, "1.3": 0, "2.3": mebibyte])
        #expect(!mustBeCountedFirst && mustBeCountedThen)
    }

    private func victims(of ledger: SpaceLedger) -> [String: Int64] {
        var copy = ledger
        let victims = copy.victims(toFree: .max, at: start, isUrgent: true)
        let names = victims.map { ("\($0.segment.asset.low).\($0.segment.index)", $0.bytes) }
        return Dictionary(uniqueKeysWithValues: names)
    }
}
