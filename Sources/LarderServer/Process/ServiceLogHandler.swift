import Logging
import Synchronization

/// The minimum level of the log in force. Thread-safe; reading takes no lock.
final class LiveLogLevel: Sendable {
    /// The index in `Logger.Level.allCases`.
    private let index: Atomic<Int>

    init(_ level: Logger.Level) { index = Atomic(Self.index(of: level)) }

    var current: Logger.Level { Logger.Level.allCases[index.load(ordering: .relaxed)] }

    func set(_ level: Logger.Level) { index.store(Self.index(of: level), ordering: .relaxed) }

    private static func index(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}

/// Log handler of all loggers: entries of the minimum level in force go to the log, warnings and errors also to the
/// events.
struct ServiceLogHandler: LogHandler {
    /// The log; it must accept all levels.
    private var base: any LogHandler
    private var events: EventLogHandler
    private let level: LiveLogLevel
    /// The level that was set for this logger alone; nil: that of the log.
    private var own: Logger.Level?

    init(base: any LogHandler, events: EventLogHandler, level: LiveLogLevel) {
        self.base = base
        self.events = events
        self.level = level
    }

    /// The minimum level of all entries that are of use.
    var logLevel: Logger.Level {
        get { min(own ?? level.current, events.logLevel) }
        set { own = newValue }
    }

    var metadata: Logger.Metadata {
        get { base.metadata }
        set {
            base.metadata = newValue
            events.metadata = newValue
        }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { base.metadataProvider }
        set {
            base.metadataProvider = newValue
            events.metadataProvider = newValue
        }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set {
            base[metadataKey: key] = newValue
            events[metadataKey: key] = newValue
        }
    }

    func log(event: LogEvent) {
        if event.level >= own ?? level.current { base.log(event: event) }
        if event.level >= events.logLevel { events.log(event: event) }
    }
}
