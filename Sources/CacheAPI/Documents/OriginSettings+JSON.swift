package import CacheCore

extension OriginSettings {
    /// The members of the `Origin` schema.
    package static let keys = [
        "name", "baseURL", "headers", "freshness", "keyQuery", "timeouts", "retries", "maxTransfers",
        "maxBytesPerSecond", "readAheadBytes", "finishIfRemainingBytes", "finishIfRemainingPercent", "gapMergeBytes",
        "speculativeBytes", "mirrors", "hedging", "circuitBreaker", "allowPrivateAddresses", "tls", "access",
        "credentialsFile", "trustValidators", "staleIfErrorSeconds", "negativeCaching", "requestDirectives",
        "ignoreVary", "unknownLength", "errorBodies", "fallback", "storeRules", "quota", "verify",
    ]
    /// The members that may be null.
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

    /// Reads the `Origin` schema. Absent members get their defaults.
    ///
    /// A header field with the value ``Origin/secret`` keeps the value from `present`, but only for the same servers.
    /// If the base URL or a mirror has a new scheme, host or port, the value is required again. Otherwise a client that
    /// cannot read a secret could have it sent to its own server.
    ///
    /// - Parameters:
    ///   - name: The name in the request's path.
    ///   - present: The stored settings; nil for a new origin.
    package init(_ json: JSON, name: String, present: OriginSettings?) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys, nullable: Self.nullableKeys)
        if let given = try fields.string("name"), given != name {
            throw fields.invalid("name", "The name must be that of the path, \(name), or absent.")
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

    /// Returns these settings with a merge patch applied (RFC 7396). Null restores a default. A member with a choice of
    /// forms, such as `freshness`, is replaced as a whole.
    package func merging(_ patch: JSON, name: String) throws(CacheError) -> OriginSettings {
        guard case .object = patch else { throw CacheError(.invalidField("(body)"), "A JSON object is expected here.") }
        var present = Origin(name: name, settings: self).json
        let patch = named(patch)
        if access == nil { present = present.merged(with: ["access": .null]) }
        let choices: Set = ["freshness", "keyQuery", "fallback", "negativeCaching", "circuitBreaker"]
        let merged = present.merged(with: patch, whole: choices)
        return try OriginSettings(merged, name: name, present: self)
    }

    /// Returns the patch with header names in the spelling of these settings, because they are case-insensitive and
    /// JSON members are not.
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

    /// Reads the members about fills.
    private mutating func readFills(_ fields: JSONFields) throws(CacheError) {
        if let bytes = try fields.integer("readAheadBytes") { readAheadBytes = bytes }
        if let bytes = try fields.integer("finishIfRemainingBytes") { finishIfRemainingBytes = bytes }
        finishIfRemainingPercent = try fields.integer("finishIfRemainingPercent", in: 0...100).map { Int($0) }
        if let bytes = try fields.integer("gapMergeBytes") { gapMergeBytes = bytes }
        if let bytes = try fields.integer("speculativeBytes") { speculativeBytes = bytes }
        if let isOn = try fields.bool("hedging") { hedging = isOn }
        if let value = fields.json("circuitBreaker") { circuitBreaker = try Self.circuitBreaker(value) }
    }

    /// Reads `circuitBreaker`; nil for `false`.
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

    /// Reads `storeRules` and `quota`.
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

    /// Reads the members with caching rules.
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

    /// Reads `negativeCaching`: the maximum lifetime of errors; nil for `false`.
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

    /// Reads `timeouts`. Null disables a time-out.
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

    /// Reads `headers`. The placeholder ``Origin/secret`` is replaced by the stored value.
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
                throw fields.invalid(name, "No value is stored for this header field; give a value.")
            }
        }
        return headers
    }

    /// The error message if header values of `present` must not be sent to the servers of these settings; nil if they
    /// may.
    private func refusalToKeepSecrets(of present: OriginSettings) -> String? {
        guard BaseURL.isSameServer(baseURL, present.baseURL) else {
            return "The base URL has another server now; give the value again."
        }
        let known = [present.baseURL] + present.mirrors
        let isKnown = mirrors.allSatisfy { mirror in known.contains { BaseURL.isSameServer(mirror, $0) } }
        return isKnown ? nil : "A mirror is on another server now; give the value again."
    }
}

extension OriginSettings.Freshness {
    package static let keys = ["ttlSeconds"]

    /// Reads `freshness`.
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

    /// Reads `fallback`: exactly one of `assetId` and `file`.
    init(_ json: JSON) throws(CacheError) {
        let fields = try JSONFields(json, at: "fallback", accepting: Self.keys)
        switch (try fields.string("assetId"), try fields.string("file")) {
        case (let text?, nil):
            guard let id = AssetID(text) else { throw fields.invalid("assetId", "The ID has 32 hexadecimal digits.") }
            self = .asset(id)
        case (nil, let path?): self = .file(path)
        default: throw fields.invalid("assetId", "Either assetId or file is expected here.")
        }
    }
}

extension OriginSettings.KeyQuery {
    package static let keys = ["include", "exclude"]

    /// Reads `keyQuery`.
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
