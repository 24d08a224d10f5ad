package import CacheCore
import CacheStore
package import NIOCore

/// A fresh asset at the moment of one read, from which requests that differ only in their range can be served
/// directly.
///
/// It is valid until the asset or its origin changes, the upstream refuses the asset, or the response becomes stale.
/// `now` checks the origins, the refusal and the freshness; every access to bytes checks `version`.
package final class FreshAssetSnapshot: Sendable {
    package let assetID: AssetID
    package let originName: String
    /// The length of the asset in bytes.
    package let length: Int64
    /// Weak, so that a prepared response keeps neither the asset nor its file open.
    private weak let asset: OpenAsset?
    private let context: EngineContext
    private let key: String
    /// The version of the asset's state that the snapshot was taken from.
    private let version: UInt64
    private let generation: Generation
    private let outcome: ReadOutcome
    private let origins: OriginTable
    /// The change count of the origin table at the moment of the snapshot.
    private let originChanges: UInt64

    /// Nil if the response could differ for another reader or another range: it depends on header fields (`Vary`), is
    /// not a plain hit, its body is more than the bytes of the asset (multipart), or the length is unknown.
    init?(
        _ asset: OpenAsset, version: UInt64, generation: Generation, plan: ContentPlan, outcome: ReadOutcome,
        origins: OriginTable, originChanges: UInt64
    ) {
        guard !asset.isForeign, plan.body.count < 2, outcome.requestClass == .hit, generation.headers["Vary"] == nil,
            asset.target.variant.fields.isEmpty, let length = generation.length
        else { return nil }
        assetID = asset.id
        originName = asset.target.originName
        self.length = length
        self.asset = asset
        context = asset.context
        key = asset.target.key
        self.version = version
        self.generation = generation
        self.outcome = outcome
        self.origins = origins
        self.originChanges = originChanges
    }

    /// The current time; nil if the asset is no longer fresh, was refused by the upstream, or the origins have
    /// changed.
    package var now: Timestamp? {
        let now = context.wallClock.now()
        guard generation.isFresh(at: now), origins.changes == originChanges, context.refusals[assetID] == nil
        else { return nil }
        return now
    }

    /// The age of the stored response at `time`.
    package func age(at time: Timestamp) -> Duration { generation.age(at: time) }

    /// The outcome that a response at `time` reports.
    package func outcome(at time: Timestamp) -> ReadOutcome {
        var outcome = outcome
        outcome.timeToLive = generation.freshUntil.map { $0.since(time) }
        return outcome
    }

    /// Appends the bytes of `range` to `buffer`. Returns false and leaves `buffer` unchanged if the bytes are not in
    /// the page cache, or the asset has changed.
    ///
    /// No lease is needed, because the bytes are copied and verified to be current:
    ///
    /// 1. The ledger's loss count is read together with the extents.
    /// 2. The bytes are copied from the page cache.
    /// 3. The loss count is read again. An eviction removes a range from the ledger before it punches the file, so an
    ///    equal count proves that the copied bytes were valid.
    package func read(_ range: ByteRange, into buffer: inout ByteBuffer) -> Bool {
        guard let asset = hold() else { return false }
        defer { context.openAssets.release(asset) }
        guard let (file, losses) = found(range, of: asset) else { return false }
        let (length, end) = (Int(range.length), buffer.writerIndex)
        let count = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: length) { space in
            file.readFromPageCache(
                into: UnsafeMutableRawBufferPointer(rebasing: space[..<length]), at: range.lowerBound) ?? 0
        }
        guard count == length, asset.look({ $0.version == version && $0.ledger.losses == losses }) else {
            buffer.moveWriterIndex(to: end)
            return false
        }
        return true
    }

    /// Acquires the asset if it is still the open one of its identifier.
    private func hold() -> OpenAsset? {
        guard let held = context.openAssets.acquire(assetID) else { return nil }
        if held === asset { return held }
        context.openAssets.release(held)
        return nil
    }

    /// The file and the ledger's loss count, if all of `range` is on disk, needs no check, and the version is
    /// unchanged.
    private func found(_ range: ByteRange, of asset: OpenAsset) -> (file: SparseFile, losses: UInt64)? {
        asset.look { state in
            guard state.version == version, state.ledger.extents.contains(range), !state.mustCheck(range),
                let file = state.file
            else { return nil }
            return (file, state.ledger.losses)
        }
    }

    /// Leases the bytes of `range` for the kernel to send. Nil if the range is too long, is not on disk, must be
    /// verified or copied, or the asset has changed. The lease lasts as long as the returned piece.
    package func lend(_ range: ByteRange) -> LeasedPiece? {
        guard range.length <= FilePiece.mostWarmBytes(on: context.space.grid), let asset = hold() else { return nil }
        guard let (file, id) = asset.lease(range, version: version) else {
            context.openAssets.release(asset)
            return nil
        }
        let lease = Lease(asset: asset, id: id)
        return file.pinForSendfile(range).map { LeasedPiece(piece: FilePiece(range: range, pin: $0), lease: lease) }
    }

    /// Opens a read of `range`, whether its bytes are in the page cache or not. Nil if the range is not completely on
    /// disk, or the asset has changed.
    package func open(_ range: ByteRange, at time: Timestamp) -> ContentRead? {
        guard let asset = hold() else { return nil }
        guard let (reader, cached) = asset.join(present: [range], length: length) else {
            context.openAssets.release(asset)
            return nil
        }
        let read = ContentRead(
            asset: asset, reader: reader, plan: .bytes(range), outcome: outcome(at: time), age: age(at: time),
            cachedBefore: cached)
        // The version is checked after the reader has joined, because the asset may have changed before that.
        guard asset.look({ $0.version == version }) else {
            read.abandon()
            return nil
        }
        return read
    }

    /// Records an ended read of `range` in the statistics, the eviction policy, the access trace and the catalog. `sent`:
    /// the number of its bytes that have left.
    package func count(_ range: ByteRange, sent: Int64, _ ending: ReadEnding, at time: Timestamp) {
        let isAborted = if case .clientGone = ending { true } else { false }
        context.counters.ended(
            outcome.requestClass, of: assetID, key: key, origin: originName,
            sent: ReadTally(bytesFromCache: sent), isAborted: isAborted)
        context.live.sent(fromCache: sent, fromUpstream: 0, of: assetID)
        context.readPoints.note(range.prefix(sent), of: assetID, length: length)
        asset?.wasRead(range, at: time)
        context.traceRecorder.note(range, of: assetID, at: time)
        context.commits.touched(assetID, at: time, hits: 1)
    }
}
