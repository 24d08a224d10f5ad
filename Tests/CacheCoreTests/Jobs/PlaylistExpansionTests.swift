import Testing

@testable import CacheCore

/// Playlists in prefetch jobs by time.
@Suite struct PlaylistExpansionTests {
    private static let now = PrefetchSchedule.Moment(wall: Timestamp(seconds: 1000), uptime: .zero)
    private let play = PlayRequest(time: 10..<20)

    private func item(_ index: Int, _ path: String, play: PlayRequest? = nil) -> JobItemRecord {
        var item = JobItemRecord(index: index, reference: .mounted(origin: "media", path: path, key: nil))
        item.play = play
        return item
    }

    private func segment(_ path: String, _ time: Range<Double>) -> JobItemRecord {
        var segment = item(0, path)
        (segment.parent, segment.time) = (0, time)
        return segment
    }

    /// Starts a job of one playlist, and ends its run with two segments.
    private func expanded() throws -> PrefetchSchedule {
        var schedule = PrefetchSchedule(concurrency: 1)
        _ = schedule.open(at: Self.now)
        let job = JobRecord(id: "j", createdAt: Self.now.wall, items: [item(0, "a.m3u8", play: play)])
        let run = try #require(schedule.add(job, at: Self.now)?.compactMap(\.run).first)
        var progress = PrefetchSchedule.Progress()
        progress.resolved = ([], PlayResult(container: "hls", layout: "segmented", duration: 60))
        _ = schedule.progressed(run, progress, at: Self.now)
        _ = schedule.ended(run, .expanded([segment("1.ts", 8..<14), segment("2.ts", 14..<20)]), at: Self.now)
        return schedule
    }

    @Test("The files of a playlist are saved together with its end, and started in order")
    func filesAreAdded() throws {
        var schedule = try expanded()

        let change = try #require(schedule.takeChanges().first)

        #expect(change.items.map(\.index) == [0, 1, 2])
        #expect(change.items.map(\.state) == [.succeeded, .running, .queued])
        #expect(change.items.map(\.parent) == [nil, 0, 0])
        #expect(schedule.state(of: "j") == .running)
    }

    @Test("A playlist is playable up to the first file that is missing")
    func playableTimeFollowsTheFiles() throws {
        var schedule = try expanded()
        func playable() -> Double? {
            schedule.takeChanges().flatMap(\.items).first { $0.index == 0 }?.playResult?.playableSeconds
        }
        #expect(playable() == 0)
        var run = PrefetchSchedule.Run(job: "j", item: 1, number: 2)

        run = try #require(schedule.ended(run, .succeeded, at: Self.now).compactMap(\.run).first)
        #expect(playable() == 4)
        _ = schedule.ended(run, .succeeded, at: Self.now)

        #expect(playable() == 10)
        #expect(schedule.state(of: "j") == .succeeded)
    }

    @Test("A playlist that names itself ends at the second level")
    func nestedPlaylistsEnd() throws {
        var schedule = PrefetchSchedule(concurrency: 1)
        _ = schedule.open(at: Self.now)
        let job = JobRecord(id: "j", createdAt: Self.now.wall, items: [item(0, "a.m3u8", play: play)])
        var runs = schedule.add(job, at: Self.now)?.compactMap(\.run) ?? []
        while let run = runs.first {
            var child = item(0, "a.m3u8", play: play)
            (child.parent, child.time) = (run.item, play.time)
            runs = schedule.ended(run, .expanded([child]), at: Self.now).compactMap(\.run)
        }

        let items = schedule.takeChanges().flatMap(\.items)
        #expect(items.map(\.state) == [.succeeded, .succeeded, .failed])
        #expect(items.last?.error?.code == "mediaIndexTooLarge")
    }

