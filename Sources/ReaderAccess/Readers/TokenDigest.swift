import CacheCore
import Cryptography

/// SHA-256 of a token. Comparisons take constant time. It has no description.
package struct TokenDigest: Hashable, Sendable {
    private let first, second, third, fourth: UInt64

    /// The digest of a token's bytes.
    package init(of token: some StringProtocol) { self.init(of: Array(token.utf8)) }

    /// The digest of bytes.
    init(of bytes: [UInt8]) {
        (first, second, third, fourth) = HashFunction.sha256.digest(of: bytes).withUnsafeBytes { bytes in
            (
                bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self),
                bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self),
                bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
            )
        }
    }

    /// Nil unless the text has 64 hexadecimal digits.
    package init?(hexDigits text: String) {
        guard text.utf8.count == 64, text.utf8.allSatisfy(Self.isDigit) else { return nil }
        let words = stride(from: 0, to: 64, by: 16).map { start in
            UInt64(String(text.utf8.dropFirst(start).prefix(16)) ?? "", radix: 16).map { UInt64(bigEndian: $0) } ?? 0
        }
        (first, second, third, fourth) = (words[0], words[1], words[2], words[3])
    }

    /// 64 lower-case hexadecimal digits, for the tokens file.
    package var hexDigits: String {
        [first, second, third, fourth].map { word in
            withUnsafeBytes(of: word) { $0.hexDigits }
        }.joined()
    }

    package static func == (left: Self, right: Self) -> Bool {
        (left.first ^ right.first) | (left.second ^ right.second) | (left.third ^ right.third)
            | (left.fourth ^ right.fourth) == 0
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (97...102).contains(byte | 0x20)
    }
}
