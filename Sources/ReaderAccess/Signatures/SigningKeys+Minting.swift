package import CacheCore
import Cryptography
import WebTokens

/// The order for a signed content URL.
package struct SignatureRequest: Hashable, Sendable {
    /// The covered content.
    package enum Scope: String, Hashable, Sendable, ChoiceCodable {
        /// The path with its query.
        case exact
        /// The directory of the path, and all paths below it.
        case prefix
    }

    /// The form of the signed URL.
    package enum Form: String, Hashable, Sendable, ChoiceCodable {
        /// `?exp=…&kid=…&sig=…`.
        case query
        /// `/t/{token}/o/…`; relative URIs of playlists inherit the token.
        case path
        /// `?URISigningPackage=…` (RFC 9246).
        case uriSigning
    }

    /// The path `/o/{origin}/…`, with its query if there is one. With the scope `prefix` everything up to the last
    /// slash is the prefix.
    package var path: String
    package var scope: Scope
    package var form: Form
    /// The end of the signature, rounded down to seconds.
    package var expiresAt: Timestamp
    /// The key; nil for the last one in the order of names that fits the form.
    package var keyID: String?

    /// The path without its query, or with the scope `prefix` its directory.
    package var coveredPath: String {
        let path = path.prefix { $0 != "?" }
        guard scope == .prefix, let slash = path.lastIndex(of: "/") else { return String(path) }
        return String(path[...slash])
    }

    package init(path: String, scope: Scope, form: Form, expiresAt: Timestamp, keyID: String? = nil) {
        self.path = path
        self.scope = scope
        self.form = form
        self.expiresAt = expiresAt
        self.keyID = keyID
    }
}

/// A signed content URL without scheme and authority. Its description hides the signature.
package struct SignedURL: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// Path and query in their normal form (RFC 3986 §6.2.2): ASCII without blanks.
    package let target: String
    package let expiresAt: Timestamp
    package let keyID: String

    package var description: String { "(signed URL of \(keyID))" }
    package var debugDescription: String { description }
}

extension SigningKeys {
    /// Makes a signed content URL.
    ///
    /// Throws `.invalidField` with `path` if it is no content path, with `kid` if the key is unknown or does not fit
    /// the form, and with `expiresAt` if it lies before 1970 or after 9999.
    package func sign(_ request: SignatureRequest) throws(CacheError) -> SignedURL {
        let expiry = request.expiresAt.seconds
        guard (0...SignedText.latest).contains(expiry) else {
            throw .invalid("expiresAt", "The end of the signature must lie in the years 1970 to 9999.")
        }
        let mark = request.path.utf8.firstIndex(of: UInt8(ascii: "?"))
        let path = String(request.path[..<(mark ?? request.path.endIndex)])
        let query = mark.map { String(request.path[request.path.utf8.index(after: $0)...]) }
        let target = try Self.target(path, query, request.scope)
        let keyID = try keyID(for: request)
        let plain =
            (PercentEncoding.normalized(path: path) ?? path)
            + (query.map { "?" + PercentEncoding.normalized(query: $0) } ?? "")
        let url =
            switch request.form {
            case .query: try queryURL(plain, target, keyID, expiry)
            case .path: try pathURL(plain, target, keyID, expiry)
            case .uriSigning: try uriSigningURL(plain, target, keyID, expiry)
            }
        return SignedURL(target: url, expiresAt: Timestamp(seconds: expiry), keyID: keyID)
    }

