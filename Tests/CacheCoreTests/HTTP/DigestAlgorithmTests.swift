import CacheCore
import Testing

/// The preferences of `Want-Content-Digest` and `Want-Repr-Digest` (RFC 9530 §4).
@Suite struct DigestAlgorithmTests {
    @Test(
        "The offered algorithm with the highest preference is chosen",
        arguments: [
            (["sha-256=1"], .sha256), (["sha-512=3, sha-256=10"], .sha256), (["sha-512=10, sha-256=3"], .sha512),
            (["sha-256=5", "sha-512=6"], .sha512), (["sha-512=5, sha-256=5"], .sha256),
            (["sha-256=0, sha-512=1"], .sha512), (["md5=10, unixsum=9, sha-512=1"], .sha512),
            (["sha-256=1;a=b;c"], .sha256), (["sha-256=1, sha-256=0, sha-512=1"], .sha512),
            // Members of the wrong type or out of range are ignored.
            (["sha-256=11, sha-512=1"], .sha512), (["sha-256=-1, sha-512=1"], .sha512),
            (["sha-256=1.5, sha-512=1"], .sha512), (["sha-256=\"9\", sha-512=1"], .sha512),
            (["sha-256, sha-512=1"], .sha512), (["sha-256=(1), sha-512=1"], .sha512),
        ] as [([String], DigestAlgorithm)])
    func preferred(lines: [String], expected: DigestAlgorithm) {
        #expect(DigestAlgorithm.preferred(in: lines) == expected)
    }

    @Test(
        "A field without an acceptable algorithm, and an invalid field, is ignored",
        arguments: [
            [], [""], ["sha-256=0"], ["sha-256=0, sha-512=0"], ["md5=10"], ["sha-256=11"],
            ["sha-256=999999999999999"], ["sha-256=9999999999999999"], ["SHA-256=1"], ["sha-256=1,"], ["sha-256=1 x"],
            ["sha-256=1;", "sha-512=1"], ["=1"], ["sha-256==1"], ["sha-256=1\u{0}"], ["sha-256=é"],
            ["sha-256=1, " + String(repeating: "a", count: 1024)],
        ] as [[String]])
    func ignored(lines: [String]) {
        #expect(DigestAlgorithm.preferred(in: lines) == nil)
    }
}
