import CacheCore
import CacheStore
import Logging

extension OpenAsset {
    /// What a fill may do with an answer.
    enum Ruling {
        case bytes(ByteRange, SparseFile)
        /// As `bytes`, of the generation that the answer has begun: its asset has taken the fill over.
        case moved(FillPlace, ByteRange, SparseFile)
        case nothing
        /// A mirror's answer that cannot be believed: another address is to be asked.
        case skip(CacheError)
    }

    /// Judges an answer's head on the upstream's thread, before its first byte is written. What a mirror answers counts only
    /// where it agrees with what is known; it opens a generation only where nothing could be joined to what is known.
    func judge(_ head: UpstreamHead, for transfer: FillTransfer, isMirror: Bool = false) throws(CacheError) -> Ruling {
        let (wish, fill) = (transfer.wish, transfer.fill)
        let expectation = expectation(for: wish, isMirror: isMirror)
        let url = target.url
        context.paths.answered(url, with: head)
        let hasFlowControl = context.paths.hasFlowControl(url)
        change { state in
            state.upstreamStatus = head.status
            state.ledger.hasFlowControl = hasFlowControl
            return ((), [])
        }
        let judgement = HeadJudgement.judge(head, expecting: expectation)
        if isMirror, let objection = judgement.objection(knowing: record?.generation, trusting: expectation.trust) {
            return .skip(objection)
        }
        return try take(
            judgement,
            Answer(
                head: head, wish: wish, fill: fill, isMirror: isMirror, expectation: expectation, transfer: transfer))
    }

    struct Answer {
        let head: UpstreamHead
        let wish: FillLedger.Wish
        let fill: FillLedger.FillID
        let isMirror: Bool
        let expectation: WindowExpectation
        let transfer: FillTransfer

        var isMultiplexed: Bool { head.isMultiplexed }

        /// Whether the origin is asked once more: in place of a mirror, or without a `Range`.
        func isToBeRepeated(after error: CacheError) -> Bool {
            isMirror || wish.window != .whole && !transfer.isPlain && error.code.refusesRange
        }
    }

    private func take(_ judgement: HeadJudgement, _ answer: Answer) throws(CacheError) -> Ruling {
        let (head, wish, expectation) = (answer.head, answer.wish, answer.expectation)
        switch (judgement, wish) {
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
            // Over HTTP/2 it could not rest until its readers come after it: it is asked for again where it can.
            confirm(generation, isSequential: true)
            return .nothing
        case (.whole(let generation), _):
            let range = 0..<(generation.length ?? look { $0.isBare ? nil : $0.ledger.length } ?? .max)
            if let ruling = try adopt(generation, window: range, answer) { return ruling }
            confirm(generation, isSequential: true)
            return .nothing
        case (.unchanged(let generation), .confirmation) where look({ $0.ledger.isConfirmable }):
            return try confirm(generation, with: 0..<0, isMissing: false, answer)
        case (.unchanged, _),
            (.changed, _) where head.status == 304 && !wish.isConfirmation:
            throw CacheError(.upstreamUnusable(), "The upstream answered 304 to a request without a condition.")
        case (.changed(let generation, let body), _):
            return try succeed(generation, body, answer)
        case (.unsatisfiable(let length), _):
            try accept(unsatisfiable: length, head, for: wish, expectation)
            return .nothing
        case (.refused(let error), _): return try refuse(error, answer)
        }
    }

    /// The generation is confirmed, and the answer has a body of it, which is taken where its bytes are missing.
    private func confirm(
        _ generation: Generation, with body: ByteRange, isMissing: Bool, _ answer: Answer
    ) throws(CacheError) -> Ruling {
        if isMissing, let ruling = try adopt(generation, window: body, answer) { return ruling }
        confirm(generation, isSequential: generation.acceptsRanges == false)
        return .nothing
    }

    /// Keeps the refusal where it may be repeated unasked, and throws it, unless its body is to be passed on.
    private func refuse(_ error: CacheError, _ answer: Answer) throws(CacheError) -> Ruling {
        if let ruling = try passOn(error, answer) { return ruling }
        if !answer.isToBeRepeated(after: error) {
            keepRefusal(answer.head, of: answer.wish, at: answer.expectation.now)
        }
        throw error
    }

    /// Passes the body of a last refusal on where the origin is to have that; nil where a problem document answers. Where
    /// something is stored, a failing upstream gets none: a stale response may be used in its place.
    private func passOn(_ error: CacheError, _ answer: Answer) throws(CacheError) -> Ruling? {
        guard case .upstreamRefused(let status, _) = error.code, answer.wish.isDescription,
            !answer.isToBeRepeated(after: error)
        else { return nil }
        let (settings, isKnown, hasWaiting) = look {
            ($0.target.settings, $0.record != nil, $0.ledger.hasWaiting)
        }
        let isLast = !error.code.isWorthRetrying || answer.transfer.attempt >= settings.retries
        guard settings.errorBodies == .upstream, settings.fallback == nil, isLast, hasWaiting,
            !isKnown || status < 500,
            let found = HeadJudgement.errorResponse(answer.head, expecting: answer.expectation)
        else { return nil }
        let body = 0..<(found.length ?? .max)
        guard isKnown else { return try adopt(found, window: body, answer) }
        return try carry(body, of: found, isSequential: false, answer)
    }

