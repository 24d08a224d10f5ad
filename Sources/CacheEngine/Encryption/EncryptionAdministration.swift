package import CacheCore
import CacheStore
import Logging
import Synchronization

/// The state of the master keys and of encrypted origins.
package struct EncryptionReport: Sendable {
    /// A master key that is available or in use.
    package struct Key: Hashable, Sendable {
        package let id: String
        /// Whether new files use it.
        package let isActive: Bool
        package let isAvailable: Bool
        /// The number of files whose keys it seals.
        package let files: Int
    }

    /// An origin whose content is encrypted, or which has assets in the other form.
    package struct Origin: Hashable, Sendable {
        package let name: String
        package let isEncrypted: Bool
        /// The assets that are stored in the other form and wait for their removal or conversion.
        package let assetsLeft: Int
    }

    package let keys: [Key]
    package let onMissingKey: MissingKeyRule
    package let onChange: EncryptionChangeRule
    package let origins: [Origin]
    /// The last rotation; nil if there was none.
    package let rotation: KeyRotation?
    /// Whether the rotation is running.
    package let isRotating: Bool
    /// The message of the failure that stopped the rotation until the next attempt; nil if there was none.
    package let fault: String?
}

/// Rotation of master keys, and the report on encryption.
package final class EncryptionAdministration: Sendable {
    private let store: Store
    private let commits: CommitQueue
    private let wallClock: any WallClock
    private let logger: Logger
    private let origins: OriginTable
    private let rotations: AsyncStream<Void>
    private let begun: AsyncStream<Void>.Continuation
    /// The message of the last failure of the rotation.
    private let fault = OrderedMutex<String?>(.leaf, nil)
    /// The number of files whose master key was missing at the last count.
    private let lockedFiles = Atomic(0)
    private let isLogUnemptied = Atomic(false)

    init(
        store: Store, commits: CommitQueue, origins: OriginTable, wallClock: any WallClock, logger: Logger
    ) {
        self.store = store
        self.commits = commits
        self.wallClock = wallClock
        self.logger = logger
        self.origins = origins
        (rotations, begun) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The number of files whose master key is missing, as counted within the last seconds.
    package var missingKeyFiles: Int { lockedFiles.load(ordering: .relaxed) }

    package func report() async throws(CacheError) -> EncryptionReport {
        let (keys, used) = (store.masterKeys, try await store.masterKeyUse())
        let use = Dictionary(uniqueKeysWithValues: used.map { ($0.id, $0) })
        let (available, active) = (keys.ids, keys.activeID)
        var reported: [EncryptionReport.Origin] = []
        for origin in origins.all.map(\.origin) {
            let isEncrypted = origin.settings.isEncrypted
            let left = try await store.catalog.assetCount(of: origin.name, encrypted: !isEncrypted)
            guard isEncrypted || left > 0 else { continue }
            reported.append(.init(name: origin.name, isEncrypted: isEncrypted, assetsLeft: left))
        }
        let rotation = try await store.rotation()
        return EncryptionReport(
            keys: Set(available).union(use.keys).sorted().map { id in
                EncryptionReport.Key(
                    id: id, isActive: id == active, isAvailable: use[id]?.isAvailable ?? true,
                    files: use[id]?.files ?? 0)
            },
            onMissingKey: keys.onMissingKey, onChange: keys.onChange, origins: reported, rotation: rotation,
            isRotating: rotation.map { $0.finishedAt == nil } ?? false, fault: fault.withLock { $0 })
    }

    /// Begins to seal the keys of all files under the active master key. Throws `conflict` without one, and while a
    /// rotation to it runs.
    package func rotate() async throws(CacheError) -> EncryptionReport {
        guard let active = store.masterKeys.activeID else {
            throw CacheError(
                .conflict, "There is no active master key; set encryption.keysDirectory or encryption.keyCommand.")
        }
        let rotation = try await store.rotation()
        if let rotation, rotation.finishedAt == nil, rotation.activeKey == active {
            throw CacheError(.conflict, "A rotation to the master key \"\(active)\" is running already.")
        }
        try await commits.flush()
        let new = try await store.beginRotation(at: wallClock.now())
        logger.notice(
            "rotation of the master key begins", metadata: ["key": "\(new.activeKey)", "files": "\(new.files)"])
        begun.yield()
        return try await report()
    }

    /// Continues a rotation of an earlier run, and carries out those that begin, until cancellation. Also counts the
    /// files without a master key.
    func run(clock: some Clock<Duration>) async {
        begun.yield()
        await withDiscardingTaskGroup { group in
            group.addTask { for await _ in self.rotations { await self.carryOut(clock) } }
            group.addTask {
                repeat {
                    await self.countLocked()
                    await self.emptyLog()
                } while (try? await clock.sleep(for: .seconds(10))) != nil
            }
        }
    }

    /// Rotates in batches. After a failure, such as a missing master key, it waits and tries again.
    private func carryOut(_ clock: some Clock<Duration>) async {
        while !Task.isCancelled {
            do throws(CacheError) {
                guard let rotation = try await store.rotation(), rotation.finishedAt == nil else { return }
                let next = try await store.rotate(rotation, at: wallClock.now())
                fault.withLock { $0 = nil }
                if next.finishedAt != nil {
                    logger.notice(
                        "rotation of the master key is done",
                        metadata: [
                            "key": "\(next.activeKey)", "files": "\(next.filesDone)", "locked": "\(next.filesLocked)",
                        ])
                }
            } catch {
                let isNew = fault.withLock { fault in
                    defer { fault = error.message }
                    return fault != error.message
                }
                if isNew {
                    logger.error("rotation of the master key waits", metadata: ["error": "\(error.message)"])
                }
                try? await clock.sleep(for: .seconds(5))  // fails only when cancelled
            }
        }
    }

    private func countLocked() async {
        // After an error the last count stays.
        guard let use = try? await store.masterKeyUse() else { return }
        let missing = use.filter { !$0.isAvailable }
        let locked = missing.reduce(0) { $0 + $1.files }
        let before = lockedFiles.exchange(locked, ordering: .relaxed)
        guard locked > 0, before == 0 else { return }
        logger.error(
            "the master key of stored files is missing",
            metadata: ["files": "\(locked)", "keys": "\(missing.map(\.id).sorted().joined(separator: " "))"])
    }

    /// Empties the log of the catalog after an erasure that could not.
    func emptyLogLater() { isLogUnemptied.store(true, ordering: .relaxed) }

    private func emptyLog() async {
        guard isLogUnemptied.load(ordering: .relaxed), await store.emptyLog() else { return }
        isLogUnemptied.store(false, ordering: .relaxed)
        logger.notice("the log of the catalog was emptied after an erasure")
    }
}
