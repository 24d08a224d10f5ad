import CacheCore
import Foundation

/// How the sums of 64 blocks of a file (16 MiB) are written in one row: a few bytes for each extent and four for each piece,
/// and at the end the row's own sum.
///
/// A step is `gap << 1 | isRow` since the last piece's end, as are all numbers seven bits a byte, low ones first. Either the
/// length and the sum of one piece follow, or, for complete blocks in a row, their number and their sums.
enum SumRow {
    /// How much of a file one row is about.
    static let span = 64 * BlockSums.blockBytes

    /// The rows that are about bytes of `range`.
    static func rows(of range: ByteRange) -> ClosedRange<Int64> {
        range.lowerBound / span...(range.upperBound - 1) / span
    }

    static func encode(_ sums: BlockSums, file: Int64, row: Int64) -> Data {
        var bytes = Data()
        var end = row * span
        var rest = sums.pieces(touching: bounds(of: row))
        while let piece = rest.first {
            let run = rest.prefixOfBlocks
            append((piece.range.lowerBound - end) << 1 | (run.isEmpty ? 0 : 1), to: &bytes)
            append(run.isEmpty ? piece.range.length : Int64(run.count), to: &bytes)
            let written = run.isEmpty ? rest.prefix(1) : run
            for piece in written { append(piece.sum, to: &bytes) }
            end = written.last?.range.upperBound ?? end
            rest = rest.dropFirst(written.count)
        }
        append(checksum(bytes, file: file, row: row), to: &bytes)
        return bytes
    }

    /// Nil where the row is not what was written.
    static func decode(_ data: Data, file: Int64, row: Int64) -> BlockSums? {
        guard data.count >= 4 else { return nil }
        var reader = Reader(bytes: [UInt8](data.dropLast(4)))
        var tail = Reader(bytes: [UInt8](data.suffix(4)))
        guard tail.word() == checksum(data.dropLast(4), file: file, row: row) else { return nil }
        let bounds = bounds(of: row)
        var (sums, end) = (BlockSums(), bounds.lowerBound)
        while !reader.isAtEnd {
            guard let step = reader.number(), let number = reader.number() else { return nil }
            let isRow = step & 1 == 1
            guard step >> 1 <= span, number > 0, number <= (isRow ? 64 : BlockSums.blockBytes) else { return nil }
            end += step >> 1
            for _ in 0..<(isRow ? number : 1) {
                let range = ByteRange(offset: end, length: isRow ? BlockSums.blockBytes : number)
                guard range.upperBound <= bounds.upperBound, BlockSums.cut(range).count == 1, let sum = reader.word()
                else { return nil }
                sums.insert(BlockSums.Piece(range: range, sum: sum))
                end = range.upperBound
            }
        }
        return sums
    }

    static func bounds(of row: Int64) -> ByteRange { ByteRange(offset: row * span, length: span) }

    private static func checksum(_ bytes: Data, file: Int64, row: Int64) -> UInt32 {
        let place = [file, row].reduce(UInt32(0)) { sum, number in
            withUnsafeBytes(of: number.littleEndian) { Checksum.of($0, after: sum) }
        }
        return bytes.withUnsafeBytes { Checksum.of($0, after: place) }
    }

    private static func append(_ number: Int64, to bytes: inout Data) {
        var rest = UInt64(bitPattern: number)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    private static func append(_ word: UInt32, to bytes: inout Data) {
        withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Takes numbers from the front; nil where there are none, or none that were written so.
    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        var isAtEnd: Bool { position == bytes.count }

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

        mutating func word() -> UInt32? {
            guard position + 4 <= bytes.count else { return nil }
            defer { position += 4 }
            return (0..<4).reduce(0) { $0 | UInt32(bytes[position + $1]) << UInt32(8 * $1) }
        }
    }
}

extension ArraySlice<BlockSums.Piece> {
    /// The complete blocks in a row that it begins with.
    fileprivate var prefixOfBlocks: Self {
        var count = 0
        for piece in self {
            guard piece.range.length == BlockSums.blockBytes else { break }
            if count > 0, self[startIndex + count - 1].range.upperBound != piece.range.lowerBound { break }
            count += 1
        }
        return prefix(count)
    }
}
