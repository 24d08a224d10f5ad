import CacheCore
import CacheStore
import Logging

/// The rooms and doors an open asset works with.
struct EngineContext: Sendable {
    let store: Store
    let commits: CommitQueue
    let upstream: any Upstream
    let space: Space
    let evictionLog: EvictionLog
    let counters: CacheCounters
    let readLog: ReadLog
    let diskThreads: DiskThreads
    let credentials: CredentialShelf
    let openAssets: OpenAssets
    let refusals: RefusalShelf
    let fillBook: FillBook
    let health: OriginHealth
    let paths = UpstreamPaths()
    let upkeep = Upkeep()
    let wallClock: any WallClock
    /// How long the service has run; never goes back.
    let uptime: @Sendable () -> Duration
    let chance: any Chance
    let logger: Logger
    /// What this process calls itself in `CDN-Loop`: no other one's name, or no two could stand in a row.
    let loopName: String
}

extension Clock where Duration == Swift.Duration {
    /// Tells how long ago this was called.
    func stopwatch() -> @Sendable () -> Duration {
        let start = now
        return { start.duration(to: now) }
    }
}
