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
        var record: AssetRecord?
        var ledger: FillLedger
        var file: SparseFile?
        var fills: [FillLedger.FillID: FillTransfer] = [:]
        var waiters: [FillLedger.ReaderID: Waiter] = [:]
        /// Failures of readers that were between looking and waiting.
        var missedFailures: [FillLedger.ReaderID: CacheError] = [:]
        /// Why it serves only what is on disk already: purged, or superseded by another generation.
        var ending: CacheError?
        /// The failure behind the ledger's latest `fail`, for its sentence.
        var lastFailure: CacheError?
        /// How fills begin that the present change starts.
        var retry = FillRetry()
        /// The status of the upstream's latest answer.
        var upstreamStatus: Int?
        var diskBytes: Int64 = 0
    }

    /// What is left to do outside the lock.
    private enum Step: Sendable {
        case begin(FillTransfer, TransferPriority, attempt: Int)
        case cancel(FillTransfer)
        case promote(FillTransfer, TransferPriority)
        case resume(Waiter, CacheError?)
    }

    /// Called once, on any thread, when its reader should look again, or with why that is in vain.
    typealias Waiter = @Sendable (CacheError?) -> Void

    let id: AssetID
    let context: EngineContext
    /// Whether its bytes are those of a file that is not the store's: nothing of it is counted as cached.
    let isForeign: Bool
    private let state: Mutex<State>

    /// An asset nobody knows yet.
    init(target: AssetTarget, context: EngineContext) {
        id = target.id
        self.context = context
        isForeign = false
        state = Mutex(State(target: target, ledger: FillLedger(settings: target.settings.fillSettings)))
    }

    /// An asset with what the catalog, or a response, told of it.
    init(target: AssetTarget, record: AssetRecord, extents: ByteRangeSet, file: SparseFile?, context: EngineContext) {
        id = target.id
        self.context = context
        isForeign = false
        let isJoinable = record.generation.isJoinable(trusting: target.settings.trustValidators)
        let ledger = FillLedger(
            settings: target.settings.fillSettings, length: record.generation.length,
            acceptsRanges: isJoinable ? record.generation.acceptsRanges : false, extents: extents)
        var opened = State(target: target, record: record, ledger: ledger, file: file)
        opened.diskBytes = (try? file?.diskBytes()) ?? 0  // unknown counts as none until it is measured next
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
            target: target, record: loaded.record, extents: loaded.extents, file: loaded.file, context: context)
    }

    /// A look at the state that changes nothing.
    func look<Value: Sendable>(_ body: (borrowing State) -> Value) -> Value {
        state.withLock { body($0) }
    }

    /// Changes the state, and carries out what the ledger answers.
    @discardableResult
    func change<Value: Sendable>(_ body: (inout State) -> (Value, [FillLedger.Action])) -> Value {
        let (value, todo) = state.withLock { state -> (Value, [Step]) in
            let (value, actions) = body(&state)
            return (value, steps(for: actions, in: &state))
        }
        for step in todo { carryOut(step) }
        return value
    }

    // MARK: Readers

    /// Takes a reader in; its `settle` returns when the asset is described, and confirmed where that is needed.
    func join(
        opening: UpstreamRequest.Window, priority: TransferPriority, mustConfirm: Bool
    ) throws(CacheError) -> FillLedger.ReaderID {
        let (reader, ending) = change { state in
            let (reader, actions) = state.ledger.join(
                opening: opening, priority: priority, needsConfirmation: mustConfirm)
            return ((reader, state.ledger.isDescribed ? nil : state.ending), actions)
        }
        guard let ending else { return reader }
        leave(reader)
        throw ending
    }

    /// Takes a reader in that wants `ranges`, in order, if all of them are on disk and the asset is `length` bytes long:
    /// nothing is fetched for it. Nil where they are not.
    func join(present ranges: [ByteRange], length: Int64) -> (reader: FillLedger.ReaderID, cached: ByteRangeSet)? {
        change { state in
            let cached = state.ledger.lookUp(ranges).cached
            guard state.ledger.isDescribed, state.ledger.length == length,
                cached.byteCount == ranges.reduce(0, { $0 + $1.length })
            else { return (nil, []) }
            var (reader, actions) = state.ledger.join(opening: .first, priority: .live, needsConfirmation: false)
            if let first = ranges.first { actions += state.ledger.want(first, by: reader) }
            return ((reader, cached), actions)
        }
    }

    func want(_ range: ByteRange, by reader: FillLedger.ReaderID) {
        change { ((), $0.ledger.want(range, by: reader)) }
    }

    func advance(_ reader: FillLedger.ReaderID, to position: Int64) {
        change { ((), $0.ledger.advance(reader, to: position)) }
    }

    func leave(_ reader: FillLedger.ReaderID) {
        change { state in
            state.missedFailures[reader] = nil
            // Whoever left somebody behind to be woken is not woken by the ledger any more.
            return ((), state.ledger.leave(reader) + [.wake(reader)])
        }
    }

    /// Waits until there is something for the reader, or nothing more to hope for.
    func settle(_ reader: FillLedger.ReaderID) async throws(CacheError) -> FillLedger.Presence {
        while true {
            let (failure, presence) = change { state -> ((CacheError?, FillLedger.Presence), [FillLedger.Action]) in
                let failure = state.missedFailures.removeValue(forKey: reader)
                guard failure == nil else { return ((failure, .pending), []) }
                let (presence, actions) = state.ledger.presence(for: reader)
                return ((nil, presence), actions)
            }
            if let failure { throw failure }
            guard presence == .pending else { return presence }
            try await wait(reader)
        }
    }

    /// As `settle`, for those who cannot wait: where the answer is `.pending`, `waiter` is called when it no longer is.
    func presence(
        of reader: FillLedger.ReaderID, orWake waiter: @escaping Waiter
    ) throws(CacheError) -> FillLedger.Presence {
        let (failure, presence) = change { state -> ((CacheError?, FillLedger.Presence), [FillLedger.Action]) in
            if let failure = state.missedFailures.removeValue(forKey: reader) { return ((failure, .pending), []) }
            let (presence, actions) = state.ledger.presence(for: reader)
            if presence == .pending { state.waiters[reader] = waiter }
            return ((nil, presence), actions)
        }
        if let failure { throw failure }
        return presence
    }

    /// Until the ledger wakes the reader.
    ///
    /// 1. `presence` said pending, so that the ledger will wake or fail this reader at the next change that concerns it.
    /// 2. That change may come before the continuation is there: hence the second look under the same lock, and the
    ///    failures that were missed.
    /// 3. Cancellation takes the continuation out, so that it is resumed exactly once.
    private func wait(_ reader: FillLedger.ReaderID) async throws(CacheError) {
        do {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    let waiter: Waiter = { error in
                        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
                    }
                    change { state in
                        if let error = state.missedFailures.removeValue(forKey: reader) {
                            state.waiters[reader] = waiter
                            state.lastFailure = error
                            return ((), [.fail(reader, error.code)])
                        }
                        let (presence, actions) = state.ledger.presence(for: reader)
                        let isOver = presence != .pending || Task.isCancelled
                        state.waiters[reader] = waiter
                        return ((), actions + (isOver ? [.wake(reader)] : []))
                    }
                }
            } onCancel: {
                change { _ in ((), [.wake(reader)]) }
            }
        } catch let error as CacheError {
            throw error
        } catch {
            throw CacheError(.internal, "A wait ended in an unexpected way.", cause: error)
        }
        if Task.isCancelled { throw CacheError(.cancelled, "The reader gave up.") }
    }

    /// Begins to confirm the generation for nobody in particular, if that is not under way.
    func confirmBehind() {
        change { ((), $0.ledger.confirmBehind()) }
    }

    // MARK: Ending

    /// From now on nothing more is fetched: readers finish on what is on disk, or are told `error`.
    func retire(_ error: CacheError) {
        change { state in
            state.ending = error
            return ((), state.fills.keys.map { .cut($0) })
        }
    }

    /// Stops every fill; what arrived stays, and readers that still wait are told.
    func cancelFills() -> Int {
        change { state in
            let error = CacheError(.conflict, "The fill was cancelled by an administrator.")
            state.lastFailure = error
            return (state.fills.count, state.ledger.stopFills(because: error.code))
        }
    }

    /// Gives a file that is not the store's back; its one reader has gone.
    func closeIfForeign() {
        guard isForeign else { return }
        change { state in
            state.file = nil
            return ((), [])
        }
    }

    // MARK: Steps

    private func steps(for actions: [FillLedger.Action], in state: inout State) -> [Step] {
        defer { state.retry = FillRetry() }
        var steps: [Step] = []
        var queue = actions[...]
        while let action = queue.popFirst() {
            switch action {
            case .start(let fill, let wish, let priority, let attempt):
                guard let ending = state.ending else {
                    let transfer = FillTransfer(asset: self, fill: fill, wish: wish, retry: state.retry)
                    state.fills[fill] = transfer
                    steps.append(.begin(transfer, priority, attempt: attempt))
                    continue
                }
                state.lastFailure = ending
                queue += state.ledger.broke(fill, with: ending.code, isWorthRetrying: false)[...]
            case .cut(let fill):
                if let transfer = state.fills[fill] { steps.append(.cancel(transfer)) }
            case .promote(let fill, let priority):
                if let transfer = state.fills[fill] { steps.append(.promote(transfer, priority)) }
            case .wake(let reader):
                if let waiter = state.waiters.removeValue(forKey: reader) { steps.append(.resume(waiter, nil)) }
            case .fail(let reader, let code):
                let error = state.lastFailure ?? CacheError(code, "The bytes could not be fetched.")
                if let waiter = state.waiters.removeValue(forKey: reader) {
                    steps.append(.resume(waiter, error))
                } else {
                    state.missedFailures[reader] = error
                }
            }
        }
        return steps
    }

    private func carryOut(_ step: Step) {
        switch step {
        case .begin(let transfer, let priority, let attempt): transfer.begin(priority: priority, attempt: attempt)
        case .cancel(let transfer): transfer.cancel()
        case .promote(let transfer, let priority): transfer.promote(to: priority)
        case .resume(let waiter, let error): waiter(error)
        }
    }
}

extension OriginSettings {
    var fillSettings: FillLedger.Settings {
        FillLedger.Settings(
            largestWindowBytes: readAheadBytes, retries: retries, finishIfRemainingBytes: finishIfRemainingBytes)
    }
}
