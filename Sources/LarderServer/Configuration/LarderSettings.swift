import CacheAPI
import CacheCore
import CacheEngine
import EtcdClient
import Logging
import MediaParsing
import WebTokens

/// All settings of the service, validated. The defaults are those of `larder serve` without options.
struct LarderSettings: Hashable, Sendable {
    var listen = ListenSettings()
    /// Directory of the cached files and the catalog; a relative path is relative to the working directory.
    var dataDirectory = "./larder-data"
    /// Directory of the origins' credentials files; nil: origins cannot name any.
    var credentialsDirectory: String?
    /// Directory of the origins' fallback files; nil: origins cannot name any.
    var fallbackDirectory: String?
    /// Capacity, eviction and quotas.
    var policy = PolicySettings()
    var upstream = UpstreamSettings()
    /// Settings for reads of absolute URLs. Each configured origin inherits its timeouts, retries and limits.
    var urlOrigin = Self.absoluteURLs
    /// The configured origins, sorted by name.
    var origins: [Origin] = []
    var access = AccessSettings()
    var cors = CORSSettings()
    var limits = LimitSettings()
    var log = LogSettings()
    /// Concurrent prefetch items.
    var jobConcurrency = 16
    var telemetry = TelemetrySettings()
    /// The names of the tokens that always have series of their own in metrics.
    var labelledTokens: [String] = []
    /// Whether `/ui/` is served.
    var isDashboardEnabled = true
    /// Schedule of the checksum verification.
    var scrub = ScrubSchedule()
    var encryption = EncryptionSettings()
    var fleet = FleetSettings()
    /// The webhooks, sorted by name.
    var webhooks: [WebhookEntry] = []

    /// Reads of absolute URLs require a token by default.
    private static var absoluteURLs: OriginSettings {
        var settings = OriginSettings(baseURL: "")
        settings.access = .token
        return settings
    }
}

/// The other nodes of a fleet.
struct FleetSettings: Hashable, Sendable {
    /// The base URLs of the nodes, without a slash at the end; this node may be among them.
    var peers: [String] = []
    /// The file with the keys of the nodes; nil: none.
    var keyFile: String?
    /// The keys of the file. This node presents the first one, and accepts all.
    var keys: [MaskedSecret] = []
    /// The PEM files that this node presents to others; both or neither are set.
    var certificateFile: String?
    var certificateKeyFile: String?
    /// PEM file with the authorities of the other nodes' certificates; nil: those of the system.
    var caFile: String?
    /// The names in client certificates by which other nodes prove themselves.
    var peerCertificates: [String] = []
    /// The time limit of a question to another node.
    var timeout = Duration.milliseconds(50)
    /// The time between the failing readiness check and the closing of the listener at shutdown; zero: `shutdownDelay`.
    var leaveTimeout = Duration.zero
    /// The name of the fleet in etcd.
    var name = "larder"
    /// The name of this node in etcd; nil: the name of the host.
    var node: String?
    /// The base URL for other nodes; nil: they do not ask this one.
    var advertise: String?
    /// The base URLs of the members of etcd; empty: the fleet has none.
    var etcdEndpoints: [String] = []
    var etcdCAFile, etcdCertificateFile, etcdKeyFile: String?
    /// The file with the user of etcd; nil: etcd requires no authentication.
    var etcdCredentialsFile: String?
    /// The user in the file.
    var etcdUser: EtcdSettings.User?
    /// The base URL of the router, through which jobs reach the owners of their items; nil: none.
    var router: String?
    /// The time without etcd after which a node asks the others whether it may serve.
    var maxLag = Duration.seconds(10)
    var catchUp = FleetMember.CatchUp.require
}

/// Master keys of encrypted origins.
struct EncryptionSettings: Hashable, Sendable {
    /// Directory with one file for each master key; nil: none.
    var keysDirectory: String?
    /// Program and arguments of the command that prints a master key; empty: none.
    var keyCommand: [String] = []
    /// Identifier of the key for new files; nil: the last one in the order of names.
    var activeKey: String?
    var onMissingKey = MissingKeyRule.refuse
    var onChange = EncryptionChangeRule.refetch

    /// Whether any master key can exist.
    var hasKeys: Bool { keysDirectory != nil || !keyCommand.isEmpty }
}

/// Address, certificate and fast path of the listener.
struct ListenSettings: Hashable, Sendable {
    var address = ListenAddress.host("127.0.0.1", port: 8080)
    /// The sockets that take the place of `address`; nil: there are none.
    var inherited: InheritedSockets?
    /// The mode of the file of a Unix socket.
    var socketMode: UInt32 = 0o660
    /// PEM files; both or neither are set.
    var certificateFile: String?
    var keyFile: String?
    /// PEM file with the authorities of client certificates; nil: clients are not asked for a certificate.
    var clientCAFile: String?
    /// Whether clients must have a certificate.
    var clientAuthentication = ClientAuthentication.required
    /// Whether cached content is served on the event loop.
    var isFastPathEnabled = true
    var proxyProtocol = ProxyProtocol.off
    /// The addresses of proxies in front of the service.
    var trustedProxies: [NetworkRange] = []
    /// The place of the address of a client.
    var clientAddressFrom = ClientAddressRules.Source.connection

    /// The addresses of all sockets.
    var addresses: [ListenAddress] { inherited.map { $0.sockets.map(\.address) } ?? [address] }
    /// The number of sockets of the listener.
    var socketCount: Int { addresses.reduce(0) { $0 + $1.socketCount } }
}

/// Whether connections begin with a PROXY header.
enum ProxyProtocol: String, Hashable, Sendable, CaseIterable { case off, required }

