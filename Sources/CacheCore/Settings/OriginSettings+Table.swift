extension OriginSettings {
    /// All settings of one origin except its header fields.
    package static let settings: [Setting<Self>] =
        Setting.upstream + Setting.accounts + Setting.caching + Setting.responses + Setting.storage + sharedSettings

    /// Settings that `upstream` sets for all origins too.
    package static let sharedSettings: [Setting<Self>] = Setting.transfers + Setting.fills + Setting.circuitBreaker
}

extension Setting<OriginSettings> {
    /// Servers, credentials and limits. Settings with a default below `upstream` are in ``OriginSettings/sharedSettings``.
    fileprivate static var upstream: [Setting] {
        [
            Setting(
                "baseURL", \.baseURL, .baseURL, "`http` or `https` URL of the files, without user, query and fragment"),
            Setting(
                "mirrors", list: \.mirrors, upTo: OriginSettings.maxMirrors, .baseURL,
                "up to 8 base URLs with the same paths, used in order if the one before fails; they receive the same "
                    + "headers and credentials. Their bytes are combined with others only if a strong validator and "
                    + "the length match"
            ).checked { settings in
                settings.repeatedMirror.map {
                    SettingFault(at: "[\($0)]", "The mirror repeats the base URL or another mirror.")
                }
            },
            Setting(
                "redirectHosts", list: \.redirectHosts, upTo: OriginSettings.maxRedirectHosts, .hostPattern,
                "hosts that redirects may lead to, besides those of the base URL and the mirrors: `host`, `host:port`, "
                    + "`host:*` or `*.suffix`; without it all hosts with a permitted address"),
            Setting(
                "credentialsFile", optional: \.credentialsFile, .insidePath,
                "file below `credentialsDirectory` with more header fields; see [below](#credentials-files)"),
            Setting(
                "access", optional: \.access, .choice,
                "`public`: content needs no token; `token`: it needs one. The default is `token` with `headers`, a "
                    + "`credentialsFile`, `auth` or `resolve`, otherwise `public`"
            ).checked { settings in
                guard settings.effectiveAccess == .token, settings.forwardsAuthorization else { return nil }
                return SettingFault(
                    "With forward: Authorization the field belongs to the upstream; set access to public.")
            },
            Setting(
                "maxTransfers", \.maxTransfers, .count(1...10_000, example: 16),
                "concurrent transfers of this origin (1–10000)"),
            Setting(
                "maxBytesPerSecond", orNone: \.maxBytesPerSecond, .rate,
                "rate limit of all transfers of this origin, at least 1 KiB; reads from disk are not limited"),
            Setting(
                "tls.caFile", optional: \.tls.caFile, .path,
                "PEM file of certificate authorities, used instead of the system's"),
            Setting("tls.verify", \.tls.verify, .flag, "verify the upstream's certificate"),
            Setting(
                "propagateTrace", \.propagatesTrace, .flag,
                "send `traceparent` and `tracestate` to the upstream if tracing is enabled"),
        ]
    }

    /// Freshness, keys and validators.
    fileprivate static var caching: [Setting] {
        [
            Setting(
                "freshness", \.freshness, .freshness,
                "lifetime of stored responses: `respect` the headers and estimate a missing lifetime; `explicit`: no "
                    + "estimate; or a fixed duration"),
            Setting(
                "keyQuery", \.keyQuery, .keyQuery,
                "part of the query that belongs to the key: `all`, `none`, or a mapping with `include` or `exclude`"),
            queryNames("keyQuery.include", "list: only these query parameters belong to the key") { .include($0) },
            queryNames("keyQuery.exclude", "list: all query parameters but these belong to the key") { .exclude($0) },
            Setting(
                "cmcd", \.cmcd, .choice,
                "query parameter `CMCD` of players: `strip`: not part of the key and not sent to the upstream; "
                    + "`forward`: sent, not part of the key; `key`: a parameter like any other"),
            Setting(
                "trustValidators", \.trustValidators, .choice,
                "proof that two responses belong to the same file: `strong`, `lengthAndLastModified` or `immutable`"),
            Setting(
                "staleIfError", \.staleIfError, .staleness,
                "how long after the end of freshness stored bytes are used if the upstream fails: as the response "
                    + "states, or a duration (`0s`: never)"),
            Setting(
                "negativeCaching", \.negativeCaching, .negativeCaching,
                "longest time for which a stored error status with a stated lifetime is repeated, or `none`"),
            Setting(
                "requestDirectives", \.requestDirectives, .flag, "obey `Cache-Control` and `Pragma` of readers"),
            Setting(
                "ignoreVary", list: \.ignoreVary, upTo: OriginSettings.maxIgnoredFields, .fieldName,
                "up to 32 header fields that select no variants, whatever `Vary` names"),
        ]
    }

