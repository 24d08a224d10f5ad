import CacheCore

/// An origin's settings as JSON; always sealed, because its headers are secrets. Durations are in milliseconds.
struct OriginText: Codable {
    private struct Timeouts: Codable {
        var connect: Int64?
        var firstByte: Int64?
        var idle: Int64?
        var total: Int64?
    }

    private struct KeyQuery: Codable {
        var kind: String
        var names: [String]
    }

    private var baseURL: String
    private var headers: [[String]]
    private var freshnessTTL: Int64?
    private var keyQuery: KeyQuery
    private var timeouts: Timeouts
    private var readTimeout: Int64
    private var retries: Int
    private var maxTransfers: Int
    private var maxBytesPerSecond: Int64?
    private var readAheadBytes: Int64
    private var finishIfRemainingBytes: Int64
    private var allowPrivateAddresses: Bool
    private var caFile: String?
    private var verify: Bool
    private var access: String?

    init(_ settings: OriginSettings) {
        baseURL = settings.baseURL
        headers = settings.headers.fields.map { [$0.name, $0.value] }
        if case .ttl(let duration) = settings.freshness { freshnessTTL = duration.wholeMilliseconds }
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
    }

    func settings() throws(CacheError) -> OriginSettings {
        var settings = OriginSettings(baseURL: baseURL)
        guard headers.allSatisfy({ $0.count == 2 }) else { throw RowCoding.corrupt("an origin's header") }
        settings.headers = HeaderList(headers.map { HeaderList.Field($0[0], $0[1]) })
        settings.freshness = freshnessTTL.map { .ttl(.milliseconds($0)) } ?? .respect
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
        settings.finishIfRemainingBytes = finishIfRemainingBytes
        settings.allowPrivateAddresses = allowPrivateAddresses
        settings.tls = TLSSettings(caFile: caFile, verify: verify)
        if let access { settings.access = try RowCoding.choice(access, "an origin's access") }
        return settings
    }

    private func parsedKeyQuery() throws(CacheError) -> OriginSettings.KeyQuery {
        switch keyQuery.kind {
        case "all": .all
        case "none": OriginSettings.KeyQuery.none
        case "include": .include(keyQuery.names)
        case "exclude": .exclude(keyQuery.names)
        default: throw RowCoding.corrupt("an origin's key rule")
        }
    }
}
