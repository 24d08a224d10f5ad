import CacheCore
import Testing

@Suite struct SettingsValidationTests {
    @Test("Accepts the defaults")
    func takesTheDefaults() throws {
        try PolicySettings().validate()
        try OriginSettings(baseURL: "https://media.example/films").validate()
    }

    private static let policies: [(String, @Sendable (inout PolicySettings) -> Void)] = [
        ("capacityBytes", { $0.capacityBytes = (16 << 20) - 1 }), ("capacityBytes", { $0.capacityBytes = -1 }),
        ("highWatermark", { $0.highWatermark = 1.01 }), ("highWatermark", { $0.highWatermark = 0 }),
        ("highWatermark", { $0.highWatermark = .nan }), ("lowWatermark", { $0.lowWatermark = 0.95 }),
        ("lowWatermark", { $0.lowWatermark = 0 }), ("lowWatermark", { $0.lowWatermark = .nan }),
        ("lowWatermark", { $0.lowWatermark = -.infinity }), ("minFreeDiskBytes", { $0.minFreeDiskBytes = -1 }),
        ("maxIdleSeconds", { $0.maxIdle = .zero }), ("maxAgeSeconds", { $0.maxAge = .seconds(-1) }),
        ("graceSeconds", { $0.grace = .seconds(-1) }),
    ]

    @Test("Names the unusable policy field", arguments: policies.indices)
    func namesThePolicyFieldThatCannotBeUsed(index: Int) {
        let (field, change) = Self.policies[index]
        var settings = PolicySettings()
        change(&settings)
        AssetKeyTests.expect(.invalidField(field)) { () throws(CacheError) in try settings.validate() }
    }

    @Test("Accepts policies at their bounds")
    func takesPoliciesAtTheirBounds() throws {
        try PolicySettings(capacityBytes: nil, highWatermark: 1, minFreeDiskBytes: 0, grace: .zero).validate()
        try PolicySettings(capacityBytes: 16 << 20, maxIdle: .milliseconds(1), maxAge: .seconds(1)).validate()
    }

    @Test(
        "Accepts base URLs with names and addresses",
        arguments: [
            "http://a", "http://a_b.example:81/x", "https://media.example./x", "http://1.2.3.4", "http://[::1]:81/x",
            "http://4.example", "http://xn--bcher-kva.example", "http://bücher.example/x", "http://1.2.3.4a",
            "http://127.1", "http://0x7f000001:80", "http://2130706433", "http://1.2.65535", "http://0177.0.0.1",
        ])
    func takesBaseURLs(_ url: String) throws { try OriginSettings(baseURL: url).validate() }

