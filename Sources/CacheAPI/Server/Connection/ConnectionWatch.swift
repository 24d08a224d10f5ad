import CacheCore
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS

/// Stands behind the HTTP decoder of one connection, in front of both roads to an answer: tells ``ClientPresence`` when
/// the client leaves, answers what cannot be parsed with a problem document, gives up on clients that never send a
/// request, or not all of it, or rest for too long, and holds the end of service back while something is unanswered.
final class ConnectionWatch: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Nobody seems to be at the connection's other end any more.
    struct Leave: Sendable {}

    private let presence: ClientPresence
    private var context: ChannelHandlerContext?
    private let headerTimeout: TimeAmount
    private let idleTimeout: TimeAmount
    private let sendTimeout: TimeAmount
    private let halfClosedTimeout: TimeAmount
    /// Nil if the connection gets 503 at once: too many are open.
    private let permit: ConnectionPermits.Permit?
    private let connections: ConnectionPermits
    private let makeRequestID: @Sendable () -> String
    /// Until when the client must have gone on, and what it is told then.
    private var patience: (end: NIODeadline, error: CacheError)?
    /// Until when what has come of a body may go on.
    private var bodyTime = NIODeadline.now()
    /// When something was last read, or sent to its end.
    private var lastActivity = NIODeadline.now()
    private var alarm: (time: NIODeadline, task: Scheduled<Void>)?
    /// Set once the client has closed its sending side: when it counts as gone.
    private var leave: Scheduled<Void>?
    /// The requests whose heads are read and whose answers are not written yet.
    private var unanswered = 0
    /// The answers that are written and have not left yet.
    private var unsent = 0
    /// What waited for the client at the last look, after so many writes, and when that was.
    private var waiting: (bytes: Int, writes: Int, since: NIODeadline)?
    private var writes = 0
    private var isQuiescing = false
    /// Whether the last unanswered request is still coming, and whether the first has its response's head.
    private var isReading = false
    private var isAnswering = false
    private var isOver = false
    /// Whether the TLS handshake is complete.
    private var isEncrypted = false
    /// Whether the last word is said: nothing is written after it.
    private var isRefused = false
    /// What is refused once `owed` more answers are written.
    private var pending: (error: CacheError, owed: Int)?

    init(
        presence: ClientPresence, limits: APISettings.Limits, connections: ConnectionPermits,
        permit: ConnectionPermits.Permit?, makeRequestID: @escaping @Sendable () -> String
    ) {
        self.presence = presence
        self.permit = permit
        let isRegular = permit.map { !$0.isReserved } ?? false
        headerTimeout = TimeAmount(isRegular ? limits.headerTimeout : min(limits.headerTimeout, .seconds(1)))
        idleTimeout = TimeAmount(limits.idleTimeout)
        sendTimeout = TimeAmount(limits.sendTimeout)
        halfClosedTimeout = TimeAmount(limits.halfClosedTimeout)
        self.connections = connections
        self.makeRequestID = makeRequestID
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        expectRequest(context)
    }

    func channelActive(context: ChannelHandlerContext) {
        if permit == nil { refuse(ConnectionPermits.refusal, context) }
        context.fireChannelActive()
    }

    /// Answers 503: another connection has taken the reserved permit over.
    func displace() { if let context { refuse(ConnectionPermits.refusal, context) } }

    /// Whether a request that comes now is the only one, and nothing stands against its answer.
    var isAtRest: Bool { unanswered == 0 && unsent == 0 && leave == nil && !isOver && !isQuiescing }

    /// A whole request has come that this handler does not see; it will see the answer.
    func isAskedInFront() {
        patience = nil
        lastActivity = .now()
        unanswered += 1
    }

    /// A whole request is answered in front of this handler.
    func answersInFront() {
        patience = nil
        lastActivity = .now()
        unsent += 1
        writes += 1
    }

    /// That answer has left, or cannot any more.
    func answeredInFront() { if let context { answered(context) } }

    /// Gives the client more time for each part of a body, so that it comes with a thousand bytes a second at least.
    private func expectBody(_ bytes: Int, _ context: ChannelHandlerContext) {
        bodyTime = bodyTime + .milliseconds(Int64(bytes))
        patience = (bodyTime, CacheError(.requestTimedOut, "The request's body did not arrive in time."))
        wake(at: bodyTime, context)
    }

    /// Gives the client the header's time to send a request.
    private func expectRequest(_ context: ChannelHandlerContext) {
        let end = NIODeadline.now() + headerTimeout
        let late = CacheError(.requestTimedOut, "No request arrived in time.")
        patience = (end, permit?.isReserved ?? true ? ConnectionPermits.refusal : late)
        wake(at: end, context)
    }

    /// Whether a whole request has no answer, or not all of it has left.
    private var isBusy: Bool { unanswered > (isReading ? 1 : 0) || unsent > 0 }

    private func wake(at time: NIODeadline, _ context: ChannelHandlerContext) {
        if let alarm, alarm.time <= time { return }
        alarm?.task.cancel()
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let task = context.eventLoop.scheduleTask(deadline: time) { here.value.0.rang(here.value.1) }
        alarm = (time, task)
    }

    private func rang(_ context: ChannelHandlerContext) {
        alarm = nil
        let now = NIODeadline.now()
        if let (end, error) = patience {
            guard end <= now else { return wake(at: end, context) }
            patience = nil
            // A body that nobody reads does not come; its running response is not cut for that.
            if !isReading || !isAnswering { return refuse(error, context) }
        }
        guard !isBusy else { return lookAtClient(context) }
        waiting = nil
        guard lastActivity + idleTimeout <= now else { return wake(at: lastActivity + idleTimeout, context) }
        context.close(promise: nil)
    }

    /// A running answer is cut only where its client takes nothing of what waits for it, from one look to the next.
    private func lookAtClient(_ context: ChannelHandlerContext) {
        let bytes = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        let isSame = waiting.map { ($0.bytes, $0.writes) == (bytes, writes) } ?? false
        if !isSame || bytes == 0 { waiting = (bytes, writes, .now()) }
        guard let since = waiting?.since, since + sendTimeout <= .now() else {
            return wake(at: (waiting?.since ?? .now()) + sendTimeout, context)
        }
        context.close(promise: nil)
    }

    /// Gives a client that closed its sending side until the time-out to be sent something. Where it has gone for good
    /// that is answered by a reset; with bytes under way there is nothing to decide yet.
    private func awaitLeave(_ context: ChannelHandlerContext) {
        leave?.cancel()
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        leave = context.eventLoop.scheduleTask(in: halfClosedTimeout) {
            let (watch, context) = here.value
            guard context.channel.isWritable else { return watch.awaitLeave(context) }
            watch.presence.left()
            context.fireUserInboundEventTriggered(Leave())
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        cancelAll()
        self.context = nil
    }

    private func cancelAll() {
        alarm?.task.cancel()
        leave?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        lastActivity = .now()
        switch unwrapInboundIn(data) {
        case .head(let head):
            isReading = true
            unanswered += 1
            guard admits(head) else { return refuse(ConnectionPermits.refusal, context) }
            bodyTime = .now() + headerTimeout
            expectBody(0, context)
        case .body(let part): expectBody(part.readableBytes, context)
        case .end:
            isReading = false
            patience = nil
        }
        context.fireChannelRead(data)
    }

    /// A reserved permit is for health checks alone, which must work when the service is overloaded.
    private func admits(_ head: HTTPRequestHead) -> Bool {
        guard let permit, permit.isReserved else { return true }
        return head.uri.hasPrefix("/health/") && permit.claim()
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
            context.write(data, promise: sent)
            unanswered = max(0, unanswered - 1)
            isAnswering = false
            guard let (error, owed) = pending else { return }
            if owed > 1 { pending = (error, owed - 1) } else { answer(error, context) }
        }
    }

    /// An answer has left, or cannot any more.
    private func answered(_ context: ChannelHandlerContext) {
        unsent -= 1
        lastActivity = .now()
        guard !isBusy else { return }
        wake(at: lastActivity + idleTimeout, context)
        guard isQuiescing, !isReading else { return }
        isQuiescing = false
        context.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is RequestDecoder.BytesReceived {
            // The beginning of another request's head; the first one's time runs from the connection's beginning.
            if !isOver, unanswered == 0, patience == nil { expectRequest(context) }
            return
        }
        if case .handshakeCompleted? = event as? TLSUserEvent { isEncrypted = true }
        if event is ChannelShouldQuiesceEvent, isBusy || isReading {
            isQuiescing = true
            return
        }
        if case .inputClosed? = event as? ChannelEvent {
            if isBusy || isReading { awaitLeave(context) } else { presence.left() }
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        cancelAll()
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

    /// Answers in place of the router, then closes. Requests that came whole get their answers before; where the
    /// refused one's own is under way, it is cut, since nothing can follow it.
    private func refuse(_ error: CacheError, _ context: ChannelHandlerContext) {
        guard !isOver else { return }
        isOver = true
        patience = nil
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

    private func answer(_ error: CacheError, _ context: ChannelHandlerContext) {
        isRefused = true
        let tls = try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)  // none: no TLS
        if let tls, !isEncrypted { return tls.close(promise: nil) }  // nothing can be sent before the handshake
        Problem(error, instance: "", requestID: makeRequestID()).writeLast(to: context, within: headerTimeout)
    }
}

@available(*, unavailable)
extension ConnectionWatch: Sendable {}
