import CacheCore
import Synchronization

/// What references of mounted assets were resolved to, for as long as no origin changes: resolving costs more than a
/// small answer does.
final class TargetMemo: Sendable {
    private struct State {
        var targets: [AssetReference: AssetTarget] = [:]
        /// The state of the origins they were resolved by.
        var changes: UInt64 = 0
    }

    private let shards = Shards { State() }
    /// As many are kept in one shard; then all of it are forgotten.
    private let limit: Int
    /// Longer references are not kept.
    private let referenceLimit = 512

    init(limit: Int = 2048) { self.limit = limit / shards.count }

    /// What was kept of the reference, if the origins have changed that often.
    func target(of reference: AssetReference, changes: UInt64) -> AssetTarget? {
        shard(of: reference).value.withLock { $0.changes == changes ? $0.targets[reference] : nil }
    }

    /// Keeps what the reference was resolved to after the origins had changed that often.
    func keep(_ target: AssetTarget, of reference: AssetReference, changes: UInt64) {
        guard case .mounted(_, let path, nil) = reference, path.utf8.count <= referenceLimit else { return }
        shard(of: reference).value.withLock { state in
            if changes < state.changes { return }
            if changes > state.changes || state.targets.count >= limit { state.targets = [:] }
            state.changes = changes
            state.targets[reference] = target
        }
    }

    private func shard(of reference: AssetReference) -> Shards<State>.Shard {
        shards[UInt(bitPattern: reference.hashValue)]
    }
}
