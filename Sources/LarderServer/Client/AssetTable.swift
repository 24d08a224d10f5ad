import CacheCore

/// The output of `larder assets`.
struct AssetTable {
    /// The time for ages.
    private let now: Timestamp
    private var table = TextTable(
        .leading("asset"), .trailing("cached"), .trailing("length"), .trailing("share"), .trailing("hits"),
        .leading("last read"), .leading("key"))
    private(set) var isEmpty = true

    init(at now: Timestamp) { self.now = now }

    /// Adds an asset of the API.
    mutating func add(_ asset: JSON) {
        isEmpty = false
        let cached = asset.integer("cachedBytes") ?? 0
        let length = asset.integer("contentLength")
        let age = asset.time("lastAccessAt").map { FigureText.age(now.since($0).inSeconds) }
        table.add(
            asset.text("assetId") ?? "", FigureText.bytes(cached), length.map(FigureText.bytes) ?? "unknown",
            Self.share(of: asset, cached, length), FigureText.count(asset.integer("hits") ?? 0), age ?? "",
            (asset.text("key") ?? "") + (asset.isTrue("pinned") ? "  (pinned)" : ""))
    }

    var text: String { table.text }

    /// `complete`, or the cached share in percent.
    private static func share(of asset: JSON, _ cached: Int64, _ length: Int64?) -> String {
        if asset.isTrue("complete") { return "complete" }
        guard let length, length > 0 else { return "" }
        return FigureText.share(Double(cached) / Double(length))
    }
}
