package import CacheCore
import Foundation
import GRDB

/// One page of an asset list.
package struct AssetPage: Hashable, Sendable {
    /// At most the requested number of assets, in the order of the list.
    package var items: [AssetRow]
    /// Nil on the last page.
    package var nextCursor: String?
}

/// An asset that a purge would delete, with the values for a dry run.
package struct SelectedAsset: Hashable, Sendable {
    package var id: AssetID
    package var key: String
    package var cachedBytes: Int64
    package var generation: Int64
    package var createdAt: Timestamp
    package var isPinned: Bool
}

extension AssetSelection {
    /// Adds the conditions and arguments that `AssetQuery` does not support.
    fileprivate func narrow(
        _ conditions: inout [String], _ arguments: inout [String: any DatabaseValueConvertible]
    ) {
        if let ids {
            conditions.append("id IN (\(ids.indices.map { ":id\($0)" }.joined(separator: ",")))")
            for (index, id) in ids.enumerated() { arguments["id\(index)"] = RowCoding.blob(id) }
        }
        if let contentType {
            let kind = "lower(trim(substr(content_type, 1, instr(content_type || ';', ';') - 1)))"
            let isWhole = !contentType.hasSuffix("/*")
            conditions.append(isWhole ? "\(kind) = :kind" : "substr(\(kind), 1, length(:kind)) = :kind")
            arguments["kind"] = (isWhole ? contentType : String(contentType.dropLast())).lowercased()
        }
        if let createdBefore {
            conditions.append("created_at <= :createdBefore")
            arguments["createdBefore"] = createdBefore.milliseconds
        }
    }
}

extension Catalog {
    /// Returns the next page of an asset list. The page size is limited to 1…1,000. Throws `invalidField("cursor")` if
    /// the cursor does not belong to a list with this order.
    ///
    /// - Parameter mostSorted: The number of assets with the prefix of the query up to which they are read by their keys
    ///   and sorted. More assets are read in the order of the list, of which few rows have another prefix.
    package func assetPage(_ query: AssetQuery, mostSorted: Int = 20_000) async throws(CacheError) -> AssetPage {
        let list = "assets.\(query.sort.rawValue).\(query.isDescending ? "desc" : "asc")"
        let cursor = try Self.assetCursor(query.cursor, list: list, sort: query.sort)
        let limit = min(max(query.limit, 1), 1000)
        let (secrets, omitsPurged) = (secrets, hasPurged)
        return try await read { db in
            var arguments = try Self.arguments(query)
            arguments["value"] = try cursor.map { try $0.value ?? Self.key(of: $0.id, db) }
            arguments["tie"] = cursor?.id
            let isSorted = try Self.isSorted(query, upTo: mostSorted, arguments, db)
            // One row more than requested shows whether there is a next page.
            arguments["limit"] = limit + 1
            // Rows of a cursor look a column up by name in an index; copied rows search the names one by one.
            let rows = try Row.fetchCursor(
                db, sql: Self.pageSQL(query, isContinued: cursor != nil, isSorted: isSorted, hasPurged: omitsPurged),
                arguments: StatementArguments(arguments))
            // Damaged rows are omitted here. `Store.load` deletes such a row when the asset is opened.
            let assets = try Array(
                rows.compactMap { row in
                    (try? AssetRow(row, secrets: secrets)).map {
                        (value: row["sort_value"] as DatabaseValue, asset: $0)
                    }
                })
            let items = assets.prefix(limit).map(\.asset)
            guard assets.count > limit, let last = items.last else { return AssetPage(items: items, nextCursor: nil) }
            // A key follows the identifier; it has a fixed length. A long key is looked up by the identifier, so that
            // the cursor fits into a URL.
            let value = assets[limit - 1].value
            let key = String.fromDatabaseValue(value).flatMap { $0.utf8.count <= Self.mostKeyBytes ? $0 : nil }
            let tie = last.record.id.description + (key?.utf8.hexDigits ?? "")  // a cursor has no blanks
            let next = PageCursor(list: list, value: Int64.fromDatabaseValue(value) ?? 0, tie: tie)
            return AssetPage(items: items, nextCursor: next.text)
        }
    }

