package import CacheCore

extension Origin {
    /// The placeholder for the value of a header field in responses. Sent back in a request, it keeps the stored value.
    package static let secret = OriginSettings.mask

    /// The `Origin` schema. Values of header fields are replaced by ``secret``.
    package var json: JSON {
        var json = OriginSettings.settings.json(of: settings, after: ["name": .string(name)])
        json.insert(.string(settings.effectiveAccess.rawValue), at: ["access"])
        let headers = settings.headers.fields.map { JSON.Member($0.name, .string(Self.secret)) }
        json.insert(.object(headers), at: ["headers"])
        // Groups that are not used are left out; absent members have their defaults.
        if settings.auth == OriginAuth() { json = json.merged(with: ["auth": .null]) }
        if settings.resolution == LinkResolution() { json = json.merged(with: ["resolve": .null]) }
        if settings.auth.secretAccessKey != nil { json.insert(.string(Self.secret), at: ["auth", "secretAccessKey"]) }
        if settings.auth.sessionToken != nil { json.insert(.string(Self.secret), at: ["auth", "sessionToken"]) }
        return json
    }
}
