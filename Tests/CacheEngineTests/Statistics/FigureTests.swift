import CacheCore
import Testing

@testable import CacheEngine

@Suite struct FigureTests {
    /// Figures with a different value for each counter of the table.
    private static var distinct: TrafficFigures {
        var figures = TrafficFigures()
        for (index, counter) in counters.enumerated() { figures[keyPath: counter] = 1000 + Int64(index) }
        return figures
    }

    private static let counters = Figure<TrafficFigures>.all.flatMap(\.series).compactMap(\.counter)

    @Test("Every stored counter is declared in the table, and no two declarations share one")
    func everyStoredCounterIsDeclared() {
        let figures = Self.distinct
        var stored: [Int64] = []
        for (name, value) in Mirror(reflecting: figures).children {
            let values = (value as? [String: Int64]).map { Array($0.values) } ?? [value as? Int64 ?? 0]
            #expect(values.allSatisfy { $0 >= 1000 } && !values.isEmpty, "\(name ?? "") is not declared.")
            stored += values
        }
        #expect(stored.sorted() == Self.counters.indices.map { 1000 + Int64($0) })
    }

    @Test("Every declared counter is counted")
    func everyDeclaredCounterIsCounted() {
        let counters = CacheCounters()
        let failed = CacheError(.upstreamProtocol, "Failed.")
        var tally = ReadTally()
        (tally.bytesFromCache, tally.bytesAfterFill) = (1, 1)
        for requestClass in ReadOutcome.Class.allCases {
            counters.ended(requestClass, of: nil, key: "k", origin: "o", sent: tally, isAborted: true)
        }
        for outcome: WaitOutcome in [
            .arrived, .retrying, .timedOut, .failed(.notFound), .generationChanged, .shuttingDown,
        ] {
            counters.waited(outcome, origin: "o")
        }
        counters.refetched(1, origin: "o")
        counters.requested(1, origin: "o")
        counters.sent(isPrefetch: true, origin: "o")
        counters.sent(isPrefetch: false, origin: "o")
        counters.sentToPeer(1, origin: "o")
        for hasFailed in [false, true] {
            counters.peerFillEnded(origin: "o", end: TransferEnd(storedBytes: 1), hasFailed: hasFailed)
        }
        counters.fillRetried(origin: "o")
        counters.fillHedged(origin: "o")
        counters.hedgeWon(origin: "o")
        let errors = [
            nil, failed, CacheError(.cancelled, "Cancelled."), CacheError(.upstreamTimedOut(.idle), "Late."),
        ]
        for error in errors {
            counters.fillEnded(
                origin: "o", isPrefetch: true, end: TransferEnd(storedBytes: 1, droppedBytes: 1), error: error)
        }

        let counted = counters.origins()["o"] ?? TrafficFigures()
        for series in Figure<TrafficFigures>.all.flatMap(\.series) {
            guard let counter = series.counter else { continue }
            #expect(counted[keyPath: counter] > 0, "\(series.member ?? "") is never counted.")
        }
    }

    @Test("Sums, differences and minute records contain every declared counter")
    func sumsAndRecordsAreComplete() throws {
        let figures = Self.distinct
        var sum = figures
        sum.add(figures)
        #expect(Self.counters.allSatisfy { sum[keyPath: $0] == 2 * figures[keyPath: $0] })
        sum.subtract(figures)
        #expect(sum == figures)
        #expect(TrafficFigures(json: figures.json) == figures)
    }

    @Test("Names of metrics state their kind and their unit")
    func namesStateKindAndUnit() {
        for figure in Figure<TrafficFigures>.all {
            guard let metric = figure.metric else { continue }
            #expect(metric.hasSuffix("_total") == (figure.kind == .counter), "\(metric)")
            #expect(metric.contains("bytes") == (figure.unit == .bytes), "\(metric)")
        }
    }

    @Test("A hit, a revalidated and a stale response are hits, in the total, in a second and in its minute")
    func hitRatiosAgree() {
        var figures = TrafficFigures()
        var second = LiveSecond(at: Timestamp(seconds: 0))
        for requestClass: ReadOutcome.Class in [.hit, .revalidated, .stale, .miss] {
            figures.requests[requestClass.rawValue] = 1
            second.traffic.requests[requestClass.index] = 1
        }
        #expect(figures.hitRatios.request == 0.75 && second.traffic.hitRatios.request == 0.75)
        #expect(TrafficFigures().hitRatios.request == nil)
    }
}
