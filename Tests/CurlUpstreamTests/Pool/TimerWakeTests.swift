import CacheCore
import Synchronization
import Testing

@testable import CurlUpstream

/// Worker 0 is woken for a timer that is due before the end of its sleep.
@Suite struct TimerWakeTests {
    private let start = ContinuousClock.now
    private let scheduler: TransferScheduler

    init() {
        let start = start
        scheduler = TransferScheduler(settings: CurlPoolSettings(workers: 2, maxTransfers: 8), now: { start })
    }

    /// Whether worker 0 has been woken for a timer since the last call.
    private var isWoken: Bool {
        scheduler.commandQueues[0].collect().contains { if case .look = $0 { true } else { false } }
    }

    private func add(_ priority: TransferPriority, delay: Duration = .zero) {
        var request = UpstreamRequest(url: "http://127.0.0.1/")
        request.priority = priority
        request.delay = delay
        request.maxTransfers = 8
        scheduler.start(
            CurlTransfer(request, ticket: scheduler.nextTicket(), delegate: Recorder(), scheduler: scheduler))
    }

    @Test("A timer that is due earlier than the end of a sleep wakes, once")
    func earlierTimersWake() {
        let count = Atomic(0)
        let timers = TimerWake { count.add(1, ordering: .relaxed) }
        timers.schedule(start)
        #expect(count.load(ordering: .relaxed) == 0, "before its first sleep the worker looks at all timers")
        timers.sleeps(until: start + .seconds(2))
        timers.schedule(nil)
        timers.schedule(start + .seconds(2))
        #expect(count.load(ordering: .relaxed) == 0)
        timers.schedule(start + .seconds(1))
        timers.schedule(start + .seconds(1))
        #expect(count.load(ordering: .relaxed) == 1)
        timers.woke()
        timers.schedule(start)
        #expect(count.load(ordering: .relaxed) == 1)
        timers.sleeps(until: nil)
        timers.schedule(start + .seconds(9))
        #expect(count.load(ordering: .relaxed) == 2)
    }

    @Test("Prefetch that waits wakes for the time from which it counts as live")
    func waitingPrefetchWakes() {
        scheduler.timers.sleeps(until: nil)
        for _ in 1...7 { add(.live) }
        #expect(!isWoken)
        add(.prefetch)
        #expect(isWoken)
        #expect(scheduler.look(at: start) == start + TransferQueue.agingLimit)
        add(.live, delay: .seconds(1))
        #expect(isWoken, "a delayed transfer is due earlier")
    }

    @Test("An address that fails while its transfer goes on wakes for its probe")
    func failedAddressWakes() {
        let addresses = scheduler.addresses
        let probe = UpstreamAddresses.ProbeRequest(
            url: "http://example.test/", tls: TLSSettings(), timeouts: timeouts(),
            permission: AddressPermission(of: UpstreamRequest(url: "http://example.test/"), CurlPoolSettings()))
        let error = CacheError(.upstreamTimedOut(.connect), "No connection.")
        addresses.resolved("example.test:80", to: ["192.0.2.1", "192.0.2.2"])
        scheduler.timers.sleeps(until: nil)
        addresses.succeeded("example.test:80", "192.0.2.1")
        #expect(!isWoken)
        addresses.failed("example.test:80", "192.0.2.1", error, probe: probe)
        #expect(isWoken)
        #expect(addresses.nextProbe == start + .seconds(1))
    }
}
