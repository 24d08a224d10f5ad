package import CacheCore
import CacheStore
import Logging

/// The policy in force, the mounted origins and the tokens of the API. Each change is stored.
package final class CacheConfiguration: Sendable {
    let context: EngineContext
    let origins: OriginTable
    package let tokens = TokenTable()
    /// The settings of the configuration.
    let live: LiveCacheSettings
    /// Guards the policy in force.
    private let policyState: OrderedMutex<RevisedPolicy>

    init(context: EngineContext, origins: OriginTable, settings: LiveCacheSettings) {
        self.context = context
        self.origins = origins
        live = settings
        policyState = OrderedMutex(.leaf, RevisedPolicy(settings: settings.current.settings.policy, revision: 0))
    }

    private var settings: AssetCache.Settings { live.current.settings }

    // MARK: Policy

    /// The policy in force.
    package var policy: RevisedPolicy { policyState.withLock { $0 } }

    /// Puts a policy in force and stores it. Throws `.preconditionFailed` if `precondition` does not hold, and
    /// `.invalidField` with the invalid setting.
    package func setPolicy(
        _ settings: PolicySettings, if precondition: Precondition = .none
    ) async throws(CacheError) -> RevisedPolicy {
        try check(settings)
        let revision = try await context.store.catalog.savePolicy(settings, if: precondition)
        let revised = RevisedPolicy(settings: settings, revision: revision)
        adopt(revised)
        return revised
    }

    /// The quotas that would be in force with a policy, and with other quotas of origins. Throws `.invalidField` with the
    /// setting that cannot be in force.
    package func quotas(
        planning settings: PolicySettings, _ originQuotas: [String: Quota]
    ) throws(CacheError) -> [QuotaOwner: Quota] {
        try settings.validate()
        var planned = origins.all.map(\.origin)
        for (name, quota) in originQuotas {
            guard let place = planned.firstIndex(where: { $0.name == name }) else {
                throw .invalid("originQuotas.\(name)", "There is no origin named \(name).")
            }
            planned[place].settings.quota = quota
        }
        let quotas = quotas(under: settings, planned)
        try settings.checkMinimums(of: quotas, field: originQuotas.isEmpty ? "policy" : "originQuotas")
        return quotas
    }

    /// Throws `.invalidField` with the setting for which the policy cannot be in force.
    func check(_ settings: PolicySettings) throws(CacheError) {
        try settings.validate()
        // The error names the setting that this call changes.
        let isOfTags = settings.tagQuotas != policy.settings.tagQuotas
        try settings.checkMinimums(
            of: quotas(under: settings, origins.all.map(\.origin)), field: isOfTags ? "tagQuotas" : "capacityBytes")
    }

    /// Loads the policy from the catalog.
    func loadPolicy() async throws(CacheError) {
        guard let kept = try await context.store.catalog.policy() else { return }
        if kept.value != settings.policy {
            context.logger.notice("the policy set over the API is in force, not the configured one")
        }
        adopt(RevisedPolicy(settings: kept.value, revision: kept.revision))
    }

    /// Loads the origins from the catalog. Throws `.invalidField` with the dotted name of the setting if a changed origin
    /// of the configuration has an invalid URL.
    func loadOrigins() async throws(CacheError) {
        let catalog = context.store.catalog
        for kept in try await catalog.origins() {
            origins[kept.value.name] = OriginTable.Entry(origin: kept.value, revision: kept.revision)
        }
        // Configured origins replace stored ones of the same name.
        for origin in settings.origins where origins[origin.name]?.origin != origin {
            try await Self.naming("origins.\(origin.name)") { () async throws(CacheError) in
                try self.checkURLs(of: origin)
            }
            let revision = try await catalog.saveOrigin(origin)
            origins[origin.name] = OriginTable.Entry(origin: origin, revision: revision)
        }
        adoptQuotas()
    }

    /// Puts a changed policy of the configuration in force, unless one was set over the API.
    func adopt(configured policy: PolicySettings) {
        let changed = policyState.withLock { state -> RevisedPolicy? in
            guard state.isConfigured, state.settings != policy else { return nil }
            // Revisions of stored policies are positive.
            state = RevisedPolicy(settings: policy, revision: state.revision - 1)
            return state
        }
        if let changed { context.space.adopt(changed.settings) }
    }

    /// Puts a policy in force without storing it.
    func adopt(_ policy: RevisedPolicy) {
        policyState.withLock { $0 = policy }
        context.space.adopt(policy.settings)
        adoptQuotas()
    }

    // MARK: Origins

    /// All mounted origins with their revisions.
    package func mountedOrigins() -> [(origin: Origin, revision: Int64)] {
        origins.all.map { ($0.origin, $0.revision) }
    }

    /// Whether the configuration names the origin. The API can change it until its definition there changes.
    func isConfigured(_ name: String) -> Bool { live.current.originNames.contains(name) }

    /// Returns a mounted origin; throws `.notFound` if there is none of that name.
    package func origin(_ name: String) throws(CacheError) -> (origin: Origin, revision: Int64) {
        guard let entry = origins[name] else { throw CacheError(.notFound, "There is no origin named \(name).") }
        return (entry.origin, entry.revision)
    }

    /// The temporary beliefs about a mounted origin, and the health of its addresses.
    package func report(on origin: Origin) -> OriginReport {
        OriginReport(
            isConfigured: isConfigured(origin.name),
            observations: context.upstreams.health.observations(of: origin.name)
                + context.upstreams.paths.observations(of: origin.settings.addresses),
            uptimeZero: context.wallClock.now() - context.uptime(), addresses: addresses(of: origin))
    }

    /// The health of the origin's addresses: the base URL, then the mirrors.
    private func addresses(of origin: Origin) -> [CircuitFigures] {
        context.upstreams.health.circuits(of: origin).map { figures in
            var figures = figures
            figures.resolved = context.upstreams.client.addresses(of: figures.address)
            return figures
        }
    }

    /// Closes the circuits of a mounted origin, so that its addresses are asked again at once. Throws `.notFound` if
    /// there is no origin of that name.
    package func closeCircuits(of name: String) throws(CacheError) {
        _ = try origins.mounted(name)
        context.upstreams.health.closeCircuits(of: name)
    }

    /// Drops the temporary beliefs about a mounted origin and its addresses. Throws `.notFound` if there is no
    /// origin of that name.
    package func forgetObservations(of name: String) throws(CacheError) {
        let addresses = try origins.mounted(name).settings.addresses
        context.upstreams.health.forgetObservations(of: name)
        context.upstreams.paths.forget(addresses)
    }

    /// Throws `.invalidField` with the setting for which the origin cannot be mounted.
    package func check(_ origin: Origin) async throws(CacheError) {
        guard Origin.isValid(name: origin.name) else {
            throw .invalid(
                "name",
                "An origin's name is 1 to 64 of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit.")
        }
        try checkValues(of: origin)
        try checkEncryption(of: origin)
        let others = origins.all.map(\.origin).filter { $0.name != origin.name }
        let policy = self.policy.settings
        try policy.checkMinimums(of: quotas(under: policy, others + [origin]), field: "quota.minBytes")
        try await checkFiles(of: origin)
    }

    /// Mounts or changes an origin and stores it; transfers in progress keep the old settings.
    ///
    /// Throws `.preconditionFailed` if `precondition` does not hold, and `.invalidField` with the invalid setting.
    package func setOrigin(
        _ origin: Origin, if precondition: Precondition = .none
    ) async throws(CacheError) -> (origin: Origin, revision: Int64, isNew: Bool) {
        try await check(origin)
        let former = origins[origin.name]?.origin.settings.addresses
        let isNew = former == nil
        let revision = try await context.store.catalog.saveOrigin(origin, if: precondition)
        origins[origin.name] = OriginTable.Entry(origin: origin, revision: revision)
        if former != origin.settings.addresses {
            context.upstreams.health.moved(origin.name, to: origin.settings.addresses)
        }
        adoptQuotas()
        return (origin, revision, isNew)
    }

    /// Throws `.invalidField("encrypt")` without a master key for an encrypted origin.
    func checkEncryption(of origin: Origin) throws(CacheError) {
        if origin.settings.isEncrypted, context.store.masterKeys.activeID == nil {
            throw .invalid("encrypt", "Set encryption.keysDirectory or encryption.keyCommand to encrypt content.")
        }
    }

    /// Throws `.invalidField` with the first invalid setting of an origin.
    func checkValues(of origin: Origin) throws(CacheError) {
        try origin.settings.validate()
        try requireDirectories(for: origin.settings)
        try checkURLs(of: origin)
    }

    private func checkURLs(of origin: Origin) throws(CacheError) {
        try requireURL(origin.settings.baseURL, field: "baseURL")
        for (index, mirror) in origin.settings.mirrors.enumerated() {
            try requireURL(mirror, field: "mirrors[\(index)]")
        }
    }

    /// Checks the files of an origin before it is stored. Throws `.invalidField` if one cannot be used.
    func checkFiles(of origin: Origin) async throws(CacheError) {
        if let file = origin.settings.credentialsFile { try await context.upstreams.credentials.load(file) }
        let (upstream, tls) = (context.upstreams.client, origin.settings.tls)
        try await context.diskThreads.run { try upstream.check(tls) }
    }

    /// Validates a URL with the parser that is used for fetches. A host with letters outside ASCII is rejected with its
    /// ASCII form, because hosts are compared as text.
    private func requireURL(_ url: String, field: String) throws(CacheError) {
        let parsed: UpstreamURL
        do {
            parsed = try context.upstreams.client.parse(url: url)
        } catch {
            throw CacheError(.invalidField(field), error.message, cause: error)
        }
        guard url.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw .invalid(field, "Write the host of the URL in ASCII: \(parsed.host).")
        }
    }

    /// Rejects credentials and fallback files unless their directory is configured.
    private func requireDirectories(for origin: OriginSettings) throws(CacheError) {
        if origin.credentialsFile != nil, settings.credentialsDirectory == nil {
            throw .invalid("credentialsFile", "Set credentialsDirectory to use credentials files.")
        }
        if case .file = origin.fallback, settings.fallbackDirectory == nil {
            throw .invalid("fallback.file", "Set fallbackDirectory to use fallback files.")
        }
    }

    /// Unmounts an origin. Its cached assets stay until they are evicted, and are found again if the origin is mounted
    /// again. Throws `.notFound` if there is none of that name.
    package func deleteOrigin(_ name: String, if precondition: Precondition = .none) async throws(CacheError) {
        _ = try origins.mounted(name)
        guard try await context.store.catalog.deleteOrigin(name, if: precondition) else {
            throw CacheError(.notFound, "There is no origin named \(name).")
        }
        origins[name] = nil
        adoptQuotas()
    }

    /// Puts the quotas of policy and origins in force. A concurrent caller may have seen older settings: the loop ends
    /// when they have not changed.
    func adoptQuotas() {
        var adopted: [QuotaOwner: Quota]?
        while case let quotas = quotas(under: policy.settings, origins.all.map(\.origin)), quotas != adopted {
            context.space.adopt(quotas)
            adopted = quotas
        }
    }

    /// The quotas of all origins and tags that have one.
    func quotas(under policy: PolicySettings, _ origins: [Origin]) -> [QuotaOwner: Quota] {
        let origins = origins.map { (QuotaOwner.origin($0.name), $0.settings.quota) }
        let tags = policy.tagQuotas.map { (QuotaOwner.tag($0.key), $0.value) }
        return Dictionary((origins + tags).filter { $0.1 != Quota() }) { first, _ in first }
    }
}

/// A policy with its revision.
package struct RevisedPolicy: Sendable {
    package var settings: PolicySettings
    /// Incremented by each change; the `ETag` in the management API. 0 and below: that of the configuration, which is
    /// not stored.
    package var revision: Int64

    /// Whether it is the policy of the configuration: none was set over the API.
    package var isConfigured: Bool { revision <= 0 }
}

extension OriginSettings {
    /// The base URLs of the origin: its own, then its mirrors.
    var addresses: [String] { [baseURL] + mirrors }
}
