import CacheCore
import CacheEngine
import DequeModule
import NIOCore
import NIOHTTP1

/// The express lane of one connection: answers on the event loop what ``ExpressDesk`` has at hand, and passes
/// everything else on to the regular road untouched.
///
/// Answers leave in the order of their requests: what comes while the regular road owes one goes there too, and what
/// comes while the lane answers waits.
final class ExpressLane: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum Phase {
        /// Between two requests.
        case open
        /// A head that the lane may answer waits for its request's end.
        case asked(HTTPRequestHead)
        /// A request is on its way to the regular road.
        case passing
        case answering(ExpressAnswer)
        /// Nothing more is said on this connection.
        case closed
    }

    private let desk: ExpressDesk
    private let sendBuffer: SendBuffer
    private let reprises: RepriseLane
    private var phase = Phase.open
    /// Requests that went to the regular road and have no whole answer yet.
    private var owed = 0
    /// What came while the lane answered; until it is dealt with nothing more is read.
    private var waiting = Deque<HTTPServerRequestPart>()
    private var isReadHeld = false
    /// The client has closed its sending side, which the regular road must not take for leave to close the connection.
    private var isInputEndHeld = false
    private var isCatchingUp = false
    private var sender: BodySender?
    private var context: ChannelHandlerContext?

    init(desk: ExpressDesk, sendBuffer: SendBuffer, reprises: RepriseLane) {
        self.desk = desk
        self.sendBuffer = sendBuffer
        self.reprises = reprises
        reprises.lane = self
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isAnswering { waiting.append(unwrapInboundIn(data)) } else { take(unwrapInboundIn(data), context) }
    }

    private var isAnswering: Bool { if case .answering = phase { true } else { false } }

    private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch (phase, part) {
        case (.open, .head(let head)) where owed == 0 && ExpressDesk.takes(head): phase = .asked(head)
        case (.asked(let head), .end(nil)):
            if let answer = desk.answer(head) {
                reprises.learn(head, answer)
                return begin(answer, context)
            }
            pass(.head(head), context)
            pass(part, context)
        case (.asked(let head), _):
            pass(.head(head), context)
            pass(part, context)
        case (.closed, _), (.answering, _): break
        case (.open, _), (.passing, _): pass(part, context)
        }
    }

    private func pass(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch part {
        case .head:
            owed += 1
            phase = .passing
        case .body: break
        case .end: phase = .open
        }
        context.fireChannelRead(wrapInboundOut(part))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) { owed -= 1 }
        context.write(data, promise: promise)
    }

    func read(context: ChannelHandlerContext) {
        if waiting.isEmpty { context.read() } else { isReadHeld = true }
    }

    /// Deals with what came while the lane answered.
    private func catchUp(_ context: ChannelHandlerContext) {
        guard !isCatchingUp else { return }
        isCatchingUp = true
        let isBehind = !waiting.isEmpty
        while !isAnswering, let part = waiting.popFirst() { take(part, context) }
        isCatchingUp = false
        if isBehind { context.fireChannelReadComplete() }
        guard !isAnswering else { return }
        if isInputEndHeld {
            isInputEndHeld = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
        guard isReadHeld else { return }
        isReadHeld = false
        context.read()
    }

    // MARK: Answers

    /// The answer to a request that this lane has not seen, and that is the only one.
    func give(_ answer: ExpressAnswer) {
        guard let context else { return answer.end(.clientGone) }
        begin(answer, context)
    }

    private func begin(_ answer: ExpressAnswer, _ context: ChannelHandlerContext) {
        phase = .answering(answer)
        context.write(wrapOutboundOut(.head(answer.head)), promise: nil)
        if case .end = answer.first { return sendEnd(of: answer, context) }
        let sender = BodySender(answer.body, on: context, sendsFiles: true, endsAnswer: true) { [weak self] ending in
            guard case .sent = ending else { return self?.end(ending, context) ?? () }
            self?.finish(answer, context)
        }
        self.sender = sender
        sendBuffer.fit(to: answer.body.read, on: context.channel)
        sender.start(answer.first)
    }

    /// Sends what is left of an answer without a body.
    private func sendEnd(of answer: ExpressAnswer, _ context: ChannelHandlerContext) {
        let here = NIOLoopBound((self, answer, context), eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { result in
            let (lane, answer, context) = here.value
            guard case .answering(let current) = lane.phase, current === answer else { return }
            if case .success = result { lane.finish(answer, context) } else { lane.end(.clientGone, context) }
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    private func finish(_ answer: ExpressAnswer, _ context: ChannelHandlerContext) {
        (phase, sender) = (.open, nil)
        answer.end(.sent)
        catchUp(context)
    }

    /// Cuts the answer off: nobody takes a part for the whole.
    private func end(_ ending: ReadEnding, _ context: ChannelHandlerContext) {
        stop(ending)
        context.close(promise: nil)
    }

    private func stop(_ ending: ReadEnding) {
        guard case .answering(let answer) = phase else { return }
        phase = .closed
        waiting = []
        sender?.stop(ending)
        sender = nil
        answer.end(ending)
    }

    // MARK: The connection

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard isAnswering else { return context.fireUserInboundEventTriggered(event) }
        if case .inputClosed? = event as? ChannelEvent {
            isInputEndHeld = true
        } else if event is ConnectionWatch.Leave {
            end(.clientGone, context)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop(.clientGone)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        stop(.clientGone)
        self.context = nil
    }
}

@available(*, unavailable)
extension ExpressLane: Sendable {}
