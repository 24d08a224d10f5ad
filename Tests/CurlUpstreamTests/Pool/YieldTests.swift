import CacheCore
import CacheTestKit
import Testing

@testable import CurlUpstream

/// Prefetch yields its slots to live reads.
@Suite(.timeLimit(.minutes(20)))
struct YieldTests {
    @Test("A running prefetch pauses while a live transfer has its slot, then resumes")
    func aRunningPrefetchRestsWhileALiveTransferHasItsPlaceAndGoesOnAfterIt() async throws {
        let upstream = try LoopbackUpstream()
        let (asset, latch) = (LoopbackAsset(size: 400_000), LoopbackLatch())
        upstream.serve("/a", asset)
        upstream.failNext("/a", .stall(after: 100_000, until: latch))
        let pool = CurlWorkerPool.forTest(maxTransfers: 1)
        var order = upstream.request("/a")
        order.priority = .prefetch
        let prefetch = Recorder()
        let transfer = pool.start(order, delivering: prefetch)
        await prefetch.wait { $0.progress.last == 100_000 }

        let live = pool.fetch(upstream.request("/a"))
        #expect(await live.end().error == nil)
        #expect(prefetch.progress.last == 100_000)
        latch.release()
        #expect(await prefetch.end().error == nil)
        #expect(prefetch.bytes == asset.bytes(0..<400_000))
        #expect(upstream.requests.count == 2)
        #expect(transfer.stage != .paused)
    }

    @Test("Prefetch yields to a promoted transfer but not to read-ahead")
    func prefetchYieldsToAPromotedTransferAndNotToReadAhead() {
        var queue = TransferQueue(limit: 4)
        for ticket in 1...3 as ClosedRange<UInt64> { queue.add(entry(ticket, .prefetch, of: 4)) }
        queue.add(entry(4, .live, of: 4))
        _ = queue.admit(at: now)
        queue.add(entry(5, .readAhead, of: 4))
        let toReadAhead = queue.yielding(to: 5)
        queue.promote(5, to: .live, at: now)
        let yielding = [queue.yielding(to: 5), queue.yielding(to: 5), queue.yielding(to: 5), queue.yielding(to: 5)]
        queue.paused(3)
        queue.resumes(3, at: now)
        let admitted = queue.admit(at: now)
        queue.finished(4, at: now)

        #expect(toReadAhead == nil)
        #expect(yielding == [3, 2, 1, nil])
        #expect(admitted == [5])
        #expect(queue.admit(at: now + TransferQueue.keepingLimit) == [3])
    }

    @Test("Prefetch leaves slots free for the next live transfers")
    func prefetchLeavesPlacesFreeForTheNextLiveTransfers() {
        var queue = TransferQueue(limit: 64)
        for ticket in 1...16 as ClosedRange<UInt64> { queue.add(entry(ticket, .prefetch, of: 16)) }
        let first = queue.admit(at: now)
        var yielding: [UInt64?] = []
        for ticket in 17...20 as ClosedRange<UInt64> {
            queue.add(entry(ticket, .live, of: 16))
            #expect(queue.admit(at: now) == [ticket], "each live transfer must get a slot")
            yielding.append(queue.yielding(to: ticket))
            if let rests = yielding.last ?? nil {
                queue.paused(rests)
                queue.resumes(rests, at: now)
            }
        }
        let late = now + TransferQueue.keepingLimit
        #expect(first.count == 12 && yielding == [nil, nil, 12, 11])
        #expect(queue.admit(at: late) == [], "two of sixteen slots must stay free")
        queue.finished(17, at: now)
        #expect(queue.admit(at: late) == [11], "a started transfer must resume before new ones begin")
    }

    private let now = ContinuousClock.now

    /// A transfer of an origin with `places` slots.
    private func entry(_ ticket: UInt64, _ priority: TransferPriority, of places: Int) -> TransferQueue.Entry {
        TransferQueue.Entry(ticket: ticket, origin: "a", originLimit: places, priority: priority, queued: now)
    }
}
