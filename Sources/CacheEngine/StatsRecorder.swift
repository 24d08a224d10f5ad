import CacheCore
import Foundation
import Synchronization

/// Remembers what has been written to the history, so that each minute's increase is written once.
final class StatsRecorder: Sendable {
    private let written = Mutex<[String: TrafficFigures]>([:])

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
    ]

    mutating func add(_ other: TrafficFigures) { combine(other, +) }

    mutating func subtract(_ other: TrafficFigures) {
        combine(other, -)
        requests = requests.filter { $0.value != 0 }
    }

    private mutating func combine(_ other: TrafficFigures, _ operation: (Int64, Int64) -> Int64) {
        for counter in Self.counters {
            self[keyPath: counter] = operation(self[keyPath: counter], other[keyPath: counter])
        }
        for (name, count) in other.requests { requests[name] = operation(requests[name] ?? 0, count) }
    }

    /// The figures as one line of JSON.
    var json: String {
        // Numbers and short names always encode.
        (try? String(decoding: JSONEncoder().encode(self), as: UTF8.self)) ?? "{}"
    }

    /// Nil where `json` is not what `json` writes.
    init?(json: String) {
        // A line that cannot be read is left out of the history.
        guard let figures = try? JSONDecoder().decode(Self.self, from: Data(json.utf8)) else { return nil }
        self = figures
    }
}
