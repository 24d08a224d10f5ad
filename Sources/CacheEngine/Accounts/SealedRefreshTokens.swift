import CacheCore
import CacheStore
import UpstreamAccounts

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
