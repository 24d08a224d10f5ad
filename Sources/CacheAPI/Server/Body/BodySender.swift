import CacheCore
import CacheEngine
import NIOCore
import NIOHTTP1

/// Sends one body on a connection, on its event loop: a piece at a time, the next one when it has left, and others on the
/// event loop have their turn in between. Of a body no more is in memory than one piece, or none where the kernel sends
/// it from the file.
final class BodySender {
    let body: ContentBody
    private let context: ChannelHandlerContext
    /// Whether pieces may be sent from the file.
    private let sendsFiles: Bool
    /// Whether the last piece takes the answer's end along.
    private let endsAnswer: Bool
    /// Told once, when the last byte has left, or none will any more.
    private let done: (ReadEnding) -> Void
    /// The bytes that have not left yet; nil where nobody knows.
    private var left: Int64?
    private var isOver = false
    /// Pieces sent since others on the event loop had their turn.
    private var burst = 0
    private static let maxBurst = 8

    init(
        _ body: ContentBody, on context: ChannelHandlerContext, sendsFiles: Bool, endsAnswer: Bool,
        done: @escaping (ReadEnding) -> Void
    ) {
        self.body = body
        self.context = context
        self.sendsFiles = sendsFiles
        self.endsAnswer = endsAnswer
        self.done = done
        left = body.read.plan.contentLength
    }

    /// Sends what is at hand, and all that follows.
    func start(_ first: ContentRead.Turn) { take { () throws(CacheError) in first } }

    /// Nothing more is sent; nothing is told.
    func stop(_ ending: ReadEnding) {
        isOver = true
        body.end(ending)
    }

    private func send(_ piece: FilePiece) {
        let hold = FileHold(piece)
        send(.fileRegion(hold.region), from: hold)
    }

    private func send(_ data: IOData, from hold: FileHold? = nil) {
        body.begins()
        let count = data.readableBytes
        left = left.map { $0 - Int64(count) }
        let written = context.eventLoop.makePromise(of: Void.self)
        let endsNow = endsAnswer && left == 0
        let here = NIOLoopBound((self, data, hold), eventLoop: context.eventLoop)
        // Before the write: who stands in the way of the bytes may end the connection when they have left.
        written.futureResult.whenComplete { here.value.0.left($0, here.value.1, count) }
        context.write(NIOAny(HTTPServerResponsePart.body(data)), promise: endsNow ? nil : written)
        if endsNow { context.write(NIOAny(HTTPServerResponsePart.end(nil)), promise: written) }
        context.flush()
    }

    /// The latest piece has left, or never will.
    private func left(_ result: Result<Void, any Error>, _ data: IOData, _ count: Int) {
        guard !isOver else { return }
        guard case .success = result else { return finish(.clientGone) }
        body.sent(count)
        if case .byteBuffer(let bytes) = data { body.read.takeBack(bytes) }
        guard left != 0 else { return finish(.sent) }
        burst += 1
        if burst < Self.maxBurst { return goOn() }
        burst = 0
        goOnLater(context.eventLoop, NIOLoopBound(self, eventLoop: context.eventLoop))
    }

    fileprivate func goOn() {
        let (eventLoop, here) = (context.eventLoop, NIOLoopBound(self, eventLoop: context.eventLoop))
        take { () throws(CacheError) in
            try body.read.nextAtOnce(fromFile: sendsFiles) { goOnLater(eventLoop, here) }
        }
    }

    private func take(_ next: () throws(CacheError) -> ContentRead.Turn) {
        guard !isOver else { return }
        do throws(CacheError) {
            switch try next() {
            case .bytes(let bytes): send(.byteBuffer(bytes))
            case .file(let piece): send(piece)
            case .later: break
            case .end:
                if let left { throw CacheError(.internal, "The body lacks \(left) bytes.") }
                finish(.sent)
            }
        } catch {
            finish(.failed(error))
        }
    }

    private func finish(_ ending: ReadEnding) {
        stop(ending)
        done(ending)
    }
}

private func goOnLater(_ eventLoop: any EventLoop, _ here: NIOLoopBound<BodySender>) {
    eventLoop.execute { here.value.goOn() }
}

@available(*, unavailable)
extension BodySender: Sendable {}
