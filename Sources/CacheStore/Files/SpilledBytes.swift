package import CacheCore
import Synchronization

/// Bytes of a file that found no room on the disk, kept in memory until their readers have them. Nobody ever claims them.
struct SpilledBytes: Sendable {
    private var parts: [(range: ByteRange, bytes: [UInt8])] = []

    var isEmpty: Bool { parts.isEmpty }
    var ranges: ByteRangeSet { ByteRangeSet(parts.map(\.range)) }
    private(set) var byteCount: Int64 = 0
    /// How often something was put here.
    private(set) var putCount = 0

    mutating func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        remove(range)
        parts.insert((range, Array(bytes)), at: places(touching: range).lowerBound)
        byteCount += range.length
        putCount += 1
    }

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

    /// How many bytes of `range` are here.
    func byteCount(in range: ByteRange) -> Int64 {
        parts[places(touching: range)].reduce(0) { $0 + $1.range.clamped(to: range).length }
    }

    /// The parts that have bytes of `range`; where there are none, the place they would have.
    private func places(touching range: ByteRange) -> Range<Int> {
        func first(where isBehind: (ByteRange) -> Bool) -> Int {
            var (low, high) = (0, parts.count)
            while low < high {
                let middle = (low + high) / 2
                if isBehind(parts[middle].range) { high = middle } else { low = middle + 1 }
            }
            return low
        }
        return first { $0.upperBound > range.lowerBound }..<first { $0.lowerBound >= range.upperBound }
    }

    /// Copies what is here of the bytes from `offset` on; answers which runs those are.
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
    package var spilled: ByteRangeSet { memory.withLock { $0.ranges } }

    /// How often the disk had no room for what was written.
    package var spillCount: Int { memory.withLock { $0.putCount } }

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

    /// Keeps bytes in memory, off the disk; answers whether there was room for them.
    func spill(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Bool {
        let range = ByteRange(offset: offset, length: Int64(bytes.count))
        return memory.withLock { spilled in
            guard shelf.spill.take(range.length - spilled.byteCount(in: range)) else { return false }
            spilled.put(bytes, at: offset)
            holdsSpilled.store(true, ordering: .relaxed)
            return true
        }
    }

    /// What is in memory of these runs is not needed any more.
    package func unspill(_ ranges: some Sequence<ByteRange>) {
        guard isSpilled else { return }
        let freed = memory.withLock { spilled in
            let before = spilled.byteCount
            for range in ranges { spilled.remove(range) }
            holdsSpilled.store(!spilled.isEmpty, ordering: .relaxed)
            return before - spilled.byteCount
        }
        if freed > 0 { shelf.spill.giveBack(freed) }
    }

    /// The runs of `range` that are on the disk, and to stay there.
    package func kept(_ range: ByteRange) -> [ByteRange] {
        let doomed = withState { ByteRangeSet($0.doomed.runs(in: range)) }
        return stored(range).flatMap { doomed.gaps(in: $0) }
    }

    /// The runs of `range` that are on the disk.
    func stored(_ range: ByteRange) -> [ByteRange] { isSpilled ? spilled.gaps(in: range) : [range] }

    /// Whether all of `range` is on the disk.
    func isStored(_ range: ByteRange) -> Bool { !isSpilled || stored(range) == [range] }
}
