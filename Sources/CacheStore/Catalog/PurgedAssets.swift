import CacheCore
import Synchronization

/// The rows of the table `purged` in memory: assets that a purge has selected and that are still in the catalog.
///
/// Marks are added after the transaction that adds them to the table, before the next one begins. They end when the row
/// is removed and its file is unlinked, or when the asset is stored again.
final class PurgedAssets: Sendable {
    /// The mark of one asset.
    struct Mark: Sendable {
        /// The number of the purge.
        let purge: Int64
        /// The cached bytes of the asset.
        let bytes: Int64
    }

    /// The marks, and the totals of each purge that has any.
    private struct State {
        var marks: [AssetID: Mark] = [:]
        var left: [Int64: (assets: Int, bytes: Int64)] = [:]
    }

    private let state = OrderedMutex(.leaf, State())
    /// Whether there are no marks: reads take the lock only while there are some.
    private let hasNone = Atomic(true)

    /// Whether no asset is marked.
    var isEmpty: Bool { hasNone.load(ordering: .acquiring) }

    /// The number of purges with marked assets.
    var purges: Int { state.withLock { $0.left.count } }

    /// Whether the asset is marked: it counts as removed.
    func contains(_ id: AssetID) -> Bool { !isEmpty && state.withLock { $0.marks[id] != nil } }

    /// The marked assets of a purge, and their cached bytes.
    func left(of purge: Int64) -> (assets: Int, bytes: Int64) { state.withLock { $0.left[purge] ?? (0, 0) } }

    /// Adds marks of assets that have none.
    func add(_ marks: [AssetID: Mark]) {
        state.withLock { state in
            for (id, mark) in marks {
                state.marks[id] = mark
                let left = state.left[mark.purge] ?? (0, 0)
                state.left[mark.purge] = (left.assets + 1, left.bytes + mark.bytes)
            }
            hasNone.store(state.marks.isEmpty, ordering: .releasing)
        }
    }

    /// Ends the marks of removed assets, unless another purge has selected them meanwhile.
    func end(_ removed: [RemovedAsset]) {
        remove(state.withLock { state in removed.filter { state.marks[$0.id]?.purge == $0.purge } }.map(\.id))
    }

    /// Removes the marks of these assets.
    func remove(_ ids: some Sequence<AssetID>) {
        state.withLock { state in
            for id in ids {
                guard let mark = state.marks.removeValue(forKey: id), let left = state.left[mark.purge] else {
                    continue
                }
                state.left[mark.purge] = left.assets > 1 ? (left.assets - 1, left.bytes - mark.bytes) : nil
            }
            hasNone.store(state.marks.isEmpty, ordering: .releasing)
        }
    }
}
