import CacheCore
import CacheStore
import NIOCore

/// Continuation of a read on the next generation of its asset.
///
/// Some upstreams change the validator of unchanged content, or send none, so that a broken transfer cannot be
/// resumed. The next transfer then starts a new generation. If that generation has the same length and starts with the
/// bytes that were already sent, the read continues there: every byte of its response is then a byte of the new
/// generation.
///
/// 1. `move` joins the next generation and leases the sent bytes of the former one.
/// 2. `compare` compares the sent bytes of both, chunk by chunk, as they arrive.
/// 3. `end` switches the source if all bytes are equal, and leaves the generation that is not used.
extension ContentRead {
    /// A continuation that is being checked. It holds both generations.
    private struct Move: Sendable {
        let former: Source
        let formerFile: SparseFile
        /// Protects the sent bytes of the former generation from eviction; nil if nothing was sent.
        let lease: FillLedger.LeaseID?
        let next: Source
        /// The bytes that were sent.
        let sent: ByteRange
    }

    /// The maximum number of sent bytes that are compared; a read beyond this fails instead.
    private static let mostCompared: Int64 = 64 << 20

    /// Waits for the next bytes. If the asset has changed, tries to continue on its successor; throws `.assetChanged`
    /// if that is not possible.
    func nextPresence() async throws(CacheError) -> FillLedger.Presence {
        while true {
            let source = source
            do throws(CacheError) {
                return try await source.asset.nextPresence(of: source.reader)
            } catch  where error.code == .assetChanged {
                guard let move = move() else { throw error }
                let isMoved = await withCheckedContinuation { done in
                    compare(move, from: move.sent.lowerBound) { done.resume(returning: $0) }
                }
                guard isMoved else { throw error }
            }
        }
    }

    /// Called when the ledger notifies the reader: the next call should look again, or `error` ends the read.
    func woken(_ error: CacheError?, wake: @escaping @Sendable () -> Void) {
        guard let error, error.code == .assetChanged else {
            state.withLock { $0.late = error.map { .failure($0) } }
            return wake()
        }
        moveOn(after: error, wake: wake)
    }

    /// Tries to continue on the successor, on a disk thread, and then calls `wake`. If this fails, the next call
    /// throws `error`.
    func moveOn(after error: CacheError, wake: @escaping @Sendable () -> Void) {
        asset.context.diskThreads.submit { [self] isOpen in
            let end: @Sendable (Bool) -> Void = { isMoved in
                if !isMoved { self.state.withLock { $0.late = .failure(error) } }
                wake()
            }
            guard isOpen, let move = move() else { return end(false) }
            compare(move, from: move.sent.lowerBound, then: end)
        }
    }

    /// Joins the successor and requests the whole segment there. Nil if there is no successor, the plan has more than
    /// one run, the response has a digest, too many bytes were sent, or the successor differs in length or is not stored.
    private func move() -> Move? {
        let former = source
        guard plan.body.count == 1, case .bytes(let whole)? = plan.body.first,
            let run = state.withLock({ $0.isFinished || $0.isDigested ? nil : $0.run }),
            run.lowerBound - whole.lowerBound <= Self.mostCompared
        else { return nil }
        let sent = whole.lowerBound..<run.lowerBound
        let assets = former.asset.context.openAssets
        guard let next = assets.acquireSuccessor(of: former.asset) else { return nil }
        let (known, formerFile, attempts) = former.asset.look { state in
            (state.record?.generation, state.file, state.ledger.attempts(of: former.reader))
        }
        let found = next.look { $0.record?.generation }
        let lease = sent.isEmpty ? nil : former.asset.lease(sent)
        guard let known, let formerFile, let found, known.length == found.length, found.passedStatus == nil,
            sent.isEmpty || lease != nil,
            let reader = try? next.join(
                opening: .whole, priority: .live, mustConfirm: false, waitLimit: next.target.settings.readTimeout,
                forwarded: former.asset.look { $0.forwarded[former.reader] }, attempts: attempts)
        else {
            if let lease { former.asset.end(lease) }
            assets.release(next)
            return nil
        }
        next.want(whole, by: reader)
        return Move(
            former: former, formerFile: formerFile, lease: lease,
            next: Source(asset: next, reader: reader, cachedBefore: ByteRangeSet()), sent: sent)
    }

    /// Compares the sent bytes from `offset` on, a chunk at a time; calls itself for the next chunk. `then` receives
    /// whether the read continues on the successor.
    private func compare(_ move: Move, from offset: Int64, then: @escaping @Sendable (Bool) -> Void) {
        guard offset < move.sent.upperBound else { return then(end(move, isSame: true)) }
        let (next, threads) = (move.next, move.next.asset.context.diskThreads)
        let presence = try? next.asset.presence(of: next.reader) { [self] error in
            if error == nil { compare(move, from: offset, then: then) } else { then(end(move, isSame: false)) }
        }
        if presence == .pending { return }
        guard case .bytes(let present)? = presence, let file = next.asset.look({ $0.file }) else {
            return then(end(move, isSame: false))
        }
        let chunk = (offset..<min(present.upperBound, move.sent.upperBound)).prefix(Int64(ByteBufferPool.chunkBytes))
        threads.read(chunk, of: file) { [self] found in
            threads.read(chunk, of: move.formerFile) { [self] known in
                guard case .success(let found) = found, case .success(let known) = known, found == known else {
                    return then(end(move, isSame: false))
                }
                threads.giveBack(found)
                threads.giveBack(known)
                next.asset.advance(next.reader, to: chunk.upperBound)
                compare(move, from: chunk.upperBound, then: then)
            }
        }
    }

    /// Switches the source to the successor if the bytes were the same, and leaves the other generation. Returns
    /// whether the read has switched.
    private func end(_ move: Move, isSame: Bool) -> Bool {
        let isMoved = state.withLock { state in
            guard isSame, !state.isFinished else { return false }
            state.source = move.next
            return true
        }
        if let lease = move.lease { move.former.asset.end(lease) }
        let left = isMoved ? move.former : move.next
        left.asset.leave(left.reader)
        left.asset.context.openAssets.release(left.asset)
        return isMoved
    }
}
