import CacheCore
import Synchronization

/// A transfer as its caller holds it.
///
/// What the caller wishes of it is kept here and told to the worker by a letter. 1. The desk hands the transfer to a worker.
/// 2. The caller wishes. 3. The letter may reach the worker before the transfer does, and finds nothing. The wish, noted
/// before the letter is posted, is what the worker sees when the transfer comes.
final class CurlTransfer: Transfer {
    let ticket: TransferQueue.Ticket
    let request: UpstreamRequest
    let delegate: any TransferDelegate
    /// Scheme, host and port as written: what connections are kept by.
    let host: String
    private let desk: CurlDesk
    private static let stages: [TransferStage] = [.queued, .running, .paused]
    private let cancelled = Atomic(false)
    private let allowance = Atomic(Int64.max)
    private let yields = Atomic(false)
    private let length = Atomic(Int64.max)
    private let stageNow = Atomic(0)

    init(_ request: UpstreamRequest, ticket: TransferQueue.Ticket, delegate: any TransferDelegate, desk: CurlDesk) {
        self.request = request
        self.ticket = ticket
        self.delegate = delegate
        self.desk = desk
        host = UpstreamURL.address(of: request.url)
    }

    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    /// How many bytes of the body it may store before it pauses.
    var allowedLength: Int64 { allowance.load(ordering: .acquiring) }

    /// The desk asks for its place.
    func yield() { yields.store(true, ordering: .releasing) }

    /// Whether its place was asked for; asks once.
    func takeYield() -> Bool { yields.exchange(false, ordering: .acquiringAndReleasing) }

    /// How much of the body is wanted still.
    var wantedLength: Int64 { length.load(ordering: .acquiring) }

    var stage: TransferStage { Self.stages[stageNow.load(ordering: .relaxed)] }

    /// The desk says where the transfer stands.
    func enter(_ stage: TransferStage) {
        stageNow.store(Self.stages.firstIndex(of: stage) ?? 0, ordering: .relaxed)
    }

    func cancel() {
        cancelled.store(true, ordering: .releasing)
        desk.cancel(self)
    }

    func promote(to priority: TransferPriority) { desk.promote(self, to: priority) }

    func allow(upTo bytes: Int64) {
        allowance.store(bytes, ordering: .releasing)
        desk.steer(self)
    }

    /// Sets the allowance of the verdict, unless the caller has set one: that is newer.
    func begin(allowance bytes: Int64) {
        _ = allowance.compareExchange(expected: .max, desired: bytes, ordering: .acquiringAndReleasing)
    }

    func shorten(to bytes: Int64) {
        length.min(bytes, ordering: .releasing)
        desk.steer(self)
    }
}
