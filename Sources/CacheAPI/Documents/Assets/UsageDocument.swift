import CacheCore

/// The `Usage` schema.
package struct UsageDocument: Codable {
    package struct Item: Codable {
        package var name: String
        package var assets, bytes: Int64
    }

    package struct Total: Codable {
        package var assets, bytes: Int64
    }

    /// `origin`, `path`, `tag`, `type` or `age`.
    package var by: String
    package var prefix: String?
    package var depth: Int?
    /// The groups with most bytes first; ages in their order.
    package var items: [Item]
    package var total: Total
}

extension UsageDocument {
    init(_ usage: AssetUsage, of query: UsageQuery) {
        self.init(
            by: query.group.rawValue, prefix: query.prefix, depth: query.group == .path ? query.depth : nil,
            items: usage.parts.map { Item(name: $0.name, assets: $0.amount.assets, bytes: $0.amount.bytes) },
            total: Total(assets: usage.total.assets, bytes: usage.total.bytes))
    }
}
