import CacheCore
package import CacheEngine
import CacheTracing
package import ReaderAccess
import Synchronization

/// The destinations of the record of a request: its access log and its histograms.
package struct RequestRecorder: Sendable {
    package let log: AccessLog
    package let latencies: RequestLatencies
    /// The counters of each reader.
    package let readers: ReaderFigures

    package init(log: AccessLog, latencies: RequestLatencies, readers: ReaderFigures = ReaderFigures()) {
        self.log = log
        self.latencies = latencies
        self.readers = readers
    }
}

/// The access log entry and the latencies of one request. They are recorded once, when the response was sent or has
/// failed.
package final class AccessLogEntry: Sendable {
    private let recorder: RequestRecorder
    private let request: LoggedRequest
    private let requestID: String
    private let status: Int
    private let logContext: RequestLogContext
    private let stopwatch: @Sendable () -> Duration
    /// Set by the first ``write()``.
    private let isWritten = Atomic(false)

    package init(
        _ recorder: RequestRecorder, _ request: LoggedRequest, requestID: String, status: Int,
        logContext: RequestLogContext,
        stopwatch: @escaping @Sendable () -> Duration
    ) {
        self.recorder = recorder
        self.request = request
        self.requestID = requestID
        self.status = status
        self.logContext = logContext
        self.stopwatch = stopwatch
    }

    // A response whose connection has ended is released without being sent.
    deinit { write() }

    /// Records the request with the figures collected so far. Further calls have no effect.
    package func write() {
        guard !isWritten.exchange(true, ordering: .relaxed) else { return }
        let (figures, duration) = (logContext.content, stopwatch())
        figures.span?.end(status: status, figures)
        if let result = figures.result {
            let shard = Int(bitPattern: ObjectIdentifier(self)) >> 6
            recorder.latencies.record(
                result, firstByte: figures.firstByte, duration: duration, shard: shard,
                traceID: figures.span?.context.traceID.description)
            if let reader = figures.reader {
                recorder.readers.add(
                    to: reader.id, requests: 1, bytes: figures.sentBytes,
                    bytesFromCache: min(figures.sentBytes, figures.bytesFromCache))
            }
        }
        recorder.log.write(
            AccessLog.Line(
                request: request, status: status, requestID: requestID, figures: figures, duration: duration))
    }
}
