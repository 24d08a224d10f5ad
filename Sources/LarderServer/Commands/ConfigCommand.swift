import ArgumentParser

/// `larder config`: prints the settings in force as YAML, credentials masked.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Print the settings in force, credentials masked.",
        discussion: "Flags win over LARDER_… variables, those over the file, the file over defaults.")

    @OptionGroup var options: SettingsOptions

    func run() throws {
        print(try options.settingsOrExit().rendered, terminator: "")
    }
}
