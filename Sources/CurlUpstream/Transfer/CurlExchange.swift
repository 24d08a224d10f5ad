import CCurl
import CacheCore
import Glibc

/// One transfer in progress over all its hops: connection checks, response head, body and result. Not thread-safe: used
/// on one worker's thread only.
final class CurlExchange {
    /// The use of the current response's body.
    enum Body {
        /// The response head is incomplete.
        case awaited
        /// The beginning of the body is collected for the delegate; it has not got the head yet.
        case excerpted([UInt8])
        /// The bytes are written to the delegate's sink.
        case stored(BodyWriter)
        /// The bytes are discarded; the outcome is known.
        case unwanted
        /// The bytes are discarded; the next hop follows.
        case redirected(to: String)
    }

    /// The result, once it is known independently of libcurl's code.
    private enum Outcome {
        case success
        case failure(CacheError)
    }

    /// An unwanted body up to this length is read to its end, so that the connection can be reused.
    private static let drainBytes: Int64 = 16 << 10

    let transfer: CurlTransfer
    /// The easy handle of the current hop.
    private(set) var easy: UnsafeMutableRawPointer
    let settings: CurlPoolSettings
    /// The URL of the current hop.
    var url: UpstreamURL
    /// The timeouts of the current hop.
    var timers: TransferTimers
    /// The connection of the current hop.
    var hop = HopConnection()
    /// The addresses of all servers.
    let addresses: UpstreamAddresses
    /// The addresses to which the request may connect.
    let permission: AddressPermission
    /// The rate limit lets no bytes in before this time; nil: no wait.
    var rest: Instant?
    /// State of a pause.
    var hold = Hold.none
    /// Whether libcurl's receiving is paused.
    var isShut = false
    /// Whether the rest of the body is cut off because less is wanted than the upstream sends.
    var isCut = false
    /// Queue of exchanges with events.
    let notes: ReadyExchanges
    /// The receive buffer of the current hop's connection; nil before it is established.
    var receiveBuffer: ReceiveBuffer?
    /// Whether the exchange is in the queue `notes`.
    var isTouched = false
    /// Connections of all hops, for statistics.
    var connections = (opened: 0, reused: 0)
    /// Address and port of the current hop's connection.
    private(set) var remote: String?
    /// Whether the delegate's `started` was called.
    private var isAnnounced = false
    /// Whether the current hop is restricted to HTTP/1.1.
    private(set) var isHTTP1Only = false
    private let buffers: BufferPool
    let sockets: OpenedSockets
    /// The URL that is sent: that of the current hop with the query that authorizes it.
    private(set) var sentURL = ""
    /// The URL of the first hop; the origin's credentials are sent to its host only.
    let firstURL: UpstreamURL
    /// The region of the bucket, if a redirect has led to its host; nil: the origin's credentials are for the own host
    /// only.
    var bucketRegion: String?
    /// The heads of the redirects so far.
    var earlier: [RedirectHead] = []
    /// Reads the clock of the pool.
    let now: @Sendable () -> Instant
    var clock: ExchangeClock
    var rateLimit = RateLimit()
    var collector: HeadCollector
    /// The use of the current response's body.
    var body = Body.awaited
    private var outcome: Outcome?
    /// The watched connection of a body that only its end delimits, over TLS; nil: there is none, or it is unknown whether
    /// a closure alert was received.
    private var closure: TLSClosure?
    /// Received body bytes that were not stored, of all hops.
    private var dropped: Int64 = 0
    /// The same of the current hop.
    var drained: Int64 = 0

    init(
        _ transfer: CurlTransfer, settings: CurlPoolSettings, buffers: BufferPool, sockets: OpenedSockets,
        addresses: UpstreamAddresses, notes: ReadyExchanges, now: @escaping @Sendable () -> Instant
    ) throws(CacheError) {
        let begun = now()
        self.now = now
        self.transfer = transfer
        self.settings = settings
        self.buffers = buffers
        self.sockets = sockets
        self.addresses = addresses
        permission = AddressPermission(of: transfer.request, settings)
        self.notes = notes
        url = try CurlURL.parse(transfer.request.url)
        firstURL = url
        clock = ExchangeClock(begun: begun)
        timers = TransferTimers(transfer.request.timeouts, begun: begun)
        collector = HeadCollector(maxBytes: settings.maxHeaderBytes, maxLines: settings.maxHeaderLines)
        easy = try Self.makeHandle()
        startInRegion()
    }

