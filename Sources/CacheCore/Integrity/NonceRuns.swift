/// The nonces with which the ranges of an encrypted file were written, as sorted, disjoint runs. Adjacent runs have
/// different nonces.
package struct NonceRuns: Hashable, Sendable {
    /// A range that was written with one nonce.
    package struct Run: Hashable, Sendable {
        package var range: ByteRange
        package var nonce: UInt64

        package init(range: ByteRange, nonce: UInt64) {
            self.range = range
            self.nonce = nonce
        }
    }

    /// The runs in ascending order.
    package private(set) var runs: [Run] = []

    package init() {}

    package init(_ runs: some Sequence<Run>) {
        for run in runs { insert(run) }
    }

    /// Adds a run, and replaces the parts of others that it overlaps.
    package mutating func insert(_ run: Run) {
        guard !run.range.isEmpty else { return }
        if let last = runs.last, last.nonce == run.nonce, last.range.upperBound == run.range.lowerBound {
            runs[runs.count - 1].range = last.range.lowerBound..<run.range.upperBound  // a fill that continues
            return
        }
        remove(run.range)
        var (run, place) = (run, first { $0.range.lowerBound >= run.range.upperBound })
        if place < runs.count, runs[place].nonce == run.nonce, runs[place].range.lowerBound == run.range.upperBound {
            run.range = run.range.lowerBound..<runs[place].range.upperBound
            runs.remove(at: place)
        }
        if place > 0, runs[place - 1].nonce == run.nonce, runs[place - 1].range.upperBound == run.range.lowerBound {
            place -= 1
            run.range = runs[place].range.lowerBound..<run.range.upperBound
            runs.remove(at: place)
        }
        runs.insert(run, at: place)
    }

    /// Removes a range; runs that extend beyond it are split.
    package mutating func remove(_ range: ByteRange) {
        let touched = places(touching: range)
        guard !touched.isEmpty else { return }
        let rests = runs[touched].flatMap { run in
            ByteRangeSet([range]).gaps(in: run.range).map { Run(range: $0, nonce: run.nonce) }
        }
        runs.replaceSubrange(touched, with: rests)
    }

    /// The runs inside `range`, clamped to it.
    package func runs(in range: ByteRange) -> [Run] {
        runs[places(touching: range)].map { Run(range: $0.range.clamped(to: range), nonce: $0.nonce) }
    }

    /// The parts of `range` without a nonce.
    package func gaps(in range: ByteRange) -> [ByteRange] {
        ByteRangeSet(runs[places(touching: range)].map(\.range)).gaps(in: range)
    }

    /// The indices of the runs that overlap `range`.
    private func places(touching range: ByteRange) -> Range<Int> {
        guard !range.isEmpty else { return 0..<0 }
        let start = first { $0.range.upperBound > range.lowerBound }
        return start..<max(start, first { $0.range.lowerBound >= range.upperBound })
    }

    /// The index of the first run where `holds` is true, by binary search; `holds` must be monotonic.
    private func first(where holds: (Run) -> Bool) -> Int {
        var (low, high) = (0, runs.count)
        while low < high {
            let middle = (low + high) / 2
            if holds(runs[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