    /// Takes a 416: it may show that the asset is empty, or where it ends; else what was known is over.
    private func accept(
        unsatisfiable length: Int64?, _ head: UpstreamHead, for wish: FillLedger.Wish, _ expectation: WindowExpectation
    ) throws(CacheError) {
        switch (length, wish) {
        case (0, .opening): confirm(HeadJudgement.emptyAsset(head, expecting: expectation))
        case (0, _):
            context.openAssets.supersede(self, by: HeadJudgement.emptyAsset(head, expecting: expectation))
            throw CacheError(.assetChanged, "The asset has become empty.")
        case (_, .opening):
            throw CacheError(.rangeNotSatisfiable(length: length), "The range begins beyond the asset's end.")
        case (_, .window(let range)) where foundEnd(length ?? range.lowerBound, by: range): return
        default:
            context.openAssets.forget(self)
            throw CacheError(.assetChanged, "The upstream no longer has the bytes it announced.")
        }
    }

    /// Whether a refused window shows where an asset of unknown length ends: right behind the bytes on disk.
    private func foundEnd(_ end: Int64, by range: ByteRange) -> Bool {
        let isEnd = change { state -> (Bool, [FillLedger.Action]) in
            let last = state.ledger.extents.run(containing: max(0, range.lowerBound - 1))?.upperBound
            guard state.ledger.length == nil, end == range.lowerBound, last == end else { return (false, []) }
            return (true, state.ledger.foundEnd(at: end))
        }
        if isEnd { recordLength() }
        return isEnd
    }

    /// A refusal with a lifetime of its own is repeated unasked; what a window meets says nothing of the asset as a whole.
    private func keepRefusal(_ head: UpstreamHead, of wish: FillLedger.Wish, at now: Timestamp) {
        let target = target
        guard wish.place == nil, !target.keepsNothing,
            let freshness = StorePolicy.refusal(head, now: now, atMost: target.settings.negativeCaching)
        else { return }
        context.refusals.keep(
            RefusalShelf.Refusal(status: head.status, receivedAt: now, freshness: freshness), of: id)
    }

    /// The known generation that the answer must prove to be. While no byte is on disk there are none that bytes of another
    /// generation could be mixed with, and the description may be that of a `HEAD`: the framing of the GET defines the
    /// length (RFC 9112 §6.3). A mirror must prove it all the same, where anything could.
    private func expectation(for wish: FillLedger.Wish, isMirror: Bool) -> WindowExpectation {
        let (target, known, isBare) = look { ($0.target, $0.record?.generation, $0.isBare) }
        let trust = target.settings.trustValidators
        let isUnbound = isBare && !wish.isConfirmation && !(isMirror && known?.isJoinable(trusting: trust) == true)
        return WindowExpectation(
            window: wish.window, known: isUnbound ? nil : known, now: context.wallClock.now(), freshness: freshness,
            trust: trust, storeRules: target.settings.storeRules, path: target.path)
    }

    /// How long answers are used: the administrator's word on the asset, on the origin, or the upstream's.
    var freshness: OriginSettings.Freshness {
        look { $0.record?.ttl.map { .ttl($0) } ?? $0.target.settings.freshness }
    }

    /// The generation is what the upstream has now; no bytes of it came. Without effect on an asset that was superseded or
    /// removed meanwhile: what it says is over. `isSequential`: its bytes come in one transfer only, whatever it says.
    func confirm(_ generation: Generation, isSequential: Bool = false) {
        let isKnown = change { state -> (Bool, [FillLedger.Action]) in
            guard state.ending == nil else { return (false, []) }
            let (isNew, isBare) = (state.record == nil, state.isBare)
            let record = state.describe(generation, id: id, at: context.wallClock.now())
            if !state.isDisowned, !state.target.keepsNothing {
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
        guard isKnown, !target.keepsNothing else { return }
        context.refusals.forget(id)
        // What was kept may be kept no more: it goes with its readers.
        if !generation.isStorable { context.openAssets.giveUp(self) }
    }
}

extension HeadJudgement {
    static let anotherCopy = CacheError(.upstreamProtocol, "The mirror's copy is another one.")

    /// Why a mirror's answer cannot be believed; nil where it can, or says itself that it is none. Where nothing is known
    /// there is nothing that it could contradict, but what it has not the origin may have. Where nothing can prove that
    /// bytes belong together, it must at least be described alike; its bytes are a generation of their own then.
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
    /// Whether its bytes come in one transfer only, and are many more than the 32 MiB that an HTTP/2 upstream may send before
    /// it learns that they are not wanted.
    fileprivate var isLongTransfer: Bool { acceptsRanges == false && (length ?? 0) > Self.longTransferBytes }

    static let longTransferBytes: Int64 = 64 << 20
}

extension FillLedger.Wish {
    /// The `Range` it is asked with.
    var window: UpstreamRequest.Window {
        switch self {
        case .opening(let window): window
        case .confirmation(let window): window
        case .window(let range): range.upperBound < .max ? .closed(range) : .from(range.lowerBound)
        case .whole: .whole
        }
    }
}
