import CacheCore
import CacheStore
import Logging
import Synchronization

/// What its legs tell.
extension FillTransfer {
    /// The leg has left the queue. While it waited the circuit may have opened, or the bytes have become unwanted: it is
    /// not sent then.
    func started(_ number: Int) throws(CacheError) {
        let now = context.uptime()
        let (leg, target, isWanted) = state.withLock { state in
            state.legs[number].startedAt = now
            let isWanted = !state.isOver && state.winner == nil && !state.wishes.isCancelled
            return (state.legs[number], state.target, isWanted && !state.legs[number].isCancelled)
        }
        guard isWanted, let target else { throw Self.unwanted }
        do throws(CacheError) {
            let permit = try context.health.readmit(leg.permit, of: target)
            state.withLock { $0.legs[number].permit = permit }
            if leg.isHedge, !context.health.takeRetry(target) {
                throw CacheError(.cancelled, "The origin's budget for second requests is spent.")
            }
        } catch {
            state.withLock { state in
                state.legs[number].refusal = error
                state.legs[number].isCancelled = true
                state.legs[number].startedAt = nil
            }
            throw error
        }
        context.counters.sent(isPrefetch: state.withLock { $0.isPrefetch }, origin: target.originName)
        guard leg.isHedge else { return hedge(target) }
        context.counters.fillHedged(origin: target.originName)
    }

    /// Queues the same request again, to another address where there is one, for when the first byte is late: if it comes
    /// in time, the second leg is cancelled before it is sent.
    private func hedge(_ target: AssetTarget) {
        let (addresses, priority, legs) = state.withLock { ($0.addresses, $0.wishes.priority, $0.legs.count) }
        guard legs == 1, wish.mayBeHedged, priority != .prefetch, let delay = context.health.hedgeDelay(target) else {
            return
        }
        // Where no address may be asked there is no hedge.
        let permit = try? context.health.admit(
            target, of: addresses.count, from: 1 % addresses.count, without: retry.skipped, mayProbe: false)
        if let permit { send(permit, to: addresses[permit.address], delay: delay, isHedge: true) }
    }

    /// The first head that comes is judged; while it is, no other one is.
    func began(_ head: UpstreamHead, of number: Int) -> HeadVerdict {
        noteLatency(of: number)
        let leg = state.withLock { state -> Leg? in
            guard !state.isOver, state.winner == nil, state.judging == nil else {
                state.legs[number].isCancelled = true
                return nil
            }
            state.judging = number
            state.head = head
            return state.legs[number]
        }
        guard let leg else { return .refuse(Self.lost) }
        do {
            let isMirror = leg.permit.address > 0
            switch try asset.judge(head, for: self, isMirror: isMirror) {
            case .bytes(let range, let file):
                return take(range, into: file, from: number)
            case .moved(let place, let range, let file):
                move(to: place)
                return take(range, into: file, from: number)
            case .nothing:
                win(number, with: nil)
                return .enough
            case .skip(let error):
                complain(error, of: leg)
                state.withLock { state in
                    state.judging = nil
                    state.legs[number].isSkip = true
                }
                return .refuse(error)
            }
        } catch {
            state.withLock { $0.judging = nil }
            return .refuse(error)
        }
    }

    private func take(_ range: ByteRange, into file: SparseFile, from number: Int) -> HeadVerdict {
        if retry.isPlain { context.health.refusedRange(asset.target) }
        win(number, with: body(range, file))
        let isOpen = range.upperBound == .max
        if !isOpen, state.withLock({ $0.wishes.allowance == .max }) {
            context.counters.requested(range.length, origin: asset.target.originName)
        } else {
            state.withLock { $0.isCountedAtEnd = true }
        }
        // With the verdict: the transfer may not be known here yet, and its first bytes come at once.
        let (end, allowance) = state.withLock { ($0.body?.end, $0.wishes.allowance) }
        let first = range.lowerBound
        return .store(
            into: FileSink(file: file, offset: first), limit: end.map { $0 - first },
            allowance: allowance < .max ? max(0, allowance - first) : .max)
    }

    private static let lost = CacheError(.cancelled, "The other request was answered first.")

    private func noteLatency(of number: Int) {
        let (target, startedAt) = state.withLock { ($0.target, $0.legs[number].startedAt) }
        guard let target, let startedAt else { return }
        context.health.answered(target, after: context.uptime() - startedAt)
    }

    private func body(_ range: ByteRange, _ file: SparseFile) -> Body {
        let known = asset.look { $0.ledger.extents.run(containing: range.lowerBound)?.upperBound }
        return Body(
            file: file, start: range.lowerBound, end: range.upperBound == .max ? nil : range.upperBound,
            known: known ?? range.lowerBound, position: range.lowerBound)
    }

    private func win(_ number: Int, with body: Body?) {
        let now = context.uptime()
        let (target, loser, isHedge) = state.withLock { state -> (AssetTarget?, Duration?, Bool) in
            state.judging = nil
            state.winner = number
            state.body = body
            state.wishes.start = body?.start
            if let end = state.wishes.end { state.body?.end(at: end) }
            for index in state.legs.indices where index != number { state.legs[index].isCancelled = true }
            return (state.target, state.legs[0].startedAt, state.legs[number].isHedge)
        }
        tellLegs()
        guard isHedge, let target else { return }
        context.counters.hedgeWon(origin: target.originName)
        // The one that lost would have taken longer still: left out, slow answers would never show in the percentile.
        if let loser { context.health.answered(target, after: now - loser) }
    }

    private func complain(_ error: CacheError, of leg: Leg) {
        guard let target = state.withLock({ $0.target }), context.health.mayComplain(target) else { return }
        context.logger.warning(
            "a mirror has something else than its origin",
            metadata: [
                "origin": "\(target.originName)", "mirror": "\(leg.permit.base)", "asset": "\(target.id)",
                "error": "\(error.message)",
            ])
    }

    func progressed(to total: Int64, of number: Int) {
        let now = context.uptime()
        let arrival = state.withLock { state -> (range: ByteRange, file: SparseFile, released: Int64)? in
            guard state.winner == number, var body = state.body, body.start + total > body.position else { return nil }
            let range = body.position..<(body.start + total)
            body.position = range.upperBound
            state.body = body
            state.meter.note(total, at: now)
            let released = min(state.reservation, range.length)
            state.reservation -= released
            return (range, body.file, released)
        }
        guard let arrival else { return }
        settle(number, OriginHealth.Showing(status: state.withLock { $0.head?.status ?? 200 }))
        asset.arrived(arrival.range, in: arrival.file, by: fill)
        context.space.release(arrival.released)
    }

    /// Tells, once, what the leg showed of its address.
    func settle(_ number: Int, _ showing: OriginHealth.Showing) {
        let (permit, settings) = state.withLock { state -> (OriginHealth.Permit?, OriginSettings.CircuitBreaker?) in
            guard !state.legs[number].isSettled else { return (nil, nil) }
            state.legs[number].isSettled = true
            return (state.legs[number].permit, state.target?.settings.circuitBreaker)
        }
        if let permit { context.health.settle(permit, showing, by: settings) }
    }
}
