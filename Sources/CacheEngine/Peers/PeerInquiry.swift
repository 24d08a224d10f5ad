import CacheCore

/// One question to several nodes. The first node with all bytes decides; otherwise, after all have answered, that with the
/// most bytes from the first one on.
final class PeerInquiry: Sendable {
    private struct State {
        var left: Int
        var best: (node: String, range: ByteRange)?
        /// The first byte that a node without the first one has.
        var next: Int64?
        /// A node that is about to request the bytes.
        var coming: String?
        var isOver = false
        var transfers: [any Transfer] = []

        var answer: PeerAnswer {
            if let best { return .bytes(best.range, of: best.node) }
            return coming.map { .coming(of: $0) } ?? .nothing(next: next)
        }

        /// Ends the inquiry if it is decided, or if all nodes have answered. Returns the transfers to cancel; nil: it has
        /// ended before, or goes on.
        mutating func end(isDecided: Bool) -> [any Transfer]? {
            guard !isOver, left == 0 || isDecided else { return nil }
            isOver = true
            defer { transfers = [] }
            return transfers
        }
    }

    /// The statuses of a node that works and does not have the bytes: unknown asset, another generation, no first byte.
    static let misses = [404, 412, 504]
    /// A smaller part of the wanted bytes is not worth a request of its own.
    static let leastBytes: Int64 = 64 << 10

    private let question: PeerQuestion
    private let nodes: PeerNodes
    private let answered: @Sendable (PeerAnswer) -> Void
    /// Guards the answers.
    private let state: OrderedMutex<State>

    init(
        _ question: PeerQuestion, of nodes: PeerNodes, count: Int, answered: @escaping @Sendable (PeerAnswer) -> Void
    ) {
        self.question = question
        self.nodes = nodes
        self.answered = answered
        state = OrderedMutex(.leaf, State(left: count))
    }

    func send(_ request: UpstreamRequest, to node: String, over upstream: any Upstream) {
        let exchange = BufferedExchange(bodyLimit: nil)
        let transfer = upstream.start(request, delivering: exchange)
        exchange.whenEnded { self.ended(node, $0.head, $0.end.error) }
        let isOver = state.withLock { state in
            if !state.isOver { state.transfers.append(transfer) }
            return state.isOver
        }
        if isOver { transfer.cancel() }
    }

    /// Records the head of one node's response, or its failure.
    private func ended(_ node: String, _ head: UpstreamHead?, _ error: CacheError?) {
        let offer = head.flatMap { self.offer(in: $0) }
        record(node, head, error, isHit: offer != nil)
        let missing = head.flatMap { $0.status == 504 ? $0 : nil }
        let next = missing?.headers[PeerNodes.nextField].flatMap { Int64($0) }.flatMap(question.within)
        let isCurrent = nodes.hasApplied(head?.headers[PeerNodes.fleetField])
        let isComing =
            isCurrent && missing?.headers[PeerNodes.comingField] != nil
            && question.admitsComing(at: nodes.wallClock.now())
        let transfers = state.withLock { state in
            state.left -= 1
            if isComing { state.coming = node }
            if let offer, offer.range.length > state.best?.range.length ?? 0 { state.best = (node, offer.range) }
            state.next = [state.next, next].compactMap(\.self).min()
            return state.end(isDecided: offer?.isWhole == true)
        }
        guard let transfers else { return }
        for transfer in transfers { transfer.cancel() }
        answered(state.withLock { $0.answer })
    }

    private func record(_ node: String, _ head: UpstreamHead?, _ error: CacheError?, isHit: Bool) {
        guard let head else {
            let error = error ?? CacheError(.upstreamProtocol, "The node sent no response.")
            guard error.code != .cancelled else { return }
            return nodes.record(error.code.isTimeout ? .timedOut : .failed, of: node, error)
        }
        switch head.status {
        case 206: nodes.record(isHit ? .hit : .miss, of: node)
        case _ where Self.misses.contains(head.status): nodes.record(.miss, of: node)
        case 508: nodes.isSelf(node)
        default:
            let error = CacheError(.upstreamRefused(status: head.status), "The node answered with \(head.status).")
            nodes.record(.failed, of: node, error)
        }
    }

    /// The offered bytes, and whether they are all that is wanted; nil: they are not worth a request.
    private func offer(in head: UpstreamHead) -> (range: ByteRange, isWhole: Bool)? {
        // The oldest age of a cache (RFC 9111 §1.2.2).
        let age = min(max(0, head.headers["Age"].flatMap { Int64($0) } ?? 0), 1 << 31)
        guard head.status == 206, nodes.hasApplied(head.headers[PeerNodes.fleetField]),
            question.admits(age: age, at: nodes.wallClock.now()),
            case .run(let run, let length?)? = head.headers["Content-Range"].flatMap(ContentRange.parse)
        else { return nil }
        guard run.lowerBound == question.firstByte(ofLength: length), run.upperBound <= length else { return nil }
        let end: Int64 =
            switch question.window {
            case .closed(let range): min(range.upperBound, length)
            case .whole, .from, .suffix: length
            }
        let isWhole = run.upperBound >= end
        return isWhole || run.length >= Self.leastBytes ? (run, isWhole) : nil
    }
}
