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

    @Option(name: .long, help: "Only assets with this part in their key or URL, without regard to case.")
    var contains: String?

    @Option(name: .long, help: "Only assets with this tag.")
    var tag: String?

    @Option(name: .long, help: "Only assets in this state.")
    var state: AssetQuery.State?

    @Option(name: .long, help: "Sort key, in descending order.")
    var sort: AssetQuery.Sort = .lastAccess

    @Flag(name: .long, help: "Sort in ascending order.")
    var ascending = false

    @OptionGroup var options: ListOptions
    @OptionGroup var service: ServiceOptions

    var needs: [String] { ["GET /v1/assets"] }

    var named: NamedObject? { origin.map { .origin($0) } }

    func perform(_ client: ServiceClient) throws {
        let prefix = try client.access()?.prefix(prefix, origin: origin) ?? prefix
        try list(
            "/v1/assets", query: query(prefix), options, client,
            as: ListOutput<AssetDocument>.assets(at: SystemWallClock().now()))
    }

    private func query(_ prefix: String?) -> [(name: String, value: String?)] {
        [
            ("origin", origin), ("prefix", prefix), ("contains", contains), ("tag", tag), ("state", state?.rawValue),
            ("sort", sort.rawValue), ("order", ascending ? "asc" : "desc"),
        ]
    }
}

extension AssetQuery.State: ExpressibleByArgument {}
extension AssetQuery.Sort: ExpressibleByArgument {}

extension ListOutput<AssetDocument> {
    /// - Parameter now: The time for ages.
    static func assets(at now: Timestamp) -> Self {
        Self(
            noun: "asset",
            columns: [
                .leading("asset"), .trailing("cached"), .trailing("length"), .trailing("share"), .trailing("hits"),
                .leading("last read"), .leading("key"),
            ],
            name: \.assetId.description
        ) { asset in
            let share = asset.complete ? "complete" : asset.cachedRatio.map(FigureText.share) ?? ""
            return [
                [
                    asset.assetId.description, FigureText.bytes(asset.cachedBytes),
                    asset.contentLength.map(FigureText.bytes) ?? "unknown", share, FigureText.count(asset.hits),
                    FigureText.age(now.since(asset.lastAccessAt).inSeconds),
                    asset.key + (asset.pinned ? "  (pinned)" : ""),
                ]
            ]
        }
    }
}
