import CacheCore
import Cryptography
import WebTokens

/// The canonical texts that the HMAC-SHA256 of a URL signature covers, and the binary form of path tokens.
///
/// Each text begins with its version and kind, so that no code of one kind is valid for another.
enum SignedText {
    /// The covered content of a signature.
    enum Target: Hashable, Sendable {
        case exact(ContentPath, query: String?)
        case prefix(PathPrefix)
    }

    /// A decoded path token.
    struct PathToken: Sendable {
        var keyID: String
        var expiry: Int64
        var isPrefix: Bool
        /// The decoded prefix, or the normalised path with its query.
        var text: [UInt8]
        /// The bytes that the code covers.
        var body: [UInt8]
        var code: [UInt8]
    }

    /// The last second of the year 9999, the latest possible end.
    static let latest: Int64 = 253_402_300_799
    private static let codeLength = 32
    /// The maximum length of a path token in characters.
    static let tokenLimit = 4096

    /// The code of a query signature.
    static func queryCode(_ target: Target, keyID: String, expiry: Int64, _ key: SymmetricKey) -> [UInt8] {
        var text = Array("larder-url-v1\n".utf8)
        text += (isPrefix(target) ? "prefix\n" : "exact\n").utf8
        text += "\(keyID)\n\(expiry)\n".utf8
        text += covered(target)
        return HashFunction.sha256.code(of: text, key)
    }

    /// A complete path token: Base64url of version, kind, key identifier, expiry, covered text and code.
    static func pathToken(_ target: Target, keyID: String, expiry: Int64, _ key: SymmetricKey) -> String {
        var body: [UInt8] = [1, isPrefix(target) ? 1 : 0, UInt8(truncatingIfNeeded: keyID.utf8.count)]
        body += keyID.utf8
        for shift in stride(from: Int64(40), through: 0, by: -8) {
            body.append(UInt8(truncatingIfNeeded: expiry >> shift))
        }
        body += covered(target)
        return Base64URL.encode(body + tokenCode(body, key))
    }

    /// Parses a path token; nil if it is malformed. Its code is not checked.
    static func parse(pathToken token: String) -> PathToken? {
        guard token.utf8.count <= tokenLimit, let bytes = Base64URL.decode(token), bytes.count > codeLength + 9 else {
            return nil
        }
        let body = Array(bytes.dropLast(codeLength))
        let length = Int(body[2])
        guard body[0] == 1, body[1] <= 1, body.count > 9 + length else { return nil }
        let keyID = String(decoding: body[3..<3 + length], as: UTF8.self)
        guard TokensFile.isIdentifier(keyID) else { return nil }
        let expiry = body[(3 + length)..<(9 + length)].reduce(Int64(0)) { $0 << 8 | Int64($1) }
        return PathToken(
            keyID: keyID, expiry: min(expiry, latest), isPrefix: body[1] == 1, text: Array(body[(9 + length)...]),
            body: body, code: Array(bytes.suffix(codeLength)))
    }

    /// The code of a path token's body.
    static func tokenCode(_ body: [UInt8], _ key: SymmetricKey) -> [UInt8] {
        HashFunction.sha256.code(of: Array("larder-path-v1\n".utf8) + body, key)
    }

    /// The covered text: the decoded prefix, or the normalised path and query. The normalised path contains no `?`.
    static func covered(_ target: Target) -> [UInt8] {
        switch target {
        case .prefix(let prefix): prefix.decoded
        case .exact(let path, let query):
            Array((path.normalized + (query.map { "?" + PercentEncoding.normalized(query: $0) } ?? "")).utf8)
        }
    }

    private static func isPrefix(_ target: Target) -> Bool {
        if case .prefix = target { true } else { false }
    }
}
