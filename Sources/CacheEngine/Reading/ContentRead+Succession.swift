import CacheCore
import CacheStore
import NIOCore
import Synchronization

/// How a read goes on from the next generation.
///
/// Some upstreams tag the same bytes differently, or not at all, so that a transfer that breaks off cannot be continued. The
/// next one begins another generation. Where that has the same length, and begins with the bytes that have been sent, the
/// read goes on there: every byte of its answer is then one of the next generation.
extension ContentRead {
    private struct Move: Sendable {
        let former: Source
        let formerFile: SparseFile
        /// Keeps the bytes that were sent.
        let lease: FillLedger.LeaseID?
        let next: Source
        /// The bytes that were sent.
        let sent: ByteRange
    }

    /// As many sent bytes are compared at most.
    private static let mostCompared: Int64 = 64 << 20

    /// Waits for the next bytes.
    func settle() async throws(CacheError) -> FillLedger.Presence {
        while true {
            let source = source
            do throws(CacheError) {
                return try await source.asset.settle(source.reader)
            } catch  where error.code == .assetChanged {
                guard let move = move() else { throw error }
                let isMoved = await withCheckedContinuation { done in
                    compare(move, from: move.sent.lowerBound) { done.resume(returning: $0) }
                }
                guard isMoved else { throw error }
            }
        }
    }

    /// It is time to look again, or to fail.
    func woken(_ error: CacheError?, wake: @escaping @Sendable () -> Void) {
        guard let error, error.code == .assetChanged else {
            state.withLock { $0.late = error.map { .failure($0) } }
            return wake()
        }
        moveOn(after: error, wake: wake)
    }

    /// Moves on if it can, and wakes; else it wakes to `error`.
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

    /// Joins the next generation; nil where there is none that the answer could be completed from.
    private func move() -> Move? {
        let former = source
        guard plan.body.count == 1, case .bytes(let whole)? = plan.body.first,
            let run = state.withLock({ $0.isFinished ? nil : $0.run }),
            run.lowerBound - whole.lowerBound <= Self.mostCompared
        else { return nil }
        let sent = whole.lowerBound..<run.lowerBound
        let assets = former.asset.context.openAssets
        guard let next = assets.acquireSuccessor(of: former.asset) else { return nil }
        let (known, formerFile) = former.asset.look { ($0.record?.generation, $0.file) }
        let found = next.look { $0.record?.generation }
        let lease = sent.isEmpty ? nil : former.asset.lease(sent)
        guard let known, let formerFile, let found, known.length == found.length, found.passedStatus == nil,
            sent.isEmpty || lease != nil,
            let reader = try? next.join(
                opening: .whole, priority: .live, mustConfirm: false, waitLimit: next.target.settings.readTimeout)
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
        let chunk = (offset..<min(present.upperBound, move.sent.upperBound)).prefix(Int64(ChunkShelf.chunkBytes))
        threads.read(chunk, of: file) { [self] found in
            threads.read(chunk, of: move.formerFile) { [self] known in
                guard case .success(let found) = found, case .success(let known) = known, found == known else {
                    return then(end(move, isSame: false))
                }
                threads.takeBack(found)
                threads.takeBack(known)
                next.asset.advance(next.reader, to: chunk.upperBound)
                compare(move, from: chunk.upperBound, then: then)
            }
        }
    }

    /// Takes its bytes from the next generation from now on, or lets that go; answers whether it does.
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
