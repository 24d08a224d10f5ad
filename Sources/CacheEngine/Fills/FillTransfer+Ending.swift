import CacheCore
import CacheStore
import Synchronization

/// How it comes to its end.
extension FillTransfer {
    /// A leg is over; the fill is with it, unless the leg had lost, or the other one may still bring what it did not.
    func ended(_ end: TransferEnd, of number: Int) {
        let (error, leg, isLast, status) = state.withLock { state -> (CacheError?, Leg, Bool, Int?) in
            state.legs[number].isOver = true
            state.legs[number].transfer = nil
            let leg = state.legs[number]
            let error = leg.refusal ?? end.error ?? (state.winner == number ? state.shortfall : nil)
            let status = state.head?.status
            guard !state.isOver, state.winner ?? number == number else { return (error, leg, false, status) }
            let isHopeless = !(leg.isSkip || leg.isCancelled || error?.code.isWorthRetrying ?? false)
            let isCarried = !isHopeless && state.legs.contains { $0.mayCarryOn }
            if !isCarried { state.isOver = true }
            return (error, leg, !isCarried, status)
        }
        settle(number, leg.showing(error, status: status))
        // A hedge that was never sent is nothing that happened.
        if !leg.isHedge || leg.startedAt != nil { count(end, error) }
        guard isLast else { return }
        stopLegs()
        finish(error, leg)
    }

    /// No address may be asked, or nobody wants the bytes: nothing was sent.
    func refuse(_ error: CacheError) {
        state.withLock { $0.isOver = true }
        count(TransferEnd(error: error), error)
        finish(error, nil)
    }

    private func stopLegs() {
        state.withLock { state in
            for index in state.legs.indices { state.legs[index].isCancelled = true }
        }
        tellLegs()
    }

    private func count(_ end: TransferEnd, _ error: CacheError?) {
        let isPrefetch = state.withLock { $0.isPrefetch }
        context.counters.fillEnded(
            origin: asset.target.originName, isPrefetch: isPrefetch, end: end, error: error)
    }

    private func finish(_ error: CacheError?, _ leg: Leg?) {
        let (rest, failure, attempt) = state.withLock { state -> (Int64, FillFailure?, Int) in
            defer { state.reservation = 0 }
            guard let error, let leg else { return (state.reservation, nil, state.attempt) }
            var previous = retry
            for other in state.legs where other.isOver && !other.isCancelled && !other.isSkip {
                previous.failed.insert(other.permit.address)
            }
            let failure = FillFailure(
                code: error.code, previous: previous, address: leg.permit.address, addresses: state.addresses.count,
                isSkip: leg.isSkip, hadRange: wish.window != .whole && !state.isPlain, wasLeftAlone: leg.refusal != nil,
                hasProgressed: state.hasProgressed)
            return (state.reservation, failure, state.attempt)
        }
        if let brought = state.withLock({ $0.isCountedAtEnd ? $0.broughtBytes : nil }) {
            context.counters.requested(brought, origin: asset.target.originName)
        }
        context.fillBook.leave(self)
        context.space.release(rest)
        tell(error, failure.flatMap { next(after: $0, attempt: attempt) })
    }

    /// How the fill goes on; nil: not at all. Asking an address again needs the origin's budget, but where bytes came.
    private func next(after failure: FillFailure, attempt: Int) -> FillRetry? {
        let target = asset.target
        guard let next = failure.retry(within: target.settings.readTimeout) else { return nil }
        let isPaid = next.isPlain || failure.hasProgressed || failure.code == .storageFull || failure.movesOn(next)
        // The asset gives up by itself where the tries are spent: those cost no budget.
        guard !isPaid, next.isFree || attempt < target.settings.retries else { return next }
        return context.health.takeRetry(target) ? next : nil
    }

    /// Tells the asset how it ended; after a 401 only when the origin's credentials have been read again.
    private func tell(_ error: CacheError?, _ next: FillRetry?) {
        guard case .upstreamRefused(401, _) = error?.code, !retry.hasNewCredentials,
            let credentials = asset.target.settings.credentialsFile
        else { return leave(error, next) }
        context.credentials.reread(credentials) { [self] in leave(error, .withNewCredentials) }
    }

    private func leave(_ error: CacheError?, _ next: FillRetry?) {
        asset.ended(fill, error: error, retry: next)
        // Readers that were told of a generation that nobody else holds are still to come.
        if hasMoved, asset.look({ $0.file?.name == nil }) {
            context.openAssets.release(asset, at: context.uptime() + Self.lingersFor)
        } else {
            context.openAssets.release(asset)
        }
    }

    private static let lingersFor = Duration.seconds(2)
}

extension FillTransfer.Leg {
    /// What it showed of its address by ending so.
    fileprivate func showing(_ error: CacheError?, status: Int?) -> OriginHealth.Showing {
        if refusal != nil { return .nothing }
        return isSkip ? .well : error?.code.showing ?? OriginHealth.Showing(status: status ?? 200)
    }

    /// Whether its answer may still come.
    fileprivate var mayCarryOn: Bool { !isOver && !isCancelled && startedAt != nil }
}

extension FillTransfer.State {
    /// What is wrong with a body that ended in good order.
    fileprivate var shortfall: CacheError? {
        guard let body, let end = body.end, body.position < end else { return nil }
        return CacheError(.upstreamProtocol, "The upstream ended its answer before the promised length.")
    }

    fileprivate var broughtBytes: Int64? { body.map { $0.position - $0.start } }

    /// Whether it brought enough that was not there for earlier failures to be forgotten.
    fileprivate var hasProgressed: Bool {
        guard let body else { return false }
        let progress = body.position - max(body.known, body.start)
        let window = body.end.map { $0 - body.start } ?? .max
        return progress > 0 && progress >= min(32 << 10, window / 16)
    }
}
