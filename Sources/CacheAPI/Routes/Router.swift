import HTTPTypes
import ReaderAccess

/// Finds the route of a request.
struct Router: Sendable {
    typealias Respond = @Sendable (Request, APIContext) async throws -> Response

    private struct Entry: Sendable {
        let method: HTTPRequest.Method
        /// The segments of the pattern.
        let parts: [Substring]
        let respond: Respond
    }

    /// The routes; those with fewer parameters first, so that a literal segment precedes a parameter.
    private var entries: [Entry] = []

    mutating func add(_ line: RouteLine, method: HTTPRequest.Method, _ respond: @escaping Respond) {
        let parts = line.parts
        let count = parts.count(where: RouteLine.isParameter)
        let index = entries.firstIndex { $0.parts.count(where: RouteLine.isParameter) > count } ?? entries.count
        entries.insert(Entry(method: method, parts: parts, respond: respond), at: index)
    }

    /// The route of the path with the values of its parameters; nil if there is none. Of several patterns that match, the one
    /// with the fewest parameters counts.
    func route(_ method: HTTPRequest.Method, _ path: String) -> (respond: Respond, parameters: [String: Substring])? {
        let segments = path.split(separator: "/")
        // Another pattern of the path, with more parameters, has no methods for it.
        guard let pattern = entries.first(where: { RouteLine.matches($0.parts, segments) })?.parts,
            let entry = entries.first(where: { $0.method == method && $0.parts == pattern })
        else { return nil }
        var parameters: [String: Substring] = [:]
        for (part, segment) in zip(entry.parts, segments) where RouteLine.isParameter(part) {
            parameters[String(part.dropFirst().dropLast())] = segment
        }
        return (entry.respond, parameters)
    }
}
