import CacheCore
import Testing

@Suite("Prefetch schedule: jobs whose items other nodes run")
struct PrefetchScheduleRoutedTests {
    private static let now = PrefetchSchedule.Moment(wall: Timestamp(milliseconds: 1000), uptime: .zero)

    private static func record(_ id: String, count: Int) -> JobRecord {
        let items = (0..<count).map { index in
            JobItemRecord(index: index, reference: .mounted(origin: "media", path: "\(id)/\(index)", key: nil))
        }
        return JobRecord(id: id, createdAt: now.wall, items: items)
    }

    private static func starts(_ actions: [PrefetchSchedule.Action]) -> [String] {
        actions.compactMap { if case .start(let run) = $0 { run.job } else { nil } }
    }

    @Test("Runs that wait for other nodes do not use up those of this one")
    func routedRunsHaveTheirOwnLimit() {
        var schedule = PrefetchSchedule(concurrency: 2)
        _ = schedule.open(at: Self.now)

        let routed = schedule.add(Self.record("routed", count: 5), isRouted: true, at: Self.now)
        let own = schedule.add(Self.record("own", count: 5), at: Self.now)

        #expect(Self.starts(routed ?? []) == ["routed", "routed"])
        #expect(Self.starts(own ?? []) == ["own", "own"])
        #expect(schedule.isRouted("routed") && !schedule.isRouted("own"))
    }

    @Test("The end of a run starts one of the same kind")
    func endsStartTheSameKind() throws {
        var schedule = PrefetchSchedule(concurrency: 1)
        let opened = schedule.open(at: Self.now) + (schedule.add(Self.record("own", count: 3), at: Self.now) ?? [])
        _ = schedule.add(Self.record("routed", count: 3), isRouted: true, at: Self.now)
        let run = try #require(opened.compactMap { if case .start(let run) = $0 { run } else { nil } }.first)

        #expect(Self.starts(schedule.ended(run, .succeeded, at: Self.now)) == ["own"])
    }

    @Test("A removed job stops, and the next one starts when its runs have ended")
    func removedJobsStop() throws {
        var schedule = PrefetchSchedule(concurrency: 1)
        let opened = schedule.open(at: Self.now) + (schedule.add(Self.record("first", count: 3), at: Self.now) ?? [])
        _ = schedule.add(Self.record("second", count: 1), at: Self.now)
        let run = try #require(opened.compactMap { if case .start(let run) = $0 { run } else { nil } }.first)

        #expect(schedule.remove("first", at: Self.now) == [.stop(run)])
        #expect(!schedule.contains("first"))
        #expect(Self.starts(schedule.ended(run, .interrupted, at: Self.now)) == ["second"])
    }
}
