import CacheCore
import CacheStore
import Logging

/// Judgement of response heads and its effect on the generation.
extension OpenAsset {
    /// The use that a fill makes of a response.
    enum FillDecision {
        /// The body is this range, and is written to this file.
        case bytes(ByteRange, SparseFile)
        /// As `bytes`, in the next generation that the response started; its asset has taken the fill over.
        case moved(FillLocation, ByteRange, SparseFile)
        /// The body is not used.
        case nothing
        /// A mirror's response is not trusted: the fill asks another address.
        case skip(CacheError)
    }

    /// The sender of a response.
    enum Source {
        case origin, mirror
        /// Another node of the fleet.
        case peer
    }

    /// Judges a response head on the upstream's thread, before the first byte is written.
    ///
    /// A mirror's response counts only if it agrees with the known generation. It starts a new generation only if the
    /// known one cannot be continued. The same holds for a response of another node. Throws the error that ends the fill.
    func judge(_ head: UpstreamHead, for transfer: FillTransfer, from source: Source) throws(CacheError)
        -> FillDecision
    {
        let (fillRequest, fill, isMirror) = (transfer.fillRequest, transfer.fill, source != .origin)
        var expectation = expectation(for: fillRequest, isMirror: isMirror)
        expectation.isOfPeer = source == .peer
        expectation.isOutdated = transfer.isOutdated
        if source != .peer { context.upstreams.paths.answered(target.url, with: head) }
        let hasFlowControl = source == .peer || context.upstreams.paths.hasFlowControl(target.url)
        change { state in
            if source != .peer { state.upstreamStatus = head.status }
            state.ledger.hasFlowControl = hasFlowControl
            return ((), [])
        }
        let judgement = ResponseVerdict.judge(head, expecting: expectation)
        if judgement.refusesRange, !isMirror, let stated = StatedLength(head, now: expectation.now) {
            context.upstreams.health.stated(stated, by: transfer.asset.target)
        }
        if isMirror, let objection = judgement.objection(knowing: record?.generation, trusting: expectation.trust) {
            return .skip(objection)
        }
        let decision = try apply(
            judgement,
            Answer(
                head: head, fillRequest: fillRequest, fill: fill, isMirror: isMirror, expectation: expectation,
                transfer: transfer))
        // A purge that was made meanwhile may have seen the asset before this response.
        if !expectation.isOutdated, transfer.isOutdated { transfer.asset.expire() }
        return decision
    }

    /// A response head with its fill and the expectation that it is judged by.
    struct Answer {
        let head: UpstreamHead
        let fillRequest: FillLedger.FillRequest
        let fill: FillLedger.FillID
        let isMirror: Bool
        let expectation: WindowExpectation
        let transfer: FillTransfer

        var isMultiplexed: Bool { head.isMultiplexed }

        /// Whether the request is repeated: at the origin instead of a mirror, or without a `Range`.
        func isToBeRepeated(after error: CacheError) -> Bool {
            isMirror || fillRequest.window != .whole && !transfer.isPlain && error.code.refusesRange
        }
    }