    /// Returns the number of assets on all pages of a list.
    package func assetCount(_ query: AssetQuery) async throws(CacheError) -> Int {
        let omitsPurged = hasPurged
        return try await read { db in
            let conditions = query.conditions(hasPurged: omitsPurged)
            let filter = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
            return try Int.fetchOne(
                db, sql: "SELECT count(*) FROM assets \(filter)",
                arguments: StatementArguments(try Self.arguments(query))) ?? 0
        }
    }

    /// Returns all selected assets, ordered by identifier.
    package func assetIDs(matching selection: AssetSelection) async throws(CacheError) -> [SelectedAsset] {
        let patterns = selection.patterns
        let prefix = selection.prefix ?? (patterns?.count == 1 ? patterns?.first?.prefix : nil)
        let query = AssetQuery(origin: selection.origin, prefix: prefix == "" ? nil : prefix, tag: selection.tag)
        let omitsPurged = hasPurged
        return try await read { db in
            var arguments = try Self.arguments(query)
            var conditions = query.conditions(hasPurged: omitsPurged)
            selection.narrow(&conditions, &arguments)
            let filter = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
            let columns = "id, key, cached_bytes, generation, created_at, is_pinned, sealed_variant IS NOT NULL"
            let rows = try Row.fetchCursor(
                db, sql: "SELECT \(columns) FROM assets \(filter) ORDER BY id", arguments: StatementArguments(arguments)
            )
            var selected: [SelectedAsset] = []
            while let row = try rows.next() {
                let (key, isVariant): (String, Bool) = (row[1], row[6])
                // The key of a variant is the key of its asset with a suffix of fixed length.
                let name = isVariant ? String(key.dropLast(AssetRecord.variantMarkBytes)) : key
                guard patterns?.contains(where: { $0.matches(name) }) ?? true else { continue }
                selected.append(
                    SelectedAsset(
                        id: try RowCoding.assetID(row[0]), key: key, cachedBytes: row[2], generation: row[3],
                        createdAt: Timestamp(milliseconds: row[4]), isPinned: row[5]))
            }
            return selected
        }
    }

