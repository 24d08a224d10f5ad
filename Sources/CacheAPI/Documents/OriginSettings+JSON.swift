package import CacheCore

extension OriginSettings {
    /// Reads the `Origin` schema. Absent members get their defaults.
    ///
    /// A header field with the value ``Origin/secret`` keeps the value from `present`, but only for the same servers.
    /// If the base URL or a mirror has a new scheme, host or port, the value is required again. Otherwise a client that
    /// cannot read a secret could have it sent to its own server.
    ///
    /// - Parameters:
    ///   - name: The name in the request's path.
    ///   - present: The stored settings; nil for a new origin.
    package init(_ json: JSON, name: String, present: OriginSettings?) throws(CacheError) {
        self.init(baseURL: "")
        try OriginSettings.settings.read(
            json, into: &self, besides: ["name", "from", "observations", "addresses", "headers"])
        if let given = json["name"], given != .string(name) {
            throw .invalid("name", "The name must be that of the path, \(name), or absent.")
        }
        if let given = json["from"], given != "configuration", given != "api" {
            throw .invalid("from", "It is configuration or api, and is ignored; leave it out.")
        }
        headers = try headers(json["headers"], present: present)
        try keepSecret(\.auth.secretAccessKey, "auth.secretAccessKey", of: present)
        try keepSecret(\.auth.sessionToken, "auth.sessionToken", of: present)
        try validate()
    }

    /// Returns these settings with a merge patch applied (RFC 7396). Null restores a default. A member with a choice of
    /// forms, such as `freshness`, is replaced as a whole.
    package func merging(_ patch: JSON, name: String) throws(CacheError) -> OriginSettings {
        guard case .object = patch else { throw .invalid("(body)", "A JSON object is expected here.") }
        let present = Origin(name: name, settings: self).json
            .merged(with: access == nil ? ["access": .null] : [:])
        let choices: Set = ["freshness", "keyQuery", "fallback", "negativeCaching", "circuitBreaker"]
        let merged = present.merged(with: named(patch), whole: choices)
        return try OriginSettings(merged, name: name, present: self)
    }

    /// Returns the patch with header names in the spelling of these settings, because they are case-insensitive and
    /// JSON members are not.
    private func named(_ patch: JSON) -> JSON {
        guard case .object(let members) = patch else { return patch }
        return .object(
            members.map { member in
                guard member.key == "headers", case .object(let fields) = member.value else { return member }
                let named = fields.map { field in
                    let name = headers.fields.first { FieldText.lowered($0.name) == FieldText.lowered(field.key) }?.name
                    return JSON.Member(name ?? field.key, field.value)
                }
                return JSON.Member(member.key, .object(named))
            })
    }

    /// Reads `headers`. The placeholder ``Origin/secret`` is replaced by the stored value.
    private func headers(_ json: JSON?, present: OriginSettings?) throws(CacheError) -> HeaderList {
        guard let json else { return [:] }
        guard case .object(let members) = json else { throw .invalid("headers", "A JSON object is expected here.") }
        var headers: HeaderList = [:]
        for member in members {
            let name = "headers.\(member.key)"
            guard case .string(let text) = member.value else { throw .invalid(name, "A string is expected here.") }
            if text != Origin.secret {
                headers.append(member.key, text)
            } else if let present, let kept = present.headers[member.key] {
                if let refusal = refusalToKeepSecrets(of: present) { throw .invalid(name, refusal) }
                headers.append(member.key, kept)
            } else {
                throw .invalid(name, "No value is stored for this header field; give a value.")
            }
        }
        return headers
    }

    /// Replaces the placeholder ``Origin/secret`` by the stored value.
    private mutating func keepSecret(
        _ property: WritableKeyPath<OriginSettings, String?>, _ name: String, of present: OriginSettings?
    ) throws(CacheError) {
        guard self[keyPath: property] == Origin.secret else { return }
        guard let present, let kept = present[keyPath: property] else {
            throw .invalid(name, "No value is stored for this member; give a value.")
        }
        if let refusal = refusalToKeepSecrets(of: present) { throw .invalid(name, refusal) }
        self[keyPath: property] = kept
    }

    /// The error message if header values of `present` must not be sent to the servers of these settings; nil if they
    /// may.
    private func refusalToKeepSecrets(of present: OriginSettings) -> String? {
        guard BaseURL.isSameServer(baseURL, present.baseURL) else {
            return "The base URL has another server now; give the value again."
        }
        let known = [present.baseURL] + present.mirrors
        let isKnown = mirrors.allSatisfy { mirror in known.contains { BaseURL.isSameServer(mirror, $0) } }
        return isKnown ? nil : "A mirror is on another server now; give the value again."
    }
}
