import CacheCore
import CacheStore
import Synchronization

/// Writes down how the eviction policy's segments stand, so that a restart does not forget what is worth keeping.
final class SegmentKeeper: Sendable {
    private let space: Space
    private let commits: CommitQueue
    private let catalog: Catalog
    private enum Phase {
        /// What was written down is yet to be taken up; until then nothing is written over it.
        case reading
        case resting
        case writing
    }

    private let phase = Mutex(Phase.reading)
    private let uptime: @Sendable () -> Duration
    private let keptAt = Mutex(Duration.zero)

    init(space: Space, commits: CommitQueue, catalog: Catalog, uptime: @escaping @Sendable () -> Duration) {
        self.space = space
        self.commits = commits
        self.catalog = catalog
        self.uptime = uptime
    }

    /// Whether all that was written down is taken up.
    var isReady: Bool { phase.withLock { if case .reading = $0 { false } else { true } } }

    /// Takes up what was written down; what bytes there are is counted afterwards. `form`: under which that is, and the ledger
    /// was begun.
    func restore(_ form: LedgerForm) async throws(CacheError) {
        let space = space
        let hand = try await catalog.segmentHand()
        try await catalog.eachSegment { record in
            space.with { ledger in if ledger.form == form { ledger.restore(record, hand: hand) } }
        }
        space.with { ledger in if ledger.form == form { ledger.wasRestored() } }
    }

    /// The bytes are counted: forgets what was taken up and is not there, and keeps what changes from now on.
    func begin() {
        let copy = space.with { $0 }
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

    /// As `keep`, unless that was a moment ago, for a round of evictions may follow the last one at once; or all would have to
    /// be written, for somebody may wait for room.
    func keepBeforeEviction() async throws(CacheError) {
        guard uptime() - keptAt.withLock({ $0 }) >= .seconds(5), space.with({ $0.isKept }) else { return }
        try await keep()
    }

    /// Writes down what changed since the last time; returns at once where that is under way, or too early.
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
            // What belongs to no row yet would be left out.
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
