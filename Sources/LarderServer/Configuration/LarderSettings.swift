import CacheCore
import CacheEngine
import Logging

/// Everything an administrator can tune, checked; the defaults are the values of a bare `larder serve`.
struct LarderSettings: Hashable, Sendable {
    var listen = ListenSettings()
    /// Where files and catalog lie; relative paths count from the working directory.
    var dataDirectory = "./larder-data"
    /// Where the origins' files of credentials lie, if any may be named.
    var credentialsDirectory: String?
    /// Where the files lie that origins answer in place of failures, if any may be named.
    var fallbackDirectory: String?
    var policy = PolicySettings()
    var upstream = UpstreamSettings()
    /// How reads of absolute URLs are made; each mounted origin starts from the same waits, retries and limits.
    var urlOrigin = Self.absoluteURLs
    /// In the order of their names.
    var origins: [Origin] = []
    var access = AccessSettings()
    var cors = CORSSettings()
    var limits = LimitSettings()
    var log = LogSettings()
    /// Prefetch items under way at once.
    var jobConcurrency = 16
    /// When everything on disk is compared with its checksums.
    var scrub = ScrubSchedule()

    private static var absoluteURLs: OriginSettings {
        var settings = OriginSettings(baseURL: "")
        settings.access = .token
        return settings
    }
}

/// The address and certificate of the listener.
struct ListenSettings: Hashable, Sendable {
    var address = ListenAddress(host: "127.0.0.1", port: 8080)
    /// PEM; both or neither.
    var certificateFile: String?
    var keyFile: String?
    /// Whether content that is at hand is answered on the event loop.
    var isExpress = true
}

/// The transfers of all origins together.
struct UpstreamSettings: Hashable, Sendable {
    /// Threads that transfer; nil: one for each core, at least two.
    var workers: Int?
    var maxTransfers = 64
    /// Of all transfers together; nil: no limit.
    var maxBytesPerSecond: Int64?
    /// What 10^9 bytes cost, for simulations of policies; nil: nobody says.
    var pricePerGigabyte: Double?
    /// Whose absolute URLs may be read: `host`, `*.suffix` or `host:port`, lower case.
    var allowedHosts: [String] = []
}

/// Who may ask.
struct AccessSettings: Hashable, Sendable {
    /// Everything.
    var token: MaskedSecret?
    /// Content, and reading.
    var readToken: MaskedSecret?
    /// The files the tokens came from, where they did.
    var tokenFile: String?
    var readTokenFile: String?
    var allowUnauthenticated = false
}

struct CORSSettings: Hashable, Sendable {
    /// `*`, or origins such as `https://dashboard.example`; none: no CORS headers.
    var allowedOrigins: [String] = []
}

/// What one client may take up.
struct LimitSettings: Hashable, Sendable {
    var bodyBytes = 1 << 20
    var headerBytes = 32 << 10
    var urlBytes = 8 << 10
    /// None: what the limit on open files allows.
    var connections: Int?
    /// Reads of content in progress, those answered at once from disk left out.
    var reads = 8192
    /// Windows that wait for a place among the transfers while a reader waits for them.
    var queuedFills = 4096
    /// Between two requests on a connection.
    var idleTimeout: Duration = .seconds(75)
    /// For a client that takes nothing of its answer; it is cut off after once to twice this time.
    var sendTimeout: Duration = .seconds(300)
    /// From the connection, or a request's first byte, to the end of its head.
    var headerTimeout: Duration = .seconds(15)
    /// For the requests in progress when the service is told to stop.
    var drainTimeout: Duration = .seconds(30)
    /// How long readiness is false before new connections are refused, so that load balancers notice in time.
    var shutdownDelay: Duration = .seconds(1)
}

struct LogSettings: Hashable, Sendable {
    enum Format: String, Hashable, Sendable, CaseIterable { case text, json }

    var level = Logger.Level.info
    var format = Format.text
}
