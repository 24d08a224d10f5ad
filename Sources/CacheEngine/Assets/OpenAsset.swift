import CacheCore
import CacheStore
import Synchronization

/// One generation of an asset that is in use: the only place where its state lives.
///
/// Every change goes through the `FillLedger` behind the lock; what the ledger answers is carried out after the lock is
/// let go. It is a lock and not an actor because a serving thread must be able to look things up at once.
final class OpenAsset: Sendable {
    struct State {
        var target: AssetTarget
        /// Nil until the upstream has described the asset.
        var record: AssetRecord? { didSet { face += 1 } }
        var ledger: FillLedger
        var file: SparseFile? { didSet { face += 1 } }
        var fills: [FillLedger.FillID: FillTransfer] = [:]
        var waiters: [FillLedger.ReaderID: Waiter] = [:]
        /// Failures of readers that were between looking and waiting.
        var missedFailures: [FillLedger.ReaderID: CacheError] = [:]
        /// Why it serves only what is on disk already: purged, or superseded by another generation.
        var ending: CacheError? { didSet { face += 1 } }
        /// The next generation, where the answer that showed the change brings its bytes.
        weak var successor: OpenAsset?
        /// The complete asset that it replaces once a prefetch has brought its bytes; nil: it has its place already.
        weak var former: OpenAsset?
        /// Whether answers to ranges contradicted one another lately: its bytes come in one transfer, whatever it says.
        var isSequential = false
        /// The failure behind the ledger's latest one, for its sentence.
        var lastFailure: CacheError?
        /// Why nothing more is fetched for readers that were here when fills were stopped.
        var dismissal: CacheError?
        /// How fills begin that the present change starts.
        var retry = FillRetry()
        /// The status of the upstream's latest answer.
        var upstreamStatus: Int?
        /// Measured now and then; what has come since counts as it is.
        private(set) var diskBytes: Int64 = 0
        private(set) var unmeasuredBytes: Int64 = 0
        /// What was on disk before the service ended out of order, and has not been looked at since.
        var unchecked = ByteRangeSet()
        /// Whether its row is no longer its own, but its successor's or nobody's. What changes rows is reported under the lock,
        /// and only where this does not hold: a late word would make a row again that was taken away.
        var isDisowned = false { didSet { face += 1 } }
        /// Another one after each change of what answers are made of, the bytes apart.
        private(set) var face: UInt64 = 0

        var owners: AssetOwners { AssetOwners(origin: target.originName, tags: record?.tags ?? []) }

        /// Whether no byte has come yet: the description may be that of a `HEAD`, and the next answer replaces it.
        var isBare: Bool { file == nil && ledger.extents.isEmpty }

        /// Whether another transfer may bring missing bytes of that generation.
        func canContinue(_ generation: Generation) -> Bool {
            !isSequential && generation.isJoinable(trusting: target.settings.trustValidators)
        }

        /// Bytes were written where none were, or left; answers by how much the file's blocks have grown.
        mutating func grew(by bytes: Int64, in file: SparseFile) -> Int64 {
            unmeasuredBytes += bytes
            guard unmeasuredBytes >= 1 << 20 else {
                diskBytes += bytes
                return bytes
            }
            return measure(file)
        }

        /// Looks how many blocks the file takes; answers by how much they have grown.
        mutating func measure(_ file: SparseFile?) -> Int64 {
            unmeasuredBytes = 0
            let before = diskBytes
            diskBytes = (try? file?.diskBytes()) ?? before  // unknown is measured again with what comes next
            return diskBytes - before
        }

        mutating func freed(_ bytes: Int64) { diskBytes -= bytes }
    }

    /// Called once, on any thread, when its reader should look again, or with why that is in vain.
    typealias Waiter = @Sendable (CacheError?) -> Void

