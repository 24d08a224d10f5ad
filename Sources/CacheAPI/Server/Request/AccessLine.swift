import CacheCore
package import Logging
import Synchronization

/// One request's line in the access log, written once: when its response has ended, or can no longer be sent.
package final class AccessLine: Sendable {
    private let logger: Logger
    private let method: String
    private let path: String
    private let requestID: String
    private let status: Int
    private let note: RequestNote
    private let stopwatch: Stopwatch
    private let isWritten = Mutex(false)

    package init(
        logger: Logger, method: String, path: String, requestID: String, status: Int, note: RequestNote,
        stopwatch: Stopwatch
    ) {
        self.logger = logger
        self.method = method
        self.path = path
        self.requestID = requestID
        self.status = status
        self.note = note
        self.stopwatch = stopwatch
    }

    // A response whose head cannot be written any more is dropped without a word to its body.
    deinit { write() }

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
            "totalSeconds": .stringConvertible(Self.seconds(stopwatch.elapsed)), "requestId": .string(requestID),
        ]
        if let firstByte = content.firstByte {
            metadata["firstByteSeconds"] = .stringConvertible(Self.seconds(firstByte))
        }
        if !content.isComplete { metadata["aborted"] = "true" }
        logger.info("request", metadata: metadata)
    }

    /// To the microsecond.
    private static func seconds(_ duration: Duration) -> Double {
        (duration.inSeconds * 1_000_000).rounded() / 1_000_000
    }
}
