import ArgumentParser
import CacheAPI
import CacheCore

/// `larder fills`: lists the fills in progress, or stops one.
struct FillsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fills", abstract: "List and stop transfers from upstreams.",
        subcommands: [FillsListCommand.self, FillsStopCommand.self], defaultSubcommand: FillsListCommand.self)
}

/// `larder fills [list]`: lists the fills in progress.
struct FillsListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the transfers in progress; this is the default.")

    @Option(name: .long, help: "Only transfers from this origin.")
    var origin: String?

    @Option(name: .long, help: "Only transfers of assets with keys that begin so.")
    var prefix: String?

    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/fills"] }

    var named: NamedObject? { origin.map { .origin($0) } }

    func perform(_ client: ServiceClient) throws {
        let prefix = try client.access()?.prefix(prefix, origin: origin) ?? prefix
        try list("/v1/fills", query: [("origin", origin), ("prefix", prefix)], options, client, as: Self.output)
    }

    private static let output = ListOutput<FillDocument>(
        noun: "transfer",
        columns: [
            .leading("fill"), .leading("state"), .leading("kind"), .trailing("position"), .trailing("share"),
            .trailing("rate"), .trailing("readers"), .leading("from"), .leading("key"),
        ],
        name: \.fillId
    ) { fill in
        [
            [
                fill.fillId, fill.state, fill.kind, FigureText.bytes(fill.positionBytes),
                fill.progressRatio.map(FigureText.share) ?? "", FigureText.rate(Double(fill.bytesPerSecond)),
                "\(fill.readers)", fill.peer ?? fill.origin, fill.key,
            ]
        ]
    }
}

/// `larder fills stop`: stops a transfer. Received bytes stay cached.
struct FillsStopCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Stop a transfer. Received bytes stay cached; its readers get an error.")

    @Argument(help: "Identifier of the fill.")
    var fill: String

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["DELETE /v1/fills/{fillId}"] }

    func perform(_ client: ServiceClient) throws {
        try client.send(ServiceRequest(.delete, "/v1/fills/" + PercentEncoding.encoded(fill)))
        if !service.json { say("The transfer \(fill) is stopped.") }
    }
}
