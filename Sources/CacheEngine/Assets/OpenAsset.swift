import CacheCore
import CacheStore

/// In-memory state of one generation of an asset in use; the only place of that state.
///
/// Each change mutates the `FillLedger` under the lock. The actions that the ledger returns are performed after the
/// lock is released. A lock is used instead of an actor because serving threads need synchronous lookups.
final class OpenAsset: Sendable {
    /// The relation of an asset to the row of its ID in the catalog.
    enum Row {
        /// The row describes this asset, or will after its first response.
        case owned
        /// The row belongs to a complete asset, which this one replaces once a prefetch has fetched its bytes.
        case deferred(Former)
        /// The row belongs to the successor, or no longer exists.
        case lost

        /// The asset that owns the row; it is not kept open.
        struct Former { weak var asset: OpenAsset? }
    }

    /// The state that the lock of `OpenAsset` guards.
    struct State {
        /// Without the fields of a reader: each request gets those of its cause.
        var target: AssetTarget
        /// Nil until the upstream has described the asset.
        var record: AssetRecord? {
            didSet {
                version += 1
                ledger.keepsBytes = keepsBytes
            }
        }
        /// The uptime when a response has described or confirmed the asset; nil: none has since it was opened.
        var describedAt: Duration?
        var ledger: FillLedger
        /// Nil until the first byte arrives.
        var file: SparseFile? {
            didSet {
                version += 1
                ledger.keepsBytes = keepsBytes
            }
        }
        /// Transfers in flight, by fill.
        var fills: [FillLedger.FillID: FillTransfer] = [:]
        /// Wake-up callbacks of suspended readers.
        var waiters: [FillLedger.ReaderID: Waiter] = [:]
        /// The fields of readers that the origin's `forward` names, from `join` to `leave`.
        var forwarded: [FillLedger.ReaderID: HeaderList] = [:]
        /// The traces of readers, while tracing is enabled.
        var traces: [FillLedger.ReaderID: RequestTrace] = [:]
        /// Failures of readers that were notified between their check and their wait; see `wait`.
        var missedFailures: [FillLedger.ReaderID: CacheError] = [:]
        /// The reason why nothing more is fetched: purged, superseded or lost. Readers get only the bytes on disk or in
        /// flight. Nil: fetching is permitted.
        var ending: CacheError? { didSet { version += 1 } }
        /// The next generation, if the response that revealed the change delivers its bytes.
        weak var successor: OpenAsset?
        /// Whether some of the bytes must not be stored. The asset then exists until its readers leave.
        var isUnstorable = false
        /// Whether recent range responses contradicted one another. Then all bytes come in one transfer, whatever the
        /// upstream states about ranges.
        var isSequential = false
        /// The latest failure that was reported to the ledger. The ledger stores only codes; this is the source of the
        /// message.
        var lastFailure: CacheError?
        /// The error of readers that were present when their fills were cancelled; nothing more is fetched for them.
        var dismissal: CacheError?
        /// Parameters of the fills that the current change starts.
        var retry = FillRetry()
        /// The offset where the index of the media file is expected, until it is fetched; nil: unknown.
        var expectedIndex: Int64?
        /// The status of the latest upstream response; nil before the first one.
        var upstreamStatus: Int?
        /// Disk usage in bytes. It is measured from time to time; growth since the last measurement is added
        /// unmeasured.
        private(set) var diskBytes: Int64 = 0
        /// Bytes written since the last measurement.
        private(set) var unmeasuredBytes: Int64 = 0
        /// Ranges that must be verified before their first use: those on disk at the start, or at an unclean shutdown.
        var unchecked = ByteRangeSet()
        /// The bytes that other nodes of the fleet have sent since the asset was opened.
        var peerBytes = ByteRangeSet()
        /// Changes of the row are reported under the lock, and only while the asset owns it: a late report would
        /// recreate a deleted row.
        var row = Row.owned { didSet { version += 1 } }
        /// Incremented by each change of the state that responses are built from; arrivals of bytes do not count.
        private(set) var version: UInt64 = 0

        /// Whether changes of the catalog row are reported.
        var ownsRow: Bool { if case .owned = row { true } else { false } }
        /// The complete asset that this one replaces after a prefetch has fetched its bytes. Nil: no replacement is
        /// deferred, or that asset is gone.
        var former: OpenAsset? { if case .deferred(let former) = row { former.asset } else { nil } }

        /// The quota owners of the asset: its origin and its tags.
        var owners: AssetOwners { AssetOwners(origin: target.originName, tags: record?.tags ?? []) }

