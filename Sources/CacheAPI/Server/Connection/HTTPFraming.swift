import NIOHTTP1

/// The properties of a request that the framing of its response, and the life of the connection, depend on.
struct RequestFraming: Equatable {
    var isHead = false
    /// Whether the request is HTTP/1.0, which has neither chunks nor, by default, further requests.
    var isOld = false
    /// Whether the connection ends after this request (RFC 9112 §9.3): everything after its body is ignored (§9.6).
    var isLast = false

    /// - Parameter isLast: Whether the server ends the connection, whatever the request says.
    init(_ head: HTTPRequestHead, isLast: Bool) {
        isHead = head.method == .HEAD
        isOld = head.version == .http1_0
        // HTTP/1.0 has no transfer codings, so the framing is faulty (RFC 9112 §6.1).
        let isFaulty = isOld && head.headers.contains(name: "Transfer-Encoding")
        self.isLast = isLast || isFaulty || !head.isKeepAlive
    }

    /// A prepared response: its request keeps the connection open.
    static let persistent = RequestFraming()

    private init() {}

    /// The framing of the response.
    ///
    /// - Parameters:
    ///   - isUnbounded: Whether the response may have a body and states no length.
    ///   - isLast: Whether the connection ends after the response, whatever the request says.
    func response(isUnbounded: Bool, isLast: Bool) -> ResponseFraming {
        guard isUnbounded else { return ResponseFraming(self, end: .marked, isLast: isLast) }
        if isHead { return ResponseFraming(self, end: .hidden, isLast: isLast) }
        return ResponseFraming(self, end: isOld ? .connection : .marked, isLast: isLast || isOld)
    }
}

/// The framing of one response.
struct ResponseFraming: Equatable {
    /// The end of the body.
    enum End: Equatable {
        /// Its length or the last chunk.
        case marked
        /// A response to HEAD without a length: the encoder would write the last chunk of a body that there is not.
        case hidden
        /// The end of the connection (HTTP/1.0 without a length).
        case connection
    }

    var end: End
    var isOld: Bool
    var isLast: Bool
    /// Whether the status line has the version 1.0: the encoder would chunk the body otherwise.
    var isOldVersion: Bool

    fileprivate init(_ request: RequestFraming, end: End, isLast: Bool) {
        self.end = end
        isOld = request.isOld
        self.isLast = isLast || request.isLast
        isOldVersion = request.isOld && end != .marked
    }

    /// Sets the version and `Connection` of a response head.
    func apply(to head: inout HTTPResponseHead) {
        if isOldVersion { head.version = .http1_0 }
        if isLast {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
        } else if isOld {
            head.headers.replaceOrAdd(name: "Connection", value: "keep-alive")
        }
    }
}

extension HTTPRequestHead {
    /// Whether fields announce a body, possibly an empty one.
    var hasBody: Bool { headers.contains(name: "Content-Length") || headers.contains(name: "Transfer-Encoding") }

    /// The declared `Content-Length`; `Int.max` if it is not a number, nil without the field.
    var bodyLength: Int? { headers[canonicalForm: "Content-Length"].first.map { Int($0) ?? .max } }

    /// Whether the client sends the body only after `100 (Continue)` (RFC 9110 §10.1.1).
    var awaitsContinue: Bool {
        let hasBody = headers.contains(name: "Transfer-Encoding") || (bodyLength ?? 0) > 0
        return hasBody && version == .http1_1
            && headers[canonicalForm: "Expect"].contains { $0.lowercased() == "100-continue" }
    }
}
