import CacheAPI
import CacheEngine
import Logging

extension LogSettings {
    /// Configures all loggers of the process: standard error, this format, the minimum level `level`; warnings and
    /// errors also go to `events`. Must be called once per process.
    func bootstrap(events: EventLog, level: LiveLogLevel) {
        let settings = self
        LoggingSystem.bootstrap { label in
            ServiceLogHandler(
                base: settings.handler(label: label, format: settings.format, level: .trace),
                events: EventLogHandler(events: events), level: level)
        }
    }

    /// The access log; nil: the service's own log.
    var accessLog: AccessLog? {
        switch access {
        case nil: nil
        case .off: .off
        case .combined: .combined(now: { SystemWallClock().now() }, write: StandardError.write)
        case .text: AccessLog(accessLogger(.text))
        case .json: AccessLog(accessLogger(.json))
        }
    }

    private func accessLogger(_ format: Format) -> Logger {
        Logger(label: "larder.access") { handler(label: $0, format: format, level: .info) }
    }

    private func handler(label: String, format: Format, level: Logger.Level) -> any LogHandler {
        switch format {
        case .text:
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = level
            return handler
        case .json: return JSONLogHandler(label: label, logLevel: level, fields: fields)
        }
    }
}
