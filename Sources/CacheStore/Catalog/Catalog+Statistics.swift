package import CacheCore
import GRDB

/// What was counted in one minute, for one origin or for all.
package struct StatisticsMinute: Hashable, Sendable {
    package var at: Timestamp
    /// Empty for the whole service.
    package var origin: String
    /// The counters, as the counting room writes them.
    package var counters: String

    package init(at: Timestamp, origin: String, counters: String) {
        self.at = at
        self.origin = origin
        self.counters = counters
    }
}

extension Catalog {
    /// Keeps minutes in one transaction; what was kept of the same minute and origin is replaced.
    package func saveStatistics(minutes: [StatisticsMinute]) async throws(CacheError) {
        try await write { db in
            for minute in minutes {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO statistics_minutes (at, origin, counters) VALUES (?, ?, ?)",
                    arguments: [minute.at.milliseconds, minute.origin, minute.counters])
            }
        }
    }

    /// Keeps one minute.
    package func appendMinute(at time: Timestamp, origin: String, counters: String) async throws(CacheError) {
        try await saveStatistics(minutes: [StatisticsMinute(at: time, origin: origin, counters: counters)])
    }

    /// The minutes from `time` on, oldest first; all origins, or one.
    package func minutes(since time: Timestamp, origin: String? = nil) async throws(CacheError) -> [StatisticsMinute] {
        try await read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT at, origin, counters FROM statistics_minutes
                    WHERE at >= :time AND (:origin IS NULL OR origin = :origin) ORDER BY at, origin
                    """,
                arguments: ["time": time.milliseconds, "origin": origin])
            return rows.map {
                StatisticsMinute(at: Timestamp(milliseconds: $0[0]), origin: $0[1], counters: $0[2])
            }
        }
    }

    /// Forgets the minutes before `time`.
    package func pruneMinutes(before time: Timestamp) async throws(CacheError) {
        try await write { db in
            try db.execute(sql: "DELETE FROM statistics_minutes WHERE at < ?", arguments: [time.milliseconds])
        }
    }
}
