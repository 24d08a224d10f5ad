package import CacheCore

/// The body of `POST /v1/probe`: one asset, or a list.
package struct ProbeRequest: Decodable, Sendable {
    /// One asset to probe.
    package struct Item: Decodable, Sendable {
        package fileprivate(set) var reference: AssetReference
        fileprivate let options: Options
        fileprivate var defaults = Options()
        package var timeout: Duration { (options.timeoutSeconds ?? defaults.timeoutSeconds)?.duration ?? .seconds(5) }
        /// Whether the upstream is asked even if the cached metadata is fresh.
        package var refresh: Bool { options.refresh ?? defaults.refresh ?? false }

        package init(from decoder: any Decoder) throws {
            options = try Options(from: decoder)
            reference = try AssetReference(from: decoder)
        }
    }

    fileprivate struct Options: Decodable, Sendable {
        enum TimeoutLimits: NumberLimits { static let range = 0.001...300.0 }
        var timeoutSeconds: Limited<TimeoutLimits>?
        var refresh: Bool?
    }

    private struct Members: Decodable { var items: List<100, Item>? }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Self.self) }
    /// The members of an item.
    static var itemKeys: [String] { JSON.keys(of: Item.self) }

    /// At least one.
    package var items: [Item]
    /// Whether the response is a list, even for one item.
    var isMany: Bool

    package init(_ json: JSON) throws(CacheError) { self = try json.decode() }

    /// The request with other names for its assets.
    func named(_ names: ([AssetReference]) -> [AssetReference]) -> ProbeRequest {
        var request = self
        for (index, reference) in names(items.map(\.reference)).enumerated() {
            request.items[index].reference = reference
        }
        return request
    }

    /// Reads the request. Beside `items`, `timeoutSeconds` and `refresh` are the defaults of all items.
    package init(from decoder: any Decoder) throws {
        let defaults = try Options(from: decoder)
        let many = try Members(from: decoder).items?.values
        isMany = many != nil
        items = try many ?? [Item(from: decoder)]
        guard isMany else { return }
        let json = try JSON(from: decoder)
        if let key = AssetReference.keys.first(where: { json[$0] != nil }) {
            throw decoder.invalid("This field is not allowed beside items; put it into the items.", at: key)
        }
        guard !items.isEmpty else { throw decoder.invalid("At least one item is expected here.", at: "items") }
        for index in items.indices { items[index].defaults = defaults }
    }
}