        /// Whether the bytes are stored, and later reads can use them: they have a lifetime, or the upstream can confirm
        /// them.
        var keepsBytes: Bool {
            guard file?.name != nil, let generation = record?.generation else { return false }
            return generation.freshUntil != nil || generation.validators != Validators()
        }

        /// Whether no byte has arrived yet. The description may come from a `HEAD` response; the next response replaces
        /// it.
        var isBare: Bool { file == nil && ledger.extents.isEmpty }

        /// Whether a response has described or confirmed the asset since the uptime `began`.
        func isDescribed(since began: Duration) -> Bool { describedAt.map { $0 >= began } ?? false }

        /// Whether no extent remains and the asset is not pinned, so that its record can be removed.
        var hasNothingToKeep: Bool { ledger.extents.isEmpty && record?.isPinned == false }

        /// Whether another transfer may add missing bytes of `generation`.
        func canContinue(_ generation: Generation) -> Bool {
            !isSequential && generation.isJoinable(trusting: target.settings.trustValidators)
        }

        /// Records newly occupied bytes. Returns the growth of the disk usage in bytes: the given number, or a
        /// measurement after each MiB.
        mutating func grew(by bytes: Int64, in file: SparseFile) -> Int64 {
            unmeasuredBytes += bytes
            guard unmeasuredBytes >= 1 << 20 else {
                diskBytes += bytes
                return bytes
            }
            return measure(file)
        }

        /// Measures the allocated blocks of the file. Returns the growth of the disk usage in bytes.
        mutating func measure(_ file: SparseFile?) -> Int64 {
            unmeasuredBytes = 0
            let before = diskBytes
            diskBytes = (try? file?.diskBytes()) ?? before  // a failed measurement is repeated after the next growth
            return diskBytes - before
        }

        /// Subtracts bytes that the file returned to the disk.
        mutating func freed(_ bytes: Int64) { diskBytes -= bytes }
    }

    /// One-shot wake-up callback, called on any thread. The reader checks its state again, or fails if the argument is
    /// not nil.
    typealias Waiter = @Sendable (CacheError?) -> Void

    let id: AssetID
    let context: EngineContext
    /// Whether the bytes come from a file outside the store; nothing of it counts as cached.
    let isForeign: Bool
    /// Guards the complete state of the generation.
    private let state: OrderedMutex<State>
    /// Guards the memory of recently read segments; it limits the reports to the space ledger.
    let reads = OrderedMutex(.leaf, RecentReads())

    /// Creates an asset that the upstream has not described yet.
    init(target: AssetTarget, context: EngineContext) {
        id = target.id
        self.context = context
        isForeign = false
        var ledger = FillLedger(settings: target.settings.fillSettings)
        ledger.follow(context.upstreams.paths, to: target.url)
        state = OrderedMutex(.openAsset, State(target: target.withoutReader, ledger: ledger))
    }

    /// Creates an asset that the catalog or a response has described.
    ///
    /// - `isUnchecked`: the extents are verified before their first use.
    /// - `isSequential`: all bytes come in one transfer, whatever the validators permit.
    /// - `describedAt`: the uptime of the response that has described it; nil: none since it was opened.
    init(
        target: AssetTarget, record: AssetRecord, extents: ByteRangeSet, file: SparseFile?, isUnchecked: Bool = false,
        isSequential: Bool = false, describedAt: Duration? = nil, context: EngineContext
    ) {
        id = target.id
        self.context = context
        isForeign = false
        let isJoinable = record.generation.isJoinable(trusting: target.settings.trustValidators)
        var ledger = FillLedger(
            settings: target.settings.fillSettings, length: record.generation.length,
            acceptsRanges: record.generation.acceptsRanges, canBeContinued: isJoinable && !isSequential,
            extents: extents)
        ledger.follow(context.upstreams.paths, to: target.url)
        var opened = State(
            target: target.withoutReader, record: record, describedAt: describedAt, ledger: ledger, file: file)
        opened.ledger.keepsBytes = opened.keepsBytes
        opened.isSequential = isSequential
        if isUnchecked { opened.unchecked = extents }
        _ = opened.measure(file)
        state = OrderedMutex(.openAsset, opened)
    }

    /// Creates an asset for one reader from a complete file outside the store, in place of the target's content;
    /// nothing is fetched.
    init(foreign file: SparseFile, described generation: Generation, for target: AssetTarget, context: EngineContext) {
        id = target.id
        self.context = context
        isForeign = true
        let length = generation.length ?? 0
        let ledger = FillLedger(
            settings: target.settings.fillSettings, length: length, acceptsRanges: true,
            extents: ByteRangeSet([0..<length]))
        state = OrderedMutex(
            .openAsset,
            State(
                target: target.unstored, ledger: ledger, file: file,
                ending: CacheError(.storageCorrupt, "The fallback file was truncated while it was being sent.")))
    }

