import CacheCore
import CacheEngine
import CacheTracing
import HTTPTypes
import Logging
import NIOCore
import ReaderAccess

/// Makes the responses to all requests but those for content.
struct APIResponder: Sendable {
    let processor: RequestProcessor
    let router: Router
    let live: LiveAPISettings
    let logger: Logger
    private let table = RouteTable()

    init(_ processor: RequestProcessor, _ router: Router, live: LiveAPISettings, logger: Logger) {
        self.processor = processor
        self.router = router
        self.live = live
        self.logger = logger
    }

    /// Calls the route of the request. Errors become problem documents.
    func answer(_ call: RequestCall, _ body: RequestBody, on connection: APIConnection) async -> ServerResponse {
        let request = Request(call, body: body)
        let logContext = RequestLogContext(kind(of: request))
        let trace = processor.trace(call, route: table.pattern(of: request.path))
        logContext.update { $0.span = trace?.span }
        var response: Response
        do {
            response = try await RequestTrace.$current.withValue(trace) {
                try await answer(request, logContext, connection)
            }
        } catch {
            response = problem(error, call, logContext)
            if error is RefusedBody {
                response.headers[.retryAfter] = "1"
                response.headers[.connection] = "close"  // the rest of the body is not read
            }
        }
        ResponseCompression.mark(&response, to: request)
        return processor.response(call, response.status.code, response.framedHeaders, response.body, logContext)
    }

    /// Calls of the dashboard that change something are calls like all others.
    private func kind(of request: Request) -> RequestKind {
        let pattern = table.pattern(of: request.path) ?? ""
        if ConnectionPermits.isHealthCheck(pattern) { return .health }
        let isReading = request.method == .get || request.method == .head
        let isOfPage = pattern == "/" || pattern.hasPrefix("/ui") || request.headers.contains(.larderDashboard)
        return isReading && isOfPage ? .dashboard : .api
    }

    /// Checks the target and the method, answers OPTIONS, and calls the route.
    ///
    /// Throws `.uriTooLong`, `.notImplemented` for an unknown method, `.methodNotAllowed` with the allowed methods, or
    /// `.notFound`.
    private func answer(
        _ request: Request, _ logContext: RequestLogContext, _ connection: APIConnection
    ) async throws -> Response {
        let (settings, method) = (live.values, request.method)
        guard request.call.targetBytes <= settings.limits.urlBytes else {
            throw CacheError(.uriTooLong, "The request's target is longer than \(settings.limits.urlBytes) bytes.")
        }
        guard RouteTable.methods.contains(method.rawValue) else {
            throw CacheError(.notImplemented, "The method is not supported; supported: \(table.allMethods).")
        }
        if method == .options, let methods = methods(of: request) { return preflight(request, methods, settings.cors) }
        if let (respond, parameters) = router.route(method, request.path) {
            return try await respond(
                request,
                APIContext(call: request.call, connection: connection, parameters: parameters, logContext: logContext))
        }
        if let methods = methods(of: request),
            !FieldText.members(of: methods).contains(where: { $0 == method.rawValue })
        {
            throw CacheError(
                .methodNotAllowed(allow: methods),
                "\(method) is not allowed on this resource; allowed: \(methods).")
        }
        throw CacheError(.notFound, "There is nothing at this path.")
    }

    /// The methods of the request's path as a value of `Allow`; nil for an unknown path. For `OPTIONS *` all methods
    /// (RFC 9110 §9.3.7).
    private func methods(of request: Request) -> String? {
        guard request.call.target == "*" else { return table.methods(of: request.path) }
        return request.method == .options ? table.allMethods : nil
    }

    /// The response to OPTIONS. With `Access-Control-Request-Method` it is the response to a CORS preflight.
    private func preflight(_ request: Request, _ methods: String, _ cors: CORSRules) -> Response {
        var headers: HTTPFields = [.allow: methods]
        if request.headers[.accessControlRequestMethod] != nil {
            for field in cors.preflightHeaders(
                forOrigin: request.headers[.origin], methods: methods,
                asked: request.headers[.accessControlRequestHeaders])
            { headers.append(field) }
        }
        return Response(status: .noContent, headers: headers)
    }

    /// Turns an error into a problem document, and logs internal errors with their cause.
    private func problem(_ foreign: any Error, _ call: RequestCall, _ logContext: RequestLogContext) -> Response {
        let error = CacheError(foreign: foreign)
        logContext.update { $0.outcome = error.code.name }
        if case .internal = error.code {
            logger.error(
                "request failed with an internal error",
                metadata: [
                    "requestId": .string(call.requestID), "error": .string(error.message),
                    "cause": .string(error.cause.map { "\($0)" } ?? "none"),
                ])
        }
        return processor.problem(call, error).response
    }
}
