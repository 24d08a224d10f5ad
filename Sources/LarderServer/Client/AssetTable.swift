import CacheAPI
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
    mutating func add(_ asset: AssetDocument) {
        isEmpty = false
        table.add(
            asset.assetId.description, FigureText.bytes(asset.cachedBytes),
            asset.contentLength.map(FigureText.bytes) ?? "unknown", Self.share(of: asset), FigureText.count(asset.hits),
            FigureText.age(now.since(asset.lastAccessAt).inSeconds), asset.key + (asset.pinned ? "  (pinned)" : ""))
    }

    /// Removes the rows and returns their lines, as ``TextTable/takeLines()``.
    mutating func takeLines() -> String { table.takeLines() }

    /// `complete`, or the cached share in percent.
    private static func share(of asset: AssetDocument) -> String {
        if asset.complete { return "complete" }
        return asset.cachedRatio.map(FigureText.share) ?? ""
    }
}
