import CacheCore
import CacheEngine
import HTTPTypes

/// The asset that a request target names: by mounted path, by URL or key, or by its ID.
enum ContentTarget: Sendable {
    /// `/o/{origin}/{path}`. The path below the origin stays unchanged, with percent-encoding, empty segments and query.
    case mounted(origin: String, path: String)
    /// `/v1/content` with its query.
    case url(query: String?)
    /// `/v1/assets/{assetId}/content` with its query; the query must be empty.
    case asset(id: String, query: String?)

    /// The pattern of mounted paths.
    static let mountedPattern = "/o/{origin}/{path}"
    private static let urlPattern = "/v1/content"
    private static let assetPattern = "/v1/assets/{assetId}/content"

    /// The routes of content, which ``ContentHandler`` serves.
    static let lines: [RouteLine] = [HTTPRequest.Method.get, .head].flatMap { method in
        [(mountedPattern, LimitRule.checked), (urlPattern, .refused), (assetPattern, .checked)].map { pattern, limits in
            RouteLine(method: method, pattern: pattern, need: .content, limits: limits)
        }
    }

    /// Nil if the target, which is in origin form, does not name content.
    init?(_ target: String) {
        let text = target.utf8
        if text.starts(with: "/o/".utf8) {
            let rest = text.dropFirst(3)
            let mark = rest.firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
            // The path below the origin has a segment that is not empty.
            guard let slash = rest.firstIndex(of: UInt8(ascii: "/")), slash < mark,
                rest[slash..<mark].contains(where: { $0 != UInt8(ascii: "/") })
            else { return nil }
            let end = rest[mark...].firstIndex(of: UInt8(ascii: "#")) ?? rest.endIndex
            self = .mounted(
                origin: String(target[rest.startIndex..<slash]), path: String(target[slash..<end]))
        } else if text.starts(with: "/v1/".utf8) {
            let mark = text.firstIndex(of: UInt8(ascii: "?")) ?? text.endIndex
            let query = target[mark...].dropFirst().prefix { $0 != "#" }
            let segments = target[..<mark].split(separator: "/")
            switch (segments.count, segments.last) {
            case (2, "content"): self = .url(query: String(query))
            case (4, "content") where segments[1] == "assets":
                self = .asset(id: String(segments[2]), query: String(query))
            default: return nil
            }
        } else {
            return nil
        }
    }

    /// The pattern of the route.
    var pattern: String {
        switch self {
        case .mounted: Self.mountedPattern
        case .url: Self.urlPattern
        case .asset: Self.assetPattern
        }
    }

    /// The asset in logs before it is resolved; nil: unknown.
    var assetName: AssetName? {
        switch self {
        case .mounted(let origin, let path):
            let mount = Origin(name: origin, settings: OriginSettings(baseURL: ""))
            // An invalid path is refused; it has no key.
            let key = try? AssetKey.mounted(
                origin: mount, path: String(path.dropFirst().prefix { $0 != "?" }), query: nil, digest: { $0 })
            return AssetName(id: nil, key: key?.text, origin: origin)
        case .url: return nil
        case .asset(let id, _): return AssetID(id).map { AssetName(id: $0, key: nil, origin: "-") }
        }
    }

    /// The reference to the asset. Players append `CMCD` to any URL; it is ignored beside the parameters. Throws `.invalidField` for an invalid query, and `.notFound` for an invalid ID.
    func reference() throws(CacheError) -> AssetReference {
        switch self {
        case .mounted(let origin, let path): return .mounted(origin: origin, path: path, key: nil)
        case .url(let query):
            let query = try QueryFields(CMCDParameter.removed(from: query), accepting: ["url", "key"])
            return .url(try query.required("url"), key: query.string("key"))
        case .asset(let id, let query):
            _ = try QueryFields(CMCDParameter.removed(from: query), accepting: [])
            guard let id = AssetID(id) else { throw CacheError(.notFound, "There is no such asset.") }
            return .known(id)
        }
    }
}
