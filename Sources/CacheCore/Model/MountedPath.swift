/// The path of an asset below its origin's mount, in normal form (RFC 3986 §6.2.2).
enum MountedPath {
    /// `path` without dot segments, percent-encoding normalised; empty segments stay.
    ///
    /// Throws `.malformedRequest` for broken encoding, for a byte that ends the path for many a file system (RFC 3986 §7.3),
    /// and for a path that climbs out of the mount, or could be made to by an upstream that takes an encoded slash, or a
    /// backslash, for a slash.
    static func normalized(_ path: String) throws(CacheError) -> String {
        guard let encoded = PercentEncoding.normalized(path: path) else {
            throw CacheError(.malformedRequest, "The path holds a % without two hexadecimal digits behind it.")
        }
        guard !encoded.contains("%00") else {
            throw CacheError(.malformedRequest, "The path holds a NUL byte, %00.")
        }
        var kept: [Substring] = []
        let segments = encoded.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            if segment.elementsEqual(".".utf8) {
                if isLast { kept.append("") }
            } else if segment.elementsEqual("..".utf8) {
                guard kept.popLast() != nil else {
                    throw CacheError(.malformedRequest, "The path climbs out of its origin.")
                }
                if isLast { kept.append("") }
            } else {
                guard !hidesClimb(segment) else {
                    throw CacheError(.malformedRequest, "The path holds .. between encoded slashes.")
                }
                kept.append(Substring(segment))
            }
        }
        return kept.joined(separator: "/")
    }

    /// Whether the segment, decoded, has a `..` between slashes or backslashes.
    private static func hidesClimb(_ segment: Substring.UTF8View) -> Bool {
        guard segment.contains(UInt8(ascii: "%")) else { return false }
        let isSlash: (UInt8) -> Bool = { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        return PercentEncoding.decoded(Substring(segment)).split(whereSeparator: isSlash).contains {
            $0.elementsEqual("..".utf8)
        }
    }
}
