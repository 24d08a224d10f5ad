import Testing

@testable import CacheCore
import TestChance

/// Persistence of the ledger and its restoration after a restart.
@Suite struct SpaceKeepingTests {
    let start = Timestamp(seconds: 1_780_000_000)

    private func settings(_ algorithm: EvictionAlgorithm) -> PolicySettings {
        PolicySettings(
            capacityBytes: 30 << 20, highWatermark: 0.9, lowWatermark: 0.5, minFreeDiskBytes: 0, algorithm: algorithm,
            grace: .zero)
    }

    /// Stands in for the catalog: stores the persisted segment records.
    private struct KeptRecords {
        var records: [SegmentID: SegmentRecord] = [:]
        var hand: Int64?

        mutating func keep(_ ledger: inout SpaceLedger) {
            guard let changes = ledger.takeChanges() else {
                let all = ledger.recordAll()
                records = Dictionary(uniqueKeysWithValues: all.records.map { ($0.segment, $0) })
                hand = all.hand.flatMap { records[$0]?.sequence }
                return
            }
            for var record in changes.records {
                record.sequence = record.sequence ?? records[record.segment]?.sequence
                records[record.segment] = record
            }
            for segment in changes.gone { records[segment] = nil }
            hand = changes.hand.flatMap { records[$0]?.sequence }
        }

        var inOrder: [SegmentRecord] {
            records.values.sorted {
                ($0.entry.priority ?? 0, $0.sequence ?? 0) < ($1.entry.priority ?? 0, $1.sequence ?? 0)
            }
        }
    }

    @Test("Persisted segments are restored in the same order", arguments: EvictionAlgorithm.allCases)
    func whatWasWrittenDownStandsAsItStood(algorithm: EvictionAlgorithm) {
        var (random, seed) = SeededRandom.announced()
        var ledger = SpaceLedger(settings: settings(algorithm))
        var kept = KeptRecords()
        var bytes: [AssetID: ByteRangeSet] = [:]
        for step in Int64(0)..<4000 {
            let asset = AssetID(high: 0, low: UInt64.random(in: 0..<60, using: &random))
            let now = start + .seconds(step * 50)
            switch Int.random(in: 0..<40, using: &random) {
            case 0: kept.keep(&ledger)
            case 1:
                for victim in ledger.victims(toFree: 1 << 20, at: now, isUrgent: true, limit: 3).dropLast() {
                    ledger.gone(ledger.range(of: victim.segment), of: victim.segment.asset)
                    bytes[victim.segment.asset]?.remove(ledger.range(of: victim.segment))
                }
            case 2...10 where bytes[asset, default: ByteRangeSet()].byteCount(in: 0..<100) == 0:
                ledger.arrived(0..<100, of: asset, at: now)
                bytes[asset, default: ByteRangeSet()].insert(0..<100)
            default: ledger.read(0..<50, of: asset, at: now)
            }
        }
        kept.keep(&ledger)

        var restored = SpaceLedger(settings: settings(algorithm), form: ledger.form)
        for record in kept.inOrder { restored.restore(record, hand: kept.hand) }
        for (asset, extents) in bytes { restored.count(extents.runs, of: asset, lastUse: start) }
        restored.drop(restored.empty)
        restored.wasRestored()

        let end = start + .seconds(1_000_000)
        let expected = ledger.victims(toFree: .max, at: end, isUrgent: true)
        let restoredVictims = restored.victims(toFree: .max, at: end, isUrgent: true)
        let isSame = restoredVictims == expected
        #expect(!expected.isEmpty)
        #expect(isSame, "seed \(seed)")
        for asset in bytes.keys {
            #expect(restored.reads(of: asset, in: 0..<100) == ledger.reads(of: asset, in: 0..<100), "seed \(seed)")
        }
    }

    @Test("A new layout or a failed write causes a full rewrite")
    func anotherFormAndAFailureHaveAllWrittenAnew() throws {
        var ledger = SpaceLedger(settings: settings(.lru))
        ledger.arrived(0..<100, of: AssetID(high: 0, low: 1), at: start)
        let first = ledger.takeChanges()
        _ = ledger.recordAll()
        let second = ledger.takeChanges()
        ledger.failedToKeep()
        let third = ledger.takeChanges()
        _ = ledger.recordAll()
        ledger.adopt(settings(.gdsf))
        let begun = ledger.beginRebuilding()
        _ = ledger.finishRebuilding(try #require(begun).rebuilt())
        let fourth = ledger.takeChanges()

        #expect(first == nil && third == nil && fourth == nil)
        #expect(second?.isEmpty == true)
        #expect(ledger.form == EvictionLayout(algorithm: .gdsf, segmentBytes: 1 << 20))
    }
}
