import CacheCore
import CacheEngine
import CacheTracing
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import ReaderAccess

/// The concerns of all requests, for content and for other routes: signature, identifier, trace, problem documents, CORS,
/// HEAD, access log.
struct RequestProcessor: Sendable {
    let gate: Authorizer
    let random: any RandomSource
    let clock: any Clock<Duration>
    let recorder: RequestRecorder
    let tracing: RequestTracing

    /// The request of `head`.
    func call(_ head: HTTPRequestHead, certificate: ClientCertificate?, client: RequestClient?) -> RequestCall {
        let (target, signature) = gate.access.strip(RequestTarget.originForm(head.uri))
        let fields = HTTPFields(head.headers, splitCookie: false)
        // The decoder accepts tokens only, so that the conversion does not fail.
        return RequestCall(
            method: (try? HTTPRequest.Method(head.method)) ?? .trace, target: target, targetBytes: head.uri.utf8.count,
            host: head.headers.first(name: "Host"), fields: fields,
            credentials: RequestCredentials(fields, subjects: certificate?.subjects ?? [], signature: signature),
            client: client, requestID: RequestCall.accepted(fields[.requestID]) ?? random.identifier(),
            stopwatch: clock.stopwatch())
    }

    /// The trace of a request; nil if tracing is disabled.
    ///
    /// - Parameter route: The pattern of its path; nil if it is unknown.
    func trace(_ call: RequestCall, route: @autoclosure () -> String?) -> RequestTrace? {
        guard tracing.tracer.isEnabled else { return nil }
        return tracing.begin(
            method: call.method.rawValue, path: call.path, route: route(), call.fields, client: call.client,
            server: RequestTracing.Server(
                host: call.client?.host ?? call.host, isEncrypted: call.client?.isEncrypted ?? gate.isEncrypted,
                hasQuery: call.target.utf8.contains(UInt8(ascii: "?"))))
    }

    /// The problem document of an error. `status` nil: the one of the error's code.
    func problem(_ call: RequestCall, _ error: CacheError, status: Int? = nil) -> Problem {
        Problem(error, status: status, instance: call.path, requestID: call.requestID)
    }

    /// Combines head, body and access log entry. A response to HEAD has the fields of the omitted body
    /// (RFC 9110 §9.3.2).
    func response(
        _ call: RequestCall, _ status: Int, _ given: HTTPFields, _ body: ResponseBody, _ logContext: RequestLogContext,
        isSigned: Bool = false
    ) -> ServerResponse {
        var (fields, body) = (given, body)
        if case .document(let bytes) = body {
            fields[.contentLength] = "\(bytes.readableBytes)"
            if !call.isHead { logContext.update { $0.firstByte = call.stopwatch() } }
        }
        if call.isHead, !body.isContent { body = .empty }
        for field in gate.cors.headers(forOrigin: call.fields[.origin]) { fields.append(field) }
        fields[.requestID] = call.requestID
        let content = logContext.content
        if content.range == nil, content.kind == .content, let field = call.fields[.range] {
            logContext.update { $0.range = LoggedRange(field: field) }
        }
        let logged = call.logged(content, inFull: recorder.log.isEnabled)
        return ServerResponse(
            head: HTTPResponseHead(HTTPResponse(status: .init(code: status), headerFields: fields)), body: body,
            logContext: logContext,
            line: AccessLogEntry(
                recorder, logged, client: call.client?.text, startedAt: gate.wallClock.now() - call.stopwatch(),
                requestID: call.requestID, status: status, logContext: logContext, stopwatch: call.stopwatch),
            logged: logged, isSigned: isSigned)
    }
}
