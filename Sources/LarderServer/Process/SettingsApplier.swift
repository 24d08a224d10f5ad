import CacheAPI
import CacheCore
import CacheEngine
import CacheStore
import CurlUpstream

/// A part of the service that applies changed settings while it runs.
protocol SettingsApplier: Sendable {
    /// Validates the new settings, with everything that can fail. Returns the function that puts them in force; it
    /// cannot fail and is called only after all appliers have prepared.
    ///
    /// Throws `.invalidField` with the key of an invalid setting, or another error; then no applier applies anything.
    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void
}

/// Applies readers, signing keys, CORS and limits of the HTTP server.
struct APIApplier: SettingsApplier {
    let live: LiveAPISettings
    let readers: ReaderSources

    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void {
        let settings = new.apiSettings(openAPI: "", readers: readers.rules(new.access))
        let applyReaders = try await readers.prepare(new.access)
        return { [live] in
            applyReaders()
            live.replace { present in
                var limits = settings.limits
                // It depends on the limit on open files.
                limits.maxConnections = present.limits.maxConnections
                return LiveAPISettings.Values(
                    access: settings.access, cors: settings.cors, limits: limits, peers: settings.peers)
            }
        }
    }
}

/// Applies master keys. They are read again by each reload.
struct EncryptionApplier: SettingsApplier {
    let store: Store

    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void {
        let used = try await store.masterKeyUse().map(\.id)
        let content = try await MasterKeyReader(settings: new.encryption).readInBackground(used: used)
        try new.checkMasterKey(content)
        return { [store] in store.masterKeys.replace(content) }
    }
}

/// Applies the limits of all upstream transfers together.
struct PoolApplier: SettingsApplier {
    let pool: CurlWorkerPool
    let files: OpenFileBudget

    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void {
        let settings = new.pool(files)
        return { [pool] in
            pool.setLimits(maxTransfers: settings.maxTransfers, maxBytesPerSecond: settings.maxBytesPerSecond)
        }
    }
}

/// Applies the other nodes of the fleet.
struct FleetApplier: SettingsApplier {
    let cache: AssetCache
    let files: OpenFileBudget

    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void {
        let settings = new.peers(files)
        let keys = new.fleet.keys.map(\.exposed)
        return { [cache] in
            cache.peers.update(settings)
            cache.fleet?.update(keys: keys)
        }
    }
}

/// Applies webhooks. Each reload permits requests again to receivers that are gone.
struct WebhookApplier: SettingsApplier {
    let webhooks: Webhooks

    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void {
        let settings = new.webhooks.map(\.settings)
        return { [webhooks] in webhooks.update(settings) }
    }
}

/// Applies the minimum level of the log.
struct LogApplier: SettingsApplier {
    let level: LiveLogLevel

    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void {
        { [level] in level.set(new.log.level) }
    }
}

/// Applies origins, policy, and the settings of the cache engine. It is the last applier, because its preparation
/// stores the origins.
struct CacheApplier: SettingsApplier {
    let configuration: CacheConfiguration

    func prepare(
        from old: LarderSettings, to new: LarderSettings
    ) async throws(CacheError) -> @Sendable () -> Void {
        try await configuration.prepareReload(to: new.cache)
    }
}
