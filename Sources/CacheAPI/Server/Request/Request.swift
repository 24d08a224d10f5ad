import CacheCore
import HTTPTypes
import NIOCore

/// A request to a route, which sees the target without its signature.
struct Request: Sendable {
    let call: RequestCall
    /// The path without query and fragment, percent-encoded as received.
    let path: String
    /// The query without `?`, percent-encoded as received; nil without one.
    let queryText: String?
    var body: RequestBody

    init(_ call: RequestCall, body: RequestBody) {
        self.call = call
        self.body = body
        path = call.path
        let rest = call.target.utf8.dropFirst(path.utf8.count).prefix { $0 != UInt8(ascii: "#") }
        queryText = rest.first == UInt8(ascii: "?") ? String(rest.dropFirst()) : nil
    }

    var method: HTTPRequest.Method { call.method }
    var headers: HTTPFields { call.fields }
}

/// The body of a request as it arrives. It can be read once. With a claim its bytes are charged, and it ends with
/// ``RefusedBody`` at a limit. With a permission it ends with an error once the rights of the reader have changed.
struct RequestBody: AsyncSequence, Sendable {
    fileprivate typealias Producer = NIOThrowingAsyncSequenceProducer<
        ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, Demand
    >

    /// Bytes that are not read: then nothing more is received until the reader has caught up.
    private static let mostUnreadParts = 8

    /// The receiving side, used on the event loop of the connection.
    struct Source {
        fileprivate let producer: Producer.Source

        /// Adds bytes. Returns whether more may be received now; otherwise the demand is reported later.
        func add(_ bytes: ByteBuffer) -> Bool {
            switch producer.yield(bytes) {
            case .produceMore, .dropped: true
            case .stopProducing: false
            }
        }

        func end() { producer.finish() }

        /// Ends the body before it is complete.
        func fail(_ error: any Error) { producer.finish(error) }
    }

    /// Reports that more bytes may be received.
    fileprivate final class Demand: NIOAsyncSequenceProducerDelegate, Sendable {
        let report: @Sendable () -> Void

        init(_ report: @escaping @Sendable () -> Void) { self.report = report }

        func produceMore() { report() }
        func didTerminate() { report() }
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate var parts: Producer.AsyncIterator?
        fileprivate let claim: UsageBudget.Claim?
        fileprivate let permission: StreamPermission?

        mutating func next() async throws -> ByteBuffer? {
            let part = try await parts?.next()
            try permission?.confirm()
            guard let part else { return nil }
            if let claim, let refusal = claim.grow(by: part.readableBytes) {
                claim.giveBack()
                throw RefusedBody(refusal)
            }
            return part
        }
    }

    private let parts: Producer?
    /// The memory that the body is charged to; nil: it is not charged.
    var claim: UsageBudget.Claim?
    /// The permission of the request; nil: it needs none.
    var permission: StreamPermission?

    /// No body.
    static let empty = RequestBody(parts: nil)

    private init(parts: Producer?) { self.parts = parts }

    /// A body whose bytes a connection adds. `onDemand` is called on any thread when more may be received.
    static func receiving(onDemand: @escaping @Sendable () -> Void) -> (source: Source, body: RequestBody) {
        let made = Producer.makeSequence(
            elementType: ByteBuffer.self, failureType: (any Error).self,
            backPressureStrategy: .init(lowWatermark: 1, highWatermark: mostUnreadParts), finishOnDeinit: true,
            delegate: Demand(onDemand))
        return (Source(producer: made.source), RequestBody(parts: made.sequence))
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(parts: parts?.makeAsyncIterator(), claim: claim, permission: permission)
    }
}

/// The failure of a body for which there is no memory. Its response ends the connection.
struct RefusedBody: Error {
    let error: CacheError

    init(_ limit: UsageLedger<String>.Refusal) {
        switch limit {
        case .share:
            error = CacheError(
                .overloaded, "The request bodies of this token hold a quarter of limits.requestBodies; repeat later.")
        case .total:
            error = CacheError(.overloaded, "The request bodies in memory reach limits.requestBodies; repeat later.")
        }
    }
}
