import CacheCore
import Foundation
import GRDB

/// Codec for rows of `jobs` and `job_items`.
enum JobRow {
    /// The columns of `jobs`, except `sequence`.
    static let columns: [Column<JobRecord>] = [
        Column("id", \.id).on(update: .kept),
        Column("state", \.state, .choice("a job's state")),
        Column("label", \.label),
        Column("queue", \.queue).on(update: .kept),
        Column("supersedes", \.supersedes).on(update: .kept),
        Column("priority", \.priority, .choice("a job's priority")),
        Column("owner", encode: { job, _ in job.owner?.id }, decode: { row, _, job in job.owner = try owner(row) }),
        Column(
            "owner_limits",
            encode: { job, _ in try limits(of: job.owner) }),
        Column("max_bytes_per_second", \.maxBytesPerSecond),
        Column("timeout", \.timeout, ColumnCodec.duration.orNull),
        Column("deadline_at", \.deadlineAt, ColumnCodec.timestamp.orNull),
        Column("created_at", \.createdAt, .timestamp).on(update: .kept),
        Column("started_at", \.startedAt, ColumnCodec.timestamp.orNull),
        Column("finished_at", \.finishedAt, ColumnCodec.timestamp.orNull),
        Column("error_code", encode: { job, _ in job.error?.code }, decode: { row, _, job in job.error = error(row) }),
        Column("error_message", encode: { job, _ in job.error?.message }),
        Column(
            "plan", encode: { job, _ in try StoredPlan(job).map(RowCoding.json) },
            decode: { row, _, job in
                guard let text = row["plan"] as String? else { return }
                try (RowCoding.value(json: text) as StoredPlan).restore(to: &job)
            }),
    ]

    /// The columns of `job_items`, except `job`.
    static let itemColumns: [Column<JobItemRecord>] = [
        Column("position", \.index),
        Column(
            "sealed_reference",
            encode: { item, secrets in try secrets.seal(RowCoding.json(StoredReference(item))) },
            decode: { row, secrets, item in
                try StoredReference(json: secrets.open(row["sealed_reference"])).restore(to: &item)
            }),
        Column("ranges", \.ranges, .json),
        Column("state", \.state, .choice("a job item's state")),
        Column("asset", \.assetID, ColumnCodec.assetID.orNull),
        Column("attempts", \.attempts),
        Column("bytes_total", \.bytesTotal),
        Column("bytes_from_cache", \.bytesFromCache),
        Column("bytes_from_upstream", \.bytesFromUpstream),
        Column(
            "error_code", encode: { item, _ in item.error?.code }, decode: { row, _, item in item.error = error(row) }),
        Column("error_message", encode: { item, _ in item.error?.message }),
    ]

    static let insertSQL = columns.insertion("INSERT", into: "jobs")
    static let updateSQL = columns.update(of: "jobs")
    static let writeItemSQL = itemColumns.insertion("INSERT OR REPLACE", into: "job_items", with: ["job"])

    /// Decodes a row of `jobs`. Throws `storageCorrupt` if a value is invalid.
    static func record(_ row: Row, items: [JobItemRecord] = [], secrets: SecretBox) throws -> JobRecord {
        var job = JobRecord(id: "", createdAt: Timestamp(milliseconds: 0), items: items)
        try columns.decode(row, into: &job, secrets)
        return job
    }

    /// Decodes a row of `job_items`. Throws `storageCorrupt` if a value is invalid or the reference cannot be
    /// decrypted.
    static func item(_ row: Row, secrets: SecretBox) throws -> JobItemRecord {
        var item = JobItemRecord(index: 0, reference: .known(AssetID(high: 0, low: 0)))
        try itemColumns.decode(row, into: &item, secrets)
        return item
    }

    /// The limits of a token as JSON; nil without limits.
    static func limits(of owner: TokenOwner?) throws -> String? {
        try owner.flatMap { try StoredLimits($0.limits).map(RowCoding.json) }
    }

