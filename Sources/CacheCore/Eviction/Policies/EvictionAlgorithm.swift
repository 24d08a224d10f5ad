/// The eviction policies there are.
package enum EvictionAlgorithm: String, Hashable, Sendable, CaseIterable {
    case lru
    case sieve
    case s3fifo
    case lfuda
    case gdsf

    /// A policy with nothing in it.
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
