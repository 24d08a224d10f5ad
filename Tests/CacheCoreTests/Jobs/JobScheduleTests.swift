@testable import CacheCore
import Testing

@Suite struct JobScheduleTests {
    /// A TZif file of version 2 for Central European time, with its rule alone.
    private static let berlin: ZoneRules = {
        var header = Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
        for count in [0, 0, 0, 0, 1, 4] { header += [0, 0, 0, UInt8(count)] }
        let body: [UInt8] = [0, 0, 14, 16, 0, 0] + Array("CET\0".utf8)
        return ZoneRules(tzif: header + body + header + body + Array("\nCET-1CEST,M3.5.0,M10.5.0/3\n".utf8)) ?? .utc
    }()

    private static func time(_ text: String) -> Timestamp { RFC3339.parse(text) ?? Timestamp(seconds: 0) }

    private static func schedule(
        _ text: String, at time: String? = nil, since begin: String
    ) throws -> JobSchedule {
        JobSchedule(
            name: "s", repeat: try JobRepeat(text, at: try time.map { try LocalTime($0) }), isEnabled: true,
            deadline: nil, job: "{}", owner: nil, createdAt: self.time(begin))
    }

    /// The next instants of a schedule, each settled before the following one.
    private static func instants(_ count: Int, of schedule: JobSchedule, _ rules: ZoneRules = berlin) -> [Timestamp] {
        var instants: [Timestamp] = []
        var now = schedule.begunAt
        for _ in 0..<count {
            guard let next = schedule.next(at: now, after: instants.last, rules) else { break }
            now = next
            instants.append(next)
        }
        return instants
    }

    @Test(
        "A repetition is read, and has one text",
        arguments: [
            ("daily", "daily"), ("weekly:thu,mon", "weekly:mon,thu"), ("weekly: sun", "weekly:sun"),
            ("every:6h", "every:6h"), ("every: 90m", "every:90m"), ("every:60s", "every:1m"),
            ("every:365d", "every:365d"),
        ])
    func texts(text: String, expected: String) throws {
        #expect(try JobRepeat(text, at: nil).text == expected)
    }

    @Test(
        "Another repetition is refused",
        arguments: [
            "", "Daily", "daily:", "weekly", "weekly:", "weekly:mon,,tue", "weekly:monday", "every", "every:",
            "every:6",
            "every:59s", "every:366d", "every:1500ms", "every:-1h", "hourly", "every:99999999999999999d",
        ])
    func badTexts(text: String) {
        #expect { try JobRepeat(text, at: nil) } throws: { ($0 as? CacheError)?.code == .invalidField("repeat") }
    }

    @Test("A time of day needs a zone, and is not one of an interval")
    func badTimes() {
        for text in ["02:30", "24:00 UTC", "2:30 UTC", "02:60 UTC", "02:30  UTC", "02:30 ../etc", ""] {
            #expect { try LocalTime(text) } throws: { ($0 as? CacheError)?.code == .invalidField("at") }
        }
        #expect { try JobRepeat("every:1h", at: .midnight) } throws: {
            ($0 as? CacheError)?.code == .invalidField("at")
        }
    }

    @Test("Daily instants keep their local time over changes of the clocks")
    func daily() throws {
        let spring = try Self.schedule("daily", at: "02:30 Europe/Berlin", since: "2027-03-26T12:00:00Z")
        // On the second day 02:30 does not exist: the instant is that of the change.
        #expect(
            Self.instants(4, of: spring)
                == ["27T01:30", "28T01:00", "29T00:30", "30T00:30"].map { Self.time("2027-03-\($0):00Z") })
        // 02:30 exists twice on the last Sunday of October.
        let autumn = try Self.schedule("daily", at: "02:30 Europe/Berlin", since: "2027-10-30T12:00:00Z")
        #expect(
            Self.instants(2, of: autumn) == ["10-31T00:30", "11-01T01:30"].map { Self.time("2027-\($0):00Z") })
    }

    @Test("Weekly instants are on their days")
    func weekly() throws {
        let schedule = try Self.schedule("weekly:mon,thu", at: "00:00 UTC", since: "2026-11-29T10:00:00Z")
        #expect(
            Self.instants(3, of: schedule, .utc)
                == ["11-30", "12-03", "12-07"].map { Self.time("2026-\($0)T00:00:00Z") })
    }

    @Test("An interval begins at once, and counts from its begin")
    func interval() throws {
        let schedule = try Self.schedule("every:6h", since: "2026-11-29T10:00:05.250Z")
        let begin = Self.time("2026-11-29T10:00:05.250Z")
        let first = try #require(schedule.due(at: begin, after: nil, .utc))
        #expect(first == Self.time("2026-11-29T10:00:05Z"))
        #expect(schedule.due(at: begin + .seconds(21_590), after: first, .utc) == nil)
        #expect(schedule.next(at: begin, after: first, .utc) == Self.time("2026-11-29T16:00:05Z"))
        #expect(schedule.due(at: begin + .seconds(21_600), after: first, .utc) == Self.time("2026-11-29T16:00:05Z"))
    }

    @Test("Of many missed instants the last one is made up for, and none before the begin")
    func missed() throws {
        let schedule = try Self.schedule("daily", at: "02:00 UTC", since: "2026-11-29T10:00:00Z")
        #expect(schedule.due(at: Self.time("2026-11-29T10:00:01Z"), after: nil, .utc) == nil)
        let late = Self.time("2026-12-08T09:00:00Z")
        let due = try #require(schedule.due(at: late, after: Self.time("2026-11-30T02:00:00Z"), .utc))
        #expect(due == Self.time("2026-12-08T02:00:00Z"))
        #expect(schedule.due(at: late, after: due, .utc) == nil)
        #expect(schedule.next(at: late, after: due, .utc) == Self.time("2026-12-09T02:00:00Z"))
    }

    @Test("A clock that jumps back repeats nothing, and one that was wrong does not stop the schedule")
    func clockJumps() throws {
        let schedule = try Self.schedule("daily", at: "02:00 UTC", since: "2026-11-29T10:00:00Z")
        let settled = Self.time("2026-12-01T02:00:00Z")
        let back = Self.time("2026-12-01T01:00:00Z")
        #expect(schedule.due(at: back, after: settled, .utc) == nil)
        #expect(schedule.next(at: back, after: settled, .utc) == Self.time("2026-12-02T02:00:00Z"))
        // The clock showed another year when the last instant was settled.
        let wrong = Self.time("2031-01-01T02:00:00Z")
        #expect(schedule.due(at: back, after: wrong, .utc) == Self.time("2026-11-30T02:00:00Z"))
        // The schedule was written with a wrong clock.
        let early = Self.time("2020-01-01T03:00:00Z")
        #expect(schedule.due(at: early, after: nil, .utc) == Self.time("2020-01-01T02:00:00Z"))
        #expect(
            schedule.next(at: early, after: Self.time("2020-01-01T02:00:00Z"), .utc)
                == Self.time("2020-01-02T02:00:00Z"))
    }

    @Test("A change of the repetition begins anew, another one does not")
    func replacing() throws {
        let first = try Self.schedule("every:1h", since: "2026-11-29T10:00:00Z")
        var second = try Self.schedule("every:1h", since: "2026-11-29T12:30:00Z")
        #expect(
            second.replacing(first).begunAt == first.begunAt && second.replacing(first).createdAt == first.createdAt)
        second.isEnabled = false
        #expect(
            second.replacing(first).begunAt == second.begunAt && second.replacing(first).createdAt == first.createdAt)
        #expect(second.next(at: second.begunAt, after: nil, .utc) == nil)
    }
}
