import CacheCore
import Cryptography
import WebTokens

/// A rotated refresh token that could not be saved yet.
final class UnsavedRefreshToken: Sendable {
    private let held = OrderedMutex<StoredRefreshToken?>(.leaf, nil)

    var token: StoredRefreshToken? {
        get { held.withLock(\.self) }
        set { held.withLock { $0 = newValue } }
    }
}

/// Obtains access tokens with the grant that the settings name. The client file is read each time.
struct TokenSource: Sendable {
    /// An access token in local time.
    struct IssuedToken: Sendable {
        /// A secret.
        var token: String
        var expiresAt: Timestamp
        /// A condition that needs an administrator although the token is usable; nil: none.
        var warning: String?
    }

    /// The longest lifetime of an assertion that Google accepts, in seconds.
    private static let serviceAccountLifetime: Int64 = 3600
    /// The lifetime of other assertions in seconds; some servers accept no longer one.
    private static let assertionLifetime: Int64 = 300

    /// The name of the origin.
    let account: String
    let settings: OriginAuth
    let exchange: AccountExchange
    let unsaved: UnsavedRefreshToken

    func token() async throws(CacheError) -> IssuedToken {
        guard let file = settings.file else {
            throw CacheError(.upstreamProtocol, "Set auth.file, which type oauth2 requires.")
        }
        let client = try ClientFile(try await exchange.dependencies.readFile(file))
        guard let url = settings.tokenURL ?? client.tokenURL else {
            throw CacheError(
                .upstreamProtocol, "No token endpoint: set auth.tokenURL, or token_uri in the OAuth client file.")
        }
        let endpoint = TokenEndpoint(url: url, exchange: exchange)
        switch settings.grant {
        case .clientCredentials: return try await clientCredentials(client, endpoint)
        case .refreshToken: return try await refreshToken(client, endpoint)
        case .jwtBearer: return try await assertion(client, endpoint)
        }
    }

    /// RFC 6749 §4.4. `audience` is an extension that several servers need.
    private func clientCredentials(_ client: ClientFile, _ endpoint: TokenEndpoint) async throws(CacheError)
        -> IssuedToken
    {
        guard client.id != nil, client.secret != nil else {
            throw CacheError(
                .upstreamProtocol, "The OAuth client file needs client_id and client_secret for clientCredentials.")
        }
        let response = try await endpoint.request(
            [("grant_type", "client_credentials"), ("scope", settings.scope), ("audience", settings.audience)],
            by: client)
        return issued(response)
    }

    /// RFC 7523 §2.1: a signed assertion instead of a user's grant.
    private func assertion(_ client: ClientFile, _ endpoint: TokenEndpoint) async throws(CacheError) -> IssuedToken {
        guard let pem = client.privateKey, let issuer = client.issuer else {
            throw CacheError(
                .upstreamProtocol,
                "The OAuth client file needs private_key, and client_email, issuer or client_id for jwtBearer.")
        }
        guard let algorithm = TokenAlgorithm(rawValue: client.algorithm) else {
            throw CacheError(.upstreamProtocol, "The OAuth client file names an unknown algorithm.")
        }
        let key: SigningKey
        do {
            key = try SigningKey(pem: pem, algorithm: algorithm)
        } catch {
            throw CacheError(
                .upstreamProtocol, "The private_key of the OAuth client file is unusable. \(error.message)")
        }
        let now = exchange.serverNow.seconds
        let lifetime = client.isServiceAccount ? Self.serviceAccountLifetime : Self.assertionLifetime
        // Google's service accounts act for themselves without a subject; RFC 7523 §3 requires one.
        let subject = client.subject ?? (client.isServiceAccount ? nil : issuer)
        let claims = JSON(present: [
            "iss": .string(issuer), "aud": .string(settings.audience ?? endpoint.url), "iat": .integer(now),
            "exp": .integer(now + lifetime), "jti": .string(exchange.dependencies.random.identifier()),
            "sub": subject.map(JSON.string), "scope": client.isServiceAccount ? settings.scope.map(JSON.string) : nil,
        ])
        let header = client.privateKeyID.map { [JSON.Member("kid", .string($0))] } ?? []
        let token = try JSONWebToken.sign(claims, header: header, with: key)
        let response = try await endpoint.request(
            [
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", token),
                ("scope", client.isServiceAccount ? nil : settings.scope),
            ], by: client.secret == nil ? nil : client)
        return issued(response)
    }

    private func issued(_ response: TokenEndpoint.Response, warning: String? = nil) -> IssuedToken {
        IssuedToken(token: response.accessToken, expiresAt: exchange.now + response.lifetime, warning: warning)
    }
}

// MARK: Refresh tokens

extension TokenSource {
    /// RFC 6749 §6. Servers may replace the refresh token with each use; the earlier one is invalid then. Therefore a
    /// new token is saved before its first use:
    ///
    /// 1. The response contains a new refresh token. It is saved at once.
    /// 2. If that fails, it is held in memory. The access token is used nevertheless, with a warning.
    /// 3. The next refresh saves the held token first, and fails if that is still impossible.
    private func refreshToken(_ client: ClientFile, _ endpoint: TokenEndpoint) async throws(CacheError) -> IssuedToken {
        guard client.id != nil else {
            throw CacheError(.upstreamProtocol, "The OAuth client file needs client_id for refreshToken.")
        }
        let digest = HashFunction.sha256.digest(of: (client.refreshToken ?? "").utf8).hexDigits
        let token = try await currentRefreshToken(client, digest)
        let response = try await endpoint.request(
            [("grant_type", "refresh_token"), ("refresh_token", token), ("scope", settings.scope)], by: client)
        guard let rotated = response.refreshToken, rotated != token else { return issued(response) }
        let next = StoredRefreshToken(token: rotated, fileDigest: digest)
        do {
            try await exchange.dependencies.refreshTokens.save(next, for: account)
            return issued(response)
        } catch {
            unsaved.token = next
            return issued(
                response,
                warning: "The new refresh token could not be saved and is lost if the service ends: \(error.message)")
        }
    }

    /// The stored token, if it descends from the file's one; otherwise the file's.
    private func currentRefreshToken(_ client: ClientFile, _ digest: String) async throws(CacheError) -> String {
        let store = exchange.dependencies.refreshTokens
        if let held = unsaved.token {
            if held.fileDigest == digest { try await store.save(held, for: account) }
            unsaved.token = nil
        }
        if let stored = try await store.load(account), stored.fileDigest == digest { return stored.token }
        guard let token = client.refreshToken else {
            throw CacheError(.upstreamProtocol, "The OAuth client file needs refresh_token for refreshToken.")
        }
        return token
    }
}
