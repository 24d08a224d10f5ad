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
        /// The writes that were refused at the last look, and until when the disk is not believed for those.
        var refusals: (count: UInt64, until: Duration) = (0, .zero)
        /// The disk refuses writes, whatever it tells: nothing is promised of it.
        var isRefused = false

        mutating func reserve(_ bytes: Int64) -> Bool { !isRefused && ledger.reserve(bytes) }
    }

    private let state: Mutex<State>
    /// Rings whenever something may have to go.
    let shortage: AsyncStream<Void>
    private let bell: AsyncStream<Void>.Continuation
    /// Rings when the bytes of segments must be counted.
    let recounts: AsyncStream<Void>
    private let recountBell: AsyncStream<Void>.Continuation
    /// Of the grid in force, for those who look at it before they take the lock.
    private let segmentBytes: Atomic<Int64>

    init(settings: PolicySettings) {
        let ledger = SpaceLedger(settings: settings)
        segmentBytes = Atomic(ledger.grid.segmentBytes)
        state = Mutex(State(ledger: ledger))
        (shortage, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (recounts, recountBell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// How assets are cut into segments just now.
    var grid: SegmentGrid { SegmentGrid(segmentBytes: segmentBytes.load(ordering: .relaxed)) }

    /// Begins again with nothing, in the form of what was written down; before there is anything.
    func begin(as form: LedgerForm) {
        with { ledger in
            ledger = SpaceLedger(settings: ledger.settings, form: form)
            segmentBytes.store(ledger.grid.segmentBytes, ordering: .relaxed)
        }
    }

    /// Puts a policy in force at once; what is known of the segments is taken over without holding anybody up.
    func adopt(_ settings: PolicySettings) {
        with { $0.adopt(settings) }
        while let old = with({ $0.beginRebuilding() }) {
            let rebuilt = old.rebuilt()
            let (isGuess, _) = with { ledger in
                defer { segmentBytes.store(ledger.grid.segmentBytes, ordering: .relaxed) }
                return ledger.finishRebuilding(rebuilt)
            }
            if isGuess { recountBell.yield() }
        }
        ring()
    }

    /// Puts quotas in force at once.
    func adopt(_ quotas: [QuotaOwner: Quota]) {
        if with({ $0.adopt(quotas) }) { recountBell.yield() }
        ring()
    }

    /// Reserves `bytes` and calls `grant`: at once where they fit, else as soon as the evictor has made room. `expected`: which
    /// they will be, where that is known.
    func reserve(
        _ bytes: Int64, expecting expected: (run: ByteRange, asset: AssetID)?,
        then grant: @escaping @Sendable () -> Void
    ) {
        let (fits, isShort) = state.withLock { state in
            if let expected { state.ledger.expect(expected.run, of: expected.asset) }
            guard bytes == 0 || (state.waiting.isEmpty && state.reserve(bytes)) else {
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
            state.ledger.used(changedBy: bytes)
            return !state.waiting.isEmpty || state.ledger.excess(waitingBytes: 0) > 0
        }
        if isShort { ring() }
    }

    func arrived(_ runs: [ByteRange], of asset: AssetID, from owners: AssetOwners, at now: Timestamp) {
        with { ledger in for run in runs { ledger.arrived(run, of: asset, from: owners, at: now) } }
    }

    /// The asset's owners have changed; `extents`: what it has on disk.
    func own(_ asset: AssetID, by owners: AssetOwners, extents: ByteRangeSet) {
        with { $0.own(asset, by: owners, extents: extents) }
        ring()
    }

    func read(_ range: ByteRange, of asset: AssetID, at now: Timestamp) {
        state.withLock { $0.ledger.read(range, of: asset, at: now) }
    }

    func ring() { bell.yield() }

    /// The disk was measured; where writes were `refused` a moment ago it is not believed. Nothing goes for that: who has
    /// filled a quota, or taken the last inode, is not known.
    func measured(free: Int64, refused: UInt64, at uptime: Duration) {
        state.withLock { state in
            if state.refusals.count != refused { state.refusals = (refused, uptime + Self.memory) }
            state.isRefused = uptime < state.refusals.until
            state.ledger.freeDiskBytes = free
        }
    }

    /// How long a disk that has refused a write is not asked to take another.
    private static let memory = Duration.seconds(2)

    /// So much more of the disk is free, until it is measured again.
    func gained(_ bytes: Int64) { with { $0.freeDiskBytes = $0.freeDiskBytes.map { $0 + bytes } } }

    /// Lets a look at, or a change of, the ledger happen.
    func with<Value: Sendable>(_ body: (inout SpaceLedger) -> Value) -> Value {
        state.withLock { body(&$0.ledger) }
    }

    /// How much is to be freed now and why, and whether somebody waits for it.
    func excess() -> (bytes: Int64, reason: EvictionReason, isAwaited: Bool) {
        state.withLock { state in
            let waiting = state.waiting.reduce(0) { $0 + $1.bytes }
            let reason = state.ledger.reason(waitingBytes: waiting)
            return (state.ledger.excess(waitingBytes: waiting), reason, !state.waiting.isEmpty)
        }
    }

    /// Whether the disk cannot give all that is promised and waited for.
    var isShortOfDisk: Bool {
        state.withLock { $0.isRefused || $0.ledger.isShortOfDisk(waitingBytes: $0.waiting.reduce(0) { $0 + $1.bytes }) }
    }

    /// Whether somebody waits for space.
    var isAwaited: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Whether somebody waits for space, and nobody is left who could give any back.
    var isDeadlocked: Bool { state.withLock { !$0.waiting.isEmpty && $0.ledger.reservedBytes == 0 } }

    /// Grants what fits by now.
    func grantWaiting() { grantWaiting { _ in } }

    /// Rings where somebody waits for room.
    func ringIfAwaited() { if isAwaited { ring() } }

    /// Grants what waits though it does not fit, because nothing more can be evicted: all of it, or, where it goes to memory
    /// in place of the disk, what fits there beside all that is under way, and one in any case.
    func overdraw(within memory: Int64? = nil) {
        let granted = state.withLock { state in
            let count = state.waiting.prefix { waiting in
                let reserved = state.ledger.reservedBytes
                guard reserved == 0 || memory.map({ reserved + waiting.bytes <= $0 }) ?? true else { return false }
                state.ledger.overdraw(waiting.bytes)
                return true
            }.count
            defer { state.waiting.removeFirst(count) }
            return Array(state.waiting.prefix(count))
        }
        for waiting in granted { waiting.grant() }
    }

    private func grantWaiting(after body: (inout State) -> Void) {
        let granted = state.withLock { state in
            body(&state)
            let count = state.waiting.prefix { state.reserve($0.bytes) }.count
            defer { state.waiting.removeFirst(count) }
            return Array(state.waiting.prefix(count))
        }
        for waiting in granted { waiting.grant() }
    }
}
