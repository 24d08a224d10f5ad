package import HTTPTypes

/// Which web pages may read the responses (the Fetch standard's CORS protocol).
package struct CORSRules: Hashable, Sendable {
    package enum Origins: Hashable, Sendable {
        case none
        case any
        case these(Set<String>)
    }

    package var origins: Origins
    /// How long browsers may remember a preflight's answer.
    package var maxAge: Duration

    package init(origins: Origins = .any, maxAge: Duration = .seconds(3600)) {
        self.origins = origins
        self.maxAge = maxAge
    }

    private static let exposed = [
        "Content-Range", "Content-Length", "Accept-Ranges", "ETag", "Last-Modified", "Cache-Status", "Age", "Location",
        "Retry-After", "Larder-Asset-Id", "X-Request-Id",
    ].joined(separator: ", ")

    /// What every response to a page of `origin` carries.
    package func headers(forOrigin origin: String?) -> HTTPFields {
        guard let allowed = allowed(origin) else {
            if case .these = origins { return [.vary: "Origin"] }
            return [:]
        }
        var fields: HTTPFields = [.accessControlAllowOrigin: allowed, .accessControlExposeHeaders: Self.exposed]
        if allowed != "*" { fields[.vary] = "Origin" }
        return fields
    }

    /// What a preflight's answer carries beside ``headers(forOrigin:)``; none where the page is not allowed.
    package func preflightHeaders(forOrigin origin: String?, methods: String, asked: String?) -> HTTPFields {
        guard allowed(origin) != nil else { return [:] }
        var fields: HTTPFields = [
            .accessControlAllowMethods: methods, .accessControlMaxAge: "\(maxAge.components.seconds)",
        ]
        fields[.accessControlAllowHeaders] = asked ?? "Authorization, Content-Type, Range, If-Range, If-Match"
        return fields
    }

    /// Whether the administrator named this page's origin.
    package func names(_ origin: String) -> Bool {
        guard case .these(let names) = origins else { return false }
        return names.contains(origin)
    }

    private func allowed(_ origin: String?) -> String? {
        guard let origin else { return nil }
        switch origins {
        case .none: return nil
        case .any: return "*"
        case .these(let names): return names.contains(origin) ? origin : nil
        }
    }
}
