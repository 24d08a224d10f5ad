import CacheCore

/// A stream of etcd's JSON gateway: one document per line. The documents are not read, because a change is the reason for
/// reading the present state.
final class WatchStream: TransferDelegate, ByteSink {
    private let changed: @Sendable () -> Void
    /// Nil until the transfer has ended.
    private let end = AsyncCondition<TransferEnd?>(nil)

    private init(changed: @escaping @Sendable () -> Void) { self.changed = changed }

    /// Calls `changed` for each line until the stream ends, and then throws. Cancellation of the task ends the stream.
    static func follow(
        _ request: UpstreamRequest, over upstream: any Upstream, changed: @escaping @Sendable () -> Void
    ) async throws(CacheError) {
        let stream = WatchStream(changed: changed)
        let transfer = upstream.start(request, delivering: stream)
        let end = await withTaskCancellationHandler {
            await stream.end.value { $0 }
        } onCancel: {
            transfer.cancel()
        }
        throw end.error ?? CacheError(.fleetUnavailable, "The stream of etcd's changes has ended.")
    }

    func began(_ head: UpstreamHead) -> HeadVerdict {
        guard head.status == 200 else {
            return .refuse(
                CacheError(.fleetUnavailable, "The stream of etcd's changes is refused with status \(head.status)."))
        }
        return .store(into: self, limit: nil)
    }

    func progressed(to total: Int64) {}

    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError) {
        if bytes.contains(UInt8(ascii: "\n")) { changed() }
    }

    func ended(_ end: TransferEnd) { self.end.change { $0 = end } }
}
