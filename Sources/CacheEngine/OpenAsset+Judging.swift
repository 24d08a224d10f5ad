import CacheCore
import CacheStore
import Logging

extension OpenAsset {
    /// What a fill may do with an answer.
    enum Ruling {
        case bytes(ByteRange, SparseFile)
        case nothing
        /// A mirror's answer that cannot be believed: another address is to be asked.
        case skip(CacheError)
    }

    /// Judges an answer's head on the upstream's thread, before its first byte is written. What a mirror answers counts only
    /// where it agrees with what is known; it opens a generation only where nothing could be joined to what is known.
    func judge(
        _ head: UpstreamHead, for wish: FillLedger.Wish, of fill: FillLedger.FillID, isMirror: Bool = false
    ) throws(CacheError) -> Ruling {
        let expectation = expectation(for: wish, isMirror: isMirror)
        change { state in
            state.upstreamStatus = head.status
            return ((), [])
        }
        let judgement = HeadJudgement.judge(head, expecting: expectation)
        if isMirror, let objection = judgement.objection(knowing: record?.generation, trusting: expectation.trust) {
            return .skip(objection)
        }
        return try take(
            judgement, Answer(head: head, wish: wish, fill: fill, isMirror: isMirror, expectation: expectation))
    }

    private struct Answer {
        let head: UpstreamHead
        let wish: FillLedger.Wish
        let fill: FillLedger.FillID
        let isMirror: Bool
        let expectation: WindowExpectation
    }