    let id: AssetID
    let context: EngineContext
    /// Whether its bytes are those of a file that is not the store's: nothing of it is counted as cached.
    let isForeign: Bool
    private let state: Mutex<State>
    /// Which of its segments were read lately.
    let reads = Mutex(ReadMemory())

    /// An asset nobody knows yet.
    init(target: AssetTarget, context: EngineContext) {
        id = target.id
        self.context = context
        isForeign = false
        var ledger = FillLedger(settings: target.settings.fillSettings)
        ledger.follow(context.paths, to: target.url)
        state = Mutex(State(target: target, ledger: ledger))
    }

    /// An asset as the catalog, or a response, describes it. `isSequential`: its bytes come in one transfer, whatever
    /// its validators say.
    init(
        target: AssetTarget, record: AssetRecord, extents: ByteRangeSet, file: SparseFile?, isSuspect: Bool = false,
        isSequential: Bool = false, context: EngineContext
    ) {
        id = target.id
        self.context = context
        isForeign = false
        let isJoinable = record.generation.isJoinable(trusting: target.settings.trustValidators)
        var ledger = FillLedger(
            settings: target.settings.fillSettings, length: record.generation.length,
            acceptsRanges: record.generation.acceptsRanges, canBeContinued: isJoinable && !isSequential,
            extents: extents)
        ledger.follow(context.paths, to: target.url)
        var opened = State(target: target, record: record, ledger: ledger, file: file)
        opened.isSequential = isSequential
        if isSuspect { opened.unchecked = extents }
        _ = opened.measure(file)
        state = Mutex(opened)
    }

    /// All of a file that is not the store's, for one reader, in place of what `target` names; nothing is ever fetched.
    init(foreign file: SparseFile, described generation: Generation, for target: AssetTarget, context: EngineContext) {
        id = target.id
        self.context = context
        isForeign = true
        let length = generation.length ?? 0
        let ledger = FillLedger(
            settings: target.settings.fillSettings, length: length, acceptsRanges: true,
            extents: ByteRangeSet([0..<length]))
        state = Mutex(
            State(
                target: target.unkept, ledger: ledger, file: file,
                ending: CacheError(.storageCorrupt, "The file has become shorter while it was being sent.")))
    }

    convenience init(target: AssetTarget, loaded: LoadedAsset, context: EngineContext) {
        self.init(
            target: target, record: loaded.record, extents: loaded.extents, file: loaded.file,
            isSuspect: loaded.isSuspect, context: context)
    }

    /// A look at the state that changes nothing.
    func look<Value: Sendable>(_ body: (borrowing State) -> Value) -> Value {
        state.withLock { body($0) }
    }

    /// Changes the state, and carries out what the ledger answers.
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

    /// Takes a reader in; its `settle` returns when the asset is described, and confirmed where that is needed.
    ///
    /// `began`: what the upstream has said since then is not confirmed again. `waitLimit`: how long the reader may wait at a
    /// time; nil: for ever. `leash`: how many bytes may be fetched ahead of it where the upstream knows no ranges; nil: the
    /// origin's read-ahead. `refused` is called under the lock while the asset is not described; it throws a refusal that
    /// already answers this reader.
    ///
    /// A fill records its refusal before it leaves the ledger, under this lock. A reader that joins after that finds the
    /// refusal here; one that joined before is notified of it. So no reader repeats the request.
    func join(
        opening: UpstreamRequest.Window, priority: TransferPriority, mustConfirm: Bool, began: Timestamp? = nil,
        waitLimit: Duration? = nil, leash: Int64? = nil, refused: () -> CacheError? = { nil }
    ) throws(CacheError) -> FillLedger.ReaderID {
        let (reader, ending) = change { state -> ((FillLedger.ReaderID?, CacheError?), [FillLedger.Action]) in
            if !state.ledger.isDescribed, let refusal = refused() { return ((nil, refusal), []) }
            // Whoever looked before somebody else's confirmation came, and joins after it, has been answered by it.
            let isNew = began.flatMap { began in state.record.map { $0.generation.receivedAt >= began } } ?? false
            let (reader, actions) = state.ledger.join(
                opening: opening, priority: priority, needsConfirmation: mustConfirm && !isNew, waitLimit: waitLimit,
                leash: leash)
            return ((reader, state.ledger.isDescribed ? nil : state.ending), actions)
        }
        if let reader, ending == nil { return reader }
        if let reader { leave(reader) }
        throw ending ?? CacheError(.internal, "A reader was not registered.")
    }