/// Whether a connection without a client certificate is refused.
enum ClientAuthentication: String, Hashable, Sendable, CaseIterable { case required, optional }

/// Limits and properties of all upstream transfers.
struct UpstreamSettings: Hashable, Sendable {
    /// Number of transfer threads; nil: one per core, at least two.
    var workers: Int?
    /// Maximum concurrent transfers of all origins.
    var maxTransfers = 64
    /// Maximum rate of all transfers together in bytes per second; nil: no limit.
    var maxBytesPerSecond: Int64?
    /// Maximum age of a resolved name.
    var dnsMaxAge = Duration.seconds(30)
    /// Maximum age of a kept connection.
    var connectionMaxAge = Duration.seconds(600)
    /// Price of 10^9 bytes, for policy simulations; nil: unknown.
    var pricePerGigabyte: Double?
    /// Hosts of readable absolute URLs: `host`, `*.suffix` or `host:port`, in lower case.
    var allowedHosts: [String] = []
}

/// Authentication of clients.
struct AccessSettings: Hashable, Sendable {
    /// Token of the scope admin; nil: none.
    var token: MaskedSecret?
    /// Token of the scope read; nil: none.
    var readToken: MaskedSecret?
    /// The files that the tokens were read from; nil: not from a file.
    var tokenFile: String?
    var readTokenFile: String?
    /// Path of the tokens file; nil: none.
    var tokensFile: String?
    var jwt = JWTSettings()
    var signing = SigningSettings()
    /// Whether other machines are served without a token.
    var allowUnauthenticated = false

    /// Whether any token, JSON Web Token or client certificate can authorize a request.
    var hasReaders: Bool { token != nil || readToken != nil || tokensFile != nil || jwt.isEnabled }
}

/// Readers with JSON Web Tokens. They are enabled by one source of keys.
struct JWTSettings: Hashable, Sendable {
    /// The required claim `iss`; nil: any.
    var issuer: String?
    /// The required member of the claim `aud`; nil: any.
    var audience: String?
    /// Path of a JWK set.
    var keysFile: String?
    /// URL of a JWK set.
    var keysURL: String?
    /// The name of the claim with the scopes.
    var scopeClaim = "scope"
    /// The accepted algorithms.
    var algorithms: [TokenAlgorithm] = [.rs256, .es256]

    var isEnabled: Bool { keysFile != nil || keysURL != nil }
}

/// Signed content URLs.
struct SigningSettings: Hashable, Sendable {
    /// Directory of the keys; nil: signed URLs are not accepted.
    var keysDirectory: String?
    /// The time after the expiry for which a reader that began before may go on with ranges of the same asset.
    var grace: Duration = .seconds(600)
    /// The accepted claims `iss` of RFC 9246 tokens.
    var issuers: [String] = []
}

/// Cross-origin access of browsers.
struct CORSSettings: Hashable, Sendable {
    /// `*`, or web origins such as `https://dashboard.example`; empty: no CORS header fields are sent.
    var allowedOrigins: [String] = []
}

/// Limits of requests and connections. Lengths are in bytes.
struct LimitSettings: Hashable, Sendable {
    var bodyBytes = 1 << 20
    /// Maximum of the bytes of all request bodies in memory.
    var requestBodies = 64 << 20
    /// Maximum number of event streams.
    var followers = 500
    /// Maximum numbers of items of prefetch jobs.
    var jobs = PrefetchSchedule.Limits()
    var headerBytes = 32 << 10
    var urlBytes = 8 << 10
    /// Nil: derived from the limit on open files.
    var maxConnections: Int?
    /// Maximum reads of content in progress; reads on the fast path do not count.
    var maxConcurrentReads = 8192
    /// Limits for each address of a client.
    var perAddress = AddressLimits()
    /// Maximum queued fills with a waiting reader.
    var maxQueuedFills = 4096
    /// Limits for media files and playlists.
    var media = MediaLimits()
    /// Maximum time between two requests on a connection.
    var idleTimeout: Duration = .seconds(75)
    /// Maximum time without the client accepting response bytes; the connection is closed after one to two times this
    /// time.
    var writeTimeout: Duration = .seconds(300)
    /// Maximum time from the connection, or from a request's first byte, to the end of the request head.
    var headerTimeout: Duration = .seconds(15)
    /// Maximum time for requests in progress at shutdown.
    var drainTimeout: Duration = .seconds(30)
    /// Time between unreadiness and refused connections at shutdown, so that load balancers notice the unreadiness.
    var shutdownDelay: Duration = .seconds(1)
}

/// Export of traces. The variables of OpenTelemetry apply to members that are nil.
struct TelemetrySettings: Hashable, Sendable {
    /// URL of `/v1/traces` of an OTLP/HTTP receiver.
    var endpoint: String?
    /// Path of a file with header fields for the receiver.
    var headersFile: String?
    /// The share of recorded traces without a parent, 0–1.
    var sampleRatio: Double?
    /// The time limit of one request.
    var timeout: Duration?
}

/// Level and format of the log.
struct LogSettings: Hashable, Sendable {
    enum Format: String, Hashable, Sendable, CaseIterable { case text, json }

    /// The names of the members of JSON entries: those of this service, or those of the Elastic Common Schema.
    enum Fields: String, Hashable, Sendable, CaseIterable { case larder, ecs }

    /// The format of access log entries.
    enum AccessFormat: String, Hashable, Sendable, CaseIterable { case text, json, combined, off }

    var level = Logger.Level.info
    var format = Format.text
    var fields = Fields.larder
    /// Nil: entries of the level `info` in the log itself.
    var access: AccessFormat?
}
