import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1
import ReaderAccess

/// Sends one body and the end of its response on a connection's event loop, piece by piece.
///
/// The next piece is requested after the previous one has been sent. At most one piece is thus in memory; none if the
/// kernel sends the file. After eight pieces the sender yields to other work of the event loop.
final class BodySender {
    /// The rate of a reader, which all its connections share.
    struct Pace {
        let reader: Reader
        let rates: ReaderRates
        /// The size of a piece: what the rate permits in a quarter of a second.
        let pieceBytes: Int

        /// Nil without a limit.
        init?(_ reader: Reader?, _ rates: ReaderRates) {
            guard let reader, let limit = reader.maxBytesPerSecond else { return nil }
            self.reader = reader
            self.rates = rates
            pieceBytes = Int(max(1, min(limit / 4, 64 << 10)))
        }
    }

    let body: ContentBody
    private let context: ChannelHandlerContext
    /// Whether pieces may be sent from the file (`sendfile`); false with TLS.
    private let sendsFiles: Bool
    /// Nil for a reader without a rate limit. Otherwise pieces are copied and split.
    private let pace: Pace?
    /// The bytes of a paced body that were read and are not written yet.
    private var rest = ByteBuffer()
    /// The bytes that wait for their time. They are charged to the rate already.
    private var delayed: Int64 = 0
    /// Called once with the result, unless ``stop(_:)`` comes first.
    private let done: (ReadEnding) -> Void
    /// The bytes of the body that are not written yet; nil if its length is unknown.
    private var left: Int64?
    /// Set when the body has ended or was stopped.
    private var isOver = false
    /// The step after a piece that is being written, or its failure, if it was taken already.
    private var ahead: Result<ContentRead.ReadStep, CacheError>?
    /// Whether a piece is being written.
    private var isWriting = false
    /// Whether the read will call back when its next bytes are there.
    private var isAwaiting = false
    /// Pieces sent since the last yield.
    private var burst = 0
    private static let maxBurst = 8

    init(
        _ body: ContentBody, on context: ChannelHandlerContext, sendsFiles: Bool, pace: Pace? = nil,
        done: @escaping (ReadEnding) -> Void
    ) {
        self.body = body
        self.context = context
        self.sendsFiles = sendsFiles && pace == nil
        self.pace = pace
        self.done = done
        left = body.read.plan.contentLength
    }

    /// Sends `first` and the rest of the body.
    func start(_ first: ContentRead.ReadStep) { handle { () throws(CacheError) in first } }

    /// Finishes the read with `ending`. Sends nothing more and does not call `done`.
    func stop(_ ending: ReadEnding) {
        isOver = true
        if let pace, delayed > 0 { pace.rates.refund(delayed, of: pace.reader) }
        delayed = 0
        body.end(ending)
    }

    /// Writes the next part of `rest` when the rate of the reader permits it.
    private func sendRest(_ pace: Pace) {
        guard let piece = rest.readSlice(length: min(rest.readableBytes, pace.pieceBytes)) else { return }
        let uptime = Duration.nanoseconds(Int64(clamping: context.eventLoop.now.uptimeNanoseconds))
        let delay = pace.rates.delay(before: Int64(piece.readableBytes), of: pace.reader, at: uptime)
        guard delay > .zero else { return send(.byteBuffer(piece)) }
        isWriting = true
        delayed = Int64(piece.readableBytes)
        let here = NIOLoopBound((self, piece), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: TimeAmount(delay)) {
            let (sender, piece) = here.value
            guard !sender.isOver else { return }
            sender.delayed = 0
            sender.send(.byteBuffer(piece))
        }
    }

    private func send(_ piece: FilePiece) {
        let hold = PinnedFile(piece)
        var regions = hold.regions()
        guard let last = regions.popLast() else { return }
        left = left.map { $0 - (piece.range.length - Int64(last.readableBytes)) }
        hold.write(regions, to: context, as: { NIOAny(HTTPServerResponsePart.body(.fileRegion($0))) }) { [self] count in
            if !isOver { body.sent(count) }
        }
        send(.fileRegion(last), from: hold)
    }

