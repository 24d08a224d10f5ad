import CacheCore
import CacheStore

/// The head of a job in etcd: its limits, its state and the sums of its items.
struct FleetJobHead: Codable, Hashable, Sendable {
    /// The counts of items by state, and the sums of their bytes.
    struct Sums: Codable, Hashable, Sendable {
        var queued, running, waiting, succeeded, failed, timedOut, cancelled: Int
        var unknown: Int
        var bytesTotal, bytesFromCache, bytesFromUpstream: Int64

        init(_ tally: JobTally) {
            (queued, running, waiting) = (tally[.queued], tally[.running], tally[.waiting])
            (succeeded, failed) = (tally[.succeeded], tally[.failed])
            (timedOut, cancelled) = (tally[.timedOut], tally[.cancelled])
            (unknown, bytesTotal) = (tally.itemsUnknown, tally.bytesTotal ?? 0)
            (bytesFromCache, bytesFromUpstream) = (tally.bytesFromCache, tally.bytesFromUpstream)
        }

        var tally: JobTally {
            JobTally(
                counts: [
                    .queued: queued, .running: running, .waiting: waiting, .succeeded: succeeded, .failed: failed,
                    .timedOut: timedOut, .cancelled: cancelled,
                ], itemsUnknown: unknown, measuredBytes: bytesTotal, bytesFromCache: bytesFromCache,
                bytesFromUpstream: bytesFromUpstream)
        }
    }

    var state: String
    var label, queue: String?
    var supersedes: Bool
    var priority: String
    var owner: FleetTokenOwner?
    var maxBytesPerSecond: Int64?
    var timeoutMilliseconds: Int64?
    var deadlineAt: Timestamp?
    var notBefore: Timestamp?
    var windows: [String]?
    var trigger: JobTrigger?
    /// The revision of the terms; nil: 1.
    var revision: Int64?
    /// Whether the unfinished job is paused; its ``state`` is `queued` or `running` then. Nil: it is not.
    var paused: Bool?
    var createdAt: Timestamp
    var startedAt, finishedAt: Timestamp?
    var errorCode, errorMessage: String?
    /// As ``JobSnapshot/version`` and ``JobSnapshot/bytesPerSecond``.
    var version: Int64
    var rate: Double
    /// The prediction of the node that runs the job; nil: none, or no risk.
    var predictedFinishAt: Timestamp?
    var atRisk: Bool?
    var sums: Sums
    /// The number of items that the client has ordered, that of their chunks, and the size of these in bytes.
    var items, chunks, bytes: Int
    /// The number of retries. Results of an earlier round count only if they are successes.
    var round: Int
    /// The lease of all keys of the job. Its node renews it until the job has ended.
    var lease: Int64

    /// The head of a new job. `bytes`: the sizes of its chunks.
    init(_ job: JobSnapshot, items: Int, chunks: [[UInt8]], lease: Int64) {
        let record = job.record
        (state, label, queue, supersedes) = (record.state.rawValue, record.label, record.queue, record.supersedes)
        (priority, owner) = (record.priority.rawValue, record.owner.map(FleetTokenOwner.init))
        maxBytesPerSecond = record.maxBytesPerSecond
        timeoutMilliseconds = record.timeout?.wholeMilliseconds
        (createdAt, version, rate, sums) = (record.createdAt, job.version, 0, Sums(job.tally))
        (self.items, self.chunks, bytes) = (items, chunks.count, chunks.reduce(0) { $0 + $1.count })
        (round, self.lease) = (0, lease)
        apply(job.record)
    }

    /// Takes over the state of the job at its node, and its terms unless those of the head are later.
    mutating func apply(_ record: JobRecord) {
        if record.revision >= revision ?? 1 { terms = record.terms }
        (state, supersedes) = ((record.state == .paused ? .queued : record.state).rawValue, record.supersedes)
        (startedAt, finishedAt) = (record.startedAt, record.finishedAt)
        (errorCode, errorMessage) = (record.error?.code, record.error?.message)
    }

    mutating func apply(_ job: JobSnapshot) {
        (version, rate, sums) = (job.version, job.bytesPerSecond, Sums(job.tally))
        (predictedFinishAt, atRisk) = (job.forecast.finishAt, job.forecast.isAtRisk ? true : nil)
    }

