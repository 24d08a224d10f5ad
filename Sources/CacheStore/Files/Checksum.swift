import CLinux
package import CacheCore

/// CRC-32C checksums (RFC 3720 §12.1).
package enum Checksum {
    /// The checksum of `bytes`, continued from the checksum `earlier` of preceding bytes.
    package static func of(_ bytes: UnsafeRawBufferPointer, after earlier: UInt32 = 0) -> UInt32 {
        larder_crc32c(earlier, bytes.baseAddress, bytes.count)
    }

    /// As above, for an array.
    package static func of(_ bytes: [UInt8], after earlier: UInt32 = 0) -> UInt32 {
        bytes.withUnsafeBytes { of($0, after: earlier) }
    }

    /// The checksums of bytes that start at `offset` of a file, one per block that they touch.
    package static func pieces(
        of bytes: UnsafeRawBufferPointer, at offset: Int64,
        sum: (UnsafeRawBufferPointer, Int64) -> BlockSum = { bytes, _ in .crc32C(of(bytes)) }
    ) -> [BlockChecksums.Piece] {
        BlockChecksums.cut(ByteRange(offset: offset, length: Int64(bytes.count))).map { part in
            let run = Int(part.lowerBound - offset)..<Int(part.upperBound - offset)
            return BlockChecksums.Piece(
                range: part, sum: sum(UnsafeRawBufferPointer(rebasing: bytes[run]), part.lowerBound))
        }
    }
}
