import CacheCore

/// Caches the targets of mounted references until an origin changes. A resolution costs more than a small response.
final class ResolvedTargetCache: Sendable {
    /// The state of one shard, guarded by the shard's lock.
    private struct State {
        var targets: BoundedTable<AssetReference, AssetTarget>
        /// The number of origin changes at the time of the resolutions.
        var changes: UInt64 = 0
    }

    private let shards: Sharded<State>
    /// The length in bytes of the longest path that is cached.
    private let referenceLimit = 512

    /// - Parameter limit: The maximum number of targets.
    init(limit: Int = 2048) {
        let count = 16
        shards = Sharded(.leaf, count: count) { State(targets: BoundedTable(capacity: limit / count)) }
    }

    /// The cached target of the reference, if the number of origin changes is the same; otherwise nil.
    func target(of reference: AssetReference, changes: UInt64) -> AssetTarget? {
        shard(of: reference).value.withLock { $0.changes == changes ? $0.targets[reference] : nil }
    }

    /// The cached target of the reference, or that of the resolver, which is then cached.
    func target(
        of reference: AssetReference, resolvedBy resolver: AssetResolver
    ) async throws(CacheError) -> AssetTarget {
        let changes = resolver.origins.changes
        if let known = target(of: reference, changes: changes) { return known }
        let target = try await resolver.resolve(reference)
        keep(target, of: reference, changes: changes)
        return target
    }

    /// Stores the target of a reference that was resolved after `changes` origin changes.
    ///
    /// Only ASCII paths are stored: for others, `==` of strings accepts paths with different bytes, which are different
    /// assets. Paths with CMCD are not stored, because they differ in each request.
    func keep(_ target: AssetTarget, of reference: AssetReference, changes: UInt64) {
        guard case .mounted(_, let path, nil) = reference, path.utf8.count <= referenceLimit,
            path.utf8.allSatisfy({ $0 < 0x80 }), CMCDParameter.removed(fromTarget: path) == path
        else { return }
        shard(of: reference).value.withLock { state in
            if changes < state.changes { return }
            if changes > state.changes { state.targets.removeAll() }
            state.changes = changes
            state.targets[reference] = target
        }
    }

    private func shard(of reference: AssetReference) -> Sharded<State>.Shard {
        shards[UInt(bitPattern: reference.hashValue)]
    }
}
