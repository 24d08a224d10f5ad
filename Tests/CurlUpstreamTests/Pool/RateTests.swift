import CacheCore
import CacheTestKit
import Testing

@testable import CurlUpstream

@Suite(.timeLimit(.minutes(20)))
struct RateTests {
    let upstream: LoopbackUpstream
    let begun = ContinuousClock.now

    init() throws {
        upstream = try LoopbackUpstream()
        upstream.serve("/a", LoopbackAsset(size: 100_000))
    }

    @Test("All transfers together respect the global rate limit")
    func allTransfersTogetherKeepToTheLimitOnAll() async {
        let pool = CurlWorkerPool.forTest(maxBytesPerSecond: 400_000)
        let taken = await ContinuousClock().measure {
            let recorders = (0..<3).map { number in
                var request = upstream.request("/a")
                request.originName = "\(number)"
                return pool.fetch(request)
            }
            for recorder in recorders { #expect(await recorder.end().error == nil) }
        }
        #expect(taken >= .milliseconds(500), "300 kB at 400 kB/s must take 750 ms, minus the last steps")
    }

    @Test("A paused transfer has no share of the rate")
    func aPausedTransferHasNoShare() async throws {
        let pool = CurlWorkerPool.forTest(maxBytesPerSecond: 1_000_000)
        let latch = LoopbackLatch()
        upstream.failNext("/a", .stall(after: 10_000, until: latch))
        let recorder = Recorder()
        let transfer = pool.start(upstream.request("/a"), delivering: recorder)
        await recorder.wait { $0.progress.last == 10_000 }
        #expect(pool.rate(of: transfer) == 1_000_000)
        let second = Recorder()
        upstream.failNext("/a", .stallBeforeHead(until: latch))
        let other = pool.start(upstream.request("/a"), delivering: second)
        #expect(pool.rate(of: other) == 500_000)
        transfer.pause()
        #expect(try await eventually { transfer.stage == .paused })
        #expect(pool.rate(of: other) == 1_000_000)
        latch.release()
        #expect(await second.end().error == nil)
        transfer.resume()
        #expect(await recorder.end().error == nil)
    }

    @Test("A transfer gets the minimum of its own rate and its shares")
    func aTransferHasTheLeastOfItsOwnRateAndItsShares() async {
        let pool = CurlWorkerPool.forTest(maxBytesPerSecond: 900_000)
        let latch = LoopbackLatch()
        upstream.serve("/stuck", LoopbackAsset(size: 1000, faults: [.stallBeforeHead(until: latch)]))
        func start(_ origin: String, own: Int64?, ofOrigin: Int64?) -> (any Transfer, Recorder) {
            var request = upstream.request("/stuck")
            (request.originName, request.bytesPerSecond, request.originBytesPerSecond) = (origin, own, ofOrigin)
            let recorder = Recorder()
            return (pool.start(request, delivering: recorder), recorder)
        }
        let transfers = [
            start("a", own: nil, ofOrigin: 500_000), start("a", own: 100_000, ofOrigin: 500_000),
            start("b", own: nil, ofOrigin: nil),
        ]
        #expect(transfers.map { pool.rate(of: $0.0) } == [250_000, 100_000, 300_000])
        latch.release()
        for (_, recorder) in transfers { #expect(await recorder.end().error == nil) }
    }

    @Test("Changed limits apply to queued and to running transfers")
    func changedLimitsApplyAtOnce() async throws {
        let pool = CurlWorkerPool.forTest(maxTransfers: 1, maxBytesPerSecond: 900_000)
        let latch = LoopbackLatch()
        upstream.serve("/stuck", LoopbackAsset(size: 1000, faults: [.stallBeforeHead(until: latch)]))
        let transfers = (0..<3).map { number -> (any Transfer, Recorder) in
            var request = upstream.request("/stuck")
            request.originName = "\(number)"
            let recorder = Recorder()
            return (pool.start(request, delivering: recorder), recorder)
        }
        #expect(pool.load.active == 1 && pool.load.queued == 2)
        #expect(pool.rate(of: transfers[0].0) == 900_000)

        pool.setLimits(maxTransfers: 2, maxBytesPerSecond: 600_000)
        #expect(pool.load.active == 2 && pool.load.queued == 1)
        #expect(pool.rate(of: transfers[0].0) == 300_000)

        pool.setLimits(maxTransfers: 1, maxBytesPerSecond: nil)
        #expect(pool.load.active == 2, "A reduction takes no permit away.")
        #expect(pool.rate(of: transfers[0].0) == nil)
        latch.release()
        for (_, recorder) in transfers { #expect(await recorder.end().error == nil) }
    }

    @Test("A changed rate rescales the remaining delay")
    func aRateThatChangesStretchesTheRest() {
        var limit = RateLimit(bytesPerSecond: 1000)
        #expect([500].map { limit.took($0, at: begun) } == [begun + .milliseconds(500)])
        let half = begun + .milliseconds(250)
        #expect([500].map { limit.change(to: $0, at: half) } == [begun + .milliseconds(750)])
        #expect([5000].map { limit.change(to: $0, at: half) } == [begun + .milliseconds(300)])
        #expect([Int64?.none].map { limit.change(to: $0, at: half) } == [nil])
        #expect([1 << 20].map { limit.took($0, at: half) } == [nil])
    }

    @Test("Repeated rate changes are one worker message")
    func manyChangesOfTheShareAreOneLetter() throws {
        let commandQueue = try #require(WorkerCommandQueue())
        for _ in 0..<500 { #expect(commandQueue.post(.ratesChanged)) }
        #expect(commandQueue.collect().count == 1)
        #expect(commandQueue.post(.ratesChanged))
        #expect(commandQueue.collect().count == 1)
    }
}

@Suite(.timeLimit(.minutes(20)))
struct ReuseTests {
    @Test("Short windows of one host reuse its connections")
    func manyShortWindowsOfOneHostUseItsConnectionsAgain() async throws {
        let upstream = try LoopbackUpstream()
        upstream.serve("/a", LoopbackAsset(size: 1_000_000))
        let pool = CurlWorkerPool.forTest(maxTransfers: 200)
        await withTaskGroup { group in
            for player in 0..<50 {
                group.addTask {
                    for number in 0..<40 {
                        let offset = Int64((player * 40 + number) % 60) * 16_384
                        var request = upstream.request("/a", .closed(ByteRange(offset: offset, length: 16_384)))
                        request.maxTransfers = 200
                        #expect(await pool.fetch(request, into: .limited(16_384)).end().error == nil)
                    }
                }
            }
        }
        // The last transfers are counted after their delegates were notified.
        let areCounted = try await eventually {
            pool.load.workers.reduce(0) { $0 + $1.openedConnections + $1.reusedConnections } == 2000
        }
        let opened = pool.load.workers.reduce(0) { $0 + $1.openedConnections }
        #expect(areCounted)
        #expect(opened <= 100, "at least 95 % of the requests must reuse a connection")
    }

    @Test("A response that exactly fills its sink keeps the connection")
    func aBodyThatEndsWhereTheSinkHasEnoughKeepsItsConnection() async throws {
        let upstream = try LoopbackUpstream()
        upstream.serve("/a", LoopbackAsset(size: 50_000))
        upstream.serve("/chunked", LoopbackAsset(size: 50_000, framing: .chunked))
        let pool = CurlWorkerPool.forTest(workers: 1)
        for path in ["/a", "/chunked", "/a"] {
            #expect(await pool.fetch(upstream.request(path), into: .limited(50_000)).end().error == nil)
        }
        #expect(upstream.connectionCount == 1)
    }

    @Test("The connection cache is sized by recent use")
    func asManyConnectionsAreKeptAsWereOfUseLately() {
        let begun = ContinuousClock.now
        var keep = ConnectionCacheSizer(most: 256, at: begun)
        #expect([1, 60, 51].map { keep.change(running: $0, at: begun) } == [64, 75, nil])
        #expect([200, 400].map { keep.change(running: $0, at: begun + .seconds(1)) } == [250, 256])
        #expect([100].map { keep.change(running: $0, at: begun + .seconds(60)) } == [nil])
        #expect([10].map { keep.change(running: $0, at: begun + .seconds(120)) } == [125])
        #expect([10].map { keep.change(running: $0, at: begun + .seconds(180)) } == [64])
        #expect([80, 1].map { keep.change(running: $0, at: begun + .seconds(181)) } == [100, nil])
        #expect([1].map { keep.change(running: $0, at: begun + .seconds(900)) } == [64], "earlier use must expire")
    }
}
