import CacheCore
import TestChance
import Testing

struct Base64URLTests {
    @Test("The test vectors of RFC 4648 §10 without padding")
    func vectors() {
        let vectors = [
            ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ]
        for (text, encoded) in vectors {
            #expect(Base64URL.encode(text.utf8) == encoded)
            #expect(Base64URL.decode(encoded) == Array(text.utf8))
        }
        #expect(Base64URL.encode([0xFB, 0xFF, 0xFE]) == "-__-")
    }

    @Test(
        "Padding, other alphabets, white space, lone characters and non-zero spare bits are refused",
        arguments: ["Zg==", "Zm8=", "+//+", "Zm9v\n", " Zm9v", "Z", "Zm9vY", "Zh", "Zm9", "Zm9vYh", "é", "Zm9v."])
    func strictness(_ text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test("Random bytes survive a round trip")
    func roundTrip() {
        var (random, seed) = SeededRandom.announced()
        for length in 0..<300 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes, "seed \(seed)")
        }
    }
}