    /// Takes a reader in that wants `ranges`, in order, if all of them are on disk, need not be checked, and the asset is
    /// `length` bytes long: nothing is fetched for it. Nil where that is not so.
    func join(present ranges: [ByteRange], length: Int64) -> (reader: FillLedger.ReaderID, cached: ByteRangeSet)? {
        change { state in
            let cached = state.ledger.lookUp(ranges).cached
            guard state.ledger.isDescribed, state.ledger.length == length,
                cached.byteCount == ranges.reduce(0, { $0 + $1.length }), !ranges.contains(where: state.mustCheck)
            else { return (nil, []) }
            var (reader, actions) = state.ledger.join(opening: .first, priority: .live, needsConfirmation: false)
            if let first = ranges.first {
                actions += state.ledger.want(first, by: reader, later: Array(ranges.dropFirst()))
            }
            return ((reader, cached), actions)
        }
    }

    /// The file, and a lease on `range` in it; nil where that is not all on disk, or anything else has changed since `face`.
    func lease(_ range: ByteRange, face: UInt64) -> (file: SparseFile, id: FillLedger.LeaseID)? {
        change { state in
            guard state.face == face, let file = state.file, !state.mustCheck(range) else { return (nil, []) }
            return (state.ledger.lease(range).map { (file, $0) }, [])
        }
    }

    /// A lease on `range`; nil where that is not all on disk.
    func lease(_ range: ByteRange) -> FillLedger.LeaseID? { change { ($0.ledger.lease(range), []) } }

    func end(_ lease: FillLedger.LeaseID) {
        change { state in
            state.ledger.end(lease)
            return ((), [])
        }
    }

    func want(_ range: ByteRange, by reader: FillLedger.ReaderID, later: [ByteRange] = []) {
        change { ((), $0.ledger.want(range, by: reader, later: later)) }
    }

    func advance(_ reader: FillLedger.ReaderID, to position: Int64) {
        let file = change { state in
            (state.file.flatMap { $0.isSpilled ? $0 : nil }, state.ledger.advance(reader, to: position))
        }
        if let file { passed(file.spilled, of: file, isOnDisk: false) }
    }

    func leave(_ reader: FillLedger.ReaderID) {
        change { state in
            state.missedFailures[reader] = nil
            // Whoever left somebody behind to be woken is not woken by the ledger any more.
            return ((), state.ledger.leave(reader) + [.tell(reader, .arrived)])
        }
    }

    /// Begins to confirm the generation for nobody in particular, if that is not under way.
    func confirmBehind() {
        change { ((), $0.ledger.confirmBehind()) }
    }

    /// Time has passed: whoever has waited too long is told.
    func tick() {
        guard look({ $0.ledger.needsTime }) else { return }
        change { ((), $0.ledger.tick()) }
    }

    /// Gives a file that is not the store's back; its one reader has gone.
    func closeIfForeign() {
        guard isForeign else { return }
        change { state in
            state.file = nil
            return ((), [])
        }
    }
}

extension OriginSettings {
    var fillSettings: FillLedger.Settings {
        FillLedger.Settings(
            largestWindowBytes: readAheadBytes, retries: retries, finishIfRemainingBytes: finishIfRemainingBytes,
            finishIfRemainingPercent: finishIfRemainingPercent, gapMergeBytes: gapMergeBytes,
            speculativeBytes: speculativeBytes, pieceBytes: FilePiece.mostBytes)
    }
}
