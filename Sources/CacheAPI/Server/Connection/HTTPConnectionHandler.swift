import CacheCore
import Glibc
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS

/// Channel handler of one connection: performs the decisions of ``HTTPConnectionState``.
///
/// It stands after the HTTP decoder and before the handlers of both paths:
/// - It passes on one request at a time, and holds back pipelined ones and the socket's reads meanwhile.
/// - It adapts each response to the HTTP version of its request, and sets exactly one `Date` (RFC 9110 §6.6.1).
/// - It sends `100 (Continue)` if the client waits for it (RFC 9110 §10.1.1).
/// - It sends a problem document for a request that is invalid or arrives too late, then closes.
/// - It closes connections that are idle, and connections with a client that accepts no response bytes.
/// - It lets other connections have the event loop after some responses to pipelined requests.
/// - It opens the event of a disconnected client, and reports it to the handlers behind it. A client that closed its
///   sending side may still wait for its response (a half-closed connection). TCP does not distinguish that from a
///   closed connection until something is written. Such a client counts as disconnected when nothing could be written
///   to it for `halfClosedTimeout`.
/// - It closes the connection after the last response, or when every request is answered after the shutdown of the
///   listener.
///
/// One timer (`alarm`) serves all deadlines. It may fire early, so most state changes need not reschedule it.
final class HTTPConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Event for the handlers behind: the client closed its sending side and is presumed gone.
    struct ClientDisconnected: Sendable {}

    /// Opens when the client has disconnected.
    private let disconnection: AsyncEvent
    private let wallClock: any WallClock
    private let limits: APISettings.Limits
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
    /// Nil before the handler is added and after it is removed.
    private var context: ChannelHandlerContext?
    private var state: HTTPConnectionState
    /// The scheduled call of ``timerFired(_:)``.
    private var alarm: (time: NIODeadline, task: Scheduled<Void>)?
    /// Whether a part of a request has arrived since the last end of a read. Otherwise later handlers do not hear of it: the
    /// requests got prepared responses.
    private var hasReceived = false
    /// Prevents recursion of ``deliverNext(_:)`` through a response that is sent at once.
    private var isDelivering = false
    /// Whether the TLS handshake is complete.
    private var isEncrypted = false

    init(
        disconnection: AsyncEvent, wallClock: any WallClock, limits: APISettings.Limits,
        connections: ConnectionPermits, permit: ConnectionPermits.Permit?, client: ConnectionClient? = nil,
        addresses: AddressLimiter? = nil, awaitsAddress: Bool = false, makeRequestID: @escaping @Sendable () -> String
    ) {
        self.disconnection = disconnection
        self.wallClock = wallClock
        self.limits = limits
        self.client = client
        self.addresses = addresses
        self.awaitsAddress = awaitsAddress
        self.permit = permit
        self.connections = connections
        self.makeRequestID = makeRequestID
        state = HTTPConnectionState(
            HTTPConnectionState.Timeouts(
                idle: TimeAmount(limits.idleTimeout), write: TimeAmount(limits.writeTimeout),
                halfClosed: TimeAmount(limits.halfClosedTimeout)))
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        state.start(at: context.eventLoop.now, within: headerTimeout)
        arm(context)
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
    private func countRequest(_ head: HTTPRequestHead, by client: RequestClient?) throws(CacheError) {
        guard let addresses, addresses.limitsRequests, !ConnectionPermits.isHealthCheck(head.uri) else { return }
        try addresses.countRequest(by: client?.limitedAddress)
    }

    /// Admits a request. Throws for an invalid head or an invalid statement of a trusted proxy, and above a limit.
    private func admit(_ head: inout HTTPRequestHead) throws(CacheError) {
        try RequestHeadValidator.check(&head)
        let client = try client?.client { head.headers[$0] }
        guard begin(head.uri) else { throw ConnectionPermits.refusal }
        try countRequest(head, by: client)
    }

    /// Ends the connection, because another one has taken over its permit.
    func displace() {
        guard let context else { return }
        end(state.displace(at: context.eventLoop.now, within: headerTimeout), ConnectionPermits.refusal, context)
    }

    // MARK: Requests answered by `PreparedResponseSender`, which bypass this handler

    /// Whether a response may bypass this handler. Requests of a limited address are counted here.
    var isIdle: Bool { state.isIdle && addresses?.limitsRequests != true }

    /// Makes the permit busy with a request. Returns false if the permit does not cover it.
    func begin(_ target: String) -> Bool {
        permit?.begin(isHealthCheck: ConnectionPermits.isHealthCheck(target)) ?? false
    }

    /// Counts a complete request whose response will pass this handler.
    func countBypassingRequest() {
        guard let context else { return }
        state.beginComplete(at: context.eventLoop.now)
        arm(context)
    }

    /// Counts a complete request together with its response, until ``endBypass()``.
    func beginBypass() {
        guard let context else { return }
        state.beginBypass(at: context.eventLoop.now)
        arm(context)
    }

    /// Reports that the response of ``beginBypass()`` was sent, or that sending it failed.
    func endBypass() {
        guard let context else { return }
        complete(state.endBypass(at: context.eventLoop.now), context)
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        hasReceived = true
        receive(.part(unwrapInboundIn(data)), context)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        state.readEnded()
        guard hasReceived else { return }
        hasReceived = false
        context.fireChannelReadComplete()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let error as CacheError: receive(.error(error), context)
        case HTTPParserError.headerOverflow:
            receive(.error(CacheError(.headersTooLarge, "The request's header is too large.")), context)
        case let error as HTTPParserError:
            receive(.error(CacheError(.malformedRequest, "The request is not valid HTTP/1.1: \(error).")), context)
        default: context.fireErrorCaught(error)
        }
    }

    private func receive(_ input: HTTPConnectionState.Input, _ context: ChannelHandlerContext) {
        if state.receive(input, at: context.eventLoop.now) { deliver(input, context) }
    }

    private func deliver(_ input: HTTPConnectionState.Input, _ context: ChannelHandlerContext) {
        switch input {
        case .part(let part): deliver(part, context)
        case .error(let error): refuse(error, context)
        case .end:
            let isIncomplete = state.clientEnded()
            disconnection.open()
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            if isIncomplete { context.fireUserInboundEventTriggered(ClientDisconnected()) }
        }
    }

    private func deliver(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch part {
        case .head(let head): begin(head, context)
        case .body(let bytes):
            state.bodyArrived(bytes.readableBytes, at: context.eventLoop.now)
            context.fireChannelRead(wrapInboundOut(part))
        case .end:
            let completion = state.requestEnded()
            arm(context)
            context.fireChannelRead(wrapInboundOut(part))
            complete(completion, context)
        }
    }

    private func begin(_ original: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var head = original
        // The router answers 413 from the head. It is the last response, because the body is not read.
        let isInLines = head.headers.first(name: "Content-Type").map { MediaType.essence($0) } == JobLines.mediaType
        let isTooLong =
            head.bodyLength.map { $0 > limits.bodyBytes(ofPath: head.uri, isInLines: isInLines) } ?? false
        state.begin(
            RequestFraming(head, isLast: isTooLong || isForOneRequest(head)),
            head.hasBody
                ? isInLines
                    ? .lines(at: context.eventLoop.now)
                    : HTTPConnectionState.BodyWindow(bodyWindow, at: context.eventLoop.now)
                : .none)
        do throws(CacheError) { try admit(&head) } catch { return refuse(error, context) }
        if head.hasBody { arm(context) }
        if state.awaitsBody, !isTooLong, head.awaitsContinue {
            let interim = HTTPResponseHead(version: .http1_1, status: .continue)
            context.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// Whether the connection is closed after the response to this request. Requests other than health checks change a
    /// reserved permit to a regular one, or are rejected.
    private func isForOneRequest(_ head: HTTPRequestHead) -> Bool {
        guard let permit else { return true }
        return ConnectionPermits.isHealthCheck(head.uri) && permit.isReserved
    }

    /// Passes on the waiting input that is due after a response.
    private func deliverNext(_ context: ChannelHandlerContext) {
        guard !isDelivering else { return }
        isDelivering = true
        var hasDelivered = false
        while let input = state.next() {
            deliver(input, context)
            hasDelivered = true
        }
        isDelivering = false
        if state.phase == .idle { permit?.rest() }
        arm(context)
        if hasDelivered { context.fireChannelReadComplete() }
        if state.releasesRead() { context.read() }
    }

    func read(context: ChannelHandlerContext) { if state.mayRead() { context.read() } }

    // MARK: Responses

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head): begin(head, promise, context)
        case .body:
            guard state.mayWrite(at: context.eventLoop.now) else { return fail(promise) }
            context.write(data, promise: promise)
        case .end:
            // Counted before the write, which can complete within the call.
            guard let framing = state.endResponse(at: context.eventLoop.now) else { return fail(promise) }
            let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            let sent = promise ?? context.eventLoop.makePromise()
            sent.futureResult.whenComplete { _ in
                let (handler, context) = here.value
                handler.complete(handler.state.responseSent(at: context.eventLoop.now), context)
            }
            let isHidden = framing.end == .hidden
            context.write(isHidden ? wrapOutboundOut(.body(.byteBuffer(ByteBuffer()))) : data, promise: sent)
            if framing.isLast { context.flush() }
        }
    }

    /// Writes the head of a response with `Date`, `Connection` and version set.
    private func begin(
        _ original: HTTPResponseHead, _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext
    ) {
        let isUnbounded = original.status.mayHaveResponseBody && !original.headers.contains(name: "Content-Length")
        let framing = state.beginResponse(
            isUnbounded: isUnbounded,
            isLast: original.headers[canonicalForm: "Connection"].contains { $0 == "close" },
            at: context.eventLoop.now)
        guard let framing else { return fail(promise) }
        var head = original
        setDate(of: &head)
        framing.apply(to: &head)
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    private func setDate(of head: inout HTTPResponseHead) {
        let stated = head.headers.first(name: "Date")
        head.headers.replaceOrAdd(name: "Date", value: stated ?? HTTPDate.format(wallClock.now()))
    }

    private func fail(_ promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.ioOnClosedChannel) }

    /// Continues after a request and its response have ended.
    private func complete(_ completion: HTTPConnectionState.Completion, _ context: ChannelHandlerContext) {
        switch completion {
        case .none: break
        case .ready: deliverNext(context)
        case .pause:
            let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.eventLoop.pause {
                let (handler, context) = here.value
                handler.complete(handler.state.resume(), context)
            }
        case .closeOutput:
            context.close(mode: .output, promise: nil)
            deliverNext(context)
        case .close: close(context)
        }
    }

    // MARK: Timer

    /// The time limit for a request; at most 5 s with a reserved permit.
    private var headerTimeout: TimeAmount {
        let regular = TimeAmount(limits.headerTimeout)
        return permit?.isReserved ?? true ? min(regular, .seconds(5)) : regular
    }

    /// The interval in which the rate of a request body is measured: 10 s, or `headerTimeout` if that is shorter.
    private var bodyWindow: TimeAmount { min(headerTimeout, .seconds(10)) }

    /// Schedules the timer for the next deadline, unless it fires earlier anyway.
    private func arm(_ context: ChannelHandlerContext) {
        let time = state.check
        if let alarm, alarm.time <= time { return }
        guard time < .distantFuture else { return }
        alarm?.task.cancel()
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let task = context.eventLoop.scheduleTask(deadline: time) { here.value.0.timerFired(here.value.1) }
        alarm = (time, task)
    }

    private func timerFired(_ context: ChannelHandlerContext) {
        alarm = nil
        let expiry = state.expire(
            at: context.eventLoop.now,
            HTTPConnectionState.Outbound(
                bytes: (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0,
                isWritable: context.channel.isWritable))
        switch expiry {
        case .wait: break
        case .headIsLate:
            // With a reserved permit the limit on connections is the reason for the short time.
            let late = CacheError(.requestTimedOut, "No request arrived in time.")
            refuse(permit?.isReserved ?? true ? ConnectionPermits.refusal : late, context)
        case .bodyIsLate:
            refuse(CacheError(.requestTimedOut, "The request's body did not arrive in time."), context)
        case .clientIsGone:
            disconnection.open()
            context.fireUserInboundEventTriggered(ClientDisconnected())
        case .close: close(context)
        }
        arm(context)
    }

    // MARK: End of the connection

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is RequestDecoder.BytesReceived:
            if state.bytesArrived(at: context.eventLoop.now, within: headerTimeout) { arm(context) }
        case is ProxyHeaderHandler.Completed: countConnection(context)
        case is ChannelShouldQuiesceEvent:
            if state.quiesce(at: context.eventLoop.now) { close(context) } else { arm(context) }
        case ChannelEvent.inputClosed:
            receive(.end, context)
            arm(context)
        default:
            if case .handshakeCompleted? = event as? TLSUserEvent { isEncrypted = true }
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end()
        self.context = nil
    }

    private func end() {
        state.ended()
        alarm?.task.cancel()
        claim?.giveBack()
        disconnection.open()
    }

    /// Ends the connection with an error response, or without one if a response has begun.
    private func refuse(_ error: CacheError, _ context: ChannelHandlerContext) {
        end(state.refuse(at: context.eventLoop.now, within: headerTimeout), error, context)
    }

    private func end(_ refusal: HTTPConnectionState.Refusal, _ error: CacheError, _ context: ChannelHandlerContext) {
        switch refusal {
        case .none: return
        case .close: close(context)
        case .answer(let isHead):
            if error.code == .overloaded { connections.countRefusal() }
            arm(context)
            // Nothing can be sent before the TLS handshake is complete.
            guard isEncrypted || tls(context) == nil else { return close(context) }
            write(Problem(error, instance: "", requestID: makeRequestID()), isHead: isHead, context)
        }
    }

    /// Writes the last response of the connection, then closes.
    private func write(_ problem: Problem, isHead: Bool, _ context: ChannelHandlerContext) {
        var head = problem.lastHead
        setDate(of: &head)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !isHead { context.write(wrapOutboundOut(.body(.byteBuffer(problem.body))), promise: nil) }
        let here = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        // Close only after the write: closing discards bytes that are not flushed.
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in here.value.0.close(here.value.1) }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode != .input, state.cutsBody else { return context.close(mode: mode, promise: promise) }
        // SO_LINGER 0 turns the close into a reset, also below TLS.
        (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            .whenFailure { _ in }
        (tls(context) ?? context).close(mode: .all, promise: promise)
    }

    /// Closes the connection; below TLS if its handshake is not complete.
    private func close(_ context: ChannelHandlerContext) {
        guard isEncrypted || tls(context) == nil else { return tls(context)?.close(promise: nil) ?? () }
        close(context: context, mode: .all, promise: nil)
    }

    /// The context of the TLS handler; nil without TLS.
    private func tls(_ context: ChannelHandlerContext) -> ChannelHandlerContext? {
        try? context.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)  // none: no TLS
    }
}

@available(*, unavailable)
extension HTTPConnectionHandler: Sendable {}
