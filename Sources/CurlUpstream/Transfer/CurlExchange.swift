import CCurl
import CacheCore

/// One transfer being carried out: its hops, its head, where its body goes, and how it ends. Used on one worker's thread only.
final class CurlExchange {
    /// What becomes of the present response's body.
    enum Body {
        case awaited
        case stored(BodyWriter)
        /// Dropped; the end is decided.
        case unwanted
        case redirected(to: String)
    }

    private enum Outcome {
        case success
        case failure(CacheError)
    }

    /// The longest unwanted body that is read to its end so that the connection can be used again.
    private static let drainBytes: Int64 = 16 << 10

    let transfer: CurlTransfer
    /// The handle of the present hop.
    private(set) var easy: UnsafeMutableRawPointer
    let settings: CurlPoolSettings
    /// The URL of the present hop.
    var url: UpstreamURL
    var timers: TransferTimers
    /// The kind of address that was refused, if one was.
    var forbidden: String?
    /// Why no socket could be made for the present hop, as `errno` says; 0 where one was.
    var socketError: Int32 = 0
    /// Until when the rate limit lets nothing more in.
    var rest: ContinuousClock.Instant?
    var hold = Hold.none
    /// Whether libcurl is told to take nothing in.
    var isShut = false
    /// Whether less of the body is wanted than is coming.
    var isCut = false
    let notes: TurnNotes
    /// The receive buffer of the present hop's connection.
    var receiveBuffer: ReceiveBuffer?
    /// Whether the worker is to look at it before the turn is over.
    var isTouched = false
    var connections = (opened: 0, reused: 0)
    /// The address and port of the present hop's connection.
    private(set) var remote: String?
    private var isAnnounced = false
    /// Whether the present hop must not use a connection that was kept.
    var needsFreshConnection = false
    var hasOpenedSocket = false
    private let buffers: BufferPool
    let sockets: OpenedSockets
    private let firstURL: UpstreamURL
    var earlier: [RedirectHead] = []
    var clock: ExchangeClock
    var rateLimit = RateLimit()
    var collector: HeadCollector
    var body = Body.awaited
    private var outcome: Outcome?
    private var dropped: Int64 = 0
    var drained: Int64 = 0

    init(
        _ transfer: CurlTransfer, settings: CurlPoolSettings, buffers: BufferPool, sockets: OpenedSockets,
        notes: TurnNotes
    ) throws(CacheError) {
        let now = ContinuousClock.now
        self.transfer = transfer
        self.settings = settings
        self.buffers = buffers
        self.sockets = sockets
        self.notes = notes
        url = try CurlURL.parse(transfer.request.url)
        firstURL = url
        clock = ExchangeClock(begun: now)
        timers = TransferTimers(transfer.request.timeouts, begun: now)
        collector = HeadCollector(maxBytes: settings.maxHeaderBytes, maxLines: settings.maxHeaderLines)
        easy = try Self.makeHandle()
    }

    /// Takes a new handle for the next hop; the old one is the caller's to retire.
    func renewHandle() throws(CacheError) { easy = try Self.makeHandle() }

    private static func makeHandle() throws(CacheError) -> UnsafeMutableRawPointer {
        guard let easy = curl_easy_init() else {
            throw CacheError(.internal, "There is no memory left for a transfer.")
        }
        return easy
    }

    /// Whether the present hop goes to the first URL's scheme, host and port, where the origin's headers may go.
    var isOwnHost: Bool { url.isSameHost(as: firstURL) }

    /// `name:port`, for messages.
    var place: String { "\(url.host):\(url.port)" }

    // MARK: What libcurl reports

    /// A connection stands, and the request is about to be sent.
    func connected(to address: String, port: Int32, from localPort: Int32) {
        receiveBuffer = sockets.socket(localPort: localPort, remotePort: port).map { ReceiveBuffer(of: $0) }
        remote = address.contains(":") ? "[\(address)]:\(port)" : "\(address):\(port)"
        timers.connected(at: .now)
        touch()
    }

    /// Whether `address` may not be connected to.
    func refuses(_ address: [UInt8]) -> Bool {
        guard let kind = settings.refusal(address) else { return false }
        if transfer.request.allowPrivateAddresses, !AddressGuard.isNeverAllowed(kind) { return false }
        forbidden = kind
        return true
    }

    /// A reused connection leads to an address that is refused.
    func refused() { outcome = outcome ?? .failure(forbiddenError) }

