package import CacheCore

extension OriginSettings {
    package static let keys = [
        "name", "baseURL", "headers", "freshness", "keyQuery", "timeouts", "retries", "maxTransfers",
        "maxBytesPerSecond", "readAheadBytes", "finishIfRemainingBytes", "finishIfRemainingPercent", "gapMergeBytes",
        "speculativeBytes", "mirrors", "hedging", "circuitBreaker", "allowPrivateAddresses", "tls", "access",
        "credentialsFile", "trustValidators", "staleIfErrorSeconds", "negativeCaching", "requestDirectives",
        "ignoreVary", "unknownLength", "errorBodies", "fallback", "storeRules", "quota", "verify",
    ]
    private static let nullableKeys: Set<String> = [
        "maxBytesPerSecond", "finishIfRemainingPercent", "access", "credentialsFile", "staleIfErrorSeconds", "fallback",
    ]
    package static let timeoutKeys = [
        "connectSeconds", "firstByteSeconds", "idleSeconds", "totalSeconds", "readSeconds",
    ]
    package static let tlsKeys = ["caFile", "verify"]
    package static let negativeCachingKeys = ["maxSeconds"]
    package static let storeRulesKeys = ["maxBytes", "never", "always"]
    package static let circuitBreakerKeys = ["failures", "pauseSeconds"]

