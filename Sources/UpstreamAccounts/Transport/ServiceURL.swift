import CacheCore

/// An absolute http or https URL of a service, as configured.
struct ServiceURL: Hashable, Sendable {
    /// `http` or `https`.
    let scheme: String
    /// In lower case; an IPv6 address has no brackets.
    let host: String
    /// The host with brackets, and the port unless it is the default: the value of the `Host` field.
    let hostField: String
    /// Begins with `/`.
    let path: String
    /// Without the `?`; nil if the URL has no query.
    let query: String?

    /// Parses a URL without user and fragment. Nil if it is none.
    init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[1].isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            !text.contains(where: { $0 == "#" || $0 == "\\" }), !parts[2].contains("@")
        else { return nil }
        scheme = FieldText.lowered(parts[0].dropLast())
        guard parts[0].last == ":", scheme == "http" || scheme == "https" else { return nil }
        // A query can follow the authority without a path.
        let authority = parts[2].prefix { $0 != "?" }
        let rest = text[authority.endIndex...]
        let isIPv6 = authority.first == "["
        let end = isIPv6 ? authority.firstIndex(of: "]") : authority.firstIndex(of: ":") ?? authority.endIndex
        guard let end else { return nil }
        host = FieldText.lowered(authority[..<end].dropFirst(isIPv6 ? 1 : 0))
        var port = authority[end...].dropFirst(isIPv6 ? 1 : 0)
        guard !host.isEmpty, port.isEmpty || (port.popFirst() == ":" && (UInt16(port) ?? 0) > 0) else { return nil }
        let isDefault = port.isEmpty || UInt16(port) == (scheme == "https" ? 443 : 80)
        hostField = (isIPv6 ? "[\(host)]" : host) + (isDefault ? "" : ":\(port)")
        let halves = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = halves.first.flatMap { $0.isEmpty ? nil : String($0) } ?? "/"
        query = halves.count == 2 ? String(halves[1]) : nil
    }

    /// The URL for messages: without its query.
    var redacted: String { "\(scheme)://\(hostField)\(path)" }

    /// Whether the host is a loopback address or the fixed link-local address of a metadata service
    /// (``OriginAuth/metadataHosts``).
    var isMetadataService: Bool { OriginAuth.isLoopback(host: host) || OriginAuth.metadataHosts.contains(host) }
}
