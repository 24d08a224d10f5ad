import CacheCore
import Foundation

/// Traffic counters of one origin or of all. Each event is counted once, so the counters of groups can be added.
/// `Figure<TrafficFigures>.all` states the meaning of each; minute records contain them under the names of the
/// properties.
package struct TrafficFigures: Hashable, Sendable, Codable {
    /// Requests by class, `ReadOutcome.Class`; their sum is the total.
    package var requests: [String: Int64] = [:]
    package var clientAborted: Int64 = 0
    package var servedFromCacheBytes: Int64 = 0
    package var servedAfterFillBytes: Int64 = 0
    package var upstreamBytes: Int64 = 0
    package var upstreamPrefetchBytes: Int64 = 0
    package var refetchedBytes: Int64 = 0
    package var fillsSucceeded: Int64 = 0
    package var fillsFailed: Int64 = 0
    package var fillsTimedOut: Int64 = 0
    package var fillsCancelled: Int64 = 0
    package var fillsRetried: Int64 = 0
    package var fillsHedged: Int64 = 0
    package var hedgesWon: Int64 = 0
    package var requestedBytes: Int64 = 0
    package var upstreamRequests: Int64 = 0
    package var upstreamPrefetchRequests: Int64 = 0
    package var peerBytes: Int64 = 0
    package var peerFills: Int64 = 0
    package var peerFillsFailed: Int64 = 0
    package var peerReads: Int64 = 0
    package var sentToPeerBytes: Int64 = 0
    /// Waits of readers for bytes, by `WaitOutcome.name`.
    package var waits: [String: Int64] = [:]

    package init() {}

    subscript(requests requestClass: ReadOutcome.Class) -> Int64 {
        get { requests[requestClass.rawValue] ?? 0 }
        set { requests[requestClass.rawValue] = newValue == 0 ? nil : newValue }
    }
    /// The number of waits with an outcome, by its name.
    subscript(waits outcome: String) -> Int64 {
        get { waits[outcome] ?? 0 }
        set { waits[outcome] = newValue == 0 ? nil : newValue }
    }

    /// The number of requests of a class.
    package func count(_ requestClass: ReadOutcome.Class) -> Int64 { self[requests: requestClass] }
    package var requestsTotal: Int64 { requests.values.reduce(0, +) }
    package var servedBytes: Int64 { servedFromCacheBytes + servedAfterFillBytes }
    package var hitRatios: HitRatios {
        HitRatios(
            hits: ReadOutcome.Class.hits.reduce(0) { $0 + self[requests: $1] }, requests: requestsTotal,
            bytesFromCache: servedFromCacheBytes, bytes: servedBytes)
    }
}

