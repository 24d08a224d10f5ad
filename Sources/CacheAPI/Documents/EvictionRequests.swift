package import CacheCore
package import CacheEngine

/// The body of `POST /v1/evictions`: the `EvictRequest` schema.
package struct EvictRequest: Sendable {
    private struct Document: Decodable {
        var freeBytes, targetBytes: Limited<NotNegative>?
        var dryRun: Bool?
    }

    /// The members of the schema.
    package static var keys: [String] { JSON.keys(of: Document.self) }

    package var goal: EvictionGoal
    package var isDryRun: Bool

    /// Requires exactly one of `freeBytes` and `targetBytes`.
    package init(_ json: JSON) throws(CacheError) {
        let document = try json.decode(Document.self)
        isDryRun = document.dryRun ?? false
        switch (document.freeBytes?.value, document.targetBytes?.value) {
        case (let bytes?, nil): goal = .free(bytes: bytes)
        case (nil, let bytes?): goal = .target(bytes: bytes)
        case (nil, nil): throw .invalid("freeBytes", "freeBytes or targetBytes is expected here.")
        default: throw .invalid("targetBytes", "Only one of freeBytes and targetBytes is allowed.")
        }
    }
}
