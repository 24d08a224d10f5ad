import CacheEngine
import CacheTestKit
import Logging
import Testing

@testable import LarderServer

/// The level of the log, which a reload changes.
@Suite struct ServiceLogHandlerTests {
    private let events = EventLog(wallClock: ManualWallClock())
    private let output = LogRecord(level: .trace)

    private func logger(_ level: LiveLogLevel) -> Logger {
        Logger(label: "test") { _ in
            ServiceLogHandler(
                base: output.handler, events: EventLogHandler(events: events), level: level)
        }
    }

    private var messages: [String] { output.lines.map { ($0["message"] ?? "") + ($0["place"] ?? "") } }

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