extension Figure<TrafficFigures> {
    /// All figures of traffic. `/metrics` and the documents contain them for each origin.
    package static let all: [Figure] = [
        Figure(nil, .counter, .count, "Content requests", "requests.total", \.requestsTotal),
        Figure(
            "requests_total", .counter, .count, "Content requests by cache result", by: ["result"],
            .series(
                ReadOutcome.Class.allCases.map {
                    Series($0.rawValue, "requests.\($0.rawValue)", \TrafficFigures.[requests: $0])
                })),
        Figure("client_aborted_total", .count, "Responses that the client aborted", "clientAborted", \.clientAborted),
        Figure(nil, .counter, .bytes, "Body bytes sent to clients", "bytes.served", \.servedBytes),
        Figure(
            "response_bytes_total", .counter, .bytes,
            "Body bytes sent to clients, by source: `cache`, cached when the read began; `upstream`, fetched during it",
            by: ["source"],
            .series([
                Series("cache", "bytes.servedFromCache", \.servedFromCacheBytes),
                Series("upstream", "bytes.servedAfterFill", \.servedAfterFillBytes),
            ])),
        Figure(
            "requested_bytes_total", .bytes,
            "Bytes of the windows that upstreams answered; a window requested twice counts twice", "bytes.requested",
            \.requestedBytes),
        Figure(
            "upstream_bytes_total", .bytes, "Body bytes received from upstreams", "bytes.upstream", \.upstreamBytes),
        Figure(
            "upstream_prefetch_bytes_total", .bytes, "Body bytes received from upstreams for prefetch jobs",
            "bytes.upstreamPrefetch", \.upstreamPrefetchBytes),
        Figure(
            "peer_bytes_total", .counter, .bytes,
            "Body bytes exchanged with other nodes of the fleet: `received` in place of an upstream, `sent` to them",
            by: ["direction"],
            .series([
                Series("received", "bytes.fromPeers", \.peerBytes),
                Series("sent", "bytes.toPeers", \.sentToPeerBytes),
            ])),
        Figure(
            "refetched_bytes_total", .bytes,
            "Body bytes received from upstreams that were cached already or not wanted: small extents fetched again "
                + "with their gaps, and bytes received twice", "bytes.refetched", \.refetchedBytes),
        Figure(nil, .gauge, .ratio, "(hit + revalidated + stale) ÷ total; 0 without requests", "requestHitRatio") {
            $0.hitRatios.request ?? 0
        },
        Figure(nil, .gauge, .ratio, "servedFromCache ÷ served; 0 if nothing was served", "byteHitRatio") {
            $0.hitRatios.byte ?? 0
        },
        Figure(nil, .gauge, .ratio, "upstream ÷ served; 0 if nothing was served", "upstreamRatio") {
            $0.upstreamBytes.ratio(to: $0.servedBytes) ?? 0
        },
        Figure(nil, .gauge, .bytes, "served − upstream; 0 if upstreams sent more", "bytes.saved") {
            max(0, $0.servedBytes - $0.upstreamBytes)
        },
        Figure(
            "fills_total", .counter, .count,
            "Finished upstream transfers, by outcome; an answer that the request of a reader caused (404, 410, 414, "
                + "416) counts as succeeded", by: ["outcome"],
            .series([
                Series("succeeded", "fills.succeeded", \.fillsSucceeded),
                Series("failed", "fills.failed", \.fillsFailed),
                Series("timedOut", "fills.timedOut", \.fillsTimedOut),
                Series("cancelled", "fills.cancelled", \.fillsCancelled),
            ])),
        Figure(
            "peer_fills_total", .counter, .count,
            "Finished transfers from other nodes of the fleet, by outcome; the rest of a failed one is fetched from the "
                + "upstream", by: ["outcome"],
            .series([
                Series("succeeded", "fills.fromPeers", \.peerFills),
                Series("failed", "fills.fromPeersFailed", \.peerFillsFailed),
            ])),
        Figure("peer_reads_total", .count, "Responses to other nodes of the fleet", "fills.toPeers", \.peerReads),
        Figure(
            "fill_retries_total", .count, "Upstream transfers retried after a failure", "fills.retried",
            \.fillsRetried),
        Figure(
            "hedges_total", .count, "Hedged requests (`hedging`): duplicates sent because the first byte was late",
            "fills.hedged", \.fillsHedged),
        Figure(
            "hedges_won_total", .count, "Hedged requests answered before the original", "fills.hedgesWon",
            \.hedgesWon),
        Figure(
            "upstream_requests_total", .counter, .count,
            "Requests sent to upstreams, by purpose; retries and hedges included", by: ["purpose"],
            .series([
                Series("reader", "fills.requests", \.upstreamRequests),
                Series("prefetch", "fills.prefetchRequests", \.upstreamPrefetchRequests),
            ])),
        Figure(
            nil, .gauge, .ratio, "Upstream requests for readers ÷ content requests; 0 without requests",
            "fills.requestsPerClientRequest"
        ) { $0.upstreamRequests.ratio(to: $0.requestsTotal) ?? 0 },
        Figure(
            nil, .gauge, .bytes, "Body bytes from upstreams ÷ upstream requests; 0 without requests",
            "fills.bytesPerRequest"
        ) { $0.upstreamBytes.ratio(to: $0.upstreamRequests + $0.upstreamPrefetchRequests) ?? 0 },
        Figure(
            "waits_total", .counter, .count, "Finished waits of readers for bytes, by outcome", by: ["outcome"],
            .series(
                WaitOutcome.names.map { Series($0, "fills.waits.\($0)", \TrafficFigures.[waits: $0]) })),
    ]

    /// The counters of the table.
    fileprivate static let counters = all.flatMap(\.series).compactMap(\.counter)
}

extension TrafficFigures {
    /// Adds all counters of `other`.
    package mutating func add(_ other: TrafficFigures) {
        for counter in Figure.counters { self[keyPath: counter] += other[keyPath: counter] }
    }

    /// Subtracts all counters of `other`.
    mutating func subtract(_ other: TrafficFigures) {
        for counter in Figure.counters { self[keyPath: counter] -= other[keyPath: counter] }
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

/// The shares of requests and of bytes that were served from the cache.
package struct HitRatios: Hashable, Sendable {
    package var hits: Int64 = 0
    package var requests: Int64 = 0
    package var bytesFromCache: Int64 = 0
    package var bytes: Int64 = 0

    /// (hit + revalidated + stale) ÷ total; nil without requests.
    package var request: Double? { hits.ratio(to: requests) }
    /// Bytes from the cache ÷ sent bytes; nil without bytes.
    package var byte: Double? { bytesFromCache.ratio(to: bytes) }
}

extension Int64 {
    /// This count ÷ `whole`; nil if `whole` is 0.
    package func ratio(to whole: Int64) -> Double? { whole == 0 ? nil : Double(self) / Double(whole) }
}
