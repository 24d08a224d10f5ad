package import CacheCore
package import CacheEngine

extension CreateJobRequest {
    /// The members of the schema.
    package static let keys = [
        "items", "priority", "label", "queue", "supersede", "maxBytesPerSecond", "timeoutSeconds", "deadlineAt",
        "tags", "pinned",
    ]
    /// The members of an item.
    static let itemKeys = AssetReference.keys + ["assetId", "ranges", "play"]
    /// The maximum number of items of one job.
    static let itemLimit = 10_000

    /// Reads the `CreateJobRequest` schema.
    ///
    /// - Parameter fingerprint: The digest of the request body, which is compared when an idempotency key is repeated.
    package init(_ json: JSON, fingerprint: String) throws(CacheError) {
        let fields = try JSONFields(
            json, accepting: Self.keys,
            nullable: ["label", "queue", "maxBytesPerSecond", "timeoutSeconds", "deadlineAt"])
        guard let entries = try fields.array("items", atMost: Self.itemLimit), !entries.isEmpty else {
            throw fields.invalid("items", "At least one item is expected here.")
        }
        var items: [CreateJobRequest.Item] = []
        for (index, entry) in entries.enumerated() {
            let inner = try JSONFields(entry, at: "items[\(index)]", accepting: Self.itemKeys)
            var item = CreateJobRequest.Item(reference: try AssetReference(inner), ranges: try Self.ranges(inner))
            if let play = inner.json("play") {
                guard item.ranges.isEmpty else {
                    throw inner.invalid("play", "play cannot be combined with ranges; remove one of them.")
                }
                item.play = try PlayRequest(play, at: inner.name("play"))
            }
            items.append(item)
        }
        if let label = try fields.string("label"), label.unicodeScalars.count > 256 {
            throw fields.invalid("label", "A label has at most 256 characters.")
        }
        self.init(
            items: items, priority: try fields.choice("priority") ?? .normal, label: try fields.string("label"),
            queue: try fields.string("queue"), supersedes: try fields.bool("supersede") ?? false,
            maxBytesPerSecond: try fields.integer("maxBytesPerSecond", in: 1...Int64.max),
            timeout: try fields.seconds("timeoutSeconds", from: 0.001), deadlineAt: try fields.instant("deadlineAt"),
            tags: try AssetPatch.tags(fields) ?? [], isPinned: try fields.bool("pinned") ?? false,
            fingerprint: fingerprint)
    }

    /// Reads the `ranges` of an item, in the syntax of the `Range` field; empty without the member.
    private static func ranges(_ fields: JSONFields) throws(CacheError) -> [String] {
        let ranges = try fields.strings("ranges", atMost: 256) ?? []
        for (index, range) in ranges.enumerated() {
            guard case .ranges = RangeHeader.parse(range) else {
                throw fields.invalid(
                    "ranges[\(index)]", "A range like bytes=0-1048575 or bytes=-65536 is expected here.")
            }
        }
        return ranges
    }
}
