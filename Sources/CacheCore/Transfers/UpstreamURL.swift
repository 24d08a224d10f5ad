/// An absolute http or https URL, taken apart by the parser that will fetch it.
package struct UpstreamURL: Hashable, Sendable {
    package enum Scheme: String, Hashable, Sendable {
        case http, https

        package var defaultPort: Int { self == .http ? 80 : 443 }
    }

    package var scheme: Scheme
    /// Lower case, without brackets round an IPv6 address; internationalised names in their ASCII form.
    package var host: String
    package var port: Int
    /// Begins with `/`, percent-encoded.
    package var path: String
    /// Without the `?`; nil where there is none.
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

    /// The URL for people and logs: without its query, which may be a signature.
    package var redacted: String {
        text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init) ?? text
    }

    /// Scheme, host and port of a URL as written, in lower case: connections and paths are kept by it.
    package static func address(of url: String) -> String {
        url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3).joined(separator: "/")
            .lowercased()
    }

    /// The host as a URL has it: an IPv6 address in brackets.
    package var bracketedHost: String { host.contains(":") ? "[\(host)]" : host }

    package func isSameHost(as other: UpstreamURL) -> Bool {
        scheme == other.scheme && host == other.host && port == other.port
    }
}