    deinit {
        // A cancelled transfer does not finish.
        _ = closure?.end()
    }

    /// Creates a new handle for the next hop. The caller retires the old one.
    func renewHandle() throws(CacheError) { easy = try Self.makeHandle() }

    private static func makeHandle() throws(CacheError) -> UnsafeMutableRawPointer {
        guard let easy = curl_easy_init() else {
            throw CacheError(.internal, "No memory is left for a transfer.")
        }
        return easy
    }

    /// Whether the current hop has the scheme, host and port of the first URL. Only then the origin's header fields are
    /// sent.
    var isOwnHost: Bool { url.isSameHost(as: firstURL) }

    /// The header lines of the current hop, authorized now. Throws the authorizer's error, and those of
    /// ``RequestFields``.
    func authorizedLines() throws(CacheError) -> [String] {
        let request = transfer.request
        var fields = try RequestFields.fields(of: request, isOwnHost: isOwnHost)
        sentURL = url.text
        isHTTP1Only = request.mayBePaused || request.requiresHTTP1(url.text)
        if isOwnHost || bucketRegion != nil, let authorizer = request.authorizer {
            let authorized = try authorizer.authorize(
                OutgoingRequest(method: request.method.rawValue, url: url, headers: fields, region: bucketRegion))
            sentURL = authorized.url
            for field in authorized.headers.fields { fields.set(field.name, field.value) }
        }
        return try RequestFields.lines(of: fields)
    }

    /// `name:port`, for error messages.
    var place: String { "\(url.host):\(url.port)" }

    // MARK: Callbacks of libcurl

    /// The connection is established; the request is about to be sent.
    func connected(to address: String, port: Int32, from localPort: Int32) {
        if larder_easy_is_http2(easy) != 0 { hop.wasSentAsStream = true }
        noteConnection(to: address)
        receiveBuffer = sockets.socket(localPort: localPort, remotePort: port).map { ReceiveBuffer(of: $0) }
        remote = address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
        timers.connected(at: now())
        touch()
    }

    /// Whether the address guard refuses `address` (4 or 16 bytes in network order).
    func refuses(_ address: [UInt8]) -> Bool {
        guard let kind = permission.refusedKind(of: address) else { return false }
        hop.forbidden = kind
        return true
    }

    /// A reused connection leads to a refused address; the exchange fails with `.upstreamForbidden`.
    func refused() { outcome = outcome ?? .failure(forbiddenError) }

    /// Processes one line of the response head. False: libcurl must abort the transfer.
    func receivedHead(_ line: UnsafeRawBufferPointer) -> Bool {
        touch()
        let now = now()
        clock.answered(at: now)
        timers.arrived(at: now)
        switch collector.receive(line) {
        case .more: return outcome == nil || isDraining
        case .answered:
            timers.responded(at: now)
            if let address = hop.address { addresses.succeeded(server, address) }
            return true
        case .complete: return judgeHead(now)
        case .tooLarge:
            outcome = .failure(CacheError(.upstreamProtocol, "\(place) sent a response head that exceeds the limit."))
            return false
        case .malformed:
            outcome = .failure(CacheError(.upstreamProtocol, "\(place) sent a malformed response head."))
            return false
        }
    }

