package import CacheCore
package import CacheEngine

/// The kept events of some topics.
struct EventListDocument: Codable {
    var items: [EventDocument]
    var lastId: Int64
    var isComplete: Bool
}

/// The permission for one stream of events.
struct EventTicketDocument: Codable {
    var ticket: String
    var expiresAt: Timestamp
}

/// The `Event` schema: the members of all events, and those of its type.
package struct EventDocument: Codable {
    var id: Int64
    var at: Timestamp
    var topic: String
    var type = ""
    var job: Omittable<JobDocument> = .absent
    var fill: Omittable<FillEventDocument> = .absent
    var eviction: Omittable<EvictionDocument> = .absent
    var message: Omittable<String> = .absent
    var metadata: Omittable<NamedValues<String>> = .absent
    var ready: Omittable<Bool> = .absent
    var reasons: Omittable<[String]> = .absent
    var circuit: Omittable<CircuitEventDocument> = .absent
    var disk: Omittable<DiskEventDocument> = .absent
    var credentials: Omittable<CredentialsEventDocument> = .absent
    var second: Omittable<LiveSecondDocument> = .absent
    package var request: Omittable<RequestDocument> = .absent
    package var omitted: Omittable<Int64> = .absent
}

extension EventDocument {
    init(_ event: CacheEvent) {
        self.init(id: event.id, at: event.at, topic: event.content.topic.rawValue)
        switch event.content {
        case .job(let job, let change): (type, self.job) = (change.rawValue, .value(JobDocument(job)))
        case .fillStarted(let fill): (type, self.fill) = ("started", .value(FillEventDocument(fill, end: nil)))
        case .fillEnded(let fill, let end): (type, self.fill) = ("ended", .value(FillEventDocument(fill, end: end)))
        case .evicted(let record): (type, eviction) = ("evicted", .value(EvictionDocument(record)))
        case .log(let isError, let message, let metadata):
            (type, self.message) = (isError ? "error" : "warning", .value(message))
            self.metadata = .value(NamedValues(metadata.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }))
        case .readiness(let isReady, let reasons):
            (type, ready, self.reasons) = ("readiness", .value(isReady), .value(reasons))
        case .circuitOpened(let circuit):
            (type, self.circuit) = ("circuitOpened", .value(CircuitEventDocument(circuit)))
        case .diskFull(let disk): (type, self.disk) = ("diskFull", .value(DiskEventDocument(disk)))
        case .credentialsExpiring(let credentials):
            (type, self.credentials) = ("credentialsExpiring", .value(CredentialsEventDocument(credentials)))
        case .second(let second): (type, self.second) = ("second", .value(LiveSecondDocument(second)))
        }
    }
}

extension EventDocument {
    /// An ended request.
    static func request(_ entry: RequestHistory.Entry, showsClient: Bool) -> EventDocument {
        var event = EventDocument(
            id: entry.id, at: entry.line.startedAt + entry.line.duration,
            topic: CacheEvent.Topic.requests.rawValue, type: "ended")
        event.request = .value(RequestDocument(entry, showsClient: showsClient))
        return event
    }

    /// The number of ended requests that a stream has left out.
    static func omitted(_ count: Int64, id: Int64, at now: Timestamp) -> EventDocument {
        var event = EventDocument(id: id, at: now, topic: CacheEvent.Topic.requests.rawValue, type: "omitted")
        event.omitted = .value(count)
        return event
    }
}

/// The fill of an event, and at its end the outcome.
struct FillEventDocument: Codable {
    var fillId: String
    var assetId: AssetID
    var key, origin: String
    var range: RangeDocument?
    var outcome: Omittable<String>
    var bytes: Omittable<Int64>
    var seconds: Omittable<Double>
    var error: Omittable<String>
}

extension FillEventDocument {
    fileprivate init(_ fill: FillEvent, end: FillEvent.End?) {
        self.init(
            fillId: String(fill.number), assetId: fill.assetID, key: fill.key, origin: fill.origin,
            range: fill.range.map(RangeDocument.init), outcome: .present(end?.outcome), bytes: .present(end?.bytes),
            seconds: .present(end?.duration.documentSeconds), error: end.map { Omittable($0.error?.name) } ?? .absent)
    }
}

extension FillEvent.End {
    fileprivate var outcome: String {
        switch error {
        case nil: "succeeded"
        case .cancelled: "cancelled"
        case .upstreamTimedOut: "timedOut"
        default: "failed"
        }
    }
}

