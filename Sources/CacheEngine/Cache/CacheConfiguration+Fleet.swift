import CacheCore
import CacheStore

/// The state of a fleet: it is stored in one transaction, and then put in force.
extension CacheConfiguration {
    /// Applies changed origins and a changed policy of the fleet, and unmounts origins. Returns the faults of origins, by
    /// name; such an origin is mounted nevertheless, because its cached content may be readable. What the configuration of
    /// this node defines stays as it is there.
    func adopt(
        _ record: FleetRecord, _ changed: [Revised<Origin>], removing removed: Set<String>,
        _ policy: Revised<PolicySettings>?
    ) async throws(CacheError) -> [String: String] {
        var faults: [String: String] = [:]
        for origin in changed.map(\.value) {
            do throws(CacheError) {
                try checkValues(of: origin)
                try checkEncryption(of: origin)
                try await checkFiles(of: origin)
            } catch {
                faults[origin.name] = error.message
            }
        }
        let removed = removed.filter { !isConfigured($0) }
        let adopted = changed.filter { !isConfigured($0.value.name) }
        try await context.store.catalog.apply(record, saving: adopted, deleting: removed, policy: policy)
        let former = origins.all.reduce(into: [:]) { $0[$1.origin.name] = $1.origin.settings.addresses }
        origins.change { state in
            for name in removed { state.entries[name] = nil }
            for origin in adopted {
                state.entries[origin.value.name] = OriginTable.Entry(origin: origin.value, revision: origin.revision)
            }
        }
        for origin in adopted.map(\.value) where former[origin.name] != origin.settings.addresses {
            context.upstreams.health.moved(origin.name, to: origin.settings.addresses)
        }
        if let policy { adopt(RevisedPolicy(settings: policy.value, revision: policy.revision)) }
        adoptQuotas()
        return faults
    }
}
