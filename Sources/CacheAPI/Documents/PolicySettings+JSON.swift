package import CacheCore

extension PolicySettings {
    /// The members of the `Policy` schema.
    package static let keys = [
        "capacityBytes", "highWatermark", "lowWatermark", "minFreeDiskBytes", "algorithm", "maxIdleSeconds",
        "maxAgeSeconds", "graceSeconds", "admission", "maxPinnedBytes",
        "tagQuotas",
    ]
    package static let admissionKeys = ["minUses"]

    /// The `Policy` schema.
    package var json: JSON {
        [
            "capacityBytes": .bytes(capacityBytes), "highWatermark": .number(highWatermark),
            "lowWatermark": .number(lowWatermark), "minFreeDiskBytes": .integer(minFreeDiskBytes),
            "algorithm": .string(algorithm.rawValue), "maxIdleSeconds": .seconds(maxIdle),
            "maxAgeSeconds": .seconds(maxAge), "graceSeconds": .seconds(grace),
            "admission": ["minUses": .count(minUses)], "maxPinnedBytes": .bytes(maxPinnedBytes),
            "tagQuotas": .object(tagQuotas.sorted { $0.key < $1.key }.map { JSON.Member($0.key, $0.value.json) }),
        ]
    }

    /// Returns these settings with a merge patch applied (RFC 7396), in which null means no limit.
    ///
    /// Throws `.invalidField` if the result is not a valid policy.
    package func merging(_ json: JSON) throws(CacheError) -> PolicySettings {
        let fields = try JSONFields(
            json, accepting: Self.keys,
            nullable: ["capacityBytes", "maxIdleSeconds", "maxAgeSeconds", "maxPinnedBytes", "tagQuotas"])
        var merged = self
        if fields.has("capacityBytes") { merged.capacityBytes = try fields.integer("capacityBytes") }
        if let mark = try fields.number("highWatermark", in: 0...1) { merged.highWatermark = mark }
        if let mark = try fields.number("lowWatermark", in: 0...1) { merged.lowWatermark = mark }
        if let bytes = try fields.integer("minFreeDiskBytes") { merged.minFreeDiskBytes = bytes }
        if let algorithm = try fields.choice("algorithm", EvictionAlgorithm.self) { merged.algorithm = algorithm }
        if fields.has("maxIdleSeconds") { merged.maxIdle = try fields.seconds("maxIdleSeconds") }
        if fields.has("maxAgeSeconds") { merged.maxAge = try fields.seconds("maxAgeSeconds") }
        if let grace = try fields.seconds("graceSeconds") { merged.grace = grace }
        if fields.has("maxPinnedBytes") { merged.maxPinnedBytes = try fields.integer("maxPinnedBytes") }
        if fields.has("tagQuotas") { merged.tagQuotas = try Self.tagQuotas(fields, over: tagQuotas) }
        if let value = fields.json("admission") {
            let inner = try JSONFields(value, at: "admission", accepting: Self.admissionKeys)
            if let uses = try inner.integer("minUses", in: 0...1000) { merged.minUses = Int(uses) }
        }
        try merged.validate()
        return merged
    }

    /// Reads `tagQuotas`. Null removes all quotas; null for a tag removes the quota of that tag.
    private static func tagQuotas(
        _ fields: JSONFields, over present: [String: Quota]
    ) throws(CacheError) -> [String: Quota] {
        guard let value = fields.json("tagQuotas") else { return [:] }
        guard case .object(let members) = value else {
            throw fields.invalid("tagQuotas", "An object of quotas by tag is expected here.")
        }
        var quotas = present
        for member in members {
            let quota = quotas.removeValue(forKey: member.key) ?? Quota()
            guard member.value != .null else { continue }
            quotas[member.key] = try quota.merging(member.value, at: fields.name("tagQuotas.\(member.key)"))
        }
        return quotas
    }
}
