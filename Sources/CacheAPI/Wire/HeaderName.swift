package import HTTPTypes

/// Field names the HTTP library does not know; all are tokens, so that none can be missing.
extension HTTPField.Name {
    private static func named(_ text: String) -> Self {
        guard let name = Self(text) else { preconditionFailure("\(text) is no field name") }
        return name
    }

    package static let requestID = named("X-Request-Id")
    /// Never sent: ``WireRules`` turns it into `Date`.
    package static let contentDate = named(WireRules.contentDate)
    package static let cacheStatus = named("Cache-Status")
    package static let larderAssetID = named("Larder-Asset-Id")
    package static let larderTimeout = named("Larder-Timeout")
    package static let cdnLoop = named("CDN-Loop")
    package static let idempotencyKey = named("Idempotency-Key")
    package static let lastEventID = named("Last-Event-ID")
    package static let prefer = named("Prefer")
    package static let preferenceApplied = named("Preference-Applied")
}
