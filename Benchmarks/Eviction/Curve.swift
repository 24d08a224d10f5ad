import CacheCore
import CacheSimulation
import Foundation

/// The error of estimated miss ratios: from a sample of the segments, and from the access trace of a service
/// (`GET /v1/policy/curve`).
struct CurveCheck {
    private static let tolerance = 1.5
    private static let scales = [0.1, 0.2, 0.5, 1, 2, 4]
    private static let mostMicroseconds = 50.0

    let trace: MediaTrace

    func run() -> Bool {
        print("\n\(trace.name): byte misses (%) of s3fifo at \(Self.scales) × the capacity, exact and sampled")
        let (remembered, isQuick) = remember()
        var areAllNear = true
        for percent in [Int64(1), 10] {
            let capacity = trace.footprint / 100 * percent
            let grid = SegmentGrid(capacity: capacity)
            let share = MissRatioCurve.share(capacityBytes: capacity, grid: grid)
            let exact = ratios(capacity: capacity, grid: grid, share: 1)
            print("\(percent) %, exact:              ", exact.map { $0.rounded(2) })
            let estimates = [
                ("of \((100 * share).rounded(1)) % of segments:", ratios(capacity: capacity, grid: grid, share: share)),
                ("from the access trace:", ratios(of: remembered, capacity: capacity, grid: grid)),
            ]
            for (name, estimate) in estimates {
                let error = zip(exact, estimate).map { abs($0 - $1) }.max() ?? 0
                areAllNear = areAllNear && error <= Self.tolerance
                print(
                    "\(percent) %, \(name)", estimate.map { $0.rounded(2) }, "largest error \(error.rounded(2)),",
                    error <= Self.tolerance ? "at most \(Self.tolerance)" : "NOT within \(Self.tolerance)")
            }
        }
        return areAllNear && isQuick
    }

    private func ratios(capacity: Int64, grid: SegmentGrid, share: Double) -> [Double] {
        var curve = MissRatioCurve(.s3fifo, capacities: capacities(capacity), grid: grid, share: share)
        for read in trace.reads { curve.read(read.run, of: read.asset, at: read.at) }
        return curve.points.map { 100 * $0.byteMissRatio }
    }

    private func ratios(of remembered: ReadTrace, capacity: Int64, grid: SegmentGrid) -> [Double] {
        MissRatioCurve.points(
            of: remembered, since: Timestamp(seconds: 0), under: .s3fifo, capacities: capacities(capacity), grid: grid
        ).map { 100 * $0.byteMissRatio }
    }

    private func capacities(_ capacity: Int64) -> [Int64] { Self.scales.map { Int64(Double(capacity) * $0) } }

    /// The access trace of a service, and whether recording was fast for every read, also after a copy for a simulation.
    ///
    /// The time of each read is the minimum of three runs, which excludes interruptions by the machine.
    private func remember() -> (ReadTrace, isQuick: Bool) {
        var nanoseconds = [UInt64](repeating: .max, count: trace.reads.count)
        var remembered = ReadTrace(epoch: Timestamp(seconds: 0))
        for _ in 0..<3 {
            remembered = ReadTrace(epoch: Timestamp(seconds: 0))
            var copy = remembered
            for (number, read) in trace.reads.enumerated() {
                if number % 1000 == 999 { copy = remembered }
                let started = processorNanoseconds()
                remembered.note(read.run, of: read.asset, at: read.at)
                nanoseconds[number] = min(nanoseconds[number], processorNanoseconds() - started)
            }
            withExtendedLifetime(copy) {}
        }
        let mean = Double(nanoseconds.reduce(0, +)) / 1000 / Double(max(1, nanoseconds.count))
        let longest = Double(nanoseconds.max() ?? 0) / 1000
        print(
            "the access trace has \(remembered.count) reads of \(trace.reads.count),",
            "of \((100 * remembered.share).rounded(1)) % of the chunks;",
            "recording one takes \(mean.rounded(2)) µs, at most \(longest.rounded(1)), limit \(Self.mostMicroseconds)",
            longest <= Self.mostMicroseconds ? "" : "NOT within the limit")
        return (remembered, longest <= Self.mostMicroseconds)
    }

    private func processorNanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
