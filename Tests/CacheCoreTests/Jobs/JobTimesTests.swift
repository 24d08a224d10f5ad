@testable import CacheCore
import Testing

@Suite struct JobTimesTests {
    /// Central European time by its rule alone.
    private static let berlin = rules("CET-1CEST,M3.5.0,M10.5.0/3")

    /// A TZif file of version 2 without transitions.
    private static func file(_ rule: String) -> [UInt8] {
        var header = Array("TZif2".utf8) + [UInt8](repeating: 0, count: 15)
        // Counts: UTC, wall, leap, times, types, characters.
        for count in [0, 0, 0, 0, 1, 4] { header += [0, 0, 0, UInt8(count)] }
        let body: [UInt8] = [0, 0, 14, 16, 0, 0] + Array("CET\0".utf8)
        return header + body + header + body + Array("\n\(rule)\n".utf8)
    }

    private static func rules(_ rule: String) -> ZoneRules {
        ZoneRules(tzif: file(rule)) ?? .utc
    }

    private static func time(_ text: String) -> Timestamp { RFC3339.parse(text) ?? Timestamp(seconds: 0) }

    private static func state(_ windows: [String], at text: String, notBefore: String? = nil) throws -> JobTimes.State {
        let times = JobTimes(notBefore: notBefore.map(time), windows: try windows.map { try JobWindow($0) })
        return times.state(at: time(text), ["Europe/Berlin": berlin, "UTC": .utc])
    }

