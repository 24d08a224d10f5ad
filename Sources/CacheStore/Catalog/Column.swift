import CacheCore
import Foundation
import GRDB

/// A column of a table whose rows are records of one type. SQL statements, bound values and decoding are derived from
/// the tables of columns. Migrations are not: their text is frozen.
struct Column<Record: Sendable>: Sendable {
    /// The effect of an update of the row on the stored value.
    enum Update: Sendable {
        case replaced, kept, largest
        /// No statement of the table writes the column.
        case unwritten
    }

    let name: String
    private(set) var update = Update.replaced
    fileprivate let encode: @Sendable (Record, SecretBox) throws -> (any DatabaseValueConvertible)?
    fileprivate let decode: @Sendable (Row, SecretBox, inout Record) throws -> Void

    /// A column with codecs of its own.
    init(
        _ name: String, encode: @escaping @Sendable (Record, SecretBox) throws -> (any DatabaseValueConvertible)?,
        decode: @escaping @Sendable (Row, SecretBox, inout Record) throws -> Void = { _, _, _ in }
    ) {
        self.name = name
        self.encode = encode
        self.decode = decode
    }

    /// A column that contains a property.
    init<Value>(
        _ name: String, _ property: any WritableKeyPath<Record, Value> & Sendable, _ codec: ColumnCodec<Value>
    ) {
        self.init(
            name, encode: { record, secrets in try codec.encode(record[keyPath: property], secrets) },
            decode: { row, secrets, record in record[keyPath: property] = try codec.decode(row[name], secrets) })
    }

    /// A column that contains a property as it is.
    init<Value: DatabaseValueConvertible & Sendable>(
        _ name: String, _ property: any WritableKeyPath<Record, Value> & Sendable
    ) {
        self.init(name, property, .plain)
    }

    /// A column that contains a property as it is, or NULL.
    init<Value: DatabaseValueConvertible & Sendable>(
        _ name: String, _ property: any WritableKeyPath<Record, Value?> & Sendable
    ) {
        self.init(name, property, ColumnCodec<Value>.plain.orNull)
    }

    /// The same column with another effect of updates.
    func on(update: Update) -> Column {
        var column = self
        column.update = update
        return column
    }
}

/// Conversion between a property and the value of its column.
struct ColumnCodec<Value>: Sendable {
    let encode: @Sendable (Value, SecretBox) throws -> (any DatabaseValueConvertible)?
    /// Throws `storageCorrupt` if the stored value is invalid.
    let decode: @Sendable (DatabaseValue, SecretBox) throws -> Value

    /// The same codec for a property that can be nil, as NULL.
    var orNull: ColumnCodec<Value?> {
        ColumnCodec<Value?>(
            encode: { value, secrets in try value.flatMap { try encode($0, secrets) } },
            decode: { value, secrets in value.isNull ? nil : try decode(value, secrets) })
    }

    /// A codec by way of another type.
    static func by<Stored: DatabaseValueConvertible & SendableMetatype>(
        _ encode: @escaping @Sendable (Value, SecretBox) throws -> Stored,
        _ decode: @escaping @Sendable (Stored, SecretBox) throws -> Value
    ) -> ColumnCodec {
        ColumnCodec(encode: encode) { value, secrets in
            guard let stored = Stored.fromDatabaseValue(value) else { throw RowCoding.corrupt("a value of a column") }
            return try decode(stored, secrets)
        }
    }
}

extension ColumnCodec where Value: DatabaseValueConvertible & Sendable {
    static var plain: ColumnCodec { by({ value, _ in value }, { stored, _ in stored }) }
}

extension ColumnCodec<Timestamp> {
    /// Milliseconds since 1970.
    static let timestamp = by({ time, _ in time.milliseconds }, { stored, _ in Timestamp(milliseconds: stored) })
}

extension ColumnCodec<Duration> {
    /// Milliseconds.
    static let duration = by({ value, _ in value.wholeMilliseconds }, { stored, _ in .milliseconds(stored) })
}

extension ColumnCodec<String> {
    /// Text that is stored encrypted.
    static let sealed = by({ text, secrets in try secrets.seal(text) }, { stored, secrets in try secrets.open(stored) })
}

extension ColumnCodec<AssetID> {
    static let assetID = by({ id, _ in RowCoding.blob(id) }, { stored, _ in try RowCoding.assetID(stored) })
}

extension ColumnCodec where Value: Codable & SendableMetatype {
    /// JSON text.
    static var json: ColumnCodec {
        by({ value, _ in try RowCoding.json(value) }, { text, _ in try RowCoding.value(json: text) })
    }
}

extension ColumnCodec where Value: RawRepresentable<String> & SendableMetatype {
    /// A value of a closed list. `noun`: the value in errors, with an article.
    static func choice(_ noun: String) -> ColumnCodec {
        by({ value, _ in value.rawValue }, { text, _ in try RowCoding.choice(text, noun) })
    }
}

extension Array {
    /// A statement that inserts a row. `verb`: `INSERT` or `INSERT OR REPLACE`; `others`: further columns.
    func insertion<Record>(_ verb: String, into table: String, with others: [String] = []) -> String
    where Element == Column<Record> {
        let names = others + filter { $0.update != .unwritten }.map(\.name)
        return "\(verb) INTO \(table) (\(names.joined(separator: ", "))) "
            + "VALUES (\(names.map { ":" + $0 }.joined(separator: ", ")))"
    }

    /// A statement that updates the row with the same value of the first column.
    func update<Record>(of table: String) -> String where Element == Column<Record> {
        let changes = compactMap { column in
            switch column.update {
            case .replaced: "\(column.name) = :\(column.name)"
            case .largest: "\(column.name) = max(\(column.name), :\(column.name))"
            case .kept, .unwritten: nil
            }
        }
        let key = self[0].name
        return "UPDATE \(table) SET \(changes.joined(separator: ", ")) WHERE \(key) = :\(key)"
    }

    /// The bound values of both statements.
    func arguments<Record>(of record: Record, _ secrets: SecretBox) throws -> StatementArguments
    where Element == Column<Record> {
        var values: [String: (any DatabaseValueConvertible)?] = [:]
        for column in self where column.update != .unwritten {
            values.updateValue(try column.encode(record, secrets), forKey: column.name)
        }
        return StatementArguments(values)
    }

    /// Sets the properties of `record` to the values of a row. Throws `storageCorrupt` if one is invalid or cannot be
    /// decrypted.
    func decode<Record>(_ row: Row, into record: inout Record, _ secrets: SecretBox) throws
    where Element == Column<Record> {
        for column in self { try column.decode(row, secrets, &record) }
    }
}
