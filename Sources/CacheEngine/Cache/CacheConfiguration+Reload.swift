package import CacheCore
import CacheStore

/// Reloads of the configuration: settings are validated and stored first, and put in force afterwards.
extension CacheConfiguration {
    /// Validates changed settings, and stores the changed origins of the configuration. Returns the function that puts
    /// the settings in force, which cannot fail. Without that call only the catalog has changed, and the next start
    /// restores the origins of the configuration there.
    ///
    /// - An origin with another definition than in the settings in force is mounted in place of one of the same name.
    /// - An origin without a definition any more is unmounted; its cached assets stay.
    /// - An origin with an unchanged definition stays as it is, also if the API has changed or unmounted it.
    /// - The policy is changed if none was set over the API.
    ///
    /// Fixed are the directories, `diskThreads`, `jobConcurrency` and `scrub`.
    ///
    /// Throws `.invalidField` with the dotted name of the invalid setting, for example `origins.media.baseURL`, or an
    /// error of the catalog.
    package func prepareReload(to settings: AssetCache.Settings) async throws(CacheError) -> @Sendable () -> Void {
        let old = live.current.settings
        let known = Dictionary(old.origins.map { ($0.name, $0) }) { first, _ in first }
        let changed = settings.origins.filter { known[$0.name] != $0 }
        let removed = live.current.originNames.subtracting(settings.origins.map(\.name))
        for origin in changed {
            try await Self.naming("origins.\(origin.name)") { () async throws(CacheError) in
                try self.checkValues(of: origin)
                try await self.checkFiles(of: origin)
            }
        }
        try await checkPolicy(of: settings, changed, removed)
        let revisions =
            changed.isEmpty && removed.isEmpty
            ? [:] : try await context.store.catalog.changeOrigins(saving: changed, deleting: removed)
        return { [self] in commit(settings, changed, revisions, removed) }
    }

    /// Puts prepared settings in force.
    private func commit(
        _ settings: AssetCache.Settings, _ changed: [Origin], _ revisions: [String: Int64], _ removed: Set<String>
    ) {
        live.replace(settings)
        origins.change { state in
            state.absolute = settings.absolute
            state.allowedHosts = settings.allowedHosts
            for name in removed { state.entries[name] = nil }
            for origin in changed {
                guard let revision = revisions[origin.name] else { continue }
                // A client that has changed the origin after it was stored here has a higher revision.
                if let entry = state.entries[origin.name], entry.revision > revision { continue }
                state.entries[origin.name] = OriginTable.Entry(origin: origin, revision: revision)
            }
        }
        adopt(configured: settings.policy)
        adoptQuotas()
    }

    /// Validates the policy that will be in force, with the quotas of the origins that will be mounted.
    private func checkPolicy(
        of settings: AssetCache.Settings, _ changed: [Origin], _ removed: Set<String>
    ) async throws(CacheError) {
        let policy = policy.isConfigured ? settings.policy : policy.settings
        let replaced = removed.union(changed.map(\.name))
        let mounted = origins.all.map(\.origin).filter { !replaced.contains($0.name) } + changed
        try await Self.naming("policy") { () async throws(CacheError) in
            try policy.validate()
            try policy.checkMinimums(of: self.quotas(under: policy, mounted), field: "capacity")
        }
    }

    /// Puts `group` before the name of an invalid setting.
    static func naming(
        _ group: String, _ body: () async throws(CacheError) -> Void
    ) async throws(CacheError) {
        do { try await body() } catch { throw error.below(group) }
    }
}
