import Foundation

/// Measures processor time in runs of at least a tenth of a second, and prints a table row for each step.
struct Measure {
    private static let turns = 7

    init() { print(Self.row("step", "size", "ns", "spread")) }

    /// One call of `step` performs `operations` of the named operation; prints the median of the runs, and the range.
    func callAsFunction(_ name: String, size: Int, operations: Int = 1, _ step: () -> Void) {
        step()
        var calls = 1
        while time(calls, step) < 100_000_000, calls < 1 << 30 { calls *= 2 }
        let nanoseconds = (0..<Self.turns).map { _ in Double(time(calls, step)) / Double(calls * operations) }.sorted()
        let texts = [nanoseconds[Self.turns / 2], nanoseconds[0], nanoseconds[Self.turns - 1]].map(Self.text)
        print(Self.row(name, "\(size)", texts[0], "\(texts[1]) … \(texts[2])"))
    }

    private func time(_ calls: Int, _ step: () -> Void) -> UInt64 {
        let started = Self.now()
        for _ in 0..<calls { step() }
        return Self.now() - started
    }

    private static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private static func text(_ nanoseconds: Double) -> String {
        nanoseconds < 100 ? String(format: "%.1f", nanoseconds) : String(format: "%.0f", nanoseconds)
    }

    private static func row(_ cells: String...) -> String { "| " + cells.joined(separator: " | ") + " |" }
}
