import CacheCore
import TestChance

/// Deterministic trace with skewed popularity. One request in sixteen is for a key that occurs only once.
struct GeneratedTrace {
    /// The requested keys and their sizes, 1 to 997 bytes.
    var requests: [(segment: SegmentID, bytes: Int64)] = []

    init(count: Int) {
        var random = SeededRandom(seed: 20_260_101)
        var scanned: UInt64 = 10_000
        for _ in 0..<count {
            let word = random.next()
            var key = word >> 44
            if word & 15 == 0 {
                scanned += 1
                key = scanned
            } else {
                let square = (key * key) >> 20
                key = (((square * key) >> 20) * 4000) >> 20
            }
            let segment = SegmentID(asset: AssetID(high: 0, low: key), index: 0)
            requests.append((segment, Int64(key * 7919 % 997 + 1)))
        }
    }
}
