import CacheCore

extension OpenAsset {
    /// Waits until there is something for the reader, or nothing more to hope for.
    func settle(_ reader: FillLedger.ReaderID) async throws(CacheError) -> FillLedger.Presence {
        while true {
            let presence = try change { state in state.presence(of: reader) }.get()
            guard presence == .pending else { return presence }
            try await wait(reader)
        }
    }

    /// As `settle`, for those who cannot wait: where the answer is `.pending`, `waiter` is called when it no longer is.
    func presence(
        of reader: FillLedger.ReaderID, orWake waiter: @escaping Waiter
    ) throws(CacheError) -> FillLedger.Presence {
        try change { state in
            let (presence, actions) = state.presence(of: reader)
            if case .success(.pending) = presence { state.waiters[reader] = waiter }
            return (presence, actions)
        }.get()
    }

    /// Until the ledger tells the reader something.
    ///
    /// 1. `presence` said pending, so that the ledger will tell this reader of the next change that concerns it.
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
                        state.waiters[reader] = waiter
                        if state.missedFailures[reader] != nil { return ((), [.tell(reader, .arrived)]) }
                        let (presence, actions) = state.ledger.presence(for: reader)
                        let isOver = presence != .pending || Task.isCancelled
                        return ((), actions + (isOver ? [.tell(reader, .arrived)] : []))
                    }
                }
            } onCancel: {
                change { _ in ((), [.tell(reader, .gaveUp(.cancelled))]) }
            }
        } catch let error as CacheError {
            throw error
        } catch {
            throw CacheError(.internal, "A wait ended in an unexpected way.", cause: error)
        }
        if Task.isCancelled { throw CacheError(.cancelled, "The reader gave up.") }
    }
}

extension OpenAsset.State {
    /// How far the reader is served, or why it is not any more.
    fileprivate mutating func presence(
        of reader: FillLedger.ReaderID
    ) -> (Result<FillLedger.Presence, CacheError>, [FillLedger.Action]) {
        if let failure = missedFailures.removeValue(forKey: reader) { return (.failure(failure), []) }
        let (presence, actions) = ledger.presence(for: reader)
        guard case .over(let code) = presence else { return (.success(presence), actions) }
        let known = [dismissal, lastFailure].compactMap(\.self).first { $0.code == code }
        return (.failure(known ?? CacheError(code, "Nothing more is fetched for this reader.")), actions)
    }
}
