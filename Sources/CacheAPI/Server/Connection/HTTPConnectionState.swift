import CacheCore
import DequeModule
import NIOCore
import NIOHTTP1

/// Pure state machine of one HTTP/1.1 connection: its phase, the request in progress, waiting input and deadlines.
///
/// ``HTTPConnectionHandler`` reports the events and performs the returned actions. One request is in progress at a time:
/// from its head until it is received completely and its response is sent. Later input waits.
struct HTTPConnectionState {
    /// The time limits of a connection.
    struct Timeouts {
        var idle: TimeAmount
        var write: TimeAmount
        var halfClosed: TimeAmount
    }

    /// Input of the connection, in the order of its arrival.
    enum Input {
        case part(HTTPServerRequestPart)
        /// The bytes after the last part are no valid request.
        case error(CacheError)
        /// The client has closed its sending side.
        case end
    }

    enum Phase: Equatable {
        /// No request has arrived. The first one must arrive until `end`.
        case awaitingFirst(end: NIODeadline)
        /// Between two requests.
        case idle
        /// Between two requests, until ``resume()``: the event loop serves other connections first.
        case paused
        /// Bytes of a further head have arrived; it must be complete until `end`.
        case readingHead(end: NIODeadline)
        case exchange(Exchange)
        /// A prepared response is being sent past the handlers. Its request was received completely.
        case bypassed
        /// The error response is being written, until `end`. All input is discarded.
        case refusing(end: NIODeadline)
        /// The last response was sent, and the output is closed. All input is discarded until the client closes its side.
        /// After a full close, bytes that it still sends would cause a reset, which can discard the response before the
        /// client has read it (RFC 9112 §9.6).
        case lingering
        /// The connection is closed, or is being closed. `cutsBody`: within a body that the end of the connection ends.
        case closed(cutsBody: Bool)
    }

    /// A request and its response.
    struct Exchange: Equatable {
        let framing: RequestFraming
        var request: Request
        var response = Response.owed

        /// Whether the server is at work: the response is not sent completely, and does not wait for the request.
        var isBusy: Bool { request == .complete || response.isWritten }
    }

    /// The progress of a request.
    enum Request: Equatable {
        /// The body is being received.
        case receiving(BodyWindow)
        case complete
    }

    /// The progress of a response.
    enum Response: Equatable {
        case owed
        /// The head is written, the end is not.
        case writing(ResponseFraming)
        /// The end is written, and not sent completely.
        case written(isLast: Bool)
        case sent

        var isWriting: Bool { if case .writing = self { true } else { false } }
        var isWritten: Bool { if case .written = self { true } else { false } }
    }

    /// The interval in which the rate of a request body is measured.
    struct BodyWindow: Equatable {
        var length: TimeAmount
        var end: NIODeadline
        /// The bytes that have arrived in the interval.
        var bytes = 0
        /// Whether each byte restarts the interval, so that it has no rate.
        private(set) var restarts = false

        /// The minimum rate of a request body.
        static let bytesPerSecond: Int64 = 16 << 10

        init(_ length: TimeAmount, at now: NIODeadline) {
            (self.length, end) = (length, now + length)
        }

        /// The interval of a body in lines, whose sender may compute them: 60 s without a byte.
        static func lines(at now: NIODeadline) -> BodyWindow {
            var window = BodyWindow(.seconds(60), at: now)
            window.restarts = true
            return window
        }

        mutating func arrived(_ count: Int, at now: NIODeadline) {
            bytes += count
            if restarts { end = now + length }
        }

        /// A request without a body: its end follows in the same read.
        static let none = BodyWindow()

        private init() { (length, end) = (.zero, .distantFuture) }

        var hasRate: Bool { !restarts && Int64(bytes) >= length.nanoseconds / 1_000_000 * Self.bytesPerSecond / 1000 }
    }

    /// The sending side of the client.
    private enum Client: Equatable {
        case open
        /// It was closed while a response was owed. At this time the client is presumed gone, unless it accepts bytes.
        case halfClosed(goneAt: NIODeadline)
        case gone
    }

    /// The outbound buffer when it last changed, with the write count and the time of the observation.
    private struct Observation {
        var bytes: Int
        var writes: Int
        var time: NIODeadline
    }

