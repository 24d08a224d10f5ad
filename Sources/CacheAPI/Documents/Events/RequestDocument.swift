package import CacheCore
import CacheEngine

/// The `Request` schema: an ended request.
package struct RequestDocument: Codable {
    /// The place in the order of the ends of requests.
    package var id: Int64
    /// The beginning of the request.
    package var at: Timestamp
    package var requestId, kind, method, path: String
    package var status: Int
    package var result, code: String?
    package var assetId: AssetID?
    package var key, origin, range: String?
    package var token: String?
    /// Absent for tokens without the scope `admin`.
    package var client: Omittable<String>
    package var firstByteSeconds: Double?
    package var totalSeconds: Double
    package var bytes, bytesFromCache, bytesFromUpstream, bytesFromPeers: Int64
    package var upstreamStatus: Int?
    /// Whether the client has received the whole response.
    package var complete: Bool
    package var traceId: String?
}

extension RequestDocument {
    /// - Parameter showsClient: Whether the reader may see addresses of clients.
    init(_ entry: RequestHistory.Entry, showsClient: Bool) {
        let (line, request) = (entry.line, entry.line.request)
        self.init(
            id: entry.id, at: line.startedAt, requestId: line.requestID.text, kind: request.kind.rawValue,
            method: request.method, path: request.path, status: line.status, result: line.result?.rawValue,
            code: line.result != .error && line.outcome == line.result?.rawValue ? nil : line.outcome,
            assetId: request.asset?.id, key: request.asset?.key, origin: request.asset?.origin,
            range: line.range?.text, token: request.token, client: showsClient ? Omittable(line.client) : .absent,
            firstByteSeconds: line.firstByte?.roundedSeconds, totalSeconds: line.duration.roundedSeconds,
            bytes: line.sentBytes, bytesFromCache: line.bytesFromCache, bytesFromUpstream: line.bytesFromUpstream,
            bytesFromPeers: line.bytesFromPeers, upstreamStatus: line.upstreamStatus, complete: line.isComplete,
            traceId: line.traceID)
    }
}
