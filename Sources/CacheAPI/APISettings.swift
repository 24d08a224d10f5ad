import CacheCore

/// Everything about the counter that an administrator chooses.
package struct APISettings: Sendable {
    /// Certificate chain and key as PEM files; read again when they change.
    package struct TLS: Hashable, Sendable {
        package var certificateFile: String
        package var keyFile: String
        /// How often the files are looked at.
        package var checkInterval: Duration

        package init(certificateFile: String, keyFile: String, checkInterval: Duration = .seconds(10)) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
            self.checkInterval = checkInterval
        }
    }

    package struct Limits: Hashable, Sendable {
        package var bodyBytes: Int
        /// The same for `POST /v1/jobs`, which takes 10,000 items.
        package var jobBodyBytes: Int
        package var urlBytes: Int
        /// One header field, and all of them together.
        package var headerBytes: Int
        package var headerFields: Int
        /// From a connection's beginning to its first request's head, from the first byte of another to its end, and for
        /// a body, which has a second more for each thousand bytes that have come; then 408.
        package var headerTimeout: Duration
        /// Without a request in progress, and while one's body is awaited.
        package var idleTimeout: Duration
        /// A client that takes nothing of what waits for it is cut off after once to twice this time.
        package var sendTimeout: Duration
        /// How long a client that closed its sending side, and can be sent nothing yet, is taken to be there: over TCP
        /// it looks like one that has gone until something is written.
        package var halfClosedTimeout: Duration
        /// How many are served at once; more get 503.
        package var connections: Int
        /// How many reads of content may be in progress, those that are answered at once from disk left out; more get 503.
        package var reads: Int

        package init(
            bodyBytes: Int = 1 << 20, jobBodyBytes: Int = 16 << 20, urlBytes: Int = 8 << 10,
            headerBytes: Int = 32 << 10, headerFields: Int = 100,
            headerTimeout: Duration = .seconds(15), idleTimeout: Duration = .seconds(75),
            sendTimeout: Duration = .seconds(300), halfClosedTimeout: Duration = .seconds(2),
            connections: Int = 1 << 20, reads: Int = 8192
        ) {
            self.bodyBytes = bodyBytes
            self.jobBodyBytes = max(jobBodyBytes, bodyBytes)
            self.urlBytes = urlBytes
            self.headerBytes = headerBytes
            self.headerFields = headerFields
            self.headerTimeout = headerTimeout
            self.idleTimeout = idleTimeout
            self.sendTimeout = sendTimeout
            self.halfClosedTimeout = halfClosedTimeout
            self.connections = connections
            self.reads = reads
        }

        /// The limit on a request's body by the request's target.
        package func bodyBytes(ofPath target: String) -> Int {
            var path = target.prefix { $0 != "?" }
            if !path.hasPrefix("/") {  // the absolute form
                let parts = path.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
                path = "/" + (parts.count > 3 ? parts[3] : "")
            }
            while path.hasSuffix("/") { path.removeLast() }
            return path == "/v1/jobs" ? jobBodyBytes : bodyBytes
        }
    }

    package var host: String
    /// 0: one that is free.
    package var port: Int
    package var tls: TLS?
    package var access: AccessRules
    package var cors: CORSRules
    package var limits: Limits
    /// Whether content that is at hand is answered on the event loop.
    package var isExpress: Bool
    package var version: String
    /// The text of `openapi.yaml`.
    package var openAPI: String

    package init(
        host: String = "127.0.0.1", port: Int = 8080, tls: TLS? = nil, access: AccessRules = AccessRules(),
        cors: CORSRules = CORSRules(), limits: Limits = Limits(), isExpress: Bool = true, version: String,
        openAPI: String
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.access = access
        self.cors = cors
        self.limits = limits
        self.isExpress = isExpress
        self.version = version
        self.openAPI = openAPI
    }
}
