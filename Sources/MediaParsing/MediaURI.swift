import CacheCore

/// URI references of playlists (RFC 3986).
package enum MediaURI {
    /// The URL of a reference in a playlist with the URL `base` (RFC 3986 §5.2), without its fragment and user
    /// info. Bytes that a URL must not contain are percent-encoded. Nil if one of them contains a control character, or
    /// if the result is not an http or https URL with a host.
    package static func resolved(_ reference: String, against base: String) -> String? {
        guard !hasControlCharacter(reference), !hasControlCharacter(base) else { return nil }
        let parts = Parts(reference).resolved(against: Parts(base))
        guard let scheme = parts.scheme.map({ FieldText.lowered($0) }), scheme == "http" || scheme == "https",
            let authority = parts.authority, let first = authority.utf8.first, first != UInt8(ascii: ":")
        else { return nil }
        let path = withoutDotSegments(parts.path)
        let query = parts.query.map { "?" + PercentEncoding.valid(query: String($0)) } ?? ""
        return scheme + "://" + PercentEncoding.sendable(query: String(authority))
            + PercentEncoding.valid(path: path.isEmpty ? "/" : path) + query
    }

    /// The reference without user info and fragment.
    package static func withoutUserInfo(_ reference: String) -> String { Parts(reference).text }

    /// Resolves a reference against another reference, which may be relative (RFC 3986 §5.2.2). Dot segments remain
    /// for the last resolution against a URL.
    static func joined(_ reference: String, to base: String) -> String {
        base.isEmpty ? reference : Parts(reference).resolved(against: Parts(base)).text
    }

    /// Whether the reference can refer to an http or https URL: it has one of these schemes or none.
    static func isFetchable(_ reference: String) -> Bool {
        guard let scheme = Parts(reference).scheme else { return true }
        return ["http", "https"].contains(FieldText.lowered(scheme))
    }

    /// Removes the dot segments of an absolute path (§5.2.4). Encoded dots count as dots (§6.2.2.2).
    private static func withoutDotSegments(_ path: String) -> String {
        var kept: [Substring] = []
        let segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let dots = dotCount(Substring(segment))
            guard dots > 0 else {
                kept.append(Substring(segment))
                continue
            }
            // The empty segment before the first slash stays.
            if dots == 2, kept.count > 1 { kept.removeLast() }
            if index == segments.count - 1 { kept.append("") }
        }
        return kept.joined(separator: "/")
    }

    /// 1 for the segment `.`, 2 for `..`, else 0.
    private static func dotCount(_ segment: Substring) -> Int {
        guard (1...6).contains(segment.utf8.count) else { return 0 }
        let bytes = PercentEncoding.decoded(segment)
        return bytes.count <= 2 && bytes.allSatisfy { $0 == UInt8(ascii: ".") } ? bytes.count : 0
    }

    private static func hasControlCharacter(_ text: String) -> Bool {
        text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }
}

extension MediaURI {
    /// The components of a reference without its fragment (RFC 3986 §3).
    private struct Parts {
        /// Without the colon; nil for a relative reference.
        var scheme: Substring?
        /// Without the slashes before it and without user info; it is a secret.
        var authority: Substring?
        var path: String
        /// Without the `?`.
        var query: Substring?

        /// Splits a reference (RFC 3986 appendix B).
        init(_ reference: String) {
            var rest = reference.utf8[...]
            if let fragment = rest.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<fragment] }
            if let question = rest.firstIndex(of: UInt8(ascii: "?")) {
                query = Substring(rest[rest.index(after: question)...])
                rest = rest[..<question]
            }
            if let end = rest.firstIndex(where: { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }),
                rest[end] == UInt8(ascii: ":"), Self.isScheme(rest[..<end])
            {
                scheme = Substring(rest[..<end])
                rest = rest[rest.index(after: end)...]
            }
            if rest.starts(with: "//".utf8) {
                rest = rest.dropFirst(2)
                let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
                let userInfoEnd = rest[..<end].lastIndex(of: UInt8(ascii: "@")).map { rest.index(after: $0) }
                authority = Substring(rest[(userInfoEnd ?? rest.startIndex)..<end])
                rest = rest[end...]
            }
            path = String(Substring(rest))
        }

        /// The reference as text (§5.3).
        var text: String {
            var text = scheme.map { $0 + ":" } ?? ""
            if let authority { text += "//" + authority }
            text += path
            if let query { text += "?" + query }
            return String(text)
        }

        /// The components of the target (§5.2.2), with dot segments.
        func resolved(against base: Parts) -> Parts {
            guard scheme == nil else { return self }
            var target = self
            target.scheme = base.scheme
            guard authority == nil else { return target }
            target.authority = base.authority
            if path.isEmpty {
                target.path = base.path
                target.query = query ?? base.query
            } else if path.utf8.first != UInt8(ascii: "/") {
                target.path = base.directory + path
            }
            return target
        }

        /// The path up to the last slash, to which relative paths are appended (§5.2.3).
        private var directory: String {
            if path.isEmpty { return authority == nil ? "" : "/" }
            let bytes = path.utf8
            let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { bytes.index(after: $0) } ?? bytes.startIndex
            let last = path[start...]
            // The base is not normalized yet: its last segment can be a directory.
            if MediaURI.dotCount(last) > 0 { return path + "/" }
            return String(path[..<start])
        }

        private static func isScheme(_ text: Substring.UTF8View) -> Bool {
            guard let first = text.first, FieldText.isLetter(first) else { return false }
            return text.allSatisfy { FieldText.isLetter($0) || FieldText.isDigit($0) || "+-.".utf8.contains($0) }
        }
    }
}
