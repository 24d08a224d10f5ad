package import CacheCore
import Synchronization

/// Bytes of a file that the disk refused. They stay in memory until their readers have received them, and they are
/// never claimed.
struct SpilledBytes: Sendable {
    /// Disjoint parts in ascending order.
    private var parts: [(range: ByteRange, bytes: [UInt8])] = []

    var isEmpty: Bool { parts.isEmpty }
    /// The ranges in memory.
    var ranges: ByteRangeSet { ByteRangeSet(parts.map(\.range)) }
    /// Number of bytes in memory.
    private(set) var byteCount: Int64 = 0
    /// Number of calls of `put`.
    private(set) var putCount = 0

    /// Adds bytes; replaces earlier bytes of the same range.
    mutating func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        remove(range)
        parts.insert((range, Array(bytes)), at: places(touching: range).lowerBound)
        byteCount += range.length
        putCount += 1
    }

    /// Removes the bytes of a range; parts that extend beyond it are split.
    mutating func remove(_ range: ByteRange) {
        let touched = places(touching: range)
        let rests = parts[touched].flatMap { part in
            ByteRangeSet([range]).gaps(in: part.range).map { rest in
                let first = Int(rest.lowerBound - part.range.lowerBound)
                return (rest, Array(part.bytes[first..<first + Int(rest.length)]))
            }
        }
        byteCount -= byteCount(in: range)
        parts.replaceSubrange(touched, with: rests)
    }

    /// Number of bytes of `range` in memory.
    func byteCount(in range: ByteRange) -> Int64 {
        parts[places(touching: range)].reduce(0) { $0 + $1.range.clamped(to: range).length }
    }

    /// The indices of the parts that overlap `range`; an empty range at the insertion index if there are none.
    private func places(touching range: ByteRange) -> Range<Int> {
        func first(where isBehind: (ByteRange) -> Bool) -> Int {
            // Binary search: the parts are sorted and disjoint.
            var (low, high) = (0, parts.count)
            while low < high {
                let middle = (low + high) / 2
                if isBehind(parts[middle].range) { high = middle } else { low = middle + 1 }
            }
            return low
        }
        return first { $0.upperBound > range.lowerBound }..<first { $0.lowerBound >= range.upperBound }
    }

    /// Copies the bytes in memory that belong to the requested window; returns the copied ranges.
    func copy(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) -> ByteRangeSet {
        let wanted = ByteRange(offset: offset, length: Int64(bytes.count))
        var copied = ByteRangeSet()
        for part in parts[places(touching: wanted)] {
            let run = part.range.clamped(to: wanted)
            let (source, target) = (Int(run.lowerBound - part.range.lowerBound), Int(run.lowerBound - offset))
            bytes[target..<target + Int(run.length)].copyBytes(
                from: part.bytes[source..<source + Int(run.length)])
            copied.insert(run)
        }
        return copied
    }
}

/// Memory budget for the spilled bytes of all files, and the conditions for spilling instead of writing.
final class SpillAllowance: Sendable {
    /// The remaining budget in bytes.
    private let left: OrderedMutex<Int64>
    /// Whether the disk usage is at its limit.
    let sparesDisk = Atomic(false)
    /// Whether the emergency reserve is missing.
    let lacksReserve = Atomic(false)
    /// Number of writes and file creations that the disk refused.
    let refusals = Atomic<UInt64>(0)

    /// Whether bytes go to memory before the disk is tried.
    var isPreferred: Bool { sparesDisk.load(ordering: .relaxed) || lacksReserve.load(ordering: .relaxed) }

    /// Creates a budget, by default 64 MiB.
    init(bytes: Int64 = 64 << 20) { left = OrderedMutex(.leaf, bytes) }

    /// Reserves bytes of the budget; returns false if it does not suffice.
    func take(_ bytes: Int64) -> Bool {
        left.withLock { left in
            guard left >= bytes else { return false }
            left -= bytes
            return true
        }
    }

    /// Returns bytes to the budget.
    func giveBack(_ bytes: Int64) { left.withLock { $0 += bytes } }

    /// Remaining budget in bytes.
    var spare: Int64 { left.withLock { $0 } }
}

/// Bytes in memory that the disk refused.
extension SparseFile {
    /// Ranges that are in memory because the disk refused them.
    package var spilled: ByteRangeSet { memory.withLock { $0.ranges } }

    /// Number of writes that went to memory.
    package var spillCount: Int { memory.withLock { $0.putCount } }

    /// Whether some bytes are in memory. Takes no lock.
    package var isSpilled: Bool { holdsSpilled.load(ordering: .relaxed) }

    /// Discards ranges of a transient file, in memory and on disk. Blocks. Parts that sockets may refer to are retried
    /// by the next call, or are freed with the file.
    package func giveBack(_ ranges: ByteRangeSet) throws(CacheError) {
        guard !isInMemory else { return unspill(ranges.runs) }
        markForPunch(ranges.runs)
        _ = try punchMarked(in: ranges)
        _ = try punchHeld(in: ByteRangeSet([0..<(ranges.runs.first?.lowerBound ?? 0)]))
    }

    /// Keeps bytes in memory instead of on disk; returns false if the budget does not suffice.
    func spill(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        return memory.withLock { spilled in
            // Replaced bytes are already counted.
            guard descriptors.spill.take(range.length - spilled.byteCount(in: range)) else { return false }
            spilled.put(bytes, at: offset)
            holdsSpilled.store(true, ordering: .relaxed)
            return true
        }
    }

    /// Discards the bytes of these ranges that are in memory, and returns them to the budget.
    package func unspill(_ ranges: some Sequence<ByteRange>) {
        guard isSpilled else { return }
        let freed = memory.withLock { spilled in
            let before = spilled.byteCount
            for range in ranges { spilled.remove(range) }
            holdsSpilled.store(!spilled.isEmpty, ordering: .relaxed)
            return before - spilled.byteCount
        }
        if freed > 0 { descriptors.spill.giveBack(freed) }
    }

    /// The parts of `range` that are on disk and not marked for punching.
    package func kept(_ range: ByteRange) -> [ByteRange] {
        let markedForPunch = withState { ByteRangeSet($0.markedForPunch.runs(in: range)) }
        return stored(range).flatMap { markedForPunch.gaps(in: $0) }
    }

    /// The parts of `range` that are on disk, not in memory.
    func stored(_ range: ByteRange) -> [ByteRange] { isSpilled ? spilled.gaps(in: range) : [range] }

    /// Whether all of `range` is on disk, not in memory.
    func isStored(_ range: ByteRange) -> Bool { !isSpilled || stored(range) == [range] }
}