/// The last seconds of traffic.
package struct LiveStatisticsDocument: Codable {
    /// The end of the last second; nil: there is none yet.
    var at: Timestamp?
    var stepSeconds = 1
    package var seconds: [LiveSecondDocument]
}

extension LiveStatisticsDocument {
    /// - Parameter seconds: Oldest first.
    init(_ seconds: [LiveSecond]) {
        self.init(
            at: seconds.last.map { $0.at + .seconds(1) },
            seconds: seconds.map { LiveSecondDocument($0, hasWindows: $0.at == seconds.last?.at) })
    }
}

/// The `LiveSecond` schema.
package struct LiveSecondDocument: Codable {
    /// The `LiveWindow` schema: the traffic of the last seconds.
    package struct Window: Codable {
        /// The number of seconds; fewer than the name states directly after the start.
        package var seconds: Int
        /// Means per second.
        package var clientBytesPerSecond, upstreamBytesPerSecond, requestsPerSecond: Double
        package var requests: NamedValues<Int64>
        package var requestHitRatio, byteHitRatio: Double?
    }

    /// The start of the second.
    package var at: Timestamp
    package var clientBytes, clientBytesFromCache, clientBytesFromUpstream, upstreamBytes: Int64
    /// The requests by result, and their `total`.
    package var requests: NamedValues<Int64>
    package var requestHitRatio, byteHitRatio: Double?
    /// Absent in all but the last second of a list.
    package var last5Seconds, lastMinute, last15Minutes: Omittable<Window>
    /// Nil: no response began in this second.
    package var firstByteSeconds: QuantilesDocument?
    package var activeReaders: Int64
    package var activeFills: Int
}

extension LiveSecondDocument {
    /// - Parameter hasWindows: Whether the document contains the traffic of the seconds before it.
    package init(_ second: LiveSecond, hasWindows: Bool = true) {
        let (traffic, ratios) = (second.traffic, second.traffic.hitRatios)
        func window(_ traffic: LiveTraffic) -> Omittable<Window> { hasWindows ? .value(Window(traffic)) : .absent }
        self.init(
            at: second.at, clientBytes: traffic.clientBytes, clientBytesFromCache: traffic.clientBytesFromCache,
            clientBytesFromUpstream: traffic.clientBytesFromUpstream, upstreamBytes: traffic.upstreamBytes,
            requests: traffic.requestCounts, requestHitRatio: ratios.request, byteHitRatio: ratios.byte,
            last5Seconds: window(second.last5Seconds), lastMinute: window(second.lastMinute),
            last15Minutes: window(second.last15Minutes), firstByteSeconds: second.firstByte.map(QuantilesDocument.init),
            activeReaders: second.activeReaders, activeFills: second.activeFills)
    }
}

extension LiveSecondDocument.Window {
    fileprivate init(_ traffic: LiveTraffic) {
        let ratios = traffic.hitRatios
        func perSecond(_ count: Int64) -> Double { Double(count) / Double(max(traffic.seconds, 1)) }
        self.init(
            seconds: traffic.seconds, clientBytesPerSecond: perSecond(traffic.clientBytes),
            upstreamBytesPerSecond: perSecond(traffic.upstreamBytes), requestsPerSecond: perSecond(ratios.requests),
            requests: traffic.requestCounts, requestHitRatio: ratios.request, byteHitRatio: ratios.byte)
    }
}

extension LiveTraffic {
    /// The requests by result, and their `total`.
    fileprivate var requestCounts: NamedValues<Int64> {
        let classes = zip(ReadOutcome.Class.allCases, requests).map { ($0.rawValue, $1) }
        return NamedValues([("total", requests.reduce(0, +))] + classes)
    }
}

/// Quantiles of times in seconds, rounded to microseconds; nil without values: the `Quantiles` schema.
package struct QuantilesDocument: Codable {
    package var p50, p95, p99: Double?
}

extension QuantilesDocument {
    init(_ times: HistogramSnapshot) {
        let (p50, p95, p99) = (times.quantile(0.5), times.quantile(0.95), times.quantile(0.99))
        self.init(p50: p50?.rounded(to: 1e6), p95: p95?.rounded(to: 1e6), p99: p99?.rounded(to: 1e6))
    }
}
