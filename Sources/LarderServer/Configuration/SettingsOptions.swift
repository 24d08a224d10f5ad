import ArgumentParser
import Foundation

/// Options of all commands that read settings.
struct SettingsSource: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp("Configuration file, YAML or JSON (environment: LARDER_CONFIG).", valueName: "file"))
    var config: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Any setting, for example policy.maxIdle=30d; separate list items by commas.", valueName: "key=value"))
    var set: [String] = []

    /// The inputs of the settings. Precedence: `flags`, `--set`, `environment`, the file, defaults. Throws an error for
    /// an invalid `--set`.
    func input(
        flags: [(name: String, text: String?)] = [],
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(SettingsError) -> SettingsInput {
        let path = config ?? environment["LARDER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        var all: [(name: String, text: String)] = []
        for assignment in set {
            guard let equals = assignment.firstIndex(of: "="), equals != assignment.startIndex else {
                throw SettingsError("--set", "\"\(assignment)\" does not have the form key=value")
            }
            all.append((String(assignment[..<equals]), String(assignment[assignment.index(after: equals)...])))
        }
        all += flags.compactMap { name, text in text.map { (name, $0) } }
        return SettingsInput(flags: all, environment: environment, file: path)
    }

    /// The effective settings, or program exit 78 (`EX_CONFIG` of sysexits.h) with one line that names the key.
    ///
    /// Unknown `LARDER_…` variables and an incomplete last line of the file are reported on standard error.
    func settingsOrExit(flags: [(name: String, text: String?)] = []) throws -> LarderSettings {
        try readOrExit(flags: flags).read.settings
    }

    /// The same with the inputs, for reloads. The service also takes the sockets of its manager.
    func readOrExit(
        flags: [(name: String, text: String?)] = [], takingSockets: Bool = false
    ) throws -> (input: SettingsInput, read: ReadSettings) {
        for sentence in SettingsSchema.strangers(in: ProcessInfo.processInfo.environment.keys) {
            StandardError.write("larder: \(sentence)\n")
        }
        do {
            var input = try input(flags: flags)
            if takingSockets {
                input.inherited = try InheritedSockets(environment: input.environment, process: getpid())
            }
            let read = try input.read()
            if let file = input.file, read.content?.isComplete == false {
                StandardError.write("larder: \(file): has no line feed at its end; a reload refuses the file\n")
            }
            return (input, read)
        } catch {
            throw Self.refusal(error)
        }
    }

    /// Prints the error and returns the exit status for it.
    static func refusal(_ error: SettingsError) -> ExitCode {
        StandardError.write("larder: \(error)\n")
        return ExitCode(78)
    }
}

/// Options of commands that work on a store.
struct StoreOptions: ParsableArguments {
    @OptionGroup var source: SettingsSource

    @Option(name: .long, help: ArgumentHelp("Directory of the cached files and the catalog.", valueName: "path"))
    var dataDirectory: String?

    func settingsOrExit() throws -> LarderSettings {
        try source.settingsOrExit(flags: [("dataDirectory", dataDirectory)])
    }
}

/// Options of the service.
struct SettingsOptions: ParsableArguments {
    @OptionGroup var source: SettingsSource

    @Option(name: .long, help: ArgumentHelp("Listen address: host:port or unix:/path.", valueName: "address"))
    var listen: String?

    @Option(name: .long, help: ArgumentHelp("Directory of the cached files and the catalog.", valueName: "path"))
    var dataDirectory: String?

    @Option(name: .long, help: ArgumentHelp("Maximum disk usage, for example 20GiB, or none.", valueName: "size"))
    var capacity: String?

    @Option(name: .long, help: ArgumentHelp("Number of transfer threads.", valueName: "count"))
    var workers: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Minimum log level: trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel: String?

    @Option(name: .long, help: ArgumentHelp("Log format: text or json.", valueName: "format"))
    var logFormat: String?

    @Flag(name: .long, help: "Serve other machines without a token.")
    var allowUnauthenticated = false

    /// Flags as settings; nil: the flag was not given.
    private var flags: [(name: String, text: String?)] {
        [
            ("listen.address", listen), ("dataDirectory", dataDirectory), ("policy.capacity", capacity),
            ("upstream.workers", workers), ("log.level", logLevel), ("log.format", logFormat),
            ("access.allowUnauthenticated", allowUnauthenticated ? "true" : nil),
        ]
    }

    /// The inputs of the settings. Throws for an invalid `--set`.
    func input() throws(SettingsError) -> SettingsInput { try source.input(flags: flags) }

    func settings(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(SettingsError) -> LarderSettings {
        try source.input(flags: flags, environment: environment).read().settings
    }

    func settingsOrExit() throws -> LarderSettings { try source.settingsOrExit(flags: flags) }

    /// The effective settings with their inputs, or program exit 78 as in ``SettingsSource``.
    func readOrExit(
        takingSockets: Bool = false
    ) throws -> (input: SettingsInput, read: ReadSettings) {
        try source.readOrExit(flags: flags, takingSockets: takingSockets)
    }
}
