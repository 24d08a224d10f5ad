import CacheCore
import CacheTestKit
import Testing

@testable import CacheEngine

@Suite struct EventLogTests {
    private let log = EventLog(wallClock: ManualWallClock())

    private func publish(_ count: Int, _ topic: CacheEvent.Topic = .health) {
        for number in 0..<count {
            switch topic {
            case .health: log.publish(.log(isError: false, message: "\(number)", metadata: [:]))
            default: log.publish(.second(LiveSecond(at: Timestamp(milliseconds: 0))))
            }
        }
    }

    @Test("A follower gets each event once, in order")
    func eventsAreResumed() {
        publish(3)
        let first = log.events(after: nil, topics: [.health])
        #expect(first.isComplete && first.events.count == 3)
        publish(2)
        publish(1, .stats)
        let next = log.events(after: first.events.last?.id, topics: [.health])
        #expect(next.isComplete && next.events.count == 2)
        #expect((first.events + next.events).map(\.id) == (first.events[0].id..<first.events[0].id + 5).map { $0 })
        #expect(log.events(after: log.lastID, topics: [.health, .stats]).events.isEmpty)
    }

    @Test("A follower is told about discarded events of its topics only")
    func lostEventsAreReported() {
        publish(1)
        publish(1, .stats)
        let id = log.lastID
        publish(1500, .stats)
        let health = log.events(after: id, topics: [.health])
        #expect(health.isComplete && health.events.isEmpty)
        let stats = log.events(after: id, topics: [.health, .stats])
        #expect(!stats.isComplete && stats.events.count == 1000)
        #expect(log.events(after: stats.events[500].id, topics: [.stats]).isComplete)
    }

    @Test("An identifier of another process is unknown")
    func foreignIdentifiersAreUnknown() {
        publish(2)
        for id in [0, log.lastID + 1] {
            let found = log.events(after: id, topics: [.health])
            #expect(!found.isComplete && found.events.count == 2, "\(id)")
        }
    }

    @Test("A stream of changes yields at once and after each event, and ends with its consumer")
    func changesAreSignalled() async {
        var changes = log.changes().makeAsyncIterator()
        #expect(await changes.next() != nil)
        publish(5)
        #expect(await changes.next() != nil)
    }
}
