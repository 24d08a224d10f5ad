package import CacheCore
import CacheStore

/// The assets of a purge, or the ranges of an eviction, fixed to the generations that existed when it was planned.
package struct PurgePlan: Sendable {
    /// The lifecycle of a plan.
    package enum State: String, Sendable, CaseIterable { case planned, running, done, cancelled }

    /// The progress of a plan.
    package struct Progress: Hashable, Sendable {
        package let planID: String
        /// Whether the assets are marked stale in place of being removed.
        package let isSoft: Bool
        /// Whether the keys of encrypted assets are deleted first, with a receipt.
        package var isErasure = false
        package var receipt: ErasureReceipt?
        package let assets: Int
        /// The number of pinned assets in the plan; always 0 for an eviction.
        package let pinnedAssets: Int
        /// The bytes on disk when the plan was made.
        package let bytes: Int64
        /// The plan cannot be started after this time; a finished purge is forgotten.
        package var expiresAt: Timestamp
        package var state = State.planned
        /// The assets that were removed or marked stale.
        package var assetsDone = 0
        /// The assets that have changed or were removed since the plan was made; they are left alone.
        package var assetsChanged = 0
        /// The bytes freed so far.
        package var freedBytes: Int64 = 0
        /// Whether a commit has returned when the purge had taken effect, possibly before its end.
        package var isInBackground = false
    }

    /// The token that made the plan; nil: the service needs none.
    let owner: TokenOwner?
    private(set) var assets: [AssetVersion]
    /// The origin that the purge is confined to; nil: none.
    let origin: String?
    /// The ranges to evict, by asset; nil for a purge of whole assets.
    let ranges: [AssetID: [ByteRange]]?
    /// The request of the purge; nil: none is known.
    let request: PurgeRequest?
    var progress: Progress
    /// The purge that deletes its assets in the background; nil: none.
    private(set) var purge: PurgeRecord?

    var id: String { progress.planID }
    var isSoft: Bool { progress.isSoft }

    /// A plan to evict ranges; `bytes` is their total.
    init(
        id: String, owner: TokenOwner? = nil, chosen: [SelectedAsset], ranges: [AssetID: [ByteRange]], bytes: Int64,
        expiresAt: Timestamp
    ) {
        self.owner = owner
        assets = chosen.map(AssetVersion.init)
        origin = nil
        self.ranges = ranges
        request = nil
        progress = Progress(
            planID: id, isSoft: false, assets: chosen.count, pinnedAssets: 0, bytes: bytes, expiresAt: expiresAt)
    }

    /// A plan to purge whole assets.
    init(
        id: String, owner: TokenOwner? = nil, chosen: [SelectedAsset], origin: String?, isSoft: Bool,
        isErasure: Bool = false, request: PurgeRequest? = nil, expiresAt: Timestamp
    ) {
        self.owner = owner
        assets = chosen.map(AssetVersion.init)
        self.origin = origin
        self.request = request
        ranges = nil
        progress = Progress(
            planID: id, isSoft: isSoft, assets: chosen.count, pinnedAssets: chosen.count(where: \.isPinned),
            bytes: chosen.reduce(0) { $0 + $1.cachedBytes }, expiresAt: expiresAt)
        progress.isErasure = isErasure
    }

    /// The plan of a purge that an earlier run of the service has begun.
    init(_ purge: PurgeRecord) {
        (owner, assets, origin, ranges, request) = (purge.owner, [], nil, nil, nil)
        progress = Progress(
            planID: purge.id, isSoft: false, assets: purge.assets, pinnedAssets: purge.pinnedAssets,
            bytes: purge.bytes, expiresAt: purge.expiresAt)
        self.purge = purge
        progress.state = .running
    }

    /// Whether the execution deletes the assets in the background, unless only a few are selected.
    var canRunLater: Bool { ranges == nil && !isSoft }

    /// Records that the assets are marked and are deleted in the background.
    mutating func run(as purge: PurgeRecord) {
        self.purge = purge
        assets = []  // the catalog has them
        progress.state = .running
        progress.assetsChanged = purge.assets - purge.marked
    }

    /// Adopts the progress of the purge in the background.
    mutating func update(from catalog: Catalog) {
        guard let purge, progress.state == .running else { return }
        let (removed, bytes, isDone) = catalog.progress(of: purge)
        progress.assetsDone = removed
        progress.freedBytes = bytes
        progress.assetsChanged = purge.assets - purge.marked
        if isDone { progress.state = .done }
    }
}

