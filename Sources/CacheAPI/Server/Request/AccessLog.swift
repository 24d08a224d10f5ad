package import CacheCore
import CacheEngine
import CacheTracing
package import Logging
import ReaderAccess

/// Destination and format of access log entries.
package struct AccessLog: Sendable {
    private let isOn: @Sendable () -> Bool
    private let output: @Sendable (Line) -> Void

    /// No entries.
    package static let off = AccessLog(isOn: { false }) { _ in }

    private init(isOn: @escaping @Sendable () -> Bool, output: @escaping @Sendable (Line) -> Void) {
        self.isOn = isOn
        self.output = output
    }

    /// Whether entries are written at all; otherwise they need not be complete.
    package var isEnabled: Bool { isOn() }

    /// Entries with metadata. Those of health checks and of the dashboard have the level `debug`, all others `info`.
    package init(_ logger: Logger) {
        self.init(isOn: { logger.logLevel <= .info }) { line in
            logger.log(level: line.request.kind.isReported ? .info : .debug, "request", metadata: line.metadata)
        }
    }

    /// Lines in the combined log format of Apache and nginx, followed by the members of Larder's own. Health checks and
    /// the dashboard have none.
    ///
    /// - Parameter write: Receives each line with its line feed, on any thread.
    package static func combined(
        now: @escaping @Sendable () -> Timestamp, write: @escaping @Sendable (String) -> Void
    ) -> AccessLog {
        AccessLog(isOn: { true }) { if $0.request.kind.isReported { write($0.combined(at: now()) + "\n") } }
    }

    func write(_ line: Line) { if isEnabled { output(line) } }
}

/// The kind of a request. It separates the requests of readers from those that the operation of the service causes.
enum RequestKind: String, Sendable, CaseIterable {
    /// A request for content.
    case content
    /// Another node of the fleet reads.
    case peer
    /// Any other call of the API.
    case api
    /// The dashboard: its files, and its calls that change nothing.
    case dashboard
    /// Health checks.
    case health

    /// Whether access logs and ``RequestHistory`` contain such requests.
    var isReported: Bool { self != .dashboard && self != .health }
}

extension AccessLog {
    /// One ended request: the source of its log entry, of its place in the statistics and of ``RequestDocument``.
    ///
    /// An object, because the history keeps it, and a copy of all members costs a percent of a small read.
    final class Line: Sendable {
        let request: LoggedRequest
        /// The client's address.
        let client: String?
        let startedAt: Timestamp
        let requestID: LoggedRequestID
        let status: Int
        /// The cache result (`hit`, `miss`, …) or an error code; nil for API requests that succeed.
        let outcome: String?
        /// The result of a content request that the statistics count; nil for others.
        let result: ReadOutcome.Class?
        let range: LoggedRange?
        let upstreamStatus: Int?
        let sentBytes, bytesFromCache, bytesFromUpstream, bytesFromPeers: Int64
        let firstByte: Duration?
        let duration: Duration
        /// Whether the whole response was sent.
        let isComplete: Bool
        /// The identifier of the request's trace; nil if it is not recorded.
        let traceID: String?

        private static let cancelled = CacheError.Code.cancelled.name
        /// Whether the client left before the response.
        var isCancelled: Bool { outcome == Self.cancelled }

        init(
            _ request: LoggedRequest, client: String?, startedAt: Timestamp, requestID: LoggedRequestID, status: Int,
            _ figures: RequestLogContext.Content, duration: Duration
        ) {
            (self.request, self.client, self.startedAt) = (request, client, startedAt)
            (self.requestID, self.status, self.duration) = (requestID, status, duration)
            (outcome, result) = (figures.outcome, figures.result)
            (range, upstreamStatus) = (figures.range, figures.upstreamStatus)
            (sentBytes, bytesFromCache) = (figures.sentBytes, figures.bytesFromCache)
            (bytesFromUpstream, bytesFromPeers) = (figures.bytesFromUpstream, figures.bytesFromPeers)
            (firstByte, isComplete) = (figures.firstByte, figures.isComplete)
            traceID = figures.span?.context.traceID.description
        }
    }
}

/// The identifier of a logged request. That of a prepared response becomes a text only where it is needed.
enum LoggedRequestID: Sendable {
    case text(String)
    case counted(RequestID)