    private func take(_ judgement: HeadJudgement, _ answer: Answer) throws(CacheError) -> Ruling {
        let (head, wish, expectation) = (answer.head, answer.wish, answer.expectation)
        switch (judgement, wish) {
        case (.window(_, let generation), .confirmation), (.whole(let generation), .confirmation):
            confirm(generation)
            return .nothing
        case (.window(let range, let generation), .opening)
        where range != 0..<(generation.length ?? .max) && !generation.isJoinable(trusting: expectation.trust):
            confirm(generation)
            return .nothing
        case (.window(let range, let generation), _):
            if let file = try adopt(generation, window: range, answer) { return .bytes(range, file) }
            confirm(generation)
            return .nothing
        case (.whole(let generation), .opening) where head.httpVersion == "2" && generation.isLongTransfer:
            // Over HTTP/2 it could not rest until its readers come after it: it is asked for again where it can.
            confirm(generation, isSequential: true)
            return .nothing
        case (.whole(let generation), _):
            let range = 0..<(generation.length ?? look { $0.ledger.length } ?? .max)
            if let file = try adopt(generation, window: range, answer) { return .bytes(range, file) }
            confirm(generation, isSequential: true)
            return .nothing
        case (.unchanged(let generation), .confirmation):
            confirm(generation)
            return .nothing
        case (.unchanged, _),
            (.changed, _) where head.status == 304 && wish != .confirmation:
            throw CacheError(.upstreamProtocol, "The upstream answered 304 to a request without a condition.")
        case (.changed(let generation), _):
            context.openAssets.supersede(self, by: generation)
            throw CacheError(.assetChanged, "The upstream's bytes changed while they were being fetched.")
        case (.unsatisfiable(let length), _):
            try accept(unsatisfiable: length, head, for: wish, expectation)
            return .nothing
        case (.refused(let error), _):
            if !answer.isMirror { keepRefusal(head, of: wish, at: expectation.now) }
            throw error
        }
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

    /// What is known already that the answer must prove to be the same as. While no byte is on disk there is nothing that
    /// bytes of another generation could be mixed with; a mirror must prove it all the same, where anything could.
    private func expectation(for wish: FillLedger.Wish, isMirror: Bool) -> WindowExpectation {
        let (target, known, isEmpty) = look {
            ($0.target, $0.record?.generation, $0.ledger.extents.isEmpty && $0.file == nil)
        }
        let trust = target.settings.trustValidators
        let isUnbound = wish == .whole && isEmpty && !(isMirror && known?.isJoinable(trusting: trust) == true)
        return WindowExpectation(
            window: wish.window, known: isUnbound ? nil : known, now: context.wallClock.now(), freshness: freshness,
            trust: trust, storeRules: target.settings.storeRules, path: target.path)
    }

    /// How long answers are used: the administrator's word on the asset, on the origin, or the upstream's.
    var freshness: OriginSettings.Freshness {
        look { $0.record?.ttl.map { .ttl($0) } ?? $0.target.settings.freshness }
    }

    /// Takes an answer's description over, makes the file at the first bytes, and lets everybody know. Nil where it brings more
    /// than was asked for, and some of that is just being taken off the disk: what is written now would go with it.
    private func adopt(
        _ generation: Generation, window: ByteRange, _ answer: Answer
    ) throws(CacheError) -> SparseFile? {
        let (present, known) = look { ($0.file, $0.record?.generation) }
        var generation = generation
        generation.number = max(generation.number, known?.number ?? 0)
        generation.length = generation.length ?? known?.length
        if let known, known.length ?? generation.length != generation.length || known.differs(from: generation) {
            guard !answer.isMirror else { throw HeadJudgement.anotherCopy }
            context.openAssets.supersede(self, by: generation.following(known))
            throw CacheError(.assetChanged, "The asset changed between its description and its bytes.")
        }
        let made = if let present { present } else { try makeFile(for: generation) }
        let described = generation
        let (adopted, isEarly) = change { state -> ((SparseFile?, Bool), [FillLedger.Action]) in
            guard state.ending == nil, state.file != nil || !state.isDisowned else { return ((nil, false), []) }
            guard answer.wish == .whole || !state.ledger.isLeaving(window) else { return ((nil, true), []) }
            let record = state.describe(described, id: id, at: context.wallClock.now())
            // Two first windows may be judged on two threads at once: the bytes of both go into one file.
            let isFirst = state.file == nil
            let file = state.file ?? made
            state.file = file
            if file.name != nil, !state.isDisowned {
                isFirst ? context.commits.began(record, file: file) : context.commits.refreshed(record)
            }
            let actions = state.ledger.began(
                answer.fill, window: window, length: described.length, acceptsRanges: described.acceptsRanges,
                firstByte: answer.head.timings.firstByte, isMultiplexed: answer.head.httpVersion == "2")
            return ((file, false), actions)
        }
        if present == nil, adopted !== made { context.commits.abandon(made) }
        guard !isEarly else { return nil }
        guard let file = adopted else {
            throw CacheError(.assetChanged, "The asset was superseded or removed before its bytes came.")
        }
        context.refusals.forget(id)
        // What must not be kept goes with its readers. A read that leaves no trace leaves what was kept before as it is.
        if file.name == nil, !target.keepsNothing { context.openAssets.detach(self) }
        return file
    }

    /// Where the disk gives no file for what may be kept, its readers get their bytes all the same.
    private func makeFile(for generation: Generation) throws(CacheError) -> SparseFile {
        guard generation.isStorable, !target.keepsNothing else { return try context.store.createTransient() }
        do throws(CacheError) {
            return try context.store.createFile(asset: id, generation: generation.number)
        } catch  where error.code != .overloaded {
            context.logger.error(
                "an asset is passed on and not kept", metadata: ["asset": "\(id)", "error": "\(error)"])
            return try context.store.createTransient()
        }
    }

    /// The generation is what the upstream has now; no bytes of it came. Without effect on an asset that was superseded or
    /// removed meanwhile: what it says is over. `isSequential`: its bytes come in one transfer only, whatever it says.
    func confirm(_ generation: Generation, isSequential: Bool = false) {
        let isSequential = isSequential || !generation.isJoinable(trusting: target.settings.trustValidators)
        let isKnown = change { state -> (Bool, [FillLedger.Action]) in
            guard state.ending == nil else { return (false, []) }
            let isNew = state.record == nil
            let record = state.describe(generation, id: id, at: context.wallClock.now())
            if !state.isDisowned, !state.target.keepsNothing {
                switch (generation.isStorable, isNew) {
                case (true, true): context.commits.began(record, file: nil)
                case (true, false): context.commits.refreshed(record)
                case (false, _): context.commits.discard(id)
                }
            }
            return (true, state.ledger.confirmed(length: generation.length, isSequential: isSequential))
        }
        guard isKnown, !target.keepsNothing else { return }
        context.refusals.forget(id)
        // What was kept may be kept no more: it goes with its readers.
        if !generation.isStorable { context.openAssets.giveUp(self) }
    }
}

extension HeadJudgement {
    fileprivate static let anotherCopy = CacheError(.upstreamProtocol, "The mirror's copy is another one.")

