import CacheCore
import TestChance
import Testing

@testable import CacheSimulation

/// A ledger driven like in a store has the hit ratio of the simulation of the same reads.
@Suite struct SpaceSimulationTests {
    private static let capacity: Int64 = 51 << 20
    private static let window: Int64 = 512 << 10

    /// Reads of whole assets with skewed popularity. One eighth of the assets fits into the store.
    private static func reads(of bytes: Int64, every interval: Duration) -> [ReadTrace.Read] {
        var random = SeededRandom(seed: 7)
        return (0..<12_000).map { number in
            let random = Double(random.next() >> 11) / Double(1 << 53)
            let asset = UInt64(random * random * random * Double(8 * capacity / bytes))
            return ReadTrace.Read(
                asset: AssetID(high: 0, low: asset), run: 0..<bytes,
                at: Timestamp(seconds: 1_780_000_000) + interval * number)
        }
    }

    /// The byte hit ratio of a simulation of the reads.
    private func simulated(_ reads: [ReadTrace.Read], usedShare: Double) -> Double {
        let policy = S3FIFOPolicy(capacityBytes: Int64(Double(Self.capacity) * usedShare))
        var simulation = PolicySimulation(policy: policy, grid: SegmentGrid(capacity: Self.capacity))
        for read in reads { simulation.read(read.run, of: read.asset, at: read.at) }
        return simulation.tally.byteHitRatio
    }

    /// Model of a store without a disk: applies fills and evictions to sets of extents.
    private struct Shop {
        var ledger: SpaceLedger
        var extents: [AssetID: ByteRangeSet] = [:]

        mutating func evict(for waiting: Int64, at now: Timestamp) {
            while case let excess = ledger.excess(waitingBytes: waiting), excess > 0 {
                let victims = ledger.victims(toFree: excess, at: now, isUrgent: waiting > 0, limit: 128)
                guard !victims.isEmpty else { return }
                for victim in victims {
                    let (asset, range) = (victim.segment.asset, ledger.range(of: victim.segment))
                    ledger.usedBytes -= extents[asset]?.byteCount(in: range) ?? 0
                    extents[asset]?.remove(range)
                    ledger.gone(range, of: asset)
                }
            }
        }

        mutating func fill(_ window: ByteRange, of asset: AssetID, at now: Timestamp) {
            let gaps = extents[asset, default: ByteRangeSet()].gaps(in: window)
            let missing = gaps.reduce(0) { $0 + $1.length }
            guard missing > 0 else { return }
            ledger.expect(window, of: asset)
            if !ledger.reserve(missing) {
                evict(for: missing, at: now)
                ledger.grantOverLimit(missing)
            }
            evict(for: 0, at: now)
            for gap in gaps { ledger.arrived(gap, of: asset, at: now) }
            extents[asset, default: ByteRangeSet()].insert(window)
            ledger.usedBytes += missing
            ledger.release(missing)
        }
    }

    private func found(_ reads: [ReadTrace.Read], grace: Duration) -> Double {
        let settings = PolicySettings(capacityBytes: Self.capacity, minFreeDiskBytes: 0, grace: grace)
        var shop = Shop(ledger: SpaceLedger(settings: settings))
        var (all, hits): (Int64, Int64) = (0, 0)
        for read in reads {
            let cached = shop.extents[read.asset, default: ByteRangeSet()].runs(in: read.run)
            all += read.run.length
            hits += cached.reduce(0) { $0 + $1.length }
            for start in stride(from: read.run.lowerBound, to: read.run.upperBound, by: Int(Self.window)) {
                shop.fill(ByteRange(offset: start, length: Self.window), of: read.asset, at: read.at)
            }
            for run in cached { shop.ledger.read(run, of: read.asset, at: read.at) }
        }
        return Double(hits) / Double(all)
    }

    /// Some grace periods are long enough for much of the store to be replaced.
    @Test(
        "The hit ratio of a store lies between the simulations of its watermarks",
        arguments: [(1, 20, 0), (1, 2000, 60), (1, 2000, 300), (4, 200, 10)])
    func aStoreFindsWhatIsSimulatedBetweenItsWatermarks(mebibytes: Int64, milliseconds: Int64, grace: Int64) {
        let reads = Self.reads(of: mebibytes << 20, every: .milliseconds(milliseconds))
        let found = found(reads, grace: .seconds(grace))
        let (least, most) = (simulated(reads, usedShare: 0.85), simulated(reads, usedShare: 0.95))

        #expect(least > 0.3)
        #expect((least - 0.005...most + 0.005).contains(found), "\(least)…\(most), \(found)")
    }
}
