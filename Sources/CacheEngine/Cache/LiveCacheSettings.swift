import CacheCore

/// The settings of the cache in force: one immutable snapshot that a reload replaces.
final class LiveCacheSettings: Sendable {
    /// One consistent set of settings. Immutable, so that a copy of the reference is enough.
    final class Snapshot: Sendable {
        let settings: AssetCache.Settings
        /// The names of the configured origins.
        let originNames: Set<String>

        init(_ settings: AssetCache.Settings) {
            self.settings = settings
            originNames = Set(settings.origins.map(\.name))
        }
    }

    /// Guards the reference to the snapshot. The lock is held for a copy of the reference only.
    private let snapshot: OrderedMutex<Snapshot>

    init(_ settings: AssetCache.Settings) { snapshot = OrderedMutex(.leaf, Snapshot(settings)) }

    /// The snapshot in force.
    var current: Snapshot { snapshot.withLock { $0 } }

    /// Replaces the settings for all later uses.
    func replace(_ settings: AssetCache.Settings) {
        let new = Snapshot(settings)
        snapshot.withLock { $0 = new }
    }
}
