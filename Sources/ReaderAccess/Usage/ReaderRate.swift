import CacheCore

/// A token bucket for the transfers of one reader, as a value. It admits a burst of one second.
package struct ReaderRate: Hashable, Sendable {
    /// The limit; at least 1.
    package private(set) var bytesPerSecond: Int64
    /// The bytes that may be sent now; negative while earlier bytes are not paid for.
    private var balance: Double
    /// The time of the last change.
    private var updatedAt: Duration

    /// A full bucket.
    ///
    /// - Parameter uptime: The time of a monotonic clock.
    package init(bytesPerSecond: Int64, at uptime: Duration) {
        self.bytesPerSecond = max(1, bytesPerSecond)
        balance = Double(self.bytesPerSecond)
        updatedAt = uptime
    }

    /// Charges `bytes` and returns the delay before they may be sent; zero for at once.
    ///
    /// Later calls queue behind this one, so all connections of the reader share the rate.
    package mutating func delay(before bytes: Int64, at uptime: Duration) -> Duration {
        refill(at: uptime)
        balance -= Double(max(0, bytes))
        guard balance < 0 else { return .zero }
        // Ten years bound the conversion to a duration.
        return .seconds(min(-balance / Double(bytesPerSecond), 315_360_000))
    }

    /// Gives back bytes that were charged and not sent.
    package mutating func refund(_ bytes: Int64) {
        balance = min(balance + Double(max(0, bytes)), Double(bytesPerSecond))
    }

    /// Changes the limit. A debt remains in bytes.
    package mutating func limit(to bytesPerSecond: Int64, at uptime: Duration) {
        refill(at: uptime)
        self.bytesPerSecond = max(1, bytesPerSecond)
        balance = min(balance, Double(self.bytesPerSecond))
    }

    private mutating func refill(at uptime: Duration) {
        guard uptime > updatedAt else { return }
        let earned = (uptime - updatedAt) / .seconds(1) * Double(bytesPerSecond)
        balance = min(balance + earned, Double(bytesPerSecond))
        updatedAt = uptime
    }
}

/// The rates of all limited readers, by id. It holds at most 10,000 readers and drops the least recently used.
package final class ReaderRates: Sendable {
    private let rates = OrderedMutex(.leaf, BoundedTable<String, ReaderRate>(capacity: 10_000))

    package init() {}

    /// Charges bytes to a reader and returns the delay before they may be sent. Zero for a reader without limit.
    ///
    /// - Parameter uptime: The time of a monotonic clock.
    package func delay(before bytes: Int64, of reader: Reader, at uptime: Duration) -> Duration {
        guard let limit = reader.maxBytesPerSecond else { return .zero }
        return rates.withLock { rates in
            var rate = rates[reader.id] ?? ReaderRate(bytesPerSecond: limit, at: uptime)
            if rate.bytesPerSecond != limit { rate.limit(to: limit, at: uptime) }
            let delay = rate.delay(before: bytes, at: uptime)
            rates[reader.id] = rate
            return delay
        }
    }

    /// Gives back bytes that were charged and not sent.
    package func refund(_ bytes: Int64, of reader: Reader) {
        rates.withLock { rates in
            guard var rate = rates[reader.id] else { return }
            rate.refund(bytes)
            rates[reader.id] = rate
        }
    }
}
