import CacheCore
import Logging

/// The router of the fleet, through which the node that runs a job reaches the owners of its items.
struct ItemRouter: Sendable {
    /// The result of a request.
    enum Answer: Sendable {
        case ended(PrefetchSchedule.Outcome)
        /// No node has finished the item: the request can be repeated.
        case unavailable(CacheError)
        /// The router or the owner refuses such requests.
        case refused(CacheError)
    }

    /// The name by which the limits of transfers count the requests, and their number.
    private static let (originName, maxTransfers) = ("(router)", 32)

    let url: String
    let key: String
    /// The verification of the router is that of other nodes.
    let peers: PeerNodes
    let upstream: any Upstream

    /// Lets the owner of the asset fetch the item.
    func run(
        _ item: JobItemRecord, of job: JobRecord, asset: AssetID, party: String,
        report: @escaping @Sendable (PrefetchSchedule.Progress) -> Void
    ) async throws(CacheError) -> Answer {
        var request = UpstreamRequest(
            method: .post, url: "\(url)/v1/assets/\(asset)/prefetch", headers: ["Content-Type": "application/json"],
            originHeaders: ["Authorization": "Bearer \(key)"], originName: Self.originName,
            timeouts: TransferTimeouts(connect: .seconds(2), total: nil), maxTransfers: Self.maxTransfers,
            priority: .prefetch, allowPrivateAddresses: true, tls: peers.tls)
        request.body = try NodeItemRequest(item, of: job).jsonBytes
        request.followsRedirects = false
        request.requiresHTTP1 = { _ in true }
        let last = AsyncCondition<NodeItemLine?>(nil)
        let (status, end) = await upstream.lines(of: request) { status in
            CacheError(.fleetUnavailable, "The answer of fleet.router to an item of a job has the status \(status).")
        } body: { line throws(CacheError) in
            let value: NodeItemLine = try JSONParser.parse(line).decode(isStrict: false)
            last.change { $0 = value }
            if value.outcome != .interrupted { report(value.progress) }
        }
        if let status, let error = end.error, (400..<500).contains(status), status != 429 { return .refused(error) }
        if let line = last.state, let outcome = try line.outcome(of: item, for: party) { return .ended(outcome) }
        return .unavailable(
            end.error ?? CacheError(.fleetUnavailable, "The node has ended the item without a result."))
    }
}

extension FleetJobs {
    /// The number of requests for one item before this node fetches it itself.
    private static let mostRequests = 3

    /// Lets the owner of an item's asset fetch the item. Nil: this node is to fetch it, because no owner does, or because
    /// only this node may have the asset.
    func runAtOwner(
        _ run: PrefetchSchedule.Run, _ item: JobItemRecord, in cache: AssetCache
    ) async -> PrefetchSchedule.Outcome? {
        guard let router = state.withLock(\.router), let job = prefetch.scheduled(run.job)?.record else { return nil }
        do throws(CacheError) {
            let (asset, party): (AssetID, String)
            if case .known(let id) = item.reference {
                guard try await cache.resolver.key(of: id) == nil else { return nil }
                (asset, party) = (id, Origin.absoluteName)
            } else {
                try await prefetch.check(item, of: run.job, in: cache)
                let target = try await cache.resolver.resolve(item.reference)
                (asset, party) = (target.id, target.party)
            }
            for number in 1...Self.mostRequests {
                let answer = try await router.run(item, of: job, asset: asset, party: party) { progress in
                    self.prefetch.change { $0.progressed(run, progress, at: $1) }
                }
                if Task.isCancelled { return .interrupted }
                switch answer {
                case .ended(let outcome): return outcome
                case .refused(let error):
                    logger.warning(
                        "the router refuses an item of a job; this node fetches it", metadata: ["error": "\(error)"])
                    return nil
                case .unavailable(let error):
                    logger.info(
                        "an item of a job was not fetched by its owner",
                        metadata: ["error": "\(error)", "attempt": "\(number)"])
                }
                guard (try? await prefetch.clock.sleep(for: .seconds(1))) != nil else { return .interrupted }
            }
            return nil
        } catch {
            return nil  // the run at this node reports the error of the item
        }
    }
}
