package import CacheCore
import Synchronization

/// Upstream driven by the test. It records the requested transfers and performs no step on its own.
package final class ManualUpstream: Upstream {
    private let parser: any Upstream
    private let started = AsyncCondition([ManualTransfer]())

    /// - Parameter parser: parses URLs.
    package init(parser: any Upstream) { self.parser = parser }

    package func start(_ request: UpstreamRequest, delivering delegate: any TransferDelegate) -> any Transfer {
        let transfer = ManualTransfer(request: request, delegate: delegate)
        started.change { $0.append(transfer) }
        return transfer
    }

    package func parse(url: String) throws(CacheError) -> UpstreamURL { try parser.parse(url: url) }

    package var load: TransferLoad { TransferLoad() }

    /// All requested transfers, in order.
    package var transfers: [ManualTransfer] { started.state }

    /// Waits for the transfer with this index, from 0, and returns it.
    package func transfer(_ number: Int) async -> ManualTransfer {
        await started.value { $0.dropFirst(number).first }
    }
}

/// A transfer driven by the test.
package final class ManualTransfer: Transfer {
    /// A command received from the fill.
    package enum Order: Hashable, Sendable {
        case cancel
        case promote(TransferPriority)
        case allow(Int64)
        case shorten(Int64)
    }

    private struct State {
        var orders: [Order] = []
        var stage = TransferStage.queued
        var sink: (any ByteSink)?
        var stored: Int64 = 0
    }

    package let request: UpstreamRequest
    private let delegate: any TransferDelegate
    private let state = Mutex(State())

    init(request: UpstreamRequest, delegate: any TransferDelegate) {
        self.request = request
        self.delegate = delegate
    }

    package func cancel() { note(.cancel) }
    package func promote(to priority: TransferPriority) { note(.promote(priority)) }
    package func allow(upTo bytes: Int64) { note(.allow(bytes)) }
    package func shorten(to bytes: Int64) { note(.shorten(bytes)) }
    package var stage: TransferStage { state.withLock { $0.stage } }
    package var orders: [Order] { state.withLock { $0.orders } }
    package var isCancelled: Bool { orders.contains(.cancel) }

    private func note(_ order: Order) { state.withLock { $0.orders.append(order) } }

    // MARK: Steps performed by the test

    /// Leaves the queue. Returns false if the fill rejected the start; the transfer has then ended.
    @discardableResult
    package func leaveQueue() -> Bool {
        state.withLock { $0.stage = .running }
        do {
            try delegate.started()
            return true
        } catch {
            delegate.ended(TransferEnd(error: error))
            return false
        }
    }

    /// Delivers a response head. Returns false if the fill rejects the body.
    @discardableResult
    package func answer(_ status: Int, _ headers: HeaderList, httpVersion: String = "1.1") -> Bool {
        let head = UpstreamHead(status: status, headers: headers, httpVersion: httpVersion)
        guard case .store(let sink, _, _) = delegate.began(head) else { return false }
        state.withLock { $0.sink = sink }
        return true
    }

    /// Delivers a 206 for the requested range of `asset`.
    @discardableResult
    package func answer(of asset: LoopbackAsset) -> Bool {
        guard case .closed(let range) = request.window else { return false }
        return answer(
            206,
            [
                "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(asset.size)",
                "Content-Length": "\(range.length)", "ETag": asset.etag ?? "\"v1\"",
            ])
    }

    package func bring(_ bytes: [UInt8]) throws {
        let sink = state.withLock { $0.sink }
        try bytes.withUnsafeBytes { try sink?.write($0) }
        let stored = state.withLock { state in
            state.stored += Int64(bytes.count)
            return state.stored
        }
        delegate.progressed(to: stored)
    }

    package func end(_ code: CacheError.Code? = nil, dropped: Int64 = 0) {
        let stored = state.withLock { $0.stored }
        delegate.ended(
            TransferEnd(
                error: code.map { CacheError($0, "The test ended the transfer.") }, storedBytes: stored,
                droppedBytes: dropped))
    }

    /// Performs all steps of a successful transfer.
    package func succeed(with asset: LoopbackAsset) throws {
        leaveQueue()
        guard answer(of: asset), case .closed(let range) = request.window else { return end() }
        try bring(asset.bytes(range))
        end()
    }
}
