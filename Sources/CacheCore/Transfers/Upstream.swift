/// The door to the network: fetches one window, or one head, of an asset from its upstream.
package protocol Upstream: Sendable {
    /// Queues a transfer and answers at once; nothing of it has happened yet when this returns.
    ///
    /// Calls on `delegate` come one at a time, in order, on a thread of the upstream's own: `started` and `began` at most
    /// once, `progressed` any number of times after them, `ended` exactly once, last, whatever happens.
    func start(_ request: UpstreamRequest, delivering delegate: any TransferDelegate) -> any Transfer

    /// Takes an absolute URL apart, as the fetching parser does; throws `.malformedRequest` with what is wrong where it
    /// is no http or https URL, or holds user info.
    func parse(url: String) throws(CacheError) -> UpstreamURL

    /// Throws `.invalidField("tls.caFile")` if the file of certificate authorities cannot be used. Blocks its thread.
    func check(_ tls: TLSSettings) throws(CacheError)

    /// How many transfers are under way, and how many queue for a place.
    var load: TransferLoad { get }

    /// How many transfers queue for a place while a reader waits for them.
    var queuedForReaders: Int { get }
}

extension Upstream {
    package func check(_ tls: TLSSettings) throws(CacheError) {}

    package var queuedForReaders: Int { load.queued }
}

/// A transfer under way.
package protocol Transfer: AnyObject, Sendable {
    /// Ends the transfer soon, with `.cancelled`, unless it has ended already. Safe from any thread, any number of times.
    func cancel()
    /// Moves a transfer that still queues to a more urgent class.
    func promote(to priority: TransferPriority)
    /// Sets the allowance: once `bytes` of the body are stored the transfer pauses, until a later call allows more. It
    /// may store up to 16 KiB beyond the allowance (one write of libcurl's).
    ///
    /// A paused transfer holds no more of the body in memory than libcurl's receive buffer, 64 KiB, and no permit of the
    /// transfer limits, and no timeout runs. If the upstream closes the connection meanwhile, the transfer fails after it
    /// resumes. A resuming transfer queues for a permit ahead of the transfers of its class that have not begun. Without
    /// effect over HTTP/2.
    func allow(upTo bytes: Int64)
    /// Ends with success once `bytes` of the body are stored; without effect once more than that is stored. HTTP/2 resets
    /// the stream, HTTP/1.1 closes the connection.
    func shorten(to bytes: Int64)
    var stage: TransferStage { get }
}

/// What a transfer is doing.
package enum TransferStage: String, Sendable, CaseIterable {
    /// It waits for a place, or for its time.
    case queued
    case running
    case paused
}

/// Who is told what a transfer does.
package protocol TransferDelegate: AnyObject, Sendable {
    /// The transfer has left the queue, and is about to be sent; before `began`, at most once, not at all where it is
    /// cancelled first. Throws where it is not to be sent after all: it ends with that error.
    func started() throws(CacheError)
    /// The final response's head (after redirects and 1xx) has arrived, before any byte of its body.
    func began(_ head: UpstreamHead) -> HeadVerdict
    /// `total` bytes of this transfer's body have been taken by the sink so far.
    func progressed(to total: Int64)
    func ended(_ end: TransferEnd)
}

extension TransferDelegate {
    package func started() throws(CacheError) {}
}

/// What becomes of a response's body.
package enum HeadVerdict: Sendable {
    /// The body's bytes go into `sink` in order; beyond `limit` they are dropped, counted, and the transfer is cut.
    /// `allowance`: as `Transfer.allow`, before the first byte; an allowance that was set before is kept.
    case store(into: any ByteSink, limit: Int64?, allowance: Int64 = .max)
    /// Nothing of the body is wanted; the transfer has succeeded (a probe, a 304).
    case enough
    /// The response cannot be used.
    case refuse(CacheError)
}

/// Where a response's bytes go; called on the upstream's thread, in order.
package protocol ByteSink: AnyObject, Sendable {
    /// Takes all of `bytes`, which are valid during the call only.
    func write(_ bytes: UnsafeRawBufferPointer) throws(CacheError)
}

