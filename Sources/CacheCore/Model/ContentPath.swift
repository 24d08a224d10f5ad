/// The path of a content request in the form that permissions are compared with.
///
/// Paths that name different assets for different servers have no such form: a path with a dot segment, also with an
/// encoded one or between encoded slashes or backslashes. Each of them could leave a prefix after the comparison.
package struct ContentPath: Hashable, Sendable {
    /// The bytes after one percent-decoding.
    package let decoded: [UInt8]
    /// The path with normalised percent-encoding (RFC 3986 §6.2.2); `/` and `%2F` remain distinct.
    package let normalized: String

    /// Nil if the path does not begin with `/`, has invalid percent-encoding, a NUL byte or a dot segment.
    ///
    /// - Parameter path: The path of a request target such as `/o/media/a.mp4`, without the query.
    package init?(_ path: some StringProtocol) {
        let path = String(path)
        guard path.utf8.first == UInt8(ascii: "/"), let normalized = PercentEncoding.normalized(path: path) else {
            return nil
        }
        let decoded = PercentEncoding.decoded(normalized)
        let segments = decoded.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        guard !segments.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }),
            !decoded.contains(0)
        else { return nil }
        self.decoded = decoded
        self.normalized = normalized
    }

    /// Whether an encoded slash or a backslash occurs, which some upstreams treat as a slash.
    package var hasHiddenSlash: Bool {
        decoded.contains(UInt8(ascii: "\\"))
            || decoded.count { $0 == UInt8(ascii: "/") } != normalized.utf8.count { $0 == UInt8(ascii: "/") }
    }
}

/// The beginning of the paths that a permission covers. The boundary is that of the text: `/o/media/pub/` covers the
/// paths below this directory, `/o/media/pub` also `/o/media/public.mp4`.
package struct PathPrefix: Hashable, Sendable {
    /// The maximum length in bytes.
    private static let sizeLimit = 1024

    /// The bytes after one percent-decoding.
    package let decoded: [UInt8]

    /// Nil if the text is no ``ContentPath``, or is longer than 1024 bytes.
    ///
    /// - Parameter text: The beginning of a path, percent-encoded as in a URL; other characters count as themselves.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count <= Self.sizeLimit, let path = ContentPath(text) else { return nil }
        decoded = path.decoded
    }

    /// Nil unless `decoded` are the bytes of a prefix.
    package init?(decoded: [UInt8]) {
        guard decoded.count <= Self.sizeLimit, let path = ContentPath(PercentEncoding.encoded(decoded, keeping: "/")),
            path.decoded == decoded
        else { return nil }
        self.decoded = decoded
    }

    /// Whether the path lies below the prefix.
    package func covers(_ path: ContentPath) -> Bool { path.decoded.starts(with: decoded) }

    /// The prefix as a query value or path: only unreserved characters and slashes are unencoded.
    package var encoded: String { PercentEncoding.encoded(decoded, keeping: "/") }
}
