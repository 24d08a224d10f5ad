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

    /// Calls the route of the request. Errors become problem documents.
    func answer(_ call: RequestCall, _ body: RequestBody, on connection: APIConnection) async -> ServerResponse {
        let request = Request(call, body: body)
        let pattern = RouteTable.pattern(of: request.path)
        let logContext = RequestLogContext(kind(of: request, pattern?.text ?? ""))
        let trace = processor.trace(call, route: pattern?.text)
        logContext.update { $0.span = trace?.span }
        var response: Response
        do {
            response = try await RequestTrace.$current.withValue(trace) {
                try await answer(request, pattern, logContext, connection)
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
    private func kind(of request: Request, _ pattern: String) -> RequestKind {
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
        _ request: Request, _ pattern: PathPattern?, _ logContext: RequestLogContext, _ connection: APIConnection
    ) async throws -> Response {
        let (settings, method) = (live.values, request.method)
        guard request.call.targetBytes <= settings.limits.urlBytes else {
            throw CacheError(.uriTooLong, "The request's target is longer than \(settings.limits.urlBytes) bytes.")
        }
        guard RouteTable.methods.contains(method) else { throw RouteTable.unknownMethod }
        if method == .options, let allow = pattern?.allow ?? (request.call.target == "*" ? RouteTable.allow : nil) {
            return preflight(request, allow, settings.cors)
        }
        guard let pattern else { throw CacheError(.notFound, "There is nothing at this path.") }
        if let respond = router.function(method, pattern) {
            return try await respond(
                request,
                APIContext(
                    call: request.call, connection: connection, parameters: pattern.parameters(of: request.path),
                    logContext: logContext))
        }
        guard pattern.methods.contains(method) else {
            throw CacheError(
                .methodNotAllowed(allow: pattern.allow),
                "\(method) is not allowed on this resource; allowed: \(pattern.allow).")
        }
        throw CacheError(.notFound, "There is nothing at this path.")
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
