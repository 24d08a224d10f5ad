import CacheCore
import CacheTestKit
import Testing

@testable import CurlUpstream

@Suite(.timeLimit(.minutes(20)))
struct TimeoutTests {
    /// The point at which the upstream stalls.
    enum Stall: CaseIterable {
        case beforeHead, beforeBody, midway

        func fault(_ latch: LoopbackLatch) -> LoopbackFault {
            switch self {
            case .beforeHead: .stallBeforeHead(until: latch)
            case .beforeBody: .stallBeforeBody(until: latch)
            case .midway: .stall(after: 5000, until: latch)
            }
        }
    }

    let upstream: LoopbackUpstream
    let pool = CurlWorkerPool.forTest()
    let asset = LoopbackAsset(size: 20_000)

    init() throws {
        upstream = try LoopbackUpstream()
        upstream.serve("/a", asset)
    }

    @Test(
        "A stall ends with the timeout it exceeds",
        arguments: [
            (
                Stall.beforeHead, timeouts(firstByte: .milliseconds(400), idle: .seconds(30)),
                CacheError.Timeout.firstByte
            ),
            (.beforeBody, timeouts(firstByte: .seconds(30), idle: .milliseconds(400)), .idle),
            (.midway, timeouts(firstByte: .seconds(30), idle: .milliseconds(400)), .idle),
            (.beforeHead, timeouts(firstByte: .seconds(30), total: .milliseconds(400)), .total),
            (.beforeBody, timeouts(idle: .seconds(30), total: .milliseconds(400)), .total),
            (.midway, timeouts(idle: .seconds(30), total: .milliseconds(400)), .total),
        ])
    func aStallEndsWithTheLimitItBreaks(
        _ stall: Stall, _ limits: TransferTimeouts, _ expected: CacheError.Timeout
    ) async {
        let latch = LoopbackLatch()
        upstream.failNext("/a", stall.fault(latch))
        var request = upstream.request("/a", .closed(0..<20_000))
        request.timeouts = limits
        let clock = ContinuousClock()
        let recorder = Recorder()
        let taken = await clock.measure {
            #expect(await pool.fetch(request, into: recorder).failure() == .upstreamTimedOut(expected))
        }
        #expect(taken >= .milliseconds(400))
        #expect(taken < .seconds(30), "no other timeout may expire instead")
        let stored = Int64(recorder.bytes.count)
        #expect(stored <= (stall == .midway ? 5000 : 0))
        #expect(recorder.bytes == asset.bytes(0..<stored), "bytes received before the stall must be kept")
        latch.release()
    }

    @Test("A handshake that never ends is a connect timeout")
    func aHandshakeThatNeverEndsIsAConnectTimeout() async {
        var request = upstream.request("/a")
        request.url = "https://127.0.0.1:\(upstream.port)/a"
        request.timeouts = timeouts(connect: .milliseconds(80), firstByte: .seconds(30), total: .seconds(30))
        let error = await pool.fetch(request).end().error
        #expect(error?.code == .upstreamTimedOut(.connect))
        #expect(error?.message.contains("TLS handshake") == true, "\(error?.message ?? "")")
    }

    @Test("The total timeout names the step that did not end")
    func theTotalTimeoutNamesTheStep() async {
        let latch = LoopbackLatch()
        upstream.failNext("/a", .stallBeforeHead(until: latch))
        var request = upstream.request("/a")
        request.timeouts = timeouts(connect: .seconds(30), firstByte: .seconds(30), total: .milliseconds(400))
        let error = await pool.fetch(request).end().error
        #expect(error?.message.contains("no first byte of a response within 0.4 s") == true, "\(error?.message ?? "")")
        latch.release()
    }

    @Test("Each step of a connection has a sentence of its own")
    func eachStepHasASentence() {
        let sentences = TransferStep.allCases.map {
            CacheError.upstreamTimedOut(.connect, in: $0, host: "media.example:443", after: .init()).message
        }
        #expect(Set(sentences).count == sentences.count)
        for (sentence, part) in zip(sentences, ["name lookup", "TCP connection", "TLS handshake", "first byte"]) {
            #expect(sentence.contains(part) && sentence.contains("5.0 s"))
        }
    }

    @Test("A slow but steady body is not idle")
    func aSlowButSteadyBodyIsNotIdle() async {
        upstream.serve("/slow", LoopbackAsset(size: 20_000, faults: [.pace(bytesPerSecond: 10_000)]))
        var request = upstream.request("/slow")
        request.timeouts = timeouts(idle: .seconds(1))
        #expect(await pool.fetch(request).end().error == nil)
    }