    var text: String {
        switch self {
        case .text(let text): text
        case .counted(let id): id.text
        }
    }
}

/// The requested range of a logged request.
enum LoggedRange: Hashable, Sendable {
    /// The bytes of the asset.
    case bytes(ByteRange)
    /// The beginning of the `Range` field, if its bytes are unknown.
    case field(String)

    /// The longest text of a field.
    private static let longest = 64

    /// - Parameter field: The value of `Range`.
    init(field: String) { self = .field(String(field.prefix(Self.longest))) }

    var text: String {
        switch self {
        case .bytes(let range): "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
        case .field(let text): text
        }
    }
}

/// The parts of a request that its log entry names, and that equal requests of other clients share.
final class LoggedRequest: Sendable {
    let kind: RequestKind
    let method: String
    /// The path, without the query; it may contain credentials.
    let path: String
    /// The asset of a content request.
    let asset: AssetName?
    let userAgent: String?
    let referer: String?
    /// The name of the token that authorized the request.
    let token: String?
    /// The size of all texts.
    let textBytes: Int

    init(
        kind: RequestKind = .content, method: String, path: String, asset: AssetName? = nil, userAgent: String? = nil,
        referer: String? = nil, token: String? = nil
    ) {
        (self.kind, self.method, self.asset) = (kind, method, asset)
        self.path = LoggedPath.masked(RequestTarget.withoutQuery(path))
        self.userAgent = userAgent
        self.referer = referer.map(Self.withoutCredentials)
        self.token = token
        let texts = [method, self.path, asset?.key, asset?.origin, userAgent, self.referer, token]
        textBytes = texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
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
            "kind": .string(request.kind.rawValue), "method": .string(request.method), "path": .string(request.path),
            "status": .stringConvertible(status), "outcome": .string(outcome ?? "served"),
            "bytes": .stringConvertible(sentBytes), "bytesFromCache": .stringConvertible(bytesFromCache),
            "bytesFromUpstream": .stringConvertible(bytesFromUpstream),
            "totalSeconds": .stringConvertible(duration.roundedSeconds), "requestId": .string(requestID.text),
        ]
        if let firstByte { metadata["firstByteSeconds"] = .stringConvertible(firstByte.roundedSeconds) }
        if bytesFromPeers > 0 { metadata["bytesFromPeers"] = .stringConvertible(bytesFromPeers) }
        if !isComplete { metadata["aborted"] = "true" }
        if let upstreamStatus { metadata["upstreamStatus"] = .stringConvertible(upstreamStatus) }
        let texts = [
            ("client", client), ("token", request.token), ("traceId", traceID), ("origin", request.asset?.origin),
            ("assetId", request.asset?.id?.description), ("range", range?.text),
        ]
        for case (let key, let text?) in texts { metadata[key] = .string(text) }
        return metadata
    }

    /// `client - token [time] "request" status bytes "referer" "user agent"`, then result, sources and times.
    fileprivate func combined(at time: Timestamp) -> String {
        let target = Self.quoted("\(request.method) \(request.path) HTTP/1.1")
        let head = "\(client ?? "-") - \(request.token ?? "-") [\(Self.date(time))]"
        let agents = [request.referer, request.userAgent].map { Self.quoted($0 ?? "-") }.joined(separator: " ")
        let peers = bytesFromPeers > 0 ? " peers=\(bytesFromPeers)" : ""
        let sources = "cache=\(bytesFromCache) upstream=\(bytesFromUpstream)\(peers)"
        let firstByteText = firstByte.map { "\($0.roundedSeconds)" } ?? "-"
        let result = (outcome ?? "served") + (isComplete ? "" : "-aborted")
        return "\(head) \(target) \(status) \(sentBytes) \(agents) result=\(result) \(sources) "
            + "first=\(firstByteText) total=\(duration.roundedSeconds) id=\(requestID.text) trace=\(traceID ?? "-") kind=\(request.kind.rawValue)"
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
                quoted += "\\x" + byte.hexDigits.uppercased()
            }
        }
        return quoted + "\""
    }
}

extension Duration {
    /// Seconds, rounded to microseconds.
    var roundedSeconds: Double { (inSeconds * 1_000_000).rounded() / 1_000_000 }
}
