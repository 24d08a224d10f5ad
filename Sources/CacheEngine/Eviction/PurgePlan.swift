package import CacheCore
import CacheStore
import Synchronization

/// The assets that a purge takes, or the ranges that an eviction takes, of exactly these generations.
package struct PurgePlan: Sendable {
    package enum State: String, Sendable, CaseIterable { case planned, running, done, cancelled }

    /// How far it has come.
    package struct Standing: Hashable, Sendable {
        package let planID: String
        package let isSoft: Bool
        package let assets: Int
        package let pinnedAssets: Int
        /// On disk when it was planned.
        package let bytes: Int64
        /// Nobody carries it out after that.
        package let expiresAt: Timestamp
        package var state = State.planned
        package var assetsDone = 0
        /// Gone, or other ones, since it was planned: left alone.
        package var assetsChanged = 0
        package var freedBytes: Int64 = 0
    }

    /// One life of an asset.
    struct Chosen: Hashable, Sendable {
        let id: AssetID
        private let generation: Int64
        private let createdAt: Timestamp

        init(_ asset: SelectedAsset) {
            id = asset.id
            generation = asset.generation
            createdAt = asset.createdAt
        }
    }

    let assets: [Chosen]
    /// Of an eviction: the ranges to be evicted; nil: whole assets are purged.
    let ranges: [AssetID: [ByteRange]]?
    var standing: Standing

    var id: String { standing.planID }
    var isSoft: Bool { standing.isSoft }

    init(id: String, chosen: [SelectedAsset], ranges: [AssetID: [ByteRange]], bytes: Int64, expiresAt: Timestamp) {
        assets = chosen.map(Chosen.init)
        self.ranges = ranges
        standing = Standing(
            planID: id, isSoft: false, assets: chosen.count, pinnedAssets: 0, bytes: bytes, expiresAt: expiresAt)
    }

    init(id: String, chosen: [SelectedAsset], isSoft: Bool, expiresAt: Timestamp) {
        assets = chosen.map(Chosen.init)
        ranges = nil
        standing = Standing(
            planID: id, isSoft: isSoft, assets: chosen.count, pinnedAssets: chosen.count(where: \.isPinned),
            bytes: chosen.reduce(0) { $0 + $1.cachedBytes }, expiresAt: expiresAt)
    }
}

/// Plans of purges, for an hour each; in memory only.
final class PurgeBook: Sendable {
    static let lifetime = Duration.seconds(3600)
    /// As many are kept at once.
    private static let most = 64

    private let plans = Mutex<[String: PurgePlan]>([:])

    /// Throws `.overloaded` where too many are kept.
    func keep(_ plan: PurgePlan, at now: Timestamp) throws(CacheError) {
        let isKept = plans.withLock { plans in
            plans = plans.filter { $0.value.standing.expiresAt > now || $0.value.standing.state == .running }
            if plans.count >= Self.most,
                let oldest = plans.values.filter({ $0.standing.state != .running })
                    .min(by: { $0.standing.expiresAt < $1.standing.expiresAt })
            {
                plans[oldest.id] = nil
            }
            guard plans.count < Self.most else { return false }
            plans[plan.id] = plan
            return true
        }
        guard isKept else { throw CacheError(.overloaded, "Too many purges are under way.") }
    }

    func plan(_ id: String, at now: Timestamp) throws(CacheError) -> PurgePlan {
        let plan = plans.withLock { $0[id] }
        guard let plan, plan.standing.expiresAt > now || plan.standing.state == .running else { throw Self.unknown(id) }
        return plan
    }

    /// The plan, which is carried out from now on.
    func begin(_ id: String, at now: Timestamp) throws(CacheError) -> PurgePlan {
        let plan = try plan(id, at: now)
        let isFirst = plans.withLock { plans in
            guard plans[id]?.standing.state == .planned else { return false }
            plans[id]?.standing.state = .running
            return true
        }
        guard isFirst else {
            throw CacheError(.conflict, "The purge \(id) is \(plan.standing.state.rawValue) already.")
        }
        return plan
    }

    func cancel(_ id: String) {
        plans.withLock { plans in
            switch plans[id]?.standing.state {
            case .planned: plans[id] = nil
            case .running: plans[id]?.standing.state = .cancelled
            case .done, .cancelled, nil: break
            }
        }
    }

    func isCancelled(_ id: String) -> Bool { plans.withLock { $0[id]?.standing.state == .cancelled } }

    /// Without effect where nobody keeps the plan.
    func change(_ id: String, _ body: (inout PurgePlan) -> Void) {
        plans.withLock { plans in
            guard var plan = plans[id] else { return }
            body(&plan)
            plans[id] = plan
        }
    }

    private static func unknown(_ id: String) -> CacheError {
        CacheError(.notFound, "There is no purge \(id), or its time has passed.")
    }
}
