extension Upstream {
    /// Sends the request, and calls `body` for each line of a response with status 200 as it arrives, on a thread of the
    /// upstream client. Waits for the end of the transfer; cancellation of the task cancels it.
    ///
    /// A line of more than 64 MiB, or an error of `body`, ends the transfer.
    ///
    /// - Parameter refusal: The error for a response with another status; nothing is read from it.
    /// - Returns: The status of the response, nil if there was none; and the end of the transfer.
    package func lines(
        of request: UpstreamRequest, refusal: @escaping @Sendable (_ status: Int) -> CacheError,
        body: @escaping @Sendable (ArraySlice<UInt8>) throws(CacheError) -> Void
    ) async -> (status: Int?, end: TransferEnd) {
        let stream = LineStream(refusal: refusal, body: body)
        let transfer = start(request, delivering: stream)
        return await withTaskCancellationHandler {
            await stream.state.value { state in state.end.map { (state.status, $0) } }
        } onCancel: {
            transfer.cancel()
        }
    }
}

/// Splits the body of a response into lines.
private final class LineStream: TransferDelegate, ByteSink {
    struct State {
        var status: Int?
        /// The bytes since the last end of a line.
        var line: [UInt8] = []
        var end: TransferEnd?
    }

    /// The largest line, such as one with the files of a large playlist.
    private static let maxBytes = 64 << 20

    let state = AsyncCondition(State())
    private let refusal: @Sendable (Int) -> CacheError
    private let body: @Sendable (ArraySlice<UInt8>) throws(CacheError) -> Void

    init(
        refusal: @escaping @Sendable (Int) -> CacheError,
        body: @escaping @Sendable (ArraySlice<UInt8>) throws(CacheError) -> Void
    ) {
        (self.refusal, self.body) = (refusal, body)
    }

    func began(_ head: UpstreamHead) -> HeadVerdict {
        state.change { $0.status = head.status }
        return head.status == 200 ? .store(into: self, limit: nil) : .refuse(refusal(head.status))
    }

    func progressed(to total: Int64) {}

    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        // Only the part behind the last line is kept.
        let lineEnd = UInt8(ascii: "\n")
        guard let last = bytes.lastIndex(of: lineEnd) else {
            let count = state.change { state in
                state.line += bytes
                return state.line.count
            }
            guard count <= Self.maxBytes else {
                throw CacheError(.upstreamProtocol, "A line of the upstream has more than \(Self.maxBytes) bytes.")
            }
            return
        }
        let text = state.change { state in
            defer { state.line = Array(bytes[(last + 1)...]) }
            return state.line + bytes[..<last]
        }
        for line in text.split(separator: lineEnd) { try body(line) }
    }

    func ended(_ end: TransferEnd) { state.change { $0.end = end } }
}
