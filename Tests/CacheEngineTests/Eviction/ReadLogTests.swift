import CacheCore
import CacheTestKit
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct ReadLogTests {
    private static func id(_ number: UInt64) -> AssetID { AssetID(high: 0, low: number) }

    /// Whether they came one by one, or many at a time.
    @Test(arguments: [3, 63, 64, 1000])
    func whatWasReadIsPlayedWholeAndInOrder(count: Int) async throws {
        let clock = ManualWallClock()
        let start = clock.now()
        let log = ReadLog(wallClock: clock)
        for number in 0..<count {
            clock.advance(by: .seconds(2))
            log.note(0..<1000, of: Self.id(UInt64(number)))
        }
        let reads = await log.play { Array($0.reads(since: start)) }

        #expect(reads.map(\.asset) == (0..<count).map { Self.id(UInt64($0)) })
        #expect(reads.map(\.at) == (1...count).map { start + .seconds(2 * $0) })
    }

    /// And in the order of one asset's reads, where nothing but their number has them brought.
    @Test(arguments: [1, 15, 16, 17, 200])
    func readsOfOneMomentStayInOrder(count: Int) async throws {
        let clock = ManualWallClock()
        let (start, log) = (clock.now(), ReadLog(wallClock: clock))
        let places = (0..<count).map { Int64($0) * ReadTrace.chunkBytes }
        for place in places { log.note(place..<place + 1000, of: Self.id(1)) }
        let reads = await log.play { Array($0.reads(since: start)) }

        #expect(reads.map(\.run.lowerBound) == places)
    }

    /// What finds the trace in others' hands comes later.
    @Test func readsThatFindTheTraceInUseComeAfterwards() async throws {
        let clock = ManualWallClock()
        let (start, log) = (clock.now(), ReadLog(wallClock: clock))
        log.trace.withLock { _ in
            for place in 0..<100 {
                clock.advance(by: .milliseconds(100))
                let first = Int64(place) * ReadTrace.chunkBytes
                log.note(first..<first + 1000, of: Self.id(1))
            }
        }
        #expect(log.trace.withLock { $0.count } == 0)
        let reads = await log.play { Array($0.reads(since: start)) }

        #expect(reads.map(\.run.lowerBound) == (0..<100).map { $0 * ReadTrace.chunkBytes })
    }

    /// Threads that read different assets, and the same.
    @Test func readsOfManyThreadsAreAllThere() async throws {
        let clock = ManualWallClock()
        let (start, log) = (clock.now(), ReadLog(wallClock: clock))
        await withTaskGroup { group in
            for reader in 0..<8 {
                group.addTask {
                    // Each a chunk of its own: none goes on from another.
                    for number in 0..<500 {
                        let place = Int64(reader * 500 + number) * ReadTrace.chunkBytes
                        log.note(place..<place + 1000, of: Self.id(UInt64(number % 40)))
                        if number % 100 == 0 { clock.advance(by: .milliseconds(700)) }
                    }
                }
            }
        }
        let reads = await log.play { Array($0.reads(since: start)) }
        #expect(Set(reads.map(\.run.lowerBound)).count == 4000 && reads.count == 4000)
    }
}
