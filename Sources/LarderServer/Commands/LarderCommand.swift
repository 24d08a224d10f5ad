import ArgumentParser

/// The executable's root: serves unless told otherwise.
@main
struct LarderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "larder",
        abstract: "A cache for byte ranges of audio and video files, with an HTTP interface to manage it.",
        version: version,
        subcommands: [
            ServeCommand.self, ConfigCommand.self, HealthcheckCommand.self, VerifyCommand.self, ExportCommand.self,
            SimulateCommand.self, VersionCommand.self,
        ],
        defaultSubcommand: ServeCommand.self)

    static let version = "0.1.0"

    /// A service must not die of SIGHUP while it starts, either.
    static func main() async {
        let command = CommandLine.arguments.dropFirst().first ?? "serve"
        if command == "serve" || command.hasPrefix("-") { ProcessLimits.ignoreHangUp() }
        await main(nil)
    }
}
