/// Network client: fetches one window, or one head, of an asset from its upstream.
package protocol Upstream: Sendable {
    /// Queues a transfer and returns at once, before any effect of the transfer.
    ///
    /// Calls on `delegate` are serial and in order, on a thread of the upstream client: `started` and `began` at most
    /// once, then `progressed` any number of times. `ended` comes exactly once, last, in every case.
    func start(_ request: UpstreamRequest, delivering delegate: any TransferDelegate) -> any Transfer

    /// Parses an absolute URL with the parser that also fetches. Throws `.malformedRequest` if it is not an http or
    /// https URL, or has user info; the message names the fault.
    func parse(url: String) throws(CacheError) -> UpstreamURL

    /// Checks the file of certificate authorities. Throws `.invalidField("tls.caFile")` if it cannot be used. Blocks
    /// its thread.
    func check(_ tls: TLSSettings) throws(CacheError)

    /// The numbers of active, queued and paused transfers, and the counts of the workers.
    var load: TransferLoad { get }

    /// The number of transfers that wait for a permit while a reader waits for them.
    var queuedForReaders: Int { get }

    /// Whether the latest evidence about each known network address of the URL's server is a failure. For callers that
    /// prefer another server in that case: the addresses are probed from then on.
    func isFailing(_ url: String) -> Bool

    /// The known network addresses of the URL's server.
    func addresses(of url: String) -> [AddressFigures]
}

extension Upstream {
    /// Accepts all settings.
    package func check(_ tls: TLSSettings) throws(CacheError) {}

    /// Knows no addresses.
    package func isFailing(_ url: String) -> Bool { false }
    package func addresses(of url: String) -> [AddressFigures] { [] }

    /// All queued transfers.
    package var queuedForReaders: Int { load.queued }
}

/// Handle of a started transfer.
package protocol Transfer: AnyObject, Sendable {
    /// Ends the transfer soon, with `.cancelled`, unless it has ended. Callable from any thread, any number of times.
    func cancel()
    /// Moves a queued transfer to a more urgent class; an active prefetch transfer no longer counts as prefetch.
    func promote(to priority: TransferPriority)
    /// Sets the allowance: the transfer pauses when `bytes` of the body are stored, until a later call permits more. It
    /// may store up to 16 KiB beyond the allowance (one write of libcurl). Without effect over HTTP/2.
    ///
    /// A paused transfer buffers no more of the body than libcurl's receive buffer, 64 KiB. It has no permit of the
    /// transfer limits, and no timeout runs. If the upstream closes the connection during the pause, the transfer fails
    /// after it resumes. A resuming transfer waits for a permit before the transfers of its class that have not
    /// started.
    func allow(upTo bytes: Int64)
    /// Ends the transfer with success when `bytes` of the body are stored; without effect if more is stored already.
    /// HTTP/2 resets the stream, HTTP/1.1 closes the connection.
    func shorten(to bytes: Int64)
    /// The present state of the transfer.
    var stage: TransferStage { get }
}

/// The state of a transfer.
package enum TransferStage: String, Sendable, CaseIterable {
    /// It waits for a permit, or for the end of its delay.
    case queued
    /// It has a permit.
    case running
    /// It has reached its allowance and has no permit.
    case paused
}

/// Receives the events of a transfer.
package protocol TransferDelegate: AnyObject, Sendable {
    /// The transfer has left the queue and is about to be sent. Called before `began`, at most once; not called if the
    /// transfer is cancelled first. An error thrown here ends the transfer before it is sent.
    func started() throws(CacheError)
    /// The head of the final response (after redirects and 1xx) has arrived; no byte of the body has been stored.
    func began(_ head: UpstreamHead) -> HeadVerdict
    /// The sink has accepted `total` bytes of this transfer's body.
    func progressed(to total: Int64)
    /// The transfer has ended; the last call.
    func ended(_ end: TransferEnd)
}

extension TransferDelegate {
    package func started() throws(CacheError) {}
}

/// The decision about a response's body.
package enum HeadVerdict: Sendable {
    /// Store the body in `sink`, in order. Bytes beyond `limit` are dropped and counted, and the transfer is cut; nil:
    /// no limit. `allowance`: as `Transfer.allow`, before the first byte; an allowance that was set earlier stays in
    /// force.
    case store(into: any ByteSink, limit: Int64?, allowance: Int64 = .max)
    /// Discard the body; the transfer has succeeded (a probe, a 304).
    case enough
    /// Reject the response; the transfer ends with this error.
    case refuse(CacheError)
}

/// Destination of a response's bytes; called on the thread of the upstream client, in order.
package protocol ByteSink: AnyObject, Sendable {
    /// Stores all of `bytes`, valid only during the call. An error ends the transfer.
    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError)
}

