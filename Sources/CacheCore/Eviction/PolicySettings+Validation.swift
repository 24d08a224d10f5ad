extension PolicySettings {
    /// The least a limited cache may have.
    package static let minCapacityBytes: Int64 = 16 << 20

    /// How many uses it may take until an asset is kept.
    package static let uses = 1...16

    /// The most tags that may have a quota.
    package static let maxTagQuotas = 100

    /// Throws `.invalidField` with the API's name of the first field that cannot be used.
    package func validate() throws(CacheError) {
        if let capacityBytes, capacityBytes < Self.minCapacityBytes {
            throw CacheError(.invalidField("capacityBytes"), "The capacity is at least 16 MiB, or null for no limit.")
        }
        guard highWatermark > 0, highWatermark <= 1 else {
            throw CacheError(.invalidField("highWatermark"), "The high watermark is above 0 and at most 1.")
        }
        guard lowWatermark > 0, lowWatermark < highWatermark else {
            throw CacheError(.invalidField("lowWatermark"), "The low watermark is above 0 and below the high one.")
        }
        guard minFreeDiskBytes >= 0 else {
            throw CacheError(.invalidField("minFreeDiskBytes"), "The free disk space to keep is not negative.")
        }
        if let maxIdle, maxIdle <= .zero {
            throw CacheError(.invalidField("maxIdleSeconds"), "The longest idle time is above 0, or null for no limit.")
        }
        if let maxAge, maxAge <= .zero {
            throw CacheError(.invalidField("maxAgeSeconds"), "The greatest age is above 0, or null for no limit.")
        }
        if let maxPinnedBytes, maxPinnedBytes < 0 {
            throw CacheError(
                .invalidField("maxPinnedBytes"), "What may be pinned is not negative, or null for no limit.")
        }
        guard Self.uses.contains(minUses) else {
            throw CacheError(.invalidField("admission.minUses"), "An asset is kept from 1 to 16 uses on.")
        }
        guard grace >= .zero else {
            throw CacheError(.invalidField("graceSeconds"), "The time young bytes are spared is not negative.")
        }
        guard tagQuotas.count <= Self.maxTagQuotas, tagQuotas.keys.allSatisfy(AssetRecord.isTag) else {
            throw CacheError(
                .invalidField("tagQuotas"), "At most \(Self.maxTagQuotas) tags, of 1 to 128 bytes, have a quota.")
        }
        for (tag, quota) in tagQuotas { try quota.validate(at: "tagQuotas.\(tag)") }
    }
}

extension PolicySettings {
    /// Throws `.invalidField(field)` where what the quotas leave to origins together, or to one tag, is more than there is
    /// room for. Tags may share their assets with each other and with origins, and so are not added up.
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
                \(Int64(saturating: most.bytes)) bytes are to be left to \(most.owners); eviction leaves \
                \(Int64(saturating: room)) in all.
                """)
        }
    }
}
