/// Why a segment stands where it does.
package struct SegmentAccount: Hashable, Sendable {
    /// In S3-FIFO.
    package enum Queue: String, Hashable, Sendable, CaseIterable { case small, main }

    package var segment: SegmentID
    package var bytes: Int64
    package var reason: EvictionReason
    /// Of whom there is too much, where that is the reason.
    package var quotaOwner: QuotaOwner?
    package var queue: Queue?
    /// Reads that still count for it.
    package var reads: UInt16
    /// Where the algorithm ranks by it.
    package var priority: Double?
    package var arrivedAt: Timestamp
    /// Nil: never since it came.
    package var lastReadAt: Timestamp?

    package init(
        segment: SegmentID, bytes: Int64, reason: EvictionReason, quotaOwner: QuotaOwner? = nil, queue: Queue?,
        reads: UInt16, priority: Double?, arrivedAt: Timestamp, lastReadAt: Timestamp?
    ) {
        self.segment = segment
        self.bytes = bytes
        self.reason = reason
        self.quotaOwner = quotaOwner
        self.queue = queue
        self.reads = reads
        self.priority = priority
        self.arrivedAt = arrivedAt
        self.lastReadAt = lastReadAt
    }
}

extension SpaceLedger {
    /// How a segment stands; nil where it is not known. `owner`: of whom there is too much.
    package func account(
        of segment: SegmentID, going reason: EvictionReason, from owner: QuotaOwner?
    ) -> SegmentAccount? {
        guard let place = policy.table.place(of: segment) else { return nil }
        let (standing, heat) = (policy.standing(at: place), heats[place])
        return SegmentAccount(
            segment: segment, bytes: policy.table.bytes(at: place),
            reason: owner == nil ? reason : .quota, quotaOwner: owner,
            queue: algorithm == .s3fifo ? (standing.isProven ? .main : .small) : nil, reads: standing.reads,
            priority: standing.priority, arrivedAt: Timestamp(seconds: Int64(heat.arrivedAt)),
            lastReadAt: heat.readAt == 0 ? nil : Timestamp(seconds: Int64(heat.readAt)))
    }

    /// Why room must be made just now: the disk, where it lacks more than the capacity does.
    package func reason(waitingBytes: Int64) -> EvictionReason {
        lack(waitingBytes: waitingBytes).disk > lack(waitingBytes: waitingBytes).capacity ? .freeDisk : .capacity
    }
}