    /// Why a mirror's answer cannot be believed; nil where it can, or says itself that it is none. Where nothing is known
    /// there is nothing that it could contradict, but what it has not the origin may have. Where nothing can prove that
    /// bytes belong together, it must at least be described alike; its bytes are a generation of their own then.
    fileprivate func objection(
        knowing known: Generation?, trusting trust: OriginSettings.TrustedValidators
    ) -> CacheError? {
        switch self {
        case .unsatisfiable where known != nil: Self.anotherCopy
        case .changed where known?.isJoinable(trusting: trust) == true: Self.anotherCopy
        case .changed(let found), .window(_, let found), .whole(let found):
            known.flatMap { found.isDescribed(as: $0) ? nil : Self.anotherCopy }
        case .refused(let error):
            if case .upstreamRefused(let status, _) = error.code, status < 500, !error.code.isWorthRetrying {
                CacheError(.upstreamUnreachable(), "The upstream failed, and a mirror answered with status \(status).")
            } else {
                nil
            }
        case .unchanged, .unsatisfiable: nil
        }
    }
}

extension OpenAsset.State {
    /// Writes down what the asset is; answers its record.
    fileprivate mutating func describe(_ generation: Generation, id: AssetID, at now: Timestamp) -> AssetRecord {
        var next =
            record
            ?? AssetRecord(
                id: id, key: target.key, origin: target.originName, url: target.url, generation: generation,
                createdAt: now, lastAccessAt: now, variant: target.variant)
        let number = max(next.generation.number, generation.number)
        next.generation = generation
        next.generation.number = number
        next.url = target.url
        record = next
        return next
    }
}

extension Generation {
    /// Whether its bytes come in one transfer only, and are many more than the 32 MiB that an HTTP/2 upstream may send before
    /// it learns that they are not wanted.
    fileprivate var isLongTransfer: Bool { acceptsRanges == false && (length ?? 0) > 64 << 20 }

    /// Whether both have validators, and not the same ones.
    fileprivate func differs(from other: Generation) -> Bool {
        let (old, new) = (validators, other.validators)
        if let oldTag = old.entityTag, let newTag = new.entityTag { return oldTag != newTag }
        if let oldDate = old.lastModified, let newDate = new.lastModified { return oldDate != newDate }
        return false
    }

    /// Whether it says of itself what is known of `known`: its length, tag and date.
    fileprivate func isDescribed(as known: Generation) -> Bool {
        let (old, new) = (known.validators, validators)
        return known.length ?? length == length && old.entityTag ?? new.entityTag == new.entityTag
            && old.lastModified ?? new.lastModified == new.lastModified
    }

    /// The same, numbered behind `known`.
    fileprivate func following(_ known: Generation) -> Generation {
        var next = self
        next.number = known.number + 1
        return next
    }
}

extension FillLedger.Wish {
    /// The `Range` it is asked with.
    var window: UpstreamRequest.Window {
        switch self {
        case .opening(let window): window
        case .confirmation: .closed(0..<1)
        case .window(let range): .closed(range)
        case .whole: .whole
        }
    }
}
