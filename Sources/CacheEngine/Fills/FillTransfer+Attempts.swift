import CacheCore
import CacheStore
import Logging

/// Events of the attempts' transfers.
extension FillTransfer {
    /// The attempt has left the queue. If its circuit has opened in the meantime, or the bytes are no longer wanted, it
    /// is not sent, and this throws the reason.
    func started(_ number: Int) throws(CacheError) {
        let now = context.uptime()
        let (attempt, target, isWanted) = state.withLock { state in
            state.attempts[number].startedAt = now
            let isWanted = !state.isOver && state.winner == nil && !state.desired.isCancelled
            return (state.attempts[number], state.target, isWanted && !state.attempts[number].isCancelled)
        }
        guard isWanted, let target else { throw Self.unwanted }
        guard let held = attempt.permit else { return }
        do throws(CacheError) {
            let permit = try context.upstreams.health.readmit(held, of: target)
            state.withLock { $0.attempts[number].receiver = .upstream(permit) }
            if attempt.isHedge, !context.upstreams.health.takeRetry(target) {
                throw CacheError(.cancelled, "The origin's retry budget is exhausted.")
            }
        } catch {
            state.withLock { state in
                state.attempts[number].objection = .unsent(error)
                state.attempts[number].isCancelled = true
                state.attempts[number].startedAt = nil
            }
            throw error
        }
        context.counters.sent(isPrefetch: state.withLock { $0.isPrefetch }, origin: target.originName)
        guard attempt.isHedge else { return hedge(target) }
        context.counters.fillHedged(origin: target.originName)
    }

    /// Queues the same request as a hedge, at another address if there is one. It waits until the first byte counts as
    /// late. If the first byte comes before that, the hedge is cancelled and never sent.
    private func hedge(_ target: AssetTarget) {
        let (addresses, priority, attempts) = state.withLock { ($0.addresses, $0.desired.priority, $0.attempts.count) }
        guard attempts == 1, fillRequest.mayBeHedged, priority != .prefetch,
            let delay = context.upstreams.health.hedgeDelay(target)
        else {
            return
        }
        // Without an admissible address there is no hedge.
        let permit = try? context.upstreams.health.admit(
            target, of: addresses.count, from: 1 % addresses.count, without: retry.skipped,
            failing: context.upstreams.failing(addresses), mayProbe: false)
        if let permit { send(permit, to: addresses[permit.address], delay: delay, isHedge: true) }
    }

    /// Judges the first response head. Heads of other attempts are refused during the judgement and after it.
    func began(_ head: UpstreamHead, of number: Int) -> HeadVerdict {
        if !isOfPeer(number) {
            noteLatency(of: number)
            noteRegion(head, of: number)
        }
        let attempt = state.withLock { state -> Attempt? in
            guard !state.isOver, case .awaited = state.response else {
                state.attempts[number].isCancelled = true
                return nil
            }
            state.response = .judging(number)
            state.head = head
            return state.attempts[number]
        }
        guard let attempt else { return .refuse(Self.lost) }
        if isRepeatable(after: head) {
            state.withLock { state in
                state.response = .awaited
                state.attempts[number].objection = .credentials
            }
            return .refuse(
                CacheError(
                    .upstreamRefused(status: head.status), "The upstream refused the credentials or the link."))
        }
        do throws(CacheError) {
            // Other nodes answer with parts only.
            if attempt.peer != nil, head.status != 206 {
                throw CacheError(.upstreamRefused(status: head.status), "The node answered with \(head.status).")
            }
            let source: OpenAsset.Source =
                attempt.permit.map { $0.address > 0 ? .mirror : .origin } ?? .peer
            switch try asset.judge(head, for: self, from: source) {
            case .bytes(let range, let file):
                return accept(range, into: file, from: number)
            case .moved(let location, let range, let file):
                move(to: location)
                return accept(range, into: file, from: number)
            case .nothing:
                if attempt.peer == nil { observe(head) }
                win(number, with: nil)
                return .enough
            case .skip(let error):
                complain(error, of: attempt)
                state.withLock { state in
                    state.response = .awaited
                    state.attempts[number].objection = .untrusted
                }
                return .refuse(error)
            }
        } catch {
            let (target, access) = state.withLock { state in
                state.response = .awaited
                return (state.target, state.access)
            }
            guard case .upstreamRefused = error.code, let target, let access else { return .refuse(error) }
            return .refuse(context.upstreams.accounts.refusal(access, of: target, after: head) ?? error)
        }
    }

