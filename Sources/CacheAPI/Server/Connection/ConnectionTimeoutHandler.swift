import CacheCore
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS

/// Channel handler for the life of one connection: time-outs, client disconnects, error responses, graceful shutdown.
///
/// It stands after the HTTP decoder and before the handlers of both paths:
/// - It sends a problem document for a request that cannot be parsed or that arrives too late, then closes.
/// - It closes connections that are idle, and connections with a client that accepts no response bytes.
/// - It reports a disconnected client to ``DisconnectSignal`` and to the handlers behind it.
/// - It delays the quiescing event (graceful shutdown) until every request is answered and sent. A new connection may send
///   its first request: the client could not know of the shutdown.
///
/// One timer (`alarm`) serves all time-outs. When it fires, ``timerFired(_:)`` decides again from the current state, so
/// most state changes need not reschedule it.
final class ConnectionTimeoutHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Event for the handlers behind: the client closed its sending side and is presumed gone.
    struct ClientDisconnected: Sendable {}

    private let presence: DisconnectSignal
    private var context: ChannelHandlerContext?
    private let regularHeaderTimeout: TimeAmount
    private let idleTimeout: TimeAmount
    private let writeTimeout: TimeAmount
    private let halfClosedTimeout: TimeAmount
    /// Nil if the connection limit is reached; the connection then gets 503 at once.
    private let permit: ConnectionPermits.Permit?
    private let connections: ConnectionPermits
    private let makeRequestID: @Sendable () -> String
    private let client: ConnectionClient?
    private let addresses: AddressLimiter?
    /// Whether a PROXY header will state the address of the client.
    private let awaitsAddress: Bool
    /// The connection as its address counts it.
    private var claim: AddressLimiter.Claim?
    /// The time until which the client must send more of a request, and the error that it gets otherwise. Nil while no
    /// request bytes are expected.
    private var deadline: (end: NIODeadline, error: CacheError)?
    /// The bytes of the request body that have arrived in the current window of ``bodyWindow``.
    private var windowBytes = 0
    /// The time of the last read, or of the last response that was sent completely.
    private var lastActivity = NIODeadline.distantPast
    /// The scheduled call of ``timerFired(_:)``.
    private var alarm: (time: NIODeadline, task: Scheduled<Void>)?
    /// Set after the client closed its sending side: the scheduled report that it is gone.
    private var leave: Scheduled<Void>?
    /// Requests with a received head and no completely written response.
    private var unanswered = 0
    /// Responses that are written to the channel and not sent completely.
    private var unsent = 0
    /// The state of the outbound buffer when it last changed, with the write count and the time of the observation.
    private var waiting: (bytes: Int, writes: Int, since: NIODeadline)?
    /// Writes on this connection, to detect progress.
    private var writes = 0
    /// Set if a quiescing event was held back.
    private var isQuiescing = false
    /// Whether a response that bypasses this handler is being sent.
    private var isBypassed = false
    /// Whether the event "input closed" was held back. The router, which does not know of a response that bypasses it,
    /// would close the connection.
    private var isInputEndHeld = false
    /// Whether the newest request is not received completely.
    private var isReading = false
    /// Whether the head of the oldest response is written and its end is not.
    private var isAnswering = false
    /// Set by an error: no further request is read.
    private var isOver = false
    /// Whether a request has arrived.
    private var hasBegun = false
    /// Whether the TLS handshake is complete.
    private var isEncrypted = false
    /// Set when the error response is written: later writes fail.
    private var isRefused = false
    /// An error response that waits until `owed` more responses are written.
    private var pending: (error: CacheError, owed: Int)?

    init(
        presence: DisconnectSignal, limits: APISettings.Limits, connections: ConnectionPermits,
        permit: ConnectionPermits.Permit?, client: ConnectionClient? = nil, addresses: AddressLimiter? = nil,
        awaitsAddress: Bool = false, makeRequestID: @escaping @Sendable () -> String
    ) {
        self.presence = presence
        self.client = client
        self.addresses = addresses
        self.awaitsAddress = awaitsAddress
        self.permit = permit
        regularHeaderTimeout = TimeAmount(limits.headerTimeout)
        idleTimeout = TimeAmount(limits.idleTimeout)
        writeTimeout = TimeAmount(limits.writeTimeout)
        halfClosedTimeout = TimeAmount(limits.halfClosedTimeout)
        self.connections = connections
        self.makeRequestID = makeRequestID
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        restartIdleTime()
        expectRequest(context)
    }

    func channelActive(context: ChannelHandlerContext) {
        if permit == nil { refuse(ConnectionPermits.refusal, context) }
        if !awaitsAddress { countConnection(context) }
        context.fireChannelActive()
    }

    /// Counts the connection by the address of the client. Connections of trusted proxies carry those of many clients and
    /// are not limited.
    private func countConnection(_ context: ChannelHandlerContext) {
        guard let client, let addresses, !client.isTrusted else { return }
        do throws(CacheError) {
            claim = try addresses.claim(.connections, by: client.address)
        } catch {
            refuse(error, context)
        }
    }

    /// Counts a request by the address of the client. Throws `.rateLimited` above the limit, which health checks have not.
    private func countRequest(_ head: HTTPRequestHead) throws(CacheError) {
        guard let addresses, addresses.limitsRequests, !ConnectionPermits.isHealthCheck(head.uri) else { return }
        let client = try client?.client { head.headers[$0] }
        try addresses.countRequest(by: client?.limitedAddress)
    }

    /// Ends the connection, because another one has taken over its permit: with 503 if it has sent no request, otherwise
    /// without a response, so that the client can repeat a request that has not arrived.
    func displace() {
        guard let context, !isOver else { return }
        guard hasBegun else { return refuse(ConnectionPermits.refusal, context) }
        isOver = true
        close(context)
    }

    // MARK: Requests answered by `PreparedResponseSender`, which bypass this handler

    /// Whether a response may bypass this handler: no request in progress, no half-closed client, no error, no shutdown,
    /// and no limit on the requests of an address.
    var isIdle: Bool {
        unanswered == 0 && unsent == 0 && leave == nil && !isOver && !isQuiescing
            && addresses?.limitsRequests != true
    }

    /// Makes the permit busy with a request. Returns false if the permit does not cover it.
    func begin(_ target: String) -> Bool {
        hasBegun = true
        return permit?.begin(isHealthCheck: ConnectionPermits.isHealthCheck(target)) ?? false
    }

    /// Counts a complete request whose response will pass this handler.
    func countBypassingRequest() {
        deadline = nil
        restartIdleTime()
        unanswered += 1
    }

    /// Counts a complete request together with its response, until ``endBypass()``.
    func beginBypass() {
        deadline = nil
        restartIdleTime()
        isBypassed = true
        unsent += 1
        writes += 1
    }

    /// Reports that the response of ``beginBypass()`` was sent, or that sending it failed.
    func endBypass() {
        isBypassed = false
        guard let context else { return }
        answered(context)
        guard isInputEndHeld else { return }
        isInputEndHeld = false
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    // MARK: Timer

    private func restartIdleTime() { if let context { lastActivity = context.eventLoop.now } }

    /// The time limit for a request; at most 5 s with a reserved permit.
    private var headerTimeout: TimeAmount {
        permit?.isReserved ?? true ? min(regularHeaderTimeout, .seconds(5)) : regularHeaderTimeout
    }

    /// The interval in which the rate of a request body is measured: 10 s, or `headerTimeout` if that is shorter.
    private var bodyWindow: TimeAmount { min(headerTimeout, .seconds(10)) }

    /// Starts a window in which a body must end, or arrive with `bodyBytesPerSecond`.
    private func expectBody(_ context: ChannelHandlerContext) {
        windowBytes = 0
        let end = context.eventLoop.now + bodyWindow
        deadline = (end, CacheError(.requestTimedOut, "The request's body did not arrive in time."))
        wake(at: end, context)
    }

    /// The minimum rate of a request body.
    private static let bodyBytesPerSecond: Int64 = 16 << 10

    /// Whether the body has the minimum rate. It may have none while an earlier response of the connection is not
    /// complete, because its bytes are not read before.
    private var isBodyInTime: Bool {
        unanswered > 1 || Int64(windowBytes) >= bodyWindow.nanoseconds / 1_000_000 * Self.bodyBytesPerSecond / 1000
    }

    /// Starts the deadline for the next request head. A connection with a reserved permit gets 503 at the deadline,
    /// others get 408.
    private func expectRequest(_ context: ChannelHandlerContext) {
        let end = context.eventLoop.now + headerTimeout
        let late = CacheError(.requestTimedOut, "No request arrived in time.")
        deadline = (end, permit?.isReserved ?? true ? ConnectionPermits.refusal : late)
        wake(at: end, context)
    }

    /// Whether a completely received request has no response, or a response is not sent completely.
    private var isBusy: Bool { unanswered > (isReading ? 1 : 0) || unsent > 0 }

    /// Schedules the timer for `time`, unless it fires earlier anyway.
    private func wake(at time: NIODeadline, _ context: ChannelHandlerContext) {
        if let alarm, alarm.time <= time { return }
        alarm?.task.cancel()
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let task = context.eventLoop.scheduleTask(deadline: time) { here.value.0.timerFired(here.value.1) }
        alarm = (time, task)
    }

    /// Checks, in this order, the deadline for request bytes, the progress of a response, and the idle time.
    private func timerFired(_ context: ChannelHandlerContext) {
        alarm = nil
        let now = context.eventLoop.now
        if let (end, error) = deadline {
            guard end <= now else { return wake(at: end, context) }
            deadline = nil
            if isReading, !isAnswering, isBodyInTime { return expectBody(context) }
            // A response may start before the request body is read. Backpressure then stops the body, and its deadline
            // must not abort the response.
            if !isReading || !isAnswering { return refuse(error, context) }
        }
        guard !isBusy else { return checkClient(context) }
        waiting = nil
        guard lastActivity + idleTimeout <= now else { return wake(at: lastActivity + idleTimeout, context) }
        context.close(promise: nil)
    }

    /// Closes the connection if the outbound buffer has not changed for `writeTimeout`: the client accepts no bytes. An
    /// empty buffer is no sign of a stalled client, because then the response itself is waiting for bytes.
    ///
    /// The check runs once per `writeTimeout`, so a stalled client is disconnected after one to two times that time.
    private func checkClient(_ context: ChannelHandlerContext) {
        let bytes = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        let isSame = waiting.map { ($0.bytes, $0.writes) == (bytes, writes) } ?? false
        let now = context.eventLoop.now
        if !isSame || bytes == 0 { waiting = (bytes, writes, now) }
        let end = (waiting?.since ?? now) + writeTimeout
        guard end <= now else { return wake(at: end, context) }
        context.close(promise: nil)
    }

    /// Schedules the report that a half-closed client is gone. Each write restarts the time.
    ///
    /// 1. A write to a client that has closed the connection completely is answered with a TCP reset, which ends it.
    /// 2. While bytes wait in the outbound buffer, the outcome is open, and the time starts again.
    /// 3. If nothing was written for `halfClosedTimeout`, the client is presumed gone.
    private func awaitLeave(_ context: ChannelHandlerContext) {
        leave?.cancel()
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        leave = context.eventLoop.scheduleTask(in: halfClosedTimeout) {
            let (watch, context) = here.value
            guard context.channel.isWritable else { return watch.awaitLeave(context) }
            watch.presence.left()
            context.fireUserInboundEventTriggered(ClientDisconnected())
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        cancelAll()
        self.context = nil
    }

    /// Cancels both scheduled tasks.
    private func cancelAll() {
        alarm?.task.cancel()
        leave?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        restartIdleTime()
        switch unwrapInboundIn(data) {
        case .head(let head):
            isReading = true
            unanswered += 1
            guard begin(head.uri) else { return refuse(ConnectionPermits.refusal, context) }
            do throws(CacheError) { try countRequest(head) } catch { return refuse(error, context) }
            expectBody(context)
        case .body(let part): windowBytes += part.readableBytes
        case .end:
            isReading = false
            deadline = nil
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isRefused else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        writes += 1
        if leave != nil { awaitLeave(context) }
        switch unwrapOutboundIn(data) {
        case .head:
            isAnswering = true
            context.write(data, promise: promise)
        case .body: context.write(data, promise: promise)
        case .end:
            unsent += 1
            let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            let sent = promise ?? context.eventLoop.makePromise()
            sent.futureResult.whenComplete { _ in here.value.0.answered(here.value.1) }
            // Counted before the write, which can complete within the call.
            unanswered = max(0, unanswered - 1)
            isAnswering = false
            context.write(data, promise: sent)
            guard let (error, owed) = pending else { return }
            if owed > 1 { pending = (error, owed - 1) } else { answer(error, context) }
        }
    }

    /// The time of a new connection for its first request after a shutdown has begun.
    private static let lastChance = TimeAmount.seconds(1)

    /// Releases the held quiescing event of a connection without a request.
    private func quiesceIfUnused(_ context: ChannelHandlerContext) {
        guard isQuiescing, !hasBegun else { return }
        isQuiescing = false
        context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    /// Counts a response as sent, or as failed. Starts the idle time and releases a held quiescing event when no
    /// response is left.
    private func answered(_ context: ChannelHandlerContext) {
        unsent -= 1
        restartIdleTime()
        if unanswered == 0, unsent == 0 { permit?.rest() }
        guard !isBusy else { return }
        wake(at: lastActivity + idleTimeout, context)
        guard isQuiescing, !isReading else { return }
        isQuiescing = false
        context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is RequestDecoder.BytesReceived {
            // First bytes of a further request. The time of the first request started with the connection.
            if !isOver, unanswered == 0, deadline == nil { expectRequest(context) }
            return
        }
        if event is ProxyHeaderHandler.Completed { return countConnection(context) }
        if case .handshakeCompleted? = event as? TLSUserEvent { isEncrypted = true }
        if event is ChannelShouldQuiesceEvent {
            if isBusy || isReading {
                isQuiescing = true
                return
            }
            if !hasBegun, !isOver {
                isQuiescing = true
                let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
                context.eventLoop.scheduleTask(in: Self.lastChance) { here.value.0.quiesceIfUnused(here.value.1) }
                return
            }
        }
        if case .inputClosed? = event as? ChannelEvent {
            // Without the rest of its body the request is incomplete, and nothing else is owed (RFC 9112 §8).
            let isIncomplete = isReading && !isBusy && !isAnswering
            if isBusy || isAnswering { awaitLeave(context) } else { presence.left() }
            if isBypassed {
                isInputEndHeld = true
                return
            }
            context.fireUserInboundEventTriggered(event)
            if isIncomplete { context.fireUserInboundEventTriggered(ClientDisconnected()) }
            return
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        cancelAll()
        claim?.giveBack()
        presence.left()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? CacheError { return refuse(error, context) }
        guard let error = error as? HTTPParserError else { return context.fireErrorCaught(error) }
        switch error {
        case .headerOverflow: refuse(CacheError(.headersTooLarge, "The request's header is too large."), context)
        default: refuse(CacheError(.malformedRequest, "The request is not valid HTTP/1.1: \(error)."), context)
        }
    }

    /// Ends the connection with an error response in place of the router's.
    ///
    /// 1. Completely received requests are answered first; `pending` holds the error until then.
    /// 2. If the response to the rejected request has started, the connection is closed without an error response,
    ///    because nothing can follow an incomplete response.
    /// 3. Otherwise the error response is sent at once.
    private func refuse(_ error: CacheError, _ context: ChannelHandlerContext) {
        guard !isOver else { return }
        isOver = true
        deadline = nil
        if error.code == .overloaded { connections.countRefusal() }
        let owed = unanswered - (isReading ? 1 : 0)
        if owed > 0 {
            pending = (error, owed)
        } else if isAnswering {
            context.close(promise: nil)
        } else {
            answer(error, context)
        }
    }

    /// Writes the error response, then closes. Closes without a response if the TLS handshake is not complete.
    private func answer(_ error: CacheError, _ context: ChannelHandlerContext) {
        isRefused = true
        guard canSend(context) else { return close(context) }
        Problem(error, instance: "", requestID: makeRequestID()).writeLast(to: context, within: headerTimeout)
    }

    /// Whether bytes can be sent: nothing can before the TLS handshake is complete.
    private func canSend(_ context: ChannelHandlerContext) -> Bool { isEncrypted || tls(context) == nil }

    /// Closes the connection; below TLS if its handshake is not complete.
    private func close(_ context: ChannelHandlerContext) {
        (isEncrypted ? context : tls(context) ?? context).close(promise: nil)
    }

    /// The context of the TLS handler; nil without TLS.
    private func tls(_ context: ChannelHandlerContext) -> ChannelHandlerContext? {
        try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)  // none: no TLS
    }
}

@available(*, unavailable)
extension ConnectionTimeoutHandler: Sendable {}