    @Test("The total timeout does not apply to a whole body")
    func aWholeBodyMayTakeLongerThanTheTotal() async {
        upstream.serve("/slow", LoopbackAsset(size: 20_000, faults: [.pace(bytesPerSecond: 40_000)]))
        var request = upstream.request("/slow")
        request.timeouts = timeouts(idle: .seconds(1), total: .milliseconds(250))
        #expect(await pool.fetch(request).end().error == nil)
        request.window = .closed(0..<20_000)
        #expect(await pool.fetch(request).failure() == .upstreamTimedOut(.total))
    }

    @Test("The total timeout does not apply to a whole body sent for a window")
    func aWholeBodyInAnswerToAWindowIsNoWindow() async {
        upstream.serve(
            "/slow", LoopbackAsset(size: 20_000, acceptsRanges: false, faults: [.pace(bytesPerSecond: 40_000)]))
        var request = upstream.request("/slow", .closed(0..<20_000))
        request.timeouts = timeouts(total: .milliseconds(250))
        #expect(await pool.fetch(request).end().error == nil)
    }

    @Test("A rate limit does not cause an idle timeout")
    func aRateLimitDoesNotCountAsIdleness() async {
        var request = upstream.request("/a", .closed(0..<3000))
        request.bytesPerSecond = 2000
        request.timeouts = timeouts(idle: .milliseconds(300))
        #expect(await pool.fetch(request).end().error == nil)
    }

    @Test("A timed-out transfer frees its slot")
    func aTimedOutTransferFreesItsPlace() async {
        let latch = LoopbackLatch()
        upstream.failNext("/a", .stallBeforeHead(until: latch))
        let narrow = CurlWorkerPool.forTest(maxTransfers: 1)
        var request = upstream.request("/a")
        request.timeouts = timeouts(firstByte: .milliseconds(50))
        let first = narrow.fetch(request)
        let second = narrow.fetch(upstream.request("/a"))
        #expect(await first.failure() == .upstreamTimedOut(.firstByte))
        #expect(await second.end().error == nil)
        latch.release()
    }
}

struct TransferTimersTests {
    let begun = ContinuousClock.now

    @Test("Each step has its own timeout")
    func eachStepHasItsOwnLimit() {
        var timers = TransferTimers(
            timeouts(connect: .seconds(1), firstByte: .seconds(2), idle: .seconds(3), total: .seconds(100)),
            begun: begun)
        #expect(timers.expired(at: begun + .milliseconds(999)) == nil)
        #expect(timers.expired(at: begun + .seconds(1)) == .connect)
        timers.connected(at: begun + .seconds(1))
        #expect(timers.expired(at: begun + .milliseconds(2999)) == nil)
        #expect(timers.expired(at: begun + .seconds(3)) == .firstByte)
        timers.responded(at: begun + .seconds(3))
        timers.arrived(at: begun + .seconds(5))
        #expect(timers.expired(at: begun + .milliseconds(7999)) == nil)
        #expect(timers.expired(at: begun + .seconds(8)) == .idle)
    }

    @Test("The total timeout continues across redirects")
    func theTotalGoesOnOverRedirects() {
        var timers = TransferTimers(timeouts(connect: .seconds(5), total: .seconds(8)), begun: begun)
        timers.connected(at: begun + .seconds(4))
        timers.hopBegan(at: begun + .seconds(5))
        #expect(timers.expired(at: begun + .milliseconds(7999)) == nil)
        #expect(timers.expired(at: begun + .seconds(8)) == .total)
    }

    @Test("Bytes of an interim response do not extend the first-byte timeout")
    func bytesOfAnInterimResponseDoNotMoveTheFirstByteLimit() {
        var timers = TransferTimers(timeouts(firstByte: .seconds(2)), begun: begun)
        timers.connected(at: begun)
        timers.arrived(at: begun + .seconds(1))
        #expect(timers.expired(at: begun + .seconds(2)) == .firstByte)
    }

    @Test("A rate limit spaces arrivals out")
    func aRateSpacesArrivalsOut() {
        var limit = RateLimit(bytesPerSecond: 1000)
        #expect([500, 1, 1].map { limit.took($0, at: begun) } == [500, 501, 502].map { begun + .milliseconds($0) })
        #expect([1, 1].map { limit.took($0, at: begun + .seconds(9)) } == [nil, begun + .milliseconds(9002)])
        _ = limit.change(to: nil, at: begun)
        #expect([1 << 20].map { limit.took($0, at: begun + .seconds(10)) } == [nil])
    }

    @Test("Absent timeouts never expire")
    func noLimitNeverRunsOut() {
        let timers = TransferTimers(timeouts(), begun: begun)
        #expect(timers.next == nil)
        #expect(timers.expired(at: begun + .seconds(86_400)) == nil)
    }
}
