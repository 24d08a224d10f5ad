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
    /// Requests that were answered with a status of 400 or more.
    package var errors: Int64
    /// Whether the reader has series of its own in metrics. It keeps them until the end of the process.
    package var isLabelled: Bool

    package init(
        token: String, requests: Int64, bytes: Int64, bytesFromCache: Int64, errors: Int64 = 0, isLabelled: Bool = true
    ) {
        (self.token, self.requests, self.bytes) = (token, requests, bytes)
        (self.bytesFromCache, self.errors, self.isLabelled) = (bytesFromCache, errors, isLabelled)
    }
}

/// Counters for each reader. Readers above the limit share the counter `(other)`, so that tokens with arbitrary
/// subjects cannot exhaust memory.
package final class ReaderFigures: Sendable {
    /// The counter of one reader. It may be kept for the length of a connection; an increment takes no lock.
    package final class Counter: Sendable {
        /// The name in ``ReaderUsage/token``.
        package let token: String
        private let isLabelled: Bool
        private let requests = Atomic<Int64>(0)
        private let bytes = Atomic<Int64>(0)
        private let bytesFromCache = Atomic<Int64>(0)
        private let errors = Atomic<Int64>(0)

        fileprivate init(_ token: String, isLabelled: Bool) {
            self.token = token
            self.isLabelled = isLabelled
        }

        /// Adds to the counters.
        package func add(requests: Int64 = 0, bytes: Int64 = 0, bytesFromCache: Int64 = 0, errors: Int64 = 0) {
            if requests != 0 { self.requests.wrappingAdd(requests, ordering: .relaxed) }
            if bytes != 0 { self.bytes.wrappingAdd(bytes, ordering: .relaxed) }
            if bytesFromCache != 0 { self.bytesFromCache.wrappingAdd(bytesFromCache, ordering: .relaxed) }
            if errors != 0 { self.errors.wrappingAdd(errors, ordering: .relaxed) }
        }

        fileprivate var usage: ReaderUsage {
            ReaderUsage(
                token: token, requests: requests.load(ordering: .relaxed), bytes: bytes.load(ordering: .relaxed),
                bytesFromCache: bytesFromCache.load(ordering: .relaxed), errors: errors.load(ordering: .relaxed),
                isLabelled: isLabelled)
        }
    }

    /// One part of the counters with its own lock.
    private final class Shard: Sendable {
        let counters = OrderedMutex<[String: Counter]>(.leaf, [:])
    }

    /// The name of the counter for readers above the limit.
    package static let other = "(other)"
    /// The number of readers with series of their own in metrics, beside the named ones: the first ones that make
    /// requests.
    package static let labelled = 100

    private let limit: Int
    private let shards: [Shard]
    private let count = Atomic<Int>(0)
    private let otherCounter = Counter(ReaderFigures.other, isLabelled: false)

    /// - Parameters:
    ///   - limit: The maximum number of other readers with a counter of their own.
    ///   - names: The readers that have a counter and series from the start.
    package init(limit: Int = 10_000, named names: [String] = []) {
        self.limit = limit
        shards = (0..<16).map { _ in Shard() }
        for name in names {
            shard(of: name).counters.withLock { $0[name] = Counter(name, isLabelled: true) }
        }
    }

    private func shard(of id: String) -> Shard { shards[Int(UInt(bitPattern: id.hashValue) % UInt(shards.count))] }

    /// The counter of a reader.
    package func counter(for id: String) -> Counter {
        shard(of: id).counters.withLock { counters in
            if let counter = counters[id] { return counter }
            guard let number = claim() else { return otherCounter }
            let counter = Counter(id, isLabelled: number <= Self.labelled)
            counters[id] = counter
            return counter
        }
    }

    /// Adds to the counters of a reader.
    package func add(
        to id: String, requests: Int64 = 0, bytes: Int64 = 0, bytesFromCache: Int64 = 0, errors: Int64 = 0
    ) {
        counter(for: id).add(requests: requests, bytes: bytes, bytesFromCache: bytesFromCache, errors: errors)
    }

    /// The counters of all readers, sorted by id; `(other)` only after its first use.
    package func snapshot() -> [ReaderUsage] {
        var usages = shards.flatMap { shard in shard.counters.withLock { $0.values.map(\.usage) } }
        let rest = otherCounter.usage
        if rest.requests != 0 || rest.bytes != 0 || rest.bytesFromCache != 0 || rest.errors != 0 { usages.append(rest) }
        return usages.sorted { $0.token < $1.token }
    }

    /// Claims one of the counters, and returns its number; nil if all are in use.
    private func claim() -> Int? {
        let number = count.wrappingAdd(1, ordering: .relaxed).newValue
        guard number <= limit else {
            count.wrappingSubtract(1, ordering: .relaxed)
            return nil
        }
        return number
    }
}
