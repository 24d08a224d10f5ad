import CacheCore
import CacheEngine
import CacheTracing
import NIOCore
import NIOHTTP1
import ReaderAccess

/// Channel handler before the HTTP decoder: answers requests that differ from an earlier one in `Range` only.
///
/// It reuses the decisions of ``FastPathHandler`` and makes none of its own about HTTP semantics. Unknown requests are
/// forwarded, and their responses become entries. If a read is not exactly one complete request without a body, the
/// handler removes itself from the pipeline; it therefore never has to track the decoder's state.
///
/// Later handlers get no `channelReadComplete` and no `channelWritabilityChanged` for responses sent here. Before a
/// request is forwarded, writability is fired again if it differs from the last value that they saw.
final class PreparedResponseHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = IOData

    private let responseCache: PreparedResponseCache
    private let responder: FastPathResponder
    private let sendBuffer: SendBufferTuning
    private let watch: ConnectionTimeoutHandler
    /// Sends responses of more than one piece.
    weak var handler: FastPathHandler?
    /// The request that is being forwarded, while ``pass(_:_:)`` runs. ``learn(_:_:)`` is called within it.
    private var asked: RequestFingerprint?
    /// The number of changes of the live settings before ``asked`` was authorized.
    private var askedAt: UInt64 = 0
    /// Whether part of the current read cycle was forwarded, so that later handlers need `channelReadComplete`.
    private var hasPassed = false
    /// Whether the outbound buffer holds only a response of this handler. Later handlers then get no writability
    /// changes.
    private var isAlone = false
    /// The writability that later handlers saw last.
    private var toldWritable = true

    init(
        responseCache: PreparedResponseCache, responder: FastPathResponder, sendBuffer: SendBufferTuning,
        watch: ConnectionTimeoutHandler
    ) {
        self.responseCache = responseCache
        self.responder = responder
        self.sendBuffer = sendBuffer
        self.watch = watch
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch RequestFingerprint.read(unwrapInboundIn(data)) {
        case .question(let question):
            if watch.isIdle, let preparedResponse = responseCache[question],
                give(preparedResponse, to: question, context)
            {
                return
            }
            (asked, askedAt) = (question, responder.gate.live.changes)
            pass(data, context)
            asked = nil
        case .other: pass(data, context)
        case .unclear:
            pass(data, context)
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
    }

    /// Forwards a read to the decoder.
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

    /// Fires the writability to later handlers if it differs from the value that they saw last.
    private func tellWritability(_ context: ChannelHandlerContext) {
        guard context.channel.isWritable != toldWritable else { return }
        toldWritable.toggle()
        context.fireChannelWritabilityChanged()
    }

    /// Fields that exclude a request: its response depends on more than the range, or the field differs in each
    /// request.
    private static let judged = [
        "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Cache-Control", "Pragma",
        "X-Request-Id", "Connection", TraceContext.parentField,
    ]

    /// Creates an entry from the response to the request that is being forwarded, if it is reusable: a GET with status
    /// 200 or 206 and a snapshot, without ``judged`` fields. A request with `Range` must have got 206.
    func learn(_ head: HTTPRequestHead, _ answer: FastPathResponse) {
        let read = answer.body.read
        guard let asked, handler != nil, let view = read.view, head.method == .GET, !answer.isSigned else { return }
        guard !Self.judged.contains(where: head.headers.contains) else { return }
        guard read.plan.status == (asked.range.isEmpty ? 200 : 206) else { return }
        let reader = answer.note.content.reader
        let form = ResponseHeadTemplate(answer.head, upstreamStatus: read.plan.headers.values("Cache-Status"))
        responseCache.keep(
            PreparedResponse(
                asked.kept, view: view, logged: answer.logged, form: form, settings: askedAt,
                reader: reader, counter: reader.map { responder.recorder.readers.counter(for: $0.id) }))
    }

    // MARK: Responses

    /// Sends a prepared response for the range of `question` and returns true. If that is not possible, removes the
    /// entry and returns false; the forwarded request creates a new one. A range that cannot be served here keeps the
    /// entry.
    private func give(
        _ preparedResponse: PreparedResponse, to question: RequestFingerprint, _ context: ChannelHandlerContext
    ) -> Bool {
        guard let run = preparedResponse.run(question) else { return false }
        // Other access or CORS rules may be in force than those that the entry was authorized by.
        let changes = responder.gate.live.changes
        if let now = preparedResponse.view.now, preparedResponse.isAuthorized(at: now, changes),
            give(preparedResponse, run, at: now, context)
        {
            return true
        }
        responseCache.forget(preparedResponse)
        return false
    }

    /// Sends the response for one range: in one piece if possible, else through ``FastPathHandler``. Returns false,
    /// with nothing sent, if the bytes are not available.
    private func give(
        _ preparedResponse: PreparedResponse, _ run: ByteRange, at time: Timestamp, _ context: ChannelHandlerContext
    ) -> Bool {
        let name = responseCache.nextRequestID()
        let start = context.eventLoop.now
        var buffer = responseCache.takeBuffer()
        guard
            let body = preparedResponse.write(
                run, as: name, at: time, to: &buffer, fromFile: responder.sendsFiles)
        else {
            responseCache.giveBack(buffer)
            return giveInPieces(preparedResponse, run, at: time, client: context.channel.remoteAddress?.ipAddress)
        }
        // The response is one write, which follows at once: its first byte is not later than this.
        let note = AccessNote(
            start: start, firstByte: context.eventLoop.now, requestID: name,
            client: responder.recorder.log.isEnabled ? context.channel.remoteAddress?.ipAddress : nil,
            span: responder.tracing.tracer.isEnabled ? responder.begin(preparedResponse.logged)?.span : nil)
        watch.beginFastPathResponse()
        isAlone = true
        let given = Given(preparedResponse, run, at: time, buffer, body, note)
        let (here, eventLoop) = (NIOLoopBound((self, given), eventLoop: context.eventLoop), context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { here.value.0.left($0, here.value.1, at: eventLoop.now) }
        if let hold = given.hold {
            // The outbound buffer is empty here, because the connection was at rest: `sendAhead` may bypass it.
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

    /// Ends a response that was sent or has failed: returns its buffer, and records it in the statistics and the log.
    private func left(_ result: Result<Void, any Error>, _ given: Given, at now: NIODeadline) {
        let hasLeft = if case .success = result { true } else { false }
        isAlone = false
        responseCache.giveBack(given.buffer)
        given.preparedResponse.view.count(given.run, hasLeft ? .sent : .clientGone, at: given.time)
        record(given, hasLeft: hasLeft, at: now)
        watch.endFastPathResponse()
    }

    /// Records the latencies of an ended response and its log entry. Without `hasLeft` the entry counts no sent bytes
    /// and is marked as aborted.
    private func record(_ given: Given, hasLeft: Bool, at now: NIODeadline) {
        let duration = Duration(now - given.note.start)
        let firstByte = Duration(given.note.firstByte - given.note.start)
        responder.recorder.latencies.record(
            .hit, firstByte: firstByte, duration: duration,
            shard: Int(bitPattern: ObjectIdentifier(self)) >> 6,
            traceID: given.note.span?.context.traceID.description)
        let sent = hasLeft ? given.run.length : 0
        given.preparedResponse.counter?.add(requests: 1, bytes: sent, bytesFromCache: sent)
        guard responder.recorder.log.isEnabled || given.note.span != nil else { return }
        var figures = RequestLogContext.Content()
        figures.span = given.note.span
        figures.reader = given.preparedResponse.reader
        (figures.result, figures.outcome) = (.hit, ReadOutcome.Class.hit.rawValue)
        (figures.bytesFromCache, figures.firstByte) = (given.run.length, firstByte)
        (figures.sentBytes, figures.isComplete) = (sent, hasLeft)
        figures.span?.set("larder.asset.id", given.preparedResponse.view.assetID.description)
        figures.span?.end(status: given.preparedResponse.status, figures)
        responder.recorder.log.write(
            AccessLog.Line(
                request: given.preparedResponse.logged(for: given.note.client), status: given.preparedResponse.status,
                requestID: given.note.requestID.text, figures: figures, duration: duration))
    }

    /// Sends a response of more than one piece through ``FastPathHandler``.
    private func giveInPieces(
        _ preparedResponse: PreparedResponse, _ run: ByteRange, at time: Timestamp, client: String?
    ) -> Bool {
        guard let handler, let answer = responder.answer(preparedResponse, run, at: time, client: client) else {
            return false
        }
        watch.countForwardedRequest()
        handler.give(answer)
        return true
    }
}

/// A response that is being sent, with the resources that it needs until then: buffer, lease and pinned file.
private final class Given {
    let preparedResponse: PreparedResponse
    let run: ByteRange
    let time: Timestamp
    let buffer: ByteBuffer
    let hold: PinnedFile?
    let note: AccessNote
    private let body: PreparedResponse.Body

    init(
        _ preparedResponse: PreparedResponse, _ run: ByteRange, at time: Timestamp, _ buffer: ByteBuffer,
        _ body: PreparedResponse.Body, _ note: AccessNote
    ) {
        self.preparedResponse = preparedResponse
        self.run = run
        self.time = time
        self.buffer = buffer
        self.body = body
        self.note = note
        hold = body.piece.map { PinnedFile($0) }
    }
}

/// The times of one response sent by ``PreparedResponseHandler``, for its record.
private struct AccessNote {
    let start: NIODeadline
    let firstByte: NIODeadline
    let requestID: RequestID
    /// The client's address; nil without a log.
    let client: String?
    let span: TraceSpan?
}

@available(*, unavailable)
extension PreparedResponseHandler: Sendable {}

@available(*, unavailable)
extension Given: Sendable {}
