import CacheCore
import ArgumentParser
import CacheAPI

/// `larder version`: prints the version like `--version`, also as JSON.
struct VersionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "version", abstract: "Print the version.")

    @OptionGroup var output: OutputOptions

    func run() {
        output.write(
            LarderCommand.version, json: ["name": "larder", "version": .string(LarderCommand.version)])
    }
}
