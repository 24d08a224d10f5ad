import CacheCore
import TestKeys
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
    private static func pem(_ algorithm: TokenAlgorithm) -> String {
        switch algorithm {
        case .es256: TestKey.ec("P-256").pkcs8
        case .es384: TestKey.ec("P-384").traditional
        case .es512: TestKey.ec("P-521").pkcs8
        case .edDSA: TestKey("ED25519").pkcs8
        case .rs256, .ps384: rsa.traditional
        default: rsa.pkcs8
        }
    }

    private static let rsa = TestKey.rsa()

    @Test("Each algorithm signs tokens that its verification key accepts", arguments: TokenAlgorithm.allCases)
    func roundTrip(_ algorithm: TokenAlgorithm) throws {
        let key =
            try algorithm.leastSecretBytes.map {
                try SigningKey(secret: Array(repeating: 3, count: $0), algorithm: algorithm)
            } ?? SigningKey(pem: Self.pem(algorithm), algorithm: algorithm)
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
        let p256 = TestKey.ec("P-256")
        let cases: [(String, TokenAlgorithm)] = [
            (p256.pkcs8, .es384), (p256.pkcs8, .rs256), (p256.pkcs8, .hs256), (p256.pkcs8, .edDSA),
            (p256.publicPEM, .es256), ("", .es256), (TestKey.rsa(bits: 1024).pkcs8, .rs256),
            (TestKey.ec("secp256k1").pkcs8, .es256), (TestKey("X25519").pkcs8, .edDSA),
            ("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----", .es256),
            ("-----BEGIN PRIVATE KEY-----\nAAAA", .es256), (String(p256.pkcs8.dropLast(30)), .es256),
            ("-----BEGIN PRIVATE KEY-----\nA*AA\n-----END PRIVATE KEY-----", .es256),
            (Self.rsa.pkcs8, .es256), (Self.sec1, .es512),
            // The private number of another key, with the public point of this one.
            (Self.sec1.replacing("KZmhVXA", with: "KZmhVXB"), .es256),
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
