import ArgumentParser

/// Root command of the executable; without a subcommand it runs `serve`.
@main
struct LarderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "larder",
        abstract: "A cache for byte ranges of audio and video files, with an HTTP interface to manage it.",
        version: version,
        subcommands: [
            ServeCommand.self, ConfigCommand.self, DoctorCommand.self, HealthcheckCommand.self, VerifyCommand.self,
            ExportCommand.self, SimulateCommand.self, TokenCommand.self, MonitoringCommand.self, VersionCommand.self,
        ],
        groupedSubcommands: [CommandGroup(name: "Client", subcommands: ClientCommands.all)],
        defaultSubcommand: ServeCommand.self)

    @Flag(name: .short, help: "Same as --version.")
    var v = false

    /// The version of Larder; also sent in `User-Agent` and served by `/v1/version` and `/metrics`.
    static let version = "0.1.0"

    func validate() throws {
        if v { throw CleanExit.message(Self.version) }
    }

    /// Ignores SIGHUP before anything else if the command is `serve`: the signal must not end a service that is
    /// starting.
    static func main() async {
        let command = CommandLine.arguments.dropFirst().first ?? "serve"
        if command == "serve" || command.hasPrefix("-") { ProcessLimits.ignoreHangUp() }
        do {
            var command = try await asyncParseAsRoot()
            guard var asynchronous = command as? any AsyncParsableCommand else { return try command.run() }
            try await asynchronous.run()
        } catch {
            guard exitCode(for: error) == .validationFailure else { exit(withError: error) }
            StandardError.write(UsageError(error, of: Array(CommandLine.arguments.dropFirst())).text)
            exit(withError: ExitCode.validationFailure)
        }
    }
}
