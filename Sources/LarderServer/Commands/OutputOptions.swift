import CacheCore
import ArgumentParser
import CacheAPI

/// Output format of a command.
struct OutputOptions: ParsableArguments {
    enum Format: String, ExpressibleByArgument, CaseIterable { case text, json }

    @Option(name: .long, help: "Output format: text or json.")
    var format = Format.text

    @Flag(name: .long, help: "Same as --format json.")
    var json = false

    var isJSON: Bool { json || format == .json }

    /// Prints the result in the selected format.
    func write(_ text: @autoclosure () -> String, json: @autoclosure () -> JSON) {
        print(isJSON ? json().text : text())
    }
}
