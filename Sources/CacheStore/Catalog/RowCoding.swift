import CacheCore
import Foundation
import GRDB

/// Codecs for column values that several tables use.
enum RowCoding {
    /// The identifier as 16 bytes, big-endian, so that blobs sort like identifiers.
    static func blob(_ id: AssetID) -> Data {
        var bytes = Data(capacity: 16)
        for word in [id.high, id.low] {
            withUnsafeBytes(of: word.bigEndian) { bytes.append(contentsOf: $0) }
        }
        return bytes
    }

    /// Decodes an identifier. Throws `storageCorrupt` unless it has 16 bytes.
    static func assetID(_ blob: Data) throws(CacheError) -> AssetID {
        guard blob.count == 16 else { throw corrupt("an asset identifier") }
        func word(_ bytes: Data) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        return AssetID(high: word(blob.prefix(8)), low: word(blob.suffix(8)))
    }

    /// Encodes a value as JSON with sorted keys: equal values give equal texts.
    static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// Decodes JSON. Throws `storageCorrupt` if the text does not fit the type.
    static func value<Value: Decodable>(_ type: Value.Type = Value.self, json: String) throws(CacheError) -> Value {
        do {
            return try JSONParser.parse(json.utf8).decode(type, isStrict: false)
        } catch {
            throw CacheError(.storageCorrupt, "The catalog contains a JSON value that cannot be decoded.", cause: error)
        }
    }

    /// Encodes header fields as a JSON list of pairs, in order.
    static func json(_ headers: HeaderList) throws -> String {
        try json(headers.fields.map { [$0.name, $0.value] })
    }

    /// Decodes a JSON list of pairs.
    static func headers(json text: String) throws(CacheError) -> HeaderList {
        let pairs = try value([[String]].self, json: text)
        guard pairs.allSatisfy({ $0.count == 2 }) else { throw corrupt("a header field") }
        return HeaderList(pairs.map { HeaderList.Field($0[0], $0[1]) })
    }

    /// Decodes a value of a closed list. Throws `storageCorrupt` with the noun `what` if the text is no case of the
    /// type.
    static func choice<Value: RawRepresentable<String>>(
        _ text: String, _ what: String, as type: Value.Type = Value.self
    ) throws(CacheError) -> Value {
        guard let value = Value(rawValue: text) else { throw corrupt(what) }
        return value
    }

    /// The part of a URL that may be stored unencrypted: everything before the query or the fragment.
    static func redacted(_ text: String) -> String {
        String(text.prefix { $0 != "?" && $0 != "#" })
    }

    /// The error for an invalid column value; `what` is a noun with an article.
    static func corrupt(_ what: String) -> CacheError {
        CacheError(.storageCorrupt, "The catalog contains an invalid value: \(what).")
    }
}
