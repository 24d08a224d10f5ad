import CacheCore
import CacheStore
import Synchronization

/// The assets that a purge may select, decided without the catalog: it does not have those yet that are being opened.
struct PurgeScope: Sendable {
    /// The largest number of identifiers and names; a scope that has more contains all assets of its origin and prefix.
    static let mostNames = 1000
    /// No key is longer; a longer prefix selects nothing, and is not kept.
    private static let longestPrefix = 4096
    private static let mostPatterns = 16

    /// Name of the origin; nil: any.
    private let origin: String?
    private let prefix: String?
    /// Nil: any, or more than are kept.
    private let patterns: [KeyPattern]?
    private let tag: String?
    /// In lower case.
    private let contentType: String?
    /// The identifiers that were given; nil: any.
    private let ids: Set<AssetID>?
    /// The identifiers of base assets, for keys and URLs that were given, and those of the spellings of the URLs; nil: any.
    private let names: Set<AssetID>?

    init(_ selection: AssetSelection, names: Set<AssetID>? = nil) {
        origin = selection.origin
        prefix = selection.prefix.flatMap { $0.utf8.count <= Self.longestPrefix ? $0 : nil }
        patterns = selection.patterns.flatMap { $0.count <= Self.mostPatterns ? $0 : nil }
        tag = selection.tag
        contentType = selection.contentType.map { FieldText.lowered($0) }
        ids = selection.ids.flatMap { $0.count <= Self.mostNames ? Set($0) : nil }
        self.names = names.flatMap { $0.count <= Self.mostNames ? $0 : nil }
    }

    /// True also for some assets that are not selected: the age does not count here, nor what an asset without a record
    /// may become.
    func mayContain(_ target: AssetTarget, _ record: AssetRecord?) -> Bool {
        guard origin ?? target.originName == target.originName, ids?.contains(target.id) ?? true,
            prefix.map(target.key.hasPrefix) ?? true, record.map(mayContain) ?? true
        else { return false }
        guard patterns != nil || names != nil else { return true }
        let base = target.variant([:])
        return patterns?.contains { $0.matches(base.key) } ?? true
            && names.map { $0.contains(base.id) || $0.contains(AssetID(naming: target.url.withoutQuery)) } ?? true
    }

    private func mayContain(_ record: AssetRecord) -> Bool {
        if let tag, !record.tags.contains(tag) { return false }
        guard let contentType else { return true }
        let type = record.generation.contentType.map { MediaType.essence($0) } ?? ""
        return contentType.hasSuffix("/*") ? type.hasPrefix(contentType.dropLast()) : type == contentType
    }
}

/// The latest purges, numbered from 1 since the start. A request that was made before a purge can bring a response from
/// before it, for an asset that the catalog does not have yet: such a response is stored as stale.
final class RecentPurges: Sendable {
    /// The number of scopes that are kept. A request that was made before more purges counts as purged.
    static let most = 64

    private struct State {
        var scopes: [PurgeScope] = []
        /// The number of the last purge.
        var last: UInt64 = 0
    }

    private let state = OrderedMutex(.leaf, State())
    /// The same as `last` in the state, to be read without the lock.
    private let last = Atomic<UInt64>(0)

    /// The number of the last purge; 0 before the first.
    var number: UInt64 { last.load(ordering: .acquiring) }

    /// A purge begins. It must be added before its assets are selected.
    func add(_ scope: PurgeScope) {
        state.withLock { state in
            state.scopes.append(scope)
            if state.scopes.count > Self.most { state.scopes.removeFirst() }
            state.last += 1
            last.store(state.last, ordering: .releasing)
        }
    }

    /// Whether a purge after the one with `number` may select the asset.
    ///
    /// - Parameter record: Evaluated only if there was a purge; nil: the asset has none yet.
    func mayContain(
        _ target: AssetTarget, _ record: @autoclosure () -> AssetRecord?, since number: UInt64
    ) -> Bool {
        guard number != self.number else { return false }
        let record = record()
        return state.withLock { state in
            let newer = state.last - number
            return newer > UInt64(state.scopes.count)
                || state.scopes.suffix(Int(newer)).contains { $0.mayContain(target, record) }
        }
    }
}
