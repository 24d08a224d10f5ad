import CacheAPI
import CacheCore
import CacheEngine
import Foundation

/// The document of a list of 1,000 assets, encoded by the service and by Foundation.
@MainActor func assetLists() {
    let time = Timestamp(milliseconds: 1_780_000_000_123)
    let assets = (0..<1000).map { (number: UInt64) in
        let generation = Generation(
            number: 3, length: 1 << 30, contentType: "video/mp4",
            validators: Validators(
                entityTag: EntityTag("\"v\(number)\""), lastModified: "Wed, 01 Jan 2025 00:00:00 GMT"),
            acceptsRanges: true, receivedAt: time, freshUntil: time)
        let record = AssetRecord(
            id: AssetID(high: number &* 0x9E37_79B9_7F4A_7C15, low: number), key: "/o/media/library/film-\(number).mp4",
            origin: "media", url: "https://media.example/library/film-\(number).mp4?signature=x",
            generation: generation, createdAt: time, lastAccessAt: time, hits: 12, tags: ["film", "evening"])
        return AssetSummary(record: record, cachedBytes: 1 << 29, diskBytes: 1 << 29)
    }
    var bytes = 0
    measure("JSON: encode an asset of a list", size: assets.count, operations: assets.count) {
        bytes += PageDocument(assets.map { AssetDocument($0) }, next: nil).jsonBytes.count
    }
    let page = PageDocument(assets.map { AssetDocument($0) }, next: nil)
    let tree = (try? JSONParser.parse(page.jsonBytes)) ?? .null  // the text is valid
    measure("JSON: write the tree of an asset of a list", size: assets.count, operations: assets.count) {
        bytes += tree.text.utf8.count
    }
    measure("JSON: decode an asset of a list", size: assets.count, operations: assets.count) {
        let page = try? tree.decode(PageDocument<AssetDocument>.self, isStrict: false)
        bytes += page?.items.count ?? 0
    }
    let encoder = JSONEncoder()
    measure("Foundation: encode an asset of a list", size: assets.count, operations: assets.count) {
        bytes += (try? encoder.encode(page))?.count ?? 0  // encoding cannot fail
    }
    precondition(bytes > 0)
}
