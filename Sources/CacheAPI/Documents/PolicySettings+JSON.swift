package import CacheCore

extension PolicySettings {
    /// The `Policy` schema.
    package var json: JSON {
        let quotas = tagQuotas.sorted { $0.key < $1.key }.map { JSON.Member($0.key, $0.value.json) }
        var json = PolicySettings.settings.json(of: self)
        json.insert(.object(quotas), at: ["tagQuotas"])
        return json
    }

    /// Returns these settings with a merge patch applied (RFC 7396), in which null means no limit.
    ///
    /// Throws `.invalidField` if the result is not a valid policy.
    package func merging(_ json: JSON) throws(CacheError) -> PolicySettings {
        var merged = self
        try PolicySettings.settings.read(json, into: &merged, besides: ["tagQuotas"])
        if let quotas = json["tagQuotas"] { merged.tagQuotas = try Self.tagQuotas(quotas, over: tagQuotas) }
        try merged.validate()
        return merged
    }

    /// Reads `tagQuotas`. Null removes all quotas; null for a tag removes the quota of that tag.
    private static func tagQuotas(
        _ json: JSON, over present: [String: Quota]
    ) throws(CacheError) -> [String: Quota] {
        guard json != .null else { return [:] }
        guard case .object(let members) = json else {
            throw .invalid("tagQuotas", "An object of quotas by tag is expected here.")
        }
        var quotas = present
        for member in members {
            var quota = quotas.removeValue(forKey: member.key) ?? Quota()
            guard member.value != .null else { continue }
            try Quota.settings.read(member.value, into: &quota, at: "tagQuotas.\(member.key)")
            quotas[member.key] = quota
        }
        return quotas
    }
}
