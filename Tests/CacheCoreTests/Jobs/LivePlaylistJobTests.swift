import Testing

@testable import CacheCore

/// Items that follow a live playlist.
@Suite struct LivePlaylistJobTests {
    private static let hold = ItemWait.Hold(.live, of: "j 0")

    private func moment(_ seconds: Int64) -> PrefetchSchedule.Moment {
        .init(wall: Timestamp(seconds: 1000 + seconds), uptime: .seconds(seconds))
    }

    private func segment(_ number: Int) -> JobItemRecord {
        var segment = JobItemRecord(
            index: 0, reference: .mounted(origin: "media", path: "\(number).ts", key: nil))
        segment.parent = 0
        return segment
    }

    private func job(deadlineAt: Timestamp? = nil) -> JobRecord {
        var item = JobItemRecord(index: 0, reference: .mounted(origin: "media", path: "a.m3u8", key: nil))
        item.play = .live
        return JobRecord(id: "j", deadlineAt: deadlineAt, createdAt: Timestamp(seconds: 1000), items: [item])
    }

    /// Starts a job, and ends its first load with the segments.
    private func followed(
        _ job: JobRecord, _ segments: [Int], within limits: PrefetchSchedule.Limits = .init()
    ) throws -> PrefetchSchedule {
        var schedule = PrefetchSchedule(concurrency: 4)
        _ = schedule.open(at: moment(0))
        let run = try #require(schedule.add(job, at: moment(0))?.compactMap(\.run).first)
        _ = schedule.ended(
            run, .followed(segments.map(segment), Self.hold, .seconds(6), nil), within: limits, at: moment(0))
        return schedule
    }

    private func paths(_ schedule: PrefetchSchedule) -> [String] {
        (schedule.items(of: "j", after: 0, atMost: 100) ?? []).map { item in
            if case .mounted(_, let path, _) = item.reference { path } else { "" }
        }
    }

    @Test("A live playlist is loaded again after the interval, and adds each segment once")
    func isLoadedAgain() throws {
        var schedule = try followed(job(), [1, 2])
        #expect(paths(schedule) == ["1.ts", "2.ts"])
        #expect(schedule.items(of: "j", after: -1, atMost: 1)?.first?.wait?.retryAt == moment(6).wall)
        #expect(schedule.expire(at: moment(5)).compactMap(\.run).isEmpty)

        let again = try #require(schedule.expire(at: moment(6)).compactMap(\.run).first { $0.item == 0 })
        #expect(schedule.knownFiles(of: again).count == 2)
        _ = schedule.ended(
            again, .followed([2, 3].map(segment), Self.hold, .seconds(3), nil), at: moment(7))

        #expect(paths(schedule) == ["1.ts", "2.ts", "3.ts"])
        let last = try #require(schedule.expire(at: moment(10)).compactMap(\.run).first { $0.item == 0 })
        _ = schedule.ended(last, .expanded([segment(4)]), at: moment(10))
        for item in 1...4 {
            let run = try #require(schedule.run(of: item))
            #expect(schedule.isOfLive(run))
            _ = schedule.ended(run, .succeeded, at: moment(11))
        }
        #expect(schedule.state(of: "j") == .succeeded)
    }

    @Test("A job that follows a live playlist has no predicted end, and is not at risk at its deadline")
    func hasNoPrediction() throws {
        var schedule = try followed(job(deadlineAt: Timestamp(seconds: 1100)), [1])
        for second in stride(from: Int64(1), to: 99, by: 1) {
            _ = schedule.predict(at: moment(second))
            let forecast = schedule.progress(of: "j", at: moment(second))?.forecast
            #expect(forecast == JobSnapshot.Forecast())
        }
    }

