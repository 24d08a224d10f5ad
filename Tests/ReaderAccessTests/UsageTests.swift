import CacheCore
import TestChance
import Testing

@testable import ReaderAccess

struct ReaderFiguresTests {
    @Test("Counters add up by reader and are sorted by id")
    func sums() {
        let figures = ReaderFigures()
        figures.add(to: "b", requests: 1, bytes: 10)
        figures.add(to: "a", requests: 2, bytes: 5, bytesFromCache: 3)
        figures.counter(for: "b").add(bytes: 1, bytesFromCache: 1, errors: 2)
        #expect(
            figures.snapshot() == [
                ReaderUsage(token: "a", requests: 2, bytes: 5, bytesFromCache: 3),
                ReaderUsage(token: "b", requests: 1, bytes: 11, bytesFromCache: 1, errors: 2),
            ])
    }

    @Test("Readers above the limit share (other), and those before keep their counters")
    func limit() {
        let figures = ReaderFigures(limit: 100)
        for number in 0..<150 { figures.add(to: "r\(number)", requests: 1) }
        figures.add(to: "r0", requests: 1)
        let snapshot = figures.snapshot()
        #expect(snapshot.count == 101)
        #expect(
            snapshot.first
                == ReaderUsage(token: "(other)", requests: 50, bytes: 0, bytesFromCache: 0, isLabelled: false))
        #expect(snapshot.first { $0.token == "r0" }?.requests == 2)
        #expect(snapshot.reduce(0) { $0 + $1.requests } == 151)
    }

    @Test("The first hundred readers and the named ones have series of their own, and keep them")
    func labels() {
        let figures = ReaderFigures(named: ["nightly", "r7"])
        func labelled() -> Set<String> { Set(figures.snapshot().filter(\.isLabelled).map(\.token)) }
        #expect(labelled() == ["nightly", "r7"])
        for number in 0..<300 { figures.add(to: "r\(number)", requests: 1) }
        let first = labelled()
        #expect(first == Set((0...100).map { "r\($0)" } + ["nightly"]))
        // Others that read more later change nothing.
        for _ in 0..<10 { for number in 200..<300 { figures.add(to: "r\(number)", requests: 1) } }
        #expect(labelled() == first)
    }

    @Test("The default limit is 10,000 readers")
    func defaultLimit() {
        let figures = ReaderFigures()
        for number in 0..<10_001 { figures.add(to: "r\(number)", requests: 1) }
        #expect(figures.snapshot().count == 10_001)
        #expect(figures.snapshot().first?.token == "(other)")
    }

    @Test("Concurrent increments are not lost")
    func concurrency() async {
        let figures = ReaderFigures(limit: 4)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    for step in 0..<1000 { figures.add(to: "r\((worker + step) % 6)", requests: 1, bytes: 2) }
                }
            }
        }
        let snapshot = figures.snapshot()
        #expect(snapshot.reduce(0) { $0 + $1.requests } == 8000)
        #expect(snapshot.reduce(0) { $0 + $1.bytes } == 16_000)
        #expect(snapshot.count == 5)
    }
}

struct ReaderRateTests {
    @Test("A burst of one second passes at once, then each byte waits for its turn")
    func burst() {
        var rate = ReaderRate(bytesPerSecond: 1000, at: .zero)
        #expect(rate.delay(before: 1000, at: .zero) == .zero)
        #expect(rate.delay(before: 500, at: .zero) == .milliseconds(500))
        #expect(rate.delay(before: 500, at: .zero) == .seconds(1))
        #expect(rate.delay(before: 0, at: .milliseconds(1000)) == .zero)
        #expect(rate.delay(before: 100, at: .milliseconds(1000)) == .milliseconds(100))
    }

    @Test("Idle time earns at most one second of bytes")
    func idle() {
        var rate = ReaderRate(bytesPerSecond: 1000, at: .zero)
        #expect(rate.delay(before: 3000, at: .seconds(1000)) == .seconds(2))
    }

    @Test("Time that goes backwards earns nothing")
    func backwards() {
        var rate = ReaderRate(bytesPerSecond: 1000, at: .seconds(10))
        #expect(rate.delay(before: 1000, at: .seconds(10)) == .zero)
        #expect(rate.delay(before: 1000, at: .seconds(5)) == .seconds(1))
        #expect(rate.delay(before: 0, at: .seconds(10)) == .seconds(1))
    }

    @Test("Refunded bytes may be sent again, but no more than the burst")
    func refund() {
        var rate = ReaderRate(bytesPerSecond: 1000, at: .zero)
        #expect(rate.delay(before: 1500, at: .zero) == .milliseconds(500))
        rate.refund(500)
        #expect(rate.delay(before: 0, at: .zero) == .zero)
        rate.refund(10_000)
        #expect(rate.delay(before: 1001, at: .zero) == .milliseconds(1))
    }

    @Test("Extreme numbers neither trap nor wait for ever")
    func extremes() {
        var slow = ReaderRate(bytesPerSecond: 0, at: .zero)
        #expect(slow.delay(before: .max, at: .zero) == .seconds(315_360_000))
        var fast = ReaderRate(bytesPerSecond: .max, at: .zero)
        #expect(fast.delay(before: 1 << 40, at: .seconds(1 << 40)) == .zero)
        #expect(fast.delay(before: -5, at: .zero) == .zero)
    }

    @Test("Over a long time the rate is the limit, for any sizes")
    func throughput() {
        var (random, seed) = SeededRandom.announced()
        var rate = ReaderRate(bytesPerSecond: 50_000, at: .zero)
        var (time, sent): (Duration, Int64) = (.zero, 0)
        while time < .seconds(100) {
            let bytes = Int64.random(in: 1...200_000, using: &random)
            time += rate.delay(before: bytes, at: time)
            sent += bytes
        }
        let expected = (time / .seconds(1) + 1) * 50_000
        #expect(abs(Double(sent) - expected) < 1000, "seed \(seed)")
    }

    @Test("All connections of a reader share its rate; other readers and readers without limit do not wait")
    func sharing() {
        let rates = ReaderRates()
        let slow = Reader(id: "slow", scope: .read, maxBytesPerSecond: 1000)
        let other = Reader(id: "other", scope: .read, maxBytesPerSecond: 1000)
        #expect(rates.delay(before: 1000, of: slow, at: .zero) == .zero)
        #expect(rates.delay(before: 1000, of: slow, at: .zero) == .seconds(1))
        #expect(rates.delay(before: 1000, of: other, at: .zero) == .zero)
        #expect(rates.delay(before: 1 << 40, of: Reader(id: "free", scope: .read), at: .zero) == .zero)
        rates.refund(1000, of: slow)
        #expect(rates.delay(before: 0, of: slow, at: .zero) == .zero)
    }

    @Test("A changed limit applies to the next bytes")
    func change() {
        let rates = ReaderRates()
        _ = rates.delay(before: 2000, of: Reader(id: "a", scope: .read, maxBytesPerSecond: 1000), at: .zero)
        let faster = Reader(id: "a", scope: .read, maxBytesPerSecond: 10_000)
        #expect(rates.delay(before: 0, of: faster, at: .zero) == .milliseconds(100))
    }
}