    /// Processes bytes of the body. False: libcurl must abort the transfer.
    func receivedBody(_ bytes: UnsafeRawBufferPointer, at now: Instant) -> Bool {
        touch()
        timers.arrived(at: now)
        if case .excerpted(var excerpt) = body {
            let room = ErrorDocument.maxBytes - excerpt.count
            excerpt += bytes.prefix(room)
            body = .excerpted(excerpt)
            guard excerpt.count == ErrorDocument.maxBytes else { return true }
            return deliverExcerpt(now) && receivedBody(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(room)), at: now)
        }
        guard case .stored(var writer) = body else {
            dropped += Int64(bytes.count)
            drained += Int64(bytes.count)
            return isDraining && drained <= Self.drainBytes
        }
        let before = writer.stored
        defer {
            body = .stored(writer)
            if writer.stored > before { transfer.delegate.progressed(to: writer.stored) }
        }
        do {
            let taken = try writer.write(bytes)
            if writer.received >= transfer.allowedLength { try writer.flush() }
            guard taken < bytes.count else {
                throttle(bytes.count, now)
                return true
            }
            dropped += Int64(bytes.count - taken)
            // The worker resets the stream after the iteration. An error here would close the connection with its other
            // streams.
            isCut = isHTTP2
            guard !isCut else { return true }
            outcome = .success
        } catch {
            outcome = .failure(error)
        }
        return false
    }

    // MARK: Control by the worker

    /// Notifies the delegate, once, before the first request is sent. Throws the delegate's error if it declines the
    /// transfer.
    func announce() throws(CacheError) {
        guard !isAnnounced else { return }
        isAnnounced = true
        try transfer.delegate.started()
    }

    /// Writes the buffered bytes to the sink. False if the sink failed; then the worker ends the transfer.
    func flush() -> Bool {
        guard case .stored(var writer) = body else { return true }
        defer { body = .stored(writer) }
        do {
            if try writer.flush() { transfer.delegate.progressed(to: writer.stored) }
            return true
        } catch {
            outcome = .failure(error)
            return false
        }
    }

    /// Sets `error` as the outcome, unless an outcome is known.
    func cancelled(_ error: CacheError) { if outcome == nil { outcome = .failure(error) } }

    /// Sets the timeout as the outcome, unless an outcome is known. An unwanted body that is late is no error.
    func timedOut(_ timeout: CacheError.Timeout) {
        // The status counts, although its body is late.
        if case .excerpted = body { _ = deliverExcerpt(now()) }
        guard outcome == nil, timeout == .total || !isDraining else { return }
        outcome = .failure(.upstreamTimedOut(timeout, in: step, host: place, after: transfer.request.timeouts))
    }

    /// Ends the current hop with libcurl's code. Returns the result of the transfer; nil if another hop follows with a
    /// new handle.
    func finished(_ code: CURLcode) -> TransferEnd? {
        if outcome == nil, repeatsHop(after: code) { return nil }
        let isClosed = closure?.end() ?? false
        closure = nil
        clock.note(easy)
        countConnection()
        if case .excerpted = body, outcome == nil { _ = deliverExcerpt(now()) }
        _ = flush()
        if case .redirected(let location) = body, outcome == nil {
            do {
                try follow(location)
                return nil
            } catch {
                outcome = .failure(error)
            }
        }
        var stored: Int64 = 0
        if case .stored(let writer) = body {
            stored = writer.stored
            // Every wanted byte is stored, so a failure of the rest is irrelevant.
            if writer.isSatisfied, outcome == nil || isTransportFailure { outcome = .success }
            if code == CURLE_OK, outcome == nil, hasUntoldEnd, !isClosed { outcome = .failure(untoldEnd) }
        }
        let error = error(code)
        noteEnd(error)
        return TransferEnd(
            error: error, storedBytes: stored, droppedBytes: dropped, timings: clock.timings(at: now()))
    }
}

extension CurlExchange {
    /// Whether the rest of the current response is discarded.
    private var isDraining: Bool {
        switch body {
        case .unwanted, .redirected: true
        case .awaited, .excerpted, .stored: false
        }
    }

    /// Whether the outcome is a timeout.
    private var isTransportFailure: Bool {
        if case .failure(let error) = outcome, case .upstreamTimedOut = error.code { true } else { false }
    }

