/// A set of bytes as sorted, disjoint runs that do not touch: the extents of an asset, or its gaps.
///
/// Look-ups are O(log n) in the number of runs. Changes are O(log n + k) for k replaced runs, plus the move of the
/// array's tail.
package struct ByteRangeSet: Hashable, Sendable {
    /// The runs in ascending order. No run is empty, and no two touch.
    package private(set) var runs: [ByteRange] = []
    /// The number of bytes in all runs.
    package private(set) var byteCount: Int64 = 0

    package init() {}

    package init(_ runs: some Sequence<ByteRange>) {
        for run in runs { insert(run) }
    }

    package var isEmpty: Bool { runs.isEmpty }

    /// Adds the bytes of `range`, and returns the number of new ones.
    @discardableResult
    package mutating func insert(_ range: ByteRange) -> Int64 {
        guard !range.isEmpty else { return 0 }
        if let last = runs.last, last.upperBound == range.lowerBound {  // a fill that continues: the common case
            runs[runs.count - 1] = last.lowerBound..<range.upperBound
            byteCount += range.length
            return range.length
        }
        let first = firstRun { $0.upperBound >= range.lowerBound }
        if first < runs.count, runs[first].lowerBound <= range.lowerBound, range.upperBound <= runs[first].upperBound {
            return 0
        }
        let end = firstRun(from: first) { $0.lowerBound > range.upperBound }
        guard first < end else {
            runs.insert(range, at: first)
            byteCount += range.length
            return range.length
        }
        let merged =
            min(range.lowerBound, runs[first].lowerBound)..<max(range.upperBound, runs[end - 1].upperBound)
        let replaced = runs[first..<end].byteCount
        runs.replaceSubrange(first..<end, with: CollectionOfOne(merged))
        byteCount += merged.length - replaced
        return merged.length - replaced
    }

    /// Removes the bytes of `range`, and returns the number of bytes that were in the set.
    @discardableResult
    package mutating func remove(_ range: ByteRange) -> Int64 {
        guard !range.isEmpty else { return 0 }
        let first = firstRun { $0.upperBound > range.lowerBound }
        let end = firstRun(from: first) { $0.lowerBound >= range.upperBound }
        guard first < end else { return 0 }
        var kept: [ByteRange] = []
        if runs[first].lowerBound < range.lowerBound { kept.append(runs[first].lowerBound..<range.lowerBound) }
        if runs[end - 1].upperBound > range.upperBound { kept.append(range.upperBound..<runs[end - 1].upperBound) }
        let before = runs[first..<end].byteCount
        let after = kept.byteCount
        runs.replaceSubrange(first..<end, with: kept)
        byteCount -= before - after
        return before - after
    }

    /// The run that contains the byte at `offset`; nil if the byte is not in the set.
    package func run(containing offset: Int64) -> ByteRange? {
        let index = firstRun { $0.upperBound > offset }
        return index < runs.count && runs[index].lowerBound <= offset ? runs[index] : nil
    }

    /// The first run that begins at or behind `offset`; nil if there is none.
    package func run(startingFrom offset: Int64) -> ByteRange? {
        let index = firstRun { $0.lowerBound >= offset }
        return index < runs.count ? runs[index] : nil
    }

    /// Whether all bytes of `range` are in the set; true for an empty range.
    package func contains(_ range: ByteRange) -> Bool {
        range.isEmpty || (run(containing: range.lowerBound).map { $0.upperBound >= range.upperBound } ?? false)
    }

    /// The runs of the set inside `range`, clamped to it.
    package func runs(in range: ByteRange) -> [ByteRange] {
        guard !range.isEmpty else { return [] }
        let first = firstRun { $0.upperBound > range.lowerBound }
        let end = firstRun(from: first) { $0.lowerBound >= range.upperBound }
        return runs[first..<end].map { $0.clamped(to: range) }
    }

    /// The runs of `range` that are not in the set.
    package func gaps(in range: ByteRange) -> [ByteRange] {
        var gaps: [ByteRange] = []
        var next = range.lowerBound
        for run in runs(in: range) {
            if run.lowerBound > next { gaps.append(next..<run.lowerBound) }
            next = run.upperBound
        }
        if next < range.upperBound { gaps.append(next..<range.upperBound) }
        return gaps
    }

    /// The number of bytes of `range` that are in the set.
    package func byteCount(in range: ByteRange) -> Int64 {
        runs(in: range).byteCount
    }

    /// The index of the first run from `start` on where `holds` is true, by binary search; `holds` must be
    /// monotonic.
    private func firstRun(from start: Int = 0, where holds: (ByteRange) -> Bool) -> Int {
        var low = start
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if holds(runs[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
