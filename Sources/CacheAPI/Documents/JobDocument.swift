package import CacheCore

/// The `Job` schema.
package struct JobDocument: Codable, Sendable {
    package var jobId, state: String
    package var label, queue: String?
    package var priority: String
    package var createdAt: Timestamp
    package var startedAt, finishedAt, deadlineAt, notBefore: Timestamp?
    package var windows: [String]
    package var when: Trigger?
    /// The cause for which the unfinished job waits for its time; nil: none.
    package var waitingFor: String?
    package var nextRunAt: Timestamp?
    package var timeoutSeconds: Double?
    package var maxBytesPerSecond: Int64?
    package var itemsTotal, itemsDone, itemsFailed, itemsWaiting, itemsTimedOut, itemsCancelled, itemsUnknown: Int
    package var bytesTotal: Int64?
    /// The bytes of all items. An item of unknown size counts as the mean of the others; nil if no size is known.
    package var bytesExpected: Int64?
    package var bytesDone, bytesFromCache, bytesFromUpstream: Int64
    /// Done bytes ÷ expected bytes, at most 1; nil if no size is known.
    package var progressRatio: Double?
    package var bytesPerSecond: Double
    package var etaSeconds: Double?
    /// Nil if the end cannot be predicted, and for a finished job.
    package var predictedFinishAt: Timestamp?
    package var atRisk: Bool
    package var error: RecordedErrorDocument?
    /// The node that runs a job of a fleet; null: none. Absent without a fleet.
    package var node: Omittable<String> = .absent
}

extension JobDocument {
    package init(_ job: JobSnapshot) {
        let (record, tally) = (job.record, job.tally)
        self.init(
            jobId: record.id, state: record.state.rawValue, label: record.label, queue: record.queue,
            priority: record.priority.rawValue, createdAt: record.createdAt, startedAt: record.startedAt,
            finishedAt: record.finishedAt, deadlineAt: record.deadlineAt, notBefore: record.times.notBefore,
            windows: record.times.windows.map(\.text), when: record.times.trigger.map(Trigger.init),
            waitingFor: job.timeState.hold?.rawValue,
            nextRunAt: job.timeState.nextRunAt,
            timeoutSeconds: record.timeout?.documentSeconds, maxBytesPerSecond: record.maxBytesPerSecond,
            itemsTotal: tally.itemsTotal, itemsDone: tally[.succeeded], itemsFailed: tally[.failed],
            itemsWaiting: tally[.waiting], itemsTimedOut: tally[.timedOut], itemsCancelled: tally[.cancelled],
            itemsUnknown: tally.itemsUnknown, bytesTotal: tally.bytesTotal, bytesExpected: tally.bytesExpected,
            bytesDone: tally.bytesDone, bytesFromCache: tally.bytesFromCache,
            bytesFromUpstream: tally.bytesFromUpstream,
            progressRatio: tally.progressRatio, bytesPerSecond: job.bytesPerSecond.rounded(),
            etaSeconds: job.eta?.documentSeconds, predictedFinishAt: job.forecast.finishAt,
            atRisk: job.forecast.isAtRisk,
            error: record.error.map(RecordedErrorDocument.init),
            node: job.place.map { Omittable($0.node) } ?? .absent)
    }
}

extension JobDocument {
    /// The point of an asset that starts the job.
    package struct Trigger: Codable, Sendable {
        package var assetId: AssetID
        package var origin, path: String?
        package var atPercent: Double
        package var passedAt: Timestamp?

        fileprivate init(_ trigger: JobTrigger) {
            (assetId, atPercent, passedAt) = (trigger.assetID, trigger.percent, trigger.passedAt)
            (origin, path) = (trigger.origin, trigger.path)
        }
    }
}

