import CacheCore
import Foundation
import Synchronization

/// Remembers the counters last written to the history, so that each increase is written once.
final class StatsRecorder: Sendable {
    /// Guards the counters last written, by origin.
    private let written = Mutex<[String: TrafficFigures]>([:])
    /// Guards the time of the last write.
    private let lastAt = Mutex<Timestamp?>(nil)

    /// The time for a write at `now`. It is unique: if two writes would have the same time, the second gets a later
    /// one.
    func instant(at now: Timestamp) -> Timestamp {
        lastAt.withLock { last in
            var instant = now
            if let last, last >= now, last < now + .seconds(1) { instant = last + .milliseconds(1) }
            last = instant
            return instant
        }
    }

    /// `counted` has been written to the history.
    func wrote(_ counted: [String: TrafficFigures]) { written.withLock { $0 = counted } }

    /// The increase of each origin's counters since the last write; origins without an increase are left out.
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
    /// All counters that are numbers.
    private static let counters: [any WritableKeyPath<TrafficFigures, Int64> & Sendable] = [
        \.clientAborted, \.servedFromCacheBytes, \.servedAfterFillBytes, \.upstreamBytes, \.upstreamPrefetchBytes,
        \.refetchedBytes, \.fillsSucceeded, \.fillsFailed, \.fillsTimedOut, \.fillsCancelled, \.fillsRetried,
        \.fillsHedged, \.hedgesWon, \.requestedBytes, \.upstreamRequests, \.upstreamPrefetchRequests,
    ]
    /// All counters by name.
    private static let tallies: [any WritableKeyPath<TrafficFigures, [String: Int64]> & Sendable] = [
        \.requests, \.waits,
    ]

    /// Adds all counters of `other`.
    package mutating func add(_ other: TrafficFigures) { combine(other, +) }

    /// Subtracts all counters of `other`; names with a count of 0 are removed.
    mutating func subtract(_ other: TrafficFigures) {
        combine(other, -)
        for tally in Self.tallies { self[keyPath: tally] = self[keyPath: tally].filter { $0.value != 0 } }
    }

    /// Applies `operation` to each pair of counters.
    private mutating func combine(_ other: TrafficFigures, _ operation: (Int64, Int64) -> Int64) {
        for counter in Self.counters {
            self[keyPath: counter] = operation(self[keyPath: counter], other[keyPath: counter])
        }
        for tally in Self.tallies {
            self[keyPath: tally].merge(other[keyPath: tally].mapValues { operation(0, $0) }, uniquingKeysWith: +)
        }
    }

    /// The counters as one line of JSON.
    var json: String {
        // Encoding cannot fail: the values are integers and short names.
        (try? String(decoding: JSONEncoder().encode(self), as: UTF8.self)) ?? "{}"
    }

    /// Parses a line that `json` has written; nil if it is invalid. Counters missing from an earlier version's line
    /// are zero.
    init?(json: String) {
        // The caller leaves an invalid line out of the history.
        guard let zeros = try? JSONParser.parse(TrafficFigures().json.utf8),
            let figures = try? zeros.merged(with: JSONParser.parse(json.utf8)).decode(Self.self, isStrict: false)
        else { return nil }
        self = figures
    }
}