    /// The token that made the job or the purge. Throws `storageCorrupt` if its limits are invalid.
    static func owner(_ row: Row) throws -> TokenOwner? {
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

/// The terms of a job that have no column of their own, as JSON.
private struct StoredPlan: Codable {
    /// Nil: 1.
    var revision: Int64?
    /// Milliseconds since 1970.
    var notBefore: Int64?
    var windows: [String]?
    var trigger: JobTrigger?
    var spooledItems: Int?

    /// Nil for the terms of most jobs.
    init?(_ job: JobRecord) {
        guard job.revision != 1 || job.times != JobTimes() || job.spooledItems != nil else { return nil }
        spooledItems = job.spooledItems
        (revision, notBefore) = (job.revision, job.times.notBefore?.milliseconds)
        windows = job.times.windows.isEmpty ? nil : job.times.windows.map(\.text)
        trigger = job.times.trigger
    }

    /// Throws `storageCorrupt` if a window is invalid.
    func restore(to job: inout JobRecord) throws(CacheError) {
        (job.revision, job.spooledItems) = (revision ?? 1, spooledItems)
        do throws(CacheError) {
            job.times = JobTimes(
                notBefore: notBefore.map { Timestamp(milliseconds: $0) },
                windows: try (windows ?? []).map { text throws(CacheError) in try JobWindow(text) },
                trigger: trigger)
        } catch {
            throw RowCoding.corrupt("a window of a job")
        }
    }
}

/// A job item's reference, tags, pin and wait as JSON. It is always sealed, because its URL may be signed.
struct StoredReference: Codable {
    var url: String?
    var origin: String?
    var path: String?
    var key: String?
    var asset: String?
    var tags: [String]?
    var pinned: Bool?
    var list: ListSelection?
    fileprivate var media: StoredPlay?
    fileprivate var wait: StoredWait?

    /// Encodes an item. Empty tags and a missing pin are omitted.
    init(_ item: JobItemRecord) {
        if !item.tags.isEmpty { tags = item.tags }
        if item.isPinned { pinned = true }
        list = item.list
        media = StoredPlay(item)
        // A live playlist is loaded at once after a restart.
        wait = item.wait.flatMap { $0.hold.cause == .live ? nil : StoredWait($0) }
        switch item.reference {
        case .url(let url, let key): (self.url, self.key) = (url, key)
        case .mounted(let origin, let path, let key): (self.origin, self.path, self.key) = (origin, path, key)
        case .known(let id): asset = id.description
        }
    }

    init(json: String) throws(CacheError) { self = try RowCoding.value(json: json) }

    /// Sets the properties of an item that the document contains.
    func restore(to item: inout JobItemRecord) throws {
        item.reference = try reference()
        (item.tags, item.isPinned) = (tags ?? [], pinned ?? false)
        item.list = list
        try media?.restore(to: &item)
        item.wait = wait?.wait
    }

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
    /// Nil: the request names the start.
    var hasStart: Bool?
    /// Nil: the playlist is not followed.
    var live: Bool?
    var kinds: [TrackKind]?
    var renditions: String?
    var keys: Bool?
    var otherwise: PlayRequest.Otherwise?
    var container: String?
    var layout: String?
    var duration: Double?
    var start: Double?
    var playable: Double?

    /// Nil for an item that fetches bytes.
    init?(_ item: JobItemRecord) {
        guard item.play != nil || item.parent != nil else { return nil }
        parent = item.parent
        time = item.time
        if let request = item.play {
            play = request.time
            hasStart = request.hasStart ? nil : false
            live = request.isLive ? true : nil
            kinds = request.kinds?.sorted { $0.rawValue < $1.rawValue }
            (renditions, keys, otherwise) = (request.renditions.text, request.includesKeys, request.otherwise)
        }
        if let result = item.playResult {
            (container, layout, duration) = (result.container, result.layout, result.duration)
            (start, playable) = (result.start, result.playableSeconds)
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
                time: play, hasStart: hasStart ?? true, kinds: kinds.map(Set.init), renditions: renditions,
                includesKeys: keys ?? true,
                otherwise: otherwise ?? .fail, isLive: live ?? false)
        }
        if let playable {
            item.playResult = PlayResult(
                container: container, layout: layout, duration: duration, start: start,
                playableSeconds: playable)
        }
    }
}
