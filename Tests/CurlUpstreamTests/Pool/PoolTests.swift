import CacheCore
import CacheTestKit
import Synchronization
import Testing

@testable import CurlUpstream
import TestChance

@Suite(.timeLimit(.minutes(20)))
struct PoolTests {
    let upstream: LoopbackUpstream
    let latch = LoopbackLatch()

    init() throws {
        upstream = try LoopbackUpstream()
        upstream.serve("/a", LoopbackAsset(size: 100_000))
        upstream.serve("/stuck", LoopbackAsset(size: 100_000, faults: [.stallBeforeHead(until: latch)]))
    }

    private func request(_ path: String, _ priority: TransferPriority, maxTransfers: Int = 16) -> UpstreamRequest {
        var request = upstream.request(path)
        request.priority = priority
        request.maxTransfers = maxTransfers
        return request
    }

    @Test("Live transfers start before prefetch")
    func liveTransfersGoBeforePrefetch() async {
        let pool = CurlWorkerPool.forTest(maxTransfers: 1)
        let first = pool.fetch(request("/stuck", .live))
        let queued = [
            pool.fetch(request("/a?1", .prefetch)), pool.fetch(request("/a?2", .readAhead)),
            pool.fetch(request("/a?3", .live)), pool.fetch(request("/a?4", .live)),
        ]
        await latch.reached()
        #expect(pool.load.queuedByOrigin == ["test": 4])
        latch.release()
        for recorder in [first] + queued { #expect(await recorder.end().error == nil) }
        #expect(upstream.requests.map(\.target) == ["/stuck", "/a?3", "/a?4", "/a?2", "/a?1"])
    }

    @Test("A live transfer started by a delegate precedes queued prefetch")
    func whatADelegateStartsAtTheEndOfATransferGoesBeforePrefetch() async {
        let pool = CurlWorkerPool.forTest(maxTransfers: 1)
        let next = Recorder()
        let live = request("/a?next", .live)
        let first = Recorder(onEnd: { pool.fetch(live, into: next) })
        pool.fetch(request("/stuck", .live), into: first)
        let prefetch = pool.fetch(request("/a?prefetch", .prefetch))
        latch.release()
        for recorder in [first, next, prefetch] { #expect(await recorder.end().error == nil) }
        #expect(upstream.requests.map(\.target) == ["/stuck", "/a?next", "/a?prefetch"])
    }

    @Test("A transfer vetoed by its delegate is not sent and frees its slot")
    func whatItsDelegateWillNotHaveSentIsNotSentAndGivesItsPlaceBack() async {
        let pool = CurlWorkerPool.forTest(maxTransfers: 1)
        let vetoed = Recorder(onStart: { () throws(CacheError) in throw CacheError(.overloaded, "Not now.") })
        pool.fetch(request("/a?1", .live), into: vetoed)
        let next = pool.fetch(request("/a?2", .live))
        #expect(await vetoed.failure() == .overloaded)
        #expect(await next.end().error == nil)
        #expect(vetoed.calls == ["started", "ended"])
        #expect(upstream.requests.map(\.target) == ["/a?2"])
    }

    @Test("A promoted transfer leaves the queue first")
    func aPromotedTransferLeavesTheQueueFirst() async {
        let pool = CurlWorkerPool.forTest(maxTransfers: 1)
        let first = pool.fetch(request("/stuck", .live))
        let (one, two) = (Recorder(), Recorder())
        pool.fetch(request("/a?1", .readAhead), into: one)
        let transfer = pool.start(request("/a?2", .prefetch), delivering: two)
        #expect(transfer.stage == .queued)
        transfer.promote(to: .live)
        latch.release()
        for recorder in [first, one, two] { #expect(await recorder.end().error == nil) }
        #expect(upstream.requests.map(\.target) == ["/stuck", "/a?2", "/a?1"])
    }

    @Test("An origin has no more transfers than its limit")
    func anOriginHasNoMoreTransfersThanItMay() async {
        let pool = CurlWorkerPool.forTest()
        let recorders = (0..<5).map { _ in pool.fetch(request("/stuck", .live, maxTransfers: 2)) }
        await latch.reached(2)
        #expect(pool.load.activeByOrigin == ["test": 2])
        #expect(pool.load.queued == 3)
        #expect(upstream.requests.count == 2)
        latch.release()
        for recorder in recorders { #expect(await recorder.end().error == nil) }
        #expect(upstream.connectionCount == 2)
    }

    @Test("A delayed transfer does not start early")
    func aDelayedTransferDoesNotBeginEarly() async {
        let pool = CurlWorkerPool.forTest()
        var delayed = request("/a", .live)
        delayed.delay = .milliseconds(150)
        let taken = await ContinuousClock().measure { #expect(await pool.fetch(delayed).end().error == nil) }
        #expect(taken >= .milliseconds(150))
    }

    @Test("One worker serves an origin until it is saturated")
    func oneWorkerCarriesAnOriginUntilItIsSaturated() async {
        let pool = CurlWorkerPool.forTest(workers: 3, transfersPerWorker: 2)
        let recorders = (0..<5).map { _ in pool.fetch(request("/stuck", .live)) }
        await latch.reached(5)
        #expect(pool.load.workers.map(\.active) == [2, 2, 1])
        latch.release()
        for recorder in recorders { #expect(await recorder.end().error == nil) }
    }

    @Test("Cancelling ends a running transfer")
    func cancellingEndsARunningTransfer() async {
        let pool = CurlWorkerPool.forTest()
        let recorder = Recorder()
        let transfer = pool.start(request("/stuck", .live), delivering: recorder)
        await latch.reached()
        transfer.cancel()
        transfer.cancel()
        #expect(await recorder.failure() == .cancelled)
        latch.release()
        await upstream.waitForOpenConnections(atMost: 0)
        transfer.cancel()
        #expect(recorder.ends.count == 1)
    }

    @Test("Cancelling ends a queued transfer that never started")
    func cancellingEndsAQueuedTransferThatNeverBegan() async {
        let pool = CurlWorkerPool.forTest(maxTransfers: 1)
        let first = pool.fetch(request("/stuck", .live))
        let second = Recorder()
        let transfer = pool.start(request("/a", .live), delivering: second)
        transfer.cancel()
        #expect(await second.failure() == .cancelled)
        #expect(second.calls == ["ended"])
        latch.release()
        #expect(await first.end().error == nil)
        #expect(upstream.requests.count == 1)
    }

    @Test("Cancelling midway keeps the received bytes")
    func cancellingMidwayKeepsWhatHadArrived() async {
        let pool = CurlWorkerPool.forTest()
        let asset = LoopbackAsset(size: 100_000, faults: [.stall(after: 30_000, until: latch)])
        upstream.serve("/half", asset)
        let recorder = Recorder()
        let transfer = pool.start(request("/half", .live), delivering: recorder)
        await recorder.wait { $0.progress.last == 30_000 }
        #expect(transfer.stage == .running)
        transfer.cancel()
        let end = await recorder.end()
        #expect(end.error?.code == .cancelled)
        #expect(end.storedBytes == 30_000)
        #expect(recorder.bytes == asset.bytes(0..<30_000))
        latch.release()
    }

    @Test("A transfer respects its rate limit")
    func aTransferKeepsToItsRate() async {
        let pool = CurlWorkerPool.forTest()
        var slow = request("/a", .live)
        slow.bytesPerSecond = 200_000
        let taken = await ContinuousClock().measure { #expect(await pool.fetch(slow).end().error == nil) }
        #expect(taken >= .milliseconds(400), "100 kB at 200 kB/s must take 500 ms, minus the last step")
    }

    @Test("The transfers of an origin share its rate limit")
    func theTransfersOfAnOriginShareItsRate() async {
        let pool = CurlWorkerPool.forTest()
        var slow = request("/a", .live)
        slow.originBytesPerSecond = 400_000
        let taken = await ContinuousClock().measure { [slow] in
            let recorders = (0..<3).map { _ in pool.fetch(slow) }
            for recorder in recorders { #expect(await recorder.end().error == nil) }
        }
        #expect(taken >= .milliseconds(500), "300 kB at 400 kB/s must take 750 ms, minus the last steps")
    }

    @Test("Shutting down ends every transfer once")
    func shuttingDownEndsEveryTransferOnce() async {
        let pool = CurlWorkerPool.forTest(maxTransfers: 2)
        let recorders = (0..<6).map { _ in pool.fetch(request("/stuck", .live)) }
        await latch.reached(2)
        pool.shutdown()
        for recorder in recorders { #expect(recorder.ends.map(\.error?.code) == [.shuttingDown]) }
        #expect(await pool.fetch(request("/a", .live)).failure() == .shuttingDown)
        pool.shutdown()
        latch.release()
        await upstream.waitForOpenConnections(atMost: 0)
        #expect(pool.load.active == 0)
    }

    @Test("A released pool shuts down")
    func aPoolNobodyHoldsShutsDown() async {
        let recorder = Recorder()
        var pool: CurlWorkerPool? = CurlWorkerPool.forTest()
        pool?.fetch(request("/stuck", .live), into: recorder)
        await latch.reached()
        pool = nil
        #expect(await recorder.failure() == .shuttingDown)
        latch.release()
    }

    @Test("Every transfer ends exactly once in a mix of failures")
    func everyTransferEndsExactlyOnceInAMixOfFailures() async {
        let (random, seed) = SeededRandom.announced()
        let pool = CurlWorkerPool.forTest(maxTransfers: 12)
        let mixed = Mutex(random)
        upstream.serve("/mix") { _ in
            let dice = mixed.withLock { $0.next() >> 60 }
            switch dice {
            case 0: return .hangUp
            case 1: return .redirect(to: "/a")
            case 2: return .asset(LoopbackAsset(size: 90_000, faults: [.cut(after: 40_000)]))
            case 3: return .asset(LoopbackAsset(size: 90_000, faults: [.reset(after: 1)]))
            case 4: return .raw(Array("nonsense".utf8))
            default: return .asset(LoopbackAsset(size: 90_000))
            }
        }
        var recorders: [Recorder] = []
        for number in 0..<300 {
            let recorder = Recorder()
            let transfer = pool.start(request("/mix", number % 2 == 0 ? .live : .prefetch), delivering: recorder)
            if number % 7 == 0 { transfer.cancel() }
            recorders.append(recorder)
        }
        for recorder in recorders { _ = await recorder.end() }
        pool.shutdown()
        for recorder in recorders {
            let stored = Int64(recorder.bytes.count)
            #expect(recorder.ends.count == 1, "seed \(seed)")
            #expect(recorder.ends.first?.storedBytes == stored, "seed \(seed)")
            #expect(recorder.bytes == LoopbackUpstream.bytes(at: 0..<stored), "seed \(seed)")
            #expect(recorder.calls.last == "ended", "seed \(seed)")
        }
        #expect(pool.load.active == 0 && pool.load.queued == 0, "seed \(seed)")
    }
}

struct WorkerAssignmentTests {
    @Test("A host stays with its worker and overflows to the least loaded worker")
    func aHostStaysWithItsWorkerAndSpillsToTheLeastLoaded() {
        var assignment = WorkerAssignment(workers: 3, perWorker: 2)
        #expect(["a", "b", "a", "a"].map { assignment.assign($0) } == [0, 1, 0, 2])
        #expect(assignment.totals == [2, 1, 1])
        assignment.finished("a", on: 0)
        #expect(["a", "a", "a"].map { assignment.assign($0) } == [0, 2, 1])
        assignment.finished("a", on: 0)
        assignment.finished("a", on: 0)
        let back = assignment.assign("a")
        #expect(back == 0, "an idle host must return to the worker with its connections")
    }

    @Test("A transfer prefers a worker with an idle connection")
    func aTransferPrefersAWorkerWithAnIdleConnection() {
        var assignment = WorkerAssignment(workers: 2, perWorker: 2)
        #expect(["a", "a", "a"].map { assignment.assign($0) } == [0, 0, 1])
        assignment.finished("a", on: 0)
        assignment.finished("a", on: 1, isConnectionIdle: true)
        let (first, second) = (assignment.assign("a"), assignment.assign("a"))
        #expect(first == 1, "only worker 1 has an idle connection")
        #expect(second == 0, "the idle connection of worker 1 is already in use")
    }

    @Test("A saturated pool distributes transfers evenly")
    func aSaturatedPoolSharesOutEvenly() {
        var assignment = WorkerAssignment(workers: 2, perWorker: 1)
        for _ in 0..<6 { _ = assignment.assign("a") }
        #expect(assignment.totals == [3, 3])
    }
}
