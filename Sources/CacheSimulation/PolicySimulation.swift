package import CacheCore

/// Simulates an eviction policy on a sequence of reads, without a store: measures hits, writes and evictions.
package struct PolicySimulation: Sendable {
    /// The result of one read of a whole segment.
    package enum Outcome: Hashable, Sendable {
        case hit
        /// The segment was admitted after these victims were evicted, in this order.
        case miss(evicted: [Victim])
        /// The segment is larger than the capacity, and was not admitted.
        case refused
    }

    /// Sums over all reads; sizes in bytes.
    package struct Tally: Hashable, Sendable {
        package var requests: Int64 = 0
        /// Reads without missing bytes.
        package var hits: Int64 = 0
        package var bytes: Int64 = 0
        package var hitBytes: Int64 = 0
        /// Bytes that were admitted.
        package var writtenBytes: Int64 = 0
        package var evictedSegments: Int64 = 0
        package var evictedBytes: Int64 = 0

        package var missedBytes: Int64 { bytes - hitBytes }
        package var requestHitRatio: Double { requests == 0 ? 0 : Double(hits) / Double(requests) }
        package var byteHitRatio: Double { bytes == 0 ? 0 : Double(hitBytes) / Double(bytes) }
    }

    /// The simulated content of one segment.
    private struct Entry {
        /// Bit n: the n-th 64th of the segment is present.
        var parts: UInt64 = 0
        /// The last counted read; nil: none.
        var touchedAt: Timestamp?
    }

    private var policy: any EvictionPolicy
    private let grid: SegmentGrid
    private let touchInterval: Duration
    /// The segments that were read in runs. Whole segments are in `policy` only.
    private var entries: [SegmentID: Entry] = [:]
    package private(set) var tally = Tally()

    /// `grid`: nil: the grid for the capacity of the policy. `touchInterval`: reads of a segment less than this apart
    /// count as one.
    package init(policy: any EvictionPolicy, grid: SegmentGrid? = nil, touchInterval: Duration = .seconds(300)) {
        self.policy = policy
        self.grid = grid ?? SegmentGrid(capacity: policy.capacityBytes)
        self.touchInterval = touchInterval
    }

    /// Bytes of all segments in the policy.
    package var usedBytes: Int64 { policy.usedBytes }

    package func contains(_ segment: SegmentID) -> Bool { policy.bytes(of: segment) != nil }

    /// Simulates a restart: continues under `fresh`, to which the persisted state of the policy is restored. The
    /// history of evicted segments is lost, as in the store.
    package mutating func restart(under fresh: any EvictionPolicy) {
        var fresh = fresh
        for slot in policy.slots {
            let segment = policy.table.segment(at: slot)
            fresh.restore(segment, bytes: policy.table.bytes(at: slot), entry: policy.entry(at: slot))
        }
        fresh.hand = policy.hand.flatMap { fresh.table.slot(of: policy.table.segment(at: $0)) }
        policy = fresh
    }

    // MARK: Whole segments

    /// Reads a segment that is present as a whole or not at all. Every read of a present segment counts as a touch.
    package mutating func read(_ segment: SegmentID, bytes: Int64) -> Outcome {
        let bytes = max(0, bytes)
        if policy.touch(segment) {
            count(bytes, missing: 0)
            return .hit
        }
        count(bytes, missing: bytes)
        guard bytes <= policy.capacityBytes else { return .refused }
        let evicted = makeRoom(for: bytes, in: segment)
        policy.admit(segment, bytes: bytes)
        tally.writtenBytes &+= bytes
        return .miss(evicted: evicted)
    }

    // MARK: Runs of an asset

    /// Reads a run of an asset. Missing parts are admitted in units of a 64th of a segment.
    package mutating func read(_ run: ByteRange, of asset: AssetID, at now: Timestamp) {
        var missing: Int64 = 0
        for index in grid.indices(of: run) {
            let part = grid.run(of: index).clamped(to: run)
            missing += read(part, of: SegmentID(asset: asset, index: index), at: now)
        }
        count(run.length, missing: missing)
    }

    /// Whether all bytes of a run are present.
    package func holds(_ run: ByteRange, of asset: AssetID) -> Bool {
        grid.indices(of: run).allSatisfy { index in
            let segment = SegmentID(asset: asset, index: index)
            let part = grid.run(of: index).clamped(to: run)
            return missingBytes(of: part, in: segment, given: entries[segment]?.parts ?? 0) == 0
        }
    }

    /// Reads the part of a run within one segment. Returns the number of missing bytes.
    private mutating func read(_ run: ByteRange, of segment: SegmentID, at now: Timestamp) -> Int64 {
        var entry = entries[segment] ?? Entry()
        let missing = missingBytes(of: run, in: segment, given: entry.parts)
        if missing < run.length { touch(segment, &entry, at: now) }
        guard missing > 0 else {
            entries[segment] = entry
            return 0
        }
        let known = policy.bytes(of: segment) ?? 0
        guard missing <= policy.capacityBytes - known else { return missing }
        for victim in makeRoom(for: missing, in: segment) { entries[victim.segment] = nil }
        policy.admit(segment, bytes: known + missing)
        entry.parts |= parts(of: run, in: segment)
        entries[segment] = entry
        tally.writtenBytes &+= missing
        return missing
    }

    private mutating func touch(_ segment: SegmentID, _ entry: inout Entry, at now: Timestamp) {
        if let last = entry.touchedAt, now.since(last) < touchInterval { return }
        entry.touchedAt = now
        policy.touch(segment)
    }

    /// The 64ths of the segment that the run overlaps, as bits.
    private func parts(of run: ByteRange, in segment: SegmentID) -> UInt64 {
        let start = grid.run(of: segment.index).lowerBound
        let (first, last) = ((run.lowerBound - start) / partBytes, (run.upperBound - 1 - start) / partBytes)
        return (UInt64.max << first) & (UInt64.max >> (63 - last))
    }

    private var partBytes: Int64 { (grid.segmentBytes + 63) / 64 }

    /// The bytes of the run in parts that are not `present`.
    private func missingBytes(of run: ByteRange, in segment: SegmentID, given present: UInt64) -> Int64 {
        let wanted = parts(of: run, in: segment)
        if wanted & present == 0 { return run.length }
        if wanted & ~present == 0 { return 0 }
        let start = grid.run(of: segment.index).lowerBound
        return (0..<Int64(64)).filter { wanted & ~present & (1 << $0) != 0 }.reduce(0) { sum, part in
            sum + ByteRange(offset: start + part * partBytes, length: partBytes).clamped(to: run).length
        }
    }

    // MARK: Both

    /// Evicts until `bytes` fit; `segment` itself is not evicted.
    private mutating func makeRoom(for bytes: Int64, in segment: SegmentID) -> [Victim] {
        policy.expect(segment)
        let victims = policy.victims(toFree: policy.usedBytes - (policy.capacityBytes - bytes)) { $0 == segment }
        for victim in victims {
            policy.remove(victim.segment)
            tally.evictedSegments += 1
            tally.evictedBytes &+= victim.bytes
        }
        return victims
    }

    /// Adds one read to the tally.
    private mutating func count(_ bytes: Int64, missing: Int64) {
        tally.requests += 1
        tally.hits += missing == 0 ? 1 : 0
        tally.bytes &+= bytes
        tally.hitBytes &+= bytes - missing
    }
}
