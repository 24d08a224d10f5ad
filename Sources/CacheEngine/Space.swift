import CacheCore
import Synchronization

/// The disk space that fills ask for before they write, and the bell that calls the evictor.
final class Space: Sendable {
    private struct Waiting {
        let bytes: Int64
        let grant: @Sendable () -> Void
    }

    private struct State {
        var ledger: SpaceLedger
        var waiting: [Waiting] = []
    }

    private let state: Mutex<State>
    /// Rings whenever something may have to go.
    let shortage: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation

    init(settings: PolicySettings) {
        state = Mutex(State(ledger: SpaceLedger(settings: settings)))
        (shortage, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Reserves `bytes` and calls `grant`: at once where they fit, else as soon as the evictor has made room.
    func reserve(_ bytes: Int64, then grant: @escaping @Sendable () -> Void) {
        let (fits, isShort) = state.withLock { state in
            guard bytes == 0 || (state.waiting.isEmpty && state.ledger.reserve(bytes)) else {
                state.waiting.append(Waiting(bytes: bytes, grant: grant))
                return (false, true)
            }
            return (true, state.ledger.excess(waitingBytes: 0) > 0)
        }
        if fits { grant() }
        if isShort { ring() }
    }

    func release(_ bytes: Int64) {
        guard bytes > 0 else { return }
        grantWaiting { $0.ledger.release(bytes) }
        if state.withLock({ !$0.waiting.isEmpty }) { ring() }
    }

    /// The real disk usage of a file has changed.
    func used(changedBy bytes: Int64) {
        guard bytes != 0 else { return }
        let isShort = state.withLock { state in
            state.ledger.usedBytes = max(0, state.ledger.usedBytes + bytes)
            return !state.waiting.isEmpty || state.ledger.excess(waitingBytes: 0) > 0
        }
        if isShort { ring() }
    }

    func arrived(_ range: ByteRange, of asset: AssetID, at now: Timestamp) {
        state.withLock { $0.ledger.arrived(range, of: asset, at: now) }
    }

    func read(_ range: ByteRange, of asset: AssetID) {
        state.withLock { $0.ledger.read(range, of: asset) }
    }

    func ring() { bell.yield() }

    /// Lets a look at, or a change of, the ledger happen.
    func with<Value: Sendable>(_ body: (inout SpaceLedger) -> Value) -> Value {
        state.withLock { body(&$0.ledger) }
    }

    /// How much is to be freed now, and whether somebody waits for it.
    func excess() -> (bytes: Int64, isAwaited: Bool) {
        state.withLock { state in
            let waiting = state.waiting.reduce(0) { $0 + $1.bytes }
            return (state.ledger.excess(waitingBytes: waiting), !state.waiting.isEmpty)
        }
    }

    /// Whether somebody waits for space, and nobody is left who could give any back.
    var isDeadlocked: Bool { state.withLock { !$0.waiting.isEmpty && $0.ledger.reservedBytes == 0 } }

    /// Grants what fits by now.
    func grantWaiting() { grantWaiting { _ in } }

    /// Grants all that waits though it does not fit: nothing more can be evicted.
    func overdraw() {
        let granted = state.withLock { state in
            for waiting in state.waiting { state.ledger.overdraw(waiting.bytes) }
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiting in granted { waiting.grant() }
    }

    private func grantWaiting(after body: (inout State) -> Void) {
        let granted = state.withLock { state in
            body(&state)
            let count = state.waiting.prefix { state.ledger.reserve($0.bytes) }.count
            defer { state.waiting.removeFirst(count) }
            return Array(state.waiting.prefix(count))
        }
        for waiting in granted { waiting.grant() }
    }
}