    @Test("A restart and a pause load the playlist at once, with the segments of the job")
    func survivesARestart() throws {
        var schedule = try followed(job(), [1, 2])
        var stored = try #require(schedule.record(of: "j"))
        stored.items = schedule.items(of: "j", after: -1, atMost: 100) ?? []
        stored.items[0].wait = nil  // as in the catalog
        var next = PrefetchSchedule(concurrency: 4)
        let runs = (next.add(stored, at: moment(1)) ?? []) + next.open(at: moment(1))
        let run = try #require(runs.compactMap(\.run).first { $0.item == 0 })
        #expect(next.knownFiles(of: run).count == 2)

        _ = schedule.expire(at: moment(1))
        var terms = try #require(schedule.terms(of: "j"))
        terms.isPaused = true
        _ = schedule.apply(terms, of: "j", at: moment(1))
        for item in 1...2 {
            if let run = schedule.run(of: item) { _ = schedule.ended(run, .interrupted, at: moment(1)) }
        }
        #expect(schedule.expire(at: moment(20)).compactMap(\.run).isEmpty)
    }

    @Test("Too many segments fail the playlist")
    func isLimited() throws {
        let schedule = try followed(job(), [1, 2, 3], within: .init(jobItems: 3))
        let item = schedule.items(of: "j", after: -1, atMost: 1)?.first
        #expect(item?.state == .failed && item?.error?.code == "jobTooLarge")
        #expect(paths(schedule).isEmpty)
    }

    @Test("A playlist without a change fails after a day, if its job has no limit of its own")
    func endsAfterADay() throws {
        var schedule = try followed(job(), [])
        for hour in Int64(1)...24 {
            for run in schedule.expire(at: moment(hour * 3600)).compactMap(\.run) {
                _ = schedule.ended(run, .followed([], Self.hold, .seconds(3), nil), at: moment(hour * 3600))
            }
        }
        #expect(schedule.items(of: "j", after: -1, atMost: 1)?.first?.error?.code == "upstreamTimedOut")
    }
}

extension PrefetchSchedule {
    /// The present run of an item; nil: it does not run.
    fileprivate func run(of item: Int) -> Run? {
        (1...100).lazy.map { Run(job: "j", item: item, number: $0) }.first { self.item(of: $0) != nil }
    }
}

/// The memory of items.
@Suite struct JobItemMemoryTests {
    @Test("An item is small, and items of one request share their values")
    func size() {
        #expect(MemoryLayout<JobItemRecord>.stride <= 144)
        var first = JobItemRecord(
            index: 0, reference: .mounted(origin: "an origin with a long name", path: "a", key: nil),
            ranges: ["bytes=0-9", "bytes=-5"], tags: ["a"], isPinned: true)
        first.play = PlayRequest(time: 0..<10)
        var second = first
        (second.index, second.state, second.bytesTotal) = (1, .running, 0)
        second.reference = .mounted(origin: "an origin with a long name", path: "b", key: nil)
        let before = second
        second.share(with: first)
        #expect(second == before && second.tags == ["a"] && second.bytesTotal == 0)
        second.tags = []
        #expect(first.tags == ["a"] && second.isPinned)
        second.bytesTotal = nil
        #expect(second.bytesTotal == nil)
    }

    @Test("Values that are removed leave an item as it was")
    func removal() {
        let item = JobItemRecord(index: 5, reference: .url("http://a/", key: nil))
        var changed = item
        changed.error = RecordedError(code: "a", message: "b")
        changed.wait = ItemWait(
            for: ItemWait.Hold(.disk, of: ""), since: Timestamp(seconds: 1), retryAt: Timestamp(seconds: 2))
        changed.play = PlayRequest(time: 0..<1)
        #expect(changed != item && changed.error?.code == "a")
        (changed.error, changed.wait, changed.play) = (nil, nil, nil)
        #expect(changed == item)
    }
}

extension PrefetchSchedule.Action {
    /// The run to start.
    fileprivate var run: PrefetchSchedule.Run? { if case .start(let run) = self { run } else { nil } }
}
