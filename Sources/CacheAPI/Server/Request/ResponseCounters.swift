import Synchronization

/// The number of responses by kind and status. Threads count without a lock.
final class ResponseCounters: Sendable {
    /// The counts of one kind and status.
    struct Count: Hashable, Sendable {
        var kind: String
        var status: Int
        var count: Int64
    }

    /// The statuses that are counted; others belong to the nearest one.
    private static let statuses = 100..<600

    /// The counts of all statuses of each kind. Shards are separate objects, so that they rarely share a cache line.
    private final class Shard: Sendable {
        let counts: [2500 of Atomic<Int64>] = InlineArray { _ in Atomic<Int64>(0) }
    }

    private let shards = (0..<4).map { _ in Shard() }

    /// - Parameter shard: Any number that differs between threads.
    func count(_ kind: RequestKind, _ status: Int, shard: Int) {
        let index = Self.place(of: kind) + min(max(status, 100), 599) - 100
        shards[Int(UInt(bitPattern: shard) % UInt(shards.count))].counts[index].wrappingAdd(1, ordering: .relaxed)
    }

    /// The counts so far that are not zero.
    var snapshot: [Count] {
        RequestKind.allCases.flatMap { kind in
            Self.statuses.compactMap { status in
                let index = Self.place(of: kind) + status - 100
                let sum = shards.reduce(0) { $0 + $1.counts[index].load(ordering: .relaxed) }
                return sum == 0 ? nil : Count(kind: kind.rawValue, status: status, count: sum)
            }
        }
    }

    /// The index of the first count of a kind.
    private static func place(of kind: RequestKind) -> Int {
        switch kind {
        case .content: 0
        case .peer: 500
        case .api: 1000
        case .dashboard: 1500
        case .health: 2000
        }
    }
}
