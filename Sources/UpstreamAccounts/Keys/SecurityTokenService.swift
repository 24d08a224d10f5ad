import CacheCore

/// Calls of AWS Security Token Service that return temporary keys.
///
/// Source: AWS Security Token Service API Reference, `AssumeRole` and `AssumeRoleWithWebIdentity`.
struct SecurityTokenService: Sendable {
    private static let version = "2011-06-15"

    let settings: OriginAuth
    let exchange: AccountExchange

    /// `AssumeRole`, signed with other keys.
    func assumeRole(signedWith keys: AccessKeys) async throws(CacheError) -> IssuedKeys {
        let url = try endpoint()
        let body = FormBody([
            ("Action", "AssumeRole"), ("Version", Self.version), ("RoleArn", try role(settings.roleARN)),
            ("RoleSessionName", settings.roleSessionName), ("ExternalId", settings.externalID),
        ]).bytes
        let now = exchange.serverNow
        var headers: HeaderList = [
            "Host": url.hostField, "Content-Type": FormBody.type, "X-Amz-Date": SignatureV4.date(now),
        ]
        if let token = keys.sessionToken { headers.append("X-Amz-Security-Token", token) }
        let signed = SignatureV4.Request(
            method: "POST", path: url.path, query: SignatureQuery(url.query), headers: headers, payload: .hashed(body))
        let signature = SignatureV4(keys: keys, region: settings.region, service: "sts")
        headers.append("Authorization", signature.authorization(for: signed, at: now))
        // The transport sends Host according to the URL.
        headers.remove("Host")
        return try await self.keys(of: "AssumeRole", url, headers, body)
    }

    /// `AssumeRoleWithWebIdentity` with the token of a file, read each time.
    func assumeRoleWithWebIdentity() async throws(CacheError) -> IssuedKeys {
        let environment = exchange.dependencies.environment
        let url = try endpoint()
        // With `assumeRole`, the role of the settings is that of the second call.
        let configured = settings.credentials == .webIdentity ? settings.roleARN : nil
        let role = try role(configured ?? environment["AWS_ROLE_ARN"])
        let bytes: [UInt8]
        if let file = settings.file {
            bytes = try await exchange.dependencies.readFile(file)
        } else if let path = environment["AWS_WEB_IDENTITY_TOKEN_FILE"], !path.isEmpty {
            bytes = try await exchange.dependencies.readAbsoluteFile(path)
        } else {
            throw CacheError(
                .upstreamProtocol, "No web identity token: set auth.file or AWS_WEB_IDENTITY_TOKEN_FILE.")
        }
        let token = TokenText.trimmed(bytes)
        guard !token.isEmpty else { throw CacheError(.upstreamProtocol, "The web identity token file is empty.") }
        let body = FormBody([
            ("Action", "AssumeRoleWithWebIdentity"), ("Version", Self.version), ("RoleArn", role),
            ("RoleSessionName", settings.roleSessionName), ("WebIdentityToken", token),
        ]).bytes
        return try await keys(of: "AssumeRoleWithWebIdentity", url, ["Content-Type": FormBody.type], body)
    }

    /// The configured endpoint, otherwise that of the region.
    private func endpoint() throws(CacheError) -> ServiceURL {
        let domain = settings.region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com"
        let text = settings.stsURL ?? "https://sts.\(settings.region).\(domain)"
        guard OriginAuth.isPermittedEndpoint(text), let url = ServiceURL(text) else {
            throw CacheError(.upstreamForbidden, "Set auth.stsURL to an https URL or a loopback address.")
        }
        return url
    }

    private func role(_ name: String?) throws(CacheError) -> String {
        guard let name, !name.isEmpty else {
            throw CacheError(.upstreamProtocol, "No role: set auth.roleArn, or AWS_ROLE_ARN for a web identity.")
        }
        return name
    }

    /// Sends a call and parses the keys in its response.
    private func keys(
        of action: String, _ url: ServiceURL, _ headers: HeaderList, _ body: [UInt8]
    ) async throws(CacheError) -> IssuedKeys {
        let query = url.query.map { "?" + $0 } ?? ""
        let response = try await exchange.send(
            UpstreamRequest(.post, url.redacted + query, headers: headers, body: body))
        let texts = XMLTexts.parse(response.body)
        guard response.status == 200 else {
            let code = texts?.first { $0.path.suffix(2) == ["Error", "Code"] }?.text
            throw CacheError(
                .upstreamRefused(status: response.status),
                "STS refused \(action) with status \(response.status)\(code.map { " and code \(ErrorCode.shown($0))" } ?? "")."
            )
        }
        func text(_ name: String) -> String? {
            let path = ["\(action)Response", "\(action)Result", "Credentials", name]
            let found = (texts ?? []).filter { $0.path == path }
            return found.count == 1 ? found[0].text : nil
        }
        guard let token = text("SessionToken"), let end = text("Expiration").flatMap(RFC3339.parse) else {
            throw CacheError(.upstreamProtocol, "The response of STS to \(action) contains no temporary keys.")
        }
        let keys = try AccessKeys(
            text("AccessKeyId"), text("SecretAccessKey"), token, from: "The response of STS to \(action)")
        return IssuedKeys(keys: keys, expiresAt: exchange.local(end))
    }
}
