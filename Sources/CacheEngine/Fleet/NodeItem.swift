import CacheCore
import CacheStore

/// A request of the node that runs a job to the owner of an asset: to fetch one item.
package struct NodeItemRequest: Codable, Sendable {
    var item: JSON
    var priority: String
    var maxBytesPerSecond: Int64?
    /// The token of the job, whose limits hold at the owner, too. Nil: the service needs none.
    var owner: FleetTokenOwner?

    init(_ item: JobItemRecord, of job: JobRecord) throws(CacheError) {
        self.item = try StoredJobItem.json(of: item)
        priority = job.priority.rawValue
        maxBytesPerSecond = job.maxBytesPerSecond
        owner = job.owner.map(FleetTokenOwner.init)
    }

    /// The job of the item at its owner. Throws `storageCorrupt` for an item of a later version.
    func job(_ id: String, at now: Timestamp) throws(CacheError) -> JobRecord {
        let item = try StoredJobItem.item(self.item, index: 0)
        return JobRecord(
            id: id, priority: JobPriority(rawValue: priority) ?? .normal, owner: owner?.owner,
            maxBytesPerSecond: maxBytesPerSecond, createdAt: now, items: [item])
    }
}

/// A line of the owner's response: the progress of the item, and in the last one the outcome of its run.
package struct NodeItemLine: Codable, Sendable {
    /// The outcomes of a run at the owner.
    enum Outcome: String, Codable, Sendable {
        case succeeded, expanded, failed, timedOut, cancelled, changed, waiting
        /// The owner shuts down.
        case interrupted
    }

    var asset: AssetID?
    var total: Int64?
    var cache, upstream: Int64
    /// The item of a media file, with its ranges and its result.
    var media: JSON?
    /// Nil: the item runs, or is queued.
    var outcome: Outcome?
    var code, message: String?
    /// The time until the item is to be repeated, if it waits; nil: growing intervals.
    var retrySeconds: Double?
    /// The files of a playlist.
    var files: [JSON]?

    init(_ item: JobItemRecord?) {
        (asset, total) = (item?.assetID, item?.bytesTotal)
        (cache, upstream) = (item?.bytesFromCache ?? 0, item?.bytesFromUpstream ?? 0)
        // Items without media have the ranges of the request. An item that cannot be encoded has none either.
        if let item, item.playResult != nil { media = try? StoredJobItem.json(of: item) }
    }

    mutating func end(_ outcome: PrefetchSchedule.Outcome) throws(CacheError) {
        switch outcome {
        case .succeeded: self.outcome = .succeeded
        case .expanded(let items), .followed(let items, _, _, _):
            self.outcome = .expanded
            files = try items.map { item throws(CacheError) in try StoredJobItem.json(of: item) }
        case .failed(let error): end(.failed, error)
        case .timedOut(let error): end(.timedOut, error)
        case .cancelled(let error): end(.cancelled, error)
        case .changed(let error): end(.changed, error)
        case .waiting(_, let time, let error):
            end(.waiting, error)
            retrySeconds = time?.inSeconds
        case .interrupted: self.outcome = .interrupted
        }
    }

    private mutating func end(_ outcome: Outcome, _ error: RecordedError) {
        (self.outcome, code, message) = (outcome, error.code, error.message)
    }

    /// The progress for the schedule of the job.
    var progress: PrefetchSchedule.Progress {
        var progress = PrefetchSchedule.Progress(
            assetID: asset, bytesTotal: total, bytesFromCache: cache, bytesFromUpstream: upstream)
        if let media, let item = try? StoredJobItem.item(media, index: 0), let result = item.playResult {
            progress.resolved = (item.ranges, result)
        }
        return progress
    }

    /// The outcome for the schedule of the job; nil: the item runs, or is to run elsewhere.
    ///
    /// Each cause of a wait at the owner counts as the quota of the upstream: this node cannot find out when it ends, and
    /// repeats one item after the time, or at growing intervals.
    func outcome(of item: JobItemRecord, for party: String) throws(CacheError) -> PrefetchSchedule.Outcome? {
        let error = RecordedError(code: code ?? CacheError.Code.internal.name, message: message ?? "")
        switch outcome {
        case nil, .interrupted: return nil
        case .succeeded: return .succeeded
        case .expanded:
            let children = try (files ?? []).map { json throws(CacheError) in
                var child = try StoredJobItem.item(json, index: 0)
                child.parent = item.index
                return child
            }
            return .expanded(children)
        case .failed: return .failed(error)
        case .timedOut: return .timedOut(error)
        case .cancelled: return .cancelled(error)
        case .changed: return .changed(error)
        case .waiting:
            return .waiting(ItemWait.Hold(.quota, of: party), retrySeconds.map { .seconds($0) }, error)
        }
    }
}
