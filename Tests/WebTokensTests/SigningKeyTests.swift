import CacheCore
import Crypto
import CryptoExtras
import Testing

@testable import WebTokens

struct SigningKeyTests {
    /// A key as `openssl ecparam -genkey` writes it, for tests only.
    private static let sec1 = """
        -----BEGIN EC PARAMETERS-----
        BggqhkjOPQMBBw==
        -----END EC PARAMETERS-----
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIKZmhVXA8T+I9/pmOZd8AhZSboGvyrsdDwfWq1h+3msZoAoGCCqGSM49
        AwEHoUQDQgAE6u9gk+dGMzbpCUZkmHkS0NN4A7LC5tdPAPsYzwp7ROnL2ADa3jCH
        hOioB/5RUSO1BpdL1SFaWFXc/EYs/J/ukw==
        -----END EC PRIVATE KEY-----
        """

    /// A PEM key for each algorithm with key pairs.
    private static func pem(_ algorithm: TokenAlgorithm) throws -> String {
        switch algorithm {
        case .es256: P256.Signing.PrivateKey().pemRepresentation
        case .es384: P384.Signing.PrivateKey().pemRepresentation
        case .es512: P521.Signing.PrivateKey().pemRepresentation
        case .edDSA: Curve25519.Signing.PrivateKey().pemRepresentation
        case .rs256, .ps384: try rsa.get().pemRepresentation
        default: try rsa.get().pkcs8PEMRepresentation
        }
    }

    private static let rsa = Result { try _RSA.Signing.PrivateKey(keySize: .bits2048) }

    @Test("Each algorithm signs tokens that its verification key accepts", arguments: TokenAlgorithm.allCases)
    func roundTrip(_ algorithm: TokenAlgorithm) throws {
        let key =
            try algorithm.leastSecretBytes.map {
                try SigningKey(secret: Array(repeating: 3, count: $0), algorithm: algorithm)
            } ?? SigningKey(pem: try Self.pem(algorithm), algorithm: algorithm)
        let claims: JSON = ["sub": "a", "exp": 100]

        let token = try JSONWebToken.sign(claims, header: [JSON.Member("kid", "k1")], with: key)

        let keys = JSONWebKeySet([try key.verificationKey(id: "k1")])
        let parsed = try JSONWebToken.parse(token)
        #expect(parsed.header == ["alg": .string(algorithm.rawValue), "typ": "JWT", "kid": "k1"])
        #expect(try parsed.verifiedClaims(with: keys, allowing: [algorithm]) == claims)
        for other in TokenAlgorithm.allCases where other != algorithm {
            #expect(throws: TokenRefusal.algorithmNotAllowed) {
                try parsed.verifiedClaims(with: keys, allowing: [other])
            }
        }
    }

    @Test("A SEC 1 key behind EC PARAMETERS and text, with CRLF line ends, is read")
    func openSSLKey() throws {
        let key = try SigningKey(pem: "comment\n" + Self.sec1, algorithm: .es256)
        let crlf = try SigningKey(
            pem: Self.sec1.split(separator: "\n").joined(separator: "\r\n"), algorithm: .es256)
        let token = try JSONWebToken.sign(["sub": "a"], with: crlf)
        let keys = JSONWebKeySet([try key.verificationKey()])
        #expect(try JSONWebToken.parse(token).verifiedClaims(with: keys, allowing: [.es256]) == ["sub": "a"])
    }

    @Test("A key of another type, a public key and broken PEM are refused without the key in the message")
    func wrongKeys() throws {
        let p256 = P256.Signing.PrivateKey()
        let cases: [(String, TokenAlgorithm)] = [
            (p256.pemRepresentation, .es384), (p256.pemRepresentation, .rs256), (p256.pemRepresentation, .hs256),
            (p256.pemRepresentation, .edDSA), (p256.publicKey.pemRepresentation, .es256), ("", .es256),
            ("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----", .es256),
            ("-----BEGIN PRIVATE KEY-----\nAAAA", .es256), (String(p256.pemRepresentation.dropLast(30)), .es256),
            ("-----BEGIN PRIVATE KEY-----\nA*AA\n-----END PRIVATE KEY-----", .es256),
            (try Self.rsa.get().pemRepresentation, .es256), (Self.sec1, .es512),
        ]
        for (pem, algorithm) in cases {
            let error = #expect(throws: CacheError.self) { try SigningKey(pem: pem, algorithm: algorithm) }
            #expect(error?.code == .invalidField("key"))
            #expect(error?.cause == nil)
            for line in pem.split(separator: "\n") where line.count > 30 {
                #expect(error.map { !$0.message.contains(line) } ?? false)
            }
        }
    }

    @Test("A secret shorter than its hash is refused (RFC 7518 §3.2)")
    func shortSecrets() {
        for (algorithm, least) in [(TokenAlgorithm.hs256, 32), (.hs384, 48), (.hs512, 64)] {
            #expect(throws: CacheError.self) {
                try SigningKey(secret: Array(repeating: 1, count: least - 1), algorithm: algorithm)
            }
        }
        #expect(throws: CacheError.self) {
            try SigningKey(secret: Array(repeating: 1, count: 99), algorithm: .rs256)
        }
    }

    @Test("The header cannot override the key's algorithm, but typ")
    func header() throws {
        let key = try SigningKey(secret: Array(repeating: 1, count: 32), algorithm: .hs256)
        #expect(throws: CacheError.self) {
            try JSONWebToken.sign([:], header: [JSON.Member("alg", "none")], with: key)
        }
        let token = try JSONWebToken.sign([:], header: [JSON.Member("typ", "at+jwt")], with: key)
        #expect(try JSONWebToken.parse(token).header == ["alg": "HS256", "typ": "at+jwt"])
    }

    @Test("A claims set above the size limit is not signed")
    func size() throws {
        let key = try SigningKey(secret: Array(repeating: 1, count: 32), algorithm: .hs256)
        #expect(throws: CacheError.self) {
            try JSONWebToken.sign(["a": .string(String(repeating: "x", count: 16 * 1024))], with: key)
        }
    }
}
