import CacheCore
import CacheEngine

/// The settings of the HTTP server.
package struct APISettings: Sendable {
    /// The addresses of the server.
    package enum Listener: Hashable, Sendable {
        /// A host name or address, and a port; 0 selects a free port. `localhost` means the loopback addresses of both
        /// families.
        case tcp(host: String, port: Int)
        /// The path of a Unix socket and the mode of its file.
        case unix(path: String, mode: UInt32)
        /// The descriptors of listening sockets that another process has opened.
        case inherited(descriptors: [Int32])
    }

    /// TLS settings. The files are reloaded when they change.
    package struct TLS: Hashable, Sendable {
        /// Path of the certificate chain in PEM format.
        package var certificateFile: String
        /// Path of the private key in PEM format.
        package var keyFile: String
        /// The authentication of clients by certificates; nil: clients are not asked for one.
        package var clients: Clients?

        /// The authentication of clients by certificates.
        package struct Clients: Hashable, Sendable {
            /// Path of the certificates of the accepted authorities in PEM format.
            package var authoritiesFile: String
            /// Whether a connection without a certificate is refused.
            package var isRequired: Bool

            package init(authoritiesFile: String, isRequired: Bool = true) {
                self.authoritiesFile = authoritiesFile
                self.isRequired = isRequired
            }
        }

        package init(certificateFile: String, keyFile: String, clients: Clients? = nil) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
            self.clients = clients
        }
    }

    /// Size limits, time-outs and admission limits. All sizes are in bytes.
    package struct Limits: Hashable, Sendable {
        /// Maximum size of a request body, at most a quarter of `requestBodies`; larger ones get 413.
        package var bodyBytes: Int
        /// Maximum size of the body of `POST /v1/jobs`, which may have 10,000 items. At least `bodyBytes`.
        package var jobBodyBytes: Int
        /// Maximum of the bytes of all request bodies that are in memory; further bytes get 503. One token holds at most
        /// a quarter, and another quarter is left to tokens with the scope `admin`.
        package var requestBodies: Int
        /// Maximum number of event streams; further ones get 503. One token has at most a tenth.
        package var followers: Int
        /// Maximum length of a request target; longer ones get 414.
        package var urlBytes: Int
        /// Maximum size of one header field, and of all fields of a request together; larger ones get 431.
        package var headerBytes: Int
        /// Maximum number of header fields of a request; more get 431.
        var headerFields: Int
        /// Maximum time for a request, then 408. It applies to three parts:
        /// - from the start of the connection to the end of the first request head,
        /// - from the first byte to the end of a further request head,
        /// - from the head to the end of the body, if its rate is below 16 KiB/s; at most 10 s.
        package var headerTimeout: Duration
        /// Maximum time without activity between requests and while a request body is awaited; then the connection is
        /// closed.
        package var idleTimeout: Duration
        /// Time without the client accepting any response bytes. The connection is closed after one to two times this
        /// value.
        package var writeTimeout: Duration
        /// Time after which a client that closed its sending side is presumed gone if nothing could be sent to it. Over
        /// TCP a half-closed connection looks like a closed one until something is written.
        package var halfClosedTimeout: Duration
        /// Maximum number of connections; further ones get 503.
        package var maxConnections: Int
        /// Maximum number of content reads that need a wait; further ones get 503.
        package var maxConcurrentReads: Int
        /// Limits for each address of a client.
        package var perAddress: AddressLimits

        package init(
            bodyBytes: Int = 1 << 20, jobBodyBytes: Int = 16 << 20, requestBodies: Int = 64 << 20,
            followers: Int = 500, urlBytes: Int = 8 << 10, headerBytes: Int = 32 << 10, headerFields: Int = 100,
            headerTimeout: Duration = .seconds(15), idleTimeout: Duration = .seconds(75),
            writeTimeout: Duration = .seconds(300), halfClosedTimeout: Duration = .seconds(2),
            maxConnections: Int = 1 << 20, maxConcurrentReads: Int = 8192,
            perAddress: AddressLimits = AddressLimits()
        ) {
            self.bodyBytes = min(bodyBytes, requestBodies / 4)
            self.jobBodyBytes = min(max(jobBodyBytes, bodyBytes), requestBodies / 4)
            self.requestBodies = requestBodies
            self.followers = followers
            self.urlBytes = urlBytes
            self.headerBytes = headerBytes
            self.headerFields = headerFields
            self.headerTimeout = headerTimeout
            self.idleTimeout = idleTimeout
            self.writeTimeout = writeTimeout
            self.halfClosedTimeout = halfClosedTimeout
            self.maxConnections = maxConnections
            self.maxConcurrentReads = maxConcurrentReads
            self.perAddress = perAddress
        }

        /// The maximum body size for a request target; it may have a query or be an absolute URL. `isInLines`: the media type
        /// is that of a job in lines.
        package func bodyBytes(ofPath target: String, isInLines: Bool = false) -> Int {
            var path = target.prefix { $0 != "?" }
            if !path.hasPrefix("/") {  // absolute form (RFC 9112 §3.2.2)
                let parts = path.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
                path = "/" + (parts.count > 3 ? parts[3] : "")
            }
            while path.hasSuffix("/") { path.removeLast() }
            guard path == "/v1/jobs" else { return bodyBytes }
            return isInLines ? JobIntake.mostBytes : jobBodyBytes
        }
    }

    /// One file of the dashboard.
    package struct DashboardFile: Hashable, Sendable {
        /// The name below `/ui/`.
        package var name: String
        package var text: String

        package init(name: String, text: String) {
            self.name = name
            self.text = text
        }
    }

    package var listener: Listener
    /// Nil: plain HTTP.
    package var tls: TLS?
    /// The rules that find the address of a client behind proxies.
    package var clientAddresses = ClientAddressRules()
    package var access: AccessRules
    /// The proofs of the other nodes of the fleet.
    package var peers = PeerRules()
    package var cors: CORSRules
    package var limits: Limits
    /// Whether cached content is answered without a wait (`listen.fastPath`).
    package var isFastPathEnabled: Bool
    /// The access log; nil: entries of the level `info` in the service's own log.
    package var accessLog: AccessLog?
    /// The tokens that always have series of their own in metrics.
    package var labelledTokens: [String] = []
    /// The version of the program.
    package var version: String
    /// The text of `openapi.yaml`.
    package var openAPI: String
    /// The files of the dashboard; none: it is not served.
    package var dashboard: [DashboardFile]

    package init(
        listener: Listener = .tcp(host: "127.0.0.1", port: 8080), tls: TLS? = nil, access: AccessRules = AccessRules(),
        cors: CORSRules = CORSRules(), limits: Limits = Limits(), isFastPathEnabled: Bool = true, version: String,
        openAPI: String, dashboard: [DashboardFile] = []
    ) {
        self.listener = listener
        self.tls = tls
        self.access = access
        self.cors = cors
        self.limits = limits
        self.isFastPathEnabled = isFastPathEnabled
        self.version = version
        self.openAPI = openAPI
        self.dashboard = dashboard
    }
}