    private(set) var phase = Phase.awaitingFirst(end: .distantFuture)
    private let timeouts: Timeouts
    /// Input after the request in progress. While it is not empty, nothing is read.
    private var waiting = Deque<Input>()
    private var client = Client.open
    /// Whether a read was held back because of `waiting`.
    private var isReadHeld = false
    /// Whether the connection ends after the responses to the requests that have arrived.
    private var isQuiescing = false
    /// The time of the last read, or of the last response that was sent completely.
    private var lastActivity = NIODeadline.distantPast
    /// Writes on this connection, to detect progress.
    private var writes = 0
    /// Nil before the first observation of the current response.
    private var observation: Observation?
    /// Responses since the end of a read, or since the last pause.
    private var burst = 0
    private static let maxBurst = 16

    init(_ timeouts: Timeouts) { self.timeouts = timeouts }

    /// The connection is open: the first request must arrive within `limit`.
    mutating func start(at now: NIODeadline, within limit: TimeAmount) {
        (phase, lastActivity) = (.awaitingFirst(end: now + limit), now)
    }

    // MARK: Input

    /// Whether a request may bypass the handlers: nothing else happens on the connection, and it stays open.
    var isIdle: Bool {
        switch phase {
        case .awaitingFirst, .idle, .readingHead: waiting.isEmpty && client == .open && !isQuiescing
        case .paused, .exchange, .bypassed, .refusing, .lingering, .closed: false
        }
    }

    /// Whether the input is to be processed now. Otherwise it waits for ``next()``, or is discarded.
    mutating func receive(_ input: Input, at now: NIODeadline) -> Bool {
        guard accepts(input) else { return false }
        if case .part = input { lastActivity = now }
        if waiting.isEmpty, isDue(input) { return true }
        if case .end = input, client == .open { client = .halfClosed(goneAt: now + timeouts.halfClosed) }
        waiting.append(input)
        return false
    }

    /// Removes and returns the waiting input that is to be processed now.
    mutating func next() -> Input? {
        while let first = waiting.first, isDue(first) {
            waiting.removeFirst()
            if accepts(first) { return first }
        }
        return nil
    }

    /// Whether the input is part of the request in progress, or nothing is in progress.
    private func isDue(_ input: Input) -> Bool {
        switch phase {
        case .awaitingFirst, .idle, .readingHead, .refusing, .lingering, .closed: return true
        case .paused, .bypassed: return false
        case .exchange(let exchange):
            guard exchange.request != .complete else { return false }
            // The response to an incomplete request is sent before the connection ends.
            if case .part = input { return true }
            return !exchange.response.isWritten && !(exchange.response.isWriting && input.isEnd)
        }
    }

    /// Whether the input is used. After the last request only the end of the client's side is.
    private func accepts(_ input: Input) -> Bool {
        switch phase {
        case .refusing, .lingering, .closed: input.isEnd
        case .exchange(let exchange): input.isEnd || exchange.request != .complete || !exchange.framing.isLast
        case .awaitingFirst, .idle, .paused, .readingHead, .bypassed: true
        }
    }

    /// Whether the socket may be read. A read that is held back is due when ``releasesRead()`` says so.
    mutating func mayRead() -> Bool {
        isReadHeld = !waiting.isEmpty
        return !isReadHeld
    }

    /// Whether a read was held back and is due.
    mutating func releasesRead() -> Bool {
        guard isReadHeld, waiting.isEmpty else { return false }
        isReadHeld = false
        return true
    }

    // MARK: Requests

    /// Bytes of a request have arrived. The time for the first one has started with the connection.
    mutating func bytesArrived(at now: NIODeadline, within limit: @autoclosure () -> TimeAmount) -> Bool {
        guard phase == .idle else { return false }
        phase = .readingHead(end: now + limit())
        return true
    }

    /// The head of a request begins an exchange.
    mutating func begin(_ framing: RequestFraming, _ body: BodyWindow) {
        phase = .exchange(Exchange(framing: framing, request: .receiving(body)))
    }

    /// Whether the body of the request in progress has not begun to arrive.
    var awaitsBody: Bool { waiting.isEmpty }

