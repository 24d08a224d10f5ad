import CacheCore

/// Waits of readers for bytes and descriptions.
extension OpenAsset {
    /// Suspends until bytes or the description are available to the reader. Throws the failure that ends the read.
    func nextPresence(of reader: FillLedger.ReaderID) async throws(CacheError) -> FillLedger.Presence {
        while true {
            let presence = try change { state in state.presence(of: reader) }.get()
            guard presence == .pending else { return presence }
            try await wait(reader)
        }
    }

    /// Returns the presence without suspension. If it is `.pending`, `waiter` is called once the presence may have
    /// changed.
    func presence(
        of reader: FillLedger.ReaderID, orWake waiter: @escaping Waiter
    ) throws(CacheError) -> FillLedger.Presence {
        try change { state in
            let (presence, actions) = state.presence(of: reader)
            if case .success(.pending) = presence {
                state.waiters[reader] = waiter
                state.linkFills(of: reader)
            }
            return (presence, actions)
        }.get()
    }

    /// Suspends until the ledger notifies the reader.
    ///
    /// 1. `presence` returned `.pending`, so the ledger will notify this reader of the next relevant change.
    /// 2. That change may come before the continuation is registered. Registration therefore checks the presence and
    ///    the missed failures again under the same lock.
    /// 3. Cancellation removes the continuation under the lock, so it is resumed exactly once.
    private func wait(_ reader: FillLedger.ReaderID) async throws(CacheError) {
        do {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    let waiter: Waiter = { error in
                        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
                    }
                    change { state in
                        state.waiters[reader] = waiter
                        state.linkFills(of: reader)
                        if state.missedFailures[reader] != nil { return ((), [.notify(reader, .arrived)]) }
                        let (presence, actions) = state.ledger.poll(reader)
                        let isOver = presence != .pending || Task.isCancelled
                        return ((), actions + (isOver ? [.notify(reader, .arrived)] : []))
                    }
                }
            } onCancel: {
                change { _ in ((), [.notify(reader, .failed(.cancelled))]) }
            }
        } catch let error as CacheError {
            throw error
        } catch {
            throw CacheError(.internal, "The wait for bytes ended with an unexpected error.", cause: error)
        }
        if Task.isCancelled { throw CacheError(.cancelled, "The read was cancelled.") }
    }
}

extension OpenAsset.State {
    /// Links a waiting reader's trace with the fills that it waits for.
    fileprivate func linkFills(of reader: FillLedger.ReaderID) {
        guard let trace = traces[reader] else { return }
        for (id, fill) in fills where ledger.reader(reader, looksTo: id) { fill.trace.link(trace) }
    }

    /// The presence of a reader, or the error that ended its read.
    fileprivate mutating func presence(
        of reader: FillLedger.ReaderID
    ) -> (Result<FillLedger.Presence, CacheError>, [FillLedger.Action]) {
        if let failure = missedFailures.removeValue(forKey: reader) { return (.failure(failure), []) }
        let (presence, actions) = ledger.poll(reader)
        guard case .over(let code) = presence else { return (.success(presence), actions) }
        let known = [dismissal, lastFailure].compactMap(\.self).first { $0.code == code }
        return (.failure(known ?? CacheError(code, "No further bytes are fetched for this reader.")), actions)
    }
}
