import CacheCore

/// One call of the API.
struct ServiceRequest: Hashable {
    enum Method: String { case get = "GET", put = "PUT", post = "POST", patch = "PATCH", delete = "DELETE" }

    var method: Method
    /// The path with its query, percent-encoded.
    var target: String
    /// The body; nil: none.
    var body: String?
    var mediaType = "application/json"
    /// Whether the response is a stream of server-sent events.
    var isStream = false
    /// The identifier of the last event that was received; empty: none.
    var lastEventID = ""
    /// Whether only a connection is made, with its TLS handshake, and nothing is sent.
    var connectsOnly = false
    /// The limit for the whole response; nil: none.
    var timeout: Duration? = .seconds(60)

    init(_ method: Method, _ path: String, query: [(name: String, value: String?)] = [], body: JSON? = nil) {
        self.method = method
        let fields = query.compactMap { name, value in value.map { "\(name)=\(PercentEncoding.encoded($0))" } }
        target = path + (fields.isEmpty ? "" : "?" + fields.joined(separator: "&"))
        self.body = body?.text
    }

    /// A stream of server-sent events. It has no time limit, because it is unbounded.
    static func events(_ path: String) -> ServiceRequest {
        var request = ServiceRequest(.get, path)
        request.isStream = true
        request.timeout = nil
        return request
    }
}
