import ArgumentParser
import CacheAPI
import CacheCore

/// `larder assets`: lists the assets of a running service.
struct AssetsCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "assets", abstract: "List the assets of a running service.")

    @Option(name: .long, help: "Only assets of this origin.")
    var origin: String?

    @Option(name: .long, help: "Only assets with keys that begin so.")
    var prefix: String?

    @Option(name: .long, help: "Only assets with this tag.")
    var tag: String?

    @Option(name: .long, help: "Only assets in this state.")
    var state: AssetQuery.State?

    @Option(name: .long, help: "Sort key, in descending order.")
    var sort: AssetQuery.Sort = .lastAccess

    @Flag(name: .long, help: "Sort in ascending order.")
    var ascending = false

    @Option(name: .long, help: "Maximum number of assets.")
    var limit = 100

    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/assets"] }

    func validate() throws {
        guard limit > 0 else { throw ValidationError("--limit must be at least 1.") }
    }

    func perform(_ client: ServiceClient) throws {
        let prefix = try client.access()?.prefix(prefix, origin: origin) ?? prefix
        var table = AssetTable(at: SystemWallClock().now())
        let hasMore = try client.pages(
            "/v1/assets", of: AssetDocument.self, query: query(prefix), limit: limit
        ) { page in
            guard !service.json else { return say(page.text) }
            page.value.items.forEach { table.add($0) }
            if !page.value.items.isEmpty { say(table.takeLines()) }
        }
        guard !service.json else { return }
        if table.isEmpty { say("No assets match.") }
        if hasMore { say("More assets match; raise --limit, which is \(limit).") }
    }

    private func query(_ prefix: String?) -> [(name: String, value: String?)] {
        [
            ("origin", origin), ("prefix", prefix), ("tag", tag), ("state", state?.rawValue), ("sort", sort.rawValue),
            ("order", ascending ? "asc" : "desc"),
        ]
    }
}

extension AssetQuery.State: ExpressibleByArgument {}
extension AssetQuery.Sort: ExpressibleByArgument {}
