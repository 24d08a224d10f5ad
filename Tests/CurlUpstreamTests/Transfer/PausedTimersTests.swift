import CacheCore
import Synchronization
import Testing

@testable import CurlUpstream

struct PausedTimersTests {
    let begun = ContinuousClock.now

    @Test("Time in a pause counts against no timeout")
    func nothingRunsOutDuringAPauseAndItCountsAgainstNoLimit() {
        var timers = TransferTimers(timeouts(idle: .seconds(3), total: .seconds(10)), begun: begun)
        timers.responded(at: begun + .seconds(1))
        timers.pause(at: begun + .seconds(2))
        #expect(timers.next == nil)
        timers.goOn(at: begun + .seconds(100))
        #expect(timers.expired(at: begun + .milliseconds(102_999)) == nil)
        #expect(timers.expired(at: begun + .seconds(103)) == .idle, "a resumed transfer must restart the idle timeout")
        timers.arrived(at: begun + .seconds(106))
        #expect(timers.expired(at: begun + .milliseconds(107_999)) == nil)
        #expect(timers.expired(at: begun + .seconds(108)) == .total, "8 s of the total timeout must remain")
    }

    @Test("A rate delay that outlasts a pause still defers the idle timeout")
    func aRestThatOutlastsAPauseStillHoldsTheIdleLimitBack() {
        var timers = TransferTimers(timeouts(idle: .seconds(3)), begun: begun)
        timers.responded(at: begun)
        timers.arrived(at: begun + .seconds(20))
        timers.pause(at: begun + .seconds(1))
        timers.goOn(at: begun + .seconds(2))
        #expect(timers.next?.at == begun + .seconds(23))
    }
}

struct BodyWriterTests {
    /// Sink that collects all bytes.
    private final class Sink: ByteSink {
        let bytes = Mutex([UInt8]())
        func write(_ bytes: UnsafeRawBufferPointer) { self.bytes.withLock { $0 += bytes } }
    }

    private let sink = Sink()

    private func take(_ count: Int, _ writer: inout BodyWriter) throws -> Int {
        try Array(repeating: UInt8(7), count: count).withUnsafeBytes { try writer.write($0) }
    }

    @Test("A shortened writer accepts only the bytes that are still wanted")
    func aShortenedWriterTakesNoMoreThanIsWantedStill() throws {
        var writer = BodyWriter(into: sink, limit: 1000, pool: BufferPool(bytes: 64))
        _ = try take(300, &writer)
        let isShortened = writer.shorten(to: 400)
        #expect(isShortened)
        let taken = try take(300, &writer)
        #expect(taken == 100)
        try writer.flush()
        #expect(writer.stored == 400 && writer.isSatisfied)
        #expect(sink.bytes.withLock { $0.count } == 400)
    }

    @Test("A writer beyond the new end stops at once and is never lengthened")
    func aWriterThatHoldsMoreEndsAtOnceAndIsNeverLengthened() throws {
        var writer = BodyWriter(into: sink, limit: 1000, pool: BufferPool(bytes: 64))
        _ = try take(300, &writer)
        #expect([1000, 5000].map { writer.shorten(to: $0) } == [false, false])
        #expect([299, 300].map { writer.shorten(to: $0) } == [true, false])
        try writer.flush()
        #expect(writer.isSatisfied)
    }
}
