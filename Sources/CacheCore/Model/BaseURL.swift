/// The rules for the URLs that the paths of an origin, or of its mirrors, are appended to.
package enum BaseURL {
    /// Why `text` is none; nil where it is one.
    static func fault(in text: String) -> String? {
        let lowered = FieldText.lowered(text)
        guard let scheme = ["http://", "https://"].first(where: { lowered.hasPrefix($0) }) else {
            return "The base URL begins with http:// or https://."
        }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        let authority = rest.prefix { $0 != UInt8(ascii: "/") }
        if authority.isEmpty || authority.first == UInt8(ascii: ":") || text.utf8.count > 2048 {
            return "The base URL names a host."
        }
        if authority.contains(UInt8(ascii: "@")) { return "The base URL holds no user or password." }
        guard rest.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else {
            return "The base URL holds no blanks, control characters or backslashes, and only ASCII."
        }
        if rest.contains(UInt8(ascii: "?")) || rest.contains(UInt8(ascii: "#")) {
            return "The base URL has neither a query nor a fragment."
        }
        return nil
    }

    /// Whether both name the same scheme, host and port in the same way; in doubt they do not.
    package static func isSameServer(_ one: String, _ other: String) -> Bool {
        guard one != other else { return true }
        guard let left = server(one), let right = server(other) else { return false }
        return left == right
    }

    /// Whether both name the same path on the same server, a slash at the end or not.
    static func isSamePlace(_ one: String, _ other: String) -> Bool {
        isSameServer(one, other) && path(one) == path(other)
    }

    /// What stands before the path, in lower case; nil where no host can be told.
    private static func server(_ url: String) -> String? {
        let parts = url.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count > 2, parts[1].isEmpty, !parts[2].isEmpty,
            !parts[2].contains(where: "?#\\@".utf8.contains)
        else { return nil }
        let scheme = FieldText.lowered(Substring(parts[0]))
        guard scheme == "http:" || scheme == "https:" else { return nil }
        return scheme + "//" + FieldText.lowered(Substring(parts[2]))
    }

    private static func path(_ url: String) -> Substring {
        var path = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).dropFirst(3).first ?? ""
        while path.last == "/" { path.removeLast() }
        return path
    }
}
