package import CacheCore
import GRDB

/// The table `usage`: assets and cached bytes by groups (``UsageName``), kept by triggers in the transaction of each change.
enum UsageTable {
    /// The SQL function `larder_usage`: the groups of a row of `assets` as a JSON list of lists.
    static let function = DatabaseFunction("larder_usage", argumentCount: 5, pure: true) { values in
        let tags = String.fromDatabaseValue(values[2]).flatMap { try? RowCoding.value([String].self, json: $0) }
        let names = UsageName.names(
            key: String.fromDatabaseValue(values[0]) ?? "", origin: String.fromDatabaseValue(values[1]) ?? "",
            tags: tags ?? [], contentType: String.fromDatabaseValue(values[3]),
            createdAt: Timestamp(milliseconds: Int64.fromDatabaseValue(values[4]) ?? 0))
        let rows = names.map { name -> JSON in
            [.string(name.group.rawValue), .integer(Int64(name.level)), .string(name.name)]
        }
        return JSON.array(rows).text
    }

    private static let columns = "value ->> 0, value ->> 1, value ->> 2"

    /// The groups of a row of `assets`, for `FROM`. `row`: the prefix of its columns.
    private static func groups(_ row: String) -> String {
        let columns = ["key", "origin", "tags", "content_type", "created_at"].map { row + $0 }
        return "json_each(larder_usage(\(columns.joined(separator: ", "))))"
    }

    private static let adding = """
        INSERT INTO usage SELECT \(columns), 1, NEW.cached_bytes FROM \(groups("NEW.")) WHERE true
            ON CONFLICT DO UPDATE SET assets = assets + 1, bytes = bytes + excluded.bytes;
        """

    private static let removing = """
        UPDATE usage SET assets = assets - 1, bytes = bytes - OLD.cached_bytes
            WHERE (kind, level, name) IN (SELECT \(columns) FROM \(groups("OLD.")));
        DELETE FROM usage WHERE assets <= 0 AND (kind, level, name) IN (SELECT \(columns) FROM \(groups("OLD.")));
        """

    /// All rows as they should be.
    private static let counted = """
        SELECT \(columns), count(*), sum(cached_bytes) FROM assets, \(groups("assets.")) GROUP BY 1, 2, 3
        """

    /// Creates the table and its triggers. REPLACE deletes without a trigger, unless `recursive_triggers` is on.
    static let migration = """
        CREATE TABLE usage (
            kind TEXT NOT NULL,
            level INTEGER NOT NULL,
            name TEXT NOT NULL,
            assets INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            PRIMARY KEY (kind, level, name)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO usage \(counted);
        CREATE TRIGGER usage_inserted AFTER INSERT ON assets BEGIN
            \(adding)
        END;
        CREATE TRIGGER usage_deleted AFTER DELETE ON assets BEGIN
            \(removing)
        END;
        CREATE TRIGGER usage_filled AFTER UPDATE OF cached_bytes ON assets WHEN OLD.cached_bytes <> NEW.cached_bytes BEGIN
            UPDATE usage SET bytes = bytes + NEW.cached_bytes - OLD.cached_bytes
                WHERE (kind, level, name) IN (SELECT \(columns) FROM \(groups("NEW.")));
        END;
        CREATE TRIGGER usage_regrouped AFTER UPDATE OF key, origin, tags, content_type, created_at ON assets
        WHEN larder_usage(OLD.key, OLD.origin, OLD.tags, OLD.content_type, OLD.created_at)
            <> larder_usage(NEW.key, NEW.origin, NEW.tags, NEW.content_type, NEW.created_at) BEGIN
            \(removing)
            \(adding)
        END;
        """

    /// The number of rows that differ from a complete count. `isRepairing`: counts anew if there are any.
    static func differences(_ db: Database, isRepairing: Bool) throws -> Int {
        let stored = "SELECT kind, level, name, assets, bytes FROM usage"
        let count = try Int.fetchOne(
            db,
            sql: """
                WITH counted AS (\(counted)), stored AS (\(stored))
                SELECT count(*) FROM (
                    SELECT * FROM (SELECT * FROM counted EXCEPT SELECT * FROM stored)
                    UNION ALL SELECT * FROM (SELECT * FROM stored EXCEPT SELECT * FROM counted))
                """)
        if isRepairing, let count, count > 0 {
            try db.execute(sql: "DELETE FROM usage")
            try db.execute(sql: "INSERT INTO usage \(counted)")
        }
        return count ?? 0
    }
}

extension Catalog {
    /// The usage of the cache by groups. Throws `.invalidField` as ``UsageQuery/level()``.
    package func usage(_ query: UsageQuery, at now: Timestamp) async throws(CacheError) -> AssetUsage {
        let level = try query.level()
        return try await read { db in
            switch query.group {
            case .age: try Self.ages(query, now, db)
            case .path:
                AssetUsage(
                    parts: try Self.parts(query, level, db),
                    total: try query.prefix.map { prefix in
                        try Self.sum("kind = 'path' AND level = ? AND name = ?", [level - query.depth, prefix], db)
                    } ?? Self.sum("kind = 'origin'", [], db))
            case .origin, .tag, .type:
                AssetUsage(parts: try Self.parts(query, 0, db), total: try Self.sum("kind = 'origin'", [], db))
            }
        }
    }

    private static func parts(_ query: UsageQuery, _ level: Int, _ db: Database) throws -> [AssetUsage.Part] {
        let prefix = query.prefix ?? ""
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT name, assets, bytes FROM usage WHERE kind = ? AND level = ? AND name >= ? AND name < ?
                ORDER BY bytes DESC, name LIMIT ?
                """,
            // Names are text: no byte is above that of U+10FFFF.
            arguments: [query.group.rawValue, level, prefix, prefix + "\u{10FFFF}", query.limit])
        return rows.map { AssetUsage.Part(name: $0[0], amount: AssetUsage.Amount(assets: $0[1], bytes: $0[2])) }
    }

    private static func sum(_ condition: String, _ arguments: StatementArguments, _ db: Database) throws
        -> AssetUsage.Amount
    {
        let row = try Row.fetchOne(
            db, sql: "SELECT coalesce(sum(assets), 0), coalesce(sum(bytes), 0) FROM usage WHERE \(condition)",
            arguments: arguments)
        return AssetUsage.Amount(assets: row?[0] ?? 0, bytes: row?[1] ?? 0)
    }

    private static func ages(_ query: UsageQuery, _ now: Timestamp, _ db: Database) throws -> AssetUsage {
        let hour = now.milliseconds / 3_600_000
        var amounts = UsageName.ages.map { AssetUsage.Part(name: $0.name, amount: AssetUsage.Amount()) }
        for row in try Row.fetchAll(
            db, sql: "SELECT CAST(name AS INTEGER), assets, bytes FROM usage WHERE kind = 'age'")
        {
            let age = hour - (row[0] as Int64)
            let index = UsageName.ages.firstIndex { age < $0.hours } ?? amounts.count - 1
            amounts[index].amount.assets += row[1]
            amounts[index].amount.bytes += row[2]
        }
        let total = amounts.reduce(into: AssetUsage.Amount()) { sum, part in
            sum.assets += part.amount.assets
            sum.bytes += part.amount.bytes
        }
        return AssetUsage(parts: amounts.filter { $0.amount.assets > 0 }, total: total)
    }

    /// The number of rows of the usage that differ from a complete count.
    func usageFaults(repairing: Bool) async throws(CacheError) -> Int {
        repairing
            ? try await write { try UsageTable.differences($0, isRepairing: true) }
            : try await read { try UsageTable.differences($0, isRepairing: false) }
    }
}