    /// False where the transfer is to be cut.
    func receivedHead(_ line: UnsafeRawBufferPointer) -> Bool {
        touch()
        let now = ContinuousClock.now
        clock.answered(at: now)
        timers.arrived(at: now)
        switch collector.take(line) {
        case .more: return outcome == nil || isDraining
        case .answered:
            timers.responded(at: now)
            return true
        case .complete: return judgeHead(now)
        case .tooLarge:
            outcome = .failure(CacheError(.upstreamProtocol, "\(place) sent a response head that is too large."))
            return false
        case .malformed:
            outcome = .failure(CacheError(.upstreamProtocol, "\(place) sent a malformed response head."))
            return false
        }
    }

    /// False where the transfer is to be cut.
    func receivedBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        touch()
        let now = ContinuousClock.now
        timers.arrived(at: now)
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
            let taken = try writer.take(bytes)
            if writer.received >= transfer.allowedLength { try writer.flush() }
            guard taken < bytes.count else {
                throttle(bytes.count, now)
                return true
            }
            dropped += Int64(bytes.count - taken)
            // The worker leaves the stream after the turn: an error here would cost HTTP/2's other streams theirs.
            isCut = isHTTP2
            guard !isCut else { return true }
            outcome = .success
        } catch {
            outcome = .failure(error)
        }
        return false
    }

    // MARK: What the worker decides

    /// Tells the delegate, once, that the transfer is about to be sent; throws where the delegate will not have it sent.
    func announce() throws(CacheError) {
        guard !isAnnounced else { return }
        isAnnounced = true
        try transfer.delegate.started()
    }

    /// Hands over what the last turn gathered; false where the sink failed and the transfer is to be ended.
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

    func cancelled(_ error: CacheError) { if outcome == nil { outcome = .failure(error) } }

    func timedOut(_ timeout: CacheError.Timeout) {
        guard outcome == nil, timeout == .total || !isDraining else { return }
        outcome = .failure(.upstreamTimedOut(timeout, host: place, after: transfer.request.timeouts))
    }

    /// Takes the end of the present hop; nil where a redirect leads on, and the handle is to be set up again.
    func finished(_ code: CURLcode) -> TransferEnd? {
        if needsFreshConnection, !hasOpenedSocket, outcome == nil, code == CURLE_ABORTED_BY_CALLBACK { return nil }
        clock.note(easy)
        countConnection()
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
            // Every wanted byte is here: how the rest went is nobody's concern.
            if writer.isSatisfied, outcome == nil || isTransportFailure { outcome = .success }
        }
        return TransferEnd(
            error: error(code), storedBytes: stored, droppedBytes: dropped, timings: clock.timings(at: .now))
    }
}

extension CurlExchange {
    private var isDraining: Bool {
        switch body {
        case .unwanted, .redirected: true
        case .awaited, .stored: false
        }
    }

    private var isTransportFailure: Bool {
        if case .failure(let error) = outcome, case .upstreamTimedOut = error.code { true } else { false }
    }

    private var forbiddenError: CacheError {
        CacheError(
            .upstreamForbidden,
            "\(url.host) is at a \(forbidden ?? "refused") address, which is not allowed (see allowPrivateAddresses)."
        )
    }

    private func error(_ code: CURLcode) -> CacheError? {
        switch outcome {
        case .success: return nil
        case .failure(let error): return error
        case nil: break
        }
        if code == CURLE_OK {
            guard case .awaited = body else { return nil }
            return CacheError(.upstreamProtocol, "\(place) ended without a response.")
        }
        if code == CURLE_COULDNT_CONNECT, forbidden != nil { return forbiddenError }
        var system = 0
        larder_easy_get_long(easy, CURLINFO_OS_ERRNO, &system)
        if code == CURLE_COULDNT_CONNECT, socketError != 0 { system = Int(socketError) }
        var verification = 0
        larder_easy_get_long(easy, CURLINFO_SSL_VERIFYRESULT, &verification)
        return CurlError(code: code, systemError: Int32(truncatingIfNeeded: system), verification: verification)
            .cacheError(host: place, isConnected: timers.isConnected)
    }

    private func judgeHead(_ now: ContinuousClock.Instant) -> Bool {
        if let location = redirectTarget {
            body = .redirected(to: location)
        } else if hasUntoldEnd {
            outcome = .failure(
                CacheError(.upstreamProtocol, "\(place) sent a body over TLS without saying how long it is."))
            body = .unwanted
        } else {
            switch transfer.delegate.began(head()) {
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
        }
        timers.drains(at: now)
        let hasBody = transfer.request.method == .get && collector.status != 304 && collector.status != 204
        let length = collector.headers["Content-Length"].flatMap { Int64($0) }
        return !hasBody || (length ?? Self.drainBytes) <= Self.drainBytes
    }
}