    /// Responses and fallbacks.
    fileprivate static var responses: [Setting] {
        [
            Setting(
                "unknownLength", \.unknownLength, .choice,
                "response to a range while the length is unknown: `whole`: 200 with all bytes; `partial`: 206 with "
                    + "`/*`"),
            Setting(
                "errorBodies", \.errorBodies, .choice,
                "body of a read that the upstream refuses: a problem document, or `upstream`: the upstream's own body, "
                    + "which is also repeated by `negativeCaching`"),
            Setting(
                "verify", \.verification, .choice,
                "compare bytes with their checksums before they are sent: `first`: once, at the first read after each start; "
                    + "`suspect`: once, after a crash; `always`: "
                    + "with each read"),
            fallback(
                "fallback.asset", "identifier of an asset that is sent in place of a failed read",
                member: SettingMember("fallback", \.fallback, .fallback),
                write: { if case .asset(let id) = $0 { id.description } else { nil } },
                parse: { text throws(SettingFault) in
                    guard let id = AssetID(text) else {
                        throw SettingFault(
                            "\"\(text)\" is not an asset's id (try 9f86d081884c7d659a2feaa0c55ad015)")
                    }
                    return .asset(id)
                }),
            fallback(
                "fallback.file", "the same with a file below `fallbackDirectory`; set only one of the two",
                write: { if case .file(let path) = $0 { path } else { nil } },
                parse: { text throws(SettingFault) in
                    .file(try SettingCodec<String>.insidePath.value(of: text))
                }),
        ]
    }

    /// Rules for storing, and the quota.
    fileprivate static var storage: [Setting] {
        [
            Setting(
                "encrypt", \.isEncrypted, .flag,
                "store content encrypted; requires a master key (`encryption.keysDirectory` or `encryption.keyCommand`), "
                    + "see [Encryption](security.md#encryption-at-rest)"),
            Setting(
                "storeRules.max", orNone: \.storeRules.maxBytes, .size(example: "4GiB"),
                "do not store files longer than this"),
            Setting(
                "storeRules.never", list: \.storeRules.never, upTo: OriginSettings.maxStoreTypes, .mediaType,
                "media types that are never stored, such as `text/html` or `video/*`"),
            Setting(
                "storeRules.always", list: \.storeRules.always, upTo: OriginSettings.maxStoreTypes, .mediaType,
                "media types that are always stored, unless `never` contains them"),
        ] + Quota.settings.map { $0.moved(to: "quota", \.quota) }
    }

    /// One kind of fallback; the two kinds exclude each other.
    private static func fallback(
        _ key: String, _ meaning: String, member: SettingMember<OriginSettings>? = nil,
        write: @escaping @Sendable (OriginSettings.Fallback) -> String?,
        parse: @escaping @Sendable (String) throws(SettingFault) -> OriginSettings.Fallback
    ) -> Setting {
        Setting(
            key, meaning,
            parse: { text, settings throws(SettingFault) in
                guard text != .scalar("none") else { return }
                guard settings.fallback == nil else {
                    throw SettingFault("cannot be combined with fallback.asset; remove one of them")
                }
                settings.fallback = try parse(text.scalar)
            },
            write: { settings in settings.fallback.flatMap(write).map(SettingText.scalar) }, member: member)
    }

    /// One list form of `keyQuery`.
    private static func queryNames(
        _ key: String, _ meaning: String, rule: @escaping @Sendable ([String]) -> OriginSettings.KeyQuery
    ) -> Setting {
        Setting(
            key, meaning, isList: true,
            parse: { text, settings throws(SettingFault) in
                guard !text.list.contains("") else { throw SettingFault("\"\" is not a name (try v)") }
                settings.keyQuery = rule(text.list)
            },
            write: { settings in
                settings.keyQuery.names.flatMap { rule($0) == settings.keyQuery ? .list($0) : nil }
            })
    }

    /// Retries and timeouts.
    fileprivate static var transfers: [Setting] {
        [
            Setting("retries", \.retries, .count(0...20, example: 3), "retries of a failed transfer (0–20)"),
            Setting(
                "timeouts.connect", orNone: \.timeouts.connect, .wait("5s"), "DNS, TCP and TLS together, or `none`"),
            Setting(
                "timeouts.firstByte", orNone: \.timeouts.firstByte, .wait("15s"),
                "from the request to the response head, or `none`"),
            Setting(
                "timeouts.idle", orNone: \.timeouts.idle, .wait("15s"),
                "longest pause without bytes within a body, or `none`"),
            Setting(
                "timeouts.total", orNone: \.timeouts.total, .wait("5m"),
                "one transfer from start to end, or `none`"),
            Setting(
                "timeouts.read", \.readTimeout, .wait("30s"),
                "a reader's wait for its first byte, then `504`; in mid-body, for the next byte"),
            Setting(
                "allowPrivateAddresses", \.allowPrivateAddresses, .flag,
                "the upstream may have a private or loopback address"),
        ]
    }