    /// Applies a verdict to the asset and returns the fill's decision.
    private func apply(_ judgement: ResponseVerdict, _ answer: Answer) throws(CacheError) -> FillDecision {
        let (head, fillRequest, expectation) = (answer.head, answer.fillRequest, answer.expectation)
        switch (judgement, fillRequest) {
        case (.window(let range, let generation), .confirmation):
            let isMissing = look { !$0.isBare && $0.canContinue(generation) && $0.ledger.isVacant(range) }
            return try confirm(generation, with: range, isMissing: isMissing, answer)
        case (.whole(let generation), .confirmation):
            let isMissing = look { !$0.isBare && $0.ledger.needsWhole(acceptsRanges: generation.acceptsRanges) }
            return try confirm(generation, with: 0..<(generation.length ?? .max), isMissing: isMissing, answer)
        case (.window(let range, let generation), .opening)
        where range != 0..<(generation.length ?? .max) && !look({ $0.canContinue(generation) }):
            return try confirm(generation, with: range, isMissing: false, answer)
        case (.window(let range, let generation), _):
            if let ruling = try adopt(generation, window: range, answer) { return ruling }
            confirm(generation)
            return .nothing
        case (.whole(let generation), .opening) where answer.isMultiplexed && generation.isLongTransfer:
            // An HTTP/2 transfer cannot be paused for its readers: the body is requested again over HTTP/1.1.
            confirm(generation, isSequential: true)
            return .nothing
        case (.whole(let generation), _):
            let range = 0..<(generation.length ?? look { $0.isBare ? nil : $0.ledger.length } ?? .max)
            if let ruling = try adopt(generation, window: range, answer) { return ruling }
            confirm(generation, isSequential: true)
            return .nothing
        case (.unchanged(let generation), .confirmation) where look({ $0.ledger.isConfirmable }):
            return try confirm(generation, with: 0..<0, isMissing: false, answer)
        case (.unchanged, .confirmation):
            throw CacheError(.upstreamProtocol, "The transfer of the bytes that a 304 confirms has ended early.")
        case (.unchanged, _),
            (.changed, _) where head.status == 304 && !fillRequest.isConfirmation:
            throw CacheError(.upstreamUnusable(), "The upstream answered 304 to a request without a condition.")
        case (.changed(let generation, let body), _):
            return try succeed(generation, body, answer)
        case (.unsatisfiable(let length), _):
            try accept(unsatisfiable: length, head, for: fillRequest, expectation)
            return .nothing
        case (.refused(let error), _): return try refuse(error, answer)
        }
    }

    /// Confirms the generation and adopts the body of the response if its bytes are missing.
    private func confirm(
        _ generation: Generation, with body: ByteRange, isMissing: Bool, _ answer: Answer
    ) throws(CacheError) -> FillDecision {
        if isMissing, let ruling = try adopt(generation, window: body, answer) { return ruling }
        confirm(generation, isSequential: generation.acceptsRanges == false)
        return .nothing
    }

    /// Throws a refusal, unless its body is passed on. Stores it first if it may be repeated without a request.
    private func refuse(_ error: CacheError, _ answer: Answer) throws(CacheError) -> FillDecision {
        let passed = try passOn(error, answer)
        if !answer.isToBeRepeated(after: error), ErrorDocument(answer.head.excerpt).reason != .transient {
            keepRefusal(answer.head, of: answer.fillRequest, answer.expectation, passing: passed?.generation)
        }
        if let passed { return passed.decision }
        throw error
    }

    /// Passes on the body of a final error response if the origin's `errorBodies` asks for it; nil: a problem document
    /// is sent. With a stored response, a failing upstream (5xx) gets nil: a stale response may be used instead.
    private func passOn(
        _ error: CacheError, _ answer: Answer
    ) throws(CacheError) -> (decision: FillDecision, generation: Generation)? {
        guard case .upstreamRefused(let status, _) = error.code, answer.fillRequest.isDescription,
            !answer.isToBeRepeated(after: error)
        else { return nil }
        let (settings, isKnown, hasWaiting) = look {
            ($0.target.settings, $0.record != nil, $0.ledger.hasWaiting)
        }
        let isLast = !error.code.isWorthRetrying || answer.transfer.failureCount >= settings.retries
        guard settings.errorBodies == .upstream, settings.fallback == nil, isLast, hasWaiting,
            !isKnown || status < 500,
            let found = ResponseVerdict.errorResponse(answer.head, expecting: answer.expectation)
        else { return nil }
        let body = 0..<(found.length ?? .max)
        let decision =
            isKnown
            ? try carry(body, of: found, isSequential: false, answer) : try adopt(found, window: body, answer)
        return decision.map { ($0, found) }
    }

