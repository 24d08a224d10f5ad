package import CacheCore
import Cryptography

extension VerificationKey {
    /// Makes a key from a JSON Web Key (RFC 7517): `oct`, `RSA`, `EC` with P-256, P-384 or P-521 (RFC 7518 §6), or
    /// `OKP` with Ed25519 (RFC 8037 §2). Private members are ignored, and members with null, which some servers write for
    /// absent ones.
    ///
    /// Throws `.invalidField` with the member's name if a member is missing or invalid, the key is not for signatures
    /// (`use`, `key_ops`), or its type or algorithm is not supported.
    package init(jwk: JSON) throws(CacheError) {
        let jwk = jwk.withoutNullMembers
        if let use = jwk["use"], use != "sig" { throw .invalid("use", "The key is not for signatures.") }
        if let operations = jwk["key_ops"] {
            guard case .array(let operations) = operations, operations.contains("verify") else {
                throw .invalid("key_ops", "The key is not for the verification of signatures.")
            }
        }
        let only = jwk["alg"]?.string.flatMap(TokenAlgorithm.init)
        guard only != nil || jwk["alg"] == nil else { throw .invalid("alg", "The key's algorithm is not supported.") }
        let id = jwk["kid"]?.string
        guard id != nil || jwk["kid"] == nil else { throw .invalid("kid", "The key identifier must be a text.") }
        try self.init(Self.material(of: jwk), id: id, only: only)
    }

    /// The key of a JWK.
    private static func material(of jwk: JSON) throws(CacheError) -> Material {
        switch jwk["kty"] {
        case "oct": return .secret(SymmetricKey(try bytes("k", of: jwk)))
        case "RSA":
            let (modulus, exponent) = (try bytes("n", of: jwk), try bytes("e", of: jwk))
            guard let key = SignatureKey(rsaModulus: modulus, exponent: exponent) else {
                throw .invalid("n", "The RSA key is invalid, or has not 2048 to 8192 bits.")
            }
            return .pair(key)
        case "EC": return .pair(try ellipticCurve(jwk))
        case "OKP":
            guard jwk["crv"] == "Ed25519" else { throw .invalid("crv", "The key's curve is not supported.") }
            guard let key = SignatureKey(ed25519: try bytes("x", of: jwk)) else {
                throw .invalid("x", "The Ed25519 key is invalid.")
            }
            return .pair(key)
        default: throw .invalid("kty", "The key's type is not supported.")
        }
    }

    /// The key of an EC JWK. Both coordinates have the full length of the curve (RFC 7518 §6.2.1.2); a point that is
    /// not on the curve is an error.
    private static func ellipticCurve(_ jwk: JSON) throws(CacheError) -> SignatureKey {
        let curves: [String: SignatureKey.Kind] = ["P-256": .p256, "P-384": .p384, "P-521": .p521]
        guard let curve = jwk["crv"]?.string.flatMap({ curves[$0] }) else {
            throw .invalid("crv", "The key's curve is not supported.")
        }
        let (x, y) = (try bytes("x", of: jwk), try bytes("y", of: jwk))
        guard x.count == curve.coordinateLength, y.count == curve.coordinateLength else {
            throw .invalid("x", "A coordinate of the EC key has the wrong length.")
        }
        guard let key = SignatureKey(curve, x: x, y: y) else {
            throw .invalid("x", "The EC key is not a point of its curve.")
        }
        return key
    }

    /// The bytes of a Base64url member.
    private static func bytes(_ name: String, of jwk: JSON) throws(CacheError) -> [UInt8] {
        guard case .string(let text)? = jwk[name], text.utf8.count <= 4096, let bytes = Base64URL.decode(text),
            !bytes.isEmpty
        else { throw .invalid(name, "The member is missing or not Base64url.") }
        return bytes
    }
}
