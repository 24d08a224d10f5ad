import ArgumentParser
import Foundation

/// The flags of every command that reads settings.
struct SettingsSource: ParsableArguments {
    @Option(name: .long, help: ArgumentHelp("A YAML or JSON file of settings (or LARDER_CONFIG).", valueName: "file"))
    var config: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Any setting, as in policy.maxIdle=30d; lists divide by commas.", valueName: "key=value"))
    var set: [String] = []

    /// The settings in force: `flags` over `--set` over `environment` over the file over defaults.
    func settings(
        flags: [(name: String, text: String?)] = [],
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(SettingsError) -> LarderSettings {
        let path = config ?? environment["LARDER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        let file: ConfigurationFile? = if let path { try ConfigurationFile(path: path) } else { nil }
        var all: [(name: String, text: String)] = []
        for assignment in set {
            guard let equals = assignment.firstIndex(of: "="), equals != assignment.startIndex else {
                throw SettingsError("--set", "\"\(assignment)\" is not key=value")
            }
            all.append((String(assignment[..<equals]), String(assignment[assignment.index(after: equals)...])))
        }
        all += flags.compactMap { name, text in text.map { (name, $0) } }
        return try LarderSettings(flags: all, environment: environment, file: file)
    }

    /// The settings, or the end of the program with one line that names the key (`EX_CONFIG` of sysexits.h).
    func settingsOrExit(flags: [(name: String, text: String?)] = []) throws -> LarderSettings {
        for sentence in SettingsSchema.strangers(in: ProcessInfo.processInfo.environment.keys) {
            StandardError.write("larder: \(sentence)\n")
        }
        do {
            return try settings(flags: flags)
        } catch {
            throw Self.refusal(error)
        }
    }

    /// Says what is wrong and answers the exit that goes with it.
    static func refusal(_ error: SettingsError) -> ExitCode {
        StandardError.write("larder: \(error)\n")
        return ExitCode(78)
    }
}

/// The flag for commands that work on a store.
struct StoreOptions: ParsableArguments {
    @OptionGroup var source: SettingsSource

    @Option(name: .long, help: ArgumentHelp("Where files and catalog lie.", valueName: "path"))
    var dataDirectory: String?

    func dataDirectoryOrExit() throws -> String {
        try source.settingsOrExit(flags: [("dataDirectory", dataDirectory)]).dataDirectory
    }
}

/// The flags of the service.
struct SettingsOptions: ParsableArguments {
    @OptionGroup var source: SettingsSource

    @Option(name: .long, help: ArgumentHelp("Where to listen.", valueName: "host:port"))
    var listen: String?

    @Option(name: .long, help: ArgumentHelp("Where files and catalog lie.", valueName: "path"))
    var dataDirectory: String?

    @Option(name: .long, help: ArgumentHelp("Disk the store may use, as in 20GiB, or none.", valueName: "size"))
    var capacity: String?

    @Option(name: .long, help: ArgumentHelp("Transfer threads.", valueName: "count"))
    var workers: String?

    @Option(
        name: .long, help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel: String?

    @Option(name: .long, help: ArgumentHelp("text or json.", valueName: "format"))
    var logFormat: String?

    @Flag(name: .long, help: "Serve other machines without any token.")
    var allowUnauthenticated = false

    private var flags: [(name: String, text: String?)] {
        [
            ("listen.address", listen), ("dataDirectory", dataDirectory), ("policy.capacity", capacity),
            ("upstream.workers", workers), ("log.level", logLevel), ("log.format", logFormat),
            ("access.allowUnauthenticated", allowUnauthenticated ? "true" : nil),
        ]
    }

    func settings(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(SettingsError) -> LarderSettings {
        try source.settings(flags: flags, environment: environment)
    }

    func settingsOrExit() throws -> LarderSettings { try source.settingsOrExit(flags: flags) }
}
