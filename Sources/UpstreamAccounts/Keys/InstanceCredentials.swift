import CacheCore

/// The session token of the EC2 metadata service, used for several refreshes.
final class MetadataTokenCache: Sendable {
    private let held = OrderedMutex<(token: String, until: Timestamp)?>(.leaf, nil)

    /// The token, if it is still valid.
    func token(at now: Timestamp) -> String? { held.withLock { $0.flatMap { now < $0.until ? $0.token : nil } } }

    func hold(_ token: String, until end: Timestamp) { held.withLock { $0 = (token, end) } }
}

/// The keys of an EC2 instance's role, version 2 of the metadata service.
///
/// Source: Amazon EC2 User Guide, "Use the Instance Metadata Service to access instance metadata".
struct InstanceCredentials: Sendable {
    private static let defaultURL = "http://169.254.169.254"
    private static let rolePath = "/latest/meta-data/iam/security-credentials/"
    /// The lifetime of a session token, the longest possible.
    private static let tokenLifetime = 21_600

    let settings: OriginAuth
    let exchange: AccountExchange
    let tokens: MetadataTokenCache

    func keys() async throws(CacheError) -> IssuedKeys {
        let environment = exchange.dependencies.environment
        guard environment["AWS_EC2_METADATA_DISABLED"].map(FieldText.lowered) != "true" else {
            throw CacheError(
                .upstreamProtocol, "AWS_EC2_METADATA_DISABLED disables the instance metadata service; remove it.")
        }
        let text =
            settings.metadataURL ?? environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"].flatMap { $0.isEmpty ? nil : $0 }
            ?? Self.defaultURL
        guard OriginAuth.isPermittedMetadataURL(text), let url = ServiceURL(text), url.query == nil else {
            throw CacheError(
                .upstreamForbidden,
                "The URL of the instance metadata service must have https, a loopback or a metadata address.")
        }
        let listing = try await get(Self.rolePath, from: url)
        // The list has one name per line; an instance has at most one role.
        guard let role = String(decoding: listing, as: UTF8.self).split(whereSeparator: \.isNewline).first,
            !role.utf8.isEmpty, role.utf8.count <= 128, role != ".", role != ".."
        else { throw CacheError(.upstreamProtocol, "The instance has no role; attach an instance profile.") }
        let document = try await get(Self.rolePath + PercentEncoding.encoded(role), from: url)
        return try MetadataKeys.parse(document, from: "instance metadata service", exchange: exchange)
    }

    /// Returns the body of a document. A refused session token is replaced once.
    private func get(_ path: String, from base: ServiceURL) async throws(CacheError) -> [UInt8] {
        let held = tokens.token(at: exchange.now)
        let first: String = if let held { held } else { try await newToken(from: base) }
        var response = try await exchange.send(request(.get, path, base, ["X-aws-ec2-metadata-token": first]))
        if response.status == 401 {
            let second = try await newToken(from: base)
            response = try await exchange.send(request(.get, path, base, ["X-aws-ec2-metadata-token": second]))
        }
        guard response.status == 200 else {
            let reason = response.status == 404 ? "; attach an instance profile with a role" : ""
            throw CacheError(
                .upstreamRefused(status: response.status),
                "The instance metadata service answered with status \(response.status)\(reason).")
        }
        return response.body
    }

    /// Starts a session and holds its token.
    private func newToken(from base: ServiceURL) async throws(CacheError) -> String {
        let lifetime = Self.tokenLifetime
        let response = try await exchange.send(
            request(.put, "/latest/api/token", base, ["X-aws-ec2-metadata-token-ttl-seconds": "\(lifetime)"]))
        guard response.status == 200 else {
            throw CacheError(
                .upstreamRefused(status: response.status),
                "The instance metadata service refused a session token with status \(response.status).")
        }
        let token = String(decoding: response.body, as: UTF8.self)
        guard !token.isEmpty, FieldText.isValue(token) else {
            throw CacheError(.upstreamProtocol, "The instance metadata service returned an invalid session token.")
        }
        tokens.hold(token, until: exchange.now + .seconds(lifetime - 60))
        return token
    }

    private func request(
        _ method: UpstreamRequest.Method, _ path: String, _ base: ServiceURL, _ headers: HeaderList
    ) -> UpstreamRequest {
        let prefix = base.path.hasSuffix("/") ? String(base.path.dropLast()) : base.path
        var request = UpstreamRequest(
            method, "\(base.scheme)://\(base.hostField)\(prefix)\(path)", headers: headers,
            timeout: AccountExchange.metadataTimeout)
        request.allowsMetadataServices = base.isMetadataService
        return request
    }
}
