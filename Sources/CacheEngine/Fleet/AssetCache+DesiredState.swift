package import CacheCore
import CacheStore
import Logging

/// Changes over the API: with a fleet all nodes make them, without one only this node.
extension AssetCache {
    /// Reads the state of the fleet, so that the request sees the changes that other nodes have made before. No effect
    /// without a fleet. Throws `.fleetUnavailable`.
    package func readDesiredState() async throws(CacheError) { try await fleet?.synchronize() }

    /// As ``CacheConfiguration/setOrigin(_:if:)``. In a fleet it also throws `.fleetConflict` for an origin of the
    /// configuration, and `.fleetUnavailable`.
    package func setOrigin(
        _ origin: Origin, if precondition: Precondition
    ) async throws(CacheError) -> (origin: Origin, revision: Int64, isNew: Bool) {
        guard let fleet else { return try await configuration.setOrigin(origin, if: precondition) }
        try await configuration.check(origin)
        let isNew = resolver.origins[origin.name] == nil
        return (origin, try await fleet.save(origin, if: precondition), isNew)
    }

    /// As ``CacheConfiguration/deleteOrigin(_:if:)``.
    package func deleteOrigin(_ name: String, if precondition: Precondition) async throws(CacheError) {
        guard let fleet, fleet.defines(name) else {
            return try await configuration.deleteOrigin(name, if: precondition)
        }
        try await fleet.deleteOrigin(name, if: precondition)
    }

    /// As ``CacheConfiguration/setPolicy(_:if:)``.
    package func setPolicy(
        _ settings: PolicySettings, if precondition: Precondition
    ) async throws(CacheError) -> RevisedPolicy {
        guard let fleet else { return try await configuration.setPolicy(settings, if: precondition) }
        try configuration.check(settings)
        return RevisedPolicy(settings: settings, revision: try await fleet.save(settings, if: precondition))
    }

    /// Stores the document of a token of the API, in a fleet for all nodes; returns its revision. Throws `.preconditionFailed` if the precondition
    /// does not hold, `.conflict` if there are too many tokens, and `.fleetUnavailable`.
    package func setToken(
        _ id: String, _ document: String, if precondition: Precondition
    ) async throws(CacheError) -> Int64 {
        guard let fleet else { return try await configuration.setToken(id, document, if: precondition) }
        return try await fleet.saveToken(id, document, if: precondition)
    }

    /// Deletes a token of the API. Throws as ``setToken(_:_:if:)``.
    package func deleteToken(_ id: String, if precondition: Precondition) async throws(CacheError) {
        guard let fleet, fleet.definesToken(id) else {
            return try await configuration.deleteToken(id, if: precondition)
        }
        try await fleet.deleteToken(id, if: precondition)
    }

    /// Purges as requested; in a fleet all nodes do. Returns the report of this node, and the number of the fleet's purge.
    /// Without a fleet and for a dry run, the report has a hint if it selects nothing.
    package func purge(
        _ request: PurgeRequest, runsLater: Bool = false, by owner: TokenOwner?
    ) async throws(CacheError) -> (report: EvictionReport, number: Int64?) {
        let carryOut = { () async throws(CacheError) in
            try await self.evictions.carryOut(request, at: self.evictions.now, runsLater: runsLater, by: owner)
        }
        guard let fleet, !request.isDryRun else {
            var report = try await carryOut()
            if report.assets == 0, !report.isInBackground {
                report.hint = try await PurgeHint(resolver: resolver, owner: owner).text(for: request)
            }
            return (report, nil)
        }
        let (report, number) = try await fleet.purge(request, by: owner, carryOut: carryOut)
        return (report, number)
    }