    mutating func bodyArrived(_ bytes: Int, at now: NIODeadline) {
        guard case .exchange(var exchange) = phase, case .receiving(var window) = exchange.request else { return }
        window.arrived(bytes, at: now)
        exchange.request = .receiving(window)
        phase = .exchange(exchange)
    }

    /// The request is received completely.
    mutating func requestEnded() -> Completion {
        guard case .exchange(var exchange) = phase else { return .none }
        exchange.request = .complete
        return enter(exchange)
    }

    /// A complete request whose response passes the handlers, although the request did not.
    mutating func beginComplete(at now: NIODeadline) {
        lastActivity = now
        phase = .exchange(Exchange(framing: .persistent, request: .complete))
    }

    /// A complete request together with its response, until ``endBypass(at:)``.
    mutating func beginBypass(at now: NIODeadline) {
        lastActivity = now
        writes += 1
        phase = .bypassed
    }

    /// The response of ``beginBypass(at:)`` was sent, or sending it failed.
    mutating func endBypass(at now: NIODeadline) -> Completion {
        guard phase == .bypassed else { return .none }
        lastActivity = now
        return end()
    }

    /// The client has closed its sending side, and no response is due to it. Returns whether its request is incomplete:
    /// nothing else is owed then (RFC 9112 §8).
    mutating func clientEnded() -> Bool {
        client = .gone
        guard case .exchange(let exchange) = phase else { return false }
        return exchange.response == .owed
    }

    // MARK: Responses

    /// The framing of a response whose head is to be written. Nil: there is no request without a response.
    ///
    /// - Parameters:
    ///   - isUnbounded: Whether the response may have a body and states no length.
    ///   - isLast: Whether the response ends the connection.
    mutating func beginResponse(
        isUnbounded: Bool, isLast: Bool, at now: @autoclosure () -> NIODeadline
    ) -> ResponseFraming? {
        guard case .exchange(var exchange) = phase, exchange.response == .owed else { return nil }
        // After a shutdown the client learns that it needs another connection for its next request.
        let isLastOfShutdown = isQuiescing && exchange.request == .complete && !isRequestWaiting
        let framing = exchange.framing.response(isUnbounded: isUnbounded, isLast: isLast || isLastOfShutdown)
        exchange.response = .writing(framing)
        phase = .exchange(exchange)
        wrote(at: now())
        return framing
    }

    /// A part of the body is to be written. False: no response is being written.
    mutating func mayWrite(at now: @autoclosure () -> NIODeadline) -> Bool {
        guard case .exchange(let exchange) = phase, exchange.response.isWriting else { return false }
        wrote(at: now())
        return true
    }

    /// The framing of the response whose end is to be written. Nil: no response is being written.
    mutating func endResponse(at now: @autoclosure () -> NIODeadline) -> ResponseFraming? {
        guard case .exchange(var exchange) = phase, case .writing(let framing) = exchange.response else { return nil }
        exchange.response = .written(isLast: framing.isLast)
        phase = .exchange(exchange)
        wrote(at: now())
        return framing
    }

    /// The response was sent completely, or sending it failed.
    mutating func responseSent(at now: NIODeadline) -> Completion {
        guard case .exchange(var exchange) = phase, case .written(let isLast) = exchange.response else { return .none }
        lastActivity = now
        guard !isLast else { return endLast() }
        exchange.response = .sent
        return enter(exchange)
    }

    private mutating func wrote(at now: @autoclosure () -> NIODeadline) {
        writes += 1
        if case .halfClosed = client { client = .halfClosed(goneAt: now() + timeouts.halfClosed) }
    }

    /// The effect of a completed request or response.
    enum Completion: Equatable {
        /// The exchange, or the wait for the end of the connection, goes on.
        case none
        /// ``next()`` may return input. Without any, the connection is idle.
        case ready
        /// ``resume()`` must be called in a later turn of the event loop.
        case pause
        /// The last response was sent: the output must be closed. ``next()`` may return input.
        case closeOutput
        /// The connection must be closed.
        case close
    }

    private mutating func enter(_ exchange: Exchange) -> Completion {
        phase = .exchange(exchange)
        guard exchange.response == .sent else { return .none }
        return exchange.request == .complete ? end() : .ready
    }

