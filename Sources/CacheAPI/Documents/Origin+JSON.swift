package import CacheCore

extension Origin {
    /// The placeholder for the value of a header field in responses. Sent back in a request, it keeps the stored value.
    package static let secret = "•••"

    /// The `Origin` schema. Values of header fields are replaced by ``secret``.
    package var json: JSON {
        var json = Setting<OriginSettings>.all.json(of: settings, after: ["name": .string(name)])
        json.insert(.string(settings.effectiveAccess.rawValue), at: ["access"])
        let headers = settings.headers.fields.map { JSON.Member($0.name, .string(Self.secret)) }
        json.insert(.object(headers), at: ["headers"])
        return json
    }
}
