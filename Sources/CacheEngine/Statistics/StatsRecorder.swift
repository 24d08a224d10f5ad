import CacheCore
import Foundation
import Synchronization

/// Remembers what has been written to the history, so that each minute's increase is written once.
final class StatsRecorder: Sendable {
    private let written = Mutex<[String: TrafficFigures]>([:])
    private let lastAt = Mutex<Timestamp?>(nil)

    /// When what is written now was counted: no two writings have the same time.
    func instant(at now: Timestamp) -> Timestamp {
        lastAt.withLock { last in
            var instant = now
            if let last, last >= now, last < now + .seconds(1) { instant = last + .milliseconds(1) }
            last = instant
            return instant
        }
    }

    /// `counted` is in the history.
    func wrote(_ counted: [String: TrafficFigures]) { written.withLock { $0 = counted } }

    /// What was counted of each origin since the last writing; origins without traffic are left out.
    func pending(of counted: [String: TrafficFigures]) -> [(origin: String, increase: TrafficFigures)] {
        let before = written.withLock { $0 }
        return counted.compactMap { origin, figures in
            var increase = figures
            increase.subtract(before[origin] ?? TrafficFigures())
            return increase == TrafficFigures() ? nil : (origin, increase)
        }
    }
}

extension TrafficFigures {
    private static let counters: [any WritableKeyPath<TrafficFigures, Int64> & Sendable] = [
        \.clientAborted, \.servedFromCacheBytes, \.servedAfterFillBytes, \.upstreamBytes, \.upstreamPrefetchBytes,
        \.refetchedBytes, \.fillsSucceeded, \.fillsFailed, \.fillsTimedOut, \.fillsCancelled, \.fillsRetried,
        \.fillsHedged, \.hedgesWon, \.requestedBytes, \.upstreamRequests, \.upstreamPrefetchRequests,
    ]
    private static let tallies: [any WritableKeyPath<TrafficFigures, [String: Int64]> & Sendable] = [
        \.requests, \.waits,
    ]

    /// Adds every figure of `other`.
    package mutating func add(_ other: TrafficFigures) { combine(other, +) }

    mutating func subtract(_ other: TrafficFigures) {
        combine(other, -)
        for tally in Self.tallies { self[keyPath: tally] = self[keyPath: tally].filter { $0.value != 0 } }
    }

    private mutating func combine(_ other: TrafficFigures, _ operation: (Int64, Int64) -> Int64) {
        for counter in Self.counters {
            self[keyPath: counter] = operation(self[keyPath: counter], other[keyPath: counter])
        }
        for tally in Self.tallies {
            self[keyPath: tally].merge(other[keyPath: tally].mapValues { operation(0, $0) }, uniquingKeysWith: +)
        }
    }

    /// The figures as one line of JSON.
    var json: String {
        // Numbers and short names always encode.
        (try? String(decoding: JSONEncoder().encode(self), as: UTF8.self)) ?? "{}"
    }

    /// Nil where `json` is not what `json` writes. What an earlier version did not count yet is zero.
    init?(json: String) {
        // A line that cannot be read is left out of the history.
        guard let zeros = Self.object(TrafficFigures().json), let written = Self.object(json),
            let whole = try? JSONSerialization.data(withJSONObject: zeros.merging(written) { $1 }),
            let figures = try? JSONDecoder().decode(Self.self, from: whole)
        else { return nil }
        self = figures
    }

    private static func object(_ json: String) -> [String: Any]? {
        (try? JSONSerialization.jsonObject(with: Data(json.utf8))) as? [String: Any]
    }
}