    @Test(
        "The rule of a zone gives its offsets",
        arguments: [
            ("2027-01-15T00:00:00Z", 3600), ("2027-03-28T00:59:59Z", 3600), ("2027-03-28T01:00:00Z", 7200),
            ("2027-10-31T00:59:59Z", 7200), ("2027-10-31T01:00:00Z", 3600), ("2099-07-01T00:00:00Z", 7200),
        ])
    func offsets(text: String, offset: Int) { #expect(Self.berlin.offset(at: Self.time(text).seconds) == offset) }

    @Test(
        "Rules with other forms are read, and invalid files are refused",
        arguments: [
            ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2027-01-15T00:00:00Z", 39_600),
            ("IST-5:30", "2027-01-15T00:00:00Z", 19_800),
            ("EST5EDT,J60,300/-2", "2027-07-01T00:00:00Z", -14_400),
            ("IST-1GMT0,M10.5.0,M3.5.0/1", "2027-01-15T00:00:00Z", 0),
        ])
    func forms(rule: String, text: String, offset: Int) {
        #expect(Self.rules(rule).offset(at: Self.time(text).seconds) == offset)
        let file = Self.file(rule)
        for count in 0..<file.count { #expect(ZoneRules(tzif: Array(file.prefix(count))) == nil) }
        #expect(ZoneRules(tzif: Self.file("CET-1CEST,M3.5.7,M10.5.0")) == nil)
    }

    @Test("A job runs inside its windows, and waits for the next one")
    func windows() throws {
        let windows = ["01:00-06:00 Europe/Berlin", "23:00-01:30 Europe/Berlin"]
        let inside = try Self.state(windows, at: "2027-01-15T00:15:00Z")
        #expect(inside == JobTimes.State(changesAt: Self.time("2027-01-15T05:00:00Z")), "windows that touch are one")

        let outside = try Self.state(windows, at: "2027-01-15T05:00:00Z")
        let next = Self.time("2027-01-15T22:00:00Z")
        #expect(outside == JobTimes.State(hold: .window, nextRunAt: next, changesAt: next))
        #expect(try Self.state(["00:00-24:00 UTC"], at: "2027-01-15T23:59:59Z").hold == nil)
    }

    @Test("Windows follow changes of daylight saving time")
    func daylightSaving() throws {
        // The clocks skip 02:00 to 03:00.
        #expect(
            try Self.state(["01:00-06:00 Europe/Berlin"], at: "2027-03-28T00:30:00Z").changesAt
                == Self.time("2027-03-28T04:00:00Z"))
        #expect(
            try Self.state(["02:15-02:45 Europe/Berlin"], at: "2027-03-28T00:00:00Z").nextRunAt
                == Self.time("2027-03-29T00:15:00Z"))
        #expect(
            try Self.state(["02:30-04:00 Europe/Berlin"], at: "2027-03-28T00:00:00Z").nextRunAt
                == Self.time("2027-03-28T01:00:00Z"))
        // The clocks show 02:00 to 03:00 twice: the window has both.
        #expect(
            try Self.state(["02:15-02:45 Europe/Berlin"], at: "2027-10-31T00:15:00Z").changesAt
                == Self.time("2027-10-31T01:45:00Z"))
    }

    @Test("The first time of a job comes before its windows")
    func notBefore() throws {
        let state = try Self.state(
            ["01:00-06:00 Europe/Berlin"], at: "2027-01-01T00:00:00Z", notBefore: "2027-02-01T12:00:00Z")
        #expect(state.hold == .notBefore && state.changesAt == Self.time("2027-02-01T12:00:00Z"))
        #expect(state.nextRunAt == Self.time("2027-02-02T00:00:00Z"))
        #expect(try Self.state([], at: "2027-03-01T00:00:00Z", notBefore: "2027-02-01T12:00:00Z") == JobTimes.State())
    }

    @Test("The end of work counts permitted time only")
    func ends() throws {
        let times = JobTimes(windows: [try JobWindow("01:00-02:00 UTC")])
        let end = times.end(of: 5400, from: Self.time("2027-01-01T01:30:00Z"), ["UTC": .utc])
        #expect(end == Self.time("2027-01-03T01:00:00Z") || end == Self.time("2027-01-02T02:00:00Z"))
    }

    @Test("The clock can be set in both directions")
    func clockJumps() throws {
        var record = PrefetchScheduleTests.job("a", items: 2)
        record.times = JobTimes(windows: [try JobWindow("01:00-02:00 UTC")])
        var schedule = PrefetchSchedule(concurrency: 2)
        schedule.enter(["UTC": .utc])
        func moment(_ text: String, _ uptime: Int64) -> PrefetchSchedule.Moment {
            .init(wall: Self.time(text), uptime: .seconds(uptime))
        }
        _ = schedule.add(record, at: moment("2027-01-01T00:00:00Z", 0))
        let opened = schedule.open(at: moment("2027-01-01T00:00:00Z", 0)).starts
        let begun = schedule.expire(at: moment("2027-01-01T01:00:00Z", 1)).starts
        let stopped = schedule.expire(at: moment("2026-12-31T20:00:00Z", 2))
        for run in begun { _ = schedule.ended(run, .interrupted, at: moment("2026-12-31T20:00:01Z", 3)) }
        let held = schedule.progress(of: "a", at: moment("2026-12-31T20:00:01Z", 3))
        let again = schedule.expire(at: moment("2027-01-05T01:30:00Z", 4)).starts
        let over = schedule.expire(at: moment("2027-01-05T03:00:00Z", 5))

        #expect(opened.isEmpty && begun.count == 2 && again.count == 2)
        #expect(Set(stopped) == Set(begun.map { .stop($0) } + [.changed(job: "a")]))
        #expect(held?.record.state == .queued && held?.timeState.hold == .window)
        #expect(held?.timeState.nextRunAt == Self.time("2027-01-01T01:00:00Z"))
        #expect(over.count == 3)
    }

    @Test(
        "Invalid windows have errors of their own",
        arguments: [
            ("01:00-01:00 UTC", "empty"), ("1:00-02:00 UTC", "such as"), ("24:00-02:00 UTC", "such as"),
            ("", "such as"),
            ("01:00-24:01 UTC", "such as"), ("01:00-02:00", "such as"), ("01:00-02:00 ../etc", "unknown"),
        ])
    func invalidWindows(text: String, part: String) {
        let error = #expect(throws: CacheError.self) { try JobWindow(text, field: "windows[0]") }
        #expect(error?.code == .invalidField("windows[0]") && error?.message.contains(part) == true)
    }
}
