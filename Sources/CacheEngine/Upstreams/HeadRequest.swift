import CacheCore
import Synchronization

/// Fetches the head of a response and nothing of its body.
final class HeadRequest: TransferDelegate {
    typealias Answer = Result<UpstreamHead, ProbeFailure>

    private struct State {
        var head: UpstreamHead?
        var end: TransferEnd?
        var waiter: CheckedContinuation<Answer, Never>?
    }

    /// Guards the head, the end and the waiter; it resumes once the transfer has ended.
    private let state = Mutex(State())

    private init() {}

    /// Sends the request and waits for the end of the transfer. Cancellation of the task cancels the transfer.
    static func head(
        of request: UpstreamRequest, from upstream: any Upstream
    ) async throws(ProbeFailure) -> UpstreamHead {
        let delegate = HeadRequest()
        let transfer = upstream.start(request, delivering: delegate)
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { delegate.wait($0) }
        } onCancel: {
            transfer.cancel()
        }
        return try answer.get()
    }

    func began(_ head: UpstreamHead) -> HeadVerdict {
        state.withLock { $0.head = head }
        return .enough
    }

    func progressed(to total: Int64) {}

    func ended(_ end: TransferEnd) {
        settle { $0.end = end }
    }

    private func wait(_ waiter: CheckedContinuation<Answer, Never>) {
        settle { $0.waiter = waiter }
    }

    /// Applies a change, and resumes the waiter if the transfer has ended.
    private func settle(_ change: (inout State) -> Void) {
        let resumption = state.withLock { state -> (CheckedContinuation<Answer, Never>, Answer)? in
            change(&state)
            guard let end = state.end, let waiter = state.waiter else { return nil }
            state.waiter = nil
            if var head = state.head {
                head.timings = end.timings
                return (waiter, .success(head))
            }
            let error = end.error ?? CacheError(.upstreamProtocol, "The upstream sent no response.")
            return (waiter, .failure(ProbeFailure(error: error, timings: end.timings)))
        }
        if let (waiter, answer) = resumption { waiter.resume(returning: answer) }
    }
}