    /// Reads the `Origin` schema; fields left out take their defaults. A header whose value is ``Origin/secret`` keeps
    /// the value that `present` has, as long as it goes where it went: not to another scheme, host or port, be it by the
    /// base URL or by a mirror.
    package init(_ json: JSON, name: String, present: OriginSettings?) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys, nullable: Self.nullableKeys)
        if let given = try fields.string("name"), given != name {
            throw fields.invalid("name", "The name in the path is \(name).")
        }
        guard let baseURL = try fields.string("baseURL") else {
            throw fields.invalid("baseURL", "The upstream's URL is missing.")
        }
        self.init(baseURL: baseURL)
        if let mirrors = try fields.strings("mirrors", atMost: Self.maxMirrors) { self.mirrors = mirrors }
        headers = try headers(fields, present: present)
        if let value = fields.json("freshness") { freshness = try Freshness(value) }
        if let value = fields.json("keyQuery") { keyQuery = try KeyQuery(value) }
        try readTimeouts(fields)
        if let count = try fields.integer("retries", in: 0...1000) { retries = Int(count) }
        if let count = try fields.integer("maxTransfers", in: 0...100_000) { maxTransfers = Int(count) }
        maxBytesPerSecond = try fields.integer("maxBytesPerSecond")
        try readFills(fields)
        if let isAllowed = try fields.bool("allowPrivateAddresses") { allowPrivateAddresses = isAllowed }
        if let value = fields.json("tls") {
            let inner = try JSONFields(value, at: "tls", accepting: Self.tlsKeys, nullable: ["caFile"])
            tls = TLSSettings(caFile: try inner.string("caFile"), verify: try inner.bool("verify") ?? true)
        }
        access = try fields.choice("access")
        credentialsFile = try fields.string("credentialsFile")
        if let value = fields.json("fallback") { fallback = try Fallback(value) }
        try readRules(fields)
        try readStorage(fields)
        try validate()
    }

    /// These settings with a merge patch applied (RFC 7396): null restores a default. A choice between forms, as `freshness`,
    /// is replaced as a whole.
    package func merging(_ patch: JSON, name: String) throws(CacheError) -> OriginSettings {
        guard case .object = patch else { throw CacheError(.invalidField("(body)"), "A JSON object is expected here.") }
        var present = Origin(name: name, settings: self).json
        let patch = named(patch)
        if access == nil { present = present.merged(with: ["access": .null]) }
        let choices: Set = ["freshness", "keyQuery", "fallback", "negativeCaching", "circuitBreaker"]
        let merged = present.merged(with: patch, whole: choices)
        return try OriginSettings(merged, name: name, present: self)
    }

    /// The patch with its header fields named as they are here: names are the same in any case of letters.
    private func named(_ patch: JSON) -> JSON {
        guard case .object(let members) = patch else { return patch }
        return .object(
            members.map { member in
                guard member.key == "headers", case .object(let fields) = member.value else { return member }
                let named = fields.map { field in
                    let name = headers.fields.first { FieldText.lowered($0.name) == FieldText.lowered(field.key) }?.name
                    return JSON.Member(name ?? field.key, field.value)
                }
                return JSON.Member(member.key, .object(named))
            })
    }

    private mutating func readFills(_ fields: JSONFields) throws(CacheError) {
        if let bytes = try fields.integer("readAheadBytes") { readAheadBytes = bytes }
        if let bytes = try fields.integer("finishIfRemainingBytes") { finishIfRemainingBytes = bytes }
        finishIfRemainingPercent = try fields.integer("finishIfRemainingPercent", in: 0...100).map { Int($0) }
        if let bytes = try fields.integer("gapMergeBytes") { gapMergeBytes = bytes }
        if let bytes = try fields.integer("speculativeBytes") { speculativeBytes = bytes }
        if let isOn = try fields.bool("hedging") { hedging = isOn }
        if let value = fields.json("circuitBreaker") { circuitBreaker = try Self.circuitBreaker(value) }
    }

    private static func circuitBreaker(_ json: JSON) throws(CacheError) -> CircuitBreaker? {
        if json == .bool(false) { return nil }
        guard case .object = json else {
            throw CacheError(
                .invalidField("circuitBreaker"), "false or {\"failures\": …, \"pauseSeconds\": …} is expected here.")
        }
        let fields = try JSONFields(json, at: "circuitBreaker", accepting: circuitBreakerKeys)
        var breaker = CircuitBreaker()
        if let failures = try fields.integer("failures", in: 0...100_000) { breaker.failures = Int(failures) }
        if let pause = try fields.seconds("pauseSeconds") { breaker.pause = pause }
        return breaker
    }

    private mutating func readStorage(_ fields: JSONFields) throws(CacheError) {
        if let value = fields.json("storeRules") {
            let inner = try JSONFields(
                value, at: "storeRules", accepting: Self.storeRulesKeys, nullable: ["maxBytes"])
            storeRules.maxBytes = try inner.integer("maxBytes")
            storeRules.never = try inner.strings("never", atMost: Self.maxStoreTypes) ?? []
            storeRules.always = try inner.strings("always", atMost: Self.maxStoreTypes) ?? []
        }
        if let value = fields.json("quota") {
            quota = try Quota().merging(value, at: "quota")
        }
    }

    private mutating func readRules(_ fields: JSONFields) throws(CacheError) {
        if let trusted = try fields.choice("trustValidators", TrustedValidators.self) { trustValidators = trusted }
        staleIfError = try fields.seconds("staleIfErrorSeconds")
        if let value = fields.json("negativeCaching") { negativeCaching = try Self.negativeCaching(value) }
        if let isObeyed = try fields.bool("requestDirectives") { requestDirectives = isObeyed }
        if let names = try fields.strings("ignoreVary", atMost: Self.maxIgnoredFields) { ignoreVary = names }
        if let answer = try fields.choice("unknownLength", UnknownLength.self) { unknownLength = answer }
        if let bodies = try fields.choice("errorBodies", ErrorBodies.self) { errorBodies = bodies }
        if let when = try fields.choice("verify", Verification.self) { verification = when }
    }

    private static func negativeCaching(_ json: JSON) throws(CacheError) -> Duration? {
        if json == .bool(false) { return nil }
        guard case .object = json else {
            throw CacheError(.invalidField("negativeCaching"), "false or {\"maxSeconds\": …} is expected here.")
        }
        let fields = try JSONFields(json, at: "negativeCaching", accepting: negativeCachingKeys)
        guard let longest = try fields.seconds("maxSeconds") else {
            throw fields.invalid("maxSeconds", "The number of seconds is missing.")
        }
        return longest
    }

    private mutating func readTimeouts(_ fields: JSONFields) throws(CacheError) {
        guard let value = fields.json("timeouts") else { return }
        let inner = try JSONFields(
            value, at: "timeouts", accepting: Self.timeoutKeys,
            nullable: ["connectSeconds", "firstByteSeconds", "idleSeconds", "totalSeconds"])
        if inner.has("connectSeconds") { timeouts.connect = try inner.seconds("connectSeconds") }
        if inner.has("firstByteSeconds") { timeouts.firstByte = try inner.seconds("firstByteSeconds") }
        if inner.has("idleSeconds") { timeouts.idle = try inner.seconds("idleSeconds") }
        if inner.has("totalSeconds") { timeouts.total = try inner.seconds("totalSeconds") }
        if let limit = try inner.seconds("readSeconds") { readTimeout = limit }
    }

    private func headers(_ fields: JSONFields, present: OriginSettings?) throws(CacheError) -> HeaderList {
        guard let value = fields.json("headers") else { return [:] }
        guard case .object(let members) = value else { throw fields.invalid("headers", "An object is expected here.") }
        var headers: HeaderList = [:]
        for member in members {
            let name = "headers.\(member.key)"
            guard case .string(let text) = member.value else {
                throw fields.invalid(name, "A string is expected here.")
            }
            if text != Origin.secret {
                headers.append(member.key, text)
            } else if let present, let kept = present.headers[member.key] {
                if let refusal = refusalToKeepSecrets(of: present) { throw fields.invalid(name, refusal) }
                headers.append(member.key, kept)
            } else {
                throw fields.invalid(name, "There is no value yet that could be kept.")
            }
        }
        return headers
    }

    /// Why what was sent to the servers of `present` alone must not be sent to those of these settings; nil where it may.
    private func refusalToKeepSecrets(of present: OriginSettings) -> String? {
        guard BaseURL.isSameServer(baseURL, present.baseURL) else {
            return "The base URL has another server now: give the value anew."
        }
        let known = [present.baseURL] + present.mirrors
        let isKnown = mirrors.allSatisfy { mirror in known.contains { BaseURL.isSameServer(mirror, $0) } }
        return isKnown ? nil : "There is a mirror on another server now: give the value anew."
    }
}

