package import CacheCore

/// The state of the service for health checks.
struct HealthDocument: Codable {
    var status: String
    var detail: Omittable<String> = .absent
}

/// The version of the service, and the scope of the caller's token.
struct VersionDocument: Codable {
    var name, version, scope: String
}

/// The `SignedURL` schema.
package struct SignedURLDocument: Codable {
    package var url: String
    var expiresAt: Timestamp
    var kid: String
}

/// The `Problem` schema (RFC 9457) with its extension members.
package struct ProblemDocument: Codable, Sendable {
    var type, title: String
    package var status: Int
    package var detail, remedy: String
    var instance: String
    package var code: String
    package var requestId: String
    package var field: Omittable<String> = .absent
    var upstreamStatus: Omittable<Int> = .absent
    var timeout: Omittable<String> = .absent
    var outcome: Omittable<String> = .absent
    var timings: Omittable<TimingsDocument> = .absent
}
