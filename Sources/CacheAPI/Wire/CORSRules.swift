package import HTTPTypes

/// Rules for web pages that read responses (the CORS protocol of the Fetch standard).
package struct CORSRules: Hashable, Sendable {
    /// The allowed web origins.
    package enum Origins: Hashable, Sendable {
        case none
        case any
        /// These origins in the form of the `Origin` field, for example `https://player.example.com`.
        case these(Set<String>)
    }

    package var origins: Origins
    /// How long browsers may cache the response to a preflight.
    package var maxAge: Duration

    package init(origins: Origins = .any, maxAge: Duration = .seconds(3600)) {
        self.origins = origins
        self.maxAge = maxAge
    }

    /// The response fields that scripts may read.
    private static let exposed = [
        "Content-Range", "Content-Length", "Accept-Ranges", "ETag", "Last-Modified", "Cache-Status", "Age", "Location",
        "Retry-After", "Larder-Asset-Id", "X-Request-Id", "Content-Digest", "Repr-Digest",
    ].joined(separator: ", ")

    /// The CORS fields of every response to a page of `origin`. Includes `Vary: Origin` if the response depends on it.
    package func headers(forOrigin origin: String?) -> HTTPFields {
        guard let allowed = allowed(origin) else {
            if case .these = origins { return [.vary: "Origin"] }
            return [:]
        }
        var fields: HTTPFields = [.accessControlAllowOrigin: allowed, .accessControlExposeHeaders: Self.exposed]
        if allowed != "*" { fields[.vary] = "Origin" }
        return fields
    }

    /// The additional fields of the response to a preflight, beside ``headers(forOrigin:)``. Empty if the origin is not
    /// allowed.
    ///
    /// - Parameter asked: The value of `Access-Control-Request-Headers`, which is allowed completely; nil for a
    ///   default.
    package func preflightHeaders(forOrigin origin: String?, methods: String, asked: String?) -> HTTPFields {
        guard allowed(origin) != nil else { return [:] }
        var fields: HTTPFields = [
            .accessControlAllowMethods: methods, .accessControlMaxAge: "\(maxAge.components.seconds)",
        ]
        fields[.accessControlAllowHeaders] = asked ?? "Authorization, Content-Type, Range, If-Range, If-Match"
        return fields
    }

    /// Whether the settings list this origin by name; false for `any`.
    package func names(_ origin: String) -> Bool {
        guard case .these(let names) = origins else { return false }
        return names.contains(origin)
    }

    /// The value of `Access-Control-Allow-Origin`; nil if the origin is missing or not allowed.
    private func allowed(_ origin: String?) -> String? {
        guard let origin else { return nil }
        switch origins {
        case .none: return nil
        case .any: return "*"
        case .these(let names): return names.contains(origin) ? origin : nil
        }
    }
}
