import ArgumentParser
import CacheAPI
import CacheCore

/// `larder readers`: lists the traffic of each token.
struct ReadersCommand: ClientCommand {
    /// The order of the list.
    enum Order: String, ExpressibleByArgument, CaseIterable { case bytes, bytesFromCache, requests, errors }

    static let configuration = CommandConfiguration(
        commandName: "readers",
        abstract: "List the traffic of each token since the start of the service, most bytes first.",
        discussion: "`larder token list` has the rights of tokens, `larder requests --token NAME` the requests of one.")

    @Option(name: .long, help: "Sort key, in descending order.")
    var sort = Order.bytes

    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/stats"] }

    func perform(_ client: ServiceClient) throws {
        let stats: APIDocument<FigureValues> = try client.document(ServiceRequest(.get, "/v1/stats"))
        let readers = stats.value.list("readers").sorted { $0.integer(sort.rawValue) > $1.integer(sort.rawValue) }
        guard !service.json else {
            return say(JSON.object([.init("items", .array(readers.prefix(options.limit).map(\.json)))]).text)
        }
        guard !readers.isEmpty else { return say("No reader has used a token.") }
        var table = TextTable(
            .leading("token"), .trailing("requests"), .trailing("errors"), .trailing("bytes"), .trailing("from cache"),
            .trailing("share"))
        let total = readers.reduce(0) { $0 + $1.integer("bytes") }
        for reader in readers.prefix(options.limit) {
            let (name, bytes) = (reader.text("token") ?? "", reader.integer("bytes"))
            guard !options.quiet else {
                say(PrintableText.of(name))
                continue
            }
            table.add(
                name, FigureText.count(reader.integer("requests")), FigureText.count(reader.integer("errors")),
                FigureText.bytes(bytes),
                FigureText.bytes(reader.integer("bytesFromCache")),
                FigureText.share(total > 0 ? Double(bytes) / Double(total) : nil))
        }
        if let lines = table.takeLines() { say(lines) }
        if readers.count > options.limit, !options.quiet {
            say("There are more readers; raise --limit, which is \(options.limit).")
        }
    }
}
