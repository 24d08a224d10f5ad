/// Arithmetic of CRC-32C checksums (RFC 3720 §12.1). `CacheStore` computes the checksums of bytes.
package enum CRC32C {
    /// The checksum of two consecutive runs, from their checksums and the length of the second, which must be below 16
    /// MiB.
    package static func combine(_ first: UInt32, _ second: UInt32, secondLength: Int64) -> UInt32 {
        guard first != 0 else { return second }
        return zeros.withUnsafeBufferPointer { tables in
            var (sum, length, table) = (first, secondLength, 0)
            while length > 0 {
                if length & 1 != 0 {
                    sum =
                        tables[table + Int(sum & 0xFF)] ^ tables[table + 256 + Int(sum >> 8 & 0xFF)]
                        ^ tables[table + 512 + Int(sum >> 16 & 0xFF)] ^ tables[table + 768 + Int(sum >> 24)]
                }
                length >>= 1
                table += 1024
            }
            return sum ^ second
        }
    }

    /// The number of bits of the largest length.
    private static let powers = 24

    /// The effect of 2^k zero bytes on a checksum, by each of its four bytes: 1024 words for each k.
    private static let zeros: [UInt32] = {
        var tables: [UInt32] = []
        tables.reserveCapacity(powers * 1024)
        // The effect of one zero byte on each bit of the checksum.
        var bits = (0..<32).map { bit in
            (0..<8).reduce(UInt32(1) << bit) { sum, _ in sum >> 1 ^ (sum & 1 == 0 ? 0 : 0x82F6_3B78) }
        }
        for _ in 0..<powers {
            for place in 0..<4 {
                for byte in UInt32(0)..<256 { tables.append(apply(bits, to: byte << UInt32(8 * place))) }
            }
            bits = bits.map { apply(bits, to: $0) }
        }
        return tables
    }()

    /// Multiplies the 32 × 32 bit matrix by a checksum, over GF(2).
    private static func apply(_ bits: [UInt32], to sum: UInt32) -> UInt32 {
        var (sum, result) = (sum, UInt32(0))
        while sum != 0 {
            result ^= bits[sum.trailingZeroBitCount]
            sum &= sum - 1
        }
        return result
    }
}
