import ArgumentParser
import CacheCore
import CacheEngine
import Logging

/// `larder serve`: runs the service until SIGTERM or SIGINT.
///
/// Exit status 78 if a setting prevents the start, 1 if the service fails later.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the service; this is the default command.")

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        let (input, read) = try options.readOrExit(takingSockets: true)
        let settings = read.settings
        do {
            try settings.checkExposure()
        } catch {
            throw SettingsSource.refusal(error)
        }
        let events = EventLog(wallClock: SystemWallClock())
        let logLevel = LiveLogLevel(settings.log.level)
        settings.log.bootstrap(events: events, level: logLevel)
        do {
            try await Larder.serve(input, read, events: events, logLevel: logLevel)
        } catch let error as SettingsError {
            throw SettingsSource.refusal(error)
        } catch let error as CacheError {
            StandardError.write("larder: \(error.sentence)\n")
            throw ExitCode.failure
        } catch {
            StandardError.write("larder: the service on \(settings.listen.address) failed: \(error)\n")
            throw ExitCode.failure
        }
    }
}
