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
        /// Readers use the asset, or it is pinned and has no space beside its earlier form.
        case busy
        /// The asset has no space beside its earlier form, is too large, or its master key is missing.
        case impossible
    }

    let resolver: AssetResolver
    let evictor: Evictor
    let clock: any Clock<Duration>
    private var context: EngineContext { resolver.context }

    /// The largest number of cached bytes: the checksums of a file stay in memory until its commit, 40 bytes for each
    /// block.
    private static let mostBytes: Int64 = 32 << 30
    /// The bytes that are copied by one call on a disk thread.
    private static let batchBytes: Int64 = 1 << 20
    /// The bytes between two syncs, so that the commit has little left to write.
    private static let syncBytes: Int64 = 64 << 20
    /// How often, once a second, a finished copy waits for readers that have come meanwhile.
    private static let waits = 10

    /// An asset with its file, and the copy of its bytes.
    private struct Work {
        let asset: OpenAsset
        let file: SparseFile
        let copy: SparseFile
        var copied = ByteRangeSet()
        /// The reserved bytes that are not written yet.
        var reserved: Int64
        var synced: Int64 = 0

        /// The stored bytes that are not copied yet.
        var missing: ByteRangeSet {
            var missing = asset.look { $0.ledger.extents }
            for run in copied.runs { missing.remove(run) }
            return missing
        }
    }

    init(resolver: AssetResolver, evictor: Evictor, clock: any Clock<Duration>) {
        self.resolver = resolver
        self.evictor = evictor
        self.clock = clock
    }

    /// Throws the error of the asset, such as a missing master key while its rule is `refuse`, and `cancelled`.
    func convert(_ id: AssetID) async throws(CacheError) -> Outcome {
        guard let asset = try await evictor.openKnown(id) else { return .done }
        defer { context.openAssets.release(asset) }
        let (found, stored, extents) = asset.look { ($0.record, $0.file, $0.ledger.extents) }
        guard let record = found, let file = stored, file.name != nil else { return .done }
        let target = resolver.shelved(record)
        guard file.isEncrypted != target.settings.isEncrypted else { return .done }
        if let lock = file.lock {
            guard context.store.masterKeys.onMissingKey == .refetch else { throw lock }
            return .impossible
        }
        guard context.openAssets.isOnlyHeld(asset) else { return .busy }
        let bytes = extents.byteCount
        guard bytes <= Self.mostBytes else { return .impossible }
        guard context.space.with({ $0.reserve(bytes) }) else { return record.isPinned ? .busy : .impossible }
        let copy: SparseFile
        do throws(CacheError) {
            copy = try await context.diskThreads.run { [context] in
                try context.store.createFile(
                    asset: id, generation: record.generation.number, isEncrypted: target.settings.isEncrypted)
            }
        } catch {
            context.space.release(bytes)
            throw error
        }
        copy.keepSums(of: extents)
        var work = Work(asset: asset, file: file, copy: copy, reserved: bytes)
        let outcome: Result<Outcome, CacheError>
        do throws(CacheError) {
            outcome = .success(try await fill(&work, for: target))
        } catch {
            outcome = error.code == .storageFull ? .success(.impossible) : .failure(error)
        }
        context.space.release(work.reserved)
        if case .success(.done) = outcome { return .done }
        context.commits.abandon(copy)
        context.space.used(changedBy: -work.copied.byteCount)
        return try outcome.get()
    }

    /// Copies the bytes and replaces the asset. `done` means that it was replaced.
    private func fill(_ work: inout Work, for target: AssetTarget) async throws(CacheError) -> Outcome {
        for _ in 0..<Self.waits {
            try await copyMissing(&work)
            // The disk has refused bytes: they are in memory only.
            guard !work.copy.isSpilled else { return .impossible }
            // The row of the asset must have its file before the replacement names it.
            try await context.commits.flush()
            if context.openAssets.isOnlyHeld(work.asset), work.missing.isEmpty {
                return try await replace(work, target) ? .done : .busy
            }
            do { try await clock.sleep(for: .seconds(1)) } catch { throw Self.cancelled }
        }
        return .busy
    }

    private static let cancelled = CacheError(.cancelled, "The service is shutting down.")

    /// Puts an asset with the copy in the place of the stored one. Returns whether it did.
    private func replace(_ work: Work, _ target: AssetTarget) async throws(CacheError) -> Bool {
        guard let record = work.asset.record else { return false }
        // Bytes that the asset has lost meanwhile, damaged ones among them, do not come back.
        var kept = work.copied
        let stored = work.asset.look { $0.ledger.extents }
        for run in work.copied.runs { for gap in stored.gaps(in: run) { kept.remove(gap) } }
        let next = OpenAsset(target: target, record: record, extents: kept, file: work.copy, context: context)
        let growth = next.look { $0.diskBytes } - work.copied.byteCount
        next.follow(work.asset)
        guard next.takePlace(lastUse: record.lastAccessAt, isConversion: true) else { return false }
        context.space.used(changedBy: growth)
        try await context.commits.flush()
        return true
    }

    /// Copies the stored bytes that are not copied yet. Ranges that are evicted meanwhile are left out.
    private func copyMissing(_ work: inout Work) async throws(CacheError) {
        for run in work.missing.runs {
            var start = run.lowerBound
            while start < run.upperBound {
                let batch = start..<min(run.upperBound, (start / Self.batchBytes + 1) * Self.batchBytes)
                start = batch.upperBound
                for part in work.asset.look({ $0.ledger.extents.runs(in: batch) }) { try await copy(part, &work) }
            }
        }
    }

    /// The bytes of one block; nil if they are damaged, or if the asset was removed meanwhile.
    private static func bytes(
        _ block: ByteRange, of file: SparseFile, _ asset: OpenAsset
    ) throws(CacheError) -> ByteBuffer? {
        do throws(CacheError) { return try asset.readChecked(block, of: file) } catch {
            guard error.code == .assetChanged else { throw error }
            return nil
        }
    }

    private func copy(_ part: ByteRange, _ work: inout Work) async throws(CacheError) {
        guard !Task.isCancelled else { throw Self.cancelled }
        let (asset, file, copy) = (work.asset, work.file, work.copy)
        // The lease protects the bytes from eviction while they are read.
        guard let lease = asset.lease(part) else { return }
        defer { asset.end(lease) }
        let isDue = work.copied.byteCount - work.synced >= Self.syncBytes
        if isDue { work.synced = work.copied.byteCount }
        let blocks = try await context.diskThreads.run { [context] in
            if isDue { try copy.sync() }
            return try BlockChecksums.cut(part).filter { block in
                guard let bytes = try Self.bytes(block, of: file, asset) else { return false }
                try bytes.withUnsafeReadableBytes { try copy.write($0, at: block.lowerBound) }
                context.diskThreads.giveBack(bytes)
                return true
            }
        }
        let written = blocks.reduce(0) { $0 + work.copied.insert($1) }
        context.space.used(changedBy: written)
        context.space.release(min(written, work.reserved))
        work.reserved = max(0, work.reserved - written)
    }
}
