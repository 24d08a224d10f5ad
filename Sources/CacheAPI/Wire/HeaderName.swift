package import HTTPTypes

/// Field names that the HTTP library does not define.
extension HTTPField.Name {
    /// Makes a name. All names below are valid tokens, so it never fails.
    private static func named(_ text: String) -> Self {
        guard let name = Self(text) else { preconditionFailure("\(text) is not a field name") }
        return name
    }

    package static let requestID = named("X-Request-Id")
    /// Internal: ``HTTP1FramingHandler`` renames it to `Date` before it is sent.
    package static let contentDate = named(HTTP1FramingHandler.contentDate)
    package static let cacheStatus = named("Cache-Status")
    package static let larderAssetID = named("Larder-Asset-Id")
    package static let larderTimeout = named("Larder-Timeout")
    package static let cdnLoop = named("CDN-Loop")
    package static let idempotencyKey = named("Idempotency-Key")
    package static let lastEventID = named("Last-Event-ID")
    package static let prefer = named("Prefer")
    package static let preferenceApplied = named("Preference-Applied")
}