    private static let origins: [(String, @Sendable (inout OriginSettings) -> Void)] = [
        ("baseURL", { $0.baseURL = "" }), ("baseURL", { $0.baseURL = "ftp://h/" }),
        ("baseURL", { $0.baseURL = "http://" }),
        ("baseURL", { $0.baseURL = "http:///a" }), ("baseURL", { $0.baseURL = "http://:80/" }),
        ("baseURL", { $0.baseURL = "http://h:99999/" }), ("baseURL", { $0.baseURL = "http://h:80O" }),
        ("baseURL", { $0.baseURL = "http://::1/" }), ("baseURL", { $0.baseURL = "http://[::1" }),
        ("baseURL", { $0.baseURL = "http://u:p@h/" }), ("baseURL", { $0.baseURL = "http://h/?a" }),
        ("baseURL", { $0.baseURL = "http://h/#a" }), ("baseURL", { $0.baseURL = "http://h/\r\nX: 1" }),
        ("baseURL", { $0.baseURL = "http://h\\@x/" }), ("baseURL", { $0.baseURL = "http://h/a b" }),
        ("baseURL", { $0.baseURL = "http://h/" + String(repeating: "a", count: 2048) }),
        ("baseURL", { $0.baseURL = "http://a..test/" }), ("baseURL", { $0.baseURL = "http://.test" }),
        ("baseURL", { $0.baseURL = "http://256.1.1.1/" }), ("baseURL", { $0.baseURL = "http://1.2.3.256" }),
        ("baseURL", { $0.baseURL = "http://1.1.1.1.1" }), ("baseURL", { $0.baseURL = "http://127.0.0.1../" }),
        ("baseURL", { $0.baseURL = "http://1.2.65536/" }), ("baseURL", { $0.baseURL = "http://1.2.3.09" }),
        ("baseURL", { $0.baseURL = "http://a.0x1/" }),
        ("baseURL", { $0.baseURL = "http://%75p.test/" }), ("baseURL", { $0.baseURL = "http://a*b.test/" }),
        ("baseURL", { $0.baseURL = "http://" + String(repeating: "a", count: 64) + ".test" }),
        ("baseURL", { $0.baseURL = "http://b.example/ü" }),
        ("headers", { $0.headers = ["X A": "1"] }), ("headers", { $0.headers = ["": "1"] }),
        ("headers", { $0.headers = HeaderList((0..<65).map { .init("X-\($0)", "1") }) }),
        ("headers.X-A", { $0.headers = ["X-A": "1\r\nX-B: 2"] }), ("headers.X-A", { $0.headers = ["X-A": " 1"] }),
        ("headers.host", { $0.headers = ["host": "x"] }), ("headers.Range", { $0.headers = ["Range": "bytes=0-1"] }),
        ("headers.Accept-Encoding", { $0.headers = ["Accept-Encoding": "gzip"] }),
        ("headers.IF-RANGE", { $0.headers = ["IF-RANGE": "x"] }),
        ("freshness.ttlSeconds", { $0.freshness = .ttl(.seconds(-1)) }),
        ("freshness.ttlSeconds", { $0.freshness = .ttl(.seconds(1 << 32)) }),
        ("keyQuery", { $0.keyQuery = .include([]) }), ("keyQuery", { $0.keyQuery = .exclude(["a", ""]) }),
        ("timeouts.connectSeconds", { $0.timeouts.connect = .zero }),
        ("timeouts.firstByteSeconds", { $0.timeouts.firstByte = .seconds(-1) }),
        ("timeouts.idleSeconds", { $0.timeouts.idle = .seconds(86_401) }),
        ("timeouts.totalSeconds", { $0.timeouts.total = .zero }), ("timeouts.readSeconds", { $0.readTimeout = .zero }),
        ("retries", { $0.retries = -1 }), ("retries", { $0.retries = 21 }), ("maxTransfers", { $0.maxTransfers = 0 }),
        ("maxBytesPerSecond", { $0.maxBytesPerSecond = 0 }), ("readAheadBytes", { $0.readAheadBytes = -1 }),
        ("finishIfRemainingBytes", { $0.finishIfRemainingBytes = -1 }),
        ("finishIfRemainingPercent", { $0.finishIfRemainingPercent = -1 }),
        ("finishIfRemainingPercent", { $0.finishIfRemainingPercent = 101 }),
        ("gapMergeBytes", { $0.gapMergeBytes = -1 }), ("gapMergeBytes", { $0.gapMergeBytes = (16 << 20) + 1 }),
        ("speculativeBytes", { $0.speculativeBytes = -1 }),
        ("speculativeBytes", { $0.speculativeBytes = (1 << 30) + 1 }),
        ("mirrors", { $0.mirrors = (0..<9).map { "http://m\($0)" } }),
        ("mirrors[1]", { $0.mirrors = ["http://m", "ftp://m"] }), ("mirrors[0]", { $0.mirrors = [""] }),
        ("mirrors[0]", { $0.mirrors = ["http://u@m"] }), ("mirrors[0]", { $0.mirrors = ["http://m/?a"] }),
        ("mirrors[0]", { $0.mirrors = ["http://h"] }), ("mirrors[0]", { $0.mirrors = ["HTTP://H/"] }),
        ("mirrors[1]", { $0.mirrors = ["http://m/a", "http://M/a/"] }),
        ("circuitBreaker.failures", { $0.circuitBreaker = .init(failures: 0) }),
        ("circuitBreaker.failures", { $0.circuitBreaker = .init(failures: 1001) }),
        ("circuitBreaker.pauseSeconds", { $0.circuitBreaker = .init(pause: .zero) }),
        ("circuitBreaker.pauseSeconds", { $0.circuitBreaker = .init(pause: .milliseconds(3_600_001)) }),
        ("tls.caFile", { $0.tls.caFile = "" }),
        ("credentialsFile", { $0.credentialsFile = "" }), ("credentialsFile", { $0.credentialsFile = "/a" }),
        ("credentialsFile", { $0.credentialsFile = "a/../../b" }), ("credentialsFile", { $0.credentialsFile = ".." }),
        ("credentialsFile", { $0.credentialsFile = "a//b" }), ("credentialsFile", { $0.credentialsFile = "./a" }),
        ("credentialsFile", { $0.credentialsFile = "a\0b" }), ("credentialsFile", { $0.credentialsFile = "a/" }),
        ("credentialsFile", { $0.credentialsFile = String(repeating: "a", count: 1025) }),
        ("staleIfErrorSeconds", { $0.staleIfError = .seconds(-1) }),
        ("staleIfErrorSeconds", { $0.staleIfError = .seconds(1 << 32) }),
        ("negativeCaching.maxSeconds", { $0.negativeCaching = .zero }),
        ("negativeCaching.maxSeconds", { $0.negativeCaching = .seconds(1 << 32) }),
        ("ignoreVary", { $0.ignoreVary = (0..<33).map { "X-\($0)" } }),
        ("ignoreVary[1]", { $0.ignoreVary = ["Origin", "User Agent"] }), ("ignoreVary[0]", { $0.ignoreVary = ["*"] }),
        ("ignoreVary[0]", { $0.ignoreVary = [""] }), ("fallback.file", { $0.fallback = .file("../a") }),
        ("fallback.file", { $0.fallback = .file("/srv/a") }),
    ]

    @Test("Names the unusable origin field", arguments: origins.indices)
    func namesTheOriginFieldThatCannotBeUsed(index: Int) {
        let (field, change) = Self.origins[index]
        var settings = OriginSettings(baseURL: "http://h")
        change(&settings)
        AssetKeyTests.expect(.invalidField(field)) { () throws(CacheError) in try settings.validate() }
    }

    @Test("Accepts unusual but usable origins")
    func takesUnusualButUsableOrigins() throws {
        var settings = OriginSettings(baseURL: "HTTP://[::1]:8080/a%20b//")
        settings.headers = ["Authorization": "Bearer a b", "X-Empty": ""]
        settings.timeouts = TransferTimeouts(connect: nil, firstByte: nil, idle: nil, total: nil)
        settings.freshness = .ttl(.zero)
        settings.keyQuery = .exclude(["sig"])
        settings.credentialsFile = "a..b/.hidden/c d"
        settings.staleIfError = .zero
        settings.negativeCaching = nil
        settings.ignoreVary = (0..<32).map { "X-\($0)" }
        settings.fallback = .file("…/film.mp4")
        settings.finishIfRemainingPercent = 100
        settings.gapMergeBytes = 0
        settings.speculativeBytes = 1 << 30
        settings.mirrors = ["HTTP://[::1]:8080/", "http://[::1]/a%20b"] + (0..<6).map { "https://m/\($0)" }
        settings.circuitBreaker = .init(failures: 1000, pause: .seconds(3600))
        try settings.validate()
        settings.circuitBreaker = nil
        try settings.validate()
    }
}
