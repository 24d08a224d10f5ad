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
            context.fireChannelRead(data)
            asked = nil
        case .other: context.fireChannelRead(data)
        case .unclear:
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
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
        if let moment = reprise.view.moment, give(reprise, run, at: moment, context) { return true }
        book.forget(reprise)
        return false
    }

    private func give(
        _ reprise: Reprise, _ run: ByteRange, at moment: FreshView.Moment, _ context: ChannelHandlerContext
    ) -> Bool {
        let name = book.nextName()
        let stopwatch = desk.isLogged ? Stopwatch(desk.clock) : nil
        var buffer = book.takeBuffer()
        guard let body = reprise.write(run, as: name, at: moment, to: &buffer) else {
            book.giveBack(buffer)
            return giveInPieces(reprise, run, at: moment)
        }
        let note = stopwatch.map { AccessNote(reprise, run, name.text, desk, $0) }
        watch.answersInFront()
        let written = context.eventLoop.makePromise(of: Void.self)
        let hold = body.piece.map { FileHold($0) }
        let here = NIOLoopBound((self, reprise, buffer, body, hold), eventLoop: context.eventLoop)
        written.futureResult.whenComplete { result in
            let (lane, reprise, buffer, _, _) = here.value
            let hasLeft = if case .success = result { true } else { false }
            lane.book.giveBack(buffer)
            reprise.view.count(run, hasLeft ? .sent : .clientGone, at: moment.now)
            note?.write(hasLeft: hasLeft)
            lane.watch.answeredInFront()
        }
        context.write(wrapOutboundOut(.byteBuffer(buffer)), promise: hold == nil ? written : nil)
        if let hold {
            sendBuffer.fit(toBytesOnDisk: run.length, on: context.channel)
            context.write(wrapOutboundOut(.fileRegion(hold.region)), promise: written)
        }
        context.flush()
        return true
    }

    private func giveInPieces(_ reprise: Reprise, _ run: ByteRange, at moment: FreshView.Moment) -> Bool {
        guard let lane, let answer = desk.answer(reprise, run, at: moment) else { return false }
        watch.isAskedInFront()
        lane.give(answer)
        return true
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
