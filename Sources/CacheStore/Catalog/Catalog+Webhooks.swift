package import CacheCore
import Foundation
import GRDB

/// An event that waits for its delivery to one webhook.
package struct WebhookDelivery: Hashable, Sendable {
    /// The number in the catalog, in the order of insertion; 0 before it.
    package fileprivate(set) var sequence: Int64 = 0
    package let webhook: String
    /// The identifier of the message, which all attempts and all webhooks share.
    package let message: String
    package let kind: String
    /// The body of the requests.
    package let payload: String
    package let createdAt: Timestamp
    /// The number of failed attempts.
    package var attempts = 0
    package var nextAttemptAt: Timestamp

    package init(webhook: String, message: String, kind: String, payload: String, createdAt: Timestamp) {
        self.webhook = webhook
        self.message = message
        self.kind = kind
        self.payload = payload
        self.createdAt = createdAt
        nextAttemptAt = createdAt
    }
}

/// The queued events of one webhook.
package struct WebhookBacklog: Hashable, Sendable {
    package var count: Int
    package var oldestAt: Timestamp
}

/// The queue of webhooks: the table `webhook_deliveries`.
extension Catalog {
    /// The maximum number of queued events of all webhooks.
    package static let mostDeliveries = 10_000

    /// Appends events in one transaction, and deletes the oldest ones above the limit. Returns the number of deleted ones
    /// by webhook.
    package func queue(
        _ deliveries: [WebhookDelivery], most: Int = mostDeliveries
    ) async throws(CacheError) -> [String: Int] {
        let secrets = secrets
        return try await write { db in
            let insert = try db.cachedStatement(
                sql: """
                    INSERT INTO webhook_deliveries
                        (webhook, message, kind, sealed_payload, created_at, attempts, next_attempt_at)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    """)
            for delivery in deliveries {
                try insert.execute(arguments: [
                    delivery.webhook, delivery.message, delivery.kind, try secrets.seal(delivery.payload),
                    delivery.createdAt.milliseconds, delivery.attempts, delivery.nextAttemptAt.milliseconds,
                ])
            }
            let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM webhook_deliveries") ?? 0
            guard count > most else { return [:] }
            let dropped = try String.fetchAll(
                db,
                sql: """
                    DELETE FROM webhook_deliveries WHERE sequence IN
                        (SELECT sequence FROM webhook_deliveries ORDER BY sequence LIMIT ?)
                    RETURNING webhook
                    """, arguments: [count - most])
            return dropped.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
    }

    /// The events of a webhook with the earliest next attempts, in this order. Events that cannot be decrypted are
    /// deleted.
    package func deliveries(of webhook: String, limit: Int) async throws(CacheError) -> [WebhookDelivery] {
        let secrets = secrets
        let (found, damaged) = try await read { db in
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT sequence, message, kind, sealed_payload, created_at, attempts, next_attempt_at
                        FROM webhook_deliveries WHERE webhook = ? ORDER BY next_attempt_at, sequence LIMIT ?
                        """), arguments: [webhook, limit])
            var (found, damaged): ([WebhookDelivery], [Int64]) = ([], [])
            for row in rows {
                let sequence: Int64 = row[0]
                // An event that cannot be decrypted has no receiver.
                guard let payload = try? secrets.open(row[3]) else {
                    damaged.append(sequence)
                    continue
                }
                var delivery = WebhookDelivery(
                    webhook: webhook, message: row[1], kind: row[2], payload: payload,
                    createdAt: Timestamp(milliseconds: row[4]))
                (delivery.sequence, delivery.attempts) = (sequence, row[5])
                delivery.nextAttemptAt = Timestamp(milliseconds: row[6])
                found.append(delivery)
            }
            return (found, damaged)
        }
        if !damaged.isEmpty { try await removeDeliveries(damaged) }
        return found
    }

    /// Records a failed attempt.
    package func postpone(_ sequence: Int64, attempts: Int, until time: Timestamp) async throws(CacheError) {
        try await write { db in
            try db.cachedStatement(
                sql: "UPDATE webhook_deliveries SET attempts = ?, next_attempt_at = ? WHERE sequence = ?"
            ).execute(arguments: [attempts, time.milliseconds, sequence])
        }
    }

    /// Deletes events that were delivered or have expired.
    package func removeDeliveries(_ sequences: [Int64]) async throws(CacheError) {
        try await write { db in
            let delete = try db.cachedStatement(sql: "DELETE FROM webhook_deliveries WHERE sequence = ?")
            for sequence in sequences { try delete.execute(arguments: [sequence]) }
        }
    }

    /// Makes the next attempts of a webhook due.
    package func hasten(_ webhook: String, to time: Timestamp) async throws(CacheError) {
        try await write { db in
            try db.execute(
                sql: "UPDATE webhook_deliveries SET next_attempt_at = ? WHERE webhook = ? AND next_attempt_at > ?",
                arguments: [time.milliseconds, webhook, time.milliseconds])
        }
    }

    /// Deletes the events of all other webhooks, and returns their number.
    package func keepDeliveries(of webhooks: [String]) async throws(CacheError) -> Int {
        try await write { db in
            let places = webhooks.map { _ in "?" }.joined(separator: ", ")
            try db.execute(
                sql: "DELETE FROM webhook_deliveries WHERE webhook NOT IN (\(places))",
                arguments: StatementArguments(webhooks))
            return db.changesCount
        }
    }

    /// The queued events of each webhook that has any.
    package func backlogs() async throws(CacheError) -> [String: WebhookBacklog] {
        try await read { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT webhook, count(*), min(created_at) FROM webhook_deliveries GROUP BY webhook")
            return rows.reduce(into: [:]) { backlogs, row in
                backlogs[row[0]] = WebhookBacklog(count: row[1], oldestAt: Timestamp(milliseconds: row[2]))
            }
        }
    }
}