    /// Ends the unfinished job and its items.
    mutating func end(as state: JobState, because error: RecordedError?, at now: Timestamp) {
        self.state = state.rawValue
        (errorCode, errorMessage, finishedAt) = (error?.code, error?.message, now)
        version = max(version + 1, now.milliseconds)
        var tally = sums.tally
        for unfinished in JobState.allCases where !unfinished.isFinished {
            tally.move(tally[unfinished], from: unfinished, to: state)
        }
        sums = Sums(tally)
    }

    var jobState: JobState {
        let state = JobState(rawValue: state) ?? .failed
        return paused == true && !state.isFinished ? .paused : state
    }

    var terms: JobTerms {
        get {
            JobTerms(
                priority: JobPriority(rawValue: priority) ?? .normal, maxBytesPerSecond: maxBytesPerSecond,
                deadlineAt: deadlineAt, times: times, isPaused: paused ?? false, revision: revision ?? 1)
        }
        set {
            (priority, maxBytesPerSecond) = (newValue.priority.rawValue, newValue.maxBytesPerSecond)
            (deadlineAt, revision) = (newValue.deadlineAt, newValue.revision)
            paused = newValue.isPaused ? true : nil
            notBefore = newValue.times.notBefore
            windows = newValue.times.windows.isEmpty ? nil : newValue.times.windows.map(\.text)
            trigger = newValue.times.trigger
        }
    }

    /// The times of the job. Windows that cannot be read are of a later version.
    private var times: JobTimes {
        // A window that cannot be read is one of a later version.
        JobTimes(
            notBefore: notBefore, windows: (windows ?? []).compactMap { try? JobWindow($0) }, trigger: trigger)
    }

    var tokenOwner: TokenOwner? { owner?.owner }

    /// The job, without items. Unknown words are of a later version.
    func record(_ id: String) -> JobRecord {
        JobRecord(
            id: id, state: jobState, label: label, queue: queue, supersedes: supersedes,
            priority: JobPriority(rawValue: priority) ?? .normal, owner: tokenOwner,
            maxBytesPerSecond: maxBytesPerSecond, timeout: timeoutMilliseconds.map { .milliseconds($0) },
            deadlineAt: deadlineAt, createdAt: createdAt, startedAt: startedAt, finishedAt: finishedAt,
            error: errorCode.map { RecordedError(code: $0, message: errorMessage ?? "") }, revision: revision ?? 1,
            times: times)
    }

    /// `node`: the node that runs the job; nil: none.
    func snapshot(_ id: String, node: String?) -> JobSnapshot {
        let forecast =
            jobState.isFinished
            ? JobSnapshot.Forecast() : JobSnapshot.Forecast(finishAt: predictedFinishAt, isAtRisk: atRisk ?? false)
        var snapshot = JobSnapshot(
            record: record(id), tally: sums.tally, presentRate: rate, forecast: forecast, version: version)
        snapshot.place = JobSnapshot.Place(node: node)
        return snapshot
    }
}

/// The ordered items of a job in pieces, each of which fits into a request to etcd.
enum FleetJobChunks {
    /// The size of a piece: Base64 adds a third, and a request has at most 1.5 MiB.
    static let maxBytes = 512 << 10
    /// The room for the seal of a piece.
    private static let reserve = 64

    /// The pieces before they are sealed; nil if one item is too large.
    static func chunks(of items: [JobItemRecord]) throws(CacheError) -> [[UInt8]]? {
        var (chunks, piece): ([[UInt8]], [UInt8]) = ([], [])
        for item in items {
            let text = try StoredJobItem.json(of: item).jsonBytes
            guard text.count + 2 <= maxBytes - reserve else { return nil }
            if piece.count + text.count + 2 > maxBytes - reserve {
                chunks.append(piece + [UInt8(ascii: "]")])
                piece = []
            }
            piece.append(UInt8(ascii: piece.isEmpty ? "[" : ","))
            piece += text
        }
        return piece.isEmpty ? chunks : chunks + [piece + [UInt8(ascii: "]")]]
    }

