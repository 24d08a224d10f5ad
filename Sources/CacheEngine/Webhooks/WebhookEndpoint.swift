package import CacheCore
import CacheStore

/// The result of one attempt.
enum WebhookOutcome: Sendable {
    case delivered(status: Int)
    /// A status other than 2xx, and the wait that the receiver requests.
    case refused(status: Int, wish: Duration?)
    case failed(CacheError)

    /// Whether the receiver accepts other messages meanwhile, as far as the outcome shows.
    var isOfMessage: Bool {
        if case .refused(let status, _) = self { [400, 413, 415, 422].contains(status) } else { false }
    }

    var status: Int? {
        switch self {
        case .delivered(let status), .refused(let status, _): status
        case .failed: nil
        }
    }
}

/// Pure state of one webhook: the attempts in progress, the pause after failures, and the figures since the start.
struct WebhookEndpoint: Sendable {
    /// The work that an attempt leaves.
    enum Step: Hashable, Sendable {
        /// The event is delivered or has expired.
        case remove
        case postpone(attempts: Int, until: Timestamp)
    }

    /// The attempts at the same time; one while the receiver fails.
    static let concurrency = 4
    /// The failures in a row after which a success makes all waiting events due.
    static let outage = 3

    private(set) var settings: WebhookSettings
    /// The events of attempts in progress, and those that the catalog could not remove yet.
    private(set) var running: Set<Int64> = []
    private(set) var unremoved: Set<Int64> = []
    /// The number of attempts that have ended: events that were read before an end may be outdated.
    private(set) var ends = 0
    private(set) var failuresInARow = 0
    /// The uptime before which no attempt begins.
    private(set) var pausedUntil = Duration.zero
    /// Whether the receiver has answered 410: it gets no requests until the settings are loaded again.
    private(set) var isGone = false
    /// The earliest next attempt of the events in the catalog, as far as it is known; nil: none waits.
    var dueAt: Timestamp?
    private(set) var figures = WebhookFigures()

    init(_ settings: WebhookSettings) { self.settings = settings }

    /// Puts settings in force. The pause ends, and a receiver that was gone is asked again.
    mutating func apply(_ settings: WebhookSettings) {
        self.settings = settings
        (isGone, failuresInARow, pausedUntil) = (false, 0, .zero)
    }

    /// The number of attempts that may begin now.
    func slots(at uptime: Duration, _ now: Timestamp) -> Int {
        guard !isGone, uptime >= pausedUntil, let dueAt, dueAt <= now else { return 0 }
        return max(0, (failuresInARow > 0 ? 1 : Self.concurrency) - running.count)
    }

    /// The events to attempt now. `deliveries`: those with the earliest next attempts, `limit` at most.
    mutating func begin(_ deliveries: [WebhookDelivery], limit: Int, slots: Int, at now: Timestamp) -> [WebhookDelivery]
    {
        let waiting = deliveries.filter { !running.contains($0.sequence) && !unremoved.contains($0.sequence) }
        let begun = Array(waiting.prefix(slots).prefix { $0.nextAttemptAt <= now })
        running.formUnion(begun.map(\.sequence))
        // Behind the events that were read there may be more.
        dueAt = waiting.dropFirst(begun.count).first?.nextAttemptAt ?? (deliveries.count == limit ? now : nil)
        return begun
    }

    /// Records the outcome of an attempt. Returns what is to be done with the event, and whether all waiting events are
    /// due: the receiver is back.
    mutating func end(
        _ delivery: WebhookDelivery, _ outcome: WebhookOutcome, at uptime: Duration, _ now: Timestamp, random: Double
    ) -> (step: Step, isBack: Bool) {
        let isBack = note(outcome, at: uptime, now, random: random)
        guard case .delivered = outcome else {
            var wish: Duration?
            if case .refused(_, let requested) = outcome { wish = requested }
            let attempts = delivery.attempts + 1
            guard
                let next = WebhookRetry.next(
                    after: attempts, of: delivery.createdAt, wish: wish, at: now, random: random)
            else {
                figures.expired += 1
                return (.remove, false)
            }
            return (.postpone(attempts: attempts, until: next), false)
        }
        return (.remove, isBack)
    }

