import CacheCore
import Synchronization

/// A complete response that fits into memory.
struct SmallResponse: Sendable {
    var status: Int
    var headers: HeaderList
    var body: [UInt8]
}

/// Fetches a small response as a whole: an answer of a token endpoint or of an API.
final class SmallRequest: TransferDelegate, ByteSink {
    private struct State {
        var head: UpstreamHead?
        var body: [UInt8] = []
        var end: TransferEnd?
        var waiter: CheckedContinuation<Result<SmallResponse, CacheError>, Never>?
    }

    /// The largest body in bytes.
    static let maxBytes = 1 << 20

    /// Guards the response and the waiter; it resumes once the transfer has ended.
    private let state = Mutex(State())

    private init() {}

    /// Sends the request and waits for the end of the transfer. Cancellation of the task cancels the transfer. Throws
    /// the error of the transfer; each complete response is a result, whatever its status.
    static func send(
        _ request: UpstreamRequest, to upstream: any Upstream
    ) async throws(CacheError) -> SmallResponse {
        let delegate = SmallRequest()
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
        return .store(into: self, limit: nil)
    }

    func progressed(to total: Int64) {}

    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        let fits = state.withLock { state in
            guard state.body.count + bytes.count <= Self.maxBytes else { return false }
            state.body.append(contentsOf: bytes)
            return true
        }
        guard fits else {
            throw CacheError(.upstreamUnusable(), "The response has more than \(Self.maxBytes) bytes.")
        }
    }

    func ended(_ end: TransferEnd) {
        settle { $0.end = end }
    }

    private func wait(_ waiter: CheckedContinuation<Result<SmallResponse, CacheError>, Never>) {
        settle { $0.waiter = waiter }
    }

    /// Applies a change, and resumes the waiter if the transfer has ended.
    private func settle(_ change: (inout State) -> Void) {
        typealias Answer = Result<SmallResponse, CacheError>
        let resumption = state.withLock { state -> (CheckedContinuation<Answer, Never>, Answer)? in
            change(&state)
            guard let end = state.end, let waiter = state.waiter else { return nil }
            state.waiter = nil
            if let error = end.error { return (waiter, .failure(error)) }
            guard let head = state.head else {
                return (waiter, .failure(CacheError(.upstreamProtocol, "The upstream sent no response.")))
            }
            let response = SmallResponse(status: head.status, headers: head.headers, body: state.body)
            return (waiter, .success(response))
        }
        if let (waiter, answer) = resumption { waiter.resume(returning: answer) }
    }
}
