import CacheCore
import Foundation
import GRDB

/// Codec for rows of `jobs` and `job_items`.
enum JobRow {
    /// Decodes a row of `jobs`. Throws `storageCorrupt` if a value is invalid.
    static func record(_ row: Row, items: [JobItemRecord] = []) throws -> JobRecord {
        JobRecord(
            id: row["id"], state: try RowCoding.choice(row["state"], "a job's state"), label: row["label"],
            queue: row["queue"], supersedes: row["supersedes"],
            priority: try RowCoding.choice(row["priority"], "a job's priority"), owner: try owner(row),
            maxBytesPerSecond: row["max_bytes_per_second"],
            timeout: (row["timeout"] as Int64?).map { .milliseconds($0) },
            deadlineAt: timestamp(row["deadline_at"]), createdAt: Timestamp(milliseconds: row["created_at"]),
            startedAt: timestamp(row["started_at"]), finishedAt: timestamp(row["finished_at"]), error: error(row),
            items: items)
    }

    /// The bound values of `insertSQL` and `updateSQL`.
    static func arguments(_ job: JobRecord) throws -> StatementArguments {
        [
            "id": job.id, "state": job.state.rawValue, "label": job.label, "queue": job.queue,
            "supersedes": job.supersedes, "priority": job.priority.rawValue, "owner": job.owner?.id,
            "owner_limits": try job.owner.flatMap { try StoredLimits($0.limits).map(RowCoding.json) },
            "max_bytes_per_second": job.maxBytesPerSecond, "timeout": job.timeout?.wholeMilliseconds,
            "deadline_at": job.deadlineAt?.milliseconds, "created_at": job.createdAt.milliseconds,
            "started_at": job.startedAt?.milliseconds, "finished_at": job.finishedAt?.milliseconds,
            "error_code": job.error?.code, "error_message": job.error?.message,
        ]
    }

    /// Decodes a row of `job_items`. Throws `storageCorrupt` if a value is invalid or the reference cannot be
    /// decrypted.
    static func item(_ row: Row, secrets: SecretBox) throws -> JobItemRecord {
        let order = try StoredReference(json: secrets.open(row["sealed_reference"]))
        var item = JobItemRecord(
            index: row["position"], reference: try order.reference(), ranges: try RowCoding.value(json: row["ranges"]),
            tags: order.tags ?? [], isPinned: order.pinned ?? false,
            state: try RowCoding.choice(row["state"], "a job item's state"),
            assetID: try (row["asset"] as Data?).map { try RowCoding.assetID($0) }, attempts: row["attempts"],
            bytesTotal: row["bytes_total"], bytesFromCache: row["bytes_from_cache"],
            bytesFromUpstream: row["bytes_from_upstream"], error: error(row))
        try order.media?.restore(to: &item)
        item.wait = order.wait?.wait
        return item
    }

    /// The bound values of `writeItemSQL` without `job`.
    static func arguments(_ item: JobItemRecord, secrets: SecretBox) throws -> StatementArguments {
        [
            "position": item.index,
            "sealed_reference": try secrets.seal(RowCoding.json(StoredReference(item))),
            "ranges": try RowCoding.json(item.ranges), "state": item.state.rawValue,
            "asset": item.assetID.map(RowCoding.blob), "attempts": item.attempts, "bytes_total": item.bytesTotal,
            "bytes_from_cache": item.bytesFromCache, "bytes_from_upstream": item.bytesFromUpstream,
            "error_code": item.error?.code, "error_message": item.error?.message,
        ]
    }

    private static func timestamp(_ milliseconds: Int64?) -> Timestamp? {
        milliseconds.map { Timestamp(milliseconds: $0) }
    }

    /// The token that made the job. Throws `storageCorrupt` if its limits are invalid.
    private static func owner(_ row: Row) throws -> TokenOwner? {
        guard let id = row["owner"] as String? else { return nil }
        let limits = try (row["owner_limits"] as String?).map { try RowCoding.value(json: $0) as StoredLimits }
        return TokenOwner(
            id: id, limits: ContentLimits(origins: limits?.origins.map { Set($0) }, prefixes: limits?.prefixes))
    }

    /// The recorded error; nil if the row has none.
    private static func error(_ row: Row) -> RecordedError? {
        guard let code = row["error_code"] as String? else { return nil }
        return RecordedError(code: code, message: row["error_message"] ?? "")
    }

    static let insertSQL = """
        INSERT INTO jobs (
            id, state, label, queue, supersedes, priority, owner, owner_limits, max_bytes_per_second, timeout,
            deadline_at, created_at, started_at, finished_at, error_code, error_message
        ) VALUES (
            :id, :state, :label, :queue, :supersedes, :priority, :owner, :owner_limits, :max_bytes_per_second, :timeout,
            :deadline_at, :created_at, :started_at, :finished_at, :error_code, :error_message
        )
        """

