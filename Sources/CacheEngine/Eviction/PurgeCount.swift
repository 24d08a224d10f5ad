import Synchronization

/// The number of purges since the start. A request that was made before a purge can bring a response from before it, for
/// an asset that the catalog does not have yet: such a response is stored as stale.
final class PurgeCount: Sendable {
    private let count = Atomic<UInt64>(0)

    /// A purge begins. It must be counted before the assets are selected.
    func increment() { count.add(1, ordering: .acquiringAndReleasing) }

    var value: UInt64 { count.load(ordering: .acquiring) }
}
