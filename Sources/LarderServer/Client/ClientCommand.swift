import ArgumentParser
import CacheCore
import Foundation
import Glibc

/// Options of all commands that call a running service.
struct ServiceOptions: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "URL of the service, or unix:/path (environment: LARDER_URL; default: \(ServiceAddress.standard)).",
            valueName: "url"))
    var url: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "File of the certificate authorities to trust, for https, instead of the system's.", valueName: "file"))
    var caFile: String?

    @OptionGroup var output: OutputOptions

    /// Whether documents of the API are printed unchanged, one per line.
    var json: Bool { output.isJSON }

    /// The client for the service. The token comes from LARDER_TOKEN or LARDER_TOKEN_FILE only, because other users can
    /// read command lines. Throws `ValidationError` for an invalid URL or token.
    func client(_ environment: ClientEnvironment = .process) throws -> ServiceClient {
        do {
            let address = try ServiceAddress(url ?? environment.url ?? ServiceAddress.standard)
            return try ServiceClient(to: address, token: try environment.token(), authorities: caFile)
        } catch let fault as ServiceAddress.Fault {
            throw ValidationError(fault.description)
        } catch let fault as ClientEnvironment.Fault {
            throw ValidationError(fault.description)
        }
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
            StandardError.write(service.json ? error.json.text + "\n" : error.text)
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
        SignCommand.self, EncryptionCommand.self, FleetCommand.self,
    ]
}
