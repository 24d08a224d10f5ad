package import CacheCore
import GRDB

/// Counters of one minute, for one origin or for the whole service.
package struct StatisticsMinute: Hashable, Sendable {
    /// Time at which the minute was recorded.
    package var at: Timestamp
    /// Name of the origin; empty for the whole service.
    package var origin: String
    /// The counters as JSON text. The catalog does not interpret it.
    package var counters: String

    package init(at: Timestamp, origin: String, counters: String) {
        self.at = at
        self.origin = origin
        self.counters = counters
    }
}

/// Counters per minute: the table `statistics_minutes`.
extension Catalog {
    /// Stores minutes in one transaction. Replaces earlier values of the same minute and origin.
    package func saveStatistics(minutes: [StatisticsMinute]) async throws(CacheError) {
        try await write { db in
            for minute in minutes {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO statistics_minutes (at, origin, counters) VALUES (?, ?, ?)",
                    arguments: [minute.at.milliseconds, minute.origin, minute.counters])
            }
        }
    }

    /// Stores one minute.
    func appendMinute(at time: Timestamp, origin: String, counters: String) async throws(CacheError) {
        try await saveStatistics(minutes: [StatisticsMinute(at: time, origin: origin, counters: counters)])
    }

    /// Returns the minutes from `time` on, oldest first, of one origin or of all.
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

    /// Deletes the minutes before `time`.
    package func pruneMinutes(before time: Timestamp) async throws(CacheError) {
        try await write { db in
            try db.execute(sql: "DELETE FROM statistics_minutes WHERE at < ?", arguments: [time.milliseconds])
        }
    }
}
