/// Limits of an origin's settings, and rules for settings that depend on each other.
extension OriginSettings {
    /// The longest lifetime that can be set.
    package static let maxLifetime = Duration.seconds(CacheControl.maxSeconds)
    /// The largest number of fields in `ignoreVary`.
    package static let maxIgnoredFields = 32
    /// The largest number of fields in `forward`.
    package static let maxForwardedFields = 8
    /// The text that replaces a secret in configurations and documents.
    package static let mask = "•••"
    /// The largest number of URLs in `mirrors`.
    package static let maxMirrors = 8
    package static let maxRedirectHosts = 32

    /// Header fields that an origin may not set: Larder sets them itself, or they would cause responses that cannot be
    /// cached.
    package static let forbiddenHeaders = [
        "Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "If-Match", "If-Modified-Since",
        "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
        "Range", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]

    /// Throws `.invalidField` with the path of the first invalid member of the JSON document.
    package func validate() throws(CacheError) {
        try OriginSettings.settings.validate(self)
        try validateHeaders()
    }

    /// The index of the first mirror that equals the base URL or an earlier mirror; nil if there is none.
    var repeatedMirror: Int? {
        mirrors.indices.first { index in
            ([baseURL] + mirrors[..<index]).contains { BaseURL.isSamePlace($0, mirrors[index]) }
        }
    }

    /// Whether `path` stays below its base directory: it is relative, and no component is empty, `.` or `..`.
    package static func isInside(path: String) -> Bool {
        path.utf8.count <= 1024 && !path.utf8.contains(0)
            && path.split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
                !["", ".", ".."].contains($0)
            }
    }

    private func validateHeaders() throws(CacheError) {
        try require(headers.fields.count <= 64, "headers", "An origin can have at most 64 header fields.")
        for field in headers.fields {
            try require(FieldText.isToken(field.name), "headers", "The name of a header field must be a token.")
            try require(
                !Self.forbiddenHeaders.contains { HeaderList.same($0, field.name) }, "headers.\(field.name)",
                "Larder sets \(field.name) itself; remove the field.")
            try require(
                FieldText.isValue(field.value) && field.value.utf8.count <= 8192, "headers.\(field.name)",
                "The value of \(field.name) must have at most 8192 bytes, no control characters, no outer blanks.")
        }
    }

    private func require(_ holds: Bool, _ field: String, _ message: String) throws(CacheError) {
        if !holds { throw .invalid(field, message) }
    }
}
