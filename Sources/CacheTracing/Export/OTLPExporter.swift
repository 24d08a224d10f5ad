package import CacheCore
package import Logging

/// Sends ended spans to an OTLP/HTTP receiver in batches (OpenTelemetry specification, trace SDK, "Batching
/// processor"; OTLP specification, "OTLP/HTTP").
///
/// It holds at most one batch besides the tracer's queue, and sends one request at a time.
package final class OTLPExporter: Sendable {
    /// Sends one request. It must return soon after the cancellation of its task.
    package typealias Send = @Sendable (OTLPRequest) async -> OTLPResponse

    /// The largest number of spans in a request (the default of OTEL_BSP_MAX_EXPORT_BATCH_SIZE).
    static let batchSize = 512

    /// Numbers of spans since the start.
    package struct Counters: Hashable, Sendable {
        /// Accepted by the receiver.
        package var exported: Int64 = 0
        /// Dropped before they were sent, because the queue was full.
        package var dropped: Int64 = 0
        /// Rejected by the receiver, or not sent after all retries or at shutdown.
        package var failed: Int64 = 0
    }

    private let queue: SpanQueue
    private let encoder: OTLPEncoder
    private let endpoint: OTLPEndpoint
    private let headers: SecretHeaders
    /// The longest time before an ended span is sent.
    private let interval: Duration
    /// The longest time for one request.
    private let timeout: Duration
    /// The longest time from `stop()` to the end of `run()`.
    private let shutdownLimit: Duration
    private let clock: any Clock<Duration>
    private let wallClock: any WallClock
    private let random: any RandomSource
    private let logger: Logger
    private let send: Send
    private let batches = OrderedMutex(.leaf, ExportBatches())
    /// Whether the last request failed, so that a failure is logged once.
    private let isFailing = OrderedMutex(.leaf, false)

    /// Nil if the tracer is disabled or the settings have no endpoint. `version` is the version of Larder;
    /// `shutdownLimit` is the longest time from `stop()` to the end of `run()`.
    package init?(
        tracer: Tracer, settings: TracingSettings, version: String, shutdownLimit: Duration = .seconds(5),
        clock: any Clock<Duration>, wallClock: any WallClock, random: any RandomSource, logger: Logger,
        send: @escaping Send
    ) {
        guard let recorder = tracer.recorder, let endpoint = settings.endpoint else { return nil }
        queue = recorder.queue
        encoder = OTLPEncoder(resource: settings.resource(version: version), scopeVersion: version)
        self.endpoint = endpoint
        headers = settings.headers.adding([
            HeaderList.Field("Content-Type", "application/json"), HeaderList.Field("User-Agent", "larder/\(version)"),
        ])
        interval = settings.interval
        timeout = settings.timeout
        self.shutdownLimit = shutdownLimit
        self.clock = clock
        self.wallClock = wallClock
        self.random = random
        self.logger = logger
        self.send = send
    }

    package var counters: Counters {
        let (exported, failed) = batches.withLock { ($0.exported, $0.failed) }
        return Counters(exported: exported, dropped: queue.dropped, failed: failed)
    }

    /// Ends `run()` after the queued spans are sent, at the latest after the time for the shutdown.
    package func stop() { queue.signal.stop(clock.stopwatch()) }

    /// Sends spans until `stop()` is called. If the task is cancelled, it returns without sending the queued ones.
    package func run() async {
        while isRunning {
            await queue.signal.wait(for: .batch, within: interval, clock: clock)
            repeat { await export() } while isRunning && queue.count >= Self.batchSize
        }
        await flush()
    }

    private var isRunning: Bool { !Task.isCancelled && !queue.signal.isStopped }

    /// Sends one batch, with retries.
    private func export() async {
        guard isRunning else { return }
        let spans = queue.take(atMost: Self.batchSize)
        batches.withLock { $0.add(spans) }
        while isRunning, let part = batches.withLock({ $0.next }) {
            guard let response = await response(to: part, within: timeout) else { return }
            if case .retry(let delay, _, _) = received(response) {
                await queue.signal.wait(for: .stop, within: delay, clock: clock)
            }
        }
    }

    /// Sends the queued spans within the time for the shutdown. A receiver that does not answer is not tried again.
    private func flush() async {
        while !Task.isCancelled, let elapsed = queue.signal.sinceStop, elapsed < shutdownLimit {
            if batches.withLock({ $0.next }) == nil {
                let spans = queue.take(atMost: Self.batchSize)
                batches.withLock { $0.add(spans) }
            }
            guard let part = batches.withLock({ $0.next }) else { return }
            let rest = shutdownLimit - elapsed
            guard let response = await response(to: part, within: min(timeout, rest)) else { break }
            if case .retry(let delay, let isReachable, _) = received(response) {
                guard isReachable, delay < rest else { break }
                // The only error is the cancellation, which the loop checks.
                try? await clock.sleep(for: delay)
            }
        }
        abandonAll()
    }

    /// Counts all spans that are left as failed.
    private func abandonAll() {
        let rest = queue.take(atMost: SpanQueue.capacity)
        let lost = batches.withLock { batches in
            let before = batches.failed
            batches.add(rest)
            batches.abandon()
            return batches.failed - before
        }
        if lost > 0 { logger.warning("spans were not exported before the shutdown", metadata: ["spans": "\(lost)"]) }
    }

    /// Sends one request. Nil if the task is cancelled. After `stop()`, the request ends with the time for the shutdown.
    private func response(to spans: ArraySlice<SpanRecord>, within limit: Duration) async -> OTLPResponse? {
        let request = OTLPRequest(
            endpoint: endpoint, headers: headers, body: encoder.encode(spans), timeout: limit)
        let response = await withTaskGroup(of: OTLPResponse.self) { group in
            group.addTask { await self.send(request) }
            group.addTask { await self.expiry(of: limit) }
            defer { group.cancelAll() }
            return await group.next()
        }
        return Task.isCancelled ? nil : response
    }

    /// Returns after `limit` or at the end of the time for the shutdown.
    private func expiry(of limit: Duration) async -> OTLPResponse {
        await queue.signal.wait(for: .stop, within: limit, clock: clock)
        // The only error is the cancellation after the response has arrived.
        if let elapsed = queue.signal.sinceStop { try? await clock.sleep(for: min(limit, shutdownLimit - elapsed)) }
        return .failure("The receiver sent no complete response in time.")
    }

    /// Applies a response, and logs the first of several failures.
    private func received(_ response: OTLPResponse) -> ExportBatches.Step {
        let (now, jitter) = (wallClock.now(), random.uniform())
        let step = batches.withLock { $0.received(response, now: now, random: jitter) }
        let problem: String? =
            switch step {
            case .done(let problem): problem
            case .retry(_, _, let problem): problem
            }
        let wasFailing = isFailing.withLock { isFailing in
            defer { isFailing = problem != nil }
            return isFailing
        }
        if let problem, !wasFailing {
            logger.warning("spans cannot be exported", metadata: ["endpoint": "\(endpoint)", "reason": "\(problem)"])
        } else if problem == nil, wasFailing {
            logger.notice("spans are exported again", metadata: ["endpoint": "\(endpoint)"])
        }
        return step
    }
}
