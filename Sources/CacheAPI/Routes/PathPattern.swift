import HTTPTypes

/// A path pattern of the API, and its methods.
struct PathPattern: Sendable {
    /// The pattern as in `openapi.yaml`. A final `{path}` matches the rest of the path with its slashes.
    let text: String
    /// All methods, with the implied HEAD and OPTIONS.
    let methods: Set<HTTPRequest.Method>
    /// Whether ``ContentHandler`` serves the paths: empty segments are part of them.
    private let isContent: Bool
    private let parts: [Substring]

    init(_ text: String, methods: Set<HTTPRequest.Method>) {
        self.text = text
        self.methods = methods
        isContent = ContentTarget.lines.contains { $0.pattern == text }
        parts = text.split(separator: "/")
    }

    var parameterCount: Int { parts.count(where: Self.isParameter) }

    /// The methods as a value of `Allow`.
    var allow: String { Self.list(methods) }

    /// Methods as a sorted, comma-separated list.
    static func list(_ methods: Set<HTTPRequest.Method>) -> String {
        methods.map(\.rawValue).sorted().joined(separator: ", ")
    }

    /// Whether the pattern applies to a path with matching segments: a path of content must be the target of an asset.
    func accepts(_ path: String) -> Bool { !isContent || ContentTarget(path) != nil }

    /// Whether the pattern matches the segments of a path.
    func matches(_ segments: [Substring]) -> Bool {
        guard segments.count == parts.count || segments.count > parts.count && parts.last == "{path}" else {
            return false
        }
        return zip(parts, segments).allSatisfy { Self.isParameter($0) || $0 == $1 }
    }

    /// The values of the parameters in a path that matches.
    func parameters(of path: String) -> [String: Substring] {
        var values: [String: Substring] = [:]
        for (part, segment) in zip(parts, path.split(separator: "/")) where Self.isParameter(part) {
            values[String(part.dropFirst().dropLast())] = segment
        }
        return values
    }

    private static func isParameter(_ part: Substring) -> Bool { part.utf8.first == UInt8(ascii: "{") }
}
