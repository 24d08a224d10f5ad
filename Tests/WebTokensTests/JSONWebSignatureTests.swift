import CacheCore
import TestChance
import TestKeys
import Testing

@testable import WebTokens

struct JSONWebSignatureTests {
    private let everything = Set(TokenAlgorithm.allCases)

    private func keys(_ jwks: String...) throws -> JSONWebKeySet {
        try JSONWebKeySet.parse(#"{"keys":[\#(jwks.joined(separator: ","))]}"#.utf8)
    }

    @Test(
        "The examples of RFC 7515 and RFC 8037, and a PS256 token of another library, verify",
        arguments: TokenVectors.all)
    func vectors(_ token: String, _ jwk: String, _ algorithm: String) throws {
        let parsed = try JSONWebSignature.parse(token)
        #expect(parsed.algorithm.rawValue == algorithm)

        let payload = try parsed.verifiedPayload(with: try keys(jwk), allowing: [parsed.algorithm])

        #expect(Base64URL.encode(payload) == token.split(separator: ".")[1])
    }

    @Test("No single changed character of the examples verifies", arguments: TokenVectors.all)
    func flippedCharacters(_ token: String, _ jwk: String, _ algorithm: String) throws {
        let keys = try keys(jwk)
        let characters = Array(token.utf8)
        for index in characters.indices {
            var changed = characters
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let text = String(decoding: changed, as: UTF8.self)
            #expect(throws: TokenRefusal.self, "character \(index)") {
                try JSONWebSignature.parse(text).verifiedPayload(with: keys, allowing: everything)
            }
        }
    }

    @Test("The unsecured token of RFC 7515 A.5 and spellings of none are refused")
    func none() throws {
        #expect(throws: TokenRefusal.algorithmNotAllowed) { try JSONWebSignature.parse(TokenVectors.unsecured) }
        for name in ["none", "None", "NONE", "nOnE", ""] {
            let header = Base64URL.encode(#"{"alg":"\#(name)"}"#.utf8)
            #expect(throws: TokenRefusal.algorithmNotAllowed) {
                try JSONWebSignature.parse("\(header).\(TokenVectors.payload).")
            }
        }
    }

