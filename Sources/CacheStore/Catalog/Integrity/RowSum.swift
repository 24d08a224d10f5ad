import Foundation
import GRDB

/// The checksum that a row carries: of its values, as SQLite has them, in order.
enum RowSum {
    /// What SQL calls as `larder_sum`.
    static let function = DatabaseFunction("larder_sum", pure: true) { values in
        Int64(values.reduce(UInt32(0)) { sum, value in add(value, to: sum) })
    }

    /// Kind, length and bytes: no two lists of values are written alike.
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

    private static func add(_ kind: UInt64, _ number: UInt64, to sum: UInt32) -> UInt32 {
        [kind.littleEndian, number.littleEndian].withUnsafeBytes { Checksum.of($0, after: sum) }
    }
}
