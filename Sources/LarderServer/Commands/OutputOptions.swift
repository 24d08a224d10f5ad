import ArgumentParser
import CacheAPI

/// The form of a command's output.
struct OutputOptions: ParsableArguments {
    enum Format: String, ExpressibleByArgument, CaseIterable { case text, json }

    @Option(name: .long, help: "text or json.")
    var format = Format.text

    @Flag(name: .long, help: "Short for --format json.")
    var json = false

    var isJSON: Bool { json || format == .json }

    /// Prints the result in the chosen form.
    func write(_ text: @autoclosure () -> String, json: @autoclosure () -> JSON) {
        print(isJSON ? json().text : text())
    }
}
