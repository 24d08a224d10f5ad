import CacheCore
import Synchronization

/// Admission control for disk space: fills reserve space before they write, and shortages are signalled to the
/// evictor.
///
/// Requests that do not fit wait in a queue: those of readers first, in the order of their arrival. Grants are called
/// outside the lock.
final class SpaceReservations: Sendable {
    /// A reservation that waits for space.
    private struct Waiting {
        /// The size of the reservation.
        let bytes: Int64
        /// The fill that reserves.
        let fill: ObjectIdentifier
        var priority: TransferPriority
        /// Called once, when the space is reserved.
        let grant: @Sendable () -> Void
    }

    /// The space ledger, and the reservations that wait for it.
    private struct State {
        var ledger: SpaceLedger
        var waiting: [Waiting] = []
        /// The number of refused writes at the last measurement, and the uptime until which new reservations wait
        /// because of them.
        var refusals: (count: UInt64, until: Duration) = (0, .zero)
        /// Whether the disk refuses writes, regardless of the free space that it reports; nothing is reserved
        /// meanwhile.
        var isRefused = false

        /// Reserves `bytes` if they fit. Returns whether they did.
        mutating func reserve(_ bytes: Int64) -> Bool { !isRefused && ledger.reserve(bytes) }

        /// The place in the queue of a reservation with this priority.
        func place(of priority: TransferPriority) -> Int {
            waiting.firstIndex { $0.priority > priority } ?? waiting.count
        }
    }

    /// Guards the space ledger and the queue of waiting reservations.
    private let state: OrderedMutex<State>
    /// Yields when an eviction may be needed.
    let shortage: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    /// Yields when the bytes of segments must be counted again.
    let recounts: AsyncStream<Void>
    private let recountSignal: AsyncStream<Void>.Continuation
    /// Whether the segments of a started store are counted, so that victims can be found.
    private let isCounted = Atomic(false)
    /// The segment size of the grid in force, for callers that read it without the lock.
    private let segmentBytes: Atomic<Int64>

