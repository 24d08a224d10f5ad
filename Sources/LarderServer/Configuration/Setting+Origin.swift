import CacheCore

extension Setting<OriginSettings> {
    /// All settings of one origin except its header fields.
    static var all: [Setting] { own + rules + storage + shared }

    /// Settings that `upstream` sets for all origins too.
    static var shared: [Setting] {
        [
            Setting("retries", \.retries, .count(0...20, example: 3), "maximum retries of a failed transfer"),
            Setting(
                "timeouts.connect", orNone: \.timeouts.connect, .duration(example: "5s"), "name resolution, TCP and TLS"
            ),
            Setting(
                "timeouts.firstByte", orNone: \.timeouts.firstByte, .duration(example: "15s"),
                "request sent to response head"),
            Setting(
                "timeouts.idle", orNone: \.timeouts.idle, .duration(example: "15s"), "maximum time without body bytes"),
            Setting(
                "timeouts.total", orNone: \.timeouts.total, .duration(example: "5m"), "maximum duration of a transfer"),
            Setting(
                "timeouts.read", \.readTimeout, .duration(example: "30s"), "a reader's maximum wait for the first byte"),
            Setting("allowPrivateAddresses", \.allowPrivateAddresses, .flag, "allow upstreams on private networks"),
        ] + fills
    }

    /// Settings of a single origin, which have no default below `upstream`.
    private static var own: [Setting] {
        [
            Setting("baseURL", \.baseURL, .baseURL, "base URL of the origin's files"),
            Setting("mirrors", list: \.mirrors, .baseURL, "further base URLs with the same paths"),
            Setting("freshness", \.freshness, .freshness, "respect, explicit, or a lifetime"),
            keyQuery,
            queryNames("keyQuery.include", "query parameters that are part of the key") { .include($0) },
            queryNames("keyQuery.exclude", "query parameters that are not part of the key") { .exclude($0) },
            Setting("maxTransfers", \.maxTransfers, .count(1...10_000, example: 16), "concurrent transfers"),
            Setting(
                "maxBytesPerSecond", orNone: \.maxBytesPerSecond, .size(atLeast: 1024, example: "50MiB"),
                "maximum rate of all transfers together"),
            Setting("tls.caFile", optional: \.tls.caFile, .path, "PEM file of authorities instead of the system's"),
            Setting("tls.verify", \.tls.verify, .flag, "verify the certificate"),
            Setting("access", optional: \.access, .choice, "public, or token: readers need a token"),
            Setting(
                "credentialsFile", optional: \.credentialsFile, .insidePath,
                "file of header lines, below credentialsDirectory"),
        ]
    }

    /// Storage, trust and response rules beyond the upstream's header fields.
    private static var rules: [Setting] {
        [
            Setting("trustValidators", \.trustValidators, .choice, "validators that prove the identity of a file"),
            Setting(
                "staleIfError", \.staleIfError, .staleness, "respect, or the time that stale bytes replace failures"),
            Setting(
                "negativeCaching", orNone: \.negativeCaching, .lifetime(example: "5m"),
                "maximum lifetime of a negative cache entry"),
            Setting("requestDirectives", \.requestDirectives, .flag, "apply the readers' Cache-Control"),
            Setting("ignoreVary", list: \.ignoreVary, .fieldName, "Vary fields that are ignored"),
            Setting(
                "unknownLength", \.unknownLength, .choice,
                "response to a range of unknown total length: whole or partial"),
            Setting("errorBodies", \.errorBodies, .choice, "error body: the upstream's, or a problem document"),
            Setting("verify", \.verification, .choice, "verify suspect bytes, or all bytes, before they are sent"),
            fallback("fallback.asset", .assetID, "asset that is sent in place of a failed read", of: \.assetID) {
                .asset($0)
            },
            fallback(
                "fallback.file", .insidePath, "file that is sent in place of a failed read, below fallbackDirectory",
                of: \.filePath
            ) {
                .file($0)
            },
        ]
    }

    /// Storage rules and the quota.
    private static var storage: [Setting] {
        [
            Setting(
                "storeRules.max", orNone: \.storeRules.maxBytes, .size(atLeast: 0, example: "4GiB"),
                "maximum length of a stored asset"),
            Setting("storeRules.never", list: \.storeRules.never, .mediaType, "media types that are never stored"),
            Setting("storeRules.always", list: \.storeRules.always, .mediaType, "media types that are always stored"),
        ] + Setting<Quota>.all.map { $0.moved(to: "quota", \.quota) }
    }

    /// One kind of fallback; the two kinds exclude each other.
    private static func fallback<Value>(
        _ key: String, _ form: SettingCodec<Value>, _ meaning: String,
        of part: @escaping (OriginSettings.Fallback) -> Value?,
        as fallback: @escaping (Value) -> OriginSettings.Fallback
    ) -> Setting {
        Setting(
            key, meaning,
            read: { lookup, path, settings throws(SettingsError) in
                guard let value = try lookup.value(path, as: form.orNone, or: nil) else { return }
                guard settings.fallback == nil else {
                    throw SettingsError(path.dotted, "cannot be combined with fallback.asset; remove one of them")
                }
                settings.fallback = fallback(value)
            },
            written: { settings in settings.fallback.flatMap(part).map { .scalar(form.write($0)) } })
    }

    /// The word form of `keyQuery`; the lists are settings of their own.
    private static var keyQuery: Setting {
        let form = SettingCodec<OriginSettings.KeyQuery>.wholeQuery
        return Setting(
            "keyQuery", "part of the query that belongs to the key: all or none",
            read: { lookup, path, settings throws(SettingsError) in
                settings.keyQuery = try lookup.value(path, as: form, or: settings.keyQuery)
            },
            written: { settings in
                switch settings.keyQuery {
                case .all, .none: .scalar(form.write(settings.keyQuery))
                case .include, .exclude: nil
                }
            })
    }

    /// One list form of `keyQuery`.
    private static func queryNames(
        _ key: String, _ meaning: String, rule: @escaping ([String]) -> OriginSettings.KeyQuery
    ) -> Setting {
        Setting(
            key, isList: true, meaning,
            read: { lookup, path, settings throws(SettingsError) in
                guard lookup.list(path) != nil else { return }
                settings.keyQuery = rule(try lookup.values(path, as: .text("a name", example: "v"), or: []))
            },
            written: { settings in
                switch settings.keyQuery {
                case .include(let names), .exclude(let names):
                    rule(names) == settings.keyQuery ? .list(names) : nil
                case .all, .none: nil
                }
            })
    }
}

extension OriginSettings.Fallback {
    /// The asset of this fallback; nil for a file.
    fileprivate var assetID: AssetID? {
        if case .asset(let id) = self { id } else { nil }
    }

    /// The file of this fallback; nil for an asset.
    fileprivate var filePath: String? {
        if case .file(let path) = self { path } else { nil }
    }
}
