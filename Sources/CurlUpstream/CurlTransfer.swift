import CacheCore
import Synchronization

/// A transfer as its caller holds it.
final class CurlTransfer: Transfer {
    let ticket: TransferQueue.Ticket
    let request: UpstreamRequest
    let delegate: any TransferDelegate
    private let desk: CurlDesk
    private let cancelled = Atomic(false)

    init(_ request: UpstreamRequest, ticket: TransferQueue.Ticket, delegate: any TransferDelegate, desk: CurlDesk) {
        self.request = request
        self.ticket = ticket
        self.delegate = delegate
        self.desk = desk
    }

    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    /// Scheme, host and port as written: what connections are kept by.
    var host: String {
        request.url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3)
            .joined(separator: "/").lowercased()
    }

    func cancel() {
        // 1. The desk hands the transfer to a worker. 2. We cancel. 3. Our message may reach the worker before the
        // transfer does, and finds nothing. The mark, set first, is what the worker sees when the transfer comes.
        cancelled.store(true, ordering: .releasing)
        desk.cancel(self)
    }

    func promote(to priority: TransferPriority) { desk.promote(self, to: priority) }

    func pause() {}
    func resume() {}
    func shorten(to bytes: Int64) {}
    var stage: TransferStage { .running }
}
