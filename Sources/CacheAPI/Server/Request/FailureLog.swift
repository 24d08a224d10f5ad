import CacheCore
import CacheEngine
import Logging
import ServiceLifecycle

/// Decides which failures of a second are logged: the first ones of each origin. The others are counted.
struct FailureLimiter: Sendable {
    /// The entries for each origin and second.
    static let perSecond = 10
    /// The origins that are told apart in one second.
    private static let mostOrigins = 1000

    private var counts: [String: Int] = [:]

    /// Whether a failure of the origin is logged.
    mutating func admits(_ origin: String) -> Bool {
        let name = counts.count < Self.mostOrigins || counts[origin] != nil ? origin : "(other)"
        counts[name, default: 0] += 1
        return counts[name, default: 0] <= Self.perSecond
    }

    /// Ends the second. Returns the numbers of the failures that were not logged, sorted by origin.
    mutating func endSecond() -> [(origin: String, count: Int)] {
        defer { counts = [:] }
        return counts.filter { $0.value > Self.perSecond }.map { ($0.key, $0.value - Self.perSecond) }
            .sorted { $0.0 < $1.0 }
    }
}

/// Logs responses with a status from 500 on at the level `error`: at most ten for each origin and second, and the number of
/// the others.
final class FailureLog: Service {
    private let logger: Logger
    private let clock: any Clock<Duration>
    private let limiter = OrderedMutex(.leaf, FailureLimiter())

    init(logger: Logger, clock: any Clock<Duration>) {
        self.logger = logger
        self.clock = clock
    }

    /// Logs the numbers of omitted failures after each second, until the graceful shutdown.
    func run() async {
        await cancelWhenGracefulShutdown {
            // Until cancelled.
            while (try? await self.clock.sleep(for: .seconds(1))) != nil { self.endSecond() }
        }
        endSecond()
    }

    /// The code of a response that its request asks for with `only-if-cached`.
    private static let notCached = CacheError.Code.notCached.name

    /// Health checks and responses to other nodes are no failures: both report a state.
    func note(_ line: AccessLog.Line) {
        let request = line.request
        guard request.kind != .health, request.kind != .peer,
            !line.isCancelled, line.outcome != Self.notCached
        else { return }
        let origin = request.asset?.origin ?? "-"
        guard limiter.withLock({ $0.admits(origin) }) else { return }
        var metadata: Logger.Metadata = [
            "requestId": .string(line.requestID.text), "method": .string(request.method), "path": .string(request.path),
            "status": .stringConvertible(line.status), "origin": .string(origin),
        ]
        if let status = line.upstreamStatus { metadata["upstreamStatus"] = .stringConvertible(status) }
        let texts = [
            ("code", line.outcome), ("range", line.range?.text), ("assetId", request.asset?.id?.description),
            ("token", request.token), ("traceId", line.traceID),
        ]
        for case (let key, let text?) in texts { metadata[key] = .string(text) }
        logger.error("a request failed", metadata: metadata)
    }

    private func endSecond() {
        for (origin, count) in limiter.withLock({ $0.endSecond() }) {
            logger.error(
                "more requests failed in one second",
                metadata: ["origin": .string(origin), "count": .stringConvertible(count)])
        }
    }
}