    /// Handles a 416. It can show that the asset is empty, or that an opening or a window begins at or beyond its end.
    /// In all other cases the known state is wrong and is reset.
    ///
    /// Throws `.rangeNotSatisfiable` for an opening beyond the end, and `.assetChanged` if the known state was wrong.
    private func accept(
        unsatisfiable length: Int64?, _ head: UpstreamHead, for fillRequest: FillLedger.FillRequest,
        _ expectation: WindowExpectation
    ) throws(CacheError) {
        switch (length, fillRequest) {
        case (0, .opening): confirm(ResponseVerdict.emptyAsset(head, expecting: expectation))
        case (0, _):
            context.openAssets.supersede(self, by: ResponseVerdict.emptyAsset(head, expecting: expectation))
            throw CacheError(.assetChanged, "The asset is now empty on the upstream.")
        case (_, .opening):
            throw CacheError(.rangeNotSatisfiable(length: length), "The range begins after the end of the asset.")
        case (_, .window(let range)) where foundEnd(statedAs: length, by: range): return
        default:
            context.openAssets.reset(self)
            throw CacheError(.assetChanged, "The upstream answered 416 for bytes within the length that it had stated.")
        }
    }

    /// Whether a refused window shows the end of an asset of unknown length. It begins directly after the bytes on disk.
    /// If the 416 states the length, the last bytes may still be in flight: the next window is requested before they
    /// have arrived.
    private func foundEnd(statedAs length: Int64?, by range: ByteRange) -> Bool {
        let end = length ?? range.lowerBound
        let isEnd = change { state -> (Bool, [FillLedger.Action]) in
            let last = state.ledger.extents.run(containing: max(0, range.lowerBound - 1))?.upperBound
            let isReached = last == end || length != nil && state.ledger.isFetching(upTo: end)
            guard state.ledger.length == nil, end == range.lowerBound, isReached else { return (false, []) }
            return (true, state.ledger.foundEnd(at: end))
        }
        if isEnd { recordLength() }
        return isEnd
    }

    /// Stores a refusal that has a lifetime in the negative cache. A refused window is not stored: it does not describe
    /// the asset as a whole. `passed`: the description of a body that is passed on; `complete` adds its bytes.
    private func keepRefusal(
        _ head: UpstreamHead, of fillRequest: FillLedger.FillRequest, _ expectation: WindowExpectation,
        passing passed: Generation?
    ) {
        let (target, now) = (target, expectation.now)
        guard fillRequest.offset == nil, !target.storesNothing,
            let freshness = StorePolicy.refusal(head, now: now, atMost: target.settings.negativeCaching)
        else { return }
        context.refusals.keep(
            NegativeCache.Refusal(
                status: head.status, challenges: Challenges.of(head, toReaderOf: expectation.readerURL),
                target: target.withoutReader, receivedAt: now, uptime: context.uptime(), freshness: freshness,
                passed: passed.map { .init(generation: $0, bytes: $0.length == 0 ? [] : nil) }), of: id)
    }

    /// The expectation for a response, with the known generation that it must match.
    ///
    /// While no byte is on disk, bytes of two generations cannot be mixed, and the description may come from a `HEAD`.
    /// The framing of the GET then defines the length (RFC 9112 §6.3), and no generation is expected. A mirror must
    /// match a known generation that can be continued in any case.
    private func expectation(for fillRequest: FillLedger.FillRequest, isMirror: Bool) -> WindowExpectation {
        let (target, known, isBare) = look { ($0.target, $0.record?.generation, $0.isBare) }
        let trust = target.settings.trustValidators
        let isUnbound =
            isBare && !fillRequest.isConfirmation && !(isMirror && known?.isJoinable(trusting: trust) == true)
        return WindowExpectation(
            window: fillRequest.window, known: isUnbound ? nil : known, now: context.wallClock.now(),
            freshness: freshness,
            trust: trust, storeRules: target.settings.storeRules,
            stated: context.upstreams.health.statedLength(of: target),
            readerURL: isMirror ? nil : target.readerURL, path: target.path)
    }

    /// Whether only the response of one transfer brings the bytes, although others could add to them: the upstream
    /// ignored or refused a range.
    var isWithoutRanges: Bool { look { $0.ledger.acceptsRanges == false && $0.ledger.canBeContinued } }