    /// The covered content of a path.
    private static func target(
        _ path: String, _ query: String?, _ scope: SignatureRequest.Scope
    ) throws(CacheError) -> SignedText.Target {
        let parts = path.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 3, omittingEmptySubsequences: false)
        guard let content = ContentPath(path), parts.count == 4, parts[1].elementsEqual("o".utf8), !parts[2].isEmpty,
            !path.utf8.contains(UInt8(ascii: "#")), query.map({ !$0.utf8.contains(UInt8(ascii: "#")) }) ?? true
        else {
            throw .invalid("path", "A path like /o/media/a.mp4 is expected here, without dot segments and fragment.")
        }
        guard query.map({ PresentedSignature.strip(target: "/?" + $0).presented == nil }) ?? true else {
            throw .invalid("path", "The path is signed already; remove its signature parameters.")
        }
        guard scope == .prefix else { return .exact(content, query: query) }
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
        guard let prefix = PathPrefix(path[...slash]) else {
            throw .invalid("path", "The prefix is too long; 1024 bytes are allowed.")
        }
        return .prefix(prefix)
    }

    /// The chosen or preferred key.
    private func keyID(for request: SignatureRequest) throws(CacheError) -> String {
        let secretsOnly = request.form != .uriSigning
        guard let chosen = request.keyID else {
            guard let id = preferredID(secretsOnly: secretsOnly) else {
                throw .invalid("kid", "No signing key fits; add one to access.signing.keysDirectory.")
            }
            return id
        }
        guard secretsOnly ? secret(chosen) != nil : signingKey(chosen) != nil else {
            throw .invalid("kid", "The signing key is unknown, or cannot sign this form.")
        }
        return chosen
    }

    private func hmacKey(_ id: String) throws(CacheError) -> SymmetricKey {
        guard let key = secret(id) else { throw .invalid("kid", "The signing key is unknown.") }
        return key
    }

    private func queryURL(
        _ url: String, _ target: SignedText.Target, _ keyID: String, _ expiry: Int64
    ) throws(CacheError) -> String {
        let code = SignedText.queryCode(target, keyID: keyID, expiry: expiry, try hmacKey(keyID))
        var text = url + (url.utf8.contains(UInt8(ascii: "?")) ? "&" : "?")
        text += "exp=\(expiry)&kid=\(keyID)&sig=\(Base64URL.encode(code))"
        if case .prefix(let prefix) = target { text += "&prefix=" + prefix.encoded }
        return text
    }

    private func pathURL(
        _ url: String, _ target: SignedText.Target, _ keyID: String, _ expiry: Int64
    ) throws(CacheError) -> String {
        let token = SignedText.pathToken(target, keyID: keyID, expiry: expiry, try hmacKey(keyID))
        guard token.utf8.count <= SignedText.tokenLimit else {
            throw .invalid("path", "The path is too long for a token in the path.")
        }
        return "/t/" + token + url
    }

    /// An RFC 9246 URL. The container is a regular expression, because the authority of later requests is not known.
    private func uriSigningURL(
        _ url: String, _ target: SignedText.Target, _ keyID: String, _ expiry: Int64
    ) throws(CacheError) -> String {
        guard let key = signingKey(keyID) else { throw .invalid("kid", "The signing key is unknown.") }
        let container: String
        switch target {
        case .exact:
            container = ExtendedRegex.escaped(String(decoding: SignedText.covered(target), as: UTF8.self))
        case .prefix:
            // The URI of a request is compared in its normal form; it keeps the spelling of reserved characters.
            let file = url.prefix { $0 != "?" }
            let folder = String(file[...(file.lastIndex(of: "/") ?? file.startIndex)])
            container = ExtendedRegex.escaped(folder) + "(.|%2F|%5C)*"
        }
        let claims: JSON = [
            "cdniv": 1, "exp": .integer(expiry), "cdniuc": .string("regex:[^:/]*://[^/]*" + container),
        ]
        guard container.utf8.count <= ExtendedRegex.patternLimit - 32 else {
            throw .invalid("path", "The path is too long for an RFC 9246 signature.")
        }
        let token = try JSONWebToken.sign(claims, header: [JSON.Member("kid", .string(keyID))], with: key)
        let separator = url.utf8.contains(UInt8(ascii: "?")) ? "&" : "?"
        return url + separator + SigningPackage.name + "=" + token
    }
}
