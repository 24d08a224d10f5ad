import CacheCore
import CacheEngine
import Logging
import NIOCore
import NIOHTTP1

/// Gives answers of the express lane again, in front of the HTTP decoder: to a client that asks for another range of what
/// somebody has asked for in the same words.
///
/// It judges nothing: what it has not seen answered it passes on, and learns from the answer. Where requests do not come
/// one by one, each in one piece, it leaves the connection.
final class RepriseLane: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = IOData

    private let book: RepriseBook
    private let desk: ExpressDesk
    private let sendBuffer: SendBuffer
    private let watch: ConnectionWatch
    /// Sends what takes more than one piece.
    weak var lane: ExpressLane?
    /// What is being passed on.
    private var asked: RepriseQuestion?
    /// Whether anything of what is being read was passed on.
    private var hasPassed = false
    /// Whether all that waits to leave is an answer of this lane, which nobody behind it need hear of.
    private var isAlone = false
    /// What those behind were told of the channel last.
    private var toldWritable = true

    init(book: RepriseBook, desk: ExpressDesk, sendBuffer: SendBuffer, watch: ConnectionWatch) {
        self.book = book
        self.desk = desk
        self.sendBuffer = sendBuffer
        self.watch = watch
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch RepriseQuestion.read(unwrapInboundIn(data)) {
        case .question(let question):
            if watch.isAtRest, let reprise = book[question], give(reprise, to: question, context) { return }
            asked = question
            pass(data, context)
            asked = nil
        case .other: pass(data, context)
        case .unclear:
            pass(data, context)
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
    }

    private func pass(_ data: NIOAny, _ context: ChannelHandlerContext) {
        hasPassed = true
        isAlone = false
        tellWritability(context)
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard hasPassed else { return }
        hasPassed = false
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !isAlone { tellWritability(context) }
    }

    private func tellWritability(_ context: ChannelHandlerContext) {
        guard context.channel.isWritable != toldWritable else { return }
        toldWritable.toggle()
        context.fireChannelWritabilityChanged()
    }

    /// Requests with these are answered by more than their range; or each is another one.
    private static let judged = [
        "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Cache-Control", "Pragma",
        "X-Request-Id", "Connection",
    ]

    /// The question that is being passed on has been answered so.
    func learn(_ head: HTTPRequestHead, _ answer: ExpressAnswer) {
        let read = answer.body.read
        guard let asked, lane != nil, let view = read.view, head.method == .GET else { return }
        guard !Self.judged.contains(where: head.headers.contains) else { return }
        guard read.plan.status == (asked.range.isEmpty ? 200 : 206) else { return }
        let form = HeadForm(answer.head, upstreamStatus: read.plan.headers.values("Cache-Status"))
        book.keep(Reprise(asked.kept, view: view, path: String(head.uri.prefix { $0 != "?" }), form: form))
    }

    /// Answers whether it has; what it cannot give at once is forgotten, and learnt anew.
    private func give(_ reprise: Reprise, to question: RepriseQuestion, _ context: ChannelHandlerContext) -> Bool {
        guard let run = reprise.run(question) else { return false }
        if let now = reprise.view.now, give(reprise, run, at: now, context) { return true }
        book.forget(reprise)
        return false
    }

    private func give(
        _ reprise: Reprise, _ run: ByteRange, at time: Timestamp, _ context: ChannelHandlerContext
    ) -> Bool {
        let name = book.nextName()
        let stopwatch = desk.isLogged ? Stopwatch(desk.clock) : nil
        var buffer = book.takeBuffer()
        guard let body = reprise.write(run, as: name, at: time, to: &buffer) else {
            book.giveBack(buffer)
            return giveInPieces(reprise, run, at: time)
        }
        let note = stopwatch.map { AccessNote(reprise, run, name.text, desk, $0) }
        watch.answersInFront()
        isAlone = true
        let given = Given(reprise, run, at: time, buffer, body, note)
        let here = NIOLoopBound((self, given), eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { here.value.0.left($0, here.value.1) }
        if let hold = given.hold {
            sendBuffer.fit(toBytesOnDisk: run.length, on: context.channel)
            buffer.moveReaderIndex(forwardBy: context.sendAhead(buffer))
            if buffer.readableBytes > 0 { context.write(wrapOutboundOut(.byteBuffer(buffer)), promise: nil) }
            context.write(wrapOutboundOut(.fileRegion(hold.region)), promise: written)
        } else {
            context.write(wrapOutboundOut(.byteBuffer(buffer)), promise: written)
        }
        context.flush()
        return true
    }

    /// An answer has left, or never will.
    private func left(_ result: Result<Void, any Error>, _ given: Given) {
        let hasLeft = if case .success = result { true } else { false }
        isAlone = false
        book.giveBack(given.buffer)
        given.reprise.view.count(given.run, hasLeft ? .sent : .clientGone, at: given.time)
        given.note?.write(hasLeft: hasLeft)
        watch.answeredInFront()
    }

    private func giveInPieces(_ reprise: Reprise, _ run: ByteRange, at time: Timestamp) -> Bool {
        guard let lane, let answer = desk.answer(reprise, run, at: time) else { return false }
        watch.isAskedInFront()
        lane.give(answer)
        return true
    }
}

/// An answer on its way, and what must last as long.
private final class Given {
    let reprise: Reprise
    let run: ByteRange
    let time: Timestamp
    let buffer: ByteBuffer
    let hold: FileHold?
    let note: AccessNote?
    private let body: Reprise.Body

    init(
        _ reprise: Reprise, _ run: ByteRange, at time: Timestamp, _ buffer: ByteBuffer, _ body: Reprise.Body,
        _ note: AccessNote?
    ) {
        self.reprise = reprise
        self.run = run
        self.time = time
        self.buffer = buffer
        self.body = body
        self.note = note
        hold = body.piece.map { FileHold($0) }
    }
}

/// What the access log is to say of one answer.
private struct AccessNote {
    private let line: AccessLine
    private let note = RequestNote()
    private let bytes: Int64

    init(_ reprise: Reprise, _ run: ByteRange, _ requestID: String, _ desk: ExpressDesk, _ stopwatch: Stopwatch) {
        bytes = run.length
        line = AccessLine(
            logger: desk.logger, method: "GET", path: reprise.path, requestID: requestID, status: reprise.status,
            note: note, stopwatch: stopwatch)
        note.update { content in
            content.outcome = ReadOutcome.Class.hit.rawValue
            content.bytesFromCache = run.length
            content.firstByte = stopwatch.elapsed
        }
    }

    func write(hasLeft: Bool) {
        if hasLeft {
            note.update { content in
                content.sentBytes = bytes
                content.isComplete = true
            }
        }
        line.write()
    }
}

@available(*, unavailable)
extension RepriseLane: Sendable {}

@available(*, unavailable)
extension Given: Sendable {}
