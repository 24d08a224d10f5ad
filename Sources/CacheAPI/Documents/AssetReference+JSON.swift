package import CacheCore

extension AssetReference {
    /// The members that name an asset; `assetId` is an additional one where it is allowed.
    package static let keys = ["url", "origin", "path", "key"]

    /// Reads the name of an asset: `url`, or `origin` with `path`, or `assetId` if `fields` accepts it. `key` is an
    /// optional addition to the first two.
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
                throw fields.invalid("assetId", "An asset ID with 32 hexadecimal digits is expected here.")
            }
            guard key == nil else { throw fields.invalid("key", "A key is not allowed beside assetId.") }
            self = .known(id)
        case (nil, .some, nil, nil): throw fields.invalid("path", "The path is missing; origin needs path.")
        case (nil, nil, .some, nil): throw fields.invalid("origin", "The origin is missing; path needs origin.")
        case (nil, nil, nil, nil): throw fields.invalid("url", "The asset is missing; give url, or origin and path.")
        default: throw fields.invalid("url", "The asset is named twice; give url, or origin and path.")
        }
    }

    /// The members that name the asset in a request. The query of a URL is omitted, because it may be a signature.
    /// Empty for an asset named by its ID.
    var members: [JSON.Member] {
        switch self {
        case .url(let url, let key):
            let plain = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first
            return [.init("url", .string(plain.map(String.init) ?? url)), .init("key", .text(key))]
        case .mounted(let origin, let path, let key):
            let shown = path.prefix { $0 != "?" }
            return [.init("origin", .string(origin)), .init("path", .string(String(shown))), .init("key", .text(key))]
        case .known: return []
        }
    }
}
