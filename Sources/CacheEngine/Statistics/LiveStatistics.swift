package import CacheCore
import DequeModule

/// The traffic of one or more seconds.
package struct LiveTraffic: Hashable, Sendable {
    /// The number of seconds.
    package var seconds = 1
    /// Body bytes handed to clients that were on disk when their read began.
    package var clientBytesFromCache: Int64 = 0
    /// Body bytes handed to clients that were fetched during their read.
    package var clientBytesFromUpstream: Int64 = 0
    package var upstreamBytes: Int64 = 0
    /// Ended content requests, in the order of `ReadOutcome.Class.allCases`.
    package var requests = [Int64](repeating: 0, count: ReadOutcome.Class.allCases.count)

    package var clientBytes: Int64 { clientBytesFromCache + clientBytesFromUpstream }

    package var hitRatios: HitRatios {
        HitRatios(
            hits: ReadOutcome.Class.hits.reduce(0) { $0 + requests[$1.index] }, requests: requests.reduce(0, +),
            bytesFromCache: clientBytesFromCache, bytes: clientBytes)
    }

    mutating func add(_ other: LiveTraffic, times factor: Int = 1) {
        let times = Int64(factor)
        seconds += factor * other.seconds
        clientBytesFromCache += times * other.clientBytesFromCache
        clientBytesFromUpstream += times * other.clientBytesFromUpstream
        upstreamBytes += times * other.upstreamBytes
        for index in requests.indices { requests[index] += times * other.requests[index] }
    }
}

/// The statistics of one second.
package struct LiveSecond: Sendable {
    /// The start of the second.
    package var at: Timestamp
    package var traffic = LiveTraffic()
    /// Times to the first byte of the ended requests; nil without one.
    package var firstByte: HistogramSnapshot?
    /// Readers at the end of the second.
    package var activeReaders: Int64 = 0
    /// Fills at the end of the second.
    package var activeFills = 0
    /// The traffic of the 5 seconds, the minute and the 15 minutes that end with this second.
    package var last5Seconds = LiveTraffic()
    package var lastMinute = LiveTraffic()
    package var last15Minutes = LiveTraffic()
}

/// The statistics of the last 900 seconds, in buckets of one second.
package final class LiveStatistics: Sendable {
    /// The number of seconds kept.
    package static let length = 900

    /// The counters at the end of the last second.
    private struct Sample {
        var at: Timestamp
        var totals: LiveCounters.Totals
        var latencies: RequestLatencySnapshot
    }

    private struct State {
        var seconds: Deque<LiveSecond> = []
        var last: Sample?

        /// The traffic of `second` and of the seconds before it, `count` in all. `window`: the same traffic of a second.
        func traffic(_ window: KeyPath<LiveSecond, LiveTraffic>, of count: Int, with second: LiveSecond) -> LiveTraffic
        {
            var traffic = second.traffic
            if let last = seconds.last { traffic.add(last[keyPath: window]) }
            if seconds.count >= count { traffic.add(seconds[seconds.count - count].traffic, times: -1) }
            return traffic
        }
    }

    private let counters: LiveCounters
    private let latencies: RequestLatencies
    private let fills: FillRegistry
    private let state = OrderedMutex(.leaf, State())

    init(counters: LiveCounters, latencies: RequestLatencies, fills: FillRegistry) {
        self.counters = counters
        self.latencies = latencies
        self.fills = fills
    }

    /// Ends the seconds before `now`. Everything counted since the last call belongs to the latest of them; seconds
    /// without a call of their own are empty. Returns the new seconds.
    func sample(at now: Timestamp) -> [LiveSecond] {
        let second = Timestamp(milliseconds: now.milliseconds - now.milliseconds % 1000)
        let current = Sample(at: second, totals: counters.totals, latencies: latencies.snapshotWithoutOrigins)
        let fillCount = fills.count
        return state.withLock { state in
            guard let last = state.last else {
                state.last = current
                return []
            }
            let count = (second.milliseconds - last.at.milliseconds) / 1000
            // The wall clock may be set back: nothing is ended until it has caught up.
            guard count > 0 else { return [] }
            var new = (0..<min(count, Int64(Self.length))).map { index in
                LiveSecond(at: second - .seconds(min(count, Int64(Self.length)) - index))
            }
            new[new.count - 1].count(since: last.totals, current.totals)
            new[new.count - 1].count(since: last.latencies, current.latencies)
            for index in new.indices {
                new[index].activeReaders = current.totals.readers
                new[index].activeFills = fillCount
            }
            state.last = current
            for var second in new {
                second.last5Seconds = state.traffic(\.last5Seconds, of: 5, with: second)
                second.lastMinute = state.traffic(\.lastMinute, of: 60, with: second)
                second.last15Minutes = state.traffic(\.last15Minutes, of: Self.length, with: second)
                state.seconds.append(second)
            }
            state.seconds.removeFirst(max(0, state.seconds.count - Self.length))
            return state.seconds.suffix(new.count)
        }
    }

    /// The last `count` complete seconds, oldest first.
    package func seconds(last count: Int = LiveStatistics.length) -> [LiveSecond] {
        state.withLock { Array($0.seconds.suffix(count)) }
    }

    /// The seconds after `time`, oldest first.
    package func seconds(after time: Timestamp) -> [LiveSecond] {
        state.withLock { state in Array(state.seconds.reversed().prefix { $0.at > time }.reversed()) }
    }
}

extension LiveSecond {
    fileprivate mutating func count(since last: LiveCounters.Totals, _ now: LiveCounters.Totals) {
        traffic.clientBytesFromCache = now.fromCache - last.fromCache
        traffic.clientBytesFromUpstream = now.fromUpstream - last.fromUpstream
        traffic.upstreamBytes = now.upstream - last.upstream
    }

    fileprivate mutating func count(since last: RequestLatencySnapshot, _ now: RequestLatencySnapshot) {
        traffic.requests = zip(now.durations, last.durations).map { Int64($0.since($1).count) }
        let new = now.firstByte.since(last.firstByte)
        firstByte = new.count > 0 ? new : nil
    }
}
