import CacheCore
import CacheEngine
import CacheTracing
import HTTPTypes
import ReaderAccess

/// Spans of requests (OpenTelemetry semantic conventions, "HTTP server"). Queries and header fields are not recorded.
struct RequestTracing: Sendable {
    let tracer: Tracer

    /// The server as the client has named it.
    struct Server: Sendable {
        /// The host with an optional port; nil: unknown.
        var host: String?
        var isEncrypted: Bool
        var hasQuery: Bool

        /// The host without its port, and the port.
        var parts: (address: String, port: Int?)? {
            guard let host, !host.isEmpty else { return nil }
            guard let colon = host.lastIndex(of: ":"), let port = Int(host[host.index(after: colon)...]) else {
                return (host, nil)
            }
            return (String(host[..<colon]), port)
        }
    }

    /// The methods with names of their own (RFC 9110, RFC 5789).
    private static let methods: Set<String> = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ]

    /// The trace of a request; nil if tracing is disabled.
    ///
    /// - Parameters:
    ///   - route: The pattern of the path; nil if it is unknown.
    ///   - fields: The request's fields; nil if it has no `traceparent`.
    ///   - client: Nil without a connection (tests).
    func begin(
        method: String, path: String, route: String?, _ fields: HTTPFields?, client: RequestClient? = nil,
        server: Server
    ) -> RequestTrace? {
        guard tracer.isEnabled else { return nil }
        let incoming = fields.flatMap {
            TraceContext(traceparent: $0[values: .traceparent], tracestate: $0[values: .tracestate])
        }
        // Most requests are not recorded: nothing is allocated for them.
        let isKnown = Self.methods.contains(method)
        guard let span = tracer.span(isKnown ? method : "HTTP", .server, parent: incoming) else {
            return RequestTrace(span: nil, incoming: incoming)
        }
        span.set("http.request.method", isKnown ? method : "_OTHER")
        if !isKnown { span.set("http.request.method_original", method) }
        span.set("url.path", LoggedPath.masked(path))
        span.set("url.scheme", server.isEncrypted ? "https" : "http")
        // A query can be a signature.
        if server.hasQuery { span.set("url.query", "REDACTED") }
        if let (address, port) = server.parts {
            span.set("server.address", address)
            if let port { span.set("server.port", port) }
        }
        span.set("network.protocol.version", "1.1")
        if let agent = fields?[.userAgent] { span.set("user_agent.original", agent) }
        if let client { span.set("client.address", client.text) }
        if let route {
            span.rename("\(isKnown ? method : "HTTP") \(route)")
            span.set("http.route", route)
        }
        return RequestTrace(span: span, incoming: incoming)
    }
}

extension TraceSpan {
    /// Sets the result of a request, and ends its span.
    func end(status: Int, requestID: String, _ figures: RequestLogContext.Content) {
        set("http.response.status_code", status)
        set("larder.request.id", requestID)
        if let result = figures.result { set("larder.result", result.rawValue) }
        if figures.result != nil {
            set("larder.bytes.cache", figures.bytesFromCache)
            set("larder.bytes.upstream", figures.bytesFromUpstream)
            if figures.bytesFromPeers > 0 { set("larder.bytes.peers", figures.bytesFromPeers) }
        }
        set("http.response.body.size", figures.sentBytes)
        if status >= 500 {
            set("error.type", figures.outcome ?? "\(status)")
            fail(figures.outcome ?? "\(status)")
        } else if !figures.isComplete {
            set("larder.aborted", true)
        }
        end()
    }
}
