import CacheCore
import CacheStore
import Foundation

/// The digests of complete representations that were computed for clients, and the limits of such computations.
final class DigestRegistry: Sendable {
    /// The digests of one generation.
    enum Finding: Sendable {
        case digests([DigestAlgorithm: Data])
        /// The bytes differ from the digest that the upstream stated: none is sent.
        case contradicted
    }

    /// A digest that is to be computed in the background.
    struct Order: Hashable, Sendable {
        let asset: AssetID
        let algorithm: DigestAlgorithm
    }

    private struct State {
        var findings = BoundedTable<FileName, Finding>(capacity: 8192)
        /// The number of computations that responses wait for.
        var active = 0
        var queued: Set<Order> = []
    }

    /// The maximum number of bytes that are read before a response begins.
    static let maxBytesPerResponse: Int64 = 16 << 20
    /// The maximum number of computations that responses wait for.
    private static let maxActive = 32
    /// The maximum number of computations in the background, of which one runs.
    private static let maxQueued = 64

    /// Guards the digests and the computations in progress.
    private let state = OrderedMutex(.leaf, State())
    /// The computations in the background, for a single consumer.
    let orders: AsyncStream<Order>
    private let begin: AsyncStream<Order>.Continuation

    init() { (orders, begin) = AsyncStream.makeStream() }

    /// The known digests of a file; nil: none was computed.
    subscript(file: FileName) -> Finding? { state.withLock { $0.findings[file] } }

    /// Adds the result of a computation.
    func note(_ finding: Finding, of file: FileName) {
        state.withLock { state in
            guard case .digests(let new) = finding, case .digests(let known)? = state.findings[file] else {
                return state.findings[file] = finding
            }
            state.findings[file] = .digests(known.merging(new) { $1 })
        }
    }

    /// Runs a computation that a response waits for; nil if too many run.
    func withPermit<Value: Sendable>(_ body: @Sendable () async -> Value?) async -> Value? {
        let isPermitted = state.withLock { state in
            guard state.active < Self.maxActive else { return false }
            state.active += 1
            return true
        }
        guard isPermitted else { return nil }
        defer { state.withLock { $0.active -= 1 } }
        return await body()
    }

    /// Queues a computation in the background, unless it is queued already, or too many are.
    func queue(_ order: Order) {
        let isNew = state.withLock { $0.queued.count < Self.maxQueued && $0.queued.insert(order).inserted }
        if isNew { begin.yield(order) }
    }

    /// A computation of the queue has ended.
    func finished(_ order: Order) { state.withLock { _ = $0.queued.remove(order) } }
}
