package import CacheCore

/// A parsed JSON Web Signature in compact serialization (RFC 7515 §7.1). Its payload is available after verification
/// only.
package struct JSONWebSignature: Sendable {
    /// Header names of RFC 7515 §4.1, which `crit` must not contain.
    private static let registered: Set<String> = [
        "alg", "jku", "jwk", "kid", "x5u", "x5c", "x5t", "x5t#S256", "typ", "cty", "crit",
    ]

    /// `alg` of the header; not trusted before verification.
    package let algorithm: TokenAlgorithm
    /// `kid` of the header; nil if there is none.
    package let keyID: String?
    /// The JOSE header; not trusted before verification.
    package let header: JSON
    private let payload: [UInt8]
    /// The signed bytes: header and payload with the period between them.
    private let input: [UInt8]
    private let signature: [UInt8]

    /// Parses a token. Keys inside the header (`jwk`, `jku`, `x5c`, `x5u`) are never used.
    ///
    /// Throws `.malformed` unless the text is three strict Base64url parts with a header of unique members,
    /// `.algorithmNotAllowed` for an unknown `alg` and `none`, and `.unsupportedCritical` for a `crit` that names
    /// anything but `understood`.
    package static func parse(
        _ text: some StringProtocol, understanding understood: Set<String> = []
    ) throws(TokenRefusal) -> JSONWebSignature {
        guard text.utf8.count <= JSONWebToken.sizeLimit else { throw .tooLarge }
        let bytes = Array(text.utf8)
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let header = decode(parts[0]), let payload = decode(parts[1]),
            let signature = decode(parts[2])
        else { throw .malformed }
        let document = try object(header)
        guard let name = document["alg"]?.string else { throw .malformed }
        guard let algorithm = TokenAlgorithm(rawValue: name) else { throw .algorithmNotAllowed }
        let keyID: String? = try document.claim("kid")
        try checkCritical(document, understood)
        return JSONWebSignature(
            algorithm: algorithm, keyID: keyID, header: document, payload: payload,
            input: Array(bytes[..<parts[1].endIndex]), signature: signature)
    }

    /// Verifies the signature and returns the payload.
    ///
    /// Throws `.algorithmNotAllowed`, `.unknownKey` or `.badSignature`.
    ///
    /// - Parameter allowed: The accepted algorithms. The token chooses among them only.
    package func verifiedPayload(
        with keys: JSONWebKeySet, allowing allowed: Set<TokenAlgorithm>
    ) throws(TokenRefusal) -> [UInt8] {
        guard allowed.contains(algorithm) else { throw .algorithmNotAllowed }
        let candidates = keys.candidates(id: keyID, algorithm: algorithm)
        guard !candidates.isEmpty else { throw .unknownKey }
        guard candidates.contains(where: { $0.isValid(signature, of: input, algorithm) }) else { throw .badSignature }
        return payload
    }

    /// Verifies the signature and returns the claims: a JSON object with unique members.
    ///
    /// Throws `.malformed` if the payload is no such object, else as ``verifiedPayload(with:allowing:)``.
    package func verifiedClaims(
        with keys: JSONWebKeySet, allowing allowed: Set<TokenAlgorithm>
    ) throws(TokenRefusal) -> JSON {
        try Self.object(try verifiedPayload(with: keys, allowing: allowed))
    }

    /// Checks `crit`: a list that is not empty, of unique names that are understood, are no names of the RFC itself,
    /// and occur in the header.
    private static func checkCritical(_ header: JSON, _ understood: Set<String>) throws(TokenRefusal) {
        guard let entries: [String] = try header.claim("crit") else { return }
        guard !entries.isEmpty else { throw .malformed }
        var names: Set<String> = []
        for name in entries {
            guard names.insert(name).inserted, header[name] != nil else { throw .malformed }
            guard understood.contains(name), !registered.contains(name) else { throw .unsupportedCritical }
        }
    }

    /// Decodes one Base64url part.
    private static func decode(_ part: ArraySlice<UInt8>) -> [UInt8]? {
        Base64URL.decode(String(decoding: part, as: UTF8.self))
    }

    /// Parses a JSON object. The parser's message is dropped, because it may contain names from the token.
    private static func object(_ bytes: [UInt8]) throws(TokenRefusal) -> JSON {
        guard let json = try? JSONParser.parse(bytes), case .object = json else { throw .malformed }
        return json
    }
}
