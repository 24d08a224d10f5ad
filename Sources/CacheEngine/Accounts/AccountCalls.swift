import CacheCore
import CacheStore
import UpstreamAccounts

/// Calls of an origin's account: token endpoints and metadata services, over the same client as content.
struct AccountCalls: AccountTransport {
    /// The largest response in bytes.
    private static let bodyLimit = 1 << 20

    let upstream: any Upstream
    let allowPrivateAddresses: Bool
    let tls: TLSSettings
    /// The name by which the limits count these calls, apart from the content of the origin.
    let originName: String

    init(origin: String, settings: OriginSettings, upstream: any Upstream) {
        self.upstream = upstream
        allowPrivateAddresses = settings.allowPrivateAddresses
        tls = settings.tls
        originName = origin + " (account)"
    }

    func send(_ request: AccountRequest) async throws(CacheError) -> AccountResponse {
        guard let method = UpstreamRequest.Method(rawValue: request.method.rawValue) else {
            throw CacheError(.internal, "A call of an account has an unknown method.")
        }
        var call = UpstreamRequest(
            method: method, url: request.url, headers: request.headers, originName: originName,
            timeouts: TransferTimeouts(
                connect: request.timeout, firstByte: request.timeout, idle: request.timeout, total: request.timeout),
            allowPrivateAddresses: allowPrivateAddresses, tls: tls)
        call.body = request.body
        call.followsRedirects = false
        call.allowsMetadataServices = request.destination == .metadata
        let response = try await upstream.exchange(call, bodyLimit: Self.bodyLimit)
        return AccountResponse(status: response.status, headers: response.headers, body: response.body)
    }
}

/// Refresh tokens, sealed in the catalog.
struct SealedRefreshTokens: RefreshTokenStore {
    let catalog: Catalog

    func load(_ account: String) async throws(CacheError) -> StoredRefreshToken? {
        guard let text = try await catalog.secret(Self.name(account)), let end = text.firstIndex(of: "\n") else {
            return nil
        }
        return StoredRefreshToken(
            token: String(text[text.index(after: end)...]), fileDigest: String(text[..<end]))
    }

    func save(_ token: StoredRefreshToken, for account: String) async throws(CacheError) {
        try await catalog.saveSecret(token.fileDigest + "\n" + token.token, as: Self.name(account))
    }

    private static func name(_ account: String) -> String { "refreshToken " + account }
}
