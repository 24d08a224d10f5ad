import CacheCore

/// JSON format of an origin's settings. It is always sealed, because its headers are secrets. Durations are
/// milliseconds.
struct StoredOrigin: Codable {
    private struct Timeouts: Codable {
        var connect: Int64?
        var firstByte: Int64?
        var idle: Int64?
        var total: Int64?
    }

    /// The rule for the query in cache keys: `kind` is all, none, include or exclude.
    private struct KeyQuery: Codable {
        var kind: String
        var names: [String]
    }

    private struct NegativeCaching: Codable {
        /// Maximum time to cache an error response; nil disables negative caching.
        var longest: Int64?
    }

    private struct CircuitBreaker: Codable {
        /// Number of failures that open the breaker; nil disables it, and then `pause` is nil too.
        var failures: Int?
        var pause: Int64?
    }

    /// The rules for storing: a maximum size in bytes, and media types.
    private struct StoreRules: Codable {
        var maxBytes: Int64?
        var never: [String]
        var always: [String]
    }

    private var baseURL: String
    private var headers: [[String]]
    /// Lifetime of the rule `ttl`; nil for the other rules.
    private var freshnessTTL: Int64?
    private var keyQuery: KeyQuery
    private var timeouts: Timeouts
    private var readTimeout: Int64
    private var retries: Int
    private var maxTransfers: Int
    private var maxBytesPerSecond: Int64?
    private var readAheadBytes: Int64
    private var allowPrivateAddresses: Bool
    private var caFile: String?
    private var verify: Bool
    private var access: String?

    // Fields added later: rows of older versions lack them.
    private var finishIfRemainingBytes: Int64?
    /// "explicit", or nil for the rules `respect` and `ttl`.
    private var freshness: String?
    private var credentialsFile: String?
    private var trustValidators: String?
    private var staleIfError: Int64?
    private var negativeCaching: NegativeCaching?
    private var requestDirectives: Bool?
    private var ignoreVary: [String]?
    private var unknownLength: String?
    private var errorBodies: String?
    private var verification: String?
    /// At most one of the two fallbacks is set.
    private var fallbackAsset: String?
    private var fallbackFile: String?
    private var finishIfRemainingPercent: Int?
    private var gapMergeBytes: Int64?
    private var speculativeBytes: Int64?
    private var mirrors: [String]?
    private var hedging: Bool?
    private var circuitBreaker: CircuitBreaker?
    private var storeRules: StoreRules?
    private var quota: StoredQuota?

    init(_ settings: OriginSettings) {
        baseURL = settings.baseURL
        headers = settings.headers.fields.map { [$0.name, $0.value] }
        switch settings.freshness {
        case .respect: break
        case .explicit: freshness = "explicit"
        case .ttl(let duration): freshnessTTL = duration.wholeMilliseconds
        }
        keyQuery =
            switch settings.keyQuery {
            case .all: KeyQuery(kind: "all", names: [])
            case .none: KeyQuery(kind: "none", names: [])
            case .include(let names): KeyQuery(kind: "include", names: names)
            case .exclude(let names): KeyQuery(kind: "exclude", names: names)
            }
        timeouts = Timeouts(
            connect: settings.timeouts.connect?.wholeMilliseconds,
            firstByte: settings.timeouts.firstByte?.wholeMilliseconds,
            idle: settings.timeouts.idle?.wholeMilliseconds, total: settings.timeouts.total?.wholeMilliseconds)
        readTimeout = settings.readTimeout.wholeMilliseconds
        retries = settings.retries
        maxTransfers = settings.maxTransfers
        maxBytesPerSecond = settings.maxBytesPerSecond
        readAheadBytes = settings.readAheadBytes
        finishIfRemainingBytes = settings.finishIfRemainingBytes
        allowPrivateAddresses = settings.allowPrivateAddresses
        caFile = settings.tls.caFile
        verify = settings.tls.verify
        access = settings.access?.rawValue
        keepRules(of: settings)
        keepFills(of: settings)
        storeRules = StoreRules(
            maxBytes: settings.storeRules.maxBytes, never: settings.storeRules.never,
            always: settings.storeRules.always)
        quota = StoredQuota(settings.quota)
    }

    /// Encodes the settings of fills.
    private mutating func keepFills(of settings: OriginSettings) {
        finishIfRemainingPercent = settings.finishIfRemainingPercent
        gapMergeBytes = settings.gapMergeBytes
        speculativeBytes = settings.speculativeBytes
        mirrors = settings.mirrors
        hedging = settings.hedging
        circuitBreaker = CircuitBreaker(
            failures: settings.circuitBreaker?.failures, pause: settings.circuitBreaker?.pause.wholeMilliseconds)
    }

