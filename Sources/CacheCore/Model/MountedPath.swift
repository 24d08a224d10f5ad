/// The path of an asset below the mount of its origin, normalised according to RFC 3986 §6.2.2.
enum MountedPath {
    /// `path` without dot segments and with normalised percent-encoding; empty segments stay.
    ///
    /// Throws `.malformedRequest` for:
    ///
    /// - invalid percent-encoding;
    /// - a NUL byte, at which many file systems end the path (RFC 3986 §7.3);
    /// - a path that leaves the mount, also if only an upstream that treats an encoded slash or a backslash as a
    ///   slash would leave it.
    static func normalized(_ path: String) throws(CacheError) -> String {
        if isNormal(path.utf8) { return path }
        guard let encoded = PercentEncoding.normalized(path: path) else {
            throw CacheError(.malformedRequest, "The path contains a % without two hex digits; encode it as %25.")
        }
        guard !PercentEncoding.decoded(encoded).contains(0) else {
            throw CacheError(.malformedRequest, "The path contains a NUL byte (%00).")
        }
        var kept: [Substring] = []
        let segments = encoded.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            if segment.elementsEqual(".".utf8) {
                if isLast { kept.append("") }
            } else if segment.elementsEqual("..".utf8) {
                guard kept.popLast() != nil else {
                    throw CacheError(.malformedRequest, "The path leaves its origin: it has too many .. segments.")
                }
                if isLast { kept.append("") }
            } else {
                guard !hidesClimb(segment) else {
                    throw CacheError(.malformedRequest, "The path contains .. between encoded slashes.")
                }
                kept.append(Substring(segment))
            }
        }
        return kept.joined(separator: "/")
    }

    /// Whether the path is in normal form and contains no escape, as most paths.
    private static func isNormal(_ path: String.UTF8View) -> Bool {
        /// The length of the segment up to here; nil: it contains more than dots.
        var dots: Int? = 0
        for byte in path {
            guard PercentEncoding.isPlain(inPath: byte) else { return false }
            switch byte {
            case UInt8(ascii: "/"):
                if dots == 1 || dots == 2 { return false }
                dots = 0
            case UInt8(ascii: "."): dots = dots.map { $0 + 1 }
            default: dots = nil
            }
        }
        return dots != 1 && dots != 2
    }

    /// Whether the decoded segment contains a `..` between slashes or backslashes.
    private static func hidesClimb(_ segment: Substring.UTF8View) -> Bool {
        guard segment.contains(UInt8(ascii: "%")) else { return false }
        let isSlash: (UInt8) -> Bool = { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        return PercentEncoding.decoded(Substring(segment)).split(whereSeparator: isSlash).contains {
            $0.elementsEqual("..".utf8)
        }
    }
}
