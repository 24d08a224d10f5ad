import CacheCore
import CacheStore

/// How the next generation takes its place.
extension OpenAsset {
    /// The upstream has another representation, and the answer holds `body` of it. Where there are readers, the transfer
    /// goes on as the first one of the new generation, so that nothing is requested twice (RFC 9111 §4.3.3).
    ///
    /// Throws `.assetChanged` where the bytes are of no use.
    func succeed(
        _ generation: Generation, _ body: ByteRange?, _ answer: Answer
    ) throws(CacheError) -> Ruling {
        let isSequential = isContradiction(generation, answer)
        if let body, let ruling = try carry(body, of: generation, isSequential: isSequential, answer) { return ruling }
        guard generation.passedStatus == nil else {
            throw CacheError(.upstreamUnusable(), "The upstream answered with a response that cannot be stored.")
        }
        context.openAssets.supersede(self, by: generation, isSequential: isSequential)
        throw Self.changed
    }

    private static let changed = CacheError(.assetChanged, "The upstream's bytes changed.")

    /// Whether two answers within a minute do not belong together, although each says that it can be continued: nodes behind
    /// one name that tag the same bytes differently. Only one transfer brings all bytes from one of them.
    private func isContradiction(_ found: Generation, _ answer: Answer) -> Bool {
        let (known, isSequential) = look { ($0.record?.generation, $0.isSequential) }
        guard let known, found.receivedAt.since(known.receivedAt) < .seconds(60) else { return false }
        return answer.wish.place != nil || isSequential
    }

    /// Nil where there is no reader, or the body is of no use.
    func carry(
        _ body: ByteRange, of generation: Generation, isSequential: Bool, _ answer: Answer
    ) throws(CacheError) -> Ruling? {
        let (target, known, hasReaders) = look { state in
            (state.target, state.record, state.ending == nil && state.ledger.hasReaders)
        }
        let isJoinable = !isSequential && generation.isJoinable(trusting: target.settings.trustValidators)
        let isWhole = body.lowerBound == 0 && body.upperBound == generation.length ?? .max
        // Over HTTP/2 a long transfer cannot rest until its readers come after it.
        let isTooLong = answer.isMultiplexed && !isJoinable && generation.length ?? 0 > Generation.longTransferBytes
        guard var record = known, hasReaders, isWhole || isJoinable, !isTooLong else { return nil }
        record.generation = generation
        record.generation.number = max(generation.number, (known?.generation.number ?? 0) + 1)
        record.url = target.url
        let file = try makeFile(for: record.generation)
        let next = OpenAsset(
            target: target, record: record, extents: ByteRangeSet(), file: file, isSequential: isSequential,
            context: context)
        let place = next.take(isWhole ? .whole : .window(body), bringing: body, answer, from: self)
        let isPrefetched = look { $0.ledger.isPrefetched && $0.ledger.isComplete } && record.generation.isStorable
        if isPrefetched { next.follow(self) }
        // A response that is passed on says nothing of the stored one, and a prefetch may fail before its end: it stays.
        if generation.passedStatus != nil || isPrefetched {
            context.openAssets.retain(next)
            hand(answer.fill, to: next, Self.changed)
            return .moved(place, body, file)
        }
        guard context.openAssets.supersede(self, by: next) else {
            context.commits.abandon(file)
            return nil
        }
        context.refusals.forget(id)
        retire(Self.changed, for: next, without: answer.fill)
        return .moved(place, body, file)
    }

    /// Nothing of it is counted or in the catalog until it takes the place of `former`.
    private func follow(_ former: OpenAsset) {
        change { state in
            state.former = former
            state.isDisowned = true
            return ((), [])
        }
    }

    /// Takes the place of the asset that it was prefetched for, if it has not yet; answers false where that is gone.
    func takePlace() -> Bool {
        let (former, isWaiting) = look { ($0.former, $0.former != nil || $0.isDisowned && $0.ending == nil) }
        guard isWaiting else { return true }
        guard let former, context.openAssets.promote(self, over: former) else { return false }
        former.retire(Self.changed, for: self)
        change { state in
            (state.former, state.isDisowned) = (nil, false)
            if let file = state.file { context.commits.grew(file, state.ledger.extents.runs.flatMap(file.kept)) }
            return ((), [])
        }
        count(lastUse: context.wallClock.now())
        return true
    }

    /// Gives up what was to take another asset's place.
    func abandon() {
        guard let file = look({ $0.former == nil ? nil : $0.file }) else { return }
        context.commits.abandon(file)
    }

    /// Takes in the transfer of an answer that `former` got; no reader is here yet.
    private func take(
        _ wish: FillLedger.Wish, bringing body: ByteRange, _ answer: Answer, from former: OpenAsset
    ) -> FillPlace {
        let isSpeculative = former.look { $0.ledger.isSpeculative(answer.fill) }
        let fill = change { state in
            let (fill, actions) = state.ledger.carry(
                wish, window: body, priority: answer.transfer.priority, isSpeculative: isSpeculative,
                isMultiplexed: answer.isMultiplexed)
            state.fills[fill] = answer.transfer
            state.upstreamStatus = answer.head.status
            return (fill, actions)
        }
        return FillPlace(asset: self, fill: fill, wish: wish)
    }
}