    /// As ``EvictionAdministration/commit(_:runsLater:)``. The other nodes of a fleet purge what the plan's request selects.
    package func commitPurge(
        _ id: String, runsLater: Bool
    ) async throws(CacheError) -> (progress: PurgePlan.Progress, number: Int64?) {
        let carryOut = { () async throws(CacheError) in
            try await self.evictions.commit(id, runsLater: runsLater)
        }
        guard let fleet, let plan = try evictions.request(of: id) else { return (try await carryOut(), nil) }
        let request = try plan.request.with("dryRun", nil)
        let (progress, number) = try await fleet.purge(request, by: plan.owner, carryOut: carryOut)
        return (progress, number)
    }

    /// As ``AssetAdministration/delete(_:isSoft:)``. In a fleet the asset need not be known here.
    package func deleteAsset(_ id: AssetID, isSoft: Bool) async throws(CacheError) -> Int64? {
        guard let fleet else {
            try await assets.delete(id, isSoft: isSoft)
            return nil
        }
        let request = try PurgeRequest(of: id, isSoft: isSoft)
        let (_, number) = try await fleet.purge(request, by: nil) { () async throws(CacheError) in
            do throws(CacheError) {
                try await self.assets.delete(id, isSoft: isSoft)
            } catch  where error.code == .notFound {}
        }
        return number
    }
}

extension FleetMember {
    /// Whether the fleet defines the origin.
    func defines(_ origin: String) -> Bool { state.withLock { $0.record?.origins[origin] != nil } }

    /// Stores an origin for all nodes; returns its revision.
    func save(_ origin: Origin, if precondition: Precondition) async throws(CacheError) -> Int64 {
        guard !configuration.isConfigured(origin.name) else {
            throw CacheError(
                .fleetConflict, "The configuration file of this node defines the origin \(origin.name).")
        }
        let present = try? configuration.origin(origin.name).revision
        let condition = try inFleet(precondition, present: present, isOfFleet: defines(origin.name))
        let revision = try await desired.save(origin, if: condition)
        await applyOwnChange()
        return revision
    }

    func deleteOrigin(_ name: String, if precondition: Precondition) async throws(CacheError) {
        _ = try await desired.deleteOrigin(name, if: precondition)
        await applyOwnChange()
    }

    /// Whether the fleet defines the token.
    func definesToken(_ id: String) -> Bool { state.withLock { $0.record?.tokens?[id] != nil } }

    /// Stores a token of the API for all nodes; returns its revision.
    func saveToken(_ id: String, _ document: String, if precondition: Precondition) async throws(CacheError) -> Int64 {
        try configuration.tokens.check(id, document)
        let present = configuration.tokens[id]?.revision
        let condition = try inFleet(precondition, present: present, isOfFleet: definesToken(id))
        let revision = try await desired.saveToken(id, document, if: condition)
        await applyOwnChange()
        return revision
    }

    func deleteToken(_ id: String, if precondition: Precondition) async throws(CacheError) {
        try await desired.deleteToken(id, if: precondition)
        await applyOwnChange()
    }

    /// Stores the policy for all nodes; returns its revision.
    func save(_ policy: PolicySettings, if precondition: Precondition) async throws(CacheError) -> Int64 {
        let present = configuration.policy
        let condition = try inFleet(
            precondition, present: present.isConfigured ? nil : present.revision,
            isOfFleet: state.withLock { $0.record?.policy ?? 0 } > 0)
        let revision = try await desired.save(policy, if: condition)
        await applyOwnChange()
        return revision
    }

    /// The condition in etcd for one at this node. What this node has of its own, since before it joined, is absent there.
    private func inFleet(
        _ precondition: Precondition, present: Int64?, isOfFleet: Bool
    ) throws(CacheError) -> Precondition {
        guard !isOfFleet, let present else { return precondition }
        switch precondition {
        case .none: return .none
        case .exists, .revision(present): return .absent
        case .revision, .absent:
            throw CacheError(.preconditionFailed, "The resource has changed; read it again and retry.")
        }
    }

    /// The change is stored for all nodes: after an error here it is applied later.
    private func applyOwnChange() async {
        do throws(CacheError) {
            try await synchronize()
        } catch {
            context.logger.warning("the state of the fleet is applied later", metadata: ["error": "\(error)"])
        }
    }
}
