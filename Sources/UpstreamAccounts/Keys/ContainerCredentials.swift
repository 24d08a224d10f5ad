import CacheCore

/// The keys of an ECS task's or EKS pod's role, from the endpoint that the environment names.
///
/// Source: AWS SDKs and Tools Reference Guide, "Container credential provider".
struct ContainerCredentials: Sendable {
    private static let relativeBase = "http://169.254.170.2"

    let settings: OriginAuth
    let exchange: AccountExchange

    func keys() async throws(CacheError) -> IssuedKeys {
        let url = try endpoint()
        var headers: HeaderList = ["Accept": "application/json"]
        if let token = try await token() { headers.append("Authorization", token) }
        var request = UpstreamRequest(.get, url.text, headers: headers, timeout: AccountExchange.metadataTimeout)
        request.allowsMetadataServices = url.parsed.isMetadataService
        let response = try await exchange.send(request)
        guard response.status == 200 else {
            throw CacheError(
                .upstreamRefused(status: response.status),
                "The container credentials endpoint answered with status \(response.status).")
        }
        return try MetadataKeys.parse(response.body, from: "container credentials endpoint", exchange: exchange)
    }

    /// The endpoint of the settings, otherwise that of the environment.
    private func endpoint() throws(CacheError) -> (text: String, parsed: ServiceURL) {
        let environment = exchange.dependencies.environment
        let relative = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"].flatMap { uri in
            uri.hasPrefix("/") ? Self.relativeBase + uri : nil
        }
        guard let text = settings.metadataURL ?? relative ?? environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] else {
            throw CacheError(
                .upstreamProtocol,
                "The environment names no container credentials endpoint: neither AWS_CONTAINER_CREDENTIALS_FULL_URI "
                    + "nor a relative URI with a leading slash.")
        }
        guard OriginAuth.isPermittedMetadataURL(text), let parsed = ServiceURL(text) else {
            throw CacheError(
                .upstreamForbidden,
                "The container credentials endpoint must have https, a loopback or a metadata address.")
        }
        return (text, parsed)
    }

    /// The value of `Authorization`; nil if the environment gives none. A token file is read each time, because its
    /// token is replaced.
    private func token() async throws(CacheError) -> String? {
        let environment = exchange.dependencies.environment
        let text: String
        if let path = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"], !path.isEmpty {
            text = TokenText.trimmed(try await exchange.dependencies.readAbsoluteFile(path))
        } else if let token = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"], !token.isEmpty {
            text = token
        } else {
            return nil
        }
        guard !text.isEmpty, FieldText.isValue(text) else {
            throw CacheError(.upstreamProtocol, "The container authorization token is empty or no valid field value.")
        }
        return text
    }
}

/// Tokens in files.
enum TokenText {
    /// The text without blanks and line breaks at both ends; invalid UTF-8 is replaced.
    static func trimmed(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.trimmed(FieldText.isSpace), as: UTF8.self)
    }
}
