import CacheCore
import CacheEngine
import CacheTracing
import HTTPTypes
package import Hummingbird
import Logging
import NIOCore
import ReaderAccess

/// Middleware of all routes: request identifier, URL limit, CORS, problem documents, HEAD without a body, access log.
package struct RequestMiddleware: RouterMiddleware {
    package typealias Context = APIContext

    let live: LiveAPISettings
    let recorder: RequestRecorder
    let tracing: RequestTracing
    let routes: RouteTable
    let random: any RandomSource
    let clock: any Clock<Duration>
    let logger: Logger

    package func handle(
        _ request: Request, context: APIContext, next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        let stopwatch = clock.stopwatch()
        let settings = live.values
        var context = context
        context.stopwatch = stopwatch
        context.requestID = Self.accepted(request.headers[.requestID]) ?? random.identifier()
        let path = String(request.uri.path.prefix { $0 != "#" })
        let route = tracing.tracer.isEnabled ? routes.pattern(of: path) : nil
        let trace = tracing.begin(
            method: request.method.rawValue, path: path, route: route, request.headers, client: context.client)
        context.note.update { $0.span = trace?.span }
        var response: Response
        do {
            response = try await RequestTrace.$current.withValue(trace) {
                try await answer(request, context, settings, next)
            }
        } catch {
            response = problem(error, request, context)
            if error is RefusedBody {
                response.headers[.retryAfter] = "1"
                response.headers[.connection] = "close"  // the rest of the body is not read
            }
        }
        Self.address(&response.headers, to: request.headers[.origin], as: context.requestID, by: settings.cors)
        ResponseCompression.mark(&response, to: request)
        if request.method == .head { response = Self.withoutBody(response) }
        return logged(response, request, context, stopwatch)
    }

    /// Adds the fields that depend on the client: CORS fields for the page in `Origin`, and the request identifier.
    static func address(
        _ fields: inout HTTPFields, to page: String?, as requestID: String, by cors: CORSRules
    ) {
        for field in cors.headers(forOrigin: page) { fields.append(field) }
        fields[.requestID] = requestID
    }

    /// Checks the target and the method, answers OPTIONS, and calls the route.
    ///
    /// Throws `.uriTooLong`, `.notImplemented` for an unknown method, `.methodNotAllowed` with the allowed methods, or
    /// `.notFound`.
    private func answer(
        _ request: Request, _ context: APIContext, _ settings: LiveAPISettings.Values,
        _ next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        guard max(context.targetBytes, (request.head.path ?? "").utf8.count) <= settings.limits.urlBytes else {
            throw CacheError(.uriTooLong, "The request's target is longer than \(settings.limits.urlBytes) bytes.")
        }
        guard RouteTable.methods.contains(request.method.rawValue) else {
            throw CacheError(.notImplemented, "The method is not supported; supported: \(routes.allMethods).")
        }
        if request.method == .options, let methods = methods(of: request) {
            return preflight(request, methods, settings.cors)
        }
        do {
            return try await next(request, context)
        } catch let error as any HTTPResponseError where error.status == .notFound {
            // Hummingbird reports 404 both for an unknown path and for a known path with another method.
            let method = request.method.rawValue
            if let methods = methods(of: request), !FieldText.members(of: methods).contains(where: { $0 == method }) {
                throw CacheError(
                    .methodNotAllowed(allow: methods),
                    "\(request.method) is not allowed on this resource; allowed: \(methods).")
            }
            throw CacheError(.notFound, "There is nothing at this path.")
        }
    }

    /// The methods of the request's path as a value of `Allow`; nil for an unknown path. For `OPTIONS *` all methods
    /// (RFC 9110 §9.3.7).
    private func methods(of request: Request) -> String? {
        guard request.head.path == "*" else { return routes.methods(of: request.uri.path) }
        return request.method == .options ? routes.allMethods : nil
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
    private func problem(_ foreign: any Error, _ request: Request, _ context: APIContext) -> Response {
        let error = CacheError(foreign: foreign)
        context.note.update { $0.outcome = error.code.name }
        if case .internal = error.code {
            logger.error(
                "request failed with an internal error",
                metadata: [
                    "requestId": .string(context.requestID), "error": .string(error.message),
                    "cause": .string(error.cause.map { "\($0)" } ?? "none"),
                ])
        }
        return Problem(error, instance: request.uri.path, requestID: context.requestID).response
    }

    /// Wraps the response body so that sent bytes are counted and the access log entry is written at its end.
    ///
    /// Hummingbird derives `Content-Length` from an assigned body. The field is removed again if the response had none.
    private func logged(
        _ response: Response, _ request: Request, _ context: APIContext, _ stopwatch: @escaping @Sendable () -> Duration
    ) -> Response {
        let line = AccessLogEntry(
            recorder, recorder.log.isEnabled ? logged(request, context) : LoggedRequest(method: "", path: ""),
            requestID: context.requestID, status: response.status.code, note: context.note, stopwatch: stopwatch)
        let (body, note) = (response.body, context.note)
        var response = response
        let hasLength = response.headers.contains(.contentLength)
        response.body = ResponseBody(contentLength: body.contentLength) { writer in
            defer { line.write() }
            try await body.write(CountingWriter(base: writer, note: note, stopwatch: stopwatch))
            note.update { $0.isComplete = true }
        }
        if !hasLength { response.headers[.contentLength] = nil }
        return response
    }

    /// The parts of the request that its log entry names.
    private func logged(_ request: Request, _ context: APIContext) -> LoggedRequest {
        LoggedRequest(
            method: request.method.rawValue, path: request.uri.path, client: context.client?.text,
            userAgent: request.headers[.userAgent], referer: request.headers[.referer],
            token: context.reader?.id)
    }

    /// The response to HEAD: the same fields, including `Content-Length` of the omitted body (RFC 9110 §9.3.2).
    private static func withoutBody(_ response: Response) -> Response {
        let length = response.headers[.contentLength]
        var response = response.createHeadResponse()
        response.headers[.contentLength] = length
        return response
    }

    /// The client's own request identifier if it is safe to log: 1 to 64 ASCII letters, digits, `.`, `_` and `-`. Else
    /// nil.
    package static func accepted(_ id: String?) -> String? {
        guard let id, (1...64).contains(id.utf8.count) else { return nil }
        let isPlain = id.utf8.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45
                || byte == 46 || byte == 95
        }
        return isPlain ? id : nil
    }
}

/// Body writer that counts the bytes it forwards, and records the time to the first one.
private struct CountingWriter: ResponseBodyWriter {
    var base: any ResponseBodyWriter
    let note: RequestLogContext
    let stopwatch: @Sendable () -> Duration

    mutating func write(_ buffer: ByteBuffer) async throws {
        note.update { content in
            if content.firstByte == nil { content.firstByte = stopwatch() }
        }
        try await base.write(buffer)
        note.update { $0.sentBytes += Int64(buffer.readableBytes) }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        try await base.finish(trailingHeaders)
    }
}