    /// Ends the last exchange.
    private mutating func endLast() -> Completion {
        phase = isQuiescing ? .closed(cutsBody: false) : .lingering
        return isQuiescing ? .close : .closeOutput
    }

    /// Ends an exchange. Responses that are sent at once end within the call that delivers their request: a client that
    /// pipelines requests and reads fast would otherwise keep the event loop.
    private mutating func end() -> Completion {
        observation = nil
        burst += 1
        guard burst == Self.maxBurst else { return rest() }
        (burst, phase) = (0, .paused)
        return .pause
    }

    /// The bytes of a read were processed: the event loop serves other connections now.
    mutating func readEnded() { burst = 0 }

    /// Continues after a pause.
    mutating func resume() -> Completion { phase == .paused ? rest() : .none }

    private mutating func rest() -> Completion {
        if isQuiescing, !isRequestWaiting {
            phase = .closed(cutsBody: false)
            return .close
        }
        phase = .idle
        return .ready
    }

    private var isRequestWaiting: Bool { if case .part? = waiting.first { true } else { false } }

    // MARK: End of the connection

    /// The time in which a new connection may send its first request after a shutdown has begun.
    static let lastChance = TimeAmount.seconds(1)

    /// The listener is shut down: the connection ends after its responses. A new connection may send its first request:
    /// the client could not know of the shutdown. Returns whether the connection must be closed now.
    mutating func quiesce(at now: NIODeadline) -> Bool {
        switch phase {
        case .idle, .readingHead, .lingering:
            close()
            return true
        case .awaitingFirst(let end): phase = .awaitingFirst(end: min(end, now + Self.lastChance))
        case .paused, .exchange, .bypassed: break
        case .refusing, .closed: return false
        }
        isQuiescing = true
        return false
    }

    /// The way to end the connection after an error.
    enum Refusal: Equatable {
        /// The error response is to be written, without its body to HEAD.
        case answer(isHead: Bool)
        /// Nothing can follow the response that has begun: the connection must be closed.
        case close
        /// The connection ends already.
        case none
    }

    /// Ends the connection with an error response, which must be sent within `limit`, or without a response.
    mutating func refuse(at now: NIODeadline, within limit: TimeAmount) -> Refusal {
        var isHead = false
        switch phase {
        case .awaitingFirst, .idle, .paused, .readingHead: break
        case .exchange(let exchange) where exchange.response == .owed: isHead = exchange.framing.isHead
        case .exchange, .bypassed:
            close()
            return .close
        case .refusing, .lingering, .closed: return .none
        }
        phase = .refusing(end: now + limit)
        return .answer(isHead: isHead)
    }

    /// Another connection has taken over the permit: an unused connection gets an error response, others none, so that
    /// the client can repeat a request that has not arrived.
    mutating func displace(at now: NIODeadline, within limit: TimeAmount) -> Refusal {
        switch phase {
        case .awaitingFirst: return refuse(at: now, within: limit)
        case .refusing, .closed: return .none
        case .idle, .paused, .readingHead, .exchange, .bypassed, .lingering:
            close()
            return .close
        }
    }

    /// The channel is inactive.
    mutating func ended() {
        (phase, client, waiting) = (.closed(cutsBody: false), .gone, [])
    }

    /// Whether a close would cut a body that the end of the connection ends: it must be a reset, because an orderly close
    /// would make the body look complete.
    var cutsBody: Bool {
        switch phase {
        case .exchange(let exchange):
            if case .writing(let framing) = exchange.response { framing.end == .connection } else { false }
        case .closed(let cutsBody): cutsBody
        case .awaitingFirst, .idle, .paused, .readingHead, .bypassed, .refusing, .lingering: false
        }
    }

    private mutating func close() { phase = .closed(cutsBody: cutsBody) }
}

extension HTTPConnectionState.Input {
    fileprivate var isEnd: Bool { if case .end = self { true } else { false } }
}

// MARK: Deadlines

extension HTTPConnectionState {
    /// The state of the outbound buffer.
    struct Outbound {
        var bytes: Int
        var isWritable: Bool
    }