    @Test("A playlist whose files exceed a limit fails, and the other items go on", arguments: [true, false])
    func filesAreLimited(isOfOneJob: Bool) throws {
        let limits = PrefetchSchedule.Limits(jobItems: isOfOneJob ? 3 : 9, unfinishedItems: isOfOneJob ? 9 : 2)
        var schedule = PrefetchSchedule(concurrency: 1)
        _ = schedule.open(at: Self.now)
        let items = [item(0, "a.m3u8", play: play), item(1, "b.m3u8", play: play)]
        let job = JobRecord(id: "j", createdAt: Self.now.wall, items: items)
        let run = try #require(schedule.add(job, at: Self.now)?.compactMap(\.run).first)
        let segments = [segment("1.ts", 8..<14), segment("2.ts", 14..<20)]

        let next = schedule.ended(run, .expanded(segments), within: limits, at: Self.now).compactMap(\.run).first
        var file = segments[0]
        file.parent = 1
        _ = schedule.ended(try #require(next), .expanded([file]), within: limits, at: Self.now)

        let saved = schedule.takeChanges().flatMap(\.items)
        #expect(saved.map(\.state) == [.failed, .succeeded, .running])
        #expect(saved.first?.error?.code == "jobTooLarge")
        #expect(schedule.unfinishedCount == 1)
    }

    @Test("After a crash between any two saves a job has each file of its playlists once")
    func savesOfFilesAreConsistent() throws {
        let segments = (0..<6).map { segment("\($0).ts", Double($0)..<Double($0) + 1) }
        var (saves, isComplete) = (0, false)
        while !isComplete {
            var schedule = PrefetchSchedule(concurrency: 1)
            var stored = JobRecord(id: "j", createdAt: Self.now.wall, items: [item(0, "a.m3u8", play: play)])
            _ = schedule.add(stored, at: Self.now)
            var runs = schedule.open(at: Self.now).compactMap(\.run)
            // The playlist names another one, which names the segments.
            var media = item(0, "b.m3u8", play: play)
            (media.parent, media.time) = (0, 0..<6)
            for children in [[media], segments] {
                let files = children.map { child in
                    var child = child
                    child.parent = runs[0].item
                    return child
                }
                runs = schedule.ended(runs[0], .expanded(files), at: Self.now).compactMap(\.run)
            }
            for _ in 0..<saves {
                let changes = schedule.takeChanges(atMost: 2)
                for change in changes {
                    (stored.state, stored.startedAt) = (change.job.state, change.job.startedAt)
                    for item in change.items {
                        #expect(item.index <= stored.items.count)
                        if item.index == stored.items.count {
                            stored.items.append(item)
                        } else {
                            stored.items[item.index] = item
                        }
                    }
                }
                isComplete = changes.isEmpty
            }

            let paths = try Self.finish(stored, segments, media)

            #expect(paths.count == 8 && Set(paths).count == 8, "after \(saves) saves")
            saves += 1
        }
    }

    /// Loads a stored job and ends all its items; returns their references.
    private static func finish(
        _ stored: JobRecord, _ segments: [JobItemRecord], _ media: JobItemRecord
    ) throws -> [AssetReference] {
        var schedule = PrefetchSchedule(concurrency: 1)
        _ = schedule.add(stored, at: now)
        var runs = schedule.open(at: now).compactMap(\.run)
        var saved: [Int: AssetReference] = Dictionary(
            uniqueKeysWithValues: stored.items.map { ($0.index, $0.reference) })
        while let run = runs.first, let item = schedule.item(of: run) {
            var outcome = PrefetchSchedule.Outcome.succeeded
            if item.play != nil {
                outcome = .expanded(
                    (item.parent == nil ? [media] : segments).map { child in
                        var child = child
                        child.parent = run.item
                        return child
                    })
            }
            runs = schedule.ended(run, outcome, at: now).compactMap(\.run)
        }
        for item in schedule.takeChanges().flatMap(\.items) { saved[item.index] = item.reference }
        #expect(schedule.state(of: "j") == .succeeded)
        return saved.sorted { $0.key < $1.key }.map(\.value)
    }

    @Test("A failed file limits the playable time of its playlist")
    func aFailedFileEndsThePlayableTime() throws {
        var schedule = try expanded()
        let failure = RecordedError(code: "upstreamForbidden", message: "No.")

        let run = PrefetchSchedule.Run(job: "j", item: 1, number: 2)
        let next = try #require(schedule.ended(run, .failed(failure), at: Self.now).compactMap(\.run).first)
        _ = schedule.ended(next, .succeeded, at: Self.now)

        let items = schedule.takeChanges().flatMap(\.items)
        #expect(items.first { $0.index == 0 }?.playResult?.playableSeconds == 0)
        #expect(schedule.state(of: "j") == .failed)
    }
}

extension PrefetchSchedule.Action {
    /// The run that starts; nil for other actions.
    fileprivate var run: PrefetchSchedule.Run? { if case .start(let run) = self { run } else { nil } }
}
