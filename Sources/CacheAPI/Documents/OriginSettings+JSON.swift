package import CacheCore

extension OriginSettings {
    package static let keys = [
        "name", "baseURL", "headers", "freshness", "keyQuery", "timeouts", "retries", "maxTransfers",
        "maxBytesPerSecond", "readAheadBytes", "finishIfRemainingBytes", "allowPrivateAddresses", "tls", "access",
        "credentialsFile", "trustValidators", "staleIfErrorSeconds", "negativeCaching", "requestDirectives",
        "ignoreVary", "unknownLength", "fallback",
    ]
    package static let timeoutKeys = [
        "connectSeconds", "firstByteSeconds", "idleSeconds", "totalSeconds", "readSeconds",
    ]
    package static let tlsKeys = ["caFile", "verify"]
    package static let negativeCachingKeys = ["maxSeconds"]

    /// Reads the `Origin` schema; fields left out take their defaults. A header whose value is ``Origin/secret`` keeps
    /// the value that `present` has, as long as it goes where it went: not to another scheme, host or port.
    package init(_ json: JSON, name: String, present: OriginSettings?) throws(CacheError) {
        let fields = try JSONFields(json, accepting: Self.keys)
        if let given = try fields.string("name"), given != name {
            throw fields.invalid("name", "The name in the path is \(name).")
        }
        guard let baseURL = try fields.string("baseURL") else {
            throw fields.invalid("baseURL", "The upstream's URL is missing.")
        }
        self.init(baseURL: baseURL)
        headers = try Self.headers(fields, baseURL: baseURL, present: present)
        if let value = fields.json("freshness") { freshness = try Freshness(value) }
        if let value = fields.json("keyQuery") { keyQuery = try KeyQuery(value) }
        try readTimeouts(fields)
        if let count = try fields.integer("retries", in: 0...1000) { retries = Int(count) }
        if let count = try fields.integer("maxTransfers", in: 0...100_000) { maxTransfers = Int(count) }
        maxBytesPerSecond = try fields.integer("maxBytesPerSecond")
        if let bytes = try fields.integer("readAheadBytes") { readAheadBytes = bytes }
        if let bytes = try fields.integer("finishIfRemainingBytes") { finishIfRemainingBytes = bytes }
        if let isAllowed = try fields.bool("allowPrivateAddresses") { allowPrivateAddresses = isAllowed }
        if let value = fields.json("tls") {
            let inner = try JSONFields(value, at: "tls", accepting: Self.tlsKeys)
            tls = TLSSettings(caFile: try inner.string("caFile"), verify: try inner.bool("verify") ?? true)
        }
        access = try fields.choice("access")
        credentialsFile = try fields.string("credentialsFile")
        if let value = fields.json("fallback") { fallback = try Fallback(value) }
        try readRules(fields)
        try validate()
    }

    private mutating func readRules(_ fields: JSONFields) throws(CacheError) {
        if let trusted = try fields.choice("trustValidators", TrustedValidators.self) { trustValidators = trusted }
        staleIfError = try fields.seconds("staleIfErrorSeconds")
        if let value = fields.json("negativeCaching") { negativeCaching = try Self.negativeCaching(value) }
        if let isObeyed = try fields.bool("requestDirectives") { requestDirectives = isObeyed }
        if let names = try fields.strings("ignoreVary", atMost: Self.maxIgnoredFields) { ignoreVary = names }
        if let answer = try fields.choice("unknownLength", UnknownLength.self) { unknownLength = answer }
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
        let inner = try JSONFields(value, at: "timeouts", accepting: Self.timeoutKeys)
        if inner.has("connectSeconds") { timeouts.connect = try inner.seconds("connectSeconds") }
        if inner.has("firstByteSeconds") { timeouts.firstByte = try inner.seconds("firstByteSeconds") }
        if inner.has("idleSeconds") { timeouts.idle = try inner.seconds("idleSeconds") }
        if inner.has("totalSeconds") { timeouts.total = try inner.seconds("totalSeconds") }
        if inner.has("readSeconds") {
            guard let limit = try inner.seconds("readSeconds") else {
                throw inner.invalid("readSeconds", "null is not for this field.")
            }
            readTimeout = limit
        }
    }

    private static func headers(
        _ fields: JSONFields, baseURL: String, present: OriginSettings?
    ) throws(CacheError) -> HeaderList {
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
                guard isSameServer(baseURL, present.baseURL) else {
                    throw fields.invalid(name, "The base URL has another server now: give the value anew.")
                }
                headers.append(member.key, kept)
            } else {
                throw fields.invalid(name, "There is no value yet that could be kept.")
            }
        }
        return headers
    }

    /// Whether both URLs name the same scheme, host and port in the same way; in doubt they do not.
    private static func isSameServer(_ one: String, _ other: String) -> Bool {
        guard one != other else { return true }
        guard let left = server(one), let right = server(other) else { return false }
        return left == right
    }

    /// What stands before the path, in lower case; nil where no host can be told.
    private static func server(_ url: String) -> String? {
        let parts = url.lowercased().split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count > 2, parts[0] == "http:" || parts[0] == "https:", parts[1].isEmpty, !parts[2].isEmpty,
            !parts[2].contains(where: { "?#\\@".contains($0) })
        else { return nil }
        return parts[0] + "//" + parts[2]
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
