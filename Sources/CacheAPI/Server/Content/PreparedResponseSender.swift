import CacheCore
import CacheEngine
import CacheTracing
import NIOCore
import NIOHTTP1
import ReaderAccess

/// Sends prepared responses on one connection, before the request is decoded: to requests that differ from an earlier
/// one in `Range` only.
///
/// It reuses the decisions of ``ContentResponder`` and makes none of its own about HTTP semantics. A response passes
/// all handlers but TLS. Without TLS the kernel gets it at once, and the channel only the rest.
final class PreparedResponseSender {
    private let responseCache: PreparedResponseCache
    private let responder: ContentResponder
    private let sendBuffer: SendBufferTuning
    private let connection: HTTPConnectionHandler
    private let client: ConnectionClient?
    /// Sends responses of more than one piece.
    weak var handler: ContentHandler?
    /// The context of the encoder: bytes written there reach the socket, or TLS, unchanged. Nil before it is added.
    private var encoder: ChannelHandlerContext?
    /// Found for the first response from a file; nil without a socket.
    private lazy var socket = encoder.flatMap { AheadSocket($0.channel) }
    /// The request that is being decoded, and the value of ``LiveAPISettings/changes`` before it is authorized. Nil if it
    /// is not answered within the decoder's call.
    private var asked: (request: RequestFingerprint, settings: UInt64)?

    init(
        responseCache: PreparedResponseCache, responder: ContentResponder, sendBuffer: SendBufferTuning,
        connection: HTTPConnectionHandler, client: ConnectionClient? = nil
    ) {
        self.responseCache = responseCache
        self.responder = responder
        self.sendBuffer = sendBuffer
        self.connection = connection
        self.client = client
    }

    func attach(to encoder: ChannelHandlerContext?) { self.encoder = encoder }

    // MARK: Requests, reported by `RequestDecoder`

    /// Answers the request at the start of `buffer` and removes it, if there is a prepared response and nothing else
    /// happens on the connection. Returns false otherwise: the request must be decoded, and ``decoded()`` called then.
    func answer(_ buffer: inout ByteBuffer) -> Bool {
        // Requests with a fingerprint are for content. The decoded request begins again; this has no effect.
        guard connection.isIdle, let request = RequestFingerprint(buffer), connection.begin("/o/") else { return false }
        if send(request) {
            buffer.moveReaderIndex(forwardBy: request.bytes.readableBytes)
            return true
        }
        asked = (request, responder.gate.live.changes)
        return false
    }

    /// The request has been decoded. It was answered at once, or later.
    func decoded() { asked = nil }

    /// Fields that exclude a request: its response depends on more than the range, or the field differs in each
    /// request.
    private static let judged = [
        "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Cache-Control", "Pragma",
        "X-Request-Id", "Connection", "Content-Length", "Transfer-Encoding", TraceContext.parentField,
    ]

    /// Creates an entry from the response to the request that is being decoded, if it is reusable: a GET with status 200
    /// or 206 and a snapshot, without ``judged`` fields, on a connection that stays open. A request with `Range` must
    /// have got 206.
    func learn(_ head: HTTPRequestHead, _ response: ServerResponse) {
        guard let (request, settings) = asked, handler != nil, let read = response.read, let view = read.view,
            head.method == .GET, head.version == .http1_1, head.isKeepAlive, request.hasTarget(head.uri),
            !response.isSigned,
            !Self.judged.contains(where: head.headers.contains),
            read.plan.status == (request.range.isEmpty ? 200 : 206)
        else { return }
        let reader = response.logContext.content.reader
        guard reader?.maxBytesPerSecond == nil else { return }  // such a body is paced
        let template = ResponseHeadTemplate(response.head, upstreamStatus: read.plan.headers.values("Cache-Status"))
        responseCache.keep(
            PreparedResponse(
                request.kept, view: view, logged: response.logged, template: template, settings: settings,
                reader: reader,
                counter: reader.map { responder.recorder.readers.counter(for: $0.id) },
                firstBytes: responder.recorder.latencies.firstBytes(of: view.originName),
                server: RequestTracing.Server(
                    host: head.headers.first(name: "Host"), isEncrypted: responder.gate.isEncrypted,
                    hasQuery: head.uri.utf8.contains(UInt8(ascii: "?")))))
    }

    // MARK: Responses

    /// Sends the prepared response to a request. Returns false, with nothing sent, without one.
    ///
    /// An entry that is no longer valid is removed; the response to the request creates a new one. A range that cannot
    /// be served keeps the entry.
    private func send(_ request: RequestFingerprint) -> Bool {
        guard let encoder, let response = responseCache[request], let range = response.range(request) else {
            return false
        }
        // Other access or CORS rules may be in force than those that the entry was authorized by.
        if let now = response.view.now, response.isAuthorized(at: now, responder.gate.live.changes),
            send(response, range, at: now, encoder, hasRange: !request.range.isEmpty)
        {
            return true
        }
        responseCache.forget(response)
        return false
    }

    /// Sends the response for one range: at once if possible, else through ``ContentHandler``. Returns false, with
    /// nothing sent, if the bytes are not available.
    private func send(
        _ response: PreparedResponse, _ range: ByteRange, at time: Timestamp, _ encoder: ChannelHandlerContext,
        hasRange: Bool
    ) -> Bool {
        let (requestID, start) = (responseCache.nextRequestID(), encoder.eventLoop.now)
        var buffer = responseCache.takeBuffer()
        guard
            let body = response.write(range, as: requestID, at: time, to: &buffer, fromFile: responder.sendsFiles)
        else {
            responseCache.giveBack(buffer)
            return sendInPieces(response, range, at: time, client: client?.client, hasRange: hasRange)
        }
        let client = client?.client
        // The response follows at once: its first byte is not later than this.
        let sending = Sending(
            response: response, range: range, time: time, buffer: buffer, body: body,
            file: body.piece.map { PinnedFile($0) }, start: start, firstByte: encoder.eventLoop.now,
            requestID: requestID,
            client: client?.text, span: responder.begin(response, client: client)?.span,
            hasRange: hasRange)
        connection.beginBypass()
        write(sending, encoder)
        return true
    }

