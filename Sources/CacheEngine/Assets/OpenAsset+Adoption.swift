import CacheCore
import CacheStore
import Logging

/// How the bytes of an answer come into its file.
extension OpenAsset {
    fileprivate enum Adoption {
        case file(SparseFile)
        /// It brings more than was asked for, and some of that is on the way, or just being taken off the disk.
        case early
        /// Its bytes may not stand beside those on disk.
        case changed(Generation)
        case ended
    }

    /// Takes an answer's description over, makes the file at the first bytes, and lets everybody know. Nil where its bytes must
    /// not be written now.
    func adopt(
        _ found: Generation, window: ByteRange, _ answer: Answer
    ) throws(CacheError) -> Ruling? {
        let (present, number) = look { ($0.file, $0.number(of: found)) }
        var found = found
        found.number = number
        let made = if let present { present } else { try makeFile(for: found) }
        let adoption = change { $0.adopt(found, window, into: made, answer, id, context) }
        let isUsed = if case .file(let file) = adoption { file === made } else { false }
        if present == nil, !isUsed { context.commits.abandon(made) }
        switch adoption {
        case .early: return nil
        case .changed(let generation):
            guard !answer.isMirror else { throw HeadJudgement.anotherCopy }
            return try succeed(generation, window, answer)
        case .ended:
            throw CacheError(.assetChanged, "The asset was superseded or removed before its bytes came.")
        case .file(let file):
            context.refusals.forget(id)
            // What must not be kept goes with its readers. A read that leaves no trace leaves what was kept before as it is.
            if file.name == nil, !target.keepsNothing { context.openAssets.detach(self) }
            return .bytes(window, file)
        }
    }

    /// Where the disk gives no file for what may be kept, its readers get their bytes all the same.
    func makeFile(for generation: Generation) throws(CacheError) -> SparseFile {
        guard generation.isStorable, !target.keepsNothing else { return try context.store.createTransient() }
        do throws(CacheError) {
            return try context.store.createFile(asset: id, generation: generation.number)
        } catch  where error.code != .overloaded {
            context.logger.error(
                "an asset is passed on and not kept", metadata: ["asset": "\(id)", "error": "\(error)"])
            return try context.store.createTransient()
        }
    }
}

extension OpenAsset.State {
    /// As `OpenAsset.adopt`, under its lock: two first answers may be judged on two threads at once.
    fileprivate mutating func adopt(
        _ found: Generation, _ window: ByteRange, into made: SparseFile, _ answer: OpenAsset.Answer, _ id: AssetID,
        _ context: EngineContext
    ) -> (OpenAsset.Adoption, [FillLedger.Action]) {
        guard ending == nil, file != nil || !isDisowned else { return (.ended, []) }
        let isNew = isBare
        var generation = found
        generation.number = number(of: found)
        if !isNew, let known = record?.generation {
            guard found.isSameRepresentation(as: known, trusting: target.settings.trustValidators) else {
                return (.changed(generation), [])
            }
            generation.length = found.length ?? known.length
        }
        let canOverlap = generation.acceptsRanges == false || ledger.acceptsRanges == false
        guard answer.wish == .whole || !ledger.isLeaving(ledger.claim(of: answer.fill, bringing: window)),
            !answer.wish.isDescription || canOverlap || ledger.isVacant(window)
        else { return (.early, []) }
        let record = describe(generation, id: id, at: context.wallClock.now())
        let isFirst = file == nil
        let file = file ?? made
        self.file = file
        if file.name != nil, !isDisowned {
            isFirst ? context.commits.began(record, file: file) : context.commits.refreshed(record)
        }
        let actions = ledger.began(
            answer.fill, window: window, length: generation.length, acceptsRanges: generation.acceptsRanges,
            isNew: isNew, canBeContinued: canContinue(generation), firstByte: answer.head.timings.roundTrip,
            isMultiplexed: answer.isMultiplexed)
        return (.file(file), actions)
    }

    /// The number of `found`: that of the known generation where both are described alike.
    fileprivate func number(of found: Generation) -> Int64 {
        guard let known = record?.generation else { return found.number }
        let isKnown = found.isSameRepresentation(as: known, trusting: target.settings.trustValidators)
        return isKnown || found.isDescribed(as: known) && isBare ? known.number : known.number + 1
    }

    /// Writes down what the asset is; answers its record.
    mutating func describe(_ generation: Generation, id: AssetID, at now: Timestamp) -> AssetRecord {
        var next =
            record
            ?? AssetRecord(
                id: id, key: target.key, origin: target.originName, url: target.url, generation: generation,
                createdAt: now, lastAccessAt: now, variant: target.variant)
        let number = isBare ? number(of: generation) : max(next.generation.number, generation.number)
        next.generation = generation
        next.generation.number = number
        next.url = target.url
        record = next
        return next
    }
}
