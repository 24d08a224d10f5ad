import CacheCore
import CacheSimulation

/// The loss of byte hits by a restart half way through a trace, after which a policy has only its persisted state.
struct RestartCheck {
    private static let tolerance = 0.5
    /// For an algorithm with completely persisted state.
    private static let wholeTolerance = 0.05

    let trace: MediaTrace

    func run() -> Bool {
        print(
            "\n\(trace.name), cut in half: byte hits of the second half (%); a restart may cost \(Self.tolerance),",
            "with lru and sieve \(Self.wholeTolerance)")
        var isCheap = true
        for permille in [Int64(10), 100] {
            let capacity = trace.footprint / 1000 * permille
            for algorithm in EvictionAlgorithm.allCases {
                let without = ratio(algorithm, capacity, isCut: false)
                let with = ratio(algorithm, capacity, isCut: true)
                let isWhole = algorithm == .sieve || algorithm == .lru
                let isNear = without - with <= (isWhole ? Self.wholeTolerance : Self.tolerance)
                isCheap = isCheap && isNear
                print(
                    padded("\(algorithm.rawValue), \(Double(permille) / 10) %", 20),
                    "without \(without.rounded(2))  with \(with.rounded(2))",
                    isNear ? "" : "NOT within the limit")
            }
        }
        return isCheap
    }

    private func ratio(_ algorithm: EvictionAlgorithm, _ capacity: Int64, isCut: Bool) -> Double {
        var cache = PolicySimulation(policy: algorithm.policy(capacityBytes: capacity))
        let half = trace.reads.count / 2
        for read in trace.reads[..<half] { cache.read(read.run, of: read.asset, at: read.at) }
        let first = cache.tally
        if isCut { cache.restart(under: algorithm.policy(capacityBytes: capacity)) }
        for read in trace.reads[half...] { cache.read(read.run, of: read.asset, at: read.at) }
        let bytes = cache.tally.bytes - first.bytes
        return 100 * Double(cache.tally.hitBytes - first.hitBytes) / Double(max(1, bytes))
    }
}