    /// Creates an asset from its catalog row and its file.
    convenience init(target: AssetTarget, loaded: LoadedAsset, context: EngineContext) {
        self.init(
            target: target, record: loaded.record, extents: loaded.extents, file: loaded.file,
            isUnchecked: (loaded.record.verify ?? target.settings.verification) == .suspect
                ? loaded.isSuspect : loaded.isUnverified,
            context: context)
    }

    /// Reads the state under the lock.
    func look<Value: Sendable>(_ body: (borrowing State) -> Value) -> Value {
        state.withLock { body($0) }
    }

    /// Changes the state under the lock, then performs the actions of the ledger outside it.
    @discardableResult
    func change<Value: Sendable>(_ body: (inout State) -> (Value, [FillLedger.Action])) -> Value {
        let now = context.uptime()
        let (value, todo) = state.withLock { state -> (Value, [Step]) in
            state.ledger.now = now
            let (value, actions) = body(&state)
            return (value, steps(for: actions, in: &state))
        }
        for step in todo { carryOut(step) }
        return value
    }

    // MARK: Readers

    /// Registers a reader. Its `settle` returns when the asset is described and, if required, confirmed.
    ///
    /// - `began`: the uptime of the start of the read; a response that was received since needs no further confirmation.
    /// - `waitLimit`: the longest single wait of the reader; nil: unlimited.
    /// - `maxLead`: the number of bytes that a transfer without ranges may run ahead of the reader; nil: the origin's
    ///   read-ahead.
    /// - `forwarded`: the reader's fields for requests that it causes; nil: it has none.
    /// - `attempts`: the additional requests of a read that continues here; nil: the read is new.
    /// - `refused`: returns a stored refusal that answers this reader, which is then thrown. It is called under the
    ///   lock while the asset is not described.
    ///
    /// No reader repeats a refused request:
    /// 1. A fill stores its refusal before it leaves the ledger, under this lock.
    /// 2. A reader that joins later finds the refusal here.
    /// 3. A reader that joined earlier is notified by the ledger.
    func join(
        opening: UpstreamRequest.Window, priority: TransferPriority, mustConfirm: Bool, began: Duration? = nil,
        waitLimit: Duration? = nil, maxLead: Int64? = nil, forwarded: HeaderList? = nil,
        attempts: FillLedger.Attempts? = nil, refused: () -> CacheError? = { nil }
    ) throws(CacheError) -> FillLedger.ReaderID {
        reconsiderRanges()
        let (reader, ending) = change { state -> ((FillLedger.ReaderID?, CacheError?), [FillLedger.Action]) in
            if !state.ledger.isDescribed, let refusal = refused() { return ((nil, refusal), []) }
            if let lock = state.file?.lock { return ((nil, lock), []) }
            // A confirmation that another reader caused after this read began is valid for this reader as well.
            let isNew = began.map(state.isDescribed) ?? false
            let (reader, actions) = state.ledger.join(
                opening: opening, priority: priority, needsConfirmation: mustConfirm && !isNew, waitLimit: waitLimit,
                maxLead: maxLead, attempts: attempts)
            state.forwarded[reader] = forwarded
            if let trace = RequestTrace.current { state.traces[reader] = trace }
            return ((reader, state.ledger.isDescribed ? nil : state.ending), actions)
        }
        if let reader, ending == nil { return reader }
        if let reader { leave(reader) }
        throw ending ?? CacheError(.internal, "A reader was not registered.")
    }

    /// Registers a reader of `ranges`, in order, without starting a fill. Returns nil unless all ranges are on disk and
    /// need no verification, and the asset is `length` bytes long.
    func join(present ranges: [ByteRange], length: Int64) -> (reader: FillLedger.ReaderID, cached: ByteRangeSet)? {
        change { state in
            let cached = state.ledger.lookUp(ranges).cached
            guard state.ledger.isDescribed, state.ledger.length == length, state.file?.lock == nil,
                cached.byteCount == ranges.reduce(0, { $0 + $1.length }), !ranges.contains(where: state.mustCheck)
            else { return (nil, []) }
            var (reader, actions) = state.ledger.join(opening: .first, priority: .live, needsConfirmation: false)
            if let first = ranges.first {
                actions += state.ledger.want(first, by: reader, later: Array(ranges.dropFirst()))
            }
            return ((reader, cached), actions)
        }
    }

    /// Registers a reader that causes no request to an upstream: another node of the fleet. `waitLimit`: the longest single
    /// wait.
    func joinPassively(waitLimit: Duration) -> FillLedger.ReaderID {
        change { ($0.ledger.joinPassively(waitLimit: waitLimit), []) }
    }

