/// Explains one eviction candidate: its size, reason and rank.
package struct SegmentAccount: Hashable, Sendable {
    /// The queue of S3-FIFO that holds the segment.
    package enum Queue: String, Hashable, Sendable, CaseIterable { case small, main }

    package var segment: SegmentID
    /// Bytes of the segment on disk.
    package var bytes: Int64
    package var reason: EvictionReason
    /// The owner above its maximum, if `reason` is `.quota`.
    package var quotaOwner: QuotaOwner?
    /// Nil for algorithms other than S3-FIFO.
    package var queue: Queue?
    /// The reads that the policy still counts.
    package var reads: UInt16
    /// The priority; nil for algorithms that do not rank by priority.
    package var priority: Double?
    package var arrivedAt: Timestamp
    /// Nil: not read since it arrived.
    package var lastReadAt: Timestamp?
}

extension SpaceLedger {
    /// The account of a segment that would be evicted for `reason`; nil if the policy does not know it. `owner`: the
    /// owner above its maximum, which makes the reason `.quota`.
    package func account(
        of segment: SegmentID, going reason: EvictionReason, from owner: QuotaOwner?
    ) -> SegmentAccount? {
        guard let slot = policy.table.slot(of: segment) else { return nil }
        let (entry, stats) = (policy.entry(at: slot), stats[slot])
        return SegmentAccount(
            segment: segment, bytes: policy.table.bytes(at: slot),
            reason: owner == nil ? reason : .quota, quotaOwner: owner,
            queue: algorithm == .s3fifo ? (entry.isProven ? .main : .small) : nil, reads: entry.reads,
            priority: entry.priority, arrivedAt: Timestamp(seconds: Int64(stats.arrivedAt)),
            lastReadAt: stats.readAt == 0 ? nil : Timestamp(seconds: Int64(stats.readAt)))
    }

    /// The reason for an eviction now: `.freeDisk` if the disk lacks more than the capacity does.
    package func reason(waitingBytes: Int64) -> EvictionReason {
        lack(waitingBytes: waitingBytes).disk > lack(waitingBytes: waitingBytes).capacity ? .freeDisk : .capacity
    }
}
