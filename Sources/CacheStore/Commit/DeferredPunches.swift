import CacheCore

/// Punches that had to be deferred because sockets may still refer to the bytes (`SendfilePin`), or because a former
/// process may still read them. They are retried with later commits, with exponential backoff. Entries of closed files
/// are dropped.
struct DeferredPunches {
    /// One deferred punch.
    private struct Hold {
        weak var file: SparseFile?
        var ranges: ByteRangeSet
        /// Number of attempts so far.
        var tries: Int
        /// Number of the commit with the next attempt.
        var turn: UInt64
    }

    private var holds: [Hold] = []
    /// Number of commits so far.
    private var commit: UInt64 = 0
    /// Maximum number of commits between two attempts: about 16 s. The kernel writes pages, which it can then drop, after
    /// half a minute.
    private static let longest: UInt64 = 8

    var isEmpty: Bool { holds.isEmpty }

    /// Punches `ranges` of `file`; defers the parts that are still in use, or all if former processes read.
    mutating func punch(_ file: SparseFile, _ ranges: ByteRangeSet, isReadByFormer: Bool) throws(CacheError) {
        guard !isReadByFormer else {
            return holds.append(Hold(file: file, ranges: file.holdMarked(in: ranges), tries: 1, turn: 0))
        }
        try punch(Hold(file: file, ranges: ranges, tries: 0, turn: 0))
    }

    /// Counts a commit and retries the entries that are due, unless former processes read. Returns the bytes that each
    /// file returned to the disk, and the first failure. A failure does not stop the other entries.
    mutating func tryAgain(
        isReadByFormer: Bool
    ) -> (freed: [(file: FileName, bytes: Int64)], failure: CacheError?) {
        guard !isReadByFormer else { return ([], nil) }
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

    /// Makes one attempt. The first one uses the marks of `markForPunch`, later ones the ranges held back by it.
    private mutating func punch(_ hold: Hold) throws(CacheError) {
        guard let file = hold.file else { return }
        let kept = hold.tries == 0 ? try file.punchMarked(in: hold.ranges) : try file.punchHeld(in: hold.ranges)
        guard !kept.isEmpty else { return }
        let turn = commit + min(1 << UInt64(min(hold.tries, 16)), Self.longest)
        holds.append(Hold(file: hold.file, ranges: kept, tries: hold.tries + 1, turn: turn))
    }
}
