package import CacheCore

extension Origin {
    /// The placeholder for the value of a header field in responses. Sent back in a request, it keeps the stored value.
    package static let secret = "•••"

    /// The `Origin` schema. Values of header fields are replaced by ``secret``.
    package var json: JSON {
        let headers = settings.headers.fields.map { JSON.Member($0.name, .string(Self.secret)) }
        return [
            "name": .string(name), "baseURL": .string(settings.baseURL), "headers": .object(headers),
            "freshness": settings.freshness.json, "keyQuery": settings.keyQuery.json,
            "timeouts": [
                "connectSeconds": .seconds(settings.timeouts.connect),
                "firstByteSeconds": .seconds(settings.timeouts.firstByte),
                "idleSeconds": .seconds(settings.timeouts.idle), "totalSeconds": .seconds(settings.timeouts.total),
                "readSeconds": .seconds(settings.readTimeout),
            ],
            "retries": .count(settings.retries), "maxTransfers": .count(settings.maxTransfers),
            "maxBytesPerSecond": .bytes(settings.maxBytesPerSecond),
            "readAheadBytes": .integer(settings.readAheadBytes),
            "finishIfRemainingBytes": .integer(settings.finishIfRemainingBytes),
            "finishIfRemainingPercent": .optional(settings.finishIfRemainingPercent) { .count($0) },
            "gapMergeBytes": .integer(settings.gapMergeBytes), "speculativeBytes": .integer(settings.speculativeBytes),
            "mirrors": .array(settings.mirrors.map(JSON.string)), "hedging": .bool(settings.hedging),
            "circuitBreaker": settings.circuitBreaker?.json ?? .bool(false),
            "allowPrivateAddresses": .bool(settings.allowPrivateAddresses),
            "tls": ["caFile": .text(settings.tls.caFile), "verify": .bool(settings.tls.verify)],
            "access": .string(settings.effectiveAccess.rawValue), "credentialsFile": .text(settings.credentialsFile),
            "trustValidators": .string(settings.trustValidators.rawValue),
            "staleIfErrorSeconds": .seconds(settings.staleIfError),
            "negativeCaching": settings.negativeCaching.map { ["maxSeconds": .seconds($0)] } ?? .bool(false),
            "requestDirectives": .bool(settings.requestDirectives),
            "ignoreVary": .array(settings.ignoreVary.map(JSON.string)),
            "unknownLength": .string(settings.unknownLength.rawValue),
            "errorBodies": .string(settings.errorBodies.rawValue),
            "verify": .string(settings.verification.rawValue),
            "fallback": .optional(settings.fallback, \.json), "storeRules": settings.storeRules.json,
            "quota": settings.quota.json,
        ]
    }
}

extension OriginSettings.StoreRules {
    /// The `storeRules` member.
    var json: JSON {
        [
            "maxBytes": .bytes(maxBytes), "never": .array(never.map(JSON.string)),
            "always": .array(always.map(JSON.string)),
        ]
    }
}

extension OriginSettings.CircuitBreaker {
    /// The `circuitBreaker` member of an enabled circuit breaker.
    var json: JSON { ["failures": .count(failures), "pauseSeconds": .seconds(pause)] }
}

extension OriginSettings.Fallback {
    /// The `fallback` member.
    var json: JSON {
        switch self {
        case .asset(let id): ["assetId": .string(id.description)]
        case .file(let path): ["file": .string(path)]
        }
    }
}

extension OriginSettings.Freshness {
    /// The `freshness` member.
    var json: JSON {
        switch self {
        case .respect: "respect"
        case .explicit: "explicit"
        case .ttl(let ttl): ["ttlSeconds": .seconds(ttl)]
        }
    }
}

extension OriginSettings.KeyQuery {
    /// The `keyQuery` member.
    var json: JSON {
        switch self {
        case .all: "all"
        case .none: "none"
        case .include(let names): ["include": .array(names.map(JSON.string))]
        case .exclude(let names): ["exclude": .array(names.map(JSON.string))]
        }
    }
}
