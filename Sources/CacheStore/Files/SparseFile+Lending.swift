import CLinux
package import CacheCore
import Synchronization

/// A file's descriptor, to send bytes from; it is not closed as long as this lives.
package final class FileLoan: Sendable {
    package let descriptor: Descriptor
    private let file: SparseFile

    fileprivate init(_ range: ByteRange, descriptor: Descriptor, of file: SparseFile) {
        self.descriptor = descriptor
        self.file = file
        file.loans.withLock { $0[ObjectIdentifier(self)] = range }
    }

    deinit {
        file.loans.withLock { $0[ObjectIdentifier(self)] = nil }
        file.shelf.takeBack(file.place)
    }
}

/// What `sendfile` takes from a file is no copy: the socket refers to pages of the page cache until the client has them, and
/// on the same machine until it has read them. Whoever clears such a page sends zeros.
///
/// A hole is made by clearing. What it covers whole leaves the page cache untouched, and only a folio (some pages that are
/// kept as one) that it covers in part is cleared in place. So of bytes that were lent, whole blocks as large as the largest
/// folio go at once; of what is left beside them nothing goes until the kernel has proved that nobody refers to it: it then
/// drops it from the page cache when asked.
extension SparseFile {
    /// Folios lie at multiples of their size: none is in two blocks.
    private static let blockBytes = larder_largest_folio()

    /// The descriptor, to send the bytes of `range` from the page cache, with a lease on them until they have left; nil
    /// where that would mean waiting, where too many are lent already, or where nobody could tell when they are given back.
    package func lendNow(_ range: ByteRange) -> FileLoan? {
        guard shelf.tellsReferences, isStored(range), let descriptor = shelf.lend(place) else { return nil }
        let loan = FileLoan(range, descriptor: descriptor, of: self)
        // Not available: somebody waits for the disk under it.
        let isNoted: Void? = withStateIfAvailable { $0.lent.insert(Self.blocks(around: range)) }
        // Looked at last: of what has become a hole meanwhile nothing is cached.
        return isNoted != nil && disk.isCached(descriptor, range) ? loan : nil
    }

    /// Makes holes of what is marked in `ranges` and was not written since; blocks. Only after the catalog has given
    /// `ranges` up: others may be marked for a later commit.
    ///
    /// Answers what is to be tried again, because it may still be on its way to clients.
    func punchDoomed(in ranges: ByteRangeSet) throws(CacheError) -> ByteRangeSet { try punch(\.doomed, in: ranges) }

    /// Tries again what `punchDoomed` answered, as far as it was not written since, or is not marked anew for a commit that is
    /// still to come.
    func punchHeld(in ranges: ByteRangeSet) throws(CacheError) -> ByteRangeSet { try punch(\.held, in: ranges) }

    private func punch(
        _ marks: WritableKeyPath<State, ByteRangeSet>, in ranges: ByteRangeSet
    ) throws(CacheError) -> ByteRangeSet {
        try withDescriptor { descriptor throws(CacheError) in
            var kept = ByteRangeSet()
            for range in ranges.runs {
                for run in withState({ $0[keyPath: marks].runs(in: range) }) {
                    for part in Self.parts(of: run) where try !punch(part, marks, descriptor) { kept.insert(part) }
                }
            }
            return kept
        }
    }

    /// Marks runs as `doom` does, if nothing was ever written since the file was opened; answers whether it did.
    func doomIfUnwritten(_ ranges: [ByteRange]) -> Bool {
        withState { state in
            guard !state.isWritten else { return false }
            for range in ranges { state.doomed.insert(range) }
            return true
        }
    }

    /// Answers whether it is done with.
    ///
    /// The system calls are made inside the lock, so that they cannot overtake a write to the same bytes: a write first
    /// takes its bytes off the mark, then touches the file.
    private func punch(
        _ part: ByteRange, _ marks: WritableKeyPath<State, ByteRangeSet>, _ descriptor: Descriptor
    ) throws(CacheError) -> Bool {
        let outcome: Result<Bool, CacheError> = withState { state in
            var isWhole = true
            for run in state[keyPath: marks].runs(in: part) {
                let block = Self.blocks(around: run)
                let isLent = !state.lent.runs(in: block).isEmpty
                // Off the mark even where punching fails: the bytes are unclaimed, and only their space is lost.
                state[keyPath: marks].remove(run)
                // Of what is lent the kernel may still have to take the pages.
                let isOnLoan = isLent && loans.withLock { $0.values.contains { $0.overlaps(run) } }
                if isOnLoan || isLent && run != block && !disk.drops(descriptor, run, of: block) {
                    state.held.insert(run)
                    isWhole = false
                    continue
                }
                do throws(CacheError) {
                    try disk.punch(descriptor, run)
                } catch  where !error.isUnsupported {
                    return .failure(error)
                } catch {}  // only the whole file can give its space back: `Store.holes`
                if isLent, run == block { state.lent.remove(block) }
            }
            return .success(isWhole)
        }
        return try outcome.get()
    }

    /// The blocks that share bytes with `range`.
    private static func blocks(around range: ByteRange) -> ByteRange {
        let first = range.lowerBound / blockBytes * blockBytes
        let end = ((range.upperBound - 1) / blockBytes + 1).multipliedReportingOverflow(by: blockBytes)
        return first..<(end.overflow ? Int64.max : end.partialValue)
    }

    /// The run's beginning, up to where a block begins; its whole blocks; its end.
    private static func parts(of run: ByteRange) -> [ByteRange] {
        let first = blocks(around: run.lowerBound..<run.lowerBound + 1)
        let last = blocks(around: run.upperBound - 1..<run.upperBound)
        let begin = first.lowerBound == run.lowerBound ? run.lowerBound : min(first.upperBound, run.upperBound)
        let end = last.upperBound == run.upperBound ? run.upperBound : max(last.lowerBound, begin)
        return [run.lowerBound..<begin, begin..<end, end..<run.upperBound].filter { !$0.isEmpty }
    }
}