    private var forbiddenError: CacheError {
        CacheError(
            .upstreamForbidden,
            "\(url.host) is at a \(hop.forbidden ?? "refused") address, which is not allowed (see allowPrivateAddresses)."
        )
    }

    /// The error of a body that may be truncated. A repeated request would have the same end.
    private var untoldEnd: CacheError {
        CacheError(
            .upstreamUnusable(),
            "\(place) ended a body over TLS without Content-Length, chunks or a closure alert; it may be incomplete.")
    }

    /// The error of the transfer: the known outcome, or libcurl's code mapped to an error. Nil: success.
    private func error(_ code: CURLcode) -> CacheError? {
        switch outcome {
        case .success: return nil
        case .failure(let error): return error
        case nil: break
        }
        if code == CURLE_OK {
            guard case .awaited = body else { return nil }
            return CacheError(.upstreamProtocol, "The transfer from \(place) ended without a response.")
        }
        // If another address of the name was tried, its failure is the reason.
        if code == CURLE_COULDNT_CONNECT, hop.forbidden != nil, !hop.hasOpenedSocket { return forbiddenError }
        var system = 0
        larder_easy_get_long(easy, CURLINFO_OS_ERRNO, &system)
        if code == CURLE_COULDNT_CONNECT, hop.socketError != 0 { system = Int(hop.socketError) }
        // The only timeout of libcurl itself. After a dead kept connection it can also expire for the next one.
        let isSilent = !timers.isConnected && code == CURLE_COULDNT_CONNECT && system == ETIMEDOUT
        if isSilent || code == CURLE_OPERATION_TIMEDOUT {
            return .upstreamTimedOut(.connect, in: step, host: place, after: transfer.request.timeouts)
        }
        var failure = CurlError(code: code, systemError: Int32(truncatingIfNeeded: system))
        larder_easy_get_long(easy, CURLINFO_SSL_VERIFYRESULT, &failure.verification)
        failure.isLocal = code == CURLE_COULDNT_CONNECT && hop.isLocal(failure.systemError)
        return failure.cacheError(host: place, isConnected: timers.isConnected)
    }

    /// Decides on the use of the body when the response head is complete. False: libcurl must abort the transfer,
    /// because the unwanted body is too long to be drained.
    private func judgeHead(_ now: Instant) -> Bool {
        if let location = redirectTarget {
            body = .redirected(to: location)
        } else {
            if hasUntoldEnd { closure = TLSClosure.watch(easy) }
            if hasExcerpt {
                body = .excerpted([])
                return true
            }
            if begin(head()) { return true }
        }
        timers.drains(at: now)
        let hasBody = transfer.request.method != .head && collector.status != 304 && collector.status != 204
        let length = collector.headers["Content-Length"].flatMap { Int64($0) }
        return !hasBody || (length ?? Self.drainBytes) <= Self.drainBytes
    }

    /// Passes the head to the delegate. Whether the body is stored; otherwise the outcome is known.
    private func begin(_ head: UpstreamHead) -> Bool {
        switch transfer.delegate.began(head) {
        case .store(let sink, let limit, let allowance):
            transfer.begin(allowance: allowance)
            body = .stored(BodyWriter(into: sink, limit: limit, pool: buffers))
            if isWholeBody { timers.liftTotal() }
            fitReceiveBuffer()
            return true
        case .enough: outcome = .success
        case .refuse(let error): outcome = .failure(error)
        }
        body = .unwanted
        return false
    }

    /// Whether the delegate gets the head with the beginning of the body.
    private var hasExcerpt: Bool {
        transfer.request.method == .get && [400, 403].contains(collector.status)
            && collector.headers["Content-Length"] != "0"
    }

    /// Passes the head and the collected beginning of the body to the delegate. False: libcurl must abort the transfer.
    private func deliverExcerpt(_ now: Instant) -> Bool {
        guard case .excerpted(let excerpt) = body else { return true }
        var head = head()
        head.excerpt = excerpt
        if !begin(head) { timers.drains(at: now) }
        return excerpt.withUnsafeBytes { receivedBody($0, at: now) }
    }
}
