package import CacheCore
import CacheTracing
package import Logging
import ReaderAccess

/// Destination and format of access log entries.
package struct AccessLog: Sendable {
    /// One ended request.
    package struct Line: Sendable {
        package var request: LoggedRequest
        package var status: Int
        package var requestID: String
        package var figures: RequestLogContext.Content
        package var duration: Duration
    }

    /// Whether entries are written at all; otherwise they need not be complete.
    package let isEnabled: Bool
    private let output: @Sendable (Line) -> Void

    /// No entries.
    package static let off = AccessLog(isEnabled: false) { _ in }

    private init(isEnabled: Bool, output: @escaping @Sendable (Line) -> Void) {
        self.isEnabled = isEnabled
        self.output = output
    }

    /// Entries of the level `info` with metadata.
    package init(_ logger: Logger) {
        self.init(isEnabled: logger.logLevel <= .info) { logger.info("request", metadata: $0.metadata) }
    }

    /// Lines in the combined log format of Apache and nginx, followed by the members of Larder's own.
    ///
    /// - Parameter write: Receives each line with its line feed, on any thread.
    package static func combined(
        now: @escaping @Sendable () -> Timestamp, write: @escaping @Sendable (String) -> Void
    ) -> AccessLog {
        AccessLog(isEnabled: true) { write($0.combined(at: now()) + "\n") }
    }

    func write(_ line: Line) { if isEnabled { output(line) } }
}

/// The parts of a request that its log entry names.
package struct LoggedRequest: Sendable {
    package var method: String
    /// The path, without the query; it may contain credentials.
    package var path: String
    /// The client's address.
    package var client: String?
    package var userAgent: String?
    package var referer: String?
    /// The name of the token that authorized the request.
    package var token: String?

    package init(
        method: String, path: String, client: String? = nil, userAgent: String? = nil, referer: String? = nil,
        token: String? = nil
    ) {
        self.method = method
        self.path = LoggedPath.masked(RequestTarget.withoutQuery(path))
        self.client = client
        self.userAgent = userAgent
        self.referer = referer.map(Self.withoutCredentials)
        self.token = token
    }

    /// A URL without user information, the token of a signed URL, query and fragment.
    static func withoutCredentials(_ url: String) -> String {
        let text = RequestTarget.withoutQuery(url)
        guard let start = text.firstRange(of: "://")?.upperBound else { return LoggedPath.masked(text) }
        let authority = text[start...].prefix { $0 != "/" }
        let path = PresentedSignature.strip(target: String(text[authority.endIndex...])).cleanTarget
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        return text[..<start] + String(host) + LoggedPath.masked(path)
    }
}

extension AccessLog.Line {
    fileprivate var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = [
            "method": .string(request.method), "path": .string(request.path), "status": .stringConvertible(status),
            "outcome": .string(figures.outcome ?? "served"), "bytes": .stringConvertible(figures.sentBytes),
            "bytesFromCache": .stringConvertible(figures.bytesFromCache),
            "bytesFromUpstream": .stringConvertible(figures.bytesFromUpstream),
            "totalSeconds": .stringConvertible(duration.roundedSeconds), "requestId": .string(requestID),
        ]
        if let firstByte = figures.firstByte {
            metadata["firstByteSeconds"] = .stringConvertible(firstByte.roundedSeconds)
        }
        if figures.bytesFromPeers > 0 { metadata["bytesFromPeers"] = .stringConvertible(figures.bytesFromPeers) }
        if !figures.isComplete { metadata["aborted"] = "true" }
        let texts = [("client", request.client), ("token", request.token), ("traceId", figures.traceID)]
        for case (let key, let text?) in texts { metadata[key] = .string(text) }
        return metadata
    }

    /// `client - token [time] "request" status bytes "referer" "user agent"`, then result, sources and times.
    fileprivate func combined(at time: Timestamp) -> String {
        let target = Self.quoted("\(request.method) \(request.path) HTTP/1.1")
        let head = "\(request.client ?? "-") - \(request.token ?? "-") [\(Self.date(time))]"
        let agents = [request.referer, request.userAgent].map { Self.quoted($0 ?? "-") }.joined(separator: " ")
        let peers = figures.bytesFromPeers > 0 ? " peers=\(figures.bytesFromPeers)" : ""
        let sources = "cache=\(figures.bytesFromCache) upstream=\(figures.bytesFromUpstream)\(peers)"
        let firstByte = figures.firstByte.map { "\($0.roundedSeconds)" } ?? "-"
        let result = (figures.outcome ?? "served") + (figures.isComplete ? "" : "-aborted")
        return "\(head) \(target) \(status) \(figures.sentBytes) \(agents) result=\(result) \(sources) "
            + "first=\(firstByte) total=\(duration.roundedSeconds) id=\(requestID) trace=\(figures.traceID ?? "-")"
    }

    /// `26/Nov/2026:17:00:00 +0000`, from the form of `Date`.
    private static func date(_ time: Timestamp) -> String {
        let parts = HTTPDate.format(time).split(separator: " ")
        guard parts.count == 6 else { return "-" }
        return "\(parts[1])/\(parts[2])/\(parts[3]):\(parts[4]) +0000"
    }

    /// A text in quotes. Quotes, backslashes, control characters and non-ASCII bytes are written as `\xNN`, like in
    /// nginx.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for byte in text.utf8 {
            if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                quoted.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                quoted += "\\x" + (digits.utf8.count < 2 ? "0" : "") + digits
            }
        }
        return quoted + "\""
    }
}

extension RequestLogContext.Content {
    /// The identifier of the request's trace; nil if it is not recorded.
    fileprivate var traceID: String? { span?.context.traceID.description }
}

extension Duration {
    /// Seconds, rounded to microseconds.
    fileprivate var roundedSeconds: Double { (inSeconds * 1_000_000).rounded() / 1_000_000 }
}
