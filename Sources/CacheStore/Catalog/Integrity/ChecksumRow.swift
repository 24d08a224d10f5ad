import CacheCore
import Foundation

/// Binary format of a row of the table `sums`: the checksums of 64 consecutive blocks of a file (16 MiB).
///
/// A row is a list of entries, followed by the row's own CRC-32C (4 bytes, little-endian), which also covers the file
/// serial and the row number. Numbers are varints: seven bits per byte, low bits first. An entry is one of:
///
/// - `gap << 1`, length, checksum: one piece, `gap` bytes after the end of the previous piece.
/// - `gap << 1 | 1`, count, checksums: `count` adjacent complete blocks.
///
/// An extent costs a few bytes, and every piece costs four. A checksum has four bytes, and in rows of encrypted files
/// sixteen; the row's own CRC-32C tells which.
enum ChecksumRow {
    /// Bytes of the file that one row covers.
    static let span = 64 * BlockChecksums.blockBytes

    /// The numbers of the rows that cover `range`; it must not be empty.
    static func rows(of range: ByteRange) -> ClosedRange<Int64> {
        range.lowerBound / span...(range.upperBound - 1) / span
    }

    /// Encodes the pieces that lie in this row.
    static func encode(_ sums: BlockChecksums, file: Int64, row: Int64) -> Data {
        var bytes = Data()
        var end = row * span
        var rest = sums.pieces(touching: bounds(of: row))
        while let piece = rest.first {
            let run = rest.prefixOfBlocks
            append((piece.range.lowerBound - end) << 1 | (run.isEmpty ? 0 : 1), to: &bytes)
            append(run.isEmpty ? piece.range.length : Int64(run.count), to: &bytes)
            let written = run.isEmpty ? rest.prefix(1) : run
            for piece in written {
                switch piece.sum {
                case .crc32C(let sum): append(sum, to: &bytes)
                case .keyed(let high, let low):
                    for word in [high, low] {
                        append(UInt32(truncatingIfNeeded: word >> 32), to: &bytes)
                        append(UInt32(truncatingIfNeeded: word), to: &bytes)
                    }
                }
            }
            end = written.last?.range.upperBound ?? end
            rest = rest.dropFirst(written.count)
        }
        let isKeyed = sums.pieces(touching: bounds(of: row)).contains {
            if case .keyed = $0.sum { true } else { false }
        }
        append(checksum(bytes, file: file, row: row, isKeyed: isKeyed), to: &bytes)
        return bytes
    }

    /// Decodes a row; nil if its checksum does not match or its format is invalid.
    static func decode(_ data: Data, file: Int64, row: Int64) -> BlockChecksums? {
        guard data.count >= 4 else { return nil }
        var reader = Reader(bytes: [UInt8](data.dropLast(4)))
        var tail = Reader(bytes: [UInt8](data.suffix(4)))
        guard let own = tail.word() else { return nil }
        let kinds = [false, true]
        let isKeyed = kinds.first { checksum(data.dropLast(4), file: file, row: row, isKeyed: $0) == own }
        guard let isKeyed else { return nil }
        let bounds = bounds(of: row)
        var (sums, end) = (BlockChecksums(), bounds.lowerBound)
        while !reader.isAtEnd {
            guard let step = reader.number(), let number = reader.number() else { return nil }
            let isRow = step & 1 == 1
            // The format allows larger numbers; limits first, so that nothing overflows.
            guard step >> 1 <= span, number > 0, number <= (isRow ? 64 : BlockChecksums.blockBytes) else { return nil }
            end += step >> 1
            for _ in 0..<(isRow ? number : 1) {
                let range = ByteRange(offset: end, length: isRow ? BlockChecksums.blockBytes : number)
                guard range.upperBound <= bounds.upperBound, BlockChecksums.cut(range).count == 1,
                    let sum = isKeyed ? reader.keyedSum() : reader.word().map({ .crc32C($0) })
                else { return nil }
                sums.insert(BlockChecksums.Piece(range: range, sum: sum))
                end = range.upperBound
            }
        }
        return sums
    }

    /// The part of the file that a row covers.
    static func bounds(of row: Int64) -> ByteRange { ByteRange(offset: row * span, length: span) }

    /// CRC-32C of the row's identity and its entries, so that a row copied to a wrong key is detected.
    private static func checksum(_ bytes: Data, file: Int64, row: Int64, isKeyed: Bool) -> UInt32 {
        let place = ([file, row] + (isKeyed ? [1] : [])).reduce(UInt32(0)) { sum, number in
            withUnsafeBytes(of: number.littleEndian) { Checksum.of($0, after: sum) }
        }
        return bytes.withUnsafeBytes { Checksum.of($0, after: place) }
    }

    /// Appends a varint.
    private static func append(_ number: Int64, to bytes: inout Data) {
        var rest = UInt64(bitPattern: number)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Appends a checksum, little-endian.
    private static func append(_ word: UInt32, to bytes: inout Data) {
        withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Sequential reader. Each method returns nil at the end, or if the bytes are not a valid number.
    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        var isAtEnd: Bool { position == bytes.count }

        /// Reads a varint of at most 56 bits.
        mutating func number() -> Int64? {
            var number: Int64 = 0
            for shift in stride(from: Int64(0), to: 56, by: 7) {
                guard position < bytes.count else { return nil }
                let byte = bytes[position]
                position += 1
                number |= Int64(byte & 0x7F) << shift
                if byte < 0x80 { return number }
            }
            return nil
        }

        /// Reads a checksum.
        mutating func word() -> UInt32? {
            guard position + 4 <= bytes.count else { return nil }
            defer { position += 4 }
            return (0..<4).reduce(0) { $0 | UInt32(bytes[position + $1]) << UInt32(8 * $1) }
        }

        /// Reads a keyed checksum.
        mutating func keyedSum() -> BlockSum? {
            let words = (0..<4).compactMap { _ in word().map(UInt64.init) }
            guard words.count == 4 else { return nil }
            return .keyed(high: words[0] << 32 | words[1], low: words[2] << 32 | words[3])
        }
    }
}

extension ArraySlice<BlockChecksums.Piece> {
    /// The adjacent complete blocks at the beginning of the slice.
    fileprivate var prefixOfBlocks: Self {
        var count = 0
        for piece in self {
            guard piece.range.length == BlockChecksums.blockBytes else { break }
            if count > 0, self[startIndex + count - 1].range.upperBound != piece.range.lowerBound { break }
            count += 1
        }
        return prefix(count)
    }
}
