import CacheCore
package import Logging
import Synchronization

/// The access log entry of one request. It is written once, when the response was sent or has failed.
package final class AccessLogEntry: Sendable {
    private let logger: Logger
    private let method: String
    private let path: String
    private let requestID: String
    private let status: Int
    private let note: RequestLogContext
    private let stopwatch: @Sendable () -> Duration
    /// Guards the flag that makes ``write()`` effective only once.
    private let isWritten = Mutex(false)

    package init(
        logger: Logger, method: String, path: String, requestID: String, status: Int, note: RequestLogContext,
        stopwatch: @escaping @Sendable () -> Duration
    ) {
        self.logger = logger
        self.method = method
        self.path = path
        self.requestID = requestID
        self.status = status
        self.note = note
        self.stopwatch = stopwatch
    }

    // Hummingbird releases a response without calling its body if the head cannot be written.
    deinit { write() }

    /// Writes the entry with the figures collected so far. Further calls have no effect.
    package func write() {
        let isFirst = isWritten.withLock { isWritten in
            defer { isWritten = true }
            return !isWritten
        }
        guard isFirst, logger.logLevel <= .info else { return }
        let content = note.content
        var metadata: Logger.Metadata = [
            "method": .string(method), "path": .string(path), "status": .stringConvertible(status),
            "outcome": .string(content.outcome ?? "served"), "bytes": .stringConvertible(content.sentBytes),
            "bytesFromCache": .stringConvertible(content.bytesFromCache),
            "bytesFromUpstream": .stringConvertible(content.bytesFromUpstream),
            "totalSeconds": .stringConvertible(Self.seconds(stopwatch())), "requestId": .string(requestID),
        ]
        if let firstByte = content.firstByte {
            metadata["firstByteSeconds"] = .stringConvertible(Self.seconds(firstByte))
        }
        if !content.isComplete { metadata["aborted"] = "true" }
        logger.info("request", metadata: metadata)
    }

    /// Seconds, rounded to microseconds.
    private static func seconds(_ duration: Duration) -> Double {
        (duration.inSeconds * 1_000_000).rounded() / 1_000_000
    }
}