    /// The items of the pieces, in order, from an index on. Throws `storageCorrupt`.
    static func items(of chunks: [[UInt8]], from first: Int = 0) throws(CacheError) -> [JobItemRecord] {
        var items: [JobItemRecord] = []
        for chunk in chunks {
            let documents: [JSON]
            do throws(CacheError) {
                documents = try JSONParser.parse(chunk).decode([JSON].self, isStrict: false)
            } catch {
                throw CacheError(.storageCorrupt, "The items of a job of the fleet cannot be decoded.", cause: error)
            }
            for document in documents { items.append(try StoredJobItem.item(document, index: first + items.count)) }
        }
        return items
    }
}

/// The progress of some consecutive items of a job in etcd.
struct FleetJobResults: Codable, Hashable, Sendable {
    /// The progress of one item. Absent members have the values of a new item.
    struct Item: Codable, Hashable, Sendable {
        var state: Omittable<String>
        var asset: Omittable<AssetID>
        var attempts: Omittable<Int>
        var total, cache, upstream: Omittable<Int64>
        var code, message: Omittable<String>

        private enum CodingKeys: String, CodingKey {
            case state = "s"
            case asset = "a"
            case attempts = "n"
            case total = "t"
            case cache = "c"
            case upstream = "u"
            case code = "e"
            case message = "m"
        }

        init(_ item: JobItemRecord) {
            state = .present(item.state == .queued ? nil : item.state.rawValue)
            asset = .present(item.assetID)
            attempts = .present(item.attempts > 0 ? item.attempts : nil)
            total = .present(item.bytesTotal)
            cache = .present(item.bytesFromCache > 0 ? item.bytesFromCache : nil)
            upstream = .present(item.bytesFromUpstream > 0 ? item.bytesFromUpstream : nil)
            code = .present(item.error?.code)
            message = .present(item.error.map { String($0.message.prefix(FleetJobResults.maxMessage)) })
        }

        /// Sets the progress of an item. `isOld`: of an earlier round, in which it may have failed.
        func restore(to item: inout JobItemRecord, isOld: Bool) {
            let state = self.state.value.flatMap(JobState.init) ?? .queued
            (item.attempts, item.assetID) = (attempts.value ?? 0, asset.value)
            item.bytesTotal = total.value
            (item.bytesFromCache, item.bytesFromUpstream) = (cache.value ?? 0, upstream.value ?? 0)
            guard !isOld || state == .succeeded else { return }
            item.state = state
            item.error = code.value.map { RecordedError(code: $0, message: message.value ?? "") }
        }
    }

    /// The number of items of one key.
    static let count = 256
    private static let maxMessage = 300

    var round: Int
    var items: [Item]

    /// The results with this number. `items` are all items of the job, `ordered` that of the client's.
    init(_ number: Int, of items: [JobItemRecord], ordered: Int, round: Int) {
        self.round = round
        let range = number * Self.count..<min((number + 1) * Self.count, ordered)
        let files = items.count > ordered ? Self.files(of: items, ordered: ordered) : [:]
        self.items = range.map { index in
            Item(Self.item(items[index], with: files[index]?.map { items[$0] } ?? []))
        }
    }

    /// Sets the progress of the items with this number.
    func restore(_ number: Int, to items: inout [JobItemRecord], round: Int) {
        for (offset, item) in self.items.enumerated() {
            let index = number * Self.count + offset
            guard items.indices.contains(index) else { return }
            item.restore(to: &items[index], isOld: self.round < round)
        }
    }

    /// The ordered item that an item is a file of, or the item itself.
    static func ordered(_ index: Int, in items: [JobItemRecord]) -> Int {
        var index = index
        while let parent = items[index].parent, parent < index { index = parent }
        return index
    }

    /// The files of each playlist, those of nested playlists included.
    private static func files(of items: [JobItemRecord], ordered: Int) -> [Int: [Int]] {
        Dictionary(grouping: ordered..<items.count) { Self.ordered($0, in: items) }
    }

    /// A playlist has succeeded when all its files have: etcd has no files, and another node expands the playlist again.
    static func item(_ item: JobItemRecord, with files: [JobItemRecord]) -> JobItemRecord {
        guard item.state == .succeeded else { return item }
        var item = item
        if files.contains(where: { !$0.state.isFinished }) { item.state = .running }
        for state in [JobState.cancelled, .timedOut, .failed] {
            guard item.state.isFinished, let file = files.first(where: { $0.state == state }) else { continue }
            (item.state, item.error) = (state, file.error)
        }
        return item
    }
}