    /// The effect of a deadline.
    enum Expiry: Equatable {
        /// ``check`` is the next deadline.
        case wait
        /// No request has arrived in time.
        case headIsLate
        /// The body of the request has not arrived in time.
        case bodyIsLate
        /// The client is presumed gone.
        case clientIsGone
        /// The connection must be closed.
        case close
    }

    /// The time of the next deadline, at which ``expire(at:_:)`` must be called; never if the connection is closed.
    var check: NIODeadline {
        let next: NIODeadline
        switch phase {
        case .awaitingFirst(let end), .readingHead(let end), .refusing(let end): next = end
        case .idle, .paused, .lingering: next = lastActivity + timeouts.idle
        case .bypassed: next = writeEnd
        case .exchange(let exchange): next = end(of: exchange)
        case .closed: return .distantFuture
        }
        guard case .halfClosed(let goneAt) = client else { return next }
        return min(next, goneAt)
    }

    private func end(of exchange: Exchange) -> NIODeadline {
        guard case .receiving(let window) = exchange.request else { return writeEnd }
        return switch exchange.response {
        case .owed, .sent: window.end
        case .writing: lastActivity + timeouts.idle
        case .written: writeEnd
        }
    }

    /// The time for the next comparison of the outbound buffer.
    private var writeEnd: NIODeadline { (observation?.time ?? lastActivity) + timeouts.write }

    /// Decides about the deadlines that have passed.
    mutating func expire(at now: NIODeadline, _ outbound: @autoclosure () -> Outbound) -> Expiry {
        if case .halfClosed(let goneAt) = client, goneAt <= now { return expireClient(at: now, outbound()) }
        switch phase {
        case .awaitingFirst(let end), .readingHead(let end):
            guard end <= now else { return .wait }
            return isQuiescing ? expireNow() : .headIsLate
        case .refusing(let end): return end <= now ? expireNow() : .wait
        case .idle, .paused, .lingering: return expireIdleTime(at: now)
        case .bypassed: return expireWrite(at: now, outbound())
        case .exchange(let exchange): return expire(exchange, at: now, outbound())
        case .closed: return .wait
        }
    }

    private mutating func expire(
        _ exchange: Exchange, at now: NIODeadline, _ outbound: @autoclosure () -> Outbound
    ) -> Expiry {
        guard !exchange.isBusy, case .receiving(let window) = exchange.request else {
            return expireWrite(at: now, outbound())
        }
        // A response may start before the request body is read. Backpressure then stops the body, and its deadline must
        // not abort the response.
        guard !exchange.response.isWriting else { return expireIdleTime(at: now) }
        guard window.end <= now else { return .wait }
        if window.hasRate {
            var exchange = exchange
            exchange.request = .receiving(BodyWindow(window.length, at: now))
            phase = .exchange(exchange)
            return .wait
        }
        return exchange.response == .owed ? .bodyIsLate : expireNow()
    }

    /// 1. A write to a client that has closed the connection completely is answered with a TCP reset, which ends it.
    /// 2. While bytes wait in the outbound buffer, the outcome is open, and the time starts again.
    /// 3. If nothing was written for `halfClosed`, the client is presumed gone.
    private mutating func expireClient(at now: NIODeadline, _ outbound: Outbound) -> Expiry {
        guard outbound.isWritable else {
            client = .halfClosed(goneAt: now + timeouts.halfClosed)
            return .wait
        }
        client = .gone
        return .clientIsGone
    }

    private mutating func expireIdleTime(at now: NIODeadline) -> Expiry {
        lastActivity + timeouts.idle <= now ? expireNow() : .wait
    }

    /// Closes the connection if the outbound buffer has not changed for `write`: the client accepts no bytes. An empty
    /// buffer is no sign of a stalled client, because then the response itself is waiting for bytes.
    ///
    /// The comparison runs once per `write`, so a stalled client is disconnected after one to two times that time.
    private mutating func expireWrite(at now: NIODeadline, _ outbound: Outbound) -> Expiry {
        if let observation, outbound.bytes > 0, observation.bytes == outbound.bytes, observation.writes == writes {
            return observation.time + timeouts.write <= now ? expireNow() : .wait
        }
        observation = Observation(bytes: outbound.bytes, writes: writes, time: now)
        return .wait
    }

    private mutating func expireNow() -> Expiry {
        close()
        return .close
    }
}
