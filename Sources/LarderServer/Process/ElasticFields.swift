import CacheCore
import Logging

/// The names of log members in the Elastic Common Schema (ECS 8), with dots as in the specification of ECS logging. Data
/// without a field there has a name below `larder.`.
enum ElasticFields {
    private static let version = "8.11.0"

    /// The fields of metadata in entries about a request; other entries use some of the keys for other data.
    private static let ofRequests = [
        "method": "http.request.method", "path": "url.path", "status": "http.response.status_code",
        "bytes": "http.response.body.bytes", "requestId": "http.request.id", "client": "client.address",
        "token": "user.name", "code": "error.code",
    ]

    /// The fields of metadata in all entries.
    private static let ofAll = ["traceId": "trace.id", "error": "error.message", "requestId": "http.request.id"]

    /// The members of an entry: those that ECS logging requires, then the metadata, sorted by name.
    static func members(
        of event: LogEvent, _ metadata: Logger.Metadata, label: String, at time: Timestamp
    ) -> [(name: String, value: Logger.MetadataValue)] {
        let members: [(name: String, value: Logger.MetadataValue)] = [
            ("@timestamp", .string(RFC3339.format(time))), ("log.level", .string(event.level.rawValue)),
            ("message", .string(event.message.description)), ("ecs.version", .string(version)),
            ("service.name", "larder"), ("log.logger", .string(label)),
        ]
        let isOfRequest = metadata["requestId"] != nil && metadata["status"] != nil
        var named: Logger.Metadata = [:]
        if let error = event.error { named["error.message"] = .string(String(describing: error)) }
        for (key, value) in metadata {
            if isOfRequest, key == "totalSeconds", let nanoseconds = nanoseconds(value) {
                named["event.duration"] = .stringConvertible(nanoseconds)
            } else {
                named[(isOfRequest ? ofRequests[key] : nil) ?? ofAll[key] ?? "larder.\(key)"] = value
            }
        }
        if isOfRequest, case .stringConvertible(let status as Int)? = metadata["status"] {
            named["event.outcome"] = status < 400 ? "success" : "failure"
        }
        return members + named.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// A number of seconds in nanoseconds, the unit of `event.duration`.
    private static func nanoseconds(_ value: Logger.MetadataValue) -> Int64? {
        guard case .stringConvertible(let seconds as Double) = value, (0..<1e9).contains(seconds) else { return nil }
        return Int64(seconds * 1e9)
    }
}
