package import CacheCore
import Synchronization

/// Bytes of a file that found no room on the disk, kept in memory until their readers have them. Nobody ever claims them.
struct SpilledBytes: Sendable {
    private var parts: [(range: ByteRange, bytes: [UInt8])] = []

    var isEmpty: Bool { parts.isEmpty }
    var ranges: ByteRangeSet { ByteRangeSet(parts.map(\.range)) }
    private(set) var byteCount: Int64 = 0

    mutating func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        remove(range)
        let place = parts.firstIndex { $0.range.lowerBound >= range.upperBound } ?? parts.count
        parts.insert((range, Array(bytes)), at: place)
        byteCount += range.length
    }

    mutating func remove(_ range: ByteRange) {
        guard parts.contains(where: { $0.range.overlaps(range) }) else { return }
        parts = parts.flatMap { part in
            ByteRangeSet([range]).gaps(in: part.range).map { rest in
                let first = Int(rest.lowerBound - part.range.lowerBound)
                return (rest, Array(part.bytes[first..<first + Int(rest.length)]))
            }
        }
        byteCount = parts.reduce(0) { $0 + $1.range.length }
    }

    /// Copies what is here of the bytes from `offset` on; answers which runs those are.
    func copy(into bytes: UnsafeMutableRawBufferPointer, at offset: Int64) -> ByteRangeSet {
        let wanted = ByteRange(offset: offset, length: Int64(bytes.count))
        var copied = ByteRangeSet()
        for part in parts where part.range.overlaps(wanted) {
            let run = part.range.clamped(to: wanted)
            let (source, target) = (Int(run.lowerBound - part.range.lowerBound), Int(run.lowerBound - offset))
            bytes[target..<target + Int(run.length)].copyBytes(
                from: part.bytes[source..<source + Int(run.length)])
            copied.insert(run)
        }
        return copied
    }
}

/// How much memory the spilled bytes of all files may take, and when they are to rather than the disk.
final class SpillAllowance: Sendable {
    private let left: Mutex<Int64>
    /// Whether more of the disk is taken than may be.
    let sparesDisk = Atomic(false)
    /// Whether what the catalog needs to free space is not kept back just now.
    let lacksReserve = Atomic(false)
    /// How many writes and new files the disk has refused.
    let refusals = Atomic<UInt64>(0)

    var isPreferred: Bool { sparesDisk.load(ordering: .relaxed) || lacksReserve.load(ordering: .relaxed) }

    init(bytes: Int64 = 64 << 20) { left = Mutex(bytes) }

    /// Answers whether there was as much.
    func take(_ bytes: Int64) -> Bool {
        left.withLock { left in
            guard left >= bytes else { return false }
            left -= bytes
            return true
        }
    }

    func giveBack(_ bytes: Int64) { left.withLock { $0 += bytes } }

    /// How much more may be taken.
    var spare: Int64 { left.withLock { $0 } }
}

extension SparseFile {
    /// Runs that are in memory because the disk had no room for them.
    package var spilled: ByteRangeSet { state.withLock { $0.spilled.ranges } }

    /// Whether some of its bytes are in memory, at a glance.
    package var isSpilled: Bool { holdsSpilled.load(ordering: .relaxed) }

    /// Takes bytes of a transient file out of memory and off the disk; blocks. What clients are on the way to be sent is tried
    /// again with the next ones, or goes with the file.
    package func giveBack(_ ranges: ByteRangeSet) throws(CacheError) {
        guard !isInMemory else { return unspill(ranges.runs) }
        doom(ranges.runs)
        _ = try punchDoomed(in: ranges)
        _ = try punchHeld(in: ByteRangeSet([0..<(ranges.runs.first?.lowerBound ?? 0)]))
    }

    /// As `spilled`; nil where that is none, or would mean waiting.
    package var spilledNow: ByteRangeSet? {
        isSpilled ? state.withLockIfAvailable { $0.spilled.ranges } : nil
    }

    /// Keeps bytes in memory, off the disk; answers whether there was room for them.
    func spill(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        guard shelf.spill.take(Int64(bytes.count)) else { return false }
        let surplus = state.withLock { state in
            holdsSpilled.store(true, ordering: .relaxed)
            let before = state.spilled.byteCount
            state.spilled.put(bytes, at: offset)
            return before + Int64(bytes.count) - state.spilled.byteCount
        }
        shelf.spill.giveBack(surplus)
        return true
    }

    /// What is in memory of these runs is not needed any more.
    package func unspill(_ ranges: some Sequence<ByteRange>) {
        let freed = state.withLock { state in
            guard !state.spilled.isEmpty else { return Int64(0) }
            let before = state.spilled.byteCount
            for range in ranges { state.spilled.remove(range) }
            holdsSpilled.store(!state.spilled.isEmpty, ordering: .relaxed)
            return before - state.spilled.byteCount
        }
        if freed > 0 { shelf.spill.giveBack(freed) }
    }

    /// The runs of `range` that are on the disk.
    func stored(_ range: ByteRange) -> [ByteRange] {
        state.withLock { state in state.spilled.isEmpty ? [range] : state.spilled.ranges.gaps(in: range) }
    }
}
