import CacheCore
import CacheStore

/// The state of a fleet: it is stored in one transaction, and then put in force.
extension CacheConfiguration {
    /// Applies the changes of the fleet. Returns the faults of origins, by name; such an origin is mounted nevertheless,
    /// because its cached content may be readable. What the configuration of this node defines stays as it is there.
    func adopt(_ record: FleetRecord, _ changes: FleetChanges) async throws(CacheError) -> [String: String] {
        var (changes, faults): (FleetChanges, [String: String]) = (changes, [:])
        for origin in changes.origins.map(\.value) {
            do throws(CacheError) {
                try checkValues(of: origin)
                try checkEncryption(of: origin)
                try await checkFiles(of: origin)
            } catch {
                faults[origin.name] = error.message
            }
        }
        changes.removedOrigins = changes.removedOrigins.filter { !isConfigured($0) }
        changes.origins.removeAll { isConfigured($0.value.name) }
        if let stored = try await context.store.catalog.apply(record, changes) { tokens.adopt(stored) }
        let former = origins.all.reduce(into: [:]) { $0[$1.origin.name] = $1.origin.settings.addresses }
        origins.change { state in
            for name in changes.removedOrigins { state.entries[name] = nil }
            for origin in changes.origins {
                state.entries[origin.value.name] = OriginTable.Entry(origin: origin.value, revision: origin.revision)
            }
        }
        for origin in changes.origins.map(\.value) where former[origin.name] != origin.settings.addresses {
            context.upstreams.health.moved(origin.name, to: origin.settings.addresses)
        }
        if let policy = changes.policy { adopt(RevisedPolicy(settings: policy.value, revision: policy.revision)) }
        adoptQuotas()
        return faults
    }
}