    /// Encodes the settings of responses.
    private mutating func keepRules(of settings: OriginSettings) {
        credentialsFile = settings.credentialsFile
        trustValidators = settings.trustValidators.rawValue
        staleIfError = settings.staleIfError?.wholeMilliseconds
        negativeCaching = NegativeCaching(longest: settings.negativeCaching?.wholeMilliseconds)
        requestDirectives = settings.requestDirectives
        ignoreVary = settings.ignoreVary
        unknownLength = settings.unknownLength.rawValue
        errorBodies = settings.errorBodies.rawValue
        verification = settings.verification.rawValue
        switch settings.fallback {
        case .asset(let id): fallbackAsset = id.description
        case .file(let path): fallbackFile = path
        case nil: break
        }
    }

    /// Decodes the settings. A missing field keeps its default. Throws `storageCorrupt` if a value is invalid.
    func settings() throws(CacheError) -> OriginSettings {
        var settings = OriginSettings(baseURL: baseURL)
        guard headers.allSatisfy({ $0.count == 2 }) else { throw RowCoding.corrupt("an origin header") }
        settings.headers = HeaderList(headers.map { HeaderList.Field($0[0], $0[1]) })
        settings.freshness = try parsedFreshness()
        settings.keyQuery = try parsedKeyQuery()
        settings.timeouts = TransferTimeouts(
            connect: timeouts.connect.map { .milliseconds($0) },
            firstByte: timeouts.firstByte.map { .milliseconds($0) },
            idle: timeouts.idle.map { .milliseconds($0) }, total: timeouts.total.map { .milliseconds($0) })
        settings.readTimeout = .milliseconds(readTimeout)
        settings.retries = retries
        settings.maxTransfers = maxTransfers
        settings.maxBytesPerSecond = maxBytesPerSecond
        settings.readAheadBytes = readAheadBytes
        if let finishIfRemainingBytes { settings.finishIfRemainingBytes = finishIfRemainingBytes }
        settings.allowPrivateAddresses = allowPrivateAddresses
        settings.tls = TLSSettings(caFile: caFile, verify: verify)
        if let access { settings.access = try RowCoding.choice(access, "an origin access rule") }
        try giveRules(to: &settings)
        try giveFills(to: &settings)
        if let storeRules {
            settings.storeRules = OriginSettings.StoreRules(
                maxBytes: storeRules.maxBytes, never: storeRules.never, always: storeRules.always)
        }
        if let quota { settings.quota = quota.quota }
        return settings
    }

    /// Decodes the settings of fills.
    private func giveFills(to settings: inout OriginSettings) throws(CacheError) {
        settings.finishIfRemainingPercent = finishIfRemainingPercent
        if let gapMergeBytes { settings.gapMergeBytes = gapMergeBytes }
        if let speculativeBytes { settings.speculativeBytes = speculativeBytes }
        if let mirrors { settings.mirrors = mirrors }
        if let hedging { settings.hedging = hedging }
        guard let circuitBreaker else { return }
        switch (circuitBreaker.failures, circuitBreaker.pause) {
        case (let failures?, let pause?):
            settings.circuitBreaker = OriginSettings.CircuitBreaker(failures: failures, pause: .milliseconds(pause))
        case (nil, nil): settings.circuitBreaker = nil
        default: throw RowCoding.corrupt("an origin circuit breaker")
        }
    }

    /// Decodes the settings of responses.
    private func giveRules(to settings: inout OriginSettings) throws(CacheError) {
        settings.credentialsFile = credentialsFile
        if let trustValidators {
            settings.trustValidators = try RowCoding.choice(trustValidators, "an origin trustValidators setting")
        }
        settings.staleIfError = staleIfError.map { .milliseconds($0) }
        if let negativeCaching { settings.negativeCaching = negativeCaching.longest.map { .milliseconds($0) } }
        if let requestDirectives { settings.requestDirectives = requestDirectives }
        if let ignoreVary { settings.ignoreVary = ignoreVary }
        if let unknownLength {
            settings.unknownLength = try RowCoding.choice(unknownLength, "an origin unknownLength setting")
        }
        if let errorBodies {
            settings.errorBodies = try RowCoding.choice(errorBodies, "an origin errorBodies setting")
        }
        if let verification {
            settings.verification = try RowCoding.choice(verification, "an origin verification setting")
        }
        if let fallbackAsset {
            guard let id = AssetID(fallbackAsset) else { throw RowCoding.corrupt("an origin fallback") }
            settings.fallback = .asset(id)
        } else if let fallbackFile {
            settings.fallback = .file(fallbackFile)
        }
    }

    /// Decodes the freshness rule. Rows of older versions have only the lifetime.
    private func parsedFreshness() throws(CacheError) -> OriginSettings.Freshness {
        switch freshness {
        case nil: freshnessTTL.map { .ttl(.milliseconds($0)) } ?? .respect
        case "explicit": .explicit
        default: throw RowCoding.corrupt("an origin freshness rule")
        }
    }

    /// Decodes the key rule.
    private func parsedKeyQuery() throws(CacheError) -> OriginSettings.KeyQuery {
        switch keyQuery.kind {
        case "all": .all
        case "none": OriginSettings.KeyQuery.none
        case "include": .include(keyQuery.names)
        case "exclude": .exclude(keyQuery.names)
        default: throw RowCoding.corrupt("an origin key rule")
        }
    }
}
