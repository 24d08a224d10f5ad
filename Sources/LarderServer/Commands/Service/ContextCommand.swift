import ArgumentParser
import CacheCore
import Foundation

/// `larder context`: lists, makes, selects and removes the names of services.
struct ContextCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "context", abstract: "List, make, select and remove names of services.",
        discussion: """
            A context is a name for a URL, a token and certificate authorities. Commands use the one in --context or \
            LARDER_CONTEXT, else the selected one. The file is larder/contexts.json below XDG_CONFIG_HOME or ~/.config; \
            only its owner can read it.
            """,
        subcommands: [
            ContextListCommand.self, ContextSetCommand.self, ContextUseCommand.self, ContextRemoveCommand.self,
        ],
        defaultSubcommand: ContextListCommand.self)

    /// The contexts of the user. Throws `ValidationError`.
    static func contexts() throws -> ServiceContexts {
        do throws(ClientEnvironment.Fault) { return try ServiceContexts(of: .process) } catch {
            throw ValidationError(error.description)
        }
    }

    /// Changes the contexts of the user. Throws `ValidationError`.
    static func change(_ change: (inout ServiceContexts) throws -> Void) throws {
        var contexts = try contexts()
        do {
            try change(&contexts)
            try contexts.save(.process)
        } catch let fault as ClientEnvironment.Fault {
            throw ValidationError(fault.description)
        }
    }
}

/// `larder context [list]`: lists the contexts, without their tokens.
struct ContextListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the contexts; this is the default. Tokens are not shown.")

    @Flag(name: .shortAndLong, help: "Print only the names, one per line.")
    var quiet = false

    @OptionGroup var output: OutputOptions

    func run() throws {
        let all = try ContextCommand.contexts()
        if quiet { return all.contexts.forEach { print(PrintableText.of($0.name)) } }
        var table = TextTable(
            .leading(" "), .leading("name"), .leading("url"), .leading("token"), .leading("authorities"))
        for context in all.contexts {
            let document = context.document(isCurrent: context.name == all.current)
            let token = context.tokenFile ?? (document["hasToken"] == .bool(true) ? "stored" : "none")
            table.add(
                context.name == all.current ? "*" : "", context.name, context.url, token, context.caFile ?? "system")
        }
        output.write(
            table.takeLines() ?? "There are no contexts.",
            json: ["items": .array(all.contexts.map { $0.document(isCurrent: $0.name == all.current) })])
    }
}

/// `larder context set`: makes or changes a context.
struct ContextSetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Make a context, or change parts of one.")

    @Argument(help: "Name of the context.")
    var name: String

    @OptionGroup var endpoint: EndpointOptions

    @Option(
        name: .long,
        help: ArgumentHelp(
            "File of the token; - reads the token from standard input and stores it.", valueName: "file"),
        completion: .file())
    var tokenFile: String?

    @Flag(name: .long, help: "Select the context.")
    var use = false

    func validate() throws {
        guard !name.isEmpty, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw ValidationError("The name of a context has no blanks and only characters of ASCII.")
        }
    }

    func run() throws {
        try ContextCommand.change { contexts in
            guard let url = endpoint.url ?? contexts[name]?.url else {
                throw ValidationError("The context \(name) is new: pass --url.")
            }
            var context = contexts[name] ?? ServiceContexts.Context(name: name, url: url)
            do throws(ServiceAddress.Fault) { context.url = try ServiceAddress(url).description } catch {
                throw ValidationError(error.description)
            }
            if let file = endpoint.caFile { context.caFile = Self.absolute(file) }
            if tokenFile == "-" {
                context.keep(try Self.typedToken())
            } else if let tokenFile {
                try context.read(Self.absolute(tokenFile))
            }
            contexts[name] = context
            if use { contexts.current = name }
        }
    }

    private static func absolute(_ path: String) -> String { URL(fileURLWithPath: path).standardized.path }

    /// The token of standard input; typed characters are not shown.
    private static func typedToken() throws -> MaskedSecret {
        let isTyped = Terminal.input.isInteractive
        if isTyped {
            StandardError.write("Token: ")
            Terminal.input.setEcho(false)
        }
        defer {
            if isTyped {
                Terminal.input.setEcho(true)
                StandardError.write("\n")
            }
        }
        guard let token = try ClientEnvironment.token(readLine() ?? "", file: nil, of: "standard input") else {
            throw ValidationError("Standard input has no token.")
        }
        return token
    }
}

/// `larder context use`: selects a context for later commands.
struct ContextUseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "use", abstract: "Select the context of later commands.")

    @Argument(help: "Name of the context.", completion: .contexts)
    var name: String

    func run() throws {
        try ContextCommand.change { contexts in contexts.current = try contexts.named(name).name }
        if ClientEnvironment.process.url != nil { StandardError.write("LARDER_URL is set and replaces the context.\n") }
    }
}

/// `larder context remove`: removes a context with its token.
struct ContextRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a context with its stored token.")

    @Argument(help: "Name of the context.", completion: .contexts)
    var name: String

    func run() throws {
        try ContextCommand.change { contexts in
            let context = try contexts.named(name)
            contexts[context.name] = nil
        }
    }
}

extension CompletionKind {
    /// The names of the contexts.
    static var contexts: CompletionKind {
        .custom { _, _, _ in
            // A shell shows no messages while it completes a word.
            (try? ServiceContexts(of: .process).contexts.map(\.name)) ?? []
        }
    }
}
