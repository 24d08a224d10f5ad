/// The rules for settings of administrators.
extension PolicySettings {
    /// The smallest capacity that can be set.
    package static let minCapacityBytes: Int64 = 16 << 20

    /// The number of tags that may have a quota.
    package static let maxTagQuotas = 100

    /// Throws `.invalidField` with the path of the first invalid member of the JSON document.
    package func validate() throws(CacheError) {
        try PolicySettings.settings.validate(self)
        guard tagQuotas.count <= Self.maxTagQuotas, tagQuotas.keys.allSatisfy(AssetRecord.isTag) else {
            throw .invalid("tagQuotas", "At most \(Self.maxTagQuotas) tags of 1 to 128 characters may have a quota.")
        }
        for (tag, quota) in tagQuotas { try Quota.settings.validate(quota, at: "tagQuotas.\(tag)") }
    }
}

extension PolicySettings {
    /// Throws `.invalidField(field)` if the minimums of all origins together, or the minimum of one tag, exceed the
    /// bytes that eviction leaves. Minimums of tags are not added up: tags may share assets with each other and with
    /// origins.
    package func checkMinimums(of quotas: [QuotaOwner: Quota], field: String) throws(CacheError) {
        guard let capacityBytes else { return }
        let room = Double(capacityBytes) * lowWatermark
        var ofOrigins = 0.0
        var most = (bytes: 0.0, owners: "")
        for (owner, quota) in quotas {
            switch owner {
            case .origin: ofOrigins += Double(quota.minBytes)
            case .tag(let tag) where Double(quota.minBytes) > most.bytes:
                most = (Double(quota.minBytes), "the tag \(tag)")
            case .tag: break
            }
        }
        if ofOrigins > most.bytes { most = (ofOrigins, "all origins") }
        guard most.bytes <= room else {
            throw CacheError(
                .invalidField(field),
                """
                \(Int64(saturating: most.bytes)) bytes are guaranteed to \(most.owners), but eviction keeps only \
                \(Int64(saturating: room)) bytes. Lower the minimum or raise the capacity.
                """)
        }
    }
}
