package import CacheCore

extension AssetReference {
    package static let keys = ["url", "origin", "path", "key"]

    /// Reads one of the three ways to name an asset; `assetId` counts only where `fields` accepts it.
    package init(_ fields: JSONFields) throws(CacheError) {
        let (url, origin, path) = (try fields.string("url"), try fields.string("origin"), try fields.string("path"))
        let (key, id) = (try fields.string("key"), try fields.string("assetId"))
        if let key, !(1...2048).contains(key.unicodeScalars.count) {
            throw fields.invalid("key", "A key has 1 to 2048 characters.")
        }
        switch (url, origin, path, id) {
        case (let url?, nil, nil, nil):
            self = .url(url, key: key)
        case (nil, let origin?, let path?, nil):
            self = .mounted(origin: origin, path: path.hasPrefix("/") ? String(path.dropFirst()) : path, key: key)
        case (nil, nil, nil, let id?):
            guard let id = AssetID(id) else {
                throw fields.invalid("assetId", "32 hexadecimal digits are expected here.")
            }
            guard key == nil else { throw fields.invalid("key", "A known asset has its key.") }
            self = .known(id)
        case (nil, .some, nil, nil): throw fields.invalid("path", "The path under the origin is missing.")
        case (nil, nil, .some, nil): throw fields.invalid("origin", "The path's origin is missing.")
        case (nil, nil, nil, nil): throw fields.invalid("url", "No asset is named: url, or origin and path.")
        default: throw fields.invalid("url", "The asset is named in more than one way.")
        }
    }

    /// The members that name it, as a request would.
    var members: [JSON.Member] {
        switch self {
        case .url(let url, let key):
            let plain = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first
            return [.init("url", .string(plain.map(String.init) ?? url)), .init("key", .text(key))]
        case .mounted(let origin, let path, let key):
            return [.init("origin", .string(origin)), .init("path", .string(path)), .init("key", .text(key))]
        case .known: return []
        }
    }
}