    /// Whether the request is repeated with other credentials or another link. This happens once in a row.
    private func isRepeatable(after head: UpstreamHead) -> Bool {
        guard !retry.hasNewCredentials,
            let (target, access) = state.withLock({ state in
                state.target.flatMap { target in state.access.map { (target, $0) } }
            })
        else { return false }
        return context.upstreams.accounts.isRepeatable(access, of: target, after: head)
    }

    /// Accepts a body and returns its destination and limits.
    private func accept(_ range: ByteRange, into file: SparseFile, from number: Int) -> HeadVerdict {
        let (answered, target) = state.withLock { ($0.head, $0.target) }
        let isOfPeer = isOfPeer(number)
        if !isOfPeer, let answered, let target {
            context.upstreams.accounts.learn(answered, of: target)
            observe(answered)
        }
        win(number, with: body(range, file))
        let isOpen = range.upperBound == .max
        if isOfPeer {
            // The upstream is not asked for these bytes.
        } else if !isOpen, state.withLock({ $0.desired.allowance == .max }) {
            context.counters.requested(range.length, origin: asset.target.originName)
        } else {
            state.withLock { $0.isCountedAtEnd = true }
        }
        // The limits are part of the verdict: the transfer may not be registered here yet, and its first bytes follow
        // immediately.
        let (end, allowance) = state.withLock { ($0.body?.end, $0.desired.allowance) }
        let first = range.lowerBound
        return .store(
            into: FileSink(file: file, offset: first, headObserver: asset.indexAnticipation),
            limit: end.map { $0 - first },
            allowance: allowance < .max ? max(0, allowance - first) : .max)
    }

    /// Records how the upstream handles ranges of the asset, according to an accepted response.
    private func observe(_ head: UpstreamHead) {
        let target = asset.target
        guard (200..<300).contains(head.status), asset.record?.generation.passedStatus == nil else { return }
        context.upstreams.health.stored(target)
        if head.status == 206 { return context.upstreams.health.supportsRanges(target) }
        if let refusal = retry.rangeRefusal {
            let text =
                if case .upstreamRefused(let status, _) = refusal { "Status \(status)" } else { "No usable range" }
            let evidence = "\(text) for a request with Range, \(head.status) for the same request without it."
            context.upstreams.health.observed(.rangesRefused, of: target, evidence: evidence)
        } else if asset.isWithoutRanges {
            context.upstreams.health.observed(
                .rangesIgnored, of: target, evidence: "Status \(head.status) and the whole body.")
        }
    }

    /// Records a redirect to the region of a bucket that has led to content.
    private func noteRegion(_ head: UpstreamHead, of number: Int) {
        guard head.redirects > 0, head.status < 400 else { return }
        let (target, url) = state.withLock { state in
            (state.target, state.addresses.dropFirst(state.attempts[number].permit?.address ?? 0).first)
        }
        if let target, let url { context.upstreams.health.redirected(head, of: target, from: url) }
    }

    private static let lost = CacheError(.cancelled, "The other request of this fill was answered first.")

    /// Records the time to the response head, for the delay of hedges.
    private func noteLatency(of number: Int) {
        let (target, startedAt) = state.withLock { ($0.target, $0.attempts[number].startedAt) }
        guard let target, let startedAt else { return }
        let time = context.uptime() - startedAt
        context.upstreams.health.answered(target, after: time)
        context.upstreamLatencies.answered(origin: target.originName, after: time)
    }

    /// The state of an accepted body before its first byte.
    private func body(_ range: ByteRange, _ file: SparseFile) -> Body {
        Body(
            file: file, start: range.lowerBound, end: range.upperBound == .max ? nil : range.upperBound,
            position: range.lowerBound, startedAt: context.uptime())
    }

