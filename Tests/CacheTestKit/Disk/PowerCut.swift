package import CacheCore
package import CacheStore
import Foundation
import Logging

/// Simulates a power loss after the operations of a log and checks the store found at the next start.
package struct PowerCut: Sendable {
    /// A guarantee about the store. It holds from one point of the log until the next promise about the same object.
    package enum Promise: Sendable {
        /// At least these bytes of this generation are claimed.
        case atLeast(AssetID, generation: Int64, ByteRangeSet)
        /// The asset is durably removed.
        case absent(AssetID)
        /// No guarantee: a change of the asset is in progress.
        case nothing(AssetID)
        /// The stored policy has this revision or a later one.
        case policy(Int64)
    }

    /// The counts and failures of a simulation.
    package struct Outcome: Sendable, CustomStringConvertible {
        package var prefixes = 0
        /// The number of checked directory states.
        package var states = 0
        package var opened = 0
        /// The claimed bytes in all checked states.
        package var claimedBytes: Int64 = 0
        /// The number of claimed extents with wrong bytes.
        package var wrong = 0
        package var failures: [String] = []

        package init() {}

        mutating func add(_ other: Outcome, _ label: String) {
            prefixes += other.prefixes
            states += other.states
            opened += other.opened
            claimedBytes += other.claimedBytes
            wrong += other.wrong
            failures += other.failures.map { "\(label), then \($0)" }
        }

        package var description: String {
            "\(prefixes) cuts, \(states) states, \(opened) opened, \(claimedBytes >> 20) MiB claimed, \(wrong) wrong"
        }
    }

    private let operations: [DiskLog.Operation]
    private let promises: [(count: Int, promise: Promise)]
    private let truth: @Sendable (AssetID, Int64) -> [UInt8]
    private let store: String
    /// The master keys of a store with encrypted files; nil: all files are plain.
    private let masterKeys: MasterKeys?

    /// - Parameters:
    ///   - store: the path of the store relative to the directory of the log.
    ///   - promises: each promise with the number of operations recorded before it.
    ///   - truth: all bytes of a generation of an asset.
    ///   - masterKeys: the master keys of a store with encrypted files.
    package init(
        _ operations: [DiskLog.Operation], store: String, promises: [(count: Int, promise: Promise)],
        truth: @escaping @Sendable (AssetID, Int64) -> [UInt8], masterKeys: MasterKeys? = nil
    ) {
        self.operations = operations
        self.store = store
        self.masterKeys = masterKeys
        self.promises = promises
        self.truth = truth
    }

    /// Checks the states after each prefix of at least `start` operations with a length divisible by `step`. Each
    /// prefix is checked without its unsynced changes, with all of them, and with a random subset for each of `seeds`.
    ///
    /// - Parameters:
    ///   - recoveries: one of this many states also loses power during its recovery, at about `recoverySteps` points.
    ///     0: none.
    ///   - image: the contents of the directory before the first operation.
    package func run(
        from start: Int = 0, step: Int = 1, seeds: [UInt64], recoveries: Int = 0, recoverySteps: Int = 0,
        image: DiskImage = DiskImage(),
        progress: (Int, [String]) -> Void = { _, _ in }
    ) async throws -> Outcome {
        var (image, outcome, version) = (image, Outcome(), -1)
        for count in 0...operations.count {
            if count > 0 { image.apply(operations[count - 1]) }
            guard count >= start, count % step == 0 || count == operations.count else { continue }
            progress(count, outcome.failures)
            outcome.prefixes += 1
            var keepings = seeds.map { DiskImage.Keeping.some(seed: $0 &+ UInt64(count) &* 0x9E37_79B9) }
            keepings.append(.everything)
            // The durable state changes only with a sync.
            if image.version != version { keepings.append(.nothing) }
            version = image.version
            for keeping in keepings {
                let tree = image.found(keeping)
                let label = "after \(count) operations, keeping \(keeping)"
                try await look(tree, count, label, isThorough: outcome.states % 16 == 0, &outcome)
                guard recoveries > 0, outcome.states % recoveries == 0 else { continue }
                outcome.add(try await cutRecovery(of: tree, count, recoverySteps, seeds), label)
            }
        }
        return outcome
    }

    /// Recovers a store from a tree and simulates a power loss after the operations of the recovery.
    private func cutRecovery(of tree: DiskImage.Tree, _ count: Int, _ steps: Int, _ seeds: [UInt64]) async throws
        -> Outcome
    {
        let directory = try TemporaryDirectory()
        try tree.write(to: directory.path)
        let image = DiskImage(tree)
        let log = DiskLog(root: directory.path, image: image)
        try await RecordingVFS.recording(log) {
            let store = try open(directory.path(self.store), RecordingDisk(log))
            _ = try await store.reconcile()
            try store.close(isOrderly: false)
        }
        let kept = promises.prefix { $0.count <= count }.map { (0, $0.promise) }
        return try await PowerCut(log.operations, store: store, promises: kept, truth: truth, masterKeys: masterKeys)
            .run(step: max(1, log.count / steps), seeds: Array(seeds.prefix(1)), image: image)
    }

    private func look(
        _ tree: DiskImage.Tree, _ count: Int, _ label: String, isThorough: Bool, _ outcome: inout Outcome
    ) async throws {
        let directory = try TemporaryDirectory()
        try tree.write(to: directory.path)
        outcome.states += 1
        do {
            let store = try open(directory.path(self.store))
            defer { try? store.close(isOrderly: false) }  // the directory is deleted anyway
            outcome.opened += 1
            let found = try await claims(store, tree, label, &outcome)
            var failures = broken(found, try await store.catalog.policy()?.revision, count)
            if isThorough { failures += try await audit(store) }
            outcome.failures += failures.map { "\(label): \($0)" }
        } catch {
            outcome.failures.append("\(label): \(error)")
        }
    }

    private func open(_ directory: String, _ disk: any Disk = SystemDisk()) throws(CacheError) -> Store {
        var logger = Logger(label: "power cut")
        logger.logLevel = .critical
        return try Store.open(
            directory: directory, disk: disk, masterKeys: masterKeys ?? MasterKeys(), mayLose: false,
            wallClock: ManualWallClock(), logger: logger)
    }

    /// Returns the assets in the catalog. Each claimed extent is compared with the found file, not by checksums; those of
    /// encrypted files are read through the store.
    private func claims(
        _ store: Store, _ tree: DiskImage.Tree, _ label: String, _ outcome: inout Outcome
    ) async throws -> [AssetID: StoredAsset] {
        var assets: [AssetID: StoredAsset] = [:]
        for id in try await store.catalog.assetIDs(after: nil, limit: 1000) {
            guard let stored = try await store.catalog.asset(id) else { continue }
            assets[id] = stored
            guard let file = stored.file else { continue }
            let name = self.store + "/assets/" + file.shard + "/" + file.description
            let open = masterKeys == nil ? nil : try await store.load(id)?.file
            for run in stored.extents.runs {
                outcome.claimedBytes += run.length
                let bytes = masterKeys == nil ? tree.files[name] : open.flatMap { Self.bytes(of: $0, run) }
                if isRight(run, of: bytes, truth(id, file.generation)) { continue }
                outcome.wrong += 1
                outcome.failures.append("\(label): wrong bytes in \(file) at \(run)")
            }
        }
        _ = try await store.catalog.origins()
        _ = try await store.catalog.unfinishedJobs()
        return assets
    }

    /// The decrypted bytes of a run at their offsets, with zeros before them; nil if they cannot be read.
    private static func bytes(of file: SparseFile, _ run: ByteRange) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: Int(run.upperBound))
        let count = bytes.withUnsafeMutableBytes { space in
            let target = UnsafeMutableRawBufferPointer(rebasing: space[Int(run.lowerBound)...])
            return try? file.read(into: target, at: run.lowerBound)
        }
        return count == Int(run.length) ? bytes : nil
    }

    private func isRight(_ run: ByteRange, of bytes: [UInt8]?, _ truth: [UInt8]) -> Bool {
        guard let bytes, run.upperBound <= min(bytes.count, truth.count) else { return false }
        let part = Int(run.lowerBound)..<Int(run.upperBound)
        return bytes.withUnsafeBytes { found in
            truth.withUnsafeBytes { written in
                guard let found = found.baseAddress, let written = written.baseAddress else { return false }
                return memcmp(found + part.lowerBound, written + part.lowerBound, part.count) == 0
            }
        }
    }

    /// The promises that do not hold.
    private func broken(_ found: [AssetID: StoredAsset], _ policy: Int64?, _ count: Int) -> [String] {
        var (latest, revision): ([AssetID: Promise], Int64) = ([:], 0)
        for (_, promise) in promises.prefix(while: { $0.count <= count }) {
            switch promise {
            case .atLeast(let id, _, _), .absent(let id), .nothing(let id): latest[id] = promise
            case .policy(let number): revision = number
            }
        }
        var broken = revision > policy ?? 0 ? ["policy revision \(revision) was lost"] : []
        for (id, promise) in latest {
            switch promise {
            case .atLeast(_, let generation, let ranges):
                let stored = found[id]
                let isKept =
                    stored?.record.generation.number == generation
                    && ranges.runs.allSatisfy { stored?.extents.contains($0) ?? false }
                if !isKept { broken.append("asset \(id) lost some of the promised ranges \(ranges.runs)") }
            case .absent: if found[id] != nil { broken.append("removed asset \(id) exists again") }
            case .nothing, .policy: break
            }
        }
        return broken
    }

    /// The problems found by reconciliation and by the audit after it.
    private func audit(_ store: Store) async throws -> [String] {
        let found = try await store.reconcile()
        var wrong = found.cutRows + found.emptiedRows > 0 ? ["\(found)"] : []
        wrong += try await store.audit(repairing: false).findings.map { "\($0)" }
        return wrong
    }
}