    /// Windows, and when they end.
    fileprivate static var fills: [Setting] {
        [
            Setting(
                "readAhead", \.readAheadBytes, .size(0...(1 << 30), example: "16MiB").written(atLeast: 64 << 10),
                "largest window of one request, and the distance fetched ahead of a reader; from 64 KiB "
                    + "to 1 GiB"),
            Setting(
                "finishIfRemaining", \.finishIfRemainingBytes, .size(example: "8MiB"),
                "when its last reader leaves, a window is finished if at most this much is missing, otherwise "
                    + "cancelled; at most 256 KiB if the reader stated no end"),
            Setting(
                "finishIfRemainingPercent", orNone: \.finishIfRemainingPercent, .count(0...100, example: 10),
                "the same rule with a percentage of the window (0–100)"),
            Setting(
                "gapMerge", \.gapMergeBytes, .size(0...(16 << 20), example: "64KiB"),
                "cached runs shorter than this are fetched again with the gaps around them, in one request, if the "
                    + "upstream needs at least 5 ms to its first byte; at most 16 MiB, `0` disables it"),
            Setting(
                "speculative", \.speculativeBytes, .size(0...(1 << 30), example: "2MiB"),
                "bytes fetched beyond the requested range, at most 1 GiB"),
            Setting(
                "anticipateIndex", \.anticipatesIndex, .flag,
                "fetch the index at the end of an MP4 file, up to 2 MiB, when a reader has passed its first 256 KiB"),
            Setting(
                "hedging", \.hedging, .flag,
                "send a second request if the first byte takes longer than the 95th percentile"),
        ]
    }

    /// The circuit breaker: in configurations the word `off`, or a group. The word has precedence if both are set, so
    /// it is read last.
    fileprivate static var circuitBreaker: [Setting] {
        [
            circuitPart(
                "failures", \.failures, .circuitFailures, "consecutive failures that open the circuit (1–1000)"),
            circuitPart(
                "pause", \.pause, .circuitPause,
                "time without requests after the circuit has opened, doubled after each failed probe; at most 30 s"),
            Setting(
                "circuitBreaker", "`off`: never stop requests to a failing upstream",
                parse: { text, settings throws(SettingFault) in
                    guard let isOn = SettingCodec<Bool>.flag.parse(text.scalar) else {
                        throw SettingFault(
                            "\"\(text.scalar)\" is not on, off, or a mapping with failures and pause (try off)")
                    }
                    settings.circuitBreaker = isOn ? settings.circuitBreaker ?? .init() : nil
                },
                write: { settings in settings.circuitBreaker == nil ? .scalar("off") : nil },
                member: SettingMember("circuitBreaker", \.circuitBreaker, .circuitBreaker)),
        ]
    }

    /// One member of the group `circuitBreaker`.
    private static func circuitPart<Value>(
        _ name: String, _ part: SettingPath<OriginSettings.CircuitBreaker, Value>,
        _ codec: SettingCodec<Value>,
        _ meaning: String
    ) -> Setting {
        Setting(
            "circuitBreaker.\(name)", meaning,
            parse: { text, settings throws(SettingFault) in
                var breaker = settings.circuitBreaker ?? OriginSettings.CircuitBreaker()
                breaker[keyPath: part] = try codec.value(of: text.scalar)
                settings.circuitBreaker = breaker
            },
            write: { settings in
                settings.circuitBreaker.flatMap { codec.write($0[keyPath: part]).map(SettingText.scalar) }
            })
    }
}

extension Quota {
    /// The settings of one quota.
    package static let settings: [Setting<Self>] = [
        Setting(
            "min", \.minBytes, .size(example: "10GiB"),
            "disk space guaranteed to these assets while any other asset can be evicted"),
        Setting(
            "max", orNone: \.maxBytes, .size(atLeast: 1, example: "100GiB"),
            "disk space that these assets may use; usage above it is evicted from these assets only"
        ).checked { quota in
            quota.maxBytes.flatMap {
                $0 < quota.minBytes ? SettingFault("The maximum must not be below the minimum.") : nil
            }
        },
    ]
}
