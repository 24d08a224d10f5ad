import CacheCore

extension AssetCache {
    /// The other nodes of the fleet.
    package var peers: PeerNodes { context.peers }

    /// Readiness turns false while the service goes on serving, so that routers send requests to other nodes and these
    /// fetch what they need from this one; false: readiness turns true again. No effect while the service starts or shuts
    /// down.
    package func leaveFleet(_ leaves: Bool) {
        let isChanged = phase.withLock { phase in
            guard phase == (leaves ? .ready : .leaving) else { return false }
            phase = leaves ? .leaving : .ready
            return true
        }
        guard isChanged else { return }
        fleet?.changed(leaves ? .leaving : .ready)
        let reasons = leaves ? ["The node leaves its fleet."] : []
        context.events.publish(.readiness(isReady: !leaves, reasons: reasons))
    }
}
