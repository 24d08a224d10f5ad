extension FillLedger {
    /// Keeps `range` on disk until the lease ends; nil where it is not all there.
    package mutating func lease(_ range: ByteRange) -> LeaseID? {
        guard extents.contains(range) else { return nil }
        let id = LeaseID(number: nextNumber())
        leases[id] = range
        return id
    }

    package mutating func end(_ lease: LeaseID) { leases[lease] = nil }

    /// What is not given up now: leases, and what fills bring.
    package var busy: ByteRangeSet {
        var busy = ByteRangeSet()
        for lease in leases.values { busy.insert(lease) }
        for reader in readers.values { if let lease = lease(of: reader) { busy.insert(lease) } }
        // What one transfer brought to readers who are past it need not stay until the transfer ends.
        for fill in fills { busy.insert(acceptsRanges == false ? fill.remaining : fill.window) }
        return busy
    }

    /// Gives up what is on disk of `range` and is not busy. Those runs count as leaving until `left` is called.
    package mutating func surrender(_ range: ByteRange) -> [ByteRange] {
        let spared = busy
        let runs = extents.runs(in: range).flatMap { spared.gaps(in: $0) }
        if !runs.isEmpty { losses += 1 }
        for run in runs {
            extents.remove(run)
            leaving.insert(run)
        }
        return runs
    }

    /// Gives up what is there of `ranges` and lies behind all readers, if it is not less than `least`; as `surrender`.
    package mutating func surrenderPassed(of ranges: ByteRangeSet, atLeast least: Int64) -> [ByteRange] {
        let places = readers.values.map { min($0.wanted?.lowerBound ?? 0, $0.comesBackTo ?? .max) }
        guard let first = places.min(), first > 0 else { return [] }
        let passed = ranges.runs(in: 0..<first).flatMap { extents.runs(in: $0) }
        guard passed.reduce(0, { $0 + $1.length }) >= least else { return [] }
        return passed.flatMap { surrender($0) }
    }

    /// Gives up what is on disk of `range`, leases or not, because it is not what it was. Those runs count as leaving until
    /// `left` is called, but for what a fill in flight brings anyway: that may be written just now, and must not be taken off
    /// the disk; it is there again when it arrives.
    package mutating func spoil(_ range: ByteRange) -> (leaving: [ByteRange], rewritten: [ByteRange]) {
        let runs = extents.runs(in: range)
        if !runs.isEmpty { losses += 1 }
        let coming = ByteRangeSet(fills.map(\.remaining))
        let going = runs.flatMap { coming.gaps(in: $0) }
        for run in runs { extents.remove(run) }
        for run in going { leaving.insert(run) }
        // What a fill has brought it does not bring again: who plans for that is to find the fill behind it.
        for index in fills.indices where acceptsRanges != false && runs.contains(where: fills[index].window.overlaps) {
            if !fills[index].remaining.isEmpty { fills[index].window = fills[index].remaining }
        }
        return (going, runs.flatMap { coming.runs(in: $0) })
    }

    /// The disk has lost these bytes, leases or not.
    package mutating func lose(_ run: ByteRange) {
        losses += 1
        extents.remove(run)
    }

    /// What takes room: what is there, and what is leaving.
    package var kept: ByteRangeSet {
        leaving.runs.reduce(into: extents) { $0.insert($1) }
    }

    /// Whether bytes of `range` are just being taken off the disk: a fill that brought them would write what goes.
    package func isLeaving(_ range: ByteRange) -> Bool { !leaving.runs(in: range).isEmpty }

    /// The surrendered runs are off the disk and out of the catalog.
    package mutating func left(_ runs: [ByteRange]) -> [Action] {
        for run in runs { leaving.remove(run) }
        return planForAll()
    }

    /// The bytes a reader is sending or will send next. What was fetched ahead of one that has stopped can be fetched again.
    private func lease(of reader: Reader) -> ByteRange? {
        let mayGo = acceptsRanges != false && hasStopped(reader)
        return reader.wanted?.prefix(max(settings.pieceBytes, mayGo ? 0 : reader.readAhead.windowBytes))
    }

    /// A reader that does not move for so long has stopped.
    func hasStopped(_ reader: Reader) -> Bool { now - reader.movedAt >= .seconds(5) }
}
