/// Forms of a request target (RFC 9112 §3.2).
enum RequestTarget {
    /// The target without scheme and authority. Targets in other forms than the absolute one stay unchanged.
    static func originForm(_ target: String) -> String {
        guard !target.utf8.starts(with: "/".utf8), let mark = target.firstRange(of: "://") else { return target }
        return String(target[mark.upperBound...].drop { $0 != "/" && $0 != "?" })
    }

    /// The text up to a query or a fragment.
    static func withoutQuery(_ text: String) -> String {
        String(text[..<(text.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? text.endIndex)])
    }
}
