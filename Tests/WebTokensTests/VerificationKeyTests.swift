import CacheCore
import TestKeys
import Testing

@testable import WebTokens

struct VerificationKeyTests {
    @Test(
        "Unusable keys are refused with the name of the member",
        arguments: [
            (#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#, "n"), (#"{"kty":"RSA","e":"AQAB"}"#, "n"),
            // Anyone could sign for the exponent 1; an even one has no private key.
            (#"{"kty":"RSA","n":"\#(TokenVectors.rsaModulus)","e":"AQ"}"#, "n"),
            (#"{"kty":"RSA","n":"\#(TokenVectors.rsaModulus)","e":"BA"}"#, "n"),
            (#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#, "x"),
            (
                #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
                    + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a1"}"#, "y"
            ),
            (
                #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
                    + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a4"}"#, "x"
            ),
            (
                #"{"kty":"EC","crv":"P-384","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
                    + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#, "x"
            ),
            (#"{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}"#, "crv"),
            (#"{"kty":"OKP","crv":"X25519","x":"AA"}"#, "crv"), (#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#, "x"),
            (#"{"kty":"oct"}"#, "k"), (#"{"kty":"oct","k":"AAAA"}"#, "key"), (#"{"kty":"oct","k":""}"#, "k"),
            (#"{"kty":"AKP"}"#, "kty"), (#"{}"#, "kty"), (#"[]"#, "kty"),
            (#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","use":"enc"}"#, "use"),
            (
                #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","key_ops":["sign"]}"#,
                "key_ops"
            ),
            (#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","alg":"ES256"}"#, "key"),
            (#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","alg":"none"}"#, "alg"),
            (#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":1}"#, "kid"),
        ])
    func unusable(_ jwk: String, _ member: String) throws {
        let json = try JSONParser.parse(jwk.utf8)
        let error = #expect(throws: CacheError.self) { try VerificationKey(jwk: json) }
        #expect(error?.code == .invalidField(member))
    }

    @Test("PEM public keys of all supported types verify the signatures of their private keys")
    func publicPEM() throws {
        let (p256, p384, p521) = (TestKey.ec("P-256"), TestKey.ec("P-384"), TestKey.ec("P-521"))
        let (ed25519, rsa) = (TestKey("ED25519"), TestKey.rsa())
        let pairs: [(private: String, public: String, TokenAlgorithm)] = [
            (p256.pkcs8, p256.publicPEM, .es256), (p384.pkcs8, p384.publicPEM, .es384),
            (p521.pkcs8, p521.publicPEM, .es512), (ed25519.pkcs8, ed25519.publicPEM, .edDSA),
            (rsa.pkcs8, rsa.publicPEM, .rs512), (rsa.pkcs8, rsa.pkcs1Public, .ps256),
        ]
        for pair in pairs {
            let token = try JSONWebToken.sign(["sub": "a"], with: try SigningKey(pem: pair.private, algorithm: pair.2))
            let keys = JSONWebKeySet([try VerificationKey(pem: pair.public)])
            #expect(try JSONWebToken.parse(token).verifiedClaims(with: keys, allowing: [pair.2]) == ["sub": "a"])
        }
        for text in [
            "", p256.pkcs8, p256.traditional, rsa.traditional, TestKey.rsa(bits: 1024).publicPEM,
            TestKey.ec("secp256k1").publicPEM, TestKey("X25519").publicPEM,
        ] {
            #expect(throws: CacheError.self) { try VerificationKey(pem: text) }
        }
    }

    @Test("A key verifies nothing with an algorithm of another type")
    func foreignAlgorithms() throws {
        let secret = Array(repeating: UInt8(1), count: 32)
        let key = try VerificationKey(secret: secret)
        let code = try SigningKey(secret: secret, algorithm: .hs256).signature(for: [1, 2, 3])
        for algorithm in TokenAlgorithm.allCases {
            #expect(key.isValid(code, of: [1, 2, 3], algorithm) == (algorithm == .hs256), "\(algorithm)")
        }
    }

    @Test("An HMAC key allows the algorithms that its length suffices for")
    func secretAlgorithms() throws {
        for (length, algorithms) in [
            (32, [TokenAlgorithm.hs256]), (47, [.hs256]), (48, [.hs256, .hs384]), (64, [.hs256, .hs384, .hs512]),
        ] {
            let key = try VerificationKey(secret: Array(repeating: 1, count: length))
            #expect(key.algorithms == Set(algorithms))
        }
        #expect(throws: CacheError.self) { try VerificationKey(secret: Array(repeating: 1, count: 31)) }
    }
}

struct JSONWebKeySetTests {
    @Test("Members with null count as absent (RFC 7517 §4: all but kty are optional)")
    func nullMembers() throws {
        let members = #","kid":null,"use":null,"alg":null,"key_ops":null,"x5c":null}"#
        let keys = try JSONWebKeySet.parse(#"{"keys":[\#(TokenVectors.p256Key.dropLast() + members)]}"#.utf8)
        #expect(keys.skipped == 0)
        #expect(keys.candidates(id: nil, algorithm: .es256).count == 1)
        #expect(try JSONWebKeySet.parse(#"{"keys":[{"kty":null}]}"#.utf8).skipped == 1)
    }

    @Test("Unusable keys are skipped, the others are found by kid and algorithm")
    func skipping() throws {
        func with(_ kid: String, _ jwk: String, _ more: String = "") -> String {
            jwk.dropLast() + #","kid":"\#(kid)"\#(more)}"#
        }
        let keys = try JSONWebKeySet.parse(
            #"""
            {"keys":[\#(with("a", TokenVectors.p256Key)),\#(with("b", TokenVectors.rsaKey)),
            \#(with("c", TokenVectors.p256Key, #","use":"enc""#)),{"kty":"AKP","kid":"d"},7,
            \#(with("b", TokenVectors.ed25519Key))],"other":1}
            """#.utf8)
        #expect(keys.keys.map(\.id) == ["a", "b", "b"])
        #expect(keys.skipped == 3)
        #expect(keys.candidates(id: "a", algorithm: .es256).count == 1)
        #expect(keys.candidates(id: "a", algorithm: .rs256).isEmpty)
        #expect(keys.candidates(id: "b", algorithm: .rs256).count == 1)
        #expect(keys.candidates(id: "b", algorithm: .edDSA).count == 1)
        #expect(keys.candidates(id: "c", algorithm: .es256).isEmpty)
        #expect(keys.candidates(id: nil, algorithm: .es256).map(\.id) == ["a"])
        #expect(keys.candidates(id: "", algorithm: .es256).isEmpty)
    }

    @Test("A token without kid is checked against at most 8 keys, all of which fit its algorithm")
    func tries() throws {
        let keys = JSONWebKeySet(
            try (0..<20).map { try VerificationKey(secret: Array(repeating: UInt8($0), count: 32), id: "k\($0)") })
        #expect(keys.candidates(id: nil, algorithm: .hs256).map(\.id) == (0..<8).map { "k\($0)" })
        #expect(keys.candidates(id: "k19", algorithm: .hs256).count == 1)
    }

    @Test("A token with kid is not checked against keys without one")
    func unnamedKeys() throws {
        let keys = JSONWebKeySet([try VerificationKey(secret: Array(repeating: 1, count: 32))])
        #expect(keys.candidates(id: "k1", algorithm: .hs256).isEmpty)
        #expect(keys.candidates(id: nil, algorithm: .hs256).count == 1)
    }

    @Test(
        "Documents that are no key sets are refused",
        arguments: ["", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[],"keys":[]}"#])
    func documents(_ text: String) {
        #expect(throws: CacheError.self) { try JSONWebKeySet.parse(text.utf8) }
    }

    @Test("A set with more than 256 keys is refused")
    func limit() {
        let keys = Array(repeating: "1", count: 257).joined(separator: ",")
        #expect(throws: CacheError.self) { try JSONWebKeySet.parse(#"{"keys":[\#(keys)]}"#.utf8) }
    }
}
