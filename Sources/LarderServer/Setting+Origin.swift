import CacheCore

extension Setting<OriginSettings> {
    /// Every setting of one origin but its headers.
    static var all: [Setting] { own + shared }

    /// Those that `upstream` gives to all origins at once, too.
    static var shared: [Setting] {
        [
            Setting("retries", \.retries, .count(0...20, example: 3), "a broken transfer is begun again so often"),
            Setting("readAhead", \.readAheadBytes, .size(atLeast: 64 << 10, example: "8MiB"), "the largest window"),
            Setting(
                "finishIfRemaining", \.finishIfRemainingBytes, .size(atLeast: 0, example: "8MiB"),
                "of a window its last reader left is finished"),
            Setting(
                "timeouts.connect", orNone: \.timeouts.connect, .duration(example: "5s"), "name look-up, TCP and TLS"),
            Setting(
                "timeouts.firstByte", orNone: \.timeouts.firstByte, .duration(example: "15s"), "to the response's head"),
            Setting(
                "timeouts.idle", orNone: \.timeouts.idle, .duration(example: "15s"), "between two arrivals of bytes"),
            Setting("timeouts.total", orNone: \.timeouts.total, .duration(example: "5m"), "one transfer, end to end"),
            Setting("timeouts.read", \.readTimeout, .duration(example: "30s"), "a reader's wait for the first byte"),
            Setting("allowPrivateAddresses", \.allowPrivateAddresses, .flag, "upstreams on private networks"),
        ]
    }

    private static var own: [Setting] {
        [
            Setting("baseURL", \.baseURL, .baseURL, "where the originals are"),
            Setting("freshness", \.freshness, .freshness, "respect, or how long bytes are used unasked"),
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
        ]
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
