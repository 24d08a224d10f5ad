import CacheCore
import CacheSimulation
import CacheTestKit
import Dispatch
import Foundation
import Testing

@testable import CacheEngine

@Suite struct AccessTraceRecorderTests {
    private static func id(_ number: UInt64) -> AssetID { AssetID(high: 0, low: number) }

    /// Calls `body` while another thread holds the lock of the trace.
    private static func whileLocked(_ log: AccessTraceRecorder, _ body: () -> Void) {
        let (changed, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            log.trace.withLock { _ in
                changed.signal()
                isDone.wait()
            }
            changed.signal()
        }
        changed.wait()
        body()
        isDone.signal()
        changed.wait()
    }

    /// The clock advances 2 s per read, so the flush interval passes before each read.
    @Test("The trace replays all reads in order", arguments: [3, 63, 64, 1000])
    func whatWasReadIsPlayedWholeAndInOrder(count: Int) async throws {
        let clock = ManualWallClock()
        let start = clock.now()
        let log = AccessTraceRecorder(wallClock: clock)
        for number in 0..<count {
            clock.advance(by: .seconds(2))
            log.note(0..<1000, of: Self.id(UInt64(number)))
        }
        let reads = await log.play { Array($0.reads(since: start)) }

        #expect(reads.map(\.asset) == (0..<count).map { Self.id(UInt64($0)) })
        #expect(reads.map(\.at) == (1...count).map { start + .seconds(2 * $0) })
    }

    /// The clock stands still, so only the batch size moves reads to the trace.
    @Test("Reads with equal timestamps stay in order", arguments: [1, 15, 16, 17, 200])
    func readsOfOneMomentStayInOrder(count: Int) async throws {
        let clock = ManualWallClock()
        let (start, log) = (clock.now(), AccessTraceRecorder(wallClock: clock))
        let places = (0..<count).map { Int64($0) * ReadTrace.chunkBytes }
        for place in places { log.note(place..<place + 1000, of: Self.id(1)) }
        let reads = await log.play { Array($0.reads(since: start)) }

        #expect(reads.map(\.run.lowerBound) == places)
    }

    /// A locked trace does not block the recorder; the reads stay buffered.
    @Test("Reads recorded while the trace is locked are appended later")
    func readsThatFindTheTraceInUseComeAfterwards() async throws {
        let clock = ManualWallClock()
        let (start, log) = (clock.now(), AccessTraceRecorder(wallClock: clock))
        Self.whileLocked(log) {
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

    /// The threads read distinct and shared assets.
    @Test("Reads recorded by several threads are all replayed")
    func readsOfManyThreadsAreAllThere() async throws {
        let clock = ManualWallClock()
        let (start, log) = (clock.now(), AccessTraceRecorder(wallClock: clock))
        await withTaskGroup { group in
            for reader in 0..<8 {
                group.addTask {
                    // Each read has its own chunk, so that no read continues another one.
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
