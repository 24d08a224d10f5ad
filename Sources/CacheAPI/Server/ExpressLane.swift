import CacheCore
import CacheEngine
import DequeModule
import NIOCore
import NIOHTTP1

/// The express lane of one connection: answers on the event loop what ``ExpressDesk`` has at hand, and passes
/// everything else on to the regular road untouched.
///
/// Answers leave in the order of their requests: what comes while the regular road owes one goes there too, and what
/// comes while the lane answers waits. Of a body one chunk at a time is in memory, and the next is read when it has left.
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
    private var phase = Phase.open
    /// Requests that went to the regular road and have no whole answer yet.
    private var owed = 0
    /// What came while the lane answered; until it is dealt with nothing more is read.
    private var waiting = Deque<HTTPServerRequestPart>()
    private var isReadHeld = false
    /// The client has closed its sending side, which the regular road must not take for leave to close the connection.
    private var isInputEndHeld = false
    private var isCatchingUp = false
    /// Chunks sent since others on the event loop had their turn.
    private var burst = 0
    private static let maxBurst = 8

    init(desk: ExpressDesk) { self.desk = desk }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isAnswering { waiting.append(unwrapInboundIn(data)) } else { take(unwrapInboundIn(data), context) }
    }

    private var isAnswering: Bool { if case .answering = phase { true } else { false } }

    private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch (phase, part) {
        case (.open, .head(let head)) where owed == 0 && ExpressDesk.takes(head): phase = .asked(head)
        case (.asked(let head), .end(nil)):
            if let answer = desk.answer(head) { return begin(answer, context) }
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

    private func begin(_ answer: ExpressAnswer, _ context: ChannelHandlerContext) {
        phase = .answering(answer)
        context.write(wrapOutboundOut(.head(answer.head)), promise: nil)
        send(answer.first ?? ByteBuffer(), of: answer, context)
    }

    /// Writes a chunk; the last one together with the answer's end.
    private func send(_ bytes: ByteBuffer, of answer: ExpressAnswer, _ context: ChannelHandlerContext) {
        let written = context.eventLoop.makePromise(of: Void.self)
        let count = bytes.readableBytes
        let isLast = answer.left == Int64(count)
        if count > 0 {
            answer.begins()
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: isLast ? nil : written)
        }
        if isLast { context.write(wrapOutboundOut(.end(nil)), promise: written) }
        let here = NIOLoopBound((self, answer, context), eventLoop: context.eventLoop)
        written.futureResult.whenComplete { result in
            let (lane, answer, context) = here.value
            guard lane.isSending(answer) else { return }
            guard case .success = result else { return lane.end(answer, .clientGone, context) }
            answer.sent(count)
            if isLast { lane.finish(answer, context) } else { lane.takeTurn(answer, context) }
        }
        context.flush()
    }

    private func isSending(_ answer: ExpressAnswer) -> Bool {
        if case .answering(let current) = phase { current === answer } else { false }
    }

    /// Goes on with the body, after others on the event loop where much was sent in one go.
    private func takeTurn(_ answer: ExpressAnswer, _ context: ChannelHandlerContext) {
        burst += 1
        guard burst >= Self.maxBurst else { return goOn(answer, context) }
        let here = NIOLoopBound((self, answer, context), eventLoop: context.eventLoop)
        context.eventLoop.execute { here.value.0.goOn(here.value.1, here.value.2) }
    }

    private func goOn(_ answer: ExpressAnswer, _ context: ChannelHandlerContext) {
        guard isSending(answer) else { return }
        if burst >= Self.maxBurst { burst = 0 }
        let here = NIOLoopBound((self, answer, context), eventLoop: context.eventLoop)
        let eventLoop = context.eventLoop
        do throws(CacheError) {
            let turn = try answer.next {
                eventLoop.execute { here.value.0.goOn(here.value.1, here.value.2) }
            }
            switch turn {
            case .bytes(let bytes): send(bytes, of: answer, context)
            case .later: break
            case .end: throw CacheError(.internal, "The body lacks \(answer.left) bytes.")
            }
        } catch {
            end(answer, .failed(error), context)
        }
    }

    private func finish(_ answer: ExpressAnswer, _ context: ChannelHandlerContext) {
        phase = .open
        answer.end(.sent)
        catchUp(context)
    }

    /// Cuts the answer off: nobody takes a part for the whole.
    private func end(_ answer: ExpressAnswer, _ ending: ReadEnding, _ context: ChannelHandlerContext) {
        stop(ending)
        context.close(promise: nil)
    }

    private func stop(_ ending: ReadEnding) {
        guard case .answering(let answer) = phase else { return }
        phase = .closed
        waiting = []
        answer.end(ending)
    }

    // MARK: The connection

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .answering(let answer) = phase else { return context.fireUserInboundEventTriggered(event) }
        if case .inputClosed? = event as? ChannelEvent {
            isInputEndHeld = true
        } else if event is ConnectionWatch.Leave {
            end(answer, .clientGone, context)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop(.clientGone)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { stop(.clientGone) }
}

@available(*, unavailable)
extension ExpressLane: Sendable {}