    /// Writes one piece. `hold` pins its file until the write has completed.
    private func send(_ data: IOData, from hold: PinnedFile? = nil) {
        body.begins()
        let count = data.readableBytes
        isWriting = true
        left = left.map { $0 - Int64(count) }
        let written = context.eventLoop.makePromise(of: Void.self)
        let endsNow = left == 0
        let here = NIOLoopBound((self, data, hold), eventLoop: context.eventLoop)
        // The callback is registered before the write, so that it runs before those of handlers that the write passes;
        // they may close the connection when the bytes were sent.
        written.futureResult.whenComplete { here.value.0.left($0, here.value.1, count) }
        context.write(NIOAny(HTTPServerResponsePart.body(data)), promise: endsNow ? nil : written)
        if endsNow { context.write(NIOAny(HTTPServerResponsePart.end(nil)), promise: written) }
        context.flush()
    }

    /// Continues after a piece was sent, or ends the body if sending has failed.
    private func left(_ result: Result<Void, any Error>, _ data: IOData, _ count: Int) {
        guard !isOver else { return }
        isWriting = false
        guard case .success = result else { return finish(.clientGone) }
        body.sent(count)
        if let pace {
            if rest.readableBytes > 0 { return sendRest(pace) }
        } else if case .byteBuffer(let bytes) = data {
            body.read.giveBack(bytes)
        }
        guard left != 0 else { return finish(.sent) }
        guard !isAwaiting else { return }
        burst += 1
        if burst < Self.maxBurst { return goOn() }
        burst = 0
        let here = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.pause { here.value.goOn() }
    }

    /// Requests the next piece, unless one is being written.
    private func goOn() {
        guard !isOver, !isWriting else { return }
        if let step = ahead.take() { return handle { () throws(CacheError) in try step.get() } }
        handle { () throws(CacheError) in try next() }
    }

    /// Continues after the read has called back.
    fileprivate func wake() {
        isAwaiting = false
        goOn()
    }

    /// The next step of the read; it calls back when its bytes are not available yet.
    private func next() throws(CacheError) -> ContentRead.ReadStep {
        let (eventLoop, here) = (context.eventLoop, NIOLoopBound(self, eventLoop: context.eventLoop))
        let step = try body.read.nextWithoutBlocking(fromFile: sendsFiles) { eventLoop.execute { here.value.wake() } }
        if case .later = step { isAwaiting = true }
        return step
    }

    /// Joins small pieces of a multipart body, its delimiters among them, with those that follow: each write is a
    /// system call. The step after them is kept in `ahead`.
    private func joined(_ first: ByteBuffer) -> ByteBuffer {
        var bytes = first
        guard body.read.plan.body.count > 1 else { return bytes }
        while bytes.readableBytes < Self.joinedBytes, let left, left > bytes.readableBytes {
            let step = Result { () throws(CacheError) in try next() }
            guard case .success(.bytes(let more)) = step else {
                if case .success(.later) = step { break }
                ahead = step
                break
            }
            bytes.writeImmutableBuffer(more)
            body.read.giveBack(more)
        }
        return bytes
    }

    /// Pieces are joined until this number of bytes is reached.
    private static let joinedBytes = 16 << 10

    /// Processes the next step of the read. `.end` before the known length is an internal error.
    private func handle(_ next: () throws(CacheError) -> ContentRead.ReadStep) {
        guard !isOver else { return }
        do throws(CacheError) {
            switch try next() {
            case .bytes(let bytes):
                guard let pace else { return send(.byteBuffer(joined(bytes))) }
                rest = joined(bytes)
                sendRest(pace)
            case .file(let piece): send(piece)
            case .later: break
            case .end:
                if let left { throw CacheError(.internal, "The body ended \(left) bytes early.") }
                sendEnd()
            }
        } catch {
            finish(.failed(error))
        }
    }

    /// Writes the end of a response of unknown length.
    private func sendEnd() {
        let here = NIOLoopBound(self, eventLoop: context.eventLoop)
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { result in
            guard !here.value.isOver else { return }
            here.value.finish(((try? result.get()) != nil) ? .sent : .clientGone)  // no other error can occur
        }
        isWriting = true
        context.writeAndFlush(NIOAny(HTTPServerResponsePart.end(nil)), promise: written)
    }

    /// Ends the body and reports the result.
    private func finish(_ ending: ReadEnding) {
        stop(ending)
        done(ending)
    }
}

@available(*, unavailable)
extension BodySender: Sendable {}