extension OriginSettings.Freshness {
    package static let keys = ["ttlSeconds"]

    init(_ json: JSON) throws(CacheError) {
        switch json {
        case "respect": self = .respect
        case "explicit": self = .explicit
        case .object:
            let fields = try JSONFields(json, at: "freshness", accepting: Self.keys)
            guard let ttl = try fields.seconds("ttlSeconds") else {
                throw fields.invalid("ttlSeconds", "The number of seconds is missing.")
            }
            self = .ttl(ttl)
        default:
            throw CacheError(
                .invalidField("freshness"), "\"respect\", \"explicit\" or {\"ttlSeconds\": …} is expected here.")
        }
    }
}

extension OriginSettings.Fallback {
    package static let keys = ["assetId", "file"]

    init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, at: "fallback", accepting: Self.keys)
        switch (try fields.string("assetId"), try fields.string("file")) {
        case (let text?, nil):
            guard let id = AssetID(text) else { throw fields.invalid("assetId", "That is no asset's id.") }
            self = .asset(id)
        case (nil, let path?): self = .file(path)
        default: throw fields.invalid("assetId", "Either assetId or file is expected here.")
        }
    }
}

extension OriginSettings.KeyQuery {
    package static let keys = ["include", "exclude"]

    init(_ json: JSON) throws(CacheError) {
        switch json {
        case "all": self = .all
        case "none": self = .none
        case .object:
            let fields = try JSONFields(json, at: "keyQuery", accepting: Self.keys)
            switch (try fields.strings("include", atMost: 256), try fields.strings("exclude", atMost: 256)) {
            case (let names?, nil): self = .include(names)
            case (nil, let names?): self = .exclude(names)
            default: throw fields.invalid("include", "Either include or exclude is expected here.")
            }
        default:
            throw CacheError(
                .invalidField("keyQuery"),
                "\"all\", \"none\", {\"include\": […]} or {\"exclude\": […]} is expected here.")
        }
    }
}
