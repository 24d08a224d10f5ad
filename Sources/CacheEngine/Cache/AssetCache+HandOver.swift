import CacheCore
import CacheStore
import Logging

/// The end of a process whose sockets stay open: the next one starts beside it.
extension AssetCache {
    /// Gives the store to the next process: no task and no fill writes any more, everything is committed, and readers get
    /// only the bytes that are stored. The upstream must have been stopped.
    package func handOver() { handOvers.continuation.yield() }

    /// Waits until the fills of a stopped upstream have ended, one second at most; returns whether they have.
    func endFills() async -> Bool {
        let end = context.uptime() + .seconds(1)
        while fills.count > 0, context.uptime() < end, (try? await clock.sleep(for: .milliseconds(5))) != nil {}
        return fills.count == 0
    }

    /// Hands the store over, if `withStore`: everything is committed. Applies the time limits of the remaining readers until
    /// cancellation.
    func leave(withStore: Bool) async {
        if withStore, await logged("the store could not be handed over", context.store.handOver) {
            context.logger.notice("the data directory is free for the next process")
        }
        await every(.seconds(1)) { () async throws(CacheError) in applyTimeLimits() }
    }

    /// Applies the time limits of readers and of their assets.
    func applyTimeLimits() {
        context.openAssets.releaseDue(at: context.uptime())
        for asset in context.openAssets.detached + context.openAssets.all { asset.tick() }
    }
}