    /// Records the outcome in the figures and the pause. Returns whether the receiver is back after an outage.
    mutating func note(_ outcome: WebhookOutcome, at uptime: Duration, _ now: Timestamp, random: Double) -> Bool {
        figures.lastAttemptAt = now
        figures.lastStatus = outcome.status
        guard case .delivered = outcome else {
            figures.failures += 1
            figures.lastError = settings.message(of: outcome)
            if case .refused(410, _) = outcome { isGone = true }
            guard !outcome.isOfMessage else { return false }
            failuresInARow += 1
            var wish: Duration?
            if case .refused(_, let requested) = outcome { wish = requested }
            pausedUntil = uptime + WebhookRetry.pause(after: failuresInARow, wish: wish, random: random)
            return false
        }
        defer { failuresInARow = 0 }
        figures.delivered += 1
        (figures.lastError, figures.lastSuccessAt, pausedUntil) = (nil, now, .zero)
        return failuresInARow >= Self.outage
    }

    /// The catalog has recorded the end of an attempt. `isRemoved`: false if the event could not be removed.
    mutating func close(_ sequence: Int64, isRemoved: Bool = true, until time: Timestamp? = nil) {
        running.remove(sequence)
        ends += 1
        if !isRemoved { unremoved.insert(sequence) }
        if let time { dueAt = min(dueAt ?? time, time) }
    }

    /// The catalog has removed the events of earlier attempts.
    mutating func removed(_ sequences: Set<Int64>) { unremoved.subtract(sequences) }

    mutating func dropped(_ count: Int) { figures.dropped += Int64(count) }
}

extension WebhookSettings {
    /// A sentence about a failed attempt.
    fileprivate func message(of outcome: WebhookOutcome) -> String? {
        switch outcome {
        case .delivered: nil
        case .refused(410, _):
            "The receiver answered with status 410 and gets no requests until the configuration is loaded again."
        case .refused(let status, _) where (300...399).contains(status):
            "The receiver answered with status \(status); redirects are not followed: set webhooks.\(name).url to their "
                + "target."
        case .refused(let status, _): "The receiver answered with status \(status)."
        case .failed(let error) where error.code == .upstreamForbidden:
            "The address of the receiver is not public; set webhooks.\(name).allowPrivateAddresses to permit it. "
                + error.message
        case .failed(let error): error.message
        }
    }
}

/// The figures of a webhook since the start.
package struct WebhookFigures: Hashable, Sendable {
    package var delivered: Int64 = 0
    /// Failed attempts.
    package var failures: Int64 = 0
    /// Events that no attempt within 24 hours has delivered.
    package var expired: Int64 = 0
    /// Events that were not queued or not kept: the queue was full, or the receiver was gone.
    package var dropped: Int64 = 0
    package var lastAttemptAt, lastSuccessAt: Timestamp?
    /// The status of the last attempt; nil: there was none.
    package var lastStatus: Int?
    /// The reason why the last attempt failed; nil: it did not.
    package var lastError: String?
}

/// A webhook at one moment.
package struct WebhookReport: Hashable, Sendable {
    package enum State: String, Sendable, CaseIterable { case active, failing, gone }

    package var settings: WebhookSettings
    package var state: State
    package var figures: WebhookFigures
    /// The number of queued events, and the time of the oldest one.
    package var queued: Int
    package var oldestQueuedAt: Timestamp?

    package init(
        settings: WebhookSettings, state: State = .active, figures: WebhookFigures = WebhookFigures(), queued: Int = 0,
        oldestQueuedAt: Timestamp? = nil
    ) {
        self.settings = settings
        self.state = state
        self.figures = figures
        self.queued = queued
        self.oldestQueuedAt = oldestQueuedAt
    }

    init(_ endpoint: WebhookEndpoint, backlog: WebhookBacklog?) {
        self.init(
            settings: endpoint.settings,
            state: endpoint.isGone ? .gone : endpoint.failuresInARow > 0 ? .failing : .active,
            figures: endpoint.figures, queued: backlog?.count ?? 0, oldestQueuedAt: backlog?.oldestAt)
    }
}
