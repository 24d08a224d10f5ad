import CacheCore
import CacheStore
import CacheTracing

/// The end of the attempts and of the fill.
extension FillTransfer {
    /// Ends an attempt. The fill ends with it, unless the attempt had already lost or another attempt may still
    /// succeed.
    func ended(_ end: TransferEnd, of number: Int) {
        let (error, attempt, isLast, status) = state.withLock { state -> (CacheError?, Attempt, Bool, Int?) in
            state.attempts[number].isOver = true
            state.attempts[number].transfer = nil
            let attempt = state.attempts[number]
            let error = attempt.refusal ?? end.error ?? (state.winner == number ? state.shortfall : nil)
            let status = state.head?.status
            guard !state.isOver, state.winner ?? number == number else { return (error, attempt, false, status) }
            let isHopeless = !(attempt.isSkip || attempt.isCancelled || error?.code.isWorthRetrying ?? false)
            let isCarried = !isHopeless && state.attempts.contains { $0.mayCarryOn }
            if !isCarried { state.isOver = true }
            return (error, attempt, !isCarried, status)
        }
        settle(number, attempt.evidence(error, status: status))
        // A hedge that was never sent is not counted.
        if let peer = attempt.peer {
            count(end, error, from: peer, isSkip: attempt.isSkip)
        } else if !attempt.isHedge || attempt.startedAt != nil {
            count(end, error)
        }
        guard isLast else { return }
        stopAttempts()
        finish(error, attempt)
    }

    /// Ends the fill before any request was sent: no address is admissible, or the bytes are no longer wanted.
    func refuse(_ error: CacheError) {
        state.withLock { $0.isOver = true }
        count(TransferEnd(error: error), error)
        finish(error, nil)
    }

    /// Cancels all attempts.
    private func stopAttempts() {
        state.withLock { state in
            for index in state.attempts.indices { state.attempts[index].isCancelled = true }
        }
        syncAttempts()
    }

    /// Counts the end of a transfer in the statistics.
    private func count(_ end: TransferEnd, _ error: CacheError?) {
        context.live.received(end.droppedBytes, of: asset.id)
        let isPrefetch = state.withLock { $0.isPrefetch }
        context.counters.fillEnded(
            origin: asset.target.originName, isPrefetch: isPrefetch, end: end, error: error)
    }

    /// Returns the unused reservation and reports the end of the fill.
    private func finish(_ error: CacheError?, _ attempt: Attempt?) {
        if error == nil { keepPassedBody() }
        let hasProgressed = error != nil && asset.look { [fill] in $0.ledger.hasProgressed(fill) }
        let (rest, failure, failureCount) = state.withLock { state -> (Int64, FillFailure?, Int) in
            defer { state.reservation = 0 }
            guard let error, let attempt else { return (state.reservation, nil, state.failureCount) }
            var previous = retry
            for other in state.attempts where other.isOver && !other.isCancelled && !other.isSkip {
                if let permit = other.permit { previous.failed.insert(permit.address) }
            }
            let failure = FillFailure(
                code: error.code, previous: previous, address: attempt.permit?.address ?? 0,
                addresses: state.addresses.count, isSkip: attempt.isSkip, isOfPeer: attempt.peer != nil,
                hadRange: fillRequest.window != .whole && !state.isPlain,
                wasLeftAlone: attempt.refusal != nil,
                hasProgressed: hasProgressed)
            return (state.reservation, failure, state.failureCount)
        }
        if let brought = state.withLock({ $0.isCountedAtEnd ? $0.broughtBytes : nil }) {
            context.counters.requested(brought, origin: asset.target.originName)
        }
        let (received, bodyTime) = state.withLock { state in
            (state.broughtBytes ?? 0, state.body.map { context.uptime() - $0.startedAt })
        }
        if let bodyTime, !state.withLock({ $0.isOfPeer }) {
            context.upstreamLatencies.transferred(origin: asset.target.originName, bytes: received, in: bodyTime)
        }
        context.fillRegistry.leave(self, bytes: received, error: error?.code)
        endSpan(bytes: received, error)
        context.space.release(rest)
        tell(error, failure.flatMap { next(after: $0, failureCount: failureCount) })
    }

