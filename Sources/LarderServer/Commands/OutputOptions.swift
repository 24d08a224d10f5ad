import ArgumentParser
import CacheAPI
import CacheCore

/// Output format of a command.
struct OutputOptions: ParsableArguments {
    enum Format: String, ExpressibleByArgument, CaseIterable { case text, json }

    @Option(name: .shortAndLong, help: "Output format: text or json.")
    var output = Format.text

    @Flag(name: .long, help: "Same as --output json: documents, one per line, also of errors.")
    var json = false

    var isJSON: Bool { json || output == .json }

    /// Whether the arguments select JSON. For arguments that cannot be parsed.
    static func areJSON(_ arguments: [String]) -> Bool {
        !Set(["--json", "--output=json", "-o=json", "-ojson"]).isDisjoint(with: arguments)
            || zip(arguments, arguments.dropFirst()).contains { ["-o", "--output"].contains($0) && $1 == "json" }
    }

    /// Prints an error on standard error in the selected format.
    func report(_ error: ClientError) { StandardError.write(isJSON ? error.json.text + "\n" : error.text) }

    /// Prints the result in the selected format.
    func write(_ text: @autoclosure () -> String, json: @autoclosure () -> JSON) {
        print(isJSON ? json().text : text())
    }
}
