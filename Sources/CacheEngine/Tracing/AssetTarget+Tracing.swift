import CacheCore
import CacheTracing

extension AssetTarget {
    /// Adds `traceparent` and `tracestate` to an upstream request, if the origin permits it. Servers of absolute URLs get
    /// none.
    func propagate(_ context: TraceContext?, in headers: inout HeaderList) {
        guard let context, settings.propagatesTrace, originName != Origin.absoluteName else { return }
        headers.set(TraceContext.parentField, context.traceparent)
        if let state = context.tracestate { headers.set(TraceContext.stateField, state) }
    }
}

extension TraceSpan {
    /// Sets the attributes of an upstream request (OpenTelemetry semantic conventions, "HTTP client").
    func describe(_ target: AssetTarget, _ method: UpstreamRequest.Method = .get, status: Int?) {
        set("http.request.method", method.rawValue)
        if let status { set("http.response.status_code", status) }
        if let host = Self.host(of: target.url) { set("server.address", host) }
        set("larder.origin", target.originName)
        set("larder.asset.id", target.id.description)
    }

    /// The host of an absolute URL, without user information and port.
    private static func host(of url: String) -> String? {
        let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: true)
        guard parts.count > 1, let authority = parts[1].split(separator: "@").last else { return nil }
        guard authority.hasPrefix("[") else { return authority.split(separator: ":").first.map(String.init) }
        return authority.firstIndex(of: "]").map { String(authority[..<$0].dropFirst()) }
    }
}
