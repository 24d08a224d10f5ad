import CacheCore
import CacheTestKit
import NIOCore
import Synchronization
import Testing

@testable import CacheAPI
@testable import CacheEngine

/// The turns of the feed of events, and the signals and the lateness of its followers.
@Suite(.timeLimit(.minutes(5))) struct EventFeedTests {
    private let log = EventLog(wallClock: ManualWallClock())
    private let feed: EventFeed

    init() { feed = EventFeed(log: log, clock: ContinuousClock()) }

    private func publish(_ message: String) { log.publish(.log(isError: false, message: message, metadata: [:])) }

    /// The next part as text.
    private func part(of renderer: inout EventLogRenderer) -> String {
        String(buffer: renderer.part(.events, feed))
    }

    private func follower(
        _ topics: Set<CacheEvent.Topic> = [.health], disconnect: @escaping @Sendable () -> Void = {}
    ) -> EventFollower {
        EventFollower(
            topics: topics, readsLog: true, permission: nil, uptime: { .zero }, disconnect: disconnect)
    }

    @Test("A stream begins with the next event and sends each event once")
    func aStreamSendsEachEventOnce() {
        publish("old")
        var renderer = EventLogRenderer(topics: [.health], last: nil)
        #expect(part(of: &renderer).isEmpty)
        log.publish(.second(LiveSecond(at: Timestamp(seconds: 1))))
        _ = feed.turn()
        #expect(part(of: &renderer).isEmpty)
        publish("new")
        #expect(part(of: &renderer).isEmpty, "a current follower waits for the next turn")
        _ = feed.turn()
        #expect(part(of: &renderer).contains("\"message\":\"new\""))
        #expect(part(of: &renderer).isEmpty)
        var stranger = EventLogRenderer(topics: [.health], last: 1)
        #expect(part(of: &stranger).hasPrefix("event: reset\n"))
        #expect(part(of: &stranger).isEmpty)
    }

    @Test("A follower that is 1 MiB behind gets reset as its last event, after a complete start")
    func aLateFollowerIsReset() {
        let start = log.lastID
        let text = String(repeating: "x", count: 100_000)
        for _ in 0..<12 { publish(text) }
        // The start may be longer than 1 MiB; it comes in parts.
        var (renderer, parts) = (EventLogRenderer(topics: [.health], last: start), 0)
        repeat {
            #expect(part(of: &renderer).utf8.count < 200_000 && !renderer.isOver)
            parts += 1
        } while renderer.hasMore
        #expect(parts == 12)
        let last = log.lastID
        for _ in 0..<12 { publish(text) }
        _ = feed.turn()
        #expect(part(of: &renderer) == "event: reset\ndata: {\"lastId\":\(last)}\n\n")
        #expect(renderer.isOver)
    }

    @Test("Each event is encoded once, and followers at the same position share its bytes")
    func followersShareTheirFeed() {
        var count = 0
        for _ in 0..<3 {
            let text = feed.text(of: .entry(1)) {
                count += 1
                return "text"
            }
            #expect(text == "text")
        }
        #expect(count == 1)
        let start = log.lastID
        publish("shared")
        _ = feed.turn()
        let places = (0..<2).map { _ in
            feed.part(of: [.health], after: start, isCurrent: true).bytes.withUnsafeReadableBytes { $0.baseAddress }
        }
        #expect(places[0] != nil && places[0] == places[1])
    }

    @Test("A turn wakes the followers of its topics, and several turns before a write are one signal")
    func aTurnWakesFollowers() async {
        let (health, jobs) = (follower(), follower([.jobs]))
        for follower in [health, jobs] {
            feed.add(follower)
            #expect(await follower.next() == .events)
        }
        for message in ["one", "two"] {
            publish(message)
            let woken = feed.turn()
            #expect(woken.map(ObjectIdentifier.init) == [ObjectIdentifier(health)])
            for follower in woken { follower.wake(.events, at: .zero) }
        }
        #expect(await health.next() == .events)
        for follower in [health, jobs] { follower.wake(.silence, at: .zero) }
        #expect(await health.next() == .silence)
        #expect(await jobs.next() == .silence)
        health.end()
        #expect(await health.next() == nil)
    }

    @Test("A waiting follower is woken by a signal, and ended by a cancellation")
    func aWaitingFollowerIsWoken() async {
        let follower = follower()
        _ = await follower.next()
        async let signal = follower.next()
        follower.wake(.events, at: .zero)
        #expect(await signal == .events)
        let task = Task { await follower.next() }
        task.cancel()
        #expect(await task.value == nil)
    }

    @Test("A follower is late 10 s after the oldest event that it has not taken, and is disconnected after 20 s")
    func latenessIsThatOfTheOldestEvent() async {
        let count = Atomic(0)
        let follower = follower { count.add(1, ordering: .relaxed) }
        _ = await follower.next()
        follower.wroteAll()
        follower.check(at: .seconds(60))
        #expect(!follower.isLate, "a follower that has taken all events is never late")
        #expect(await follower.next() == .silence)
        follower.wroteAll()
        follower.wake(.events, at: .seconds(100))
        _ = await follower.next()
        follower.wake(.events, at: .seconds(105))
        follower.check(at: .seconds(110))
        #expect(!follower.isLate)
        follower.wroteAll()
        // The event of second 105 is the oldest now.
        follower.check(at: .seconds(112))
        #expect(!follower.isLate)
        follower.check(at: .seconds(116))
        #expect(follower.isLate && count.load(ordering: .relaxed) == 0)
        follower.check(at: .seconds(126))
        #expect(count.load(ordering: .relaxed) == 0)
        follower.check(at: .seconds(127))
        #expect(count.load(ordering: .relaxed) == 1)
    }

    @Test("A follower without events gets a comment every 15 s")
    func aSilentFollowerGetsComments() async {
        let follower = follower()
        _ = await follower.next()
        follower.wroteAll()
        follower.check(at: .seconds(15))
        #expect(await follower.next() == .silence)
    }
}