    /// Returns the variants of the assets with these keys.
    package func variants(of keys: [(origin: String, key: String)]) async throws(CacheError) -> [AssetID] {
        try await read { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT id FROM assets
                    WHERE origin = ? AND key > ? AND key < ? AND length(key) = ? AND sealed_variant IS NOT NULL
                    """)
            var ids: [AssetID] = []
            for (origin, key) in keys {
                let length = key.unicodeScalars.count + AssetRecord.variantMarkBytes
                let found = try Data.fetchAll(statement, arguments: [origin, key + " ", key + "!", length])
                ids += try found.map { try RowCoding.assetID($0) }
            }
            return ids
        }
    }

    /// Returns the assets that were last fetched from one of these URLs, with the complete URL. The comparison ignores the
    /// query of a URL, because the query is stored only in the sealed column.
    package func assets(
        fetchedFrom urls: [String]
    ) async throws(CacheError) -> [(id: AssetID, origin: String, url: String)] {
        let secrets = secrets
        return try await read { db in
            let rows = try Row.fetchAll(
                db,
                sql: "SELECT id, origin, sealed_url FROM assets WHERE clear_url IN (SELECT value FROM json_each(?))",
                arguments: [try RowCoding.json(urls.map(RowCoding.redacted))])
            return try rows.map { (try RowCoding.assetID($0[0]), $0[1], try secrets.open($0[2])) }
        }
    }

    /// Returns the assets with a query in their key, ordered by identifier, with the complete URL of the last fetch.
    package func assetsWithQuery(after id: AssetID?, limit: Int) async throws(CacheError) -> [KeyedURL] {
        let secrets = secrets
        return try await read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, key, origin, sealed_url FROM assets
                    WHERE id > ? AND instr(key, '?') > 0 ORDER BY id LIMIT ?
                    """,
                arguments: [id.map(RowCoding.blob) ?? Data(), limit])
            return try rows.map {
                KeyedURL(id: try RowCoding.assetID($0[0]), key: $0[1], origin: $0[2], url: try secrets.open($0[3]))
            }
        }
    }

    /// The maximum number of bytes of a key in a cursor.
    private static let mostKeyBytes = 1000

    /// The key of the asset that a cursor names. Throws if the asset was removed.
    private static func key(of id: Data, _ db: Database) throws -> DatabaseValue {
        guard let key = try String.fetchOne(db, sql: "SELECT key FROM assets WHERE id = ?", arguments: [id]) else {
            throw PageCursor.refusal
        }
        return key.databaseValue
    }

    /// Decodes a cursor into the sort value and the identifier of the last row; a nil value is the key of that row.
    /// Returns nil for the first page.
    private static func assetCursor(
        _ text: String?, list: String, sort: AssetQuery.Sort
    ) throws(CacheError) -> (value: DatabaseValue?, id: Data)? {
        guard let text else { return nil }
        let cursor = try PageCursor(text, list: list)
        guard let id = AssetID(String(cursor.tie.prefix(32))) else { throw PageCursor.refusal }
        guard sort == .key else { return (cursor.value.databaseValue, RowCoding.blob(id)) }
        guard cursor.tie.count > 32 else { return (nil, RowCoding.blob(id)) }
        guard let key = Self.text(ofHex: cursor.tie.dropFirst(32)) else { throw PageCursor.refusal }
        return (key.databaseValue, RowCoding.blob(id))
    }

    /// The text whose UTF-8 bytes these hexadecimal digits are; nil if they are not valid.
    private static func text(ofHex digits: Substring) -> String? {
        let digits = Array(digits.utf8)
        guard digits.count % 2 == 0 else { return nil }
        let bytes = stride(from: 0, to: digits.count, by: 2).map { index in
            UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16)
        }
        return bytes.contains(nil) ? nil : String(validating: bytes.compactMap { $0 }, as: UTF8.self)
    }

    /// Whether a list with a prefix is read by its keys and sorted.
    private static func isSorted(
        _ query: AssetQuery, upTo most: Int, _ arguments: [String: any DatabaseValueConvertible], _ db: Database
    ) throws -> Bool {
        guard query.prefix != nil, query.sort != .key else { return false }
        let named = AssetQuery(origin: query.origin, prefix: query.prefix)
        let used = arguments.filter { ["origin", "prefix", "prefixEnd"].contains($0.key) }
        let count =
            try Int.fetchOne(
                db,
                sql: """
                    SELECT count(*) FROM (
                        SELECT 1 FROM assets WHERE \(named.conditions().joined(separator: " AND "))
                        LIMIT \(most + 1)
                    )
                    """,
                arguments: StatementArguments(used)) ?? 0
        return count <= most
    }

    /// Builds a keyset-pagination query: the row after `(:value, :tie)` in the list's order. `isSorted`: the index of the
    /// order is not used (a unary `+` hides a column from the planner), otherwise that of the keys.
    private static func pageSQL(
        _ query: AssetQuery, isContinued: Bool, isSorted: Bool, hasPurged: Bool
    ) -> String {
        let column = isSorted ? "+" + query.sort.column : query.sort.column
        var conditions = query.conditions(isOrdered: !isSorted && query.sort != .key, hasPurged: hasPurged)
        if isContinued { conditions.append("(\(column), id) \(query.isDescending ? "<" : ">") (:value, :tie)") }
        let filter = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
        let direction = query.isDescending ? "DESC" : "ASC"
        return
            "SELECT *, \(column) AS sort_value FROM assets \(filter) ORDER BY \(column) \(direction), id \(direction) LIMIT :limit"
    }

    /// The bound values of the query's conditions.
    private static func arguments(_ query: AssetQuery) throws -> [String: any DatabaseValueConvertible] {
        var arguments: [String: any DatabaseValueConvertible] = [:]
        arguments["key"] = query.key
        if let urls = query.urls {
            arguments["urls"] = try RowCoding.json(urls.map(RowCoding.redacted))
            arguments["urlKeys"] = try RowCoding.json(query.urlKeys)
        }
        arguments["origin"] = query.origin
        if let prefix = query.prefix {
            arguments["prefix"] = prefix
            // SQLite sorts each text before each blob.
            arguments["prefixEnd"] = Data()
            if let end = prefix.prefixEnd { arguments["prefixEnd"] = end }
        }
        arguments["pinned"] = query.isPinned
        arguments["tag"] = query.tag
        arguments["part"] = query.part.map { Data($0.folded) }
        return arguments
    }
}

