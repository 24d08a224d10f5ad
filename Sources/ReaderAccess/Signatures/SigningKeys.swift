package import CacheCore
import Cryptography
import WebTokens

/// The keys for signed content URLs, by key identifier (`kid`). Several are valid at once, so that keys can be rotated.
/// It has no description.
package struct SigningKeys: Sendable {
    /// One file of the keys directory.
    package struct File: Sendable {
        /// The name without the directory; without its extension it is the `kid`.
        package var name: String
        package var content: [UInt8]

        package init(name: String, content: [UInt8]) {
            self.name = name
            self.content = content
        }
    }

    /// The use of a key.
    enum Key: Sendable {
        /// An HMAC secret: all three forms.
        case secret(SymmetricKey, SigningKey)
        /// An EC key pair: RFC 9246 only.
        case pair(SigningKey)
        /// The public half of an EC key pair: verification of RFC 9246 tokens only.
        case publicHalf
    }

    /// The least length of a secret in bytes.
    package static let leastBytes = 32
    private static let mostBytes = 16 * 1024
    private static let fileLimit = 256

    private let keys: [String: Key]
    /// The keys for RFC 9246 tokens.
    let verificationKeys: JSONWebKeySet

    /// No keys: all signatures are refused.
    package init() {
        keys = [:]
        verificationKeys = JSONWebKeySet([])
    }

    /// Makes the keys from the files of the directory. Hidden files are skipped.
    ///
    /// A file with the extension `.pem` holds a P-256 key: a private one, or a public one that can only verify. Any
    /// other file is an HMAC secret of at least 32 bytes; a secret that is text loses white space at its end.
    ///
    /// Throws `.invalidField` with the file name if the name is no valid `kid`, two files have the same `kid`, or the
    /// content is no key. No error contains a part of a key.
    package init(files: [File]) throws(CacheError) {
        let files = files.filter { !$0.name.hasPrefix(".") }.sorted { $0.name < $1.name }
        guard files.count <= Self.fileLimit else {
            throw .invalid("(keys)", "The directory has more than \(Self.fileLimit) signing keys.")
        }
        var keys: [String: Key] = [:]
        var verification: [VerificationKey] = []
        for file in files {
            let id = Self.keyID(ofFile: file.name)
            guard TokensFile.isIdentifier(id) else {
                throw .invalid(
                    file.name,
                    "The name of a signing key has 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_' and '-'.")
            }
            guard keys[id] == nil else {
                throw .invalid(file.name, "Another signing key has the same name.")
            }
            let (key, half) = try Self.key(file, id)
            keys[id] = key
            verification.append(half)
        }
        self.keys = keys
        verificationKeys = JSONWebKeySet(verification)
    }

    /// The key identifiers, sorted.
    package var ids: [String] { keys.keys.sorted() }

    /// The HMAC key of an identifier; nil if it is unknown or of another type.
    func secret(_ id: some StringProtocol) -> SymmetricKey? {
        if case .secret(let secret, _)? = keys[String(id)] { secret } else { nil }
    }

    /// The key that signs RFC 9246 tokens; nil if the identifier is unknown or the private half is missing.
    func signingKey(_ id: String) -> SigningKey? {
        switch keys[id] {
        case .secret(_, let key), .pair(let key): key
        case .publicHalf, nil: nil
        }
    }

    /// The identifier for new signatures without a chosen one: the last in the order of names that can sign.
    ///
    /// - Parameter secretsOnly: Whether the form needs an HMAC secret.
    func preferredID(secretsOnly: Bool) -> String? {
        keys.keys.filter { secretsOnly ? secret($0) != nil : signingKey($0) != nil }.max()
    }

    /// The file name without its last extension.
    private static func keyID(ofFile name: String) -> String {
        guard let period = name.lastIndex(of: "."), period != name.startIndex else { return name }
        return String(name[..<period])
    }

    /// The key of a file, and its half for verification.
    private static func key(_ file: File, _ id: String) throws(CacheError) -> (Key, VerificationKey) {
        guard file.content.count <= mostBytes else {
            throw .invalid(file.name, "The signing key has more than \(mostBytes) bytes.")
        }
        do {
            if file.name.hasSuffix(".pem") { return try pair(String(decoding: file.content, as: UTF8.self), id) }
            let secret = trimmed(file.content)
            let key = try SigningKey(secret: secret, algorithm: .hs256)
            return (.secret(SymmetricKey(secret), key), try key.verificationKey(id: id))
        } catch {
            let reason =
                file.name.hasSuffix(".pem")
                ? "The file holds no PEM key on the curve P-256."
                : "A signing key needs at least \(leastBytes) bytes."
            throw .invalid(file.name, reason)
        }
    }

    /// A private or public EC key.
    private static func pair(_ pem: String, _ id: String) throws(CacheError) -> (Key, VerificationKey) {
        guard pem.contains("PRIVATE KEY-----") else {
            let half = try VerificationKey(pem: pem, id: id)
            guard half.algorithms == [.es256] else {
                throw .invalid("key", "The public key is not on the curve P-256.")
            }
            return (.publicHalf, half)
        }
        let key = try SigningKey(pem: pem, algorithm: .es256)
        return (.pair(key), try key.verificationKey(id: id))
    }

    /// A secret that is ASCII text without the white space at its end; binary secrets unchanged.
    private static func trimmed(_ content: [UInt8]) -> [UInt8] {
        guard content.allSatisfy({ (0x20...0x7E).contains($0) || FieldText.isSpace($0) }) else { return content }
        return content.reversed().drop(while: FieldText.isSpace).reversed()
    }
}
