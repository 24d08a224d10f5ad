import CacheCore

/// Holes that are still to be made, because clients may be on the way to be sent what was there: tried again with later
/// commits, at first with each, then more and more rarely. Those of a file that is gone are forgotten.
struct HeldHoles {
    private struct Hold {
        weak var file: SparseFile?
        var ranges: ByteRangeSet
        var tries: Int
        /// The commit it is tried with next.
        var turn: UInt64
    }

    private var holds: [Hold] = []
    private var commit: UInt64 = 0
    /// Commits between two tries, at most: about a minute.
    private static let longest: UInt64 = 32

    var isEmpty: Bool { holds.isEmpty }

    /// Makes the holes of `file` in `ranges`, or keeps them.
    mutating func punch(_ file: SparseFile, _ ranges: ByteRangeSet) throws(CacheError) {
        try punch(Hold(file: file, ranges: ranges, tries: 0, turn: 0))
    }

    /// Another commit was made: tries again what is due. Answers how many bytes of which files that gave back to the disk,
    /// and the first failure; none stops the others.
    mutating func tryAgain() -> (freed: [(file: FileName, bytes: Int64)], failure: CacheError?) {
        commit += 1
        let due = holds.filter { $0.turn <= commit }
        holds.removeAll { $0.turn <= commit }
        var (freed, failure): ([(file: FileName, bytes: Int64)], CacheError?) = ([], nil)
        for hold in due {
            guard let file = hold.file, let name = file.name else { continue }
            do throws(CacheError) {
                let before = try file.diskBytes()
                try punch(hold)
                freed.append((name, before - (try file.diskBytes())))
            } catch {
                failure = failure ?? error
            }
        }
        return (freed, failure)
    }

    private mutating func punch(_ hold: Hold) throws(CacheError) {
        guard let file = hold.file else { return }
        let kept = hold.tries == 0 ? try file.punchDoomed(in: hold.ranges) : try file.punchHeld(in: hold.ranges)
        guard !kept.isEmpty else { return }
        let turn = commit + min(1 << UInt64(min(hold.tries, 16)), Self.longest)
        holds.append(Hold(file: hold.file, ranges: kept, tries: hold.tries + 1, turn: turn))
    }
}
