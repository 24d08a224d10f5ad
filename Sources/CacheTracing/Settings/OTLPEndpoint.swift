import CacheCore

/// The URL to which spans are posted. Descriptions do not contain its query; it may have a credential.
package struct OTLPEndpoint: Hashable, Sendable {
    /// The default of OTEL_EXPORTER_OTLP_ENDPOINT for HTTP (OTLP specification, "OTLP/HTTP Default Port").
    static let standardBase = "http://localhost:4318"
    /// The path of traces below a base URL (OTLP specification, "OTLP/HTTP Request").
    private static let path = "v1/traces"

    /// The whole URL.
    package let url: String

    /// A URL that is used unchanged, except that a missing path becomes `/`.
    ///
    /// Throws an error for `key` unless it is an http or https URL with a host and without user and fragment.
    package init(url: String, key: String) throws(TracingSettingsError) {
        try self.init(url, key: key, mayHaveQuery: true)
    }

    /// A base URL, to which `/v1/traces` is appended (OpenTelemetry specification, OTLP exporter, "Endpoint URLs for
    /// OTLP/HTTP"). Throws an error for `key` like the other initializer, and if there is a query.
    package init(base: String, key: String) throws(TracingSettingsError) {
        let checked = try OTLPEndpoint(base, key: key, mayHaveQuery: false).url
        url = checked.hasSuffix("/") ? checked + Self.path : checked + "/" + Self.path
    }

    private init(_ url: String, key: String, mayHaveQuery: Bool) throws(TracingSettingsError) {
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }), url.utf8.count <= 2048 else {
            throw TracingSettingsError(key, "must be an ASCII URL without blanks, of at most 2048 bytes")
        }
        let lowered = FieldText.lowered(url)
        guard let scheme = ["http://", "https://"].first(where: { lowered.hasPrefix($0) }) else {
            throw TracingSettingsError(key, "must begin with http:// or https://")
        }
        let rest = url.dropFirst(scheme.count)
        let authority = rest.prefix { !"/?#".contains($0) }
        guard !authority.contains("@") else {
            throw TracingSettingsError(key, "must not contain a user or password; set header fields instead")
        }
        guard Self.isAddress(authority) else {
            throw TracingSettingsError(key, "must contain a host, and at most a port from 1 to 65535")
        }
        guard !rest.contains("#"), mayHaveQuery || !rest.contains("?") else {
            throw TracingSettingsError(key, "must not have a \(mayHaveQuery ? "fragment" : "query or fragment")")
        }
        let tail = rest.dropFirst(authority.count)
        self.url = scheme + authority + (tail.hasPrefix("/") ? "" : "/") + tail
    }

    /// Whether the text is a host with an optional port; an IPv6 address has brackets.
    private static func isAddress(_ text: Substring) -> Bool {
        let isIPv6 = text.hasPrefix("[")
        let end = isIPv6 ? text.firstIndex(of: "]").map { text.index(after: $0) } : text.firstIndex(of: ":")
        guard !text.isEmpty, end != text.startIndex else { return false }
        guard let end else { return !isIPv6 }
        guard end < text.endIndex else { return true }
        return text[end] == ":" && (UInt16(text[text.index(after: end)...]).map { $0 > 0 } ?? false)
    }
}

extension OTLPEndpoint: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { String(url.prefix { $0 != "?" }) }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
