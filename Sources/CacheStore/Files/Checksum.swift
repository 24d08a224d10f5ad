import CLinux
package import CacheCore

/// CRC-32C sums of bytes.
package enum Checksum {
    /// The sum of `bytes`, after those whose sum is `earlier`.
    package static func of(_ bytes: UnsafeRawBufferPointer, after earlier: UInt32 = 0) -> UInt32 {
        larder_crc32c(earlier, bytes.baseAddress, bytes.count)
    }

    /// As above, of bytes that lie in an array.
    package static func of(_ bytes: [UInt8], after earlier: UInt32 = 0) -> UInt32 {
        bytes.withUnsafeBytes { of($0, after: earlier) }
    }

    /// The sums of the bytes that lie at `offset` of a file, block by block.
    package static func pieces(of bytes: UnsafeRawBufferPointer, at offset: Int64) -> [BlockSums.Piece] {
        BlockSums.cut(ByteRange(offset: offset, length: Int64(bytes.count))).map { part in
            let run = Int(part.lowerBound - offset)..<Int(part.upperBound - offset)
            return BlockSums.Piece(range: part, sum: of(UnsafeRawBufferPointer(rebasing: bytes[run])))
        }
    }
}
