package import CacheCore
import CacheStore
package import NIOCore

/// An asset as one read found it: fresh, described, the same for whoever asks. What differs from that read in its range
/// alone can be answered by it, until anything about the asset or its origin changes.
package final class FreshView: Sendable {
    package let assetID: AssetID
    package let originName: String
    /// Of the asset.
    package let length: Int64
    /// Whoever remembers an answer keeps neither the asset nor its file.
    private weak let asset: OpenAsset?
    private let context: EngineContext
    private let key: String
    private let face: UInt64
    private let generation: Generation
    private let outcome: ReadOutcome
    private let origins: OriginTable
    private let originChanges: UInt64

    /// Nil where another reader, or the same with another range, might have to be answered otherwise.
    init?(
        _ asset: OpenAsset, face: UInt64, generation: Generation, outcome: ReadOutcome, origins: OriginTable,
        originChanges: UInt64
    ) {
        guard !asset.isForeign, outcome.requestClass == .hit, generation.headers["Vary"] == nil,
            asset.target.variant.fields.isEmpty, let length = generation.length
        else { return nil }
        assetID = asset.id
        originName = asset.target.originName
        self.length = length
        self.asset = asset
        context = asset.context
        key = asset.target.key
        self.face = face
        self.generation = generation
        self.outcome = outcome
        self.origins = origins
        self.originChanges = originChanges
    }

    /// What time it is; nil where the asset is no longer fresh, or its origin has changed.
    package var now: Timestamp? {
        let now = context.wallClock.now()
        guard generation.isFresh(at: now), origins.changes == originChanges, context.refusals[assetID] == nil
        else { return nil }
        return now
    }

    package func age(at time: Timestamp) -> Duration { generation.age(at: time) }

    /// What an answer says of itself.
    package func outcome(at time: Timestamp) -> ReadOutcome {
        var outcome = outcome
        outcome.timeToLive = generation.freshUntil.map { $0.since(time) }
        return outcome
    }

    /// Appends the bytes of `range`; false, with `buffer` as it was, where they are not at hand, or no longer this
    /// asset's.
    ///
    /// No lease is needed: the bytes are copied, and what was taken out meanwhile was taken out of the ledger before its
    /// bytes went.
    package func read(_ range: ByteRange, into buffer: inout ByteBuffer) -> Bool {
        guard let asset = hold() else { return false }
        defer { context.openAssets.release(asset) }
        guard let (file, losses) = found(range, of: asset) else { return false }
        let (length, end) = (Int(range.length), buffer.writerIndex)
        let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: length) { space in
            file.readNow(into: UnsafeMutableRawBufferPointer(rebasing: space[..<length]), at: range.lowerBound) ?? 0
        }
        guard count == length, asset.look({ $0.face == face && $0.ledger.losses == losses }) else {
            buffer.moveWriterIndex(to: end)
            return false
        }
        return true
    }

    /// The asset, held, if it is still the one of that name.
    private func hold() -> OpenAsset? {
        guard let held = context.openAssets.acquire(assetID) else { return nil }
        if held === asset { return held }
        context.openAssets.release(held)
        return nil
    }

    private func found(_ range: ByteRange, of asset: OpenAsset) -> (file: SparseFile, losses: UInt64)? {
        asset.look { state in
            guard state.face == face, state.ledger.extents.contains(range), !state.mustCheck(range),
                let file = state.file
            else { return nil }
            return (file, state.ledger.losses)
        }
    }

    /// The bytes of `range` in the file, with a lease on them for as long as the answer lives; nil where they must be copied,
    /// or are not at hand, or no longer this asset's.
    package func lend(_ range: ByteRange) -> LeasedPiece? {
        guard range.length <= FilePiece.mostWarmBytes(on: context.space.grid), let asset = hold() else { return nil }
        guard let (file, id) = asset.lease(range, face: face) else {
            context.openAssets.release(asset)
            return nil
        }
        let lease = Lease(asset: asset, id: id)
        return file.lendNow(range).map { LeasedPiece(piece: FilePiece(range: range, loan: $0), lease: lease) }
    }

    /// A read of `range`, at hand or not; nil where that is not all on disk, or no longer this asset's.
    package func open(_ range: ByteRange, at time: Timestamp) -> ContentRead? {
        guard let asset = hold() else { return nil }
        guard let (reader, cached) = asset.join(present: [range], length: length) else {
            context.openAssets.release(asset)
            return nil
        }
        let read = ContentRead(
            asset: asset, reader: reader, plan: .bytes(range), outcome: outcome(at: time), age: age(at: time),
            cachedBefore: cached)
        guard asset.look({ $0.face == face }) else {
            read.abandon()
            return nil
        }
        return read
    }

    /// Counts a read of `range`, so many bytes of which have left.
    package func count(_ range: ByteRange, _ ending: ReadEnding, at time: Timestamp) {
        let isAborted = if case .clientGone = ending { true } else { false }
        context.counters.ended(
            outcome.requestClass, of: assetID, key: key, origin: originName,
            sent: ReadTally(bytesFromCache: range.length), isAborted: isAborted)
        asset?.wasRead(range, at: time)
        context.readLog.note(range, of: assetID, at: time)
        context.commits.touched(assetID, at: time, hits: 1)
    }
}