    static let updateSQL = """
        UPDATE jobs SET
            state = :state, label = :label, priority = :priority, owner = :owner, owner_limits = :owner_limits,
            max_bytes_per_second = :max_bytes_per_second, timeout = :timeout, deadline_at = :deadline_at,
            started_at = :started_at, finished_at = :finished_at, error_code = :error_code,
            error_message = :error_message
        WHERE id = :id
        """

    static let writeItemSQL = """
        INSERT OR REPLACE INTO job_items (
            job, position, sealed_reference, ranges, state, asset, attempts, bytes_total, bytes_from_cache,
            bytes_from_upstream, error_code, error_message
        ) VALUES (
            :job, :position, :sealed_reference, :ranges, :state, :asset, :attempts, :bytes_total, :bytes_from_cache,
            :bytes_from_upstream, :error_code, :error_message
        )
        """
}

/// The limits of a job's owner as JSON.
private struct StoredLimits: Codable {
    var origins: [String]?
    var prefixes: [String]?

    /// Nil without limits.
    init?(_ limits: ContentLimits) {
        guard limits.isLimited else { return nil }
        (origins, prefixes) = (limits.origins?.sorted(), limits.prefixes)
    }
}

/// A job item's reference, tags, pin and wait as JSON. It is always sealed, because its URL may be signed.
private struct StoredReference: Codable {
    var url: String?
    var origin: String?
    var path: String?
    var key: String?
    var asset: String?
    var tags: [String]?
    var pinned: Bool?
    var media: StoredPlay?
    var wait: StoredWait?

    /// Encodes an item. Empty tags and a missing pin are omitted.
    init(_ item: JobItemRecord) {
        if !item.tags.isEmpty { tags = item.tags }
        if item.isPinned { pinned = true }
        media = StoredPlay(item)
        wait = item.wait.map(StoredWait.init)
        switch item.reference {
        case .url(let url, let key): (self.url, self.key) = (url, key)
        case .mounted(let origin, let path, let key): (self.origin, self.path, self.key) = (origin, path, key)
        case .known(let id): asset = id.description
        }
    }

    init(json: String) throws(CacheError) { self = try RowCoding.value(json: json) }

    /// The decoded reference. Throws `storageCorrupt` if the fields match none of the three forms.
    func reference() throws(CacheError) -> AssetReference {
        if let url { return .url(url, key: key) }
        if let origin, let path { return .mounted(origin: origin, path: path, key: key) }
        if let id = asset.flatMap({ AssetID($0) }) { return .known(id) }
        throw RowCoding.corrupt("a job item's reference")
    }
}

/// The wait of a job item.
private struct StoredWait: Codable {
    var cause: ItemWait.Cause
    var party: String
    /// Milliseconds since 1970, as ``retryAt``.
    var since: Int64
    var retryAt: Int64

    init(_ wait: ItemWait) {
        (cause, party) = (wait.hold.cause, wait.hold.party)
        (since, retryAt) = (wait.since.milliseconds, wait.retryAt.milliseconds)
    }

    var wait: ItemWait {
        ItemWait(
            for: ItemWait.Hold(cause, of: party), since: Timestamp(milliseconds: since),
            retryAt: Timestamp(milliseconds: retryAt))
    }
}

/// The parts of a job item by time, and of the files of its playlists.
private struct StoredPlay: Codable {
    var parent: Int?
    var time: Range<Double>?
    var play: Range<Double>?
    var kinds: [MediaIndex.TrackKind]?
    var renditions: String?
    var keys: Bool?
    var otherwise: PlayRequest.Otherwise?
    var container: String?
    var layout: String?
    var duration: Double?
    var playable: Double?

    /// Nil for an item that fetches bytes.
    init?(_ item: JobItemRecord) {
        guard item.play != nil || item.parent != nil else { return nil }
        parent = item.parent
        time = item.time
        if let request = item.play {
            play = request.time
            kinds = request.kinds?.sorted { $0.rawValue < $1.rawValue }
            (renditions, keys, otherwise) = (request.renditions.text, request.includesKeys, request.otherwise)
        }
        if let result = item.playResult {
            (container, layout, duration) = (result.container, result.layout, result.duration)
            playable = result.playableSeconds
        }
    }

    /// Throws `storageCorrupt` if a value is invalid.
    func restore(to item: inout JobItemRecord) throws(CacheError) {
        item.parent = parent
        item.time = time
        if let play {
            guard let renditions = RenditionChoice(renditions ?? "lowest") else {
                throw RowCoding.corrupt("a choice of renditions")
            }
            item.play = PlayRequest(
                time: play, kinds: kinds.map(Set.init), renditions: renditions, includesKeys: keys ?? true,
                otherwise: otherwise ?? .fail)
        }
        if let playable {
            item.playResult = PlayResult(
                container: container, layout: layout, duration: duration, playableSeconds: playable)
        }
    }
}
