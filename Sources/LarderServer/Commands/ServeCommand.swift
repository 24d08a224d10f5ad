import ArgumentParser
import CacheCore
import Logging

/// `larder serve`: runs the service until it is told to stop.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the service (what larder does when no command is named).")

    @OptionGroup var options: SettingsOptions

    func run() async throws {
        let settings = try options.settingsOrExit()
        do {
            try settings.checkExposure()
        } catch {
            throw SettingsSource.refusal(error)
        }
        settings.log.bootstrap()
        do {
            try await Larder.serve(settings: settings)
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
