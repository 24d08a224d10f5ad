import Logging

extension LogSettings {
    /// Makes every logger of the process write to standard error in this format, from this level on. Once a process.
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
