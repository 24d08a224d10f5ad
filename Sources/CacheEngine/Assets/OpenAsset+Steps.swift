import CacheCore

/// Effects of the ledger's actions.
extension OpenAsset {
    /// An effect that is performed after the lock is released.
    enum Step: Sendable {
        case begin(FillTransfer, FillLedger.Start)
        case cancel(FillTransfer)
        case promote(FillTransfer, TransferPriority)
        case allow(FillTransfer, upTo: Int64)
        case shorten(FillTransfer, to: Int64)
        case resume(Waiter, CacheError?)
        case count(WaitOutcome, origin: String)
    }

    /// Translates the ledger's actions into steps, in order. An ended asset starts no fill: the fill counts as failed
    /// at once. A fill is refused if its cause has no right to the credentials.
    func steps(for actions: [FillLedger.Action], in state: inout State) -> [Step] {
        defer { state.retry = FillRetry() }
        var steps: [Step] = []
        var queue = actions[...]
        while let action = queue.popFirst() {
            switch action {
            case .start(let fill, let start):
                if let ending = state.ending {
                    state.lastFailure = ending
                    queue += state.ledger.broke(fill, with: ending.code, isWorthRetrying: false)[...]
                    continue
                }
                do throws(CacheError) {
                    let forwarded = state.forwarded(for: fill)
                    _ = try state.target.authorized(by: forwarded)
                    let readers =
                        state.traces.isEmpty
                        ? [] : state.ledger.readers(lookingTo: fill).compactMap { state.traces[$0] }
                    let transfer = FillTransfer(
                        for: FillLocation(asset: self, fill: fill, fillRequest: start.fillRequest), retry: state.retry,
                        forwarded: forwarded, trace: FillTrace("fill", tracer: context.tracer, readers: readers))
                    state.fills[fill] = transfer
                    steps.append(.begin(transfer, start))
                } catch {
                    state.lastFailure = error
                    queue += state.ledger.refused(fill, because: error.code)[...]
                }
            case .notify(let reader, let outcome): steps += state.notify(reader, outcome)
            case .cut(let fill): steps += state.fills[fill].map { [.cancel($0)] } ?? []
            case .promote(let fill, let priority): steps += state.fills[fill].map { [.promote($0, priority)] } ?? []
            case .allow(let fill, let end): steps += state.fills[fill].map { [.allow($0, upTo: end)] } ?? []
            case .shorten(let fill, let end): steps += state.fills[fill].map { [.shorten($0, to: end)] } ?? []
            }
        }
        return steps
    }

    /// Performs a step; the lock is not held.
    func carryOut(_ step: Step) {
        switch step {
        case .begin(let transfer, let start):
            if start.isRetry { context.counters.fillRetried(origin: target.originName) }
            transfer.begin(start)
        case .cancel(let transfer): transfer.cancel()
        case .promote(let transfer, let priority): transfer.promote(to: priority)
        case .allow(let transfer, let end): transfer.allow(upTo: end)
        case .shorten(let transfer, let end): transfer.shorten(to: end)
        case .resume(let waiter, let error): waiter(error)
        case .count(let outcome, let origin): context.counters.waited(outcome, origin: origin)
        }
    }
}

extension OpenAsset.State {
    /// The fields of a reader that causes the fill; nil: none has fields. A fill for which no reader waits, such as a
    /// revalidation in the background, is caused by a present reader.
    fileprivate func forwarded(for fill: FillLedger.FillID) -> HeaderList? {
        guard !forwarded.isEmpty else { return nil }
        let causes = ledger.readers(lookingTo: fill)
        return causes.isEmpty ? forwarded.values.first : causes.lazy.compactMap { forwarded[$0] }.first
    }

    /// Translates the end of a reader's wait into steps.
    fileprivate mutating func notify(_ reader: FillLedger.ReaderID, _ outcome: WaitOutcome) -> [OpenAsset.Step] {
        let count = OpenAsset.Step.count(outcome, origin: target.originName)
        // The reader keeps waiting, for the fill that was started on its behalf.
        if outcome == .retrying { return [count] }
        let error = outcome.failure.map { self.error(of: $0, outcome) }
        if let waiter = waiters.removeValue(forKey: reader) { return [count, .resume(waiter, error)] }
        if let error { missedFailures[reader] = error }
        return []
    }

    /// The error for a reader, with the most specific known message.
    private func error(of code: CacheError.Code, _ outcome: WaitOutcome) -> CacheError {
        if code == .cancelled { return CacheError(code, "The read was cancelled.") }
        if outcome == .timedOut { return CacheError(code, "The upstream sent no bytes within the time limit.") }
        if let dismissal, dismissal.code == code { return dismissal }
        return lastFailure ?? CacheError(code, "The upstream did not deliver the bytes.")
    }
}
