/// Eviction: leases, pinned, evicting and orphaned ranges.
extension FillLedger {
    /// Protects `range` from eviction until `end(_:)`; nil if a byte of it is not on disk.
    package mutating func lease(_ range: ByteRange) -> LeaseID? {
        guard extents.contains(range) else { return nil }
        let id = LeaseID(number: nextNumber())
        leases[id] = range
        return id
    }

    /// Ends a lease.
    package mutating func end(_ lease: LeaseID) { leases[lease] = nil }

    /// Ranges in use, which are not evicted: leases, the next bytes of readers, and the bytes that fills write.
    package var busy: ByteRangeSet {
        var busy = ByteRangeSet()
        for lease in leases.values { busy.insert(lease) }
        for reader in readers.values { if let lease = lease(of: reader) { busy.insert(lease) } }
        // Bytes that all readers have passed can be evicted before their transfer ends, if that transfer is
        // flow-controlled or brings the whole body.
        for fill in fills {
            busy.insert(fill.reach)
            if acceptsRanges != false, fill.allowance == .max { busy.insert(fill.window) }
        }
        return busy
    }

    /// Begins to evict the cached part of `range` that is not in use. The returned runs are in state evicting until
    /// `left`.
    package mutating func beginEviction(_ range: ByteRange) -> [ByteRange] {
        let spared = busy
        let runs = extents.runs(in: range).flatMap { spared.gaps(in: $0) }
        if !runs.isEmpty { losses += 1 }
        for run in runs {
            extents.remove(run)
            evicting.insert(run)
        }
        forgetBrought(runs)
        return runs
    }

    /// Moves the start of each fill behind evicted or damaged bytes that it has brought already. The fill does not
    /// bring them again, so planning must not find it in front of them.
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

    /// Begins to evict the part of `ranges` that all readers have passed, if it has at least `least` bytes. Returns
    /// runs as `beginEviction` does.
    package mutating func evictConsumed(of ranges: ByteRangeSet, atLeast least: Int64) -> [ByteRange] {
        let places = readers.values.map { min($0.wanted?.lowerBound ?? 0, $0.comesBackTo ?? .max) }
        guard let first = places.min(), first > 0 else { return [] }
        let passed = ranges.runs(in: 0..<first).flatMap { extents.runs(in: $0) }
        guard passed.reduce(0, { $0 + $1.length }) >= least else { return [] }
        return passed.flatMap { beginEviction($0) }
    }

    /// Removes the cached part of `range` from the extents because it is damaged, leases included. The bytes are
    /// orphaned until a fill overwrites them or `evictOrphaned` claims them.
    package mutating func invalidate(_ range: ByteRange) -> [ByteRange] {
        let runs = extents.runs(in: range)
        if !runs.isEmpty { losses += 1 }
        for run in runs { extents.remove(run) }
        orphan(runs)
        forgetBrought(runs)
        return runs
    }

    /// Marks bytes in the file as orphaned: they belong to no extent.
    package mutating func orphan(_ runs: [ByteRange]) {
        for run in runs { orphaned.insert(run) }
    }

    /// Whether the file has orphaned bytes.
    package var hasUnclaimed: Bool { !orphaned.isEmpty }

    /// Begins to evict the orphaned ranges, except for those that a fill in flight may be writing. Returns runs as
    /// `beginEviction` does.
    package mutating func evictOrphaned() -> [ByteRange] {
        let coming = fills.reduce(into: evicting) { $0.insert($1.reach) }
        let runs = orphaned.runs.flatMap { coming.gaps(in: $0) }
        for run in runs {
            orphaned.remove(run)
            evicting.insert(run)
        }
        return runs
    }

    /// Records that the disk has lost these bytes, leases included.
    package mutating func lose(_ run: ByteRange) {
        losses += 1
        extents.remove(run)
    }

    /// Ranges that occupy disk: cached, orphaned and evicting.
    package var kept: ByteRangeSet {
        (evicting.runs + orphaned.runs).reduce(into: extents) { $0.insert($1) }
    }

    /// The parts of `range` that are not counted as disk usage yet: neither cached nor orphaned.
    package func vacancies(in range: ByteRange) -> [ByteRange] {
        extents.gaps(in: range).flatMap { orphaned.gaps(in: $0) }
    }

    /// Whether a part of `range` is evicting. A fill must not write there, because the punch would erase the new bytes.
    package func isLeaving(_ range: ByteRange) -> Bool { !evicting.runs(in: range).isEmpty }

    /// Records that the evicted runs are removed from disk and catalog, and plans for the readers that waited for it.
    package mutating func left(_ runs: [ByteRange]) -> [Action] {
        for run in runs { evicting.remove(run) }
        return planForAll()
    }

    /// The bytes that the reader is sending or sends next. The read-ahead of a stopped reader is not protected if it
    /// can be fetched again.
    private func lease(of reader: Reader) -> ByteRange? {
        let mayGo = acceptsRanges != false && hasStopped(reader)
        guard let wanted = reader.wanted else { return nil }
        let exposure = reader.readAhead.exposure(at: wanted.lowerBound, roundTrip: roundTrip)
        return wanted.prefix(max(settings.pieceBytes, mayGo ? 0 : min(exposure, Self.mostLeasedBytes)))
    }

    /// The largest protected range ahead of a reader, in bytes.
    private static let mostLeasedBytes: Int64 = 2 << 20

    /// Whether the reader has not moved for 5 s.
    func hasStopped(_ reader: Reader) -> Bool { now - reader.movedAt >= .seconds(5) }
}
