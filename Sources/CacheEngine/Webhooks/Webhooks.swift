package import CacheCore
import CacheStore
import DequeModule
import Logging

/// Delivers events to the webhooks of the configuration, each at least once.
///
/// 1. ``accept(_:)`` receives each event from the event log, and puts it into `pending` with its receivers.
/// 2. ``saveEvents()`` writes it to the catalog, once for each receiver. From then on a crash does not lose it.
/// 3. ``beginAttempts(in:)`` reads the due events of each webhook, and starts a request for each.
/// 4. ``attempt(_:to:)`` removes a delivered event, or postpones it.
///
/// One loop makes steps 2 and 3, so that the times of the next attempts in memory agree with the catalog.
package final class Webhooks: Sendable {
    /// Encodes the document of an event of a kind that webhooks deliver.
    package typealias Encoder = @Sendable (CacheEvent) -> JSON

    /// The maximum number of queued events of all webhooks.
    package static let capacity = Catalog.mostDeliveries

    /// An event that is not in the catalog yet.
    struct Pending: Sendable {
        let message: String
        let kind: WebhookKind
        let event: CacheEvent
        /// The names of the webhooks that have not received it.
        var receivers: [String]
    }

    struct State {
        var endpoints: [String: WebhookEndpoint] = [:]
        var pending = Deque<Pending>()
        /// The recent messages, because a job can be published twice at its end.
        var recent = BoundedTable<String, Bool>(capacity: 1000)
        var encoder: Encoder?
        /// Whether the catalog can have events of webhooks that the configuration no longer has, and all others are due.
        var isSweepDue = true
        /// Whether the events that the catalog refuses are being sent.
        var isSendingPending = false
        /// The uptime before which they are not sent again.
        var pendingRestUntil = Duration.zero
        /// Whether the last access to the catalog failed; its error was logged.
        var hasFailed = false
    }

    /// The interval at which due attempts are searched.
    private static let interval = Duration.milliseconds(250)
    /// The number of events that are written in one transaction.
    private static let savedAtOnce = 200

    let catalog: Catalog
    let upstream: any Upstream
    let clock: any Clock<Duration>
    let wallClock: any WallClock
    let uptime: @Sendable () -> Duration
    let random: any RandomSource
    let logger: Logger
    /// Guards the webhooks and the events that wait for the catalog.
    let state = OrderedMutex(.leaf, State())
    private let (wakes, wakeUp) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    init(
        _ dependencies: AssetCache.Dependencies, _ settings: [WebhookSettings],
        uptime: @escaping @Sendable () -> Duration
    ) {
        catalog = dependencies.store.catalog
        upstream = dependencies.receivers
        clock = dependencies.clock
        wallClock = dependencies.wallClock
        random = dependencies.random
        logger = dependencies.logger
        self.uptime = uptime
        update(settings)
        dependencies.events.tap { [weak self] in self?.accept($0) }
    }

    /// Sets the encoder of documents; until then events wait.
    package func encode(_ encoder: @escaping Encoder) {
        state.withLock { $0.encoder = encoder }
        wakeUp.yield()
    }

    /// Puts webhooks in force. The queued events of those that are gone are deleted, and all others are due.
    package func update(_ settings: [WebhookSettings]) {
        state.withLock { state in
            let former = state.endpoints
            state.endpoints = [:]
            for webhook in settings {
                var endpoint = former[webhook.name] ?? WebhookEndpoint(webhook)
                endpoint.apply(webhook)
                state.endpoints[webhook.name] = endpoint
            }
            for index in state.pending.indices {
                state.pending[index].receivers.removeAll { state.endpoints[$0] == nil }
            }
            state.isSweepDue = true
        }
        wakeUp.yield()
    }

    /// The webhooks, sorted by name.
    package func report() async throws(CacheError) -> [WebhookReport] {
        let backlogs = try await catalog.backlogs()
        return state.withLock { state in
            state.endpoints.values.map { WebhookReport($0, backlog: backlogs[$0.settings.name]) }
        }.sorted { $0.settings.name < $1.settings.name }
    }

    // MARK: Events

    /// Receives an event, on the thread that publishes it.
    private func accept(_ event: CacheEvent) {
        guard let kind = WebhookKind(event.content) else { return }
        let message = event.message ?? "msg_" + random.identifier()
        state.withLock { state in
            guard state.recent[message] == nil else { return }
            state.recent[message] = true
            var receivers: [String] = []
            for (name, endpoint) in state.endpoints where endpoint.settings.kinds.contains(kind) {
                if endpoint.isGone { state.endpoints[name]?.dropped(1) } else { receivers.append(name) }
            }
            guard !receivers.isEmpty else { return }
            if state.pending.count >= Self.capacity, let oldest = state.pending.popFirst() {
                for name in oldest.receivers { state.endpoints[name]?.dropped(1) }
            }
            state.pending.append(Pending(message: message, kind: kind, event: event, receivers: receivers.sorted()))
        }
        wakeUp.yield()
    }

    /// Writes all events to the catalog that were received before the call.
    func saveEvents() async throws(CacheError) {
        while true {
            // A copy: the catalog may refuse the events.
            let batch = state.withLock { $0.encoder == nil ? [] : Array($0.pending.prefix(Self.savedAtOnce)) }
            guard !batch.isEmpty else { return }
            let deliveries = batch.flatMap { self.deliveries(of: $0) }
            let dropped = deliveries.isEmpty ? [:] : try await catalog.queue(deliveries)
            let now = wallClock.now()
            let saved = Set(batch.map(\.message))
            state.withLock { state in
                state.pending.removeAll { saved.contains($0.message) }
                for delivery in deliveries { state.endpoints[delivery.webhook]?.dueAt = now }
                for (name, count) in dropped { state.endpoints[name]?.dropped(count) }
            }
            if !dropped.isEmpty {
                logger.warning(
                    "the queue of webhooks is full; the oldest events were dropped",
                    metadata: ["events": "\(dropped.values.reduce(0, +))"])
            }
        }
    }

    /// The deliveries of an event to its receivers.
    func deliveries(of pending: Pending) -> [WebhookDelivery] {
        guard let encoder = state.withLock({ $0.encoder }) else { return [] }
        let payload: JSON = [
            "type": .string(pending.kind.rawValue), "timestamp": .string(RFC3339.format(pending.event.at)),
            "data": encoder(pending.event),
        ]
        let text = payload.text
        return pending.receivers.map { name in
            WebhookDelivery(
                webhook: name, message: pending.message, kind: pending.kind.rawValue, payload: text,
                createdAt: pending.event.at)
        }
    }

    // MARK: Running

    /// Delivers events until cancellation. Attempts in progress are then cancelled and repeated by the next process.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                // Until cancelled.
                while (try? await self.clock.sleep(for: Self.interval)) != nil { self.wakeUp.yield() }
            }
            for await _ in wakes {
                do throws(CacheError) {
                    try await sweep()
                    try await saveEvents()
                    try await beginAttempts(in: &group)
                    state.withLock { $0.hasFailed = false }
                } catch {
                    failed(error)
                    sendPending(in: &group)
                }
            }
        }
    }

    /// Writes the remaining events to the catalog. Call it after ``run()``.
    func end() async throws(CacheError) { try await saveEvents() }

    /// After a start and after new settings: deletes the events of other webhooks, and makes all others due.
    private func sweep() async throws(CacheError) {
        let names = state.withLock { $0.isSweepDue ? Array($0.endpoints.keys) : nil }
        guard let names else { return }
        let removed = try await catalog.keepDeliveries(of: names)
        let now = wallClock.now()
        for name in names { try await catalog.hasten(name, to: now) }
        state.withLock { state in
            state.isSweepDue = Set(state.endpoints.keys) != Set(names)
            for name in names { state.endpoints[name]?.dueAt = now }
        }
        if removed > 0 {
            logger.notice(
                "events of webhooks that are not configured any more were deleted", metadata: ["events": "\(removed)"])
        }
    }

    /// Starts the attempts that are due.
    private func beginAttempts(in group: inout DiscardingTaskGroup) async throws(CacheError) {
        for name in state.withLock({ Array($0.endpoints.keys) }) {
            try await removeDelivered(of: name)
            let (uptime, now) = (uptime(), wallClock.now())
            let (slots, busy, ends) = state.withLock { state in
                let endpoint = state.endpoints[name]
                return (
                    endpoint?.slots(at: uptime, now) ?? 0,
                    (endpoint?.running.count ?? 0) + (endpoint?.unremoved.count ?? 0), endpoint?.ends
                )
            }
            guard slots > 0 else { continue }
            let found = try await catalog.deliveries(of: name, limit: slots + busy)
            let begun = state.withLock { state -> (settings: WebhookSettings, deliveries: [WebhookDelivery])? in
                // The end of another attempt can have changed an event after it was read.
                guard let endpoint = state.endpoints[name], endpoint.ends == ends else { return nil }
                let begun = state.endpoints[name]?.begin(found, limit: slots + busy, slots: slots, at: now) ?? []
                return (endpoint.settings, begun)
            }
            guard let begun else {
                wakeUp.yield()
                continue
            }
            for delivery in begun.deliveries {
                group.addTask {
                    await self.attempt(delivery, to: begun.settings)
                    self.wakeUp.yield()
                }
            }
        }
    }

    /// Removes delivered events that the catalog could not remove before.
    private func removeDelivered(of name: String) async throws(CacheError) {
        guard let sequences = state.withLock({ $0.endpoints[name]?.unremoved }), !sequences.isEmpty else { return }
        try await catalog.removeDeliveries(sequences.sorted())
        state.withLock { $0.endpoints[name]?.removed(sequences) }
    }

    /// Logs the first failure of the catalog in a row.
    func failed(_ error: CacheError) {
        guard error.code != .cancelled, error.code != .shuttingDown else { return }
        let isNew = state.withLock { state in
            defer { state.hasFailed = true }
            return !state.hasFailed
        }
        guard isNew else { return }
        logger.warning(
            "the queue of webhooks could not be written; events stay in memory", metadata: ["error": "\(error.message)"]
        )
    }
}

extension CacheEvent {
    /// The identifier of the message about the end of a job, which is the same for each publication; nil for other events.
    fileprivate var message: String? {
        guard case .job(let job, .state) = content, let end = job.record.finishedAt else { return nil }
        return "msg_\(job.record.id)_\(end.milliseconds)"
    }
}