/// The `JobItem` schema.
package struct JobItemDocument: Codable {
    /// The media of an item that plays.
    struct Media: Codable {
        var container, layout: String
        var durationSeconds: Double?
    }

    package var index: Int
    /// The asset as in the request: `url`, or `origin` with `path`. The query of a URL is omitted, because it may be a
    /// signature. All are absent for an asset named by its ID.
    package var url, origin, path, key: Omittable<String>
    package var assetId: AssetID?
    package var ranges: [String]
    var play: PlayRequestDocument?
    var live: Bool
    var list: ListSelection?
    var media: Media?
    package var playableSeconds: Double?
    package var parent: Int?
    package var tags: [String]
    package var pinned: Bool
    package var state: String
    package var waitingFor: String?
    package var retryAt: Timestamp?
    package var attempts: Int
    package var bytesTotal: Int64?
    package var bytesDone, bytesFromCache, bytesFromUpstream: Int64
    package var error: RecordedErrorDocument?
}

extension JobItemDocument {
    package init(_ item: JobItemRecord) {
        var (url, origin, path, key): (Omittable<String>, Omittable<String>, Omittable<String>, Omittable<String>) =
            (.absent, .absent, .absent, .absent)
        var known: AssetID?
        switch item.reference {
        case .url(let text, let own): (url, key) = (.value(text.withoutQuery), Omittable(own))
        case .mounted(let name, let text, let own):
            (origin, path, key) = (.value(name), .value(text.withoutQuery), Omittable(own))
        case .known(let id): known = id
        }
        let wait = item.state == .waiting ? item.wait : nil
        self.init(
            index: item.index, url: url, origin: origin, path: path, key: key, assetId: item.assetID ?? known,
            ranges: item.ranges, play: item.play.map(PlayRequestDocument.init), live: item.followsLive,
            list: item.list,
            media: item.playResult.flatMap(Media.init), playableSeconds: item.playResult?.playableSeconds.mediaTime,
            parent: item.parent, tags: item.tags, pinned: item.isPinned, state: item.state.rawValue,
            waitingFor: wait?.hold.cause.rawValue, retryAt: wait?.retryAt, attempts: item.attempts,
            bytesTotal: item.bytesTotal, bytesDone: item.bytesDone, bytesFromCache: item.bytesFromCache,
            bytesFromUpstream: item.bytesFromUpstream, error: item.error.map(RecordedErrorDocument.init))
    }
}

extension JobItemDocument.Media {
    /// Nil if the item has no usable index.
    fileprivate init?(_ result: PlayResult) {
        guard let container = result.container, let layout = result.layout else { return nil }
        self.init(container: container, layout: layout, durationSeconds: result.duration)
    }
}

/// The `PlayRequest` schema, with all members.
package struct PlayRequestDocument: Codable {
    var startSeconds: Double?
    /// Absent for a live playlist.
    var seconds: Omittable<Double>
    /// `all`, or a list of kinds.
    var tracks: JSON
    /// A word, or the required properties.
    var renditions: JSON
    var keys: Bool
    var otherwise: String
}

extension PlayRequestDocument {
    package init(_ play: PlayRequest) {
        self.init(
            startSeconds: play.hasStart ? play.time.lowerBound : nil,
            seconds: play.isLive ? .absent : .value(play.time.upperBound - play.time.lowerBound),
            tracks: play.kinds.map { JSON.array($0.map(\.rawValue).sorted().map(JSON.string)) } ?? "all",
            renditions: play.renditions.json, keys: play.includesKeys, otherwise: play.otherwise.rawValue)
    }
}

extension RenditionChoice {
    /// The `renditions` member.
    fileprivate var json: JSON {
        switch self {
        case .lowest, .first, .all: .string(text)
        case .maxBitsPerSecond(let rate): ["maxBitsPerSecond": .integer(rate)]
        case .matching(let filter):
            JSON(present: [
                "maxBitsPerSecond": filter.maxBitsPerSecond.map(JSON.integer),
                "maxHeight": filter.maxHeight.map(JSON.integer), "language": filter.language.map(JSON.string),
                "codecs": filter.codecs.map(JSON.string),
            ])
        }
    }
}
