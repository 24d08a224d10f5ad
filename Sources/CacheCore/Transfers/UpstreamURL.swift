/// An absolute http or https URL, parsed by the same parser that fetches it.
package struct UpstreamURL: Hashable, Sendable {
    /// The permitted schemes.
    package enum Scheme: String, Hashable, Sendable {
        case http, https

        package var defaultPort: Int { self == .http ? 80 : 443 }
    }

    package var scheme: Scheme
    /// In lower case; an IPv6 address has no brackets, an internationalised name is in its ASCII form.
    package var host: String
    package var port: Int
    /// Begins with `/`; percent-encoded.
    package var path: String
    /// Without the `?`; nil if the URL has no query.
    package var query: String?
    /// The whole URL in normal form, without user info and fragment.
    package var text: String

    package init(scheme: Scheme, host: String, port: Int, path: String, query: String?, text: String) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path
        self.query = query
        self.text = text
    }

    /// The URL for messages and logs: without its query, which may be a signature.
    package var redacted: String {
        text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init) ?? text
    }

    /// Scheme, host and port of a URL as written, in lower case. Connections and upstream paths are keyed by it.
    package static func address(of url: String) -> String {
        url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3).joined(separator: "/")
            .lowercased()
    }

    /// The host as it appears in a URL: an IPv6 address has brackets.
    package var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }

    /// The value of the `Host` field: the port only if it is not that of the scheme.
    package var hostField: String { bracketedHost + (port == scheme.defaultPort ? "" : ":\(port)") }

    /// Whether scheme, host and port are equal.
    package func isSameHost(as other: UpstreamURL) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }
}
