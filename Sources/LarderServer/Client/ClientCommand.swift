import ArgumentParser
import CacheCore
import Foundation
import Glibc

/// The address of a service.
struct EndpointOptions: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "URL of the service, or unix:/path (environment: LARDER_URL; default: \(ServiceAddress.standard)).",
            valueName: "url"))
    var url: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "File of the certificate authorities to trust, for https, instead of the system's.", valueName: "file"),
        completion: .file())
    var caFile: String?
}

/// Options of all commands that call a running service.
struct ServiceOptions: ParsableArguments {
    @OptionGroup var endpoint: EndpointOptions

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "Service named by `larder context` (environment: LARDER_CONTEXT).", valueName: "name"),
        completion: .contexts)
    var context: String?

    @OptionGroup var output: OutputOptions

    /// Whether documents of the API are printed unchanged, one per line.
    var json: Bool { output.isJSON }

    func validate() throws {
        guard context == nil || endpoint.url == nil else {
            throw ValidationError("--context and --url exclude each other.")
        }
    }

    /// The client for the service. No option has the token, because other users can read command lines. Throws
    /// `ValidationError` for an invalid URL, token or context.
    func client(_ environment: ClientEnvironment = .process) throws -> ServiceClient {
        do {
            let context = try selectedContext(environment)
            let address = try ServiceAddress(
                endpoint.url ?? context?.url ?? environment.url ?? ServiceAddress.standard)
            // A token of the environment may be for another service than the one of --context.
            let token =
                try self.context == nil
                ? environment.token() ?? context?.secret() : context?.secret() ?? environment.token()
            return try ServiceClient(to: address, token: token, authorities: endpoint.caFile ?? context?.caFile)
        } catch let fault as ServiceAddress.Fault {
            throw ValidationError(fault.description)
        } catch let fault as ClientEnvironment.Fault {
            throw ValidationError(fault.description)
        }
    }

    /// The context of `--context`, of `LARDER_CONTEXT` or the selected one; nil if none is, or if another URL is given.
    private func selectedContext(_ environment: ClientEnvironment) throws -> ServiceContexts.Context? {
        guard endpoint.url == nil else { return nil }
        if let context { return try ServiceContexts(of: environment).named(context) }
        guard environment.url == nil || environment.context == nil else {
            throw ClientEnvironment.Fault(
                description: "LARDER_URL and LARDER_CONTEXT are both set; remove one of them.")
        }
        guard environment.url == nil else { return nil }
        let contexts = try ServiceContexts(of: environment)
        return try (environment.context ?? contexts.current).map { try contexts.named($0) }
    }
}

/// A command that calls a running service.
protocol ClientCommand: AsyncParsableCommand, Sendable {
    var service: ServiceOptions { get }
    /// The operations of the API that the command calls, such as `GET /v1/stats`.
    var needs: [String] { get }
    /// The object that the command names, for a suggestion if it does not exist.
    var named: NamedObject? { get }

    /// Executes the command; it may block. Throws `ClientError`, `ValidationError` or `ExitCode`.
    func perform(_ client: ServiceClient) throws
}

extension ClientCommand {
    var named: NamedObject? { nil }

    /// Executes the command on a thread of its own, if the token permits its operations. Prints a `ClientError` and exits with status 1, or 130 after an
    /// interruption.
    func run() async throws {
        signal(SIGPIPE, SIG_IGN)  // a closed connection or pipe is an error of the write
        try await withCheckedThrowingContinuation { (ended: CheckedContinuation<Void, any Error>) in
            Thread { ended.resume(with: Result { try performOnThread() }) }.start()
        }
    }

    private func performOnThread() throws {
        do {
            let client = try service.client()
            try client.access()?.require(needs)
            do { try perform(client) } catch let error as ClientError { throw named?.explained(error, client) ?? error }
        } catch let error as ClientError {
            if error.kind == .interrupted { throw ExitCode(130) }
            service.output.report(error)
            throw ExitCode(1)
        }
    }

    /// Prints a line on standard output.
    func say(_ line: String) { Terminal.output.write(line + "\n") }
}

/// The commands that call a running service.
enum ClientCommands {
    static let all: [any ParsableCommand.Type] = [
        StatsCommand.self, ReadersCommand.self, RequestsCommand.self, TailCommand.self, AssetsCommand.self,
        UsageCommand.self, ExplainCommand.self, FillsCommand.self, OriginsCommand.self, PolicyCommand.self,
        ListCommand.self, JobsCommand.self, SchedulesCommand.self, PrefetchCommand.self, PurgeCommand.self,
        SignCommand.self, EncryptionCommand.self, FleetCommand.self, ContextCommand.self,
    ]
}
