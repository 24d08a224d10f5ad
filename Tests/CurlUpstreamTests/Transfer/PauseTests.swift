import CacheCore
import CacheTestKit
import Synchronization
import Testing

@testable import CurlUpstream
import TestChance

@Suite(.timeLimit(.minutes(20)))
struct PauseTests {
    let upstream: LoopbackUpstream
    let latch = LoopbackLatch()
    let asset = LoopbackAsset(size: 400_000)

    init() throws {
        upstream = try LoopbackUpstream()
        upstream.serve("/a", asset)
    }

    /// A transfer paused after its first 100,000 bytes; the upstream waits at the latch before it sends more.
    private func pausedTransfer(
        _ pool: CurlWorkerPool, _ faults: [LoopbackFault] = [], _ request: UpstreamRequest? = nil,
        into recorder: Recorder = Recorder()
    ) async throws -> any Transfer {
        upstream.failNext("/a", [.stall(after: 100_000, until: latch)] + faults)
        let transfer = pool.start(request ?? upstream.request("/a"), delivering: recorder)
        await recorder.wait { $0.progress.last == 100_000 }
        transfer.pause()
        #expect(try await eventually { transfer.stage == .paused })
        return transfer
    }

    @Test("A paused transfer receives no bytes and resumes where it stopped")
    func aPausedTransferTakesNothingMoreAndGoesOnWhereItStopped() async throws {
        let (pool, recorder) = (CurlWorkerPool.forTest(workers: 1), Recorder())
        let transfer = try await pausedTransfer(pool, into: recorder)
        latch.release()
        #expect(await pool.fetch(upstream.request("/a")).end().error == nil)
        #expect(recorder.progress.last == 100_000)
        transfer.resume()
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == asset.bytes(0..<400_000))
        #expect(upstream.requests.count == 2, "the transfer must resume without a second request")
    }

    @Test("A paused transfer has no slot and waits for one to resume")
    func aPausedTransferHasNoPlaceAndWaitsForOneToGoOn() async throws {
        let (pool, recorder) = (CurlWorkerPool.forTest(maxTransfers: 1), Recorder())
        let transfer = try await pausedTransfer(pool, into: recorder)
        #expect(pool.load.paused == 1 && pool.load.active == 0)
        latch.release()
        #expect(await pool.fetch(upstream.request("/a")).end().error == nil)
        let other = LoopbackLatch()
        upstream.failNext("/a", .stallBeforeHead(until: other))
        let second = pool.fetch(upstream.request("/a"))
        await other.reached()
        transfer.resume()
        #expect(try await eventually { transfer.stage == .queued })
        other.release()
        #expect(await second.end().error == nil)
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == asset.bytes(0..<400_000))
        let isOver = try await eventually { pool.load.paused == 0 && pool.load.active == 0 }
        #expect(isOver)
    }

    /// A transfer paused at the start of its body, even if this thread is delayed.
    private func transferPausedAtOnce(
        _ pool: CurlWorkerPool, _ request: UpstreamRequest, into recorder: Recorder
    ) async throws -> any Transfer {
        let transfer = pool.start(request, delivering: recorder)
        transfer.pause()
        #expect(try await eventually { transfer.stage == .paused })
        return transfer
    }

    @Test("No timeout expires during a pause")
    func noLimitRunsOutDuringAPause() async throws {
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        var request = upstream.request("/a", .closed(0..<400_000))
        request.timeouts = timeouts(idle: .seconds(5), total: .seconds(6))
        let transfer = try await transferPausedAtOnce(pool, request, into: recorder)
        var delayed = upstream.request("/a")
        delayed.delay = .milliseconds(6200)
        #expect(await pool.fetch(delayed).end().error == nil, "this delay exceeds the timeouts of the paused transfer")
        transfer.resume()
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == asset.bytes(0..<400_000))
    }

    @Test("An upstream that stalls after a pause times out as idle")
    func anUpstreamThatStallsAfterAPauseIsIdle() async throws {
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        var request = upstream.request("/a")
        request.timeouts = timeouts(idle: .seconds(5))
        upstream.failNext("/a", [.stall(after: 100_000, until: latch)])
        let transfer = try await transferPausedAtOnce(pool, request, into: recorder)
        transfer.resume()
        #expect(await recorder.failure() == .upstreamTimedOut(.idle))
        #expect(recorder.bytes == asset.bytes(0..<100_000))
        latch.release()
    }

    @Test(
        "An upstream that disconnects during a pause breaks the transfer",
        arguments: [LoopbackFault.cut(after: 150_000), .reset(after: 150_000)])
    func anUpstreamThatHangsUpDuringAPauseBreaksTheTransfer(_ fault: LoopbackFault) async throws {
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        let transfer = try await pausedTransfer(pool, [fault], into: recorder)
        latch.release()
        await upstream.waitForOpenConnections(atMost: 0)
        #expect(recorder.ends.isEmpty)
        transfer.resume()
        let end = await recorder.end()
        #expect(end.error?.code == .upstreamProtocol)
        #expect((100_000...150_000).contains(end.storedBytes))
        #expect(recorder.bytes == asset.bytes(0..<end.storedBytes))
    }

    @Test("A chunked body cut during a pause is broken")
    func aChunkedBodyThatIsCutDuringAPauseIsBroken() async throws {
        upstream.serve("/a", LoopbackAsset(size: 400_000, framing: .chunked))
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        let transfer = try await pausedTransfer(pool, [.cut(after: 150_000)], into: recorder)
        latch.release()
        await upstream.waitForOpenConnections(atMost: 0)
        transfer.resume()
        #expect(await recorder.failure() == .upstreamProtocol)
        #expect(recorder.bytes == asset.bytes(0..<150_000))
    }

    @Test(
        "Bytes sent before the upstream disconnected are not lost", arguments: [LoopbackAsset.Framing.length, .chunked])
    func whatWasSentBeforeTheUpstreamHungUpIsNotLost(_ framing: LoopbackAsset.Framing) async throws {
        upstream.serve("/a", LoopbackAsset(size: 200_000, headers: ["Connection": "close"], framing: framing))
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        // A truncated chunked body would lack its last chunk.
        let faults: [LoopbackFault] = framing == .length ? [.cut(after: 200_000)] : []
        let transfer = try await pausedTransfer(pool, faults, into: recorder)
        latch.release()
        if framing == .length { await upstream.waitForOpenConnections(atMost: 0) }
        transfer.resume()
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == asset.bytes(0..<200_000))
    }

    @Test("A pause before the head takes effect at the start of the body")
    func aPauseBeforeTheHeadHoldsOnceTheBodyBegins() async throws {
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        let rest = LoopbackLatch()
        upstream.failNext("/a", [.stallBeforeHead(until: latch), .stall(after: 100_000, until: rest)])
        let transfer = pool.start(upstream.request("/a"), delivering: recorder)
        transfer.pause()
        await latch.reached()
        #expect(transfer.stage == .running)
        latch.release()
        #expect(try await eventually { transfer.stage == .paused })
        #expect(recorder.ends.isEmpty)
        rest.release()
        transfer.resume()
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == asset.bytes(0..<400_000))
    }

    @Test("A pause requested before a redirect takes effect")
    func aPauseBehindARedirectHolds() async throws {
        upstream.serve("/there") { _ in .redirect(to: "/a") }
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        var request = upstream.request("/there")
        request.mayBePaused = true
        let transfer = try await pausedTransfer(pool, [], request, into: recorder)
        latch.release()
        transfer.resume()
        #expect(await recorder.end().error == nil)
        #expect(recorder.bytes == asset.bytes(0..<400_000))
    }

    @Test("A paused transfer can be cancelled")
    func aPausedTransferCanBeCancelled() async throws {
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        let transfer = try await pausedTransfer(pool, into: recorder)
        transfer.cancel()
        let end = await recorder.end()
        #expect(end.error?.code == .cancelled)
        #expect(end.storedBytes == 100_000)
        latch.release()
        await upstream.waitForOpenConnections(atMost: 0)
        #expect(try await eventually { pool.load.paused == 0 })
    }

    @Test("Shutting down ends a paused transfer")
    func shuttingDownEndsAPausedTransfer() async throws {
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder())
        _ = try await pausedTransfer(pool, into: recorder)
        pool.shutdown()
        #expect(recorder.ends.map(\.error?.code) == [.shuttingDown])
        latch.release()
    }

    @Test("A rate limit still holds after a pause")
    func aRateStillHoldsAfterAPause() async throws {
        let paused = Mutex<(any Transfer)?>(nil)
        let (pool, recorder) = (CurlWorkerPool.forTest(), Recorder(onWrite: { _ in paused.withLock { $0 }?.pause() }))
        var request = upstream.request("/a", .closed(0..<300_000))
        request.bytesPerSecond = 60_000
        var pauses = 0
        let taken = try await ContinuousClock().measure {
            let transfer = pool.start(request, delivering: recorder)
            paused.withLock { $0 = transfer }
            while recorder.ends.isEmpty {
                let isTold = try await eventually { transfer.stage == .paused || !recorder.ends.isEmpty }
                #expect(isTold)
                if transfer.stage == .paused { pauses += 1 }
                transfer.resume()
            }
            #expect(await recorder.end().error == nil)
        }
        #expect(recorder.bytes == asset.bytes(0..<300_000))
        #expect(pauses >= 3)
        #expect(taken >= .milliseconds(4000), "300 kB at 60 kB/s must take 5 s, minus the last step")
    }

    @Test("Every transfer ends exactly once through random pauses, resumes and cancels")
    func everyTransferEndsOnceWhateverIsWishedOfIt() async throws {
        let (random, seed) = SeededRandom.announced()
        let dice = Mutex(random)
        func roll(_ bound: UInt64) -> UInt64 { dice.withLock { $0.next() % bound } }
        let pool = CurlWorkerPool.forTest(maxTransfers: 5)
        let running = (0..<60).map { number in
            let recorder = Recorder()
            var request = upstream.request("/a")
            request.priority = TransferPriority.allCases[number % 3]
            if number % 5 == 0 { request.bytesPerSecond = 4_000_000 }
            return (recorder, pool.start(request, delivering: recorder))
        }
        for _ in 0..<2000 {
            let transfer = running[Int(roll(60))].1
            switch roll(400) {
            case 0: transfer.cancel()
            case 1...190: transfer.pause()
            default: transfer.resume()
            }
            await Task.yield()
        }
        for (_, transfer) in running { transfer.resume() }
        for (recorder, _) in running {
            let end = await recorder.end()
            #expect(end.error == nil || end.error?.code == .cancelled, "seed \(seed)")
            #expect(recorder.bytes == asset.bytes(0..<end.storedBytes), "seed \(seed)")
            #expect(end.error != nil || end.storedBytes == 400_000, "seed \(seed)")
        }
        pool.shutdown()
        #expect(running.allSatisfy { $0.0.ends.count == 1 }, "seed \(seed)")
        let rest = pool.load
        #expect(rest.active == 0 && rest.queued == 0 && rest.paused == 0, "seed \(seed)")
        #expect(rest.workers.allSatisfy { $0.active == 0 }, "seed \(seed)")
    }
}
