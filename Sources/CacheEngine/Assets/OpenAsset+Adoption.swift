import CacheCore
import CacheStore
import Logging

/// Adoption of a response: its description, its file and the start of its body.
extension OpenAsset {
    /// The result of an attempt to adopt a response.
    fileprivate enum Adoption {
        /// The body is written to this file.
        case file(SparseFile)
        /// The body must not be written now: it overlaps an evicting range, or the body of an opening or a confirmation
        /// overlaps bytes on disk or a fill in flight.
        case early
        /// The body belongs to another generation and must not be mixed with the bytes on disk.
        case changed(Generation)
        /// The asset was superseded or removed.
        case ended
    }

    /// Adopts a response: stores its description, creates the file for the first bytes and notifies the readers.
    /// Returns nil if the body must not be written now.
    ///
    /// Throws `.assetChanged` if the asset was superseded or removed, and errors of the store.
    func adopt(
        _ found: Generation, window: ByteRange, _ answer: Answer
    ) throws(CacheError) -> FillDecision? {
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
            guard !answer.isMirror else { throw ResponseVerdict.anotherCopy }
            return try succeed(generation, window, answer)
        case .ended:
            throw CacheError(.assetChanged, "The asset was superseded or removed before its first byte arrived.")
        case .file(let file):
            context.refusals.forget(id)
            // A response that must not be stored exists until its readers leave, and so do the bytes stored before it.
            // A read with no-store does not affect the asset that was stored before.
            let isKept = file.name != nil && found.isStorable
            if !isKept, !target.storesNothing { context.openAssets.discard(self) }
            return .bytes(window, file)
        }
    }

    /// Creates the file of a generation. It is transient if the generation must not be stored, or if the disk provides
    /// no file; in both cases readers get their bytes. Throws `.overloaded` if no file descriptor is available.
    func makeFile(for generation: Generation) throws(CacheError) -> SparseFile {
        let isEncrypted = target.settings.isEncrypted
        guard generation.isStorable, !target.storesNothing else {
            return try context.store.createTransient(isEncrypted: isEncrypted)
        }
        do throws(CacheError) {
            return try context.store.createFile(
                asset: id, generation: generation.number, isEncrypted: isEncrypted)
        } catch  where error.code != .overloaded {
            context.logger.error(
                "an asset cannot be stored and is passed through", metadata: ["asset": "\(id)", "error": "\(error)"])
            return try context.store.createTransient(isEncrypted: isEncrypted)
        }
    }
}

extension OpenAsset.State {
    /// Performs `OpenAsset.adopt` under the lock: two first responses may be judged on two threads at the same time.
    fileprivate mutating func adopt(
        _ found: Generation, _ window: ByteRange, into made: SparseFile, _ answer: OpenAsset.Answer, _ id: AssetID,
        _ context: EngineContext
    ) -> (OpenAsset.Adoption, [FillLedger.Action]) {
        guard ending == nil, file != nil || ownsRow else { return (.ended, []) }
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
        guard answer.fillRequest == .whole || !ledger.isLeaving(ledger.claim(of: answer.fill, bringing: window)),
            !answer.fillRequest.isDescription || canOverlap || ledger.isVacant(window)
        else { return (.early, []) }
        let record = describe(generation, id: id, context)
        let isFirst = file == nil
        let file = file ?? made
        self.file = file
        if file.name != nil, generation.isStorable, ownsRow {
            isFirst ? context.commits.began(record, file: file) : context.commits.refreshed(record)
        }
        let actions = ledger.began(
            answer.fill, window: window, length: generation.length, acceptsRanges: generation.acceptsRanges,
            isNew: isNew, canBeContinued: canContinue(generation), firstByte: answer.head.timings.roundTrip,
            isMultiplexed: answer.isMultiplexed)
        return (.file(file), actions)
    }

    /// The generation number of `found`: the known number for the same representation, or for one that is described
    /// alike while no byte has arrived; otherwise the next number.
    fileprivate func number(of found: Generation) -> Int64 {
        guard let known = record?.generation else { return found.number }
        let isKnown = found.isSameRepresentation(as: known, trusting: target.settings.trustValidators)
        return isKnown || found.isDescribed(as: known) && isBare ? known.number : known.number + 1
    }

    /// Stores the description of the asset that a response states now. Returns the updated record.
    mutating func describe(_ generation: Generation, id: AssetID, _ context: EngineContext) -> AssetRecord {
        let now = context.wallClock.now()
        describedAt = context.uptime()
        var next =
            record
            ?? AssetRecord(
                id: id, key: target.key, origin: target.originName, url: target.url, generation: generation,
                createdAt: now, lastAccessAt: now, variant: target.variant)
        let number = isBare ? number(of: generation) : max(next.generation.number, generation.number)
        next.generation = generation
        next.generation.number = number
        isUnstorable = isUnstorable || !generation.isStorable
        next.url = target.url
        record = next
        return next
    }
}
