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
        for fill in fills {
            busy.insert(fill.reach)
            if acceptsRanges != false, fill.allowance == .max { busy.insert(fill.window) }
        }
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
        forgetBrought(runs)
        return runs
    }

    /// A fill does not bring evicted or damaged bytes again: a plan for them must find the fill behind its position.
    private mutating func forgetBrought(_ runs: [ByteRange]) {
        guard acceptsRanges != false else { return }
        for index in fills.indices where !fills[index].prospect.isEmpty && !fills[index].window.isEmpty {
            let brought = fills[index].window.lowerBound..<min(fills[index].position, fills[index].window.upperBound)
            if runs.contains(where: brought.overlaps) {
                let claimed = fills[index].window.upperBound
                fills[index].window = min(brought.upperBound, claimed - 1)..<claimed
            }
        }
    }

    /// Gives up what is there of `ranges` and lies behind all readers, if it is not less than `least`; as `surrender`.
    package mutating func surrenderPassed(of ranges: ByteRangeSet, atLeast least: Int64) -> [ByteRange] {
        let places = readers.values.map { min($0.wanted?.lowerBound ?? 0, $0.comesBackTo ?? .max) }
        guard let first = places.min(), first > 0 else { return [] }
        let passed = ranges.runs(in: 0..<first).flatMap { extents.runs(in: $0) }
        guard passed.reduce(0, { $0 + $1.length }) >= least else { return [] }
        return passed.flatMap { surrender($0) }
    }

    /// Gives up what is on disk of `range`, leases or not, because it is not what it was. It stays unclaimed until a fill brings
    /// it anew, or `surrenderUnclaimed` finds that none does.
    package mutating func spoil(_ range: ByteRange) -> [ByteRange] {
        let runs = extents.runs(in: range)
        if !runs.isEmpty { losses += 1 }
        for run in runs { extents.remove(run) }
        disown(runs)
        forgetBrought(runs)
        return runs
    }

    /// These bytes are on the disk, and nobody's.
    package mutating func disown(_ runs: [ByteRange]) {
        for run in runs { unclaimed.insert(run) }
    }

    /// Whether bytes that are nobody's are on the disk.
    package var hasUnclaimed: Bool { !unclaimed.isEmpty }

    /// Gives up what is unclaimed, but for what a fill in flight may be writing just now: that must not be taken off the disk. As
    /// `surrender`.
    package mutating func surrenderUnclaimed() -> [ByteRange] {
        let coming = fills.reduce(into: leaving) { $0.insert($1.reach) }
        let runs = unclaimed.runs.flatMap { coming.gaps(in: $0) }
        for run in runs {
            unclaimed.remove(run)
            leaving.insert(run)
        }
        return runs
    }

    /// The disk has lost these bytes, leases or not.
    package mutating func lose(_ run: ByteRange) {
        losses += 1
        extents.remove(run)
    }

    /// What takes room: what is there, what is nobody's, and what is leaving.
    package var kept: ByteRangeSet {
        (leaving.runs + unclaimed.runs).reduce(into: extents) { $0.insert($1) }
    }

    /// What of `range` takes no room that an arrival there would not be counted for.
    package func vacancies(in range: ByteRange) -> [ByteRange] {
        extents.gaps(in: range).flatMap { unclaimed.gaps(in: $0) }
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
        guard let wanted = reader.wanted else { return nil }
        let exposure = reader.readAhead.exposure(at: wanted.lowerBound, roundTrip: roundTrip)
        return wanted.prefix(max(settings.pieceBytes, mayGo ? 0 : min(exposure, Self.mostLeasedBytes)))
    }

    /// A reader keeps at most so much ahead of it from being evicted.
    private static let mostLeasedBytes: Int64 = 2 << 20

    /// A reader that does not move for so long has stopped.
    func hasStopped(_ reader: Reader) -> Bool { now - reader.movedAt >= .seconds(5) }
}
