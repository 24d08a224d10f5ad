package import CacheCore
package import CacheEngine

/// The body of `POST /v1/policy/plans`.
package struct PolicyPlanRequest: Sendable {
    private struct Document: Decodable {
        var policy: JSON?
        var originQuotas: [String: JSON]?
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    /// The policy in force with the merge patch applied.
    package var policy: PolicySettings
    /// The planned quotas of origins, by name.
    package var originQuotas: [String: Quota]

    /// - Parameters:
    ///   - present: The policy in force.
    ///   - origins: The mounted origins, for their present quotas.
    package init(_ json: JSON, over present: PolicySettings, _ origins: [Origin]) throws(CacheError) {
        let document = try json.decode(Document.self)
        do throws(CacheError) {
            policy = try document.policy.map { (patch) throws(CacheError) in try present.merging(patch) } ?? present
        } catch {
            throw error.below("policy")
        }
        originQuotas = [:]
        for (name, json) in document.originQuotas ?? [:] {
            var quota = origins.first { $0.name == name }?.settings.quota ?? Quota()
            if json == .null {
                quota = Quota()
            } else {
                try Quota.settings.read(json, into: &quota, at: "originQuotas.\(name)")
            }
            try Quota.settings.validate(quota, at: "originQuotas.\(name)")
            originQuotas[name] = quota
        }
    }
}

/// The `PolicyPlan` schema.
package struct PolicyPlanDocument: Codable, Sendable {
    /// An asset that would lose bytes.
    package struct Entry: Codable, Sendable {
        var assetId: AssetID
        package var key: String
        var origin: String
        package var bytes: Int64
        package var reason: String
    }

    package var usedBytes, freedBytes: Int64
    package var assets: Int
    package var items: [Entry]
}

extension PolicyPlanDocument {
    package init(_ plan: PolicyPlan) {
        self.init(
            usedBytes: plan.usedBytes, freedBytes: plan.freedBytes, assets: plan.assets,
            items: plan.entries.map { entry in
                Entry(
                    assetId: entry.assetID, key: entry.key, origin: entry.origin, bytes: entry.bytes,
                    reason: entry.reason.rawValue)
            })
    }
}
