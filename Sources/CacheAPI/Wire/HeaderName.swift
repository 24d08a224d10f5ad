import CacheEngine
import CacheTracing
package import HTTPTypes

/// Field names that the HTTP library does not define.
extension HTTPField.Name {
    /// Makes a name. All names below are valid tokens, so it never fails.
    private static func named(_ text: String) -> Self {
        guard let name = Self(text) else { preconditionFailure("\(text) is not a field name") }
        return name
    }

    package static let requestID = named("X-Request-Id")
    static let cacheStatus = named("Cache-Status")
    static let larderAssetID = named("Larder-Asset-Id")
    static let larderTimeout = named("Larder-Timeout")
    static let larderPeer = named(PeerNodes.field)
    static let larderComing = named(PeerNodes.comingField)
    static let larderNextByte = named(PeerNodes.nextField)
    /// Marks calls of the dashboard.
    static let larderDashboard = named("Larder-Dashboard")
    static let larderFleet = named(PeerNodes.fleetField)
    package static let cdnLoop = named("CDN-Loop")
    package static let idempotencyKey = named("Idempotency-Key")
    static let lastEventID = named("Last-Event-ID")
    static let traceparent = named(TraceContext.parentField)
    static let tracestate = named(TraceContext.stateField)
    static let xAccelBuffering = named("X-Accel-Buffering")
    static let referrerPolicy = named("Referrer-Policy")
    static let prefer = named("Prefer")
    static let wantContentDigest = named("Want-Content-Digest")
    static let wantReprDigest = named("Want-Repr-Digest")
    /// Internal: marks a response for ``ResponseCompression``, which removes the field.
    static let compressionMark = named("Larder-Compress")
    static let preferenceApplied = named("Preference-Applied")
}
