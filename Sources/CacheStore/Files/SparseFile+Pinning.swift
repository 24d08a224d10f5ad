import CLinux
package import CacheCore

/// Pins a file's descriptor and a range of its bytes for `sendfile`. The descriptor stays open, and the range is not
/// punched, while this object lives.
package final class SendfilePin: Sendable {
    /// Valid while this object lives.
    package let descriptor: Descriptor
    private let file: SparseFile

    /// Registers the range; the caller has borrowed the descriptor with `lend`.
    fileprivate init(_ range: ByteRange, descriptor: Descriptor, of file: SparseFile) {
        self.descriptor = descriptor
        self.file = file
        file.loans.withLock { $0[ObjectIdentifier(self)] = range }
    }

    deinit {
        file.loans.withLock { $0[ObjectIdentifier(self)] = nil }
        file.descriptors.endLoan(file.entry)
    }
}

/// `sendfile` does not copy: the socket refers to pages of the page cache until the client has acknowledged them, and
/// on the same machine until it has read them. If such a page is zeroed, the client receives zeros.
///
/// Punching a hole zeroes only folios (groups of pages that the page cache keeps as one) that the hole covers in part,
/// in place. Folios that it covers completely are dropped from the page cache unchanged. Therefore, for bytes that were
/// sent:
///
/// 1. Whole blocks as large as the largest folio are punched at once.
/// 2. The rest is punched only after the kernel has dropped its pages from the page cache on request. That proves that
///    no socket refers to them.
extension SparseFile {
    /// Size of the blocks. Folios are aligned to their size, so no folio lies in two blocks.
    private static let blockBytes = larder_largest_folio()

    /// Pins the descriptor for sending `range` from the page cache. Nil if that would block, if too many descriptors
    /// are lent, if the file system cannot report when pages are released, or if the bytes are encrypted.
    package func pinForSendfile(_ range: ByteRange) -> SendfilePin? {
        guard cipher == nil, descriptors.tellsReferences, isStored(range), let descriptor = descriptors.lend(entry)
        else { return nil }
        let pin = SendfilePin(range, descriptor: descriptor, of: self)
        // Nil if the lock is held, because a thread waits for the disk under it.
        let isNoted: Void? = withStateIfAvailable { $0.lent.insert(Self.blocks(around: range)) }
        // Checked last: a range that was punched meanwhile is not in the page cache.
        return isNoted != nil && disk.isCached(descriptor, range) ? pin : nil
    }

    /// Records that sockets may refer to any page: an earlier object or a former process may have sent it, and the kernel
    /// goes on sending after the end of a process. Call it before the first use of an opened file.
    func assumeLent() {
        if cipher == nil, descriptors.tellsReferences { withState { $0.lent = ByteRangeSet([0..<1 << 62]) } }
    }

    /// Punches the marked parts of `ranges` that were not written since. Blocks. Call it only after the commit that
    /// removed `ranges` from the row; other marks may belong to a later commit.
    ///
    /// Returns the parts to retry with `punchHeld`, because sockets may still refer to them.
    func punchMarked(in ranges: ByteRangeSet) throws(CacheError) -> ByteRangeSet {
        try punch(\.markedForPunch, in: ranges)
    }

    /// Defers the marked parts of `ranges` that were not written since; returns them. As `punchMarked`, call it only after
    /// the commit that removed `ranges` from the row.
    func holdMarked(in ranges: ByteRangeSet) -> ByteRangeSet {
        withState { state in
            var kept = ByteRangeSet()
            for run in ranges.runs.flatMap({ state.markedForPunch.runs(in: $0) }) {
                state.markedForPunch.remove(run)
                state.held.insert(run)
                kept.insert(run)
            }
            return kept
        }
    }

    /// Retries parts that were deferred, except those that were written since or marked again for a later commit.
    /// Returns the parts to retry.
    func punchHeld(in ranges: ByteRangeSet) throws(CacheError) -> ByteRangeSet { try punch(\.held, in: ranges) }

    /// Punches the ranges under `marks` part by part, and takes the state lock anew for each part. Returns the deferred
    /// parts.
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

    /// Defers the punches of ranges that no row claims, unless the file was written since it was opened; returns whether
    /// it did. They must not be under the marks of removals, whose commits can be pending.
    func holdIfUnwritten(_ ranges: [ByteRange]) -> Bool {
        withState { state in
            guard !state.isWritten else { return false }
            for range in ranges { state.held.insert(range) }
            return true
        }
    }

    /// Punches one part; returns false if some of it was deferred.
    ///
    /// The system calls are made under the state lock, so that they cannot overtake a write of the same bytes: a write
    /// first removes its range from the marks, then writes.
    private func punch(
        _ part: ByteRange, _ marks: WritableKeyPath<State, ByteRangeSet>, _ descriptor: Descriptor
    ) throws(CacheError) -> Bool {
        let outcome: Result<Bool, CacheError> = withState { state in
            var isWhole = true
            for run in state[keyPath: marks].runs(in: part) {
                let block = Self.blocks(around: run)
                let isLent = !state.lent.runs(in: block).isEmpty
                // The mark is removed even if the punch fails: the bytes are not claimed any more, and only disk space
                // is lost.
                state[keyPath: marks].remove(run)
                // A pinned range may not have been sent yet: its pages are not referenced by the socket so far, but
                // they will be.
                let isOnLoan = isLent && loans.withLock { $0.values.contains { $0.overlaps(run) } }
                if isOnLoan || isLent && run != block && !disk.drops(descriptor, run, of: block) {
                    state.held.insert(run)
                    isWhole = false
                    continue
                }
                do throws(CacheError) {
                    try disk.punch(descriptor, run)
                    cipher?.erase(run)
                } catch  where !error.isUnsupported {
                    cipher?.release([run])  // what the file has there is unknown
                    return .failure(error)
                } catch {}  // no hole punching: only the whole file can be deleted (`Store.holes`)
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

    /// Splits a range into the part before the first block boundary, the whole blocks, and the rest.
    private static func parts(of run: ByteRange) -> [ByteRange] {
        let first = blocks(around: run.lowerBound..<run.lowerBound + 1)
        let last = blocks(around: run.upperBound - 1..<run.upperBound)
        let begin = first.lowerBound == run.lowerBound ? run.lowerBound : min(first.upperBound, run.upperBound)
        let end = last.upperBound == run.upperBound ? run.upperBound : max(last.lowerBound, begin)
        return [run.lowerBound..<begin, begin..<end, end..<run.upperBound].filter { !$0.isEmpty }
    }
}
