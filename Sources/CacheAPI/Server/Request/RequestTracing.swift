import CacheCore
import CacheEngine
import CacheTracing
import HTTPTypes
import ReaderAccess

/// Spans of requests (OpenTelemetry semantic conventions, "HTTP server"). Queries and header fields are not recorded.
struct RequestTracing: Sendable {
    let tracer: Tracer

    /// The trace of a request; nil if tracing is disabled.
    ///
    /// - Parameters:
    ///   - route: The pattern of the path; nil if it is unknown.
    ///   - fields: The request's fields; nil if it has no `traceparent`.
    ///   - client: Nil without a connection (tests).
    func begin(
        method: String, path: String, route: String?, _ fields: HTTPFields?, client: RequestClient? = nil
    ) -> RequestTrace? {
        guard tracer.isEnabled else { return nil }
        let incoming = fields.flatMap {
            TraceContext(traceparent: $0[values: .traceparent], tracestate: $0[values: .tracestate])
        }
        // Most requests are not recorded: nothing is allocated for them.
        guard let span = tracer.span(method, .server, parent: incoming) else {
            return RequestTrace(span: nil, incoming: incoming)
        }
        span.set("http.request.method", method)
        span.set("url.path", LoggedPath.masked(path))
        if let client { span.set("client.address", client.text) }
        if let route {
            span.rename("\(method) \(route)")
            span.set("http.route", route)
        }
        return RequestTrace(span: span, incoming: incoming)
    }
}

extension TraceSpan {
    /// Sets the result of a request, and ends its span.
    func end(status: Int, _ figures: RequestLogContext.Content) {
        set("http.response.status_code", status)
        if let result = figures.result { set("larder.result", result.rawValue) }
        if figures.result != nil {
            set("larder.bytes.cache", figures.bytesFromCache)
            set("larder.bytes.upstream", figures.bytesFromUpstream)
            if figures.bytesFromPeers > 0 { set("larder.bytes.peers", figures.bytesFromPeers) }
        }
        set("http.response.body.size", figures.sentBytes)
        if status >= 500 {
            fail(figures.outcome ?? "\(status)")
        } else if !figures.isComplete {
            set("larder.aborted", true)
        }
        end()
    }
}