/// Which transfers go first when limits make them queue.
package enum TransferPriority: Int, Comparable, Sendable, CaseIterable {
    case live, readAhead, prefetch

    /// True where `left` is more urgent.
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The waits of one upstream request; nil means no limit.
package struct TransferTimeouts: Hashable, Sendable {
    /// Name look-up, TCP and TLS.
    package var connect: Duration?
    /// From the request sent to the response's first byte.
    package var firstByte: Duration?
    /// Between two arrivals of bytes in the body.
    package var idle: Duration?
    /// The whole transfer, redirects included, from the moment it leaves the queue, pauses left out; not once a whole
    /// body (the whole was asked for, or a 200 came) has its head.
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
}

/// How an upstream's certificate is checked.
package struct TLSSettings: Hashable, Sendable {
    /// A PEM file of certificate authorities instead of the system's.
    package var caFile: String?
    package var verify: Bool

    package init(caFile: String? = nil, verify: Bool = true) {
        self.caFile = caFile
        self.verify = verify
    }
}

/// One request to an upstream.
package struct UpstreamRequest: Sendable {
    package enum Method: String, Sendable { case get = "GET", head = "HEAD" }

    /// The `Range` it carries (RFC 9110 §14.2).
    package enum Window: Hashable, Sendable {
        case whole
        case closed(ByteRange)
        /// From this byte to the end of the asset, wherever that is.
        case from(Int64)
        case suffix(Int64)

        /// The first byte of the range; nil where it depends on the asset's length.
        package var firstByte: Int64? {
            switch self {
            case .whole, .suffix: nil
            case .closed(let range): range.lowerBound
            case .from(let first): first
            }
        }
    }

    package var method: Method
    /// Absolute, http or https.
    package var url: String
    /// Sent to whatever host answers: conditions, tracing. `Range` and `Accept-Encoding: identity` are added.
    package var headers: HeaderList
    /// The origin's own headers, credentials among them: sent to the first URL's scheme, host and port only.
    package var originHeaders: HeaderList
    package var window: Window
    /// The name under which limits per origin are counted.
    package var originName: String
    package var timeouts: TransferTimeouts
    /// Transfers of this origin at once.
    package var maxTransfers: Int
    /// For all transfers of this origin together.
    package var originBytesPerSecond: Int64?
    /// For this transfer alone (a job's share).
    package var bytesPerSecond: Int64?
    package var priority: TransferPriority
    /// How long until whoever wants it runs out of bytes: the shortest goes first within a class.
    package var patience = Duration.zero
    package var allowPrivateAddresses: Bool
    package var tls: TLSSettings
    package var maxRedirects: Int
    /// Over HTTP/1.1 only: it may be paused for long, and what HTTP/2 has in flight then lies in memory.
    package var mayBePaused = false
    /// How long to wait before the transfer may leave the queue (backoff between retries).
    package var delay: Duration

    package init(
        method: Method = .get, url: String, headers: HeaderList = [:], originHeaders: HeaderList = [:],
        window: Window = .whole, originName: String = "", timeouts: TransferTimeouts = .init(), maxTransfers: Int = 16,
        originBytesPerSecond: Int64? = nil, bytesPerSecond: Int64? = nil, priority: TransferPriority = .live,
        allowPrivateAddresses: Bool = false, tls: TLSSettings = .init(), maxRedirects: Int = 5, delay: Duration = .zero
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
        self.maxRedirects = maxRedirects
        self.delay = delay
    }
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
    /// The URL that answered, after redirects.
    package var finalURL: String
    package var redirects: Int
    /// The redirects that led to it, in order.
    package var earlier: [RedirectHead] = []
    /// "1.1" or "2".
    package var httpVersion: String
    /// The address and port that answered, as text; nil where that is not known.
    package var address: String?
    package var timings: TransferTimings

    /// Whether the connection carries other transfers beside this one, which cannot be paused then.
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

/// How long the steps of a transfer took, each from the transfer's start (redirects included); nil where not reached.
package struct TransferTimings: Hashable, Sendable {
    package var nameLookup: Duration?
    package var connect: Duration?
    package var tls: Duration?
    package var firstByte: Duration?
    package var total: Duration?

    /// From the request to the first byte, without the steps of a new connection; nil where no byte came.
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

/// How a transfer ended.
package struct TransferEnd: Sendable {
    /// Nil where the response came to its proper end (or the delegate had enough).
    package var error: CacheError?
    /// Bytes that the sink took.
    package var storedBytes: Int64
    /// Body bytes that arrived and were not wanted.
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
