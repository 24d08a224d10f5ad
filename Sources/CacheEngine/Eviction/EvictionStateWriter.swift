import CacheCore
import CacheStore

/// Persists the segment state of the eviction policy, so that a restart keeps the ranking.
///
/// Start-up: 1. `restore` loads the stored state. 2. The bytes on disk are counted. 3. `begin` drops segments without
/// bytes. From then on, `keep` writes the changes periodically.
final class EvictionStateWriter: Sendable {
    private let space: SpaceReservations
    private let commits: CommitQueue
    private let catalog: Catalog
    /// The lifecycle of the persisted state.
    private enum Phase {
        /// The stored state has not been loaded completely; until then it must not be overwritten.
        case reading
        /// Loaded, and no write in progress.
        case resting
        /// A write is in progress.
        case writing
    }

    /// Guards the phase.
    private let phase = OrderedMutex(.leaf, Phase.reading)
    /// The monotonic time.
    private let uptime: @Sendable () -> Duration
    /// Guards the uptime of the last write.
    private let keptAt = OrderedMutex(.leaf, Duration.zero)

    init(space: SpaceReservations, commits: CommitQueue, catalog: Catalog, uptime: @escaping @Sendable () -> Duration) {
        self.space = space
        self.commits = commits
        self.catalog = catalog
        self.uptime = uptime
    }

    /// Whether the stored state has been loaded.
    var isReady: Bool { phase.withLock { if case .reading = $0 { false } else { true } } }

    /// Loads the stored state; the bytes are counted afterwards. `form`: the layout of the stored state, with which
    /// the ledger was created. A policy change meanwhile makes the rest of the stored state useless; it is then
    /// skipped.
    func restore(_ form: EvictionLayout) async throws(CacheError) {
        let space = space
        let hand = try await catalog.segmentHand()
        try await catalog.eachSegment { record in
            space.with { ledger in if ledger.form == form { ledger.restore(record, hand: hand) } }
        }
        space.with { ledger in if ledger.form == form { ledger.wasRestored() } }
    }

    /// Completes the start-up after the bytes were counted: drops restored segments without bytes, and starts to
    /// record changes.
    func begin() {
        // A copy is searched, so that the lock is not held meanwhile.
        let copy = space.with { $0 }
        // Batches keep the ledger's lock short.
        var rest = copy.empty[...]
        while !rest.isEmpty {
            let batch = rest.prefix(1000)
            space.with { $0.drop(batch) }
            rest = rest.dropFirst(batch.count)
        }
        let start = copy.recentStart
        space.with { $0.beginRecent(at: start) }
        phase.withLock { $0 = .resting }
    }

    /// Calls `keep` before evictions. Does nothing within 5 s of the last write, because rounds of evictions may
    /// follow one another closely. Also does nothing if the complete state would have to be written, because a fill
    /// may be waiting for space.
    func keepBeforeEviction() async throws(CacheError) {
        guard uptime() - keptAt.withLock({ $0 }) >= .seconds(5), space.with({ $0.isKept }) else { return }
        try await keep()
    }

    /// Writes the changes since the last write, or the complete state if the layout has changed or a write has failed.
    /// Returns at once if a write is in progress or the stored state has not been loaded.
    func keep() async throws(CacheError) {
        let isMine = phase.withLock { phase in
            guard case .resting = phase else { return false }
            phase = .writing
            return true
        }
        guard isMine else { return }
        defer { phase.withLock { $0 = .resting } }
        let now = uptime()
        keptAt.withLock { $0 = now }
        do {
            // Segments of assets without a catalog row would be left out.
            try await commits.flush()
            if let changes = space.with({ $0.takeChanges() }) {
                if !changes.isEmpty { try await catalog.saveSegments(changes) }
            } else {
                let copy = space.with { $0.recordAll() }
                try await catalog.replaceSegments(copy.records, form: copy.form, hand: copy.hand)
            }
        } catch {
            space.with { $0.failedToKeep() }
            throw error
        }
    }
}
