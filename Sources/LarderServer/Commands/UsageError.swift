import ArgumentParser
import CacheCore

/// The message of an invalid command line. Its exit status is 64 (`EX_USAGE` of sysexits.h).
struct UsageError {
    /// For standard error: the message with the usage of the command, or with `--json` an object.
    let text: String

    init(_ error: any Error, of arguments: [String]) {
        let suggestion = Self.suggestion(for: arguments, below: LarderCommand.self)
        let message = LarderCommand.message(for: error)
        if OutputOptions.areJSON(arguments) {
            text = ClientError(.usage, message, remedy: suggestion).json.text + "\n"
        } else {
            let whole = suggestion.map { message + " " + $0 } ?? message
            text = LarderCommand.fullMessage(for: error).replacing(message, with: whole, maxReplacements: 1) + "\n"
        }
    }

    /// A sentence with the command that is most similar to the first unknown one; nil: all are known, or none is similar.
    static func suggestion(for arguments: [String], below root: any ParsableCommand.Type) -> String? {
        var command = root
        for argument in arguments {
            guard !argument.hasPrefix("-") else { return nil }
            guard
                let next = command.configuration.subcommands.first(where: { $0.configuration.commandName == argument })
            else { return suggestion(for: argument, among: names(below: command)) }
            command = next
        }
        return nil
    }

    /// The names of the subcommands.
    static func names(below command: any ParsableCommand.Type) -> [String] {
        command.configuration.subcommands.compactMap { $0.configuration.commandName }
    }

    /// A sentence with the name that is most similar to an unknown one. At most half of the name may differ.
    static func suggestion(for name: String, among names: [String]) -> String? {
        EditDistance.nearest(to: name, among: names, limit: min(3, name.count / 2)).map { "Did you mean \($0)?" }
    }
}
