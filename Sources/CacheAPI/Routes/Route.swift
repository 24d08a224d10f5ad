package import HTTPTypes
import Hummingbird

/// One call of the API: what `openapi.yaml` says of it, and what the router needs.
package struct RouteLine: Hashable, Sendable {
    package var method: HTTPRequest.Method
    /// As `openapi.yaml` writes it: `/v1/jobs/{jobId}`. A last `{path}` takes the rest of the path, slashes included.
    package var pattern: String
    package var need: AccessRules.Need

    /// The pattern in the router's own words.
    var routerPath: RouterPath {
        let parts = pattern.split(separator: "/").map { part -> String in
            guard part.hasPrefix("{") else { return String(part) }
            return part == "{path}" ? "**" : ":" + part.dropFirst().dropLast()
        }
        return RouterPath("/" + parts.joined(separator: "/"))
    }

    /// Whether the pattern takes this path.
    func matches(_ segments: [Substring]) -> Bool {
        let parts = pattern.split(separator: "/")
        if parts.last == "{path}" {
            guard segments.count >= parts.count else { return false }
        } else {
            guard segments.count == parts.count else { return false }
        }
        return zip(parts, segments).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
}

/// A call together with the controller's function that answers it.
struct Route<Controller: Sendable>: Sendable {
    typealias Respond = @Sendable (Controller, Request, APIContext) async throws -> Response

    let line: RouteLine
    /// Whether the call looks at its query's parameters itself; else none are taken.
    let readsQuery: Bool
    let respond: Respond

    init(
        _ method: HTTPRequest.Method, _ pattern: String, _ need: AccessRules.Need, readsQuery: Bool = false,
        _ respond: @escaping Respond
    ) {
        line = RouteLine(method: method, pattern: pattern, need: need)
        self.readsQuery = readsQuery || !pattern.hasPrefix("/v1/")
        self.respond = respond
    }
}

/// A group of calls.
protocol Controller: Sendable {
    static var routes: [Route<Self>] { get }
}
