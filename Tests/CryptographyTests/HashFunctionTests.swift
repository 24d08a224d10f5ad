import Cryptography
import Testing

/// The bytes of hexadecimal digits.
func bytes(_ digits: String) -> [UInt8] {
    let digits = digits.filter(\.isHexDigit)
    return stride(from: 0, to: digits.count, by: 2).map { index in
        UInt8(digits.dropFirst(index).prefix(2), radix: 16) ?? 0
    }
}

struct HashFunctionTests {
    @Test(
        "Digests of abc (FIPS 180-4, RFC 1321)",
        arguments: [
            (HashFunction.md5, "900150983cd24fb0d6963f7d28e17f72"),
            (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                .sha384,
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
            ),
            (
                .sha512,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                    + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
            ),
        ])
    func digests(_ function: HashFunction, _ digest: String) throws {
        #expect(function.digest(of: "abc".utf8) == bytes(digest))
        #expect(function.byteCount == bytes(digest).count)
        let running = try #require(RunningHash(function))
        for byte in "abc".utf8 {
            withUnsafeBytes(of: byte) { running.update($0) }
            // The digest of a part changes nothing.
            #expect(running.digest.count == function.byteCount)
        }
        #expect(running.digest == bytes(digest))
    }

    @Test("The SHA-256 of no bytes, and of a million (FIPS 180-4)")
    func lengths() {
        #expect(
            HashFunction.sha256.digest(of: [])
                == bytes("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
        #expect(
            HashFunction.sha256.digest(of: Array(repeating: UInt8(ascii: "a"), count: 1_000_000))
                == bytes("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"))
    }

    @Test("HMAC of a short and of a long key, and of an empty one (RFC 4231 §4.2, §4.7)")
    func codes() {
        let short = SymmetricKey(Array(repeating: 0x0B, count: 20))
        #expect(
            HashFunction.sha256.code(of: "Hi There".utf8, short)
                == bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"))
        #expect(
            HashFunction.sha384.code(of: "Hi There".utf8, short)
                == bytes(
                    "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6"))
        #expect(
            HashFunction.sha512.code(of: "Hi There".utf8, short)
                == bytes(
                    "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
                        + "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"))
        let long = SymmetricKey(Array(repeating: 0xAA, count: 131))
        #expect(
            HashFunction.sha256.code(of: "Test Using Larger Than Block-Size Key - Hash Key First".utf8, long)
                == bytes("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"))
        // RFC 2104 pads a key with zeros.
        #expect(
            HashFunction.sha256.code(of: [1], SymmetricKey([])) == HashFunction.sha256.code(of: [1], SymmetricKey([0])))
    }

    @Test("A derived key without salt (RFC 5869 A.3)")
    func derivation() {
        let key = HashFunction.sha256.derivedKey(from: SymmetricKey(Array(repeating: 0x0B, count: 22)), for: "")
        #expect(
            key.withUnsafeBytes { Array($0) }
                == bytes("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"))
    }
}
