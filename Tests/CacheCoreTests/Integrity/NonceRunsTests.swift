import CacheCore
import TestChance
import Testing

@Suite struct NonceRunsTests {
    /// Random insertions and removals, compared with one nonce per byte in a dictionary.
    @Test("Runs are the nonces of the last insertions")
    func model() {
        for seed in UInt64(1)...40 {
            var random = SeededRandom(seed: seed)
            var (runs, bytes) = (NonceRuns(), [Int64: UInt64]())
            for _ in 0..<60 {
                let start = Int64(random.next() % 200)
                let range = start..<start + Int64(random.next() % 40)
                if random.next() % 3 == 0 {
                    runs.remove(range)
                    for offset in range { bytes[offset] = nil }
                } else {
                    let nonce = random.next() % 3
                    runs.insert(NonceRuns.Run(range: range, nonce: nonce))
                    for offset in range { bytes[offset] = nonce }
                }
                var found: [Int64: UInt64] = [:]
                for run in runs.runs { for offset in run.range { found[offset] = run.nonce } }
                #expect(found == bytes, "seed \(seed)")
                for (run, next) in zip(runs.runs, runs.runs.dropFirst()) {
                    let isJoined = run.range.upperBound == next.range.lowerBound && run.nonce == next.nonce
                    #expect(run.range.upperBound <= next.range.lowerBound && !isJoined, "seed \(seed)")
                }
                let asked = Int64(random.next() % 200)..<Int64(200 + random.next() % 40)
                let covered = runs.runs(in: asked).map(\.range).reduce(Int64(0)) { $0 + $1.length }
                #expect(covered == Int64(bytes.keys.count(where: asked.contains)), "seed \(seed)")
                #expect(covered + runs.gaps(in: asked).reduce(0) { $0 + $1.length } == asked.length, "seed \(seed)")
            }
        }
    }
}
