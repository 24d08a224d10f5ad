import CacheCore
import CacheStore
import NIOCore

/// Conversion of a stored asset into the form that its origin asks for now: encrypted, or plain text.
///
/// The bytes are copied into a new file, block by block and compared with their checksums. Then an asset with this file
/// replaces the stored one, as a prefetched generation replaces an earlier one. A kill before that leaves the asset as it
/// was.
struct AssetConversion: Sendable {
    enum Outcome {
        /// The asset has the right form, or does not exist any more.
        case done
        /// Readers use the asset.
        case inUse
        /// The asset has no room beside its earlier form, is too large, or its master key is missing.
        case impossible
    }

    let resolver: AssetResolver
    let evictor: Evictor
    private var context: EngineContext { resolver.context }

    /// The largest number of cached bytes: the checksums of a file stay in memory until its commit, 40 bytes for 64 KiB.
    private static let mostBytes: Int64 = 32 << 30
    /// The bytes that are copied by one call on a disk thread.
    private static let batchBytes: Int64 = 1 << 20
    /// The bytes between two syncs, so that the commit has little left to write.
    private static let syncBytes: Int64 = 64 << 20

    init(resolver: AssetResolver, evictor: Evictor) {
        self.resolver = resolver
        self.evictor = evictor
    }

    func convert(_ id: AssetID) async throws(CacheError) -> Outcome {
        guard let asset = try await evictor.openKnown(id) else { return .done }
        defer { context.openAssets.release(asset) }
        let (found, stored, extents) = asset.look { ($0.record, $0.file, $0.ledger.extents) }
        guard let record = found, let file = stored, file.name != nil else { return .done }
        let target = resolver.shelved(record)
        guard file.isEncrypted != target.settings.isEncrypted else { return .done }
        guard context.openAssets.isOnlyHeld(asset) else { return .inUse }
        let bytes = extents.byteCount
        guard file.lock == nil, bytes <= Self.mostBytes, context.space.with({ $0.reserve(bytes) }) else {
            return .impossible
        }
        defer { context.space.release(bytes) }
        let copy = try await context.diskThreads.run { [context] in
            try context.store.createFile(
                asset: id, generation: record.generation.number, isEncrypted: target.settings.isEncrypted)
        }
        copy.keepSums(of: extents)
        let copied: ByteRangeSet
        do throws(CacheError) {
            copied = try await self.copy(extents, of: asset, file, to: copy)
        } catch {
            context.commits.abandon(copy)
            guard error.code == .storageFull else { throw error }
            return .impossible
        }
        // The disk has refused bytes: they are in memory only.
        guard !copy.isSpilled else {
            context.commits.abandon(copy)
            return .impossible
        }
        let next = OpenAsset(
            target: target, record: asset.record ?? record, extents: copied, file: copy, context: context)
        next.follow(asset)
        guard context.openAssets.isOnlyHeld(asset), next.takePlace(lastUse: record.lastAccessAt) else {
            context.commits.abandon(copy)
            return .inUse
        }
        context.space.used(changedBy: next.look { $0.diskBytes })
        try await context.commits.flush()
        return .done
    }

    /// Copies the bytes of `extents` that are still stored. Returns the copied ranges.
    private func copy(
        _ extents: ByteRangeSet, of asset: OpenAsset, _ file: SparseFile, to copy: SparseFile
    ) async throws(CacheError) -> ByteRangeSet {
        var (copied, synced) = (ByteRangeSet(), Int64(0))
        for run in extents.runs {
            var start = run.lowerBound
            while start < run.upperBound {
                let part = start..<min(run.upperBound, (start / Self.batchBytes + 1) * Self.batchBytes)
                start = part.upperBound
                guard !Task.isCancelled else {
                    throw CacheError(.shuttingDown, "The service is shutting down.")
                }
                // The lease protects the bytes from eviction while they are read.
                guard let lease = asset.lease(part) else { continue }
                defer { asset.end(lease) }
                let isDue = copied.byteCount - synced >= Self.syncBytes
                if isDue { synced = copied.byteCount }
                for block in try await context.diskThreads.run({ [context] in
                    if isDue { try copy.sync() }
                    return try BlockChecksums.cut(part).filter { block in
                        guard let bytes = try asset.readChecked(block, of: file) else { return false }
                        try bytes.withUnsafeReadableBytes { try copy.write($0, at: block.lowerBound) }
                        context.diskThreads.takeBack(bytes)
                        return true
                    }
                }) { copied.insert(block) }
            }
        }
        return copied
    }
}
