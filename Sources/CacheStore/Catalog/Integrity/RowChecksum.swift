import Foundation
import GRDB

/// CRC-32C of a row's values, in the order of the columns, as stored by SQLite.
enum RowChecksum {
    /// The SQL function `larder_sum`.
    static let function = DatabaseFunction("larder_sum", pure: true) { values in
        Int64(values.reduce(UInt32(0)) { sum, value in add(value, to: sum) })
    }

    /// Adds type, length and bytes of a value, so that different lists of values have different encodings.
    private static func add(_ value: DatabaseValue, to sum: UInt32) -> UInt32 {
        switch value.storage {
        case .null: add(0, 0, to: sum)
        case .int64(let number): add(1, UInt64(bitPattern: number), to: sum)
        case .double(let number): add(2, number.bitPattern, to: sum)
        case .string(let text): Checksum.of(Array(text.utf8), after: add(3, UInt64(text.utf8.count), to: sum))
        case .blob(let data):
            data.withUnsafeBytes { Checksum.of($0, after: add(4, UInt64(data.count), to: sum)) }
        }
    }

    /// Adds a type tag, and a number or a length, both little-endian.
    private static func add(_ kind: UInt64, _ number: UInt64, to sum: UInt32) -> UInt32 {
        [kind.littleEndian, number.littleEndian].withUnsafeBytes { Checksum.of($0, after: sum) }
    }
}
