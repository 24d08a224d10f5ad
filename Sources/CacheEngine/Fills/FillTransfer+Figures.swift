import CacheCore

extension FillTransfer {
    /// The current progress, for the management API.
    var progress: FillProgress {
        let now = context.uptime()
        var (progress, transfer) = state.withLock { state in
            let progress = FillProgress(
                priority: state.desired.priority, attempt: state.failureCount,
                startedAt: state.startedAt ?? context.wallClock.now(), address: state.head?.address,
                httpVersion: state.head?.httpVersion,
                bytesPerSecond: Int64(state.meter.bytesPerSecond(at: now)),
                peer: state.attempts.last?.peer,
                isHedged: state.attempts.contains { $0.isHedge && $0.startedAt != nil })
            return (
                progress, (state.winner.map { state.attempts[$0] } ?? state.attempts.first { !$0.isOver })?.transfer
            )
        }
        if let transfer { progress.stage = transfer.stage }
        return progress
    }
}
