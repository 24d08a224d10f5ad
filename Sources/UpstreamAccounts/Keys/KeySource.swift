import CacheCore

/// Obtains keys for signatures from the source that the settings name.
struct KeySource: Sendable {
    let settings: OriginAuth
    let exchange: AccountExchange
    let metadataTokens: MetadataTokenCache

    /// The keys for requests to the origin. Files and environment are read each time.
    func keys() async throws(CacheError) -> IssuedKeys {
        guard settings.credentials == .assumeRole else { return try await keys(from: settings.credentials) }
        let first = try await keys(from: settings.source)
        return try await SecurityTokenService(settings: settings, exchange: exchange).assumeRole(signedWith: first.keys)
    }

    private func keys(from source: OriginAuth.CredentialSource) async throws(CacheError) -> IssuedKeys {
        switch source {
        case .static:
            return IssuedKeys(
                keys: try AccessKeys(
                    settings.accessKeyID, settings.secretAccessKey, settings.sessionToken, from: "The configuration"))
        case .file:
            guard let file = settings.file else {
                throw CacheError(.upstreamProtocol, "Set auth.file, which credentials file requires.")
            }
            let bytes = try await exchange.dependencies.readFile(file)
            return IssuedKeys(keys: try CredentialsFile.keys(in: bytes, profile: settings.profile))
        case .environment:
            let environment = exchange.dependencies.environment
            return IssuedKeys(
                keys: try AccessKeys(
                    environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"],
                    environment["AWS_SESSION_TOKEN"],
                    from: "The environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"))
        case .container: return try await ContainerCredentials(settings: settings, exchange: exchange).keys()
        case .instance:
            return try await InstanceCredentials(settings: settings, exchange: exchange, tokens: metadataTokens).keys()
        case .webIdentity:
            return try await SecurityTokenService(settings: settings, exchange: exchange).assumeRoleWithWebIdentity()
        case .assumeRole:
            throw CacheError(.upstreamProtocol, "Set auth.source to another source than assumeRole.")
        }
    }
}

/// The JSON document with temporary keys that metadata services return.
enum MetadataKeys {
    /// Parses the document. Throws `.upstreamProtocol`; the error does not contain keys.
    static func parse(_ body: [UInt8], from service: String, exchange: AccountExchange) throws(CacheError) -> IssuedKeys
    {
        // The parser's own error could contain a part of the document.
        guard let json = try? JSONParser.parse(body), case .object = json else {
            throw CacheError(.upstreamProtocol, "The response of the \(service) is not a JSON object.")
        }
        if let code = json["Code"]?.string, code != "Success" {
            throw CacheError(.upstreamProtocol, "The \(service) returned no keys, code \(ErrorCode.shown(code)).")
        }
        let keys = try AccessKeys(
            json["AccessKeyId"]?.string, json["SecretAccessKey"]?.string, json["Token"]?.string,
            from: "The response of the \(service)")
        guard let text = json["Expiration"]?.string else { return IssuedKeys(keys: keys) }
        guard let end = RFC3339.parse(text) else {
            throw CacheError(.upstreamProtocol, "The response of the \(service) contains an invalid Expiration.")
        }
        return IssuedKeys(keys: keys, expiresAt: exchange.local(end))
    }
}

/// Error codes of servers in messages.
enum ErrorCode {
    /// The code, if it looks like one: at most 64 letters, digits, `.`, `-` and `_`. Other text might be a secret.
    static func shown(_ code: String) -> String {
        let isCode =
            (1...64).contains(code.utf8.count)
            && code.utf8.allSatisfy { FieldText.isLetter($0) || FieldText.isDigit($0) || ".-_".utf8.contains($0) }
        return isCode ? code : "(unreadable)"
    }
}