    /// Permits ranges again once the observation that the upstream ignores or refuses them has ended.
    func reconsiderRanges() {
        guard isWithoutRanges, !context.upstreams.health.lacksRanges(target) else { return }
        change { state in
            if state.ledger.reconsiderRanges() { state.record?.generation.acceptsRanges = nil }
            return ((), [])
        }
    }

    /// The freshness rule of responses: the asset's own lifetime, otherwise the origin's setting, which may be the
    /// upstream's.
    var freshness: OriginSettings.Freshness {
        look { $0.record?.ttl.map { .ttl($0) } ?? $0.target.settings.freshness }
    }

    /// Confirms the generation without a body. No effect on an asset that was superseded or removed: the response is
    /// outdated.
    ///
    /// `isSequential`: all bytes come in one transfer, whatever the upstream states about ranges.
    func confirm(_ generation: Generation, isSequential: Bool = false) {
        let isKnown = change { state -> (Bool, [FillLedger.Action]) in
            guard state.ending == nil else { return (false, []) }
            let (isNew, isBare) = (state.record == nil, state.isBare)
            let record = state.describe(generation, id: id, context)
            if state.ownsRow, !state.target.storesNothing {
                switch (generation.isStorable, isNew) {
                case (true, true): context.commits.began(record, file: nil)
                case (true, false): context.commits.refreshed(record)
                case (false, _): context.commits.discard(id)
                }
            }
            return (
                true,
                state.ledger.confirmed(
                    length: generation.length, isNew: isBare, isSequential: isSequential,
                    canBeContinued: state.canContinue(record.generation))
            )
        }
        guard isKnown, !target.storesNothing else { return }
        context.refusals.forget(id)
        // A generation that may no longer be stored exists until its readers leave.
        if !generation.isStorable { context.openAssets.discard(self) }
        readLifetimeOfPlaylist()
    }
}

extension ResponseVerdict {
    static let anotherCopy = CacheError(.upstreamProtocol, "The mirror's content differs from the known generation.")

    /// The reason to distrust a mirror's response; nil if it is trusted or is itself a refusal to be reported.
    ///
    /// - Without a known generation there is nothing to contradict, but the origin may have content that a mirror
    ///   lacks.
    /// - Without validators that prove equality, the response must at least be described alike; its bytes form a
    ///   generation of their own.
    fileprivate func objection(
        knowing known: Generation?, trusting trust: OriginSettings.TrustedValidators
    ) -> CacheError? {
        switch self {
        case .unsatisfiable where known != nil: Self.anotherCopy
        case .changed where known?.isJoinable(trusting: trust) == true: Self.anotherCopy
        case .changed(let found, _), .window(_, let found), .whole(let found):
            known.flatMap { found.isDescribed(as: $0) ? nil : Self.anotherCopy }
        case .refused(let error):
            switch error.code {
            case .upstreamRefused(let status, _) where status < 500 && !error.code.isWorthRetrying:
                CacheError(.upstreamUnreachable(), "The upstream failed, and a mirror answered with status \(status).")
            case .upstreamUnusable: error
            default: nil
            }
        case .unchanged, .unsatisfiable: nil
        }
    }
}

extension Generation {
    /// Whether the bytes come in one transfer only and are far more than 32 MiB, the amount that an HTTP/2 upstream may
    /// send before it learns that the body is not wanted.
    fileprivate var isLongTransfer: Bool { acceptsRanges == false && (length ?? 0) > Self.longTransferBytes }

    /// The size in bytes above which a single transfer counts as long.
    static let longTransferBytes: Int64 = 64 << 20
}

extension FillLedger.FillRequest {
    /// The `Range` of the upstream request.
    var window: UpstreamRequest.Window {
        switch self {
        case .opening(let window): window
        case .confirmation(let window): window
        case .window(let range): range.upperBound < .max ? .closed(range) : .from(range.lowerBound)
        case .whole: .whole
        }
    }
}
