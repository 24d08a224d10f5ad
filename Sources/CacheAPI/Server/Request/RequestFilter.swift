import CacheCore
import CacheEngine
import ReaderAccess

/// The conditions of a list or a stream of ended requests; a nil condition matches all.
struct RequestFilter: Sendable {
    /// A status, or the first digit of a class.
    enum Status: Hashable, Sendable {
        case exactly(Int)
        case hundreds(Int)

        /// Nil unless the text is a status, such as `404`, or a class, such as `5xx`.
        init?(_ text: String) {
            if let status = Int(text), (100...599).contains(status) {
                self = .exactly(status)
            } else if text.count == 3, text.hasSuffix("xx"), let first = text.first?.wholeNumberValue,
                (1...5).contains(first)
            {
                self = .hundreds(first)
            } else {
                return nil
            }
        }

        func contains(_ status: Int) -> Bool {
            switch self {
            case .exactly(let wanted): status == wanted
            case .hundreds(let first): status / 100 == first
            }
        }
    }

    /// The names of the query parameters.
    static let parameters = ["kind", "origin", "prefix", "assetId", "token", "status", "result", "minSeconds"]

    var kind: RequestKind?
    var origin: String?
    /// The beginning of the asset's key, or of the path of a request without one.
    var prefix: String?
    var assetID: AssetID?
    var token: String?
    var status: Status?
    var result: ReadOutcome.Class?
    var minimum: Duration?
    /// The limits of the reader; nil: there are none.
    var limits: ContentLimits?

    init() {}

    /// Reads the conditions. Throws `.invalidField`.
    init(_ query: QueryFields, for reader: Reader?) throws(CacheError) {
        kind = try query.choice("kind", of: RequestKind.allCases.filter(\.isReported))
        (origin, prefix, token) = (query.string("origin"), query.string("prefix"), query.string("token"))
        assetID = try query.assetID("assetId")
        result = try query.choice("result")
        minimum = try query.seconds("minSeconds", in: 0...86_400)
        if let text = query.string("status") {
            guard let status = Status(text) else {
                throw .invalid("status", "A status such as 404, or a class such as 5xx, is expected here.")
            }
            self.status = status
        }
        if let reader, reader.isLimited { limits = reader.limits }
    }

    /// Whether the request meets all conditions and is inside the limits.
    func matches(_ line: AccessLog.Line) -> Bool {
        let (request, asset) = (line.request, line.request.asset)
        if let kind, request.kind != kind { return false }
        if let origin, asset?.origin != origin { return false }
        if let assetID, asset?.id != assetID { return false }
        if let token, request.token != token { return false }
        if let status, !status.contains(line.status) { return false }
        if let result, line.result != result { return false }
        if let minimum, line.duration < minimum { return false }
        if let prefix, !(asset?.key ?? request.path).hasPrefix(prefix) { return false }
        guard let limits else { return true }
        return asset?.key.map { limits.permits(key: $0) } ?? false
    }
}
