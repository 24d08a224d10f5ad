import CacheCore

/// The lifetime of a playlist whose response states none.
extension OpenAsset {
    /// Queues the reading of the playlist once all of it is on disk, if its text decides its lifetime.
    func readLifetimeOfPlaylist() {
        let isDue = look { state in
            guard state.record?.generation.playlistGuess != nil, !state.target.storesNothing,
                let length = state.ledger.length
            else { return false }
            return state.ledger.extents.contains(0..<length)
        }
        guard isDue else { return }
        context.openAssets.retain(self)
        context.maintenance.add(.playlist(self))
    }

    /// Sets the lifetime by the update interval of the playlist, unless another response has arrived since `generation`
    /// was read.
    func apply(updateInterval: Duration?, to generation: Generation) {
        change { state in
            guard let known = state.record?.generation, known.number == generation.number,
                known.receivedAt == generation.receivedAt
            else { return ((), []) }
            state.record?.generation.apply(updateInterval: updateInterval)
            refreshRow(state)
            return ((), [])
        }
    }
}
