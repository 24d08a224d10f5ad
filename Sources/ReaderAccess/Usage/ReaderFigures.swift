import CacheCore
import Synchronization

/// The counters of one reader since the start of the service.
package struct ReaderUsage: Hashable, Sendable {
    /// The reader's id, or `(other)` for all readers above the limit together.
    package var token: String
    package var requests: Int64
    /// Sent body bytes.
    package var bytes: Int64
    /// Those of them that came from the cache.
    package var bytesFromCache: Int64
}

/// Counters for each reader. Readers above the limit share the counter `(other)`, so that tokens with arbitrary
/// subjects cannot exhaust memory.
package final class ReaderFigures: Sendable {
    /// The counter of one reader. It may be kept for the length of a connection; an increment takes no lock.
    package final class Counter: Sendable {
        /// The name in ``ReaderUsage/token``.
        package let token: String
        private let requests = Atomic<Int64>(0)
        private let bytes = Atomic<Int64>(0)
        private let bytesFromCache = Atomic<Int64>(0)

        fileprivate init(_ token: String) { self.token = token }

        /// Adds to the counters.
        package func add(requests: Int64 = 0, bytes: Int64 = 0, bytesFromCache: Int64 = 0) {
            if requests != 0 { self.requests.wrappingAdd(requests, ordering: .relaxed) }
            if bytes != 0 { self.bytes.wrappingAdd(bytes, ordering: .relaxed) }
            if bytesFromCache != 0 { self.bytesFromCache.wrappingAdd(bytesFromCache, ordering: .relaxed) }
        }

        fileprivate var usage: ReaderUsage {
            ReaderUsage(
                token: token, requests: requests.load(ordering: .relaxed), bytes: bytes.load(ordering: .relaxed),
                bytesFromCache: bytesFromCache.load(ordering: .relaxed))
        }
    }

    /// One part of the counters with its own lock.
    private final class Shard: Sendable {
        let counters = OrderedMutex<[String: Counter]>(.leaf, [:])
    }

    /// The name of the counter for readers above the limit.
    package static let other = "(other)"

    private let limit: Int
    private let shards: [Shard]
    private let count = Atomic<Int>(0)
    private let otherCounter = Counter(ReaderFigures.other)

    /// - Parameter limit: The maximum number of readers with a counter of their own.
    package init(limit: Int = 10_000) {
        self.limit = limit
        shards = (0..<16).map { _ in Shard() }
    }

    /// The counter of a reader.
    package func counter(for id: String) -> Counter {
        let shard = shards[Int(UInt(bitPattern: id.hashValue) % UInt(shards.count))]
        return shard.counters.withLock { counters in
            if let counter = counters[id] { return counter }
            guard claim() else { return otherCounter }
            let counter = Counter(id)
            counters[id] = counter
            return counter
        }
    }

    /// Adds to the counters of a reader.
    package func add(to id: String, requests: Int64 = 0, bytes: Int64 = 0, bytesFromCache: Int64 = 0) {
        counter(for: id).add(requests: requests, bytes: bytes, bytesFromCache: bytesFromCache)
    }

    /// The counters of all readers, sorted by id; `(other)` only after its first use.
    package func snapshot() -> [ReaderUsage] {
        var usages = shards.flatMap { shard in shard.counters.withLock { $0.values.map(\.usage) } }
        let rest = otherCounter.usage
        if rest.requests != 0 || rest.bytes != 0 || rest.bytesFromCache != 0 { usages.append(rest) }
        return usages.sorted { $0.token < $1.token }
    }

    /// Claims one of the counters; false if all are in use.
    private func claim() -> Bool {
        guard count.wrappingAdd(1, ordering: .relaxed).newValue <= limit else {
            count.wrappingSubtract(1, ordering: .relaxed)
            return false
        }
        return true
    }
}
