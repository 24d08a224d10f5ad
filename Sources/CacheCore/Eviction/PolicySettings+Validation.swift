/// The rules for settings of administrators.
extension PolicySettings {
    /// The smallest capacity that can be set.
    package static let minCapacityBytes: Int64 = 16 << 20

    /// The valid values of `minUses`.
    package static let uses = 1...16

    /// The number of tags that may have a quota.
    package static let maxTagQuotas = 100

    /// Throws `.invalidField` with the API's name of the first invalid field.
    package func validate() throws(CacheError) {
        if let capacityBytes, capacityBytes < Self.minCapacityBytes {
            throw CacheError(.invalidField("capacityBytes"), "The capacity must be at least 16 MiB or null (no limit).")
        }
        guard highWatermark > 0, highWatermark <= 1 else {
            throw CacheError(.invalidField("highWatermark"), "The high watermark must be above 0 and at most 1.")
        }
        guard lowWatermark > 0, lowWatermark < highWatermark else {
            throw CacheError(.invalidField("lowWatermark"), "The low watermark must be above 0 and below the high one.")
        }
        guard minFreeDiskBytes >= 0 else {
            throw CacheError(.invalidField("minFreeDiskBytes"), "The free disk space to keep must not be negative.")
        }
        if let maxIdle, maxIdle <= .zero {
            throw CacheError(.invalidField("maxIdleSeconds"), "The idle limit must be above 0, or null for no limit.")
        }
        if let maxAge, maxAge <= .zero {
            throw CacheError(.invalidField("maxAgeSeconds"), "The maximum age must be above 0, or null for no limit.")
        }
        if let maxPinnedBytes, maxPinnedBytes < 0 {
            throw CacheError(
                .invalidField("maxPinnedBytes"), "The limit for pinned bytes must be 0 or more, or null for no limit.")
        }
        guard Self.uses.contains(minUses) else {
            throw CacheError(.invalidField("admission.minUses"), "The number of uses must be from 1 to 16.")
        }
        guard grace >= .zero else {
            throw CacheError(.invalidField("graceSeconds"), "The grace period must not be negative.")
        }
        guard tagQuotas.count <= Self.maxTagQuotas, tagQuotas.keys.allSatisfy(AssetRecord.isTag) else {
            throw CacheError(
                .invalidField("tagQuotas"),
                "At most \(Self.maxTagQuotas) tags of 1 to 128 characters may have a quota.")
        }
        for (tag, quota) in tagQuotas { try quota.validate(at: "tagQuotas.\(tag)") }
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
