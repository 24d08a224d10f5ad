import CacheCore
import Testing

@Suite struct HistogramTests {
    @Test("A value on a bound belongs to the bucket below it")
    func aBoundIsInclusive() {
        let histogram = Histogram(.seconds)
        for value in [-1, 0, 0.0005, 0.00051, 60, 61, .infinity] { histogram.record(value) }
        let counts = histogram.snapshot.counts
        #expect(counts.count == 17 && counts[0] == 3 && counts[1] == 1 && counts[15] == 1 && counts[16] == 2)
    }

    @Test("Values recorded by many threads are all counted")
    func concurrentValuesAreCounted() async {
        let histogram = Histogram(.seconds)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask { for _ in 0..<10_000 { histogram.record(0.002, shard: task) } }
            }
        }
        let snapshot = histogram.snapshot
        #expect(snapshot.count == 80_000 && snapshot.counts[2] == 80_000)
        #expect(abs(snapshot.sum - 160) < 1e-6)
    }

    @Test("A quantile is interpolated within its bucket")
    func quantilesAreInterpolated() {
        let histogram = Histogram(.seconds)
        #expect(histogram.snapshot.quantile(0.5) == nil)
        for _ in 0..<50 { histogram.record(0.0001) }
        for _ in 0..<50 { histogram.record(0.2) }
        let snapshot = histogram.snapshot
        #expect(snapshot.quantile(0.25) == 0.00025)
        #expect(snapshot.quantile(0.5) == 0.0005)
        #expect(abs((snapshot.quantile(0.75) ?? 0) - 0.175) < 1e-12)
        #expect(snapshot.quantile(1) == 0.25)
        let late = Histogram(.seconds)
        late.record(1000)
        #expect(late.snapshot.quantile(0.5) == 60)
    }

    @Test("The difference of two snapshots has the values recorded between them")
    func snapshotsAreSubtracted() {
        let histogram = Histogram(.bytesPerSecond)
        histogram.record(1e5)
        let before = histogram.snapshot
        histogram.record(1e6)
        let new = histogram.snapshot.since(before)
        #expect(new.count == 1 && new.sum == 1e6)
        #expect(new.adding(before) == histogram.snapshot)
    }

    @Test("A bucket keeps its last exemplar")
    func exemplarsAreKept() {
        let histogram = Histogram(.seconds)
        for trace in ["a", "b"] {
            let exemplar = Histogram.Exemplar(value: 0.002, traceID: trace, at: Timestamp(milliseconds: 1))
            histogram.record(0.002, exemplar: exemplar)
        }
        histogram.record(0.002)
        #expect(histogram.snapshot.exemplars.mapValues(\.traceID) == [2: "b"])
    }
}
