import CacheCore
import TestChance

/// Actions of the evictor, and corruption of cached bytes.
extension FillLedgerModel {
    func beginEviction() {
        let from = Int64.random(in: 0..<length, using: &random)
        let range = from..<(from + Int64.random(in: 1...length, using: &random))
        let isPassed = Bool.random(using: &random)
        let runs =
            isPassed ? ledger.evictConsumed(of: ByteRangeSet([range]), atLeast: 1) : ledger.beginEviction(range)
        for run in runs {
            check(run.clamped(to: range) == run, "eviction of \(run) outside the requested \(range)")
            for byte in run { check(isOnDisk[Int(byte)], "eviction of byte \(byte), which is not cached") }
            for byte in run { isOnDisk[Int(byte)] = false }
            for fill in fills.values where !fill.isDescribing {
                let spared = hasRanges && fill.allowance == .max ? fill.window : fill.reach
                check(!spared.overlaps(run), "eviction of \(run) inside the running window \(fill.window)")
            }
            for reader in readers.values {
                guard let wanted = reader.wanted, !wanted.isEmpty else { continue }
                let lease = wanted.lowerBound..<min(wanted.upperBound, wanted.lowerBound + 16)
                check(!lease.overlaps(run), "eviction of \(run) under the reader at \(wanted.lowerBound)")
                check(
                    !isPassed || run.upperBound <= wanted.lowerBound,
                    "eviction of \(run) ahead of the reader at \(wanted.lowerBound)")
            }
            for lease in leases.values { check(!lease.overlaps(run), "eviction of \(run) under the lease \(lease)") }
        }
        if !runs.isEmpty { evicting.append(runs) }
    }

    /// Starts or ends a lease on cached bytes.
    func lease() {
        if let id = leases.keys.min(by: { $0.number < $1.number }), Bool.random(using: &random) {
            leases[id] = nil
            return ledger.end(id)
        }
        let from = Int64.random(in: 0..<length, using: &random)
        let range = from..<min(length, from + Int64.random(in: 1...20, using: &random))
        let id = ledger.lease(range)
        check((id != nil) == range.allSatisfy { isOnDisk[Int($0)] }, "wrong result for a lease of \(range)")
        if let id { leases[id] = range }
    }

    func left() {
        guard let index = evicting.indices.randomElement(using: &random) else { return }
        perform(ledger.left(evicting.remove(at: index)))
        sweep()
    }

    /// Evicts orphaned bytes, except those that a fill may still write and those in evicting ranges.
    func sweep() {
        let staying = ByteRangeSet(fills.values.map(\.reach) + evicting.joined())
        let runs = ledger.evictOrphaned()
        let left = ByteRangeSet(runs)
        for byte in 0..<length {
            let mustLeave = isNobodys[Int(byte)] && staying.run(containing: byte) == nil
            check(
                (left.run(containing: byte) != nil) == mustLeave,
                "eviction of byte \(byte): \(!mustLeave), expected \(mustLeave)")
            if mustLeave { isNobodys[Int(byte)] = false }
        }
        if !runs.isEmpty { evicting.append(runs) }
    }

    /// Reports cached bytes as corrupt.
    func invalidate() {
        let from = Int64.random(in: 0..<length, using: &random)
        let range = from..<min(length, from + Int64.random(in: 1...60, using: &random))
        let bad = ledger.invalidate(range)
        for (id, fill) in fills where hasRanges && !fill.remaining.isEmpty {
            let brought = fill.window.lowerBound..<fill.remaining.lowerBound
            if bad.contains(where: brought.overlaps) { fills[id]?.window = fill.remaining }
        }
        for byte in range where isOnDisk[Int(byte)] {
            check(bad.contains { $0.contains(byte) }, "corrupt byte \(byte) was not invalidated")
            (isOnDisk[Int(byte)], isNobodys[Int(byte)]) = (false, true)
        }
        sweep()
    }
}
