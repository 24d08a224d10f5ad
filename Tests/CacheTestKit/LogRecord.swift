import CacheCore
package import Logging

/// Records log lines, and lets a test wait for a line.
package final class LogRecord: Sendable {
    /// The metadata of a line, with its `message` and its `level`.
    package typealias Line = [String: String]

    /// Appends lines to the record.
    private struct Handler: LogHandler {
        let record: LogRecord
        var logLevel: Logger.Level
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            var line = metadata.merging(event.metadata ?? [:]) { $1 }.mapValues { "\($0)" }
            line["message"] = event.message.description
            line["level"] = event.level.rawValue
            record.recorded.change { [line] in $0.append(line) }
        }
    }

    private let recorded = AsyncCondition([Line]())
    private let level: Logger.Level

    /// `level`: the lowest level that is recorded.
    package init(level: Logger.Level = .info) { self.level = level }

    package var handler: any LogHandler { Handler(record: self, logLevel: level) }
    package var logger: Logger { Logger(label: "test") { _ in handler } }
    package var lines: [Line] { recorded.state }

    package func lines(at level: Logger.Level) -> [Line] { lines.filter { $0["level"] == level.rawValue } }

    /// Waits for a line that meets `condition`, and returns it; nil if the task is cancelled.
    package func line(_ condition: @escaping @Sendable (Line) -> Bool) async -> Line? {
        await recorded.valueUnlessCancelled { $0.first(where: condition) }
    }
}
