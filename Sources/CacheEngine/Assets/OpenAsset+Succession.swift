import CacheCore
import CacheStore

/// Replacement of the asset by its next generation.
extension OpenAsset {
    /// Handles a response of another representation; `body` is its range. If there are readers, the transfer continues
    /// as the first fill of the new generation, so that nothing is requested twice (RFC 9111 §4.3.3).
    ///
    /// Throws `.assetChanged` if the body cannot be used, and `.upstreamUnusable` for a response that is never stored.
    func succeed(
        _ generation: Generation, _ body: ByteRange?, _ answer: Answer
    ) throws(CacheError) -> FillDecision {
        let isSequential = isContradiction(generation, answer)
        if let known = record?.generation, generation.contradicts(known) {
            defer { distrust() }
            return try passOn(generation, body, answer)
        }
        if let body, let ruling = try carry(body, of: generation, isSequential: isSequential, answer) { return ruling }
        guard generation.passedStatus == nil else {
            throw CacheError(.upstreamUnusable(), "The upstream answered with a response that cannot be stored.")
        }
        context.openAssets.supersede(self, by: generation, isSequential: isSequential)
        throw Self.changed
    }

    /// Passes on a response that is shorter than this generation and has its strong validator. The generation stays.
    private func passOn(
        _ generation: Generation, _ body: ByteRange?, _ answer: Answer
    ) throws(CacheError) -> FillDecision {
        if let body, let ruling = try carry(body, of: generation, isSequential: false, answer) { return ruling }
        throw CacheError(.upstreamProtocol, "The upstream sent fewer bytes than the ETag of the response stands for.")
    }

    /// Requires a confirmation of the generation before its next use. If bytes are missing, one transfer must bring them
    /// all: a reader then gets its head from the response to that transfer.
    private func distrust() {
        change { state in
            state.record?.generation.freshUntil = nil
            if !state.ledger.isComplete {
                state.isSequential = true
                state.ledger.distrust()
            }
            refreshRow(state)
            return ((), [])
        }
    }

    private static let changed = CacheError(.assetChanged, "The upstream's bytes changed.")

    /// Whether two responses within a minute do not belong together, although each claims to be continuable. The cause
    /// is several nodes behind one name that tag the same bytes differently. Only a single transfer gets all bytes from
    /// one node.
    private func isContradiction(_ found: Generation, _ answer: Answer) -> Bool {
        let (known, isSequential) = look { ($0.record?.generation, $0.isSequential) }
        guard let known, found.receivedAt.since(known.receivedAt) < .seconds(60) else { return false }
        return answer.fillRequest.offset != nil || isSequential
    }

    /// Continues the transfer in an asset of `generation`. Returns nil if there is no reader or the body cannot be
    /// used.
    func carry(
        _ body: ByteRange, of generation: Generation, isSequential: Bool, _ answer: Answer
    ) throws(CacheError) -> FillDecision? {
        let (target, known, hasReaders) = look { state in
            (state.target, state.record, state.ending == nil && state.ledger.hasReaders)
        }
        let isJoinable = !isSequential && generation.isJoinable(trusting: target.settings.trustValidators)
        let isWhole = body.lowerBound == 0 && body.upperBound == generation.length ?? .max
        // A long HTTP/2 transfer cannot be paused for its readers.
        let isTooLong = answer.isMultiplexed && !isJoinable && generation.length ?? 0 > Generation.longTransferBytes
        guard var record = known, hasReaders, isWhole || isJoinable, !isTooLong else { return nil }
        record.generation = generation
        record.generation.number = max(generation.number, (known?.generation.number ?? 0) + 1)
        record.url = target.url
        let file = try makeFile(for: record.generation)
        let next = OpenAsset(
            target: target, record: record, extents: ByteRangeSet(), file: file, isSequential: isSequential,
            describedAt: context.uptime(), context: context)
        let location = next.receive(isWhole ? .whole : .window(body), bringing: body, answer, from: self)
        let isPrefetched = look { $0.ledger.isPrefetched && $0.ledger.isComplete } && record.generation.isStorable
        if isPrefetched { next.follow(self) }
        // An error response that is passed on does not replace the stored one, and a prefetch may fail before its end.
        // The stored asset stays.
        if generation.passedStatus != nil || isPrefetched {
            context.openAssets.retain(next)
            hand(answer.fill, to: next, Self.changed)
            return .moved(location, body, file)
        }
        guard context.openAssets.supersede(self, by: next) else {
            context.commits.abandon(file)
            return nil
        }
        context.refusals.forget(id)
        stopFetching(Self.changed, for: next, without: answer.fill)
        return .moved(location, body, file)
    }

    /// Defers the replacement of `former`: until `takePlace`, this asset is neither counted nor in the catalog.
    func follow(_ former: OpenAsset) {
        change { state in
            state.row = .deferred(Row.Former(asset: former))
            return ((), [])
        }
    }

    /// Replaces the asset that this prefetch is deferred for, if that is still to be done. Returns false if that asset
    /// is gone, or if some of the bytes must not be stored. `lastUse`: the last use of the asset; nil: now.
    /// `isConversion`: the bytes are those of the former asset (`CommitQueue.converted`).
    func takePlace(lastUse: Timestamp? = nil, isConversion: Bool = false) -> Bool {
        let (former, isWaiting) = look { ($0.former, $0.former != nil || !$0.ownsRow && $0.ending == nil) }
        guard isWaiting else { return true }
        guard let former, !look({ $0.isUnstorable }),
            context.openAssets.promote(self, over: former, isConversion: isConversion)
        else {
            return false
        }
        former.stopFetching(Self.changed, for: self)
        change { state in
            state.row = .owned
            if let file = state.file { context.commits.grew(file, state.ledger.extents.runs.flatMap(file.kept)) }
            return ((), [])
        }
        count(lastUse: lastUse ?? context.wallClock.now())
        return true
    }

    /// Discards the file of an asset that did not replace its former one.
    func abandon() {
        guard let file = look({ $0.former == nil ? nil : $0.file }) else { return }
        context.commits.abandon(file)
    }

    /// Registers the transfer of a response that `former` received; this asset has no reader yet.
    private func receive(
        _ fillRequest: FillLedger.FillRequest, bringing body: ByteRange, _ answer: Answer, from former: OpenAsset
    ) -> FillLocation {
        let isOpenEnded = former.look { $0.ledger.isOpenEnded(answer.fill) }
        let fill = change { state in
            let (fill, actions) = state.ledger.carry(
                fillRequest, answering: answer.fillRequest, window: body, priority: answer.transfer.priority,
                isOpenEnded: isOpenEnded,
                isMultiplexed: answer.isMultiplexed)
            state.fills[fill] = answer.transfer
            state.upstreamStatus = answer.head.status
            return (fill, actions)
        }
        return FillLocation(asset: self, fill: fill, fillRequest: fillRequest)
    }
}
