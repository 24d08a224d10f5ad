import CacheCore

/// Fills from other nodes of the fleet: before the upstream is asked, its bytes may be near.
extension FillTransfer {
    /// Asks the other nodes for the bytes, then requests them from one of these or from the upstream.
    func askPeers() { askPeers(rounds: 3) }

    private func askPeers(rounds: Int) {
        guard let question = peerQuestion else { return launch() }
        state.withLock { $0.source = .asking }
        context.peers.ask(question) { [self] answer in
            switch answer {
            case .bytes(let range, of: let node): send(for: range, of: question, to: node)
            case .coming(let node) where !retry.isAgain: send(for: nil, of: question, to: node)
            case .coming: launch()
            case .nothing(let next):
                // At once, or a node that asks in between would be told that nothing comes.
                let asksAgain = state.withLock { state in
                    state.peerLimit = next.flatMap(limit)
                    let asksAgain = state.hasDeferred && rounds > 1
                    state.hasDeferred = false
                    if !asksAgain { state.source = .upstream }
                    return asksAgain
                }
                if asksAgain { askPeers(rounds: rounds - 1) } else { launch() }
            }
        }
    }

    /// Whether an attempt asks another node.
    func isOfPeer(_ number: Int) -> Bool { state.withLock { $0.attempts[number].peer != nil } }

    /// The question to the other nodes; nil: only the upstream can answer. They are not asked
    ///
    /// - for a confirmation, a whole body, or a generation whose bytes cannot be combined,
    /// - for an asset of readers' fields or one that is not stored.
    private var peerQuestion: PeerQuestion? {
        let target = target
        guard !retry.skipsPeers, !retry.isPlain, target.settings.forwarded.isEmpty, !target.isReadersOwn,
            !target.storesNothing, context.peers.isEnabled
        else { return nil }
        var question = PeerQuestion(
            asset: asset.id, window: fillRequest.window, conditions: [:], isEncrypted: target.settings.isEncrypted)
        switch fillRequest {
        case .confirmation, .whole: return nil
        case .opening:
            question.purgedAt = context.peers.lastPurge(of: target.originName)
            return question.window == .whole ? nil : question
        case .window:
            guard let validators = asset.record?.generation.validators, validators.strong != nil else { return nil }
            if let tag = validators.entityTag {
                question.conditions = ["If-Match": tag.description]
            } else if let date = validators.lastModified {
                question.conditions = ["If-Unmodified-Since": date]
            }
            return question
        }
    }

    /// The end of the request to the upstream if another node has the bytes from `next` on; nil: the part before it is too
    /// small for a request of its own.
    private func limit(_ next: Int64) -> Int64? {
        guard let first = fillRequest.window.firstByte, next - first >= PeerInquiry.leastBytes else { return nil }
        return next
    }

    /// Whether the bytes are about to be requested from the upstream, so that the node `name` need not do it too.
    ///
    /// Nodes that ask each other at the same moment would all go on to the upstream. Therefore the one whose name is first in
    /// order does, and the others wait for it. One that has left the request to another node in this way asks again, because
    /// that node may have answered before it began. Each node waits for one in order before it, or for one that asks the
    /// upstream, so that nobody waits in a circle.
    func comes(before name: String) -> Bool {
        state.withLock { state in
            guard !state.isPlain, !state.isOver, !state.desired.isCancelled else { return false }
            // A queued request too: transfers from nodes leave half of the permits (``PeerSettings/maxTransfers``).
            guard state.source != .upstream else { return true }
            let isFirst = context.upstreams.loopName < name
            state.hasDeferred = state.hasDeferred || !isFirst && state.source != .peer
            return isFirst
        }
    }

    private func send(for range: ByteRange?, of question: PeerQuestion, to node: String) {
        let target = target
        let (number, isCancelled, priority, slack) = state.withLock { state in
            (state.target, state.source) = (target, .peer)
            return (state.add(to: .peer(node)), state.desired.isCancelled, state.desired.priority, state.slack)
        }
        guard !isCancelled else { return refuse(Self.unwanted) }
        var request = context.peers.request(
            for: range, of: question, from: node, timeouts: target.settings.timeouts)
        (request.priority, request.slack) = (priority, slack)
        target.propagate(trace.context, in: &request.headers)
        start(request, as: number)
    }

    /// Counts the end of a transfer from another node. After one with few bytes or too late, the node is not asked for some
    /// seconds; otherwise the transfer that it forwarded may have broken, or what it was about to get is not shared.
    func count(_ end: TransferEnd, _ error: CacheError?, from node: String, isSkip: Bool) {
        let hasFailed = error != nil && error?.code != .cancelled
        context.counters.peerFillEnded(origin: asset.target.originName, end: end, hasFailed: hasFailed)
        guard let error, hasFailed, !isSkip, !error.isLocal, error.code != .storageFull,
            end.storedBytes < PeerInquiry.leastBytes || error.code.isTimeout
        else { return }
        if case .upstreamRefused(let status, _) = error.code, PeerInquiry.misses.contains(status) { return }
        context.peers.failed(node, error)
    }
}

extension FillTransfer.State {
    /// Whether the bytes come from another node.
    var isOfPeer: Bool { source == .peer }
}
