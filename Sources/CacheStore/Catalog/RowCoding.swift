import CacheCore
import Foundation
import GRDB

/// How the vocabulary's values are written in columns.
enum RowCoding {
    static func blob(_ id: AssetID) -> Data {
        var bytes = Data(capacity: 16)
        for word in [id.high, id.low] {
            withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
        }
        return bytes
    }

    static func assetID(_ blob: Data) throws(CacheError) -> AssetID {
        guard blob.count == 16 else { throw corrupt("an asset's name") }
        func word(_ bytes: Data) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        return AssetID(high: word(blob.prefix(8)), low: word(blob.suffix(8)))
    }

    static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func value<Value: Decodable>(_ type: Value.Type = Value.self, json: String) throws(CacheError) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(json.utf8))
        } catch {
            throw CacheError(.storageCorrupt, "The catalog holds a text that is not what it should be.", cause: error)
        }
    }

    static func json(_ headers: HeaderList) throws -> String {
        try json(headers.fields.map { [$0.name, $0.value] })
    }

    static func headers(json text: String) throws(CacheError) -> HeaderList {
        let pairs = try value([[String]].self, json: text)
        guard pairs.allSatisfy({ $0.count == 2 }) else { throw corrupt("a header field") }
        return HeaderList(pairs.map { HeaderList.Field($0[0], $0[1]) })
    }

    /// A value of a closed list; `what` names it where the catalog holds something else.
    static func choice<Value: RawRepresentable<String>>(
        _ text: String, _ what: String, as type: Value.Type = Value.self
    ) throws(CacheError) -> Value {
        guard let value = Value(rawValue: text) else { throw corrupt(what) }
        return value
    }

    /// The part of a URL that may lie in the clear: what comes before its query.
    static func redacted(_ text: String) -> String {
        String(text.prefix { $0 != "?" && $0 != "#" })
    }

    static func corrupt(_ what: String) -> CacheError {
        CacheError(.storageCorrupt, "The catalog holds \(what) that cannot be understood.")
    }
}
