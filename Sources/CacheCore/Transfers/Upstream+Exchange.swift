/// A complete response whose body is in memory.
package struct UpstreamResponse: Sendable {
    /// Its timings are those of the whole transfer.
    package var head: UpstreamHead
    package var body: [UInt8]

    package var status: Int { head.status }
    package var headers: HeaderList { head.headers }
    package var timings: TransferTimings { head.timings }

    package init(head: UpstreamHead, body: [UInt8] = []) {
        self.head = head
        self.body = body
    }
}

extension UpstreamResponse: CustomStringConvertible {
    /// Without fields and body; they can contain secrets.
    package var description: String { "status \(status)" }
}

/// A request for a response head that failed: the error, and the timings up to it.
package struct ProbeFailure: Error, Sendable {
    package var error: CacheError
    package var timings: TransferTimings

    package init(error: CacheError, timings: TransferTimings = .init()) {
        self.error = error
        self.timings = timings
    }
}

extension Upstream {
    /// Sends the request and waits for the whole response, whatever its status. Cancellation of the task cancels the
    /// transfer.
    ///
    /// Throws the error of the transfer, and `.upstreamUnusable` if the body has more than `bodyLimit` bytes.
    package func exchange(
        _ request: UpstreamRequest, bodyLimit: Int
    ) async throws(CacheError) -> UpstreamResponse {
        let outcome = await outcome(of: request, bodyLimit: bodyLimit)
        if let error = outcome.end.error { throw error }
        guard let head = outcome.head else { throw outcome.missingResponse }
        return UpstreamResponse(head: head, body: outcome.body)
    }

    /// Sends the request and waits for the head of the response, whatever its status; its timings are those of the
    /// whole transfer. The body is not read. Cancellation of the task cancels the transfer.
    package func head(of request: UpstreamRequest) async throws(ProbeFailure) -> UpstreamHead {
        let outcome = await outcome(of: request, bodyLimit: nil)
        guard let head = outcome.head else {
            throw ProbeFailure(error: outcome.missingResponse, timings: outcome.end.timings)
        }
        return head
    }

    /// Sends the request and waits for the end of the transfer. Cancellation of the task cancels the transfer.
    ///
    /// - Parameter bodyLimit: The largest body in bytes; a larger one ends the transfer with an error. Nil: the body is
    ///   not read.
    package func outcome(of request: UpstreamRequest, bodyLimit: Int?) async -> BufferedExchange.Outcome {
        let exchange = BufferedExchange(bodyLimit: bodyLimit)
        let transfer = start(request, delivering: exchange)
        return await withTaskCancellationHandler {
            await exchange.outcome()
        } onCancel: {
            transfer.cancel()
        }
    }
}

/// Collects the response of one transfer in memory, and reports it when the transfer has ended.
package final class BufferedExchange: TransferDelegate, ByteSink {
    /// The result of the transfer.
    package struct Outcome: Sendable {
        /// Nil if the transfer ended before the head. Its timings are those of the whole transfer.
        package var head: UpstreamHead?
        package var body: [UInt8]
        package var end: TransferEnd

        /// The error of a transfer without a head.
        package var missingResponse: CacheError {
            end.error ?? CacheError(.upstreamProtocol, "The upstream sent no response.")
        }
    }

    private struct State {
        var head: UpstreamHead?
        var body: [UInt8] = []
        var end: TransferEnd?
        var report: (@Sendable (Outcome) -> Void)?
    }

    /// The largest body in bytes; nil: the body is not read.
    private let bodyLimit: Int?
    /// Guards the response and the report.
    private let state = OrderedMutex(.leaf, State())

    /// `bodyLimit`: the largest body in bytes; nil: the body is not read.
    package init(bodyLimit: Int?) { self.bodyLimit = bodyLimit }

    /// Calls `report` once when the transfer has ended: at once if it has, otherwise on the thread of the upstream
    /// client. At most one call.
    package func whenEnded(_ report: @escaping @Sendable (Outcome) -> Void) { update { $0.report = report } }

    /// Waits for the end of the transfer. Cancellation of the task has no effect. Instead of ``whenEnded(_:)``.
    package func outcome() async -> Outcome {
        await withCheckedContinuation { continuation in whenEnded { continuation.resume(returning: $0) } }
    }

    package func began(_ head: UpstreamHead) -> HeadVerdict {
        state.withLock { $0.head = head }
        return bodyLimit == nil ? .enough : .store(into: self, limit: nil)
    }

    package func progressed(to total: Int64) {}

    package func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        let limit = bodyLimit ?? 0
        let fits = state.withLock { state in
            guard state.body.count + bytes.count <= limit else { return false }
            state.body.append(contentsOf: bytes)
            return true
        }
        guard fits else { throw CacheError(.upstreamUnusable(), "The response has more than \(limit) bytes.") }
    }

    package func ended(_ end: TransferEnd) { update { $0.end = end } }

    /// Applies a change. Reports the outcome once the transfer has ended and a report is set.
    private func update(_ change: (inout State) -> Void) {
        let (report, outcome) = state.withLock { state -> ((@Sendable (Outcome) -> Void)?, Outcome?) in
            change(&state)
            guard let end = state.end, let report = state.report else { return (nil, nil) }
            state.report = nil
            state.head?.timings = end.timings
            return (report, Outcome(head: state.head, body: state.body, end: end))
        }
        if let report, let outcome { report(outcome) }
    }
}
