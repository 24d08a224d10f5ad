import CacheEngine
import Logging

/// Log handler that publishes warnings and errors as events, for the dashboard.
struct EventLogHandler: LogHandler {
    let events: EventLog
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel = Logger.Level.warning

    init(events: EventLog) { self.events = events }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let merged = metadata.merging(event.metadata ?? [:]) { _, newer in newer }
        events.publish(
            .log(
                isError: event.level >= .error, message: event.message.description,
                metadata: merged.mapValues { $0.description }))
    }
}
