import CacheCore
import CacheSimulation

/// Exact miss counts on a published trace.
struct GoldenCheck {
    private struct Variant {
        let name: String
        let misses: [Int64]
        let policy: (_ capacityBytes: Int64) -> any EvictionPolicy
    }

    private let rows: [[Int64]]
    private let capacities: [Int64] = [128, 256, 512, 1024].map { $0 << 20 }
    private let variants = [
        Variant(name: "LRU", misses: [93374, 89783, 81722, 71704]) { LRUPolicy(capacityBytes: $0) },
        Variant(name: "SIEVE", misses: [91699, 86720, 76707, 64376]) { SievePolicy(capacityBytes: $0) },
        Variant(name: "S3-FIFO", misses: [90117, 80915, 72191, 56045]) { S3FIFOPolicy(capacityBytes: $0) },
        Variant(name: "S3-FIFO, starts cold", misses: [89307, 82387, 76791, 70355]) {
            S3FIFOPolicy(capacityBytes: $0, rules: .init(startsWarm: false))
        },
        Variant(name: "S3-FIFO, starts cold, one read", misses: [88746, 80630, 71638, 64417]) {
            S3FIFOPolicy(capacityBytes: $0, rules: .init(promotionReads: 1, startsWarm: false))
        },
        Variant(name: "GDSF", misses: [89068, 84750, 70488, 58721]) {
            PriorityPolicy(capacityBytes: $0, weight: .readsPerMegabyte)
        },
    ]

    /// Reads `cloudPhysicsIO.csv.gz` (time,key,bytes).
    init(folder: String) throws { rows = try NumberTable(unpacking: folder + "/cloudPhysicsIO.csv.gz").rows }

    func run() -> Bool {
        print("\ncloudPhysicsIO: misses of \(rows.count) at 128, 256, 512, 1024 MiB")
        var areAllExact = true
        for variant in variants {
            let misses = capacities.map { missCount(of: variant.policy($0)) }
            areAllExact = areAllExact && misses == variant.misses
            print(padded(variant.name, 32), misses, misses == variant.misses ? "exact" : "NOT \(variant.misses)")
        }
        return areAllExact
    }

    private func missCount(of policy: any EvictionPolicy) -> Int64 {
        var cache = PolicySimulation(policy: policy)
        for row in rows {
            let asset = AssetID(high: 0, low: UInt64(bitPattern: row[1]))
            _ = cache.read(SegmentID(asset: asset, index: 0), bytes: row[2])
        }
        return cache.tally.requests - cache.tally.hits
    }
}
