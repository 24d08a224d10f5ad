import CacheCore
import TestChance

/// What the evictor does, and what is found damaged.
extension FillLedgerModel {
    func surrender() {
        let from = Int64.random(in: 0..<length, using: &random)
        let range = from..<(from + Int64.random(in: 1...length, using: &random))
        let isPassed = Bool.random(using: &random)
        let runs =
            isPassed ? ledger.surrenderPassed(of: ByteRangeSet([range]), atLeast: 1) : ledger.surrender(range)
        for run in runs {
            check(run.clamped(to: range) == run, "more is surrendered than was asked for")
            for byte in run { check(isOnDisk[Int(byte)], "byte \(byte) is surrendered and was not there") }
            for byte in run { isOnDisk[Int(byte)] = false }
            for fill in fills.values where !fill.isDescribing {
                let spared = hasRanges && fill.allowance == .max ? fill.window : fill.reach
                check(!spared.overlaps(run), "\(run) of the running \(fill.window) is surrendered")
            }
            for reader in readers.values {
                guard let wanted = reader.wanted, !wanted.isEmpty else { continue }
                let lease = wanted.lowerBound..<min(wanted.upperBound, wanted.lowerBound + 16)
                check(!lease.overlaps(run), "\(run) is surrendered under a reader at \(wanted.lowerBound)")
                check(!isPassed || run.upperBound <= wanted.lowerBound, "\(run) lies ahead of \(wanted.lowerBound)")
            }
            for lease in leases.values { check(!lease.overlaps(run), "\(run) is surrendered under \(lease)") }
        }
        if !runs.isEmpty { leaving.append(runs) }
    }

    /// Somebody begins to send bytes that are on disk, or has sent them.
    func lease() {
        if let id = leases.keys.min(by: { $0.number < $1.number }), Bool.random(using: &random) {
            leases[id] = nil
            return ledger.end(id)
        }
        let from = Int64.random(in: 0..<length, using: &random)
        let range = from..<min(length, from + Int64.random(in: 1...20, using: &random))
        let id = ledger.lease(range)
        check((id != nil) == range.allSatisfy { isOnDisk[Int($0)] }, "a lease of \(range)")
        if let id { leases[id] = range }
    }

    func left() {
        guard let index = leaving.indices.randomElement(using: &random) else { return }
        perform(ledger.left(leaving.remove(at: index)))
        sweep()
    }

    /// What nobody claims leaves, unless it may be written just now, or the bytes before it are leaving.
    func sweep() {
        let staying = ByteRangeSet(fills.values.map(\.reach) + leaving.joined())
        let runs = ledger.surrenderUnclaimed()
        let left = ByteRangeSet(runs)
        for byte in 0..<length {
            let mustLeave = isNobodys[Int(byte)] && staying.run(containing: byte) == nil
            check((left.run(containing: byte) != nil) == mustLeave, "byte \(byte), which is nobody's: \(!mustLeave)")
            if mustLeave { isNobodys[Int(byte)] = false }
        }
        if !runs.isEmpty { leaving.append(runs) }
    }

    /// Bytes on disk prove not to be what was written, whoever reads them.
    func spoil() {
        let from = Int64.random(in: 0..<length, using: &random)
        let range = from..<min(length, from + Int64.random(in: 1...60, using: &random))
        let bad = ledger.spoil(range)
        for (id, fill) in fills where hasRanges && !fill.remaining.isEmpty {
            let brought = fill.window.lowerBound..<fill.remaining.lowerBound
            if bad.contains(where: brought.overlaps) { fills[id]?.window = fill.remaining }
        }
        for byte in range where isOnDisk[Int(byte)] {
            check(bad.contains { $0.contains(byte) }, "byte \(byte) stays, and is bad")
            (isOnDisk[Int(byte)], isNobodys[Int(byte)]) = (false, true)
        }
        sweep()
    }
}