    /// Has bytes on disk verified before they are sent, so that damage does not spread to another node.
    func distrust(_ range: ByteRange) {
        change { state in
            guard state.file?.name != nil else { return ((), []) }
            for run in state.ledger.extents.runs(in: range) { state.unchecked.insert(run) }
            return ((), [])
        }
    }

    /// Records bytes that another node has sent.
    func broughtByPeer(_ range: ByteRange) {
        change { state in
            state.peerBytes.insert(range)
            return ((), [])
        }
    }

    /// The number of bytes of these ranges that other nodes have sent.
    func bytesOfPeers(in ranges: ByteRangeSet) -> Int64 {
        guard !ranges.isEmpty else { return 0 }
        return look { state in
            state.peerBytes.isEmpty ? 0 : ranges.runs.reduce(0) { $0 + state.peerBytes.byteCount(in: $1) }
        }
    }

    /// Whether a fill is about to request the byte at `offset`, or the description of the asset, from the upstream, so that
    /// the node `name` need not do it too.
    func isComing(_ offset: Int64, before name: String) -> Bool {
        let transfer = look { state in state.ledger.unansweredFill(for: offset).flatMap { state.fills[$0] } }
        return transfer?.comes(before: name) ?? false
    }

    /// Returns the file and a lease on `range`. Nil if a byte is not on disk or needs verification, or if the state has
    /// changed since `version`.
    func lease(_ range: ByteRange, version: UInt64) -> (file: SparseFile, id: FillLedger.LeaseID)? {
        change { state in
            guard state.version == version, let file = state.file, !state.mustCheck(range) else { return (nil, []) }
            return (state.ledger.lease(range).map { (file, $0) }, [])
        }
    }

    /// Returns a lease on `range`; nil if a byte of it is not on disk.
    func lease(_ range: ByteRange) -> FillLedger.LeaseID? { change { ($0.ledger.lease(range), []) } }

    /// Ends a lease: its bytes may be evicted.
    func end(_ lease: FillLedger.LeaseID) {
        change { state in
            state.ledger.end(lease)
            return ((), [])
        }
    }

    /// Declares the next range of a reader; `later`: the ranges that it reads afterwards.
    func want(_ range: ByteRange, by reader: FillLedger.ReaderID, later: [ByteRange] = []) {
        change { ((), $0.ledger.want(range, by: reader, later: later)) }
    }

    /// Reports that the reader has sent all bytes before `position`. Spilled bytes that all readers have passed are
    /// released.
    ///
    /// - `isPlayer`: whether a client reads a range. Players send one, also for the whole file; a client that requests the
    ///   file without `Range` reads it in order.
    func advance(_ reader: FillLedger.ReaderID, to position: Int64, isPlayer: Bool = false) {
        let file = change { state in
            let actions = state.ledger.advance(reader, to: position)
            return (
                state.file.flatMap { $0.isSpilled ? $0 : nil },
                actions + (isPlayer ? state.anticipateIndex(at: position) : [])
            )
        }
        if let file { passed(file.spilled, of: file, isOnDisk: false) }
    }

    /// Removes a reader and wakes its suspended task. Returns the reader's additional requests.
    @discardableResult
    func leave(_ reader: FillLedger.ReaderID) -> FillLedger.Attempts {
        change { state in
            let attempts = state.ledger.attempts(of: reader)
            state.missedFailures[reader] = nil
            state.traces[reader] = nil
            state.forwarded[reader] = nil
            // The ledger does not notify a reader that has left; a remaining waiter is woken here.
            return (attempts, state.ledger.leave(reader) + [.notify(reader, .arrived)])
        }
    }

    /// Starts a background confirmation of the generation, unless one is in flight (RFC 5861 §3).
    func confirmBehind() {
        change { ((), $0.ledger.confirmBehind()) }
    }

    /// Applies time limits: readers that have waited too long are notified.
    func tick() {
        guard look({ $0.ledger.needsTime }) else { return }
        change { ((), $0.ledger.tick()) }
    }

    /// Releases a file outside the store after its only reader has left.
    func closeIfForeign() {
        guard isForeign else { return }
        change { state in
            state.file = nil
            return ((), [])
        }
    }
}

extension OriginSettings {
    /// The settings of the fill ledger that follow from the origin's settings.
    var fillSettings: FillLedger.Settings {
        FillLedger.Settings(
            largestWindowBytes: readAheadBytes, retries: retries, finishIfRemainingBytes: finishIfRemainingBytes,
            finishIfRemainingPercent: finishIfRemainingPercent, gapMergeBytes: gapMergeBytes,
            speculativeBytes: speculativeBytes, pieceBytes: FilePiece.mostBytes)
    }
}