/// SQL of the filters.
extension AssetQuery {
    /// The SQL function `larder_contains`: whether the key or the URL of a row of `assets` contains a part.
    static let function = DatabaseFunction("larder_contains", argumentCount: 3, pure: true) { values in
        let part = NamePart(folded: Data.fromDatabaseValue(values[0]).map(Array.init) ?? [])
        return values[1...].contains { String.fromDatabaseValue($0).map(part.isIn) ?? false }
    }

    /// SQL conditions of the query. Every text is a literal; the values are bound as arguments. `isOrdered`: the rows are
    /// read in the order of a list, not by their keys. `hasPurged`: assets that purges have selected are omitted.
    fileprivate func conditions(isOrdered: Bool = false, hasPurged: Bool = false) -> [String] {
        var conditions: [String] = []
        if hasPurged { conditions.append("id NOT IN (SELECT asset FROM purged)") }
        if key != nil { conditions.append("key = :key") }
        if urls != nil {
            conditions.append(
                """
                (clear_url IN (SELECT value FROM json_each(:urls)) OR key IN (SELECT value FROM json_each(:urlKeys)))
                """)
        }
        if origin != nil { conditions.append("origin = :origin") }
        if prefix != nil {
            let key = isOrdered ? "+key" : "key"
            conditions.append("\(key) >= :prefix AND \(key) < :prefixEnd")
        }
        if isPinned != nil { conditions.append("is_pinned = :pinned") }
        if tag != nil { conditions.append("EXISTS (SELECT 1 FROM json_each(tags) WHERE value = :tag)") }
        switch state {
        case .complete: conditions.append("length IS NOT NULL AND cached_bytes = length")
        case .partial: conditions.append("cached_bytes > 0 AND (length IS NULL OR cached_bytes < length)")
        case .empty: conditions.append("cached_bytes = 0 AND (length IS NULL OR length > 0)")
        case nil: break
        }
        // The last one, because it costs most.
        if part != nil { conditions.append("larder_contains(:part, key, clear_url)") }
        return conditions
    }
}

extension AssetQuery.Sort {
    /// The column that the list is sorted by.
    fileprivate var column: String {
        switch self {
        case .lastAccess: "last_access_at"
        case .cachedBytes: "cached_bytes"
        case .hits: "hits"
        case .createdAt: "created_at"
        case .key: "key"
        case .contentLength: "coalesce(length, -1)"
        }
    }
}

extension String {
    /// The first text, in the order of the scalars, behind all texts with this prefix; nil if there is none. SQLite
    /// compares texts by their bytes in UTF-8, which is the same order.
    fileprivate var prefixEnd: String? {
        var scalars = unicodeScalars
        while let last = scalars.popLast() {
            let next = last.value == 0xD7FF ? 0xE000 : last.value + 1  // surrogates are no scalars
            guard let scalar = Unicode.Scalar(next) else { continue }
            scalars.append(scalar)
            return String(scalars)
        }
        return nil
    }
}

/// An asset with its key and the URL of its last fetch.
package struct KeyedURL: Sendable {
    package let id: AssetID
    package let key: String
    /// The name of the mounted origin, or `Origin.absoluteName`.
    package let origin: String
    /// The query may be a signature.
    package let url: String
}
