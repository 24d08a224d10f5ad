package import CacheCore
import CacheEngine

extension Quota {
    /// The `Quota` schema.
    package var json: JSON { Quota.settings.json(of: self) }
}

/// The `QuotaStatus` schema.
package struct QuotaDocument: Codable {
    var owner: QuotaOwnerDocument
    var cachedBytes, minBytes: Int64
    var maxBytes: Int64?
    /// Cached bytes ÷ `maxBytes`; nil without a limit.
    var usedRatio: Double?
}

extension QuotaDocument {
    package init(_ status: QuotaStatus) {
        self.init(
            owner: QuotaOwnerDocument(status.owner), cachedBytes: status.cachedBytes, minBytes: status.quota.minBytes,
            maxBytes: status.quota.maxBytes,
            usedRatio: status.quota.maxBytes.flatMap { status.cachedBytes.ratio(to: $0) })
    }
}

/// The `QuotaOwner` schema: an origin or a tag.
package struct QuotaOwnerDocument: Codable {
    var origin, tag: Omittable<String>
}

extension QuotaOwnerDocument {
    package init(_ owner: QuotaOwner) {
        switch owner {
        case .origin(let name): self.init(origin: .value(name), tag: .absent)
        case .tag(let tag): self.init(origin: .absent, tag: .value(tag))
        }
    }
}
