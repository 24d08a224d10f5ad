package import HTTPTypes

/// The handling of readers that are limited to some origins or path prefixes, by a route.
package enum LimitRule: Hashable, Sendable {
    /// They are refused with `tokenScope`: the route shows or changes parts outside their limits.
    case refused
    /// The route shows nothing of origins and assets.
    case unaffected
    /// The asset in the path must be inside their limits.
    case asset
    /// The route itself checks the assets that the request names.
    case checked
}

/// The description of one route: method, path pattern and required authorization.
package struct RouteLine: Hashable, Sendable {
    package var method: HTTPRequest.Method
    /// The path as in `openapi.yaml`, for example `/v1/jobs/{jobId}`; see ``PathPattern``.
    package var pattern: String
    /// The authorization that the route requires.
    package var need: AccessRules.Need
    /// The handling of readers that are limited to some origins or paths.
    package var limits: LimitRule
}

/// A route with the controller's function that handles it.
struct Route<Controller: Sendable>: Sendable {
    typealias Respond = @Sendable (Controller, Request, APIContext) async throws -> Response

    let line: RouteLine
    /// Whether the function reads the query itself. Otherwise any query parameter is an error.
    let readsQuery: Bool
    let respond: Respond

    /// Outside `/v1/`, query parameters are always left to the function.
    ///
    /// - Parameter limits: Nil: limited readers are refused, unless the route needs no token.
    init(
        _ method: HTTPRequest.Method, _ pattern: String, _ need: AccessRules.Need, readsQuery: Bool = false,
        limits: LimitRule? = nil, _ respond: @escaping Respond
    ) {
        line = RouteLine(
            method: method, pattern: pattern, need: need, limits: limits ?? (need.scope == nil ? .unaffected : .refused)
        )
        self.readsQuery = readsQuery || !pattern.hasPrefix("/v1/")
        self.respond = respond
    }
}

/// A group of routes with a common subject.
protocol Controller: Sendable {
    static var routes: [Route<Self>] { get }
}
