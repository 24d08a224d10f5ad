/// The available eviction algorithms.
package enum EvictionAlgorithm: String, Hashable, Sendable, ChoiceCodable {
    /// Least recently used.
    case lru
    /// SIEVE, see `SievePolicy`.
    case sieve
    /// S3-FIFO, see `S3FIFOPolicy`.
    case s3fifo
    /// Least frequently used with dynamic aging, see `PriorityPolicy`.
    case lfuda
    /// Greedy-dual-size-frequency, see `PriorityPolicy`.
    case gdsf

    /// An empty policy of this algorithm.
    package func policy(capacityBytes: Int64) -> any EvictionPolicy {
        switch self {
        case .lru: LRUPolicy(capacityBytes: capacityBytes)
        case .sieve: SievePolicy(capacityBytes: capacityBytes)
        case .s3fifo: S3FIFOPolicy(capacityBytes: capacityBytes)
        case .lfuda: PriorityPolicy(capacityBytes: capacityBytes, weight: .reads)
        case .gdsf: PriorityPolicy(capacityBytes: capacityBytes, weight: .readsPerMegabyte)
        }
    }
}
