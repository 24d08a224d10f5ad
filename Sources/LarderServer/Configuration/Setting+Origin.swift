import CacheCore

extension Setting<OriginSettings> {
    /// Every setting of one origin but its headers.
    static var all: [Setting] { own + rules + storage + shared }

    /// Those that `upstream` gives to all origins at once, too.
    static var shared: [Setting] {
        [
            Setting("retries", \.retries, .count(0...20, example: 3), "a broken transfer is begun again so often"),
            Setting(
                "timeouts.connect", orNone: \.timeouts.connect, .duration(example: "5s"), "name look-up, TCP and TLS"),
            Setting(
                "timeouts.firstByte", orNone: \.timeouts.firstByte, .duration(example: "15s"), "to the response's head"),
            Setting(
                "timeouts.idle", orNone: \.timeouts.idle, .duration(example: "15s"), "between two arrivals of bytes"),
            Setting("timeouts.total", orNone: \.timeouts.total, .duration(example: "5m"), "one transfer, end to end"),
            Setting("timeouts.read", \.readTimeout, .duration(example: "30s"), "a reader's wait for the first byte"),
            Setting("allowPrivateAddresses", \.allowPrivateAddresses, .flag, "upstreams on private networks"),
        ] + fills
    }

    private static var own: [Setting] {
        [
            Setting("baseURL", \.baseURL, .baseURL, "where the originals are"),
            Setting("mirrors", list: \.mirrors, .baseURL, "where else they are, with the same paths"),
            Setting("freshness", \.freshness, .freshness, "respect, explicit, or how long bytes are used unasked"),
            keyQuery,
            queryNames("keyQuery.include", "only these query parameters name the asset") { .include($0) },
            queryNames("keyQuery.exclude", "all query parameters but these name the asset") { .exclude($0) },
            Setting("maxTransfers", \.maxTransfers, .count(1...10_000, example: 16), "transfers at once"),
            Setting(
                "maxBytesPerSecond", orNone: \.maxBytesPerSecond, .size(atLeast: 1024, example: "50MiB"),
                "all transfers together"),
            Setting("tls.caFile", optional: \.tls.caFile, .path, "PEM authorities instead of the system's"),
            Setting("tls.verify", \.tls.verify, .flag, "whether the certificate is checked"),
            Setting("access", optional: \.access, .choice, "public, or token: readers need one"),
            Setting(
                "credentialsFile", optional: \.credentialsFile, .insidePath, "header lines, below credentialsDirectory"),
        ]
    }

    /// What is kept, trusted and answered beyond what the upstream's headers say.
    private static var rules: [Setting] {
        [
            Setting("trustValidators", \.trustValidators, .choice, "what proves that bytes are of one file"),
            Setting("staleIfError", \.staleIfError, .staleness, "respect, or how long stale bytes replace failures"),
            Setting(
                "negativeCaching", orNone: \.negativeCaching, .lifetime(example: "5m"),
                "the longest that a refusal is remembered"),
            Setting("requestDirectives", \.requestDirectives, .flag, "readers' Cache-Control is obeyed"),
            Setting("ignoreVary", list: \.ignoreVary, .fieldName, "fields that tell no variants apart"),
            Setting("unknownLength", \.unknownLength, .choice, "a range of an unknown length: whole or partial"),
            Setting("errorBodies", \.errorBodies, .choice, "a refused read has the upstream's body, or a problem"),
            Setting("verify", \.verification, .choice, "suspect bytes, or always, are checked before they are sent"),
            fallback("fallback.asset", .assetID, "the asset answered in place of a failure", of: \.assetID) {
                .asset($0)
            },
            fallback("fallback.file", .insidePath, "the same as a file, below fallbackDirectory", of: \.filePath) {
                .file($0)
            },
        ]
    }

    /// What is kept whatever the upstream says, and how much of it.
    private static var storage: [Setting] {
        [
            Setting(
                "storeRules.max", orNone: \.storeRules.maxBytes, .size(atLeast: 0, example: "4GiB"),
                "nothing longer is kept"),
            Setting("storeRules.never", list: \.storeRules.never, .mediaType, "media types that are not kept"),
            Setting("storeRules.always", list: \.storeRules.always, .mediaType, "media types that always are"),
        ] + Setting<Quota>.all.map { $0.moved(to: "quota", \.quota) }
    }

    private static func fallback<Value>(
        _ key: String, _ form: SettingsForm<Value>, _ meaning: String,
        of part: @escaping (OriginSettings.Fallback) -> Value?,
        as fallback: @escaping (Value) -> OriginSettings.Fallback
    ) -> Setting {
        Setting(
            key, meaning,
            read: { lookup, path, settings throws(SettingsError) in
                guard let value = try lookup.value(path, as: form.orNone, or: nil) else { return }
                guard settings.fallback == nil else {
                    throw SettingsError(path.dotted, "is set together with fallback.asset; keep one")
                }
                settings.fallback = fallback(value)
            },
            written: { settings in settings.fallback.flatMap(part).map { .scalar(form.write($0)) } })
    }

    private static var keyQuery: Setting {
        let form = SettingsForm<OriginSettings.KeyQuery>.wholeQuery
        return Setting(
            "keyQuery", "all or none of the query names the asset",
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
    fileprivate var assetID: AssetID? {
        if case .asset(let id) = self { id } else { nil }
    }

    fileprivate var filePath: String? {
        if case .file(let path) = self { path } else { nil }
    }
}