    /// Makes an attempt the winner and cancels the other one.
    private func win(_ number: Int, with body: Body?) {
        let now = context.uptime()
        let (target, loser, isHedge) = state.withLock { state -> (AssetTarget?, Duration?, Bool) in
            state.response = .accepted(number, body)
            state.desired.start = body?.start
            if let end = state.desired.end { state.changeBody { $0.end(at: end) } }
            for index in state.attempts.indices where index != number { state.attempts[index].isCancelled = true }
            return (state.target, state.attempts[0].startedAt, state.attempts[number].isHedge)
        }
        syncAttempts()
        guard isHedge, let target else { return }
        context.counters.hedgeWon(origin: target.originName)
        // The loser would have taken even longer. Without its time, slow responses would be missing from the
        // percentile.
        if let loser { context.upstreams.health.answered(target, after: now - loser) }
    }

    /// Logs that a mirror's response is not trusted, at most once a minute for each origin.
    private func complain(_ error: CacheError, of attempt: Attempt) {
        guard let permit = attempt.permit, let target = state.withLock({ $0.target }),
            context.upstreams.health.mayComplain(target)
        else { return }
        context.logger.warning(
            "a mirror's content differs from its origin's; the mirror's response was discarded",
            metadata: [
                "origin": "\(target.originName)", "mirror": "\(permit.base)", "asset": "\(target.id)",
                "error": "\(error.message)",
            ])
    }

    /// Records body bytes that the winner has stored; `total`: since the start of the body.
    func progressed(to total: Int64, of number: Int) {
        let now = context.uptime()
        let arrival = state.withLock { state -> (range: ByteRange, end: Int64?, file: SparseFile, released: Int64)? in
            guard state.winner == number, let body = state.body, body.start + total > body.position else { return nil }
            let range = body.position..<(body.start + total)
            state.changeBody { $0.position = range.upperBound }
            state.meter.note(total, at: now)
            let released = min(state.reservation, range.length)
            state.reservation -= released
            return (range, body.end, body.file, released)
        }
        guard let arrival else { return }
        if arrival.range.upperBound == arrival.end { keepPassedBody() }
        if isOfPeer(number) {
            asset.broughtByPeer(arrival.range)
        } else {
            context.live.received(arrival.range.length, of: asset.id)
        }
        settle(number, OriginHealth.Evidence(status: state.withLock { $0.head?.status ?? 200 }))
        asset.arrived(arrival.range, in: arrival.file, by: fill)
        context.space.release(arrival.released)
    }

    /// Adds the complete body of a refusal that is passed on to the negative cache. This happens before its readers get
    /// the last byte, so that their next request finds it.
    func keepPassedBody() {
        let (status, body) = state.withLock { ($0.head?.status ?? 0, $0.body) }
        guard status >= 400, let body, body.start == 0, let generation = asset.record?.generation,
            generation.passedStatus == status
        else { return }
        context.refusals.complete(asset.id, receivedAt: generation.receivedAt, with: body.keptBytes)
    }

    /// Reports the attempt's evidence about its address to `OriginHealth`, once.
    func settle(_ number: Int, _ evidence: OriginHealth.Evidence) {
        let (permit, settings) = state.withLock { state -> (OriginHealth.Permit?, OriginSettings.CircuitBreaker?) in
            guard !state.attempts[number].isSettled else { return (nil, nil) }
            state.attempts[number].isSettled = true
            return (state.attempts[number].permit, state.target?.settings.circuitBreaker)
        }
        if let permit { context.upstreams.health.settle(permit, evidence, by: settings) }
    }
}

extension FillTransfer.Body {
    /// The bytes of a body that the negative cache stores; nil if they are too many or cannot be read.
    fileprivate var keptBytes: [UInt8]? {
        guard position <= NegativeCache.PassedResponse.maxBytes else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(position))
        // Without its body the refusal is repeated with a problem document.
        let count = try? bytes.withUnsafeMutableBytes { bytes throws(CacheError) in try file.read(into: bytes, at: 0) }
        return count == bytes.count ? bytes : nil
    }
}