/// The class of a transfer in the queue; the first case is the most urgent.
package enum TransferPriority: Int, Comparable, Sendable, CaseIterable {
    case live, readAhead, prefetch

    /// Whether `left` is more urgent.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The timeouts of one upstream request; nil: no limit.
package struct TransferTimeouts: Hashable, Sendable {
    /// Name look-up, TCP and TLS together.
    package var connect: Duration?
    /// From the request to the first byte of the response.
    package var firstByte: Duration?
    /// Between two arrivals of body bytes.
    package var idle: Duration?
    /// The whole transfer with its redirects, from the moment when it leaves the queue; pauses are not counted. The
    /// limit ends with the head of a whole body (requested as a whole, or status 200).
    package var total: Duration?

    package init(
        connect: Duration? = .seconds(5), firstByte: Duration? = .seconds(15), idle: Duration? = .seconds(15),
        total: Duration? = .seconds(300)
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
        self.total = total
    }

    /// The same limit for each step and for the whole transfer.
    package init(all limit: Duration) { self.init(connect: limit, firstByte: limit, idle: limit, total: limit) }
}

/// The verification of an upstream's certificate.
package struct TLSSettings: Hashable, Sendable {
    /// A PEM file of certificate authorities that replaces those of the system; nil: those of the system.
    package var caFile: String?
    /// False: certificates are not verified.
    package var verify: Bool
    /// PEM files of the certificate chain and the private key that this service presents; nil: none.
    package var certificateFile: String?
    package var keyFile: String?

    package init(
        caFile: String? = nil, verify: Bool = true, certificateFile: String? = nil, keyFile: String? = nil
    ) {
        self.caFile = caFile
        self.verify = verify
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }
}

/// The hosts that redirects may lead to: those of the origin's own URLs, and those of the setting `redirectHosts`.
package struct RedirectHosts: Hashable, Sendable {
    package var patterns: HostPatterns
    /// The base URL of the origin and its mirrors.
    package var ownURLs: [String]

    package init(patterns: HostPatterns, ownURLs: [String]) {
        self.patterns = patterns
        self.ownURLs = ownURLs
    }
}

/// The parameters of one upstream request.
package struct UpstreamRequest: Sendable {
    /// The HTTP method.
    package enum Method: String, Sendable {
        case get = "GET", head = "HEAD"
        /// Calls to other services, such as token endpoints.
        case post = "POST", put = "PUT", patch = "PATCH", delete = "DELETE"
        /// The properties of a folder (RFC 4918 §9.1).
        case propfind = "PROPFIND"

        /// Whether the request has a body.
        package var hasBody: Bool { self == .post || self == .put || self == .patch || self == .propfind }
    }

    /// The requested range, sent as `Range` (RFC 9110 §14.2).
    package enum Window: Hashable, Sendable {
        case whole
        case closed(ByteRange)
        /// From this byte to the end of the asset.
        case from(Int64)
        case suffix(Int64)

        /// The first byte of the range; nil if it depends on the asset's length.
        package var firstByte: Int64? {
            switch self {
            case .whole, .suffix: nil
            case .closed(let range): range.lowerBound
            case .from(let first): first
            }
        }
    }

    package var method: Method
    /// An absolute http or https URL.
    package var url: String
    /// Header fields for every host, redirect targets included: conditions, tracing. `Range` and
    /// `Accept-Encoding: identity` are added.
    package var headers: HeaderList
    /// The origin's own header fields, credentials included; sent only to scheme, host and port of the first URL.
    package var originHeaders: HeaderList
    /// Authorizes each hop to the origin's own host; nil: `originHeaders` are all credentials.
    package var authorizer: (any RequestAuthorizer)?
    /// The body of `.post`, `.put` and `.patch`.
    package var body: [UInt8] = []
    /// Whether redirects are followed; otherwise they are final responses.
    package var followsRedirects = true
    /// The hosts that redirects may lead to; nil: all.
    package var redirectHosts: RedirectHosts?
    /// Whether metadata services of clouds may be contacted, which the address guard refuses otherwise.
    package var allowsMetadataServices = false
    package var window: Window
    /// The name by which limits per origin are counted.
    package var originName: String
    package var timeouts: TransferTimeouts
    /// The number of permits of this origin.
    package var maxTransfers: Int
    /// The rate limit of all transfers of this origin together; nil: no limit.
    package var originBytesPerSecond: Int64?
    /// The rate limit of this transfer alone (a job's share); nil: no limit.
    package var bytesPerSecond: Int64?
    package var priority: TransferPriority
    /// The time until the reader runs out of bytes. Within a class, the smallest value is admitted first.
    package var slack = Duration.zero
    package var allowPrivateAddresses: Bool
    package var tls: TLSSettings
    /// Restricts the transfer to HTTP/1.1, because it may be paused for long. Paused HTTP/2 streams would buffer their
    /// data in memory.
    package var mayBePaused = false
    /// Whether a URL is to be requested over HTTP/1.1 only, because its address has required it.
    package var requiresHTTP1: @Sendable (String) -> Bool = { _ in false }
    /// The endpoint of the bucket's region, to which the request is sent at once, if it permits the redirect.
    package var region: RegionalEndpoint?
    /// The delay before the transfer may leave the queue (backoff between retries).
    package var delay: Duration

    package init(
        method: Method = .get, url: String, headers: HeaderList = [:], originHeaders: HeaderList = [:],
        window: Window = .whole, originName: String = "", timeouts: TransferTimeouts = .init(), maxTransfers: Int = 16,
        originBytesPerSecond: Int64? = nil, bytesPerSecond: Int64? = nil, priority: TransferPriority = .live,
        allowPrivateAddresses: Bool = false, tls: TLSSettings = .init(), delay: Duration = .zero
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.originHeaders = originHeaders
        self.window = window
        self.originName = originName
        self.timeouts = timeouts
        self.maxTransfers = maxTransfers
        self.originBytesPerSecond = originBytesPerSecond
        self.bytesPerSecond = bytesPerSecond
        self.priority = priority
        self.allowPrivateAddresses = allowPrivateAddresses
        self.tls = tls
        self.delay = delay
    }
}

extension UpstreamRequest: CustomStringConvertible {
    /// Without query, fields and body; they can contain secrets.
    package var description: String { "\(method.rawValue) \(url.prefix { $0 != "?" })" }
}

/// The head of a redirect that was followed.
package struct RedirectHead: Sendable {
    package var status: Int
    package var headers: HeaderList

    package init(status: Int, headers: HeaderList) {
        self.status = status
        self.headers = headers
    }
}

/// The head of a final response.
package struct UpstreamHead: Sendable {
    package var status: Int
    package var headers: HeaderList
    /// The first bytes of the body of a 400 or 403 to a GET, at most ``ErrorDocument/maxBytes``; empty for others. They
    /// are part of the body, too.
    package var excerpt: [UInt8] = []
    /// The URL of the response, after redirects.
    package var finalURL: String
    package var redirects: Int
    /// The heads of the redirects before the response, in order.
    package var earlier: [RedirectHead] = []
    /// `1.1` or `2`.
    package var httpVersion: String
    /// Whether the request was repeated over HTTP/1.1 after its stream was reset with HTTP_1_1_REQUIRED (RFC 9113 §7).
    package var requiredHTTP1 = false
    /// Address and port of the server as text; nil if unknown.
    package var address: String?
    package var timings: TransferTimings

    /// Whether the connection carries several transfers (HTTP/2). Such a transfer cannot be paused.
    package var isMultiplexed: Bool { httpVersion == "2" }

    package init(
        status: Int, headers: HeaderList, finalURL: String = "", redirects: Int = 0, httpVersion: String = "1.1",
        timings: TransferTimings = .init()
    ) {
        self.status = status
        self.headers = headers
        self.finalURL = finalURL
        self.redirects = redirects
        self.httpVersion = httpVersion
        self.timings = timings
    }
}

/// The durations from the start of a transfer (redirects included) to the end of each step; nil: not reached.
package struct TransferTimings: Hashable, Sendable {
    package var nameLookup: Duration?
    package var connect: Duration?
    package var tls: Duration?
    package var firstByte: Duration?
    package var total: Duration?

    /// From the request to the first byte, without the steps of a new connection; nil if no byte arrived.
    package var roundTrip: Duration? {
        firstByte.map { max(.zero, $0 - max(nameLookup ?? .zero, connect ?? .zero, tls ?? .zero)) }
    }

    package init(
        nameLookup: Duration? = nil, connect: Duration? = nil, tls: Duration? = nil, firstByte: Duration? = nil,
        total: Duration? = nil
    ) {
        self.nameLookup = nameLookup
        self.connect = connect
        self.tls = tls
        self.firstByte = firstByte
        self.total = total
    }
}

/// The result of a transfer.
package struct TransferEnd: Sendable {
    /// Nil if the response was complete, or the delegate needed no more of it.
    package var error: CacheError?
    /// The number of bytes that the sink accepted.
    package var storedBytes: Int64
    /// The number of body bytes that arrived and were dropped.
    package var droppedBytes: Int64
    package var timings: TransferTimings

    package init(
        error: CacheError? = nil, storedBytes: Int64 = 0, droppedBytes: Int64 = 0, timings: TransferTimings = .init()
    ) {
        self.error = error
        self.storedBytes = storedBytes
        self.droppedBytes = droppedBytes
        self.timings = timings
    }
}
