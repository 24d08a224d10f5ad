import ArgumentParser

/// `larder config`: prints the effective settings as YAML; credentials are masked. Invalid settings end the program
/// with status 78.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Print the effective settings; credentials are masked.",
        discussion: "Precedence: flags, LARDER_… environment variables, the configuration file, defaults.")

    @OptionGroup var options: SettingsOptions

    func run() throws {
        print(try options.settingsOrExit().rendered, terminator: "")
    }
}
