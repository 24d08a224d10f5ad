import CacheCore
import CacheEngine
import CacheTracing
import ReaderAccess
import Synchronization

/// The destinations of the record of a request: access log, histograms, counters, history, and the log of failures.
struct RequestRecorder: Sendable {
    let log: AccessLog
    let latencies: RequestLatencies
    let history: RequestHistory
    let failures: FailureLog
    /// The counters of each reader.
    let readers: ReaderFigures
    /// The counters of statuses.
    let responses = ResponseCounters()

    init(
        log: AccessLog, latencies: RequestLatencies, history: RequestHistory, failures: FailureLog,
        readers: ReaderFigures = ReaderFigures()
    ) {
        (self.log, self.latencies, self.history) = (log, latencies, history)
        (self.failures, self.readers) = (failures, readers)
    }

    /// Records an ended request.
    ///
    /// - Parameters:
    ///   - shard: Any number that differs between threads.
    ///   - firstBytes: The histogram of the request's origin; nil: it is looked up.
    ///   - counter: The counter of its reader; nil: it is looked up.
    func record(
        _ line: AccessLog.Line, shard: Int, firstBytes: Histogram? = nil, counter: ReaderFigures.Counter? = nil
    ) {
        if let result = line.result {
            latencies.record(
                result, firstByte: line.firstByte, duration: line.duration, shard: shard, traceID: line.traceID)
            if let firstByte = line.firstByte, let origin = line.request.asset?.origin {
                (firstBytes ?? latencies.firstBytes(of: origin)).record(firstByte.inSeconds, shard: shard)
            }
            if let counter = counter ?? line.request.token.map(readers.counter) {
                counter.add(
                    requests: 1, bytes: line.sentBytes, bytesFromCache: min(line.sentBytes, line.bytesFromCache),
                    errors: line.status >= 400 && !line.isCancelled ? 1 : 0)
            }
        }
        // A client that has left before the response is no failure of the service; the status is that of nginx.
        responses.count(line.request.kind, line.isCancelled ? 499 : line.status, shard: shard)
        if line.status >= 500 { failures.note(line) }
        if line.request.kind.isReported { history.add(line) }
        log.write(line)
    }
}

/// The access log entry and the latencies of one request. They are recorded once, when the response was sent or has
/// failed.
final class AccessLogEntry: Sendable {
    private let recorder: RequestRecorder
    private let request: LoggedRequest
    private let client: String?
    private let startedAt: Timestamp
    private let requestID: String
    private let status: Int
    private let logContext: RequestLogContext
    private let stopwatch: @Sendable () -> Duration
    /// Set by the first ``write()``.
    private let isWritten = Atomic(false)

    init(
        _ recorder: RequestRecorder, _ request: LoggedRequest, client: String?, startedAt: Timestamp,
        requestID: String, status: Int, logContext: RequestLogContext, stopwatch: @escaping @Sendable () -> Duration
    ) {
        (self.recorder, self.request, self.client, self.startedAt) = (recorder, request, client, startedAt)
        (self.requestID, self.status, self.logContext, self.stopwatch) = (requestID, status, logContext, stopwatch)
    }

    // A response whose connection has ended is released without being sent.
    deinit { write() }

    /// Records the request with the figures collected so far. Further calls have no effect.
    func write() {
        guard !isWritten.exchange(true, ordering: .relaxed) else { return }
        let (figures, duration) = (logContext.content, stopwatch())
        figures.span?.end(status: status, requestID: requestID, figures)
        recorder.record(
            AccessLog.Line(
                request, client: client, startedAt: startedAt, requestID: .text(requestID), status: status, figures,
                duration: duration),
            shard: Int(bitPattern: ObjectIdentifier(self)) >> 6)
    }
}
