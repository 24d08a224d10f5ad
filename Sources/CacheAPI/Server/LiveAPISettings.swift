import CacheCore
import Synchronization

/// The settings of the HTTP server that can change while it runs: the current values as one immutable snapshot.
///
/// A request reads ``values`` once and keeps that snapshot to its end; a reload replaces the whole snapshot.
package final class LiveAPISettings: Sendable {
    /// One consistent set of values. Immutable, so that a copy of the reference is enough.
    package final class Values: Sendable {
        package let access: AccessRules
        package let cors: CORSRules
        /// Limits per connection apply to connections that are accepted later.
        package let limits: APISettings.Limits
        package let peers: PeerRules

        package init(
            access: AccessRules, cors: CORSRules, limits: APISettings.Limits = APISettings.Limits(),
            peers: PeerRules = PeerRules()
        ) {
            self.access = access
            self.cors = cors
            self.limits = limits
            self.peers = peers
        }
    }

    /// Guards the reference to the current snapshot. The lock is held for a copy of the reference only.
    private let current: OrderedMutex<Values>
    /// The number of replacements; incremented after each.
    private let changeCount = Atomic<UInt64>(0)

    package init(_ values: Values) { current = OrderedMutex(.leaf, values) }

    /// The values of `settings`.
    package convenience init(_ settings: APISettings) {
        self.init(
            Values(
                access: settings.access, cors: settings.cors, limits: settings.limits, peers: settings.peers))
    }

    /// The current snapshot.
    package var values: Values { current.withLock { $0 } }

    /// The number of replacements. Results that were derived from ``values`` are valid while it is unchanged; read it
    /// before the values. Takes no lock.
    package var changes: UInt64 { changeCount.load(ordering: .acquiring) }

    /// Replaces the snapshot for all later requests. `change` gets the current snapshot; calls are serialised.
    package func replace(_ change: (Values) -> Values) {
        current.withLock { $0 = change($0) }
        changeCount.add(1, ordering: .releasing)
    }
}
