import CacheCore
import Synchronization

extension FillTransfer {
    /// What it is doing, for those who watch.
    var progress: FillProgress {
        let now = context.uptime()
        var (progress, transfer) = state.withLock { state in
            let progress = FillProgress(
                stage: .queued, priority: state.wishes.priority, attempt: state.attempt,
                startedAt: state.startedAt ?? context.wallClock.now(), address: state.head?.address,
                httpVersion: state.head?.httpVersion,
                bytesPerSecond: Int64(state.meter.bytesPerSecond(at: now)),
                isHedged: state.legs.contains { $0.isHedge && $0.startedAt != nil })
            return (progress, (state.winner.map { state.legs[$0] } ?? state.legs.first { !$0.isOver })?.transfer)
        }
        if let transfer { progress.stage = transfer.stage }
        return progress
    }
}