    @Test("An HMAC with the RSA or EC public key as its secret is refused")
    func algorithmConfusion() throws {
        let rsa = try keys(TokenVectors.rsaKey)
        let modulus = try #require(Base64URL.decode(TokenVectors.rsaModulus))
        let secrets = [modulus, Array(TokenVectors.rsaKey.utf8), Array(TokenVectors.p256Key.utf8)]
        for secret in secrets {
            let key = try SigningKey(secret: secret, algorithm: .hs256)
            let forged = try JSONWebToken.sign(["sub": "a"], with: key)
            for keys in [rsa, try keys(TokenVectors.p256Key)] {
                #expect(throws: TokenRefusal.unknownKey) {
                    try JSONWebSignature.parse(forged).verifiedClaims(with: keys, allowing: everything)
                }
            }
            // The allow-list alone refuses it too.
            #expect(throws: TokenRefusal.algorithmNotAllowed) {
                try JSONWebSignature.parse(forged).verifiedClaims(with: rsa, allowing: [.rs256])
            }
        }
    }

    @Test("A token cannot choose an algorithm outside the allow-list, even with a fitting key")
    func allowList() throws {
        let keys = try keys(TokenVectors.p256Key)
        #expect(throws: TokenRefusal.algorithmNotAllowed) {
            try JSONWebSignature.parse(TokenVectors.es256).verifiedPayload(with: keys, allowing: [.rs256, .es384])
        }
    }

    @Test("alg of a JWK narrows the algorithms of its key")
    func algorithmOfKey() throws {
        let narrowed = TokenVectors.rsaKey.dropLast() + #","alg":"PS256"}"#
        #expect(throws: TokenRefusal.unknownKey) {
            try JSONWebSignature.parse(TokenVectors.rs256).verifiedPayload(
                with: try keys(String(narrowed)), allowing: [.rs256, .ps256])
        }
    }

    @Test("ES256 signatures in DER, of zeros, of wrong length or of another curve are refused")
    func malformedSignatures() throws {
        let signing = try SigningKey(pem: TestKey.ec("P-256").pkcs8, algorithm: .es256)
        let keys = JSONWebKeySet([try signing.verificationKey()])
        let token = try JSONWebToken.sign(["sub": "a"], with: signing)
        let input = token.split(separator: ".").dropLast().joined(separator: ".")
        let raw = try #require(Base64URL.decode(token.split(separator: ".")[2]))
        let numbers = [raw.prefix(32), raw.suffix(32)].flatMap { [0x02, 0x21, 0x00] + $0 }
        let der: [UInt8] = [0x30, UInt8(numbers.count)] + numbers
        let bad: [[UInt8]] = [
            der, [], [0], Array(repeating: 0, count: 64), Array(raw.dropLast()), raw + [0], Array(raw.prefix(32)),
            Array(repeating: 0, count: 32) + raw.suffix(32), raw.prefix(32) + Array(repeating: 0, count: 32),
            Array(repeating: 0xFF, count: 64), Array(raw.reversed()),
        ]
        #expect(try JSONWebSignature.parse(token).verifiedClaims(with: keys, allowing: [.es256]) == ["sub": "a"])
        for signature in bad {
            #expect(throws: TokenRefusal.badSignature) {
                try JSONWebSignature.parse(input + "." + Base64URL.encode(signature))
                    .verifiedClaims(with: keys, allowing: [.es256])
            }
        }

        let other = try SigningKey(pem: TestKey.ec("P-384").pkcs8, algorithm: .es384)
        #expect(throws: TokenRefusal.unknownKey) {
            try JSONWebSignature.parse(try JSONWebToken.sign(["sub": "a"], with: other))
                .verifiedClaims(with: keys, allowing: everything)
        }
    }

    @Test("A short, empty or shortened HMAC or RSA signature is refused")
    func shortSignatures() throws {
        for (token, jwk) in [(TokenVectors.hs256, TokenVectors.secretKey), (TokenVectors.rs256, TokenVectors.rsaKey)] {
            let parts = token.split(separator: ".")
            let signature = try #require(Base64URL.decode(parts[2]))
            for length in [0, 1, 16, signature.count - 1] {
                let text = "\(parts[0]).\(parts[1])." + Base64URL.encode(signature.prefix(length))
                #expect(throws: TokenRefusal.badSignature) {
                    try JSONWebSignature.parse(text).verifiedPayload(with: try keys(jwk), allowing: everything)
                }
            }
        }
    }

    @Test("Malformed tokens are refused as such")
    func malformed() {
        let header = Base64URL.encode(#"{"alg":"HS256"}"#.utf8)
        let texts = [
            "", ".", "..", "...", "a.b", header, "\(header).e30", "\(header).e30.AA.AA", "\(header).e30.AA.AA.AA",
            "\(header)=.e30.AA", " \(header).e30.AA", "\(header).e30.AA\n", "\(header).é.AA",
            Base64URL.encode("[]".utf8) + ".e30.AA", Base64URL.encode("{}".utf8) + ".e30.AA",
            Base64URL.encode(#"{"alg":1}"#.utf8) + ".e30.AA",
            Base64URL.encode(#"{"alg":"HS256","alg":"HS256"}"#.utf8) + ".e30.AA",
            Base64URL.encode(#"{"alg":"none","alg":"HS256"}"#.utf8) + ".e30.AA",
            Base64URL.encode(#"{"alg":"HS256","kid":7}"#.utf8) + ".e30.AA",
            Base64URL.encode(#"{"alg":"HS256"} x"#.utf8) + ".e30.AA", Base64URL.encode([0xFF, 0xFE]) + ".e30.AA",
        ]
        for text in texts {
            #expect(throws: TokenRefusal.malformed, "\(text)") { try JSONWebSignature.parse(text) }
        }
    }

    @Test("A token above 16 KiB is refused before it is decoded, one of 16 KiB is parsed")
    func size() throws {
        let header = Base64URL.encode(#"{"alg":"HS256"}"#.utf8)
        let fitting = "\(header)." + String(repeating: "A", count: 16384 - header.utf8.count - 4) + ".AA"
        #expect(fitting.utf8.count == 16 * 1024)
        #expect(try JSONWebSignature.parse(fitting).algorithm == .hs256)
        #expect(throws: TokenRefusal.tooLarge) { try JSONWebSignature.parse(fitting + "AAAA") }
    }

    @Test("crit is refused unless its names are understood, unique, in the header and no names of the RFC")
    func critical() throws {
        func parse(_ header: String, _ understood: Set<String> = []) throws -> JSONWebSignature {
            try JSONWebSignature.parse(Base64URL.encode(header.utf8) + ".e30.AA", understanding: understood)
        }
        let header = #"{"alg":"HS256","crit":["b64"],"b64":false}"#
        #expect(throws: TokenRefusal.unsupportedCritical) { try parse(header) }
        #expect(try parse(header, ["b64"]).algorithm == .hs256)
        for malformed in [#"[]"#, #"["x"]"#, #"["b64","b64"]"#, #"[1]"#, #""b64""#, "null"] {
            #expect(throws: TokenRefusal.malformed) {
                try parse(#"{"alg":"HS256","crit":\#(malformed),"b64":false}"#, ["b64", "x"])
            }
        }
        #expect(throws: TokenRefusal.unsupportedCritical) { try parse(#"{"alg":"HS256","crit":["alg"]}"#, ["alg"]) }
    }

    @Test("A key inside the header is not used")
    func embeddedKey() throws {
        let attacker = try SigningKey(pem: TestKey.ec("P-256").pkcs8, algorithm: .es256)
        let jwk = try JSONParser.parse(TokenVectors.p256Key.utf8)
        let token = try JSONWebToken.sign(
            ["sub": "a"], header: [JSON.Member("jwk", jwk), JSON.Member("jku", "http://127.0.0.1/")], with: attacker)
        #expect(throws: TokenRefusal.badSignature) {
            try JSONWebSignature.parse(token).verifiedClaims(
                with: try keys(TokenVectors.p256Key), allowing: [.es256])
        }
    }

    @Test("Claims with duplicate members, or that are no object, are refused")
    func claims() throws {
        let secret = Array(repeating: UInt8(7), count: 32)
        let keys = JSONWebKeySet([try VerificationKey(secret: secret)])
        for payload in [#"{"sub":"a","sub":"b"}"#, "[]", "1", "", "{", "\u{FEFF}{}"] {
            let input = Base64URL.encode(#"{"alg":"HS256"}"#.utf8) + "." + Base64URL.encode(payload.utf8)
            let code = try SigningKey(secret: secret, algorithm: .hs256).signature(for: Array(input.utf8))
            let parsed = try JSONWebSignature.parse(input + "." + Base64URL.encode(code))
            #expect(throws: TokenRefusal.malformed, "\(payload)") {
                try parsed.verifiedClaims(with: keys, allowing: [.hs256])
            }
            #expect(try parsed.verifiedPayload(with: keys, allowing: [.hs256]) == Array(payload.utf8))
        }
    }

    @Test("Random changes of valid tokens never verify and never trap")
    func mutations() throws {
        let (_, seed) = SeededRandom.announced()
        let keys = try keys(TokenVectors.secretKey, TokenVectors.p256Key, TokenVectors.ed25519Key)
        let tokens = [TokenVectors.hs256, TokenVectors.es256, TokenVectors.edDSA, TokenVectors.unsecured]
        for number in 0..<4000 as Range<UInt64> {
            let bytes = Mutation.input(number, seed: seed, from: tokens.map { Array($0.utf8) })
            let text = String(decoding: bytes, as: UTF8.self)
            guard !tokens.contains(text) else { continue }
            #expect(throws: TokenRefusal.self, "seed \(seed), input \(number)") {
                try JSONWebSignature.parse(text).verifiedPayload(with: keys, allowing: everything)
            }
        }
    }
}
