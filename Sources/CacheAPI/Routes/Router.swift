import HTTPTypes
import ReaderAccess

/// The functions that answer the routes of ``RouteTable``.
struct Router: Sendable {
    typealias Respond = @Sendable (Request, APIContext) async throws -> Response

    /// The functions by pattern and method.
    private var functions: [String: [HTTPRequest.Method: Respond]] = [:]

    mutating func add(_ line: RouteLine, method: HTTPRequest.Method, _ respond: @escaping Respond) {
        functions[line.pattern, default: [:]][method] = respond
    }

    /// The function of a route; nil: another part of the service answers it, or there is none.
    func function(_ method: HTTPRequest.Method, _ pattern: PathPattern) -> Respond? {
        functions[pattern.text]?[method]
    }
}
