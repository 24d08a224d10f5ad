import CacheEngine
import CacheTestKit
import Logging
import Synchronization
import Testing

@testable import LarderServer

/// The level of the log, which a reload changes.
@Suite struct ServiceLogHandlerTests {
    private let events = EventLog(wallClock: ManualWallClock())
    private let output = Output()

    /// Records the messages of the log.
    private final class Output: Sendable {
        let messages = Mutex<[String]>([])
    }

    /// Appends the messages of all levels to the output.
    private struct Handler: LogHandler {
        let output: Output
        var logLevel = Logger.Level.trace
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            output.messages.withLock { $0.append(event.message.description + (metadata["place"]?.description ?? "")) }
        }
    }

    private func logger(_ level: LiveLogLevel) -> Logger {
        Logger(label: "test") { _ in
            ServiceLogHandler(
                base: Handler(output: output), events: EventLogHandler(events: events), level: level)
        }
    }

    private var messages: [String] { output.messages.withLock { $0 } }

    @Test("A changed level applies to existing loggers")
    func aChangedLevelAppliesToExistingLoggers() {
        let level = LiveLogLevel(.notice)
        var logger = logger(level)
        logger[metadataKey: "place"] = " here"
        logger.info("1")
        logger.notice("2")
        level.set(.debug)
        logger.debug("3")
        level.set(.critical)
        logger.error("4")

        #expect(messages == ["2 here", "3 here"])
    }

    @Test("Warnings are events, also if the log does not contain them", arguments: [Logger.Level.trace, .critical])
    func warningsAreEvents(level: Logger.Level) {
        let logger = logger(LiveLogLevel(level))
        let last = events.lastID
        logger.notice("a")
        logger.warning("b")

        #expect(messages == (level == .trace ? ["a", "b"] : []))
        #expect(events.lastID == last + 1)
    }

    @Test("The level of one logger does not change the others")
    func theLevelOfOneLoggerIsItsOwn() {
        let level = LiveLogLevel(.notice)
        var own = logger(level)
        own.logLevel = .debug
        own.debug("1")
        logger(level).debug("2")

        #expect(messages == ["1"])
    }
}
