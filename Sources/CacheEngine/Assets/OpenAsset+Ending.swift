import CacheCore

/// The end of the asset's fetching, and cancellation of its fills.
extension OpenAsset {
    /// Ends the reports of this asset to the catalog.
    func disown() {
        change { state in
            // A deferred asset has no row to lose; it still knows its former one.
            if state.ownsRow { state.row = .lost }
            return ((), [])
        }
    }

    /// Stops all fetching. Readers finish with the bytes on disk, or fail with `error`.
    func stopFetching(_ error: CacheError) {
        change { state in
            state.ending = error
            return ((), state.fills.keys.map { .cut($0) })
        }
    }

    /// Stops fetching because another generation has replaced this one. Transfers with a response and readers continue.
    /// All other readers fail with `error` and may continue with `successor`.
    ///
    /// `successor`: nil if there is none, or if an earlier call has named it. `fill`: the transfer that the successor has
    /// taken over.
    func stopFetching(_ error: CacheError, for successor: OpenAsset?, without fill: FillLedger.FillID? = nil) {
        change { state in
            // An asset that has ended keeps its first successor.
            state.successor = state.ending == nil ? successor : successor ?? state.successor
            state.ending = error
            let actions = fill.map { state.lost($0, error) } ?? []
            return ((), actions + state.ledger.idleFills.map { .cut($0) })
        }
    }

    /// Hands a fill over to the asset that its response describes. Readers that wait for the fill fail with `error` and
    /// may continue with `next`.
    func hand(_ fill: FillLedger.FillID, to next: OpenAsset, _ error: CacheError) {
        change { state in
            state.successor = next
            return ((), state.lost(fill, error))
        }
    }

    /// Cancels all fills for an administrator; stored bytes stay. Readers that are present fail as soon as they would
    /// have to wait, and nothing more is fetched for them. Returns the number of cancelled fills.
    func cancelFills() -> Int {
        change { state in
            state.dismissal = Self.cancelled
            return (state.fills.count, state.ledger.stopFills(because: Self.cancelled.code))
        }
    }

    /// Cancels one fill for an administrator, with the same effect on its readers.
    func cancel(fill: FillLedger.FillID) {
        change { state in
            state.dismissal = Self.cancelled
            return ((), state.ledger.stopFill(fill, because: Self.cancelled.code))
        }
    }

    private static let cancelled = CacheError(.conflict, "The fill was cancelled by an administrator.")
}

extension OpenAsset.State {
    /// Removes a fill with a transfer that continues in another asset.
    fileprivate mutating func lost(_ fill: FillLedger.FillID, _ error: CacheError) -> [FillLedger.Action] {
        fills[fill] = nil
        lastFailure = error
        return ledger.broke(fill, with: error.code, isWorthRetrying: false)
    }
}
