import CacheCore
import Synchronization

/// Handle of a transfer, shared by its owner, the scheduler and its worker. Thread-safe.
///
/// The desired state (cancelled, allowance, length, yield) is stored here in atomics; a message only asks the worker to
/// read it. The order matters:
/// 1. The scheduler assigns the transfer to a worker.
/// 2. The owner changes the desired state and posts a message.
/// 3. The message may arrive before the transfer does, and then has no effect.
/// 4. The change was stored before the message was posted, so the worker reads it when the transfer arrives.
final class CurlTransfer: Transfer {
    let ticket: TransferQueue.Ticket
    let request: UpstreamRequest
    let delegate: any TransferDelegate
    /// Scheme, host and port as written: the key of connection reuse.
    let host: String
    private let scheduler: TransferScheduler
    private static let stages: [TransferStage] = [.queued, .running, .paused]
    /// Set once by the owner.
    private let cancelled = Atomic(false)
    /// Bytes of the body that may be stored; `.max`: no limit was set.
    private let allowance = Atomic(Int64.max)
    /// Set by the scheduler, reset by the worker.
    private let yields = Atomic(false)
    /// Wanted length of the body in bytes; it only decreases.
    private let length = Atomic(Int64.max)
    /// Index into `stages`.
    private let stageNow = Atomic(0)

    init(
        _ request: UpstreamRequest, ticket: TransferQueue.Ticket, delegate: any TransferDelegate,
        scheduler: TransferScheduler
    ) {
        self.request = request
        self.ticket = ticket
        self.delegate = delegate
        self.scheduler = scheduler
        host = UpstreamURL.address(of: request.url)
    }

    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    /// Bytes of the body that may be stored before the transfer pauses.
    var allowedLength: Int64 { allowance.load(ordering: .acquiring) }

    /// The scheduler requests the transfer's permit.
    func yield() { yields.store(true, ordering: .releasing) }

    /// Whether the scheduler has requested the permit. Resets the request.
    func takeYield() -> Bool { yields.exchange(false, ordering: .acquiringAndReleasing) }

    /// The wanted length of the body in bytes; `.max`: all.
    var wantedLength: Int64 { length.load(ordering: .acquiring) }

    var stage: TransferStage { Self.stages[stageNow.load(ordering: .relaxed)] }

    /// Sets the stage; called by the scheduler under its lock.
    func enter(_ stage: TransferStage) {
        stageNow.store(Self.stages.firstIndex(of: stage) ?? 0, ordering: .relaxed)
    }

    func cancel() {
        cancelled.store(true, ordering: .releasing)
        scheduler.cancel(self)
    }

    func promote(to priority: TransferPriority) { scheduler.promote(self, to: priority) }

    func allow(upTo bytes: Int64) {
        allowance.store(bytes, ordering: .releasing)
        scheduler.steer(self)
    }

    /// Sets the allowance of the delegate's verdict, unless the owner has set one: the owner's is newer.
    func begin(allowance bytes: Int64) {
        _ = allowance.compareExchange(expected: .max, desired: bytes, ordering: .acquiringAndReleasing)
    }

    func shorten(to bytes: Int64) {
        length.min(bytes, ordering: .releasing)
        scheduler.steer(self)
    }
}
