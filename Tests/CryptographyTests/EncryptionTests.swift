import Cryptography
import Testing

struct EncryptionTests {
    private let context = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    private let key = SymmetricKey(
        bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"))
    private let plain = bytes(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39")

    @Test("Sealed bytes of the specification are opened, and changed ones are not (GCM specification, test case 16)")
    func opening() {
        let sealed = bytes(
            "cafebabefacedbaddecaf888"
                + "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b")
        #expect(key.opened(sealed, authenticating: context) == plain)
        #expect(key.opened(sealed) == nil)
        #expect(SymmetricKey(Array(repeating: 1, count: 32)).opened(sealed, authenticating: context) == nil)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(key.opened(changed, authenticating: context) == nil)
            #expect(key.opened(Array(sealed.prefix(index)), authenticating: context) == nil)
        }
    }

    @Test("Each sealing has a nonce of its own, and keys of other lengths seal nothing")
    func sealing() throws {
        let (first, second) = (key.sealed(plain, authenticating: context), key.sealed(plain, authenticating: context))
        #expect(first?.prefix(12) != second?.prefix(12))
        #expect(try key.opened(#require(first), authenticating: context) == plain)
        #expect(try key.opened(#require(key.sealed([]))) == [])
        #expect(SymmetricKey(Array(repeating: 1, count: 16)).sealed(plain) == nil)
    }

    @Test("The counter mode of NIST SP 800-38A F.5.5, as a whole and from each offset")
    func counterMode() {
        let key = SymmetricKey(bytes("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"))
        let plain = bytes(
            "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
                + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
        let sealed = bytes(
            "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
                + "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6")
        // The sum carries into the second byte from the right.
        for offset in 0..<64 {
            var result = Array(plain[offset...])
            let block = 0xF8F9_FAFB_FCFD_FEFF + UInt64(offset / 16)
            let isDone = result.withUnsafeMutableBytes { bytes in
                key.applyCounterMode(
                    UnsafeRawBufferPointer(bytes), into: bytes, nonce: 0xF0F1_F2F3_F4F5_F6F7, block: block,
                    skipping: offset % 16)
            }
            #expect(isDone && result == Array(sealed[offset...]), "offset \(offset)")
        }
    }
}