    /// Ends the span of this try.
    private func endSpan(bytes: Int64, _ error: CacheError?) {
        guard let span = trace.span else { return }
        let (status, failureCount) = state.withLock { ($0.head?.status, $0.failureCount) }
        let target = asset.target
        span.describe(target, status: status)
        span.set("larder.bytes", bytes)
        span.set("larder.fill.kind", FillStatus.Kind(fillRequest).rawValue)
        if state.withLock({ $0.isOfPeer }) { span.set("larder.fill.source", "peer") }
        if failureCount > 0 { span.set("http.request.resend_count", failureCount) }
        if let error { span.fail(error.code.name) }
        span.end()
    }

    /// The next try; nil: no further try. A request is repeated at the same address only within the origin's retry
    /// budget, unless bytes arrived.
    ///
    /// - A fill of an item ends instead of waiting as long as a busy server asks for: the item waits without a permit.
    private func next(after failure: FillFailure, failureCount: Int) -> FillRetry? {
        let target = asset.target
        let (limit, isItem) = (target.settings.readTimeout, priority == .prefetch)
        guard let next = failure.retry(within: limit) else { return nil }
        let skipsBudget = next.isPlain || failure.hasProgressed || failure.code == .storageFull || failure.movesOn(next)
        if skipsBudget { return next }
        guard !isItem || next.waited == .zero else { return nil }
        // Beyond the configured retries the asset ends the fill by itself, and no budget is consumed.
        let isLast = !next.isFree && failureCount >= target.settings.retries
        return isLast || context.upstreams.health.takeRetry(target) ? next : nil
    }

    /// Reports the end to the asset; after a 401, as soon as the origin's credentials have been read again.
    private func tell(_ error: CacheError?, _ next: FillRetry?) {
        if state.withLock({ $0.attempts.contains(where: \.isRepeatable) }) { return leave(error, .withNewCredentials) }
        guard case .upstreamRefused(401, _) = error?.code, !retry.hasNewCredentials, next?.skipsPeers != true,
            let credentials = asset.target.settings.credentialsFile
        else { return leave(error, next) }
        context.upstreams.credentials.reread(credentials) { [self] in leave(error, .withNewCredentials) }
    }

    /// Reports the end to the asset and releases the hold on it.
    private func leave(_ error: CacheError?, _ next: FillRetry?) {
        asset.ended(fill, error: error, retry: next)
        // Readers that were referred to a transient generation may still arrive, and nothing else holds it.
        if hasMoved, asset.look({ $0.file?.name == nil }) {
            context.openAssets.release(asset, at: context.uptime() + Self.lingersFor)
        } else {
            context.openAssets.release(asset)
        }
    }

    /// How long a transient generation is held for readers that were referred to it.
    private static let lingersFor = Duration.seconds(2)
}

extension FillTransfer.Attempt {
    /// The evidence about the address that the end of the attempt gives.
    fileprivate func evidence(_ error: CacheError?, status: Int?) -> OriginHealth.Evidence {
        if refusal != nil { return .nothing }
        return isSkip ? .well : error?.evidence ?? OriginHealth.Evidence(status: status ?? 200)
    }

    /// Whether its response may still arrive.
    fileprivate var mayCarryOn: Bool { !isOver && !isCancelled && startedAt != nil }
}

extension FillTransfer.State {
    /// The error of a body that ended early without a transfer error; nil if the body is complete.
    fileprivate var shortfall: CacheError? {
        guard let body, let end = body.end, body.position < end else { return nil }
        return CacheError(.upstreamProtocol, "The upstream ended its response before the announced length.")
    }

    /// The number of body bytes that were stored; nil without a body.
    fileprivate var broughtBytes: Int64? { body.map { $0.position - $0.start } }
}