    init(settings: PolicySettings) {
        let ledger = SpaceLedger(settings: settings)
        segmentBytes = Atomic(ledger.grid.segmentBytes)
        state = OrderedMutex(.spaceLedger, State(ledger: ledger))
        (shortage, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (recounts, recountSignal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The grid in force; it divides assets into segments.
    var grid: SegmentGrid { SegmentGrid(segmentBytes: segmentBytes.load(ordering: .relaxed)) }

    /// Restarts with an empty ledger in the layout of the persisted state. Call it before any bytes are counted.
    func begin(as form: EvictionLayout) {
        with { ledger in
            ledger = SpaceLedger(settings: ledger.settings, form: form)
            segmentBytes.store(ledger.grid.segmentBytes, ordering: .relaxed)
        }
    }

    /// Reports that all segments of a started store are counted.
    func counted() {
        isCounted.store(true, ordering: .relaxed)
        notify()
    }

    /// Whether reservations should wait, because nothing can be evicted before the segments are counted.
    func awaitsCount(at uptime: Duration) -> Bool {
        !isCounted.load(ordering: .relaxed) && uptime < Self.longestCount
    }

    /// Returns when the segments of a started store are counted: the assets that an eviction or another policy would remove
    /// are unknown before. Throws `.overloaded` if that takes longer than the limit, and if the task is cancelled.
    func untilCounted(within limit: Duration = longestCount, _ clock: any Clock<Duration>) async throws(CacheError) {
        let pause = Duration.milliseconds(20)
        var waited = Duration.zero
        while !isCounted.load(ordering: .relaxed) {
            guard waited < limit, (try? await clock.sleep(for: pause)) != nil else {
                throw CacheError(.overloaded, "The bytes on the disk are being counted after the start; repeat later.")
            }
            waited += pause
        }
    }

    /// The time after a start in which reservations wait for the count. Then readers take precedence over the capacity.
    private static let longestCount = Duration.seconds(5)

    /// Puts a policy in force at once. A changed algorithm or grid requires a rebuilt ledger, built on a copy
    /// without the lock.
    func adopt(_ settings: PolicySettings) {
        with { $0.adopt(settings) }
        while let old = with({ $0.beginRebuilding() }) {
            // The ledger changes meanwhile; its journal is replayed on the rebuilt copy.
            let rebuilt = old.rebuilt()
            let (isGuess, _) = with { ledger in
                defer { segmentBytes.store(ledger.grid.segmentBytes, ordering: .relaxed) }
                return ledger.finishRebuilding(rebuilt)
            }
            if isGuess { recountSignal.yield() }
        }
        notify()
    }

    /// Puts quotas in force at once.
    func adopt(_ quotas: [QuotaOwner: Quota]) {
        if with({ $0.adopt(quotas) }) { recountSignal.yield() }
        notify()
    }

    /// Reserves `bytes` and calls `grant`: at once if they fit and nothing of this priority waits, else after the evictor
    /// has freed space. `expected`: the range to be written, if it is known, so that the policy keeps its history of
    /// these segments.
    func reserve(
        _ bytes: Int64, for fill: ObjectIdentifier, _ priority: TransferPriority,
        expecting expected: (run: ByteRange, asset: AssetID)?, then grant: @escaping @Sendable () -> Void
    ) {
        let (fits, isShort) = state.withLock { state in
            if let expected { state.ledger.expect(expected.run, of: expected.asset) }
            let place = state.place(of: priority)
            guard bytes == 0 || (place == 0 && state.reserve(bytes)) else {
                state.waiting.insert(Waiting(bytes: bytes, fill: fill, priority: priority, grant: grant), at: place)
                return (false, true)
            }
            return (true, state.ledger.excess(waitingBytes: 0) > 0)
        }
        if fits { grant() }
        if isShort { notify() }
    }

    /// Raises the priority of a fill's waiting reservations.
    func promote(_ fill: ObjectIdentifier, to priority: TransferPriority) {
        state.withLock { state in
            for index in state.waiting.indices
            where state.waiting[index].fill == fill && state.waiting[index].priority > priority {
                var raised = state.waiting.remove(at: index)
                raised.priority = priority
                state.waiting.insert(raised, at: state.place(of: priority))
            }
        }
    }

    /// Returns reserved bytes that were written or are not needed, and grants waiting reservations.
    func release(_ bytes: Int64) {
        guard bytes > 0 else { return }
        grantWaiting { $0.ledger.release(bytes) }
        // Reservations that still wait need an eviction.
        if state.withLock({ !$0.waiting.isEmpty }) { notify() }
    }

    /// The disk usage of a file has changed, as measured in blocks.
    func used(changedBy bytes: Int64) {
        guard bytes != 0 else { return }
        let isShort = state.withLock { state in
            state.ledger.used(changedBy: bytes)
            return !state.waiting.isEmpty || state.ledger.excess(waitingBytes: 0) > 0
        }
        if isShort { notify() }
    }

    /// Bytes were written to ranges that were empty.
    func arrived(_ runs: [ByteRange], of asset: AssetID, from owners: AssetOwners, at now: Timestamp) {
        with { ledger in for run in runs { ledger.arrived(run, of: asset, from: owners, at: now) } }
    }

    /// The owners of the asset have changed. `extents`: its bytes on disk.
    func own(_ asset: AssetID, by owners: AssetOwners, extents: ByteRangeSet) {
        with { $0.own(asset, by: owners, extents: extents) }
        notify()
    }

    /// Bytes that were on disk before were read.
    func read(_ range: ByteRange, of asset: AssetID, at now: Timestamp) {
        state.withLock { $0.ledger.read(range, of: asset, at: now) }
    }

    /// Signals the evictor.
    func notify() { signal.yield() }

    /// Records the measured free disk space. If writes were `refused` since the last measurement, no space is granted
    /// for a while. Nothing is evicted for that reason: the cause may be a quota or a lack of inodes, which the
    /// measurement does not show.
    func measured(free: Int64, refused: UInt64, at uptime: Duration) {
        state.withLock { state in
            if state.refusals.count != refused { state.refusals = (refused, uptime + Self.memory) }
            state.isRefused = uptime < state.refusals.until
            state.ledger.freeDiskBytes = free
        }
    }

    /// How long reservations wait after the disk has refused a write.
    private static let memory = Duration.seconds(2)

    /// Adds freed bytes to the free disk space until the next measurement.
    func gained(_ bytes: Int64) { with { $0.freeDiskBytes = $0.freeDiskBytes.map { $0 + bytes } } }

    /// Reads or changes the ledger under the lock.
    func with<Value: Sendable>(_ body: (inout SpaceLedger) -> Value) -> Value {
        state.withLock { body(&$0.ledger) }
    }

    /// The bytes to free now, the reason, and whether reservations wait.
    func excess() -> (bytes: Int64, reason: EvictionReason, isAwaited: Bool) {
        state.withLock { state in
            let waiting = state.waiting.reduce(0) { $0 + $1.bytes }
            let reason = state.ledger.reason(waitingBytes: waiting)
            return (state.ledger.excess(waitingBytes: waiting), reason, !state.waiting.isEmpty)
        }
    }

    /// Whether the disk has less space than is reserved and waited for, or refuses writes.
    var isShortOfDisk: Bool {
        state.withLock { $0.isRefused || $0.ledger.isShortOfDisk(waitingBytes: $0.waiting.reduce(0) { $0 + $1.bytes }) }
    }

    /// Whether reservations wait.
    var isAwaited: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Whether reservations wait, and no reserved bytes are left that could be released.
    var isDeadlocked: Bool { state.withLock { !$0.waiting.isEmpty && $0.ledger.reservedBytes == 0 } }

    /// Grants the waiting reservations that fit now, in order.
    func grantWaiting() { grantWaiting { _ in } }

    /// Signals the evictor if reservations wait.
    func notifyIfAwaited() { if isAwaited { notify() } }

    /// Grants waiting reservations over the limit, because nothing more can be evicted.
    ///
    /// `memory` is nil if the disk has space: all are granted. Otherwise the bytes go to memory, and `memory` is its
    /// free size in bytes: reservations are granted while they fit beside the reserved bytes, and one in any case.
    func grantOverLimit(within memory: Int64? = nil) {
        let granted = state.withLock { state in
            let count = state.waiting.prefix { waiting in
                let reserved = state.ledger.reservedBytes
                guard reserved == 0 || memory.map({ reserved + waiting.bytes <= $0 }) ?? true else { return false }
                state.ledger.grantOverLimit(waiting.bytes)
                return true
            }.count
            defer { state.waiting.removeFirst(count) }
            return Array(state.waiting.prefix(count))
        }
        for waiting in granted { waiting.grant() }
    }

    /// Changes the state, and grants the waiting reservations that then fit, in order.
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
