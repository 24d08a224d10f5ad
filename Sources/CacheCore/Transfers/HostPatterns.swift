/// The hosts that absolute URLs, links or redirects may name: `host` on the default port of its scheme, `host:port`,
/// `host:*` on any port, or `*.suffix` for every name below it.
package struct HostPatterns: Sendable, Hashable {
    private let patterns: [String]

    package init(_ patterns: [String]) { self.patterns = patterns.map { FieldText.lowered($0) } }

    /// Whether a pattern permits the host on some port.
    package func containsHost(of url: UpstreamURL) -> Bool {
        patterns.contains { $0 == url.bracketedHost || $0.hasPrefix(url.bracketedHost + ":") }
    }

    /// Whether a pattern permits the host and port of the URL.
    package func contains(_ url: UpstreamURL) -> Bool {
        patterns.contains { pattern in
            if pattern.hasPrefix("*.") { return url.host.hasSuffix(pattern.dropFirst()) }
            let isPortDefault = url.port == url.scheme.defaultPort
            let host = url.bracketedHost
            return pattern == "\(host):\(url.port)" || pattern == "\(host):*" || (pattern == host && isPortDefault)
        }
    }
}
