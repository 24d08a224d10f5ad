import CacheCore

/// How it comes to its end, and how its fills do.
extension OpenAsset {
    /// From now on the catalog hears nothing of it.
    func disown() {
        change { state in
            state.isDisowned = true
            return ((), [])
        }
    }

    /// From now on nothing more is fetched: readers finish on what is on disk, or are told `error`.
    func retire(_ error: CacheError) {
        change { state in
            state.ending = error
            return ((), state.fills.keys.map { .cut($0) })
        }
    }

    /// Another generation has taken its place: no transfer begins any more. Transfers that bring bytes to readers go on;
    /// all other readers are told `error`, and may go on with the `successor`. `fill`: the transfer that the successor has
    /// taken.
    func retire(_ error: CacheError, for successor: OpenAsset?, without fill: FillLedger.FillID? = nil) {
        change { state in
            state.ending = error
            state.successor = successor
            let actions = fill.map { state.lost($0, error) } ?? []
            return ((), actions + state.ledger.idleFills.map { .cut($0) })
        }
    }

    /// The fill's answer is another asset: the readers that wait for it are told `error`, and may go on with `next`.
    func hand(_ fill: FillLedger.FillID, to next: OpenAsset, _ error: CacheError) {
        change { state in
            state.successor = next
            return ((), state.lost(fill, error))
        }
    }

    /// Stops every fill; what arrived stays. Readers that are here are told as soon as they would have to wait, and
    /// nothing more is fetched for them. Answers how many fills that were.
    func cancelFills() -> Int {
        change { state in
            state.dismissal = Self.cancelled
            return (state.fills.count, state.ledger.stopFills(because: Self.cancelled.code))
        }
    }

    /// Stops one fill, likewise.
    func cancel(fill: FillLedger.FillID) {
        change { state in
            state.dismissal = Self.cancelled
            return ((), state.ledger.stopFill(fill, because: Self.cancelled.code))
        }
    }

    private static let cancelled = CacheError(.conflict, "The fill was cancelled by an administrator.")
}

extension OpenAsset.State {
    /// The transfer of the fill goes on elsewhere.
    fileprivate mutating func lost(_ fill: FillLedger.FillID, _ error: CacheError) -> [FillLedger.Action] {
        fills[fill] = nil
        lastFailure = error
        return ledger.broke(fill, with: error.code, isWorthRetrying: false)
    }
}