/// Registry of purge plans, and of purges in the background. A plan that is not running expires after an hour.
///
/// Plans are in memory only. Purges in the background are in the catalog as well.
final class PurgePlanRegistry: Sendable {
    /// The time after which a plan expires.
    static let lifetime = Duration.seconds(3600)
    /// The maximum number of plans, and of those of one token with limits.
    private static let most = 64
    private static let mostOfLimited = 8

    /// Guards the plans, the oldest first.
    private let plans: OrderedMutex<[PurgePlan]>

    init(_ plans: [PurgePlan] = []) { self.plans = OrderedMutex(.purgePlans, plans) }

    /// Adopts the progress of the purges in the background.
    func update(from catalog: Catalog) {
        plans.withLock { plans in for index in plans.indices { plans[index].update(from: catalog) } }
    }

    /// Adds a plan. Expired plans are removed, and the oldest plan that is not running if the registry is full. A token
    /// with limits replaces its own oldest plan instead once it has eight. Throws `.overloaded` if all plans that could
    /// be removed are running.
    func keep(_ plan: PurgePlan, at now: Timestamp) throws(CacheError) {
        let isKept = plans.withLock { plans in
            plans.removeAll { $0.progress.expiresAt <= now && $0.progress.state != .running }
            let surplus = plans.count(where: { $0.purge != nil }) - Catalog.mostPurges
            if surplus >= 0, let oldest = plans.firstIndex(where: { $0.purge != nil && $0.progress.state != .running })
            {
                plans.remove(at: oldest)
            }
            let isOwn: (PurgePlan) -> Bool = { other in
                plan.owner?.limits.isLimited == true && other.owner == plan.owner
            }
            let isAtOwnLimit = plans.count(where: isOwn) >= Self.mostOfLimited
            if isAtOwnLimit || plans.count(where: { $0.purge == nil }) >= Self.most {
                let oldest = plans.firstIndex { plan in
                    plan.progress.state != .running && (isAtOwnLimit ? isOwn(plan) : plan.purge == nil)
                }
                guard let oldest else { return false }
                plans.remove(at: oldest)
            }
            plans.append(plan)
            return true
        }
        guard isKept else { throw CacheError(.overloaded, "Too many purges are running: wait until one has ended.") }
    }

    /// The plan with this identifier. Throws `.notFound` if it is unknown or has expired.
    func plan(_ id: String, at now: Timestamp) throws(CacheError) -> PurgePlan {
        let plan = plans.withLock { $0.first { $0.id == id } }
        guard let plan, plan.progress.expiresAt > now || plan.progress.state == .running else { throw Self.unknown(id) }
        return plan
    }

    /// Marks the plan as running and returns it. Throws `.conflict` if it was started before, and `.notFound`.
    func begin(_ id: String, at now: Timestamp) throws(CacheError) -> PurgePlan {
        let plan = try plan(id, at: now)
        let isFirst = plans.withLock { plans in
            guard let index = plans.firstIndex(where: { $0.id == id && $0.progress.state == .planned }) else {
                return false
            }
            plans[index].progress.state = .running
            return true
        }
        guard isFirst else {
            throw CacheError(.conflict, "The purge \(id) is already \(plan.progress.state.rawValue).")
        }
        return plan
    }

    /// Removes a planned purge, or stops a running one after its current batch. No effect on a finished one. Throws
    /// `.conflict` if the assets are deleted in the background: the purge has taken effect.
    func cancel(_ id: String) throws(CacheError) {
        let isCancelled = plans.withLock { plans in
            guard let index = plans.firstIndex(where: { $0.id == id }) else { return true }
            switch plans[index].progress.state {
            case .planned: plans.remove(at: index)
            case .running where plans[index].purge != nil: return false
            case .running: plans[index].progress.state = .cancelled
            case .done, .cancelled: break
            }
            return true
        }
        guard isCancelled else {
            throw CacheError(
                .conflict, "The purge \(id) has taken effect and cannot be stopped; it deletes its assets.")
        }
    }

    /// Whether a running purge must stop.
    func isCancelled(_ id: String) -> Bool {
        plans.withLock { $0.contains { $0.id == id && $0.progress.state == .cancelled } }
    }

    /// Changes the plan; no effect if it is not registered.
    func change(_ id: String, _ body: (inout PurgePlan) -> Void) {
        plans.withLock { plans in
            if let index = plans.firstIndex(where: { $0.id == id }) { body(&plans[index]) }
        }
    }

    /// The error for a plan that does not exist or has expired.
    private static func unknown(_ id: String) -> CacheError {
        CacheError(.notFound, "There is no purge \(id), or it has expired: start a new dry run.")
    }
}
