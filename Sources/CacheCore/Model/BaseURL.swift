/// Rules for base URLs, to which the paths of an origin or of its mirrors are appended.
package enum BaseURL {
    /// The reason why `text` is not a base URL; nil if it is one. A host with letters outside ASCII is permitted
    /// here: ``Upstream/parse(url:)`` converts it.
    static func fault(in text: String) -> String? {
        guard !text.isEmpty else { return "The base URL is missing; give the URL of the origin's files." }
        let lowered = FieldText.lowered(text)
        guard let scheme = ["http://", "https://"].first(where: { lowered.hasPrefix($0) }) else {
            return "The base URL must begin with http:// or https://."
        }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        let authority = rest.prefix { $0 != UInt8(ascii: "/") }
        if authority.isEmpty || authority.first == UInt8(ascii: ":") || text.utf8.count > 2048 {
            return "The base URL must contain a host and have at most 2048 bytes."
        }
        guard isAddress(String(decoding: authority, as: UTF8.self)) else {
            return "The base URL must contain a host, and at most a port from 1 to 65535."
        }
        if authority.contains(UInt8(ascii: "@")) { return "The base URL must not contain a user or a password." }
        let host = host(of: String(decoding: authority, as: UTF8.self))
        guard host.hasPrefix("[") || isName(host) else {
            return "The host of the base URL must be a name of letters, digits, hyphens and single dots, "
                + "or an address: IPv4 with numbers up to 255, or IPv6 in brackets."
        }
        let others = host.hasPrefix("[") ? rest : rest.dropFirst(host.utf8.count)
        guard others.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else {
            return "The base URL must be ASCII without blanks, control characters and backslashes."
        }
        if rest.contains(UInt8(ascii: "?")) || rest.contains(UInt8(ascii: "#")) {
            return "The base URL must not have a query or a fragment."
        }
        return nil
    }

    /// The host in an authority without a user; an IPv6 address has brackets.
    private static func host(of authority: String) -> Substring {
        authority.hasPrefix("[") ? authority[...] : authority.prefix { $0 != ":" }
    }

    /// Whether the text is a host name (RFC 1123 §2.1), also with underscores and letters outside ASCII, or an IPv4
    /// address. A name whose last label is a number would be an address to libcurl.
    private static func isName(_ host: Substring) -> Bool {
        var labels = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
        guard host.utf8.count <= 253, let last = labels.last,
            labels.allSatisfy({ (1...63).contains($0.count) && $0.allSatisfy(isNameByte) })
        else { return false }
        guard last.allSatisfy(FieldText.isDigit) || last.starts(with: "0x".utf8) || last.starts(with: "0X".utf8) else {
            return true
        }
        return isIPv4(labels.map { Substring($0) })
    }

    /// Whether the parts are an IPv4 address in one of the forms of inet_aton(3): up to four numbers, the last one for all
    /// remaining bytes.
    private static func isIPv4(_ parts: [Substring]) -> Bool {
        let numbers = parts.compactMap { part in
            if part.hasPrefix("0x") || part.hasPrefix("0X") { return UInt64(part.dropFirst(2), radix: 16) }
            return UInt64(part, radix: part.hasPrefix("0") ? 8 : 10)
        }
        guard numbers.count == parts.count, (1...4).contains(parts.count), let last = numbers.last else { return false }
        return numbers.dropLast().allSatisfy { $0 < 256 } && last < 1 << (8 * (5 - UInt64(parts.count)))
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x80...: true
        default: FieldText.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
        }
    }

    /// Whether the text is a host with an optional port; an IPv6 address has brackets. A user is permitted here.
    private static func isAddress(_ text: String) -> Bool {
        let host = text.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        let isIPv6 = host.hasPrefix("[")
        guard let end = isIPv6 ? host.firstIndex(of: "]").map({ host.index(after: $0) }) : host.firstIndex(of: ":")
        else {
            return !isIPv6
        }
        guard end < host.endIndex else { return true }
        return host[end] == ":" && (UInt16(host[host.index(after: end)...]).map { $0 > 0 } ?? false)
    }

    /// Whether both URLs have the same scheme, host and port in the same notation. False if in doubt.
    package static func isSameServer(_ one: String, _ other: String) -> Bool {
        guard one != other else { return true }
        guard let left = server(one), let right = server(other) else { return false }
        return left == right
    }

    /// Whether both URLs have the same server and path; a trailing slash is ignored.
    static func isSamePlace(_ one: String, _ other: String) -> Bool {
        isSameServer(one, other) && path(one) == path(other)
    }

    /// Scheme, host and port in lower case; nil if the host cannot be determined.
    private static func server(_ url: String) -> String? {
        let parts = url.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count > 2, parts[1].isEmpty, !parts[2].isEmpty,
            !parts[2].contains(where: "?#\\@".utf8.contains)
        else { return nil }
        let scheme = FieldText.lowered(Substring(parts[0]))
        guard scheme == "http:" || scheme == "https:" else { return nil }
        return scheme + "//" + FieldText.lowered(Substring(parts[2]))
    }

    /// The path without trailing slashes.
    private static func path(_ url: String) -> Substring {
        var path = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).dropFirst(3).first ?? ""
        while path.last == "/" { path.removeLast() }
        return path
    }
}
