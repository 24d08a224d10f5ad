import CacheCore
import HTTPTypes
package import Hummingbird
import Logging
import NIOCore

/// What every request goes through, whatever its route: its identifier, the limits on its URL, CORS, errors as problem
/// documents, HEAD without a body, and a line in the access log.
package struct Envelope: RouterMiddleware {
    package typealias Context = APIContext

    let settings: APISettings
    let routes: RouteTable
    let chance: any Chance
    let clock: any Clock<Duration>
    let logger: Logger

    package func handle(
        _ request: Request, context: APIContext, next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        let stopwatch = Stopwatch(clock)
        var context = context
        context.stopwatch = stopwatch
        context.requestID = Self.accepted(request.headers[.requestID]) ?? chance.identifier()
        var response: Response
        do {
            response = try await answer(request, context, next)
        } catch {
            response = problem(error, request, context)
        }
        Self.address(&response.headers, to: request.headers[.origin], as: context.requestID, by: settings.cors)
        if request.method == .head { response = Self.withoutBody(response) }
        return logged(response, request, context, stopwatch)
    }

    /// Adds what depends on who asks: the page it asks for, and the request's identifier.
    static func address(
        _ fields: inout HTTPFields, to page: String?, as requestID: String, by cors: CORSRules
    ) {
        for field in cors.headers(forOrigin: page) { fields.append(field) }
        fields[.requestID] = requestID
    }

    private func answer(
        _ request: Request, _ context: APIContext, _ next: (Request, APIContext) async throws -> Response
    ) async throws -> Response {
        guard (request.head.path ?? "").utf8.count <= settings.limits.urlBytes else {
            throw CacheError(.uriTooLong, "The request's target is longer than \(settings.limits.urlBytes) bytes.")
        }
        guard RouteTable.methods.contains(request.method.rawValue) else {
            throw CacheError(.notImplemented, "The method is not supported; supported: \(routes.allMethods).")
        }
        if request.method == .options, let methods = methods(of: request) { return preflight(request, methods) }
        do {
            return try await next(request, context)
        } catch let error as any HTTPResponseError where error.status == .notFound {
            // The framework tells an unknown path from a known one with another method as little as it writes bodies.
            if let methods = methods(of: request) {
                throw CacheError(
                    .methodNotAllowed(allow: methods),
                    "\(request.method) is not allowed on this resource; allowed: \(methods).")
            }
            throw CacheError(.notFound, "There is nothing at this path.")
        }
    }

    /// Those of the path, or, for `OPTIONS *`, all there are (RFC 9110 §9.3.7).
    private func methods(of request: Request) -> String? {
        guard request.head.path == "*" else { return routes.methods(of: request.uri.path) }
        return request.method == .options ? routes.allMethods : nil
    }

    private func preflight(_ request: Request, _ methods: String) -> Response {
        var headers: HTTPFields = [.allow: methods]
        if request.headers[.accessControlRequestMethod] != nil {
            for field in settings.cors.preflightHeaders(
                forOrigin: request.headers[.origin], methods: methods,
                asked: request.headers[.accessControlRequestHeaders])
            { headers.append(field) }
        }
        return Response(status: .noContent, headers: headers)
    }

    private func problem(_ foreign: any Error, _ request: Request, _ context: APIContext) -> Response {
        let error = CacheError(foreign: foreign)
        context.note.update { $0.outcome = error.code.name }
        if case .internal = error.code {
            logger.error(
                "request failed inside",
                metadata: [
                    "requestId": .string(context.requestID), "error": .string(error.message),
                    "cause": .string(error.cause.map { "\($0)" } ?? "none"),
                ])
        }
        return Problem(error, instance: request.uri.path, requestID: context.requestID).response
    }

    private func logged(
        _ response: Response, _ request: Request, _ context: APIContext, _ stopwatch: Stopwatch
    ) -> Response {
        let line = AccessLine(
            logger: logger, method: request.method.rawValue, path: request.uri.path, requestID: context.requestID,
            status: response.status.code, note: context.note, stopwatch: stopwatch)
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

    /// The head as it is, `Content-Length` of the body that is left out included.
    private static func withoutBody(_ response: Response) -> Response {
        let length = response.headers[.contentLength]
        var response = response.createHeadResponse()
        response.headers[.contentLength] = length
        return response
    }

    /// The client's own identifier, where it cannot spoil a log: 1–64 of letters, digits, `.`, `_`, `-`.
    package static func accepted(_ id: String?) -> String? {
        guard let id, (1...64).contains(id.utf8.count) else { return nil }
        let isPlain = id.utf8.allSatisfy { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45
                || byte == 46 || byte == 95
        }
        return isPlain ? id : nil
    }
}

/// Counts what is sent on.
private struct CountingWriter: ResponseBodyWriter {
    var base: any ResponseBodyWriter
    let note: RequestNote
    let stopwatch: Stopwatch

    mutating func write(_ buffer: ByteBuffer) async throws {
        note.update { content in
            if content.firstByte == nil { content.firstByte = stopwatch.elapsed }
        }
        try await base.write(buffer)
        note.update { $0.sentBytes += Int64(buffer.readableBytes) }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        try await base.finish(trailingHeaders)
    }
}
