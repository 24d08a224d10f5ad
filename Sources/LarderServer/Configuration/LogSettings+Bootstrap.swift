import Logging

extension LogSettings {
    /// Configures all loggers of the process: standard error, this format, this minimum level. Must be called once per
    /// process.
    func bootstrap() {
        let level = level
        switch format {
        case .text:
            LoggingSystem.bootstrap { label in
                var handler = StreamLogHandler.standardError(label: label)
                handler.logLevel = level
                return handler
            }
        case .json:
            LoggingSystem.bootstrap { label in JSONLogHandler(label: label, logLevel: level) }
        }
    }
}