    private func sendInPieces(
        _ response: PreparedResponse, _ range: ByteRange, at time: Timestamp, client: RequestClient?, hasRange: Bool
    ) -> Bool {
        let loggedRange = hasRange ? LoggedRange.bytes(range) : nil
        guard let handler, let answer = responder.answer(response, range, at: time, client: client, loggedRange) else {
            return false
        }
        connection.countBypassingRequest()
        handler.send(answer)
        return true
    }

    /// Passes the response to the kernel as far as it accepts it at once, and the rest to the channel.
    private func write(_ sending: Sending, _ encoder: ChannelHandlerContext) {
        let (file, eventLoop) = (sending.file, encoder.eventLoop)
        var bytes = sending.buffer
        if file != nil { sendBuffer.fit(toBytesOnDisk: sending.range.length, on: encoder.channel) }
        // The outbound buffer is empty here, because the connection was at rest.
        if responder.sendsFiles, let socket {
            bytes.moveReaderIndex(forwardBy: socket.send(bytes, hasMore: file != nil))
            if let file, bytes.readableBytes == 0 { sending.sentBytes = socket.send(file.piece) }
        }
        let regions = file?.regions(after: sending.sentBytes) ?? []
        guard bytes.readableBytes > 0 || !regions.isEmpty else {
            return left(.success(()), sending, at: eventLoop.now)
        }
        let here = NIOLoopBound((self, sending), eventLoop: eventLoop)
        let written = eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { here.value.0.left($0, here.value.1, at: eventLoop.now) }
        if bytes.readableBytes > 0 {
            encoder.write(NIOAny(IOData.byteBuffer(bytes)), promise: regions.isEmpty ? written : nil)
        }
        file?.write(regions.dropLast(), to: encoder, as: { NIOAny(IOData.fileRegion($0)) }) { count in
            sending.sentBytes += Int64(count)
        }
        if let last = regions.last { encoder.write(NIOAny(IOData.fileRegion(last)), promise: written) }
        encoder.flush()
    }

    /// Ends a response that was sent or has failed: returns its buffer, and records it in the statistics and the log.
    private func left(_ result: Result<Void, any Error>, _ sending: Sending, at now: NIODeadline) {
        let hasLeft = if case .success = result { true } else { false }
        if hasLeft { sending.sentBytes = sending.range.length }
        responseCache.giveBack(sending.buffer)
        sending.response.view.count(
            sending.range, sent: sending.sentBytes, hasLeft ? .sent : .clientGone, at: sending.time)
        record(sending, hasLeft: hasLeft, at: now)
        connection.endBypass()
    }

    /// Records an ended response. Without `hasLeft` its log entry is marked as aborted.
    private func record(_ sending: Sending, hasLeft: Bool, at now: NIODeadline) {
        let (response, sent) = (sending.response, sending.sentBytes)
        var figures = RequestLogContext.Content()
        figures.span = sending.span
        (figures.result, figures.outcome) = (.hit, ReadOutcome.Class.hit.rawValue)
        if sending.hasRange { figures.range = .bytes(sending.range) }
        (figures.bytesFromCache, figures.firstByte) = (sent, Duration(sending.firstByte - sending.start))
        (figures.sentBytes, figures.isComplete) = (sent, hasLeft)
        if let span = sending.span {
            span.set("larder.asset.id", response.view.assetID.description)
            span.end(status: response.status, requestID: sending.requestID.text, figures)
        }
        responder.recorder.record(
            AccessLog.Line(
                response.logged, client: sending.client, startedAt: sending.time,
                requestID: .counted(sending.requestID), status: response.status, figures,
                duration: Duration(now - sending.start)),
            shard: Int(bitPattern: ObjectIdentifier(self)) >> 6, firstBytes: response.firstBytes,
            counter: response.counter)
    }
}

/// A response that is being sent, with the resources that it needs until then: buffer, lease and pinned file.
private final class Sending {
    let response: PreparedResponse
    let range: ByteRange
    let time: Timestamp
    let buffer: ByteBuffer
    /// Holds the lease.
    let body: PreparedResponse.Body
    let file: PinnedFile?
    let start: NIODeadline
    let firstByte: NIODeadline
    let requestID: RequestID
    /// The client's address; nil: unknown.
    let client: String?
    let span: TraceSpan?
    /// Whether the request has a range.
    let hasRange: Bool
    /// The bytes of the body that have left.
    var sentBytes: Int64 = 0

    init(
        response: PreparedResponse, range: ByteRange, time: Timestamp, buffer: ByteBuffer, body: PreparedResponse.Body,
        file: PinnedFile?, start: NIODeadline, firstByte: NIODeadline, requestID: RequestID, client: String?,
        span: TraceSpan?, hasRange: Bool
    ) {
        (self.response, self.range, self.time, self.buffer, self.body) = (response, range, time, buffer, body)
        (self.file, self.start, self.firstByte, self.requestID) = (file, start, firstByte, requestID)
        (self.client, self.span, self.hasRange) = (client, span, hasRange)
    }
}

@available(*, unavailable)
extension Sending: Sendable {}

@available(*, unavailable)
extension PreparedResponseSender: Sendable {}
