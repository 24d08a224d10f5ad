package import CacheCore

extension AssetReference: Decodable {
    private struct Document: Decodable { var url, origin, path, key: String? }

    /// The members that name an asset.
    package static let keys = JSON.keys(of: Document.self)

    /// Reads the name of an asset: `url`, or `origin` with `path`. `key` is an optional addition.
    package init(from decoder: any Decoder) throws { try self.init(from: decoder, id: nil) }

    /// The same where `assetId`, which is decoded before, is another form.
    init(from decoder: any Decoder, id: AssetID?) throws {
        let document = try Document(from: decoder)
        let key = document.key
        if let key, !(1...2048).contains(key.unicodeScalars.count) {
            throw decoder.invalid("A key has 1 to 2048 characters.", at: "key")
        }
        switch (document.url, document.origin, document.path, id) {
        case (let url?, nil, nil, nil):
            self = .url(url, key: key)
        case (nil, let origin?, let path?, nil):
            self = .mounted(origin: origin, path: path.hasPrefix("/") ? String(path.dropFirst()) : path, key: key)
        case (nil, nil, nil, let id?):
            guard key == nil else { throw decoder.invalid("A key is not allowed beside assetId.", at: "key") }
            self = .known(id)
        case (nil, .some, nil, nil): throw decoder.invalid("The path is missing; origin needs path.", at: "path")
        case (nil, nil, .some, nil): throw decoder.invalid("The origin is missing; path needs origin.", at: "origin")
        case (nil, nil, nil, nil):
            throw decoder.invalid("The asset is missing; give url, or origin and path.", at: "url")
        default: throw decoder.invalid("The asset is named twice; give url, or origin and path.", at: "url")
        }
    }
}
