package import CacheCore

/// The services that accounts need from their environment.
package struct AccountDependencies: Sendable {
    /// The largest body of a response that an account reads, in bytes.
    package static let bodyLimit = 256 << 10
    /// The largest file that an account reads, in bytes.
    package static let fileLimit = 64 << 10

    /// Reads a file of at most ``fileLimit`` bytes. The error names the file, never its content.
    package typealias FileReader = @Sendable (String) async throws(CacheError) -> [UInt8]

    /// Sends a request and returns the response of any status. Throws if there is no complete response; the error
    /// contains neither fields nor body of the request.
    package typealias Send = @Sendable (UpstreamRequest) async throws(CacheError) -> UpstreamResponse

    package var send: Send
    /// Reads a file by its path below the directory of credentials files.
    package var readFile: FileReader
    /// Reads a file by an absolute path, which only the process environment can name.
    package var readAbsoluteFile: FileReader
    /// The environment of the process.
    package var environment: [String: String]
    package var wallClock: any WallClock
    package var random: any RandomSource
    package var refreshTokens: any RefreshTokenStore

    package init(
        send: @escaping Send, readFile: @escaping FileReader, readAbsoluteFile: @escaping FileReader,
        environment: [String: String], wallClock: any WallClock, random: any RandomSource,
        refreshTokens: any RefreshTokenStore
    ) {
        self.send = send
        self.readFile = Self.withoutMark(readFile)
        self.readAbsoluteFile = Self.withoutMark(readAbsoluteFile)
        self.environment = environment
        self.wallClock = wallClock
        self.random = random
        self.refreshTokens = refreshTokens
    }

    /// The reader without the byte order mark of UTF-8, which editors of Windows write before the text.
    private static func withoutMark(_ read: @escaping FileReader) -> FileReader {
        { path throws(CacheError) in
            let bytes = try await read(path)
            return bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        }
    }
}

/// A refresh token that an authorization server issued in place of an earlier one (RFC 6749 §6).
package struct StoredRefreshToken: Hashable, Sendable {
    /// A secret.
    package var token: String
    /// The SHA-256 of the client file's token from which this one descends, in hexadecimal digits. Another token in the
    /// file replaces the stored one.
    package var fileDigest: String

    package init(token: String, fileDigest: String) {
        self.token = token
        self.fileDigest = fileDigest
    }
}

extension StoredRefreshToken: CustomStringConvertible {
    /// Without the token.
    package var description: String { "StoredRefreshToken" }
}

/// Keeps rotated refresh tokens durably and sealed. `account`: the name of the origin.
package protocol RefreshTokenStore: Sendable {
    /// The last saved token of the account; nil if there is none.
    func load(_ account: String) async throws(CacheError) -> StoredRefreshToken?
    /// Replaces the token of the account. Returns when the token is durable.
    func save(_ token: StoredRefreshToken, for account: String) async throws(CacheError)
}
