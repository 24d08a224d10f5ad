import CacheCore
import CacheTestKit
import Testing

@testable import CacheStore

@Suite struct JobCatalogTests {
    /// A file of a playlist, with an index of its own.
    private static var playable: JobItemRecord {
        var item = JobItemRecord(index: 3, reference: .mounted(origin: "media", path: "b.mp4", key: nil))
        item.play = PlayRequest(
            time: 60..<70.5, hasStart: false, kinds: [.video, .audio], renditions: .maxBitsPerSecond(3_000_000),
            includesKeys: false,
            otherwise: .head)
        (item.parent, item.time) = (2, 61..<71.5)
        item.state = .succeeded
        item.playResult = PlayResult(
            container: "mp4", layout: "tailIndex", duration: nil, start: 62, playableSeconds: 4.5)
        return item
    }

    /// A job without any default value, with an item of each kind.
    private static func fullJob(_ id: String) -> JobRecord {
        JobRecord(
            id: id, state: .failed, label: "trailers", queue: "Player.1_a-b", supersedes: true, priority: .high,
            owner: TokenOwner(id: "team", limits: ContentLimits(origins: ["a", "b"], prefixes: ["/o/a/x/"])),
            maxBytesPerSecond: 1000,
            timeout: .seconds(60), deadlineAt: Timestamp(seconds: 50), createdAt: Timestamp(seconds: 1),
            startedAt: Timestamp(seconds: 2), finishedAt: Timestamp(seconds: 3),
            error: RecordedError(code: "storageFull", message: "No space."), revision: 3,
            times: JobTimes(notBefore: Timestamp(seconds: 40)),
            items: [
                JobItemRecord(
                    index: 0, reference: .url("https://up.test/a?sig=1", key: "a"), ranges: ["bytes=0-9", "bytes=-5"],
                    state: .succeeded, assetID: TestStore.id(1), attempts: 2, bytesTotal: 15, bytesFromCache: 5,
                    bytesFromUpstream: 10),
                JobItemRecord(
                    index: 1, reference: .mounted(origin: "media", path: "b.mp4", key: nil), state: .timedOut,
                    error: RecordedError(code: "upstreamTimedOut", message: "Too late.")),
                JobItemRecord(index: 2, reference: .known(TestStore.id(3)), state: .cancelled, bytesTotal: 7), playable,
            ])
    }

    @Test("Every field of a job round-trips")
    func everyFieldOfAJobComesBack() async throws {
        let catalog = try TestStore().store.catalog
        let job = Self.fullJob("a")

        #expect(try await catalog.insertJob(job) == .inserted())

        #expect(try await catalog.job("a") == job)
        #expect(try await catalog.job("b") == nil)
        let tally = JobTally(
            counts: [.succeeded: 2, .timedOut: 1, .cancelled: 1], itemsUnknown: 2, measuredBytes: 22, bytesFromCache: 5,
            bytesFromUpstream: 10)
        #expect(try await catalog.jobSnapshot("a")?.tally == tally)
    }

    @Test("An update changes the state of a job that is known")
    func updatesChangeTheJob() async throws {
        let catalog = try TestStore().store.catalog
        var job = Self.fullJob("a")
        _ = try await catalog.insertJob(job)
        job.state = .running
        job.error = nil
        #expect(try await catalog.updateJob(job))

        #expect(try await catalog.job("a") == job)
        #expect(try await !catalog.updateJob(Self.fullJob("b")))
        #expect(try await catalog.job("b") == nil)
    }

    @Test("A cancelled task can still record its outcome")
    func aCancelledTaskCanStillWriteDownHowItEnded() async throws {
        let catalog = try TestStore().store.catalog
        var job = Self.fullJob("a")
        _ = try await catalog.insertJob(job)
        job.state = .cancelled

        let task = Task { [job] in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await catalog.updateJob(job)
        }

        #expect(try await task.value)
        #expect(try await catalog.job("a")?.state == .cancelled)
    }

    @Test("An idempotency key creates only one job")
    func anIdempotencyKeyMakesOneJob() async throws {
        let catalog = try TestStore().store.catalog
        let key = IdempotencyKey(key: "k", bodyHash: "1")

        #expect(try await catalog.insertJob(Self.fullJob("a"), idempotency: key) == .inserted())
        #expect(
            try await catalog.insertJob(Self.fullJob("b"), idempotency: key) == .repeated(jobID: "a", isSameBody: true))
        #expect(
            try await catalog.insertJob(Self.fullJob("c"), idempotency: IdempotencyKey(key: "k", bodyHash: "2"))
                == .repeated(jobID: "a", isSameBody: false))
        #expect(try await catalog.job("b") == nil)
    }

    @Test("A duplicate job id is rejected")
    func aJobsNameIsTakenOnce() async throws {
        let catalog = try TestStore().store.catalog
        _ = try await catalog.insertJob(Self.fullJob("a"))

        let error = await #expect(throws: CacheError.self) { try await catalog.insertJob(Self.fullJob("a")) }

        #expect(error?.code == .conflict)
        #expect(try await catalog.jobCounts() == [.failed: 1])
    }

    @Test("Running jobs are requeued after a restart")
    func runningJobsAreQueuedAgainAfterARestart() async throws {
        let directory = try TemporaryDirectory()
        try await {
            let testStore = try TestStore(in: directory)
            let catalog = testStore.store.catalog
            for state in JobState.allCases {
                let item = JobItemRecord(index: 0, reference: .known(TestStore.id(1)), state: state)
                let job = JobRecord(id: state.rawValue, state: state, createdAt: Timestamp(seconds: 1), items: [item])
                _ = try await catalog.insertJob(job)
            }
            try testStore.store.close()
        }()

        let jobs = try await TestStore(in: directory).store.catalog.unfinishedJobs()

        #expect(jobs.map(\.id) == ["queued", "running", "paused"])
        #expect(jobs.map(\.state) == [.queued, .queued, .paused])
        #expect(jobs.flatMap(\.items).map(\.state).prefix(2) == [.queued, .queued])
    }

    @Test("Jobs are listed newest first in pages")
    func jobsAreListedNewestFirstInPages() async throws {
        let catalog = try TestStore().store.catalog
        for number in 0..<10 {
            _ = try await catalog.insertJob(
                JobRecord(
                    id: "\(number)", state: number % 2 == 0 ? .queued : .failed, label: number < 5 ? "early" : nil,
                    createdAt: Timestamp(seconds: 1)))
        }

        func ids(_ query: JobQuery) async throws -> [String] {
            var query = query
            var ids: [String] = []
            repeat {
                let page = try await catalog.jobPage(query)
                ids += page.items.map(\.record.id)
                query.cursor = page.nextCursor
            } while query.cursor != nil
            return ids
        }

        #expect(try await ids(JobQuery(limit: 3)) == (0..<10).reversed().map { "\($0)" })
        #expect(try await ids(JobQuery(state: .failed, limit: 2)) == ["9", "7", "5", "3", "1"])
        #expect(try await ids(JobQuery(state: .queued, label: "early", limit: 3)) == ["4", "2", "0"])
        let error = await #expect(throws: CacheError.self) { try await catalog.jobPage(JobQuery(cursor: "x")) }
        #expect(error?.code == .invalidField("cursor"))
    }

    /// A job in a queue, with one item for each given state.
    private static func queued(
        _ id: String, in queue: String?, state: JobState = .queued, items: [JobState] = [.queued],
        supersedes: Bool = false
    ) -> JobRecord {
        JobRecord(
            id: id, state: state, queue: queue, supersedes: supersedes, createdAt: Timestamp(seconds: 7),
            items: items.enumerated().map {
                JobItemRecord(index: $0.offset, reference: .known(TestStore.id(1)), state: $0.element)
            })
    }

    @Test("A superseding job ends the unfinished jobs of its queue in the same commit")
    func aJobThatSupersedesEndsTheUnfinishedOnesOfItsQueueInTheSameCommit() async throws {
        let directory = try TemporaryDirectory()
        try await {
            let testStore = try TestStore(in: directory)
            let catalog = testStore.store.catalog
            _ = try await catalog.insertJob(Self.queued("done", in: "a", state: .succeeded, items: [.succeeded]))
            _ = try await catalog.insertJob(
                Self.queued("running", in: "a", state: .running, items: [.succeeded, .running, .queued]))
            _ = try await catalog.insertJob(Self.queued("waiting", in: "a"))
            _ = try await catalog.insertJob(Self.queued("other", in: "b"))
            _ = try await catalog.insertJob(Self.queued("none", in: nil))

            let insertion = try await catalog.insertJob(Self.queued("new", in: "a", supersedes: true))

            #expect(insertion == .inserted(superseded: ["running", "waiting"]))
            try testStore.store.close()
        }()

        let catalog = try TestStore(in: directory).store.catalog
        #expect(try await catalog.unfinishedJobs().map(\.id) == ["other", "none", "new"])
        let ended = try #require(try await catalog.job("running"))
        #expect(ended.state == .cancelled && ended.finishedAt == Timestamp(seconds: 7))
        #expect(ended.error == .superseded(by: "new") && ended.error?.message.contains("job new") == true)
        #expect(ended.items.map(\.state) == [.succeeded, .cancelled, .cancelled])
        #expect(ended.items.map(\.error) == [nil, ended.error, ended.error])
        #expect(try await catalog.job("done")?.state == .succeeded)
        #expect(try await catalog.jobPage(JobQuery(queue: "a")).items.map(\.record.id).count == 4)
        #expect(try await catalog.jobPage(JobQuery(state: .queued, queue: "a")).items.map(\.record.id) == ["new"])
    }

    @Test("The end of a job is the end of its unfinished items, in every list")
    func theEndOfAJobEndsItsItems() async throws {
        let catalog = try TestStore().store.catalog
        var job = Self.queued("a", in: nil, state: .running, items: [.succeeded, .running, .queued])
        _ = try await catalog.insertJob(job)
        (job.state, job.error) = (.timedOut, RecordedError(code: "upstreamTimedOut", message: "Too late."))

        #expect(try await catalog.updateJob(job))

        let states: [JobState] = [.succeeded, .timedOut, .timedOut]
        #expect(try await catalog.job("a")?.items.map(\.state) == states)
        let page = try await catalog.jobItems("a")
        #expect(page?.items.map(\.state) == states && page?.items.map(\.error) == [nil, job.error, job.error])
        let tally = try await catalog.jobSnapshot("a")?.tally
        #expect(tally?[.succeeded] == 1 && tally?[.timedOut] == 2 && tally?.itemsTotal == 3)
    }

    @Test("A requeued job supersedes its queue if it is superseding or was superseded")
    func whatIsBegunAgainSupersedesWhereItSaidSoOrWasSuperseded() async throws {
        let catalog = try TestStore().store.catalog
        _ = try await catalog.insertJob(Self.queued("old", in: "a"))
        _ = try await catalog.insertJob(Self.queued("failed", in: "a", state: .failed))
        _ = try await catalog.insertJob(Self.queued("new", in: "a", supersedes: true))
        let old = try #require(try await catalog.job("old"))
        var again = old
        (again.state, again.items[0].state, again.error, again.items[0].error) = (.queued, .queued, nil, nil)

        let bySuperseded = try await catalog.requeueJob(again, at: Timestamp(seconds: 9))
        let new = try #require(try await catalog.job("new"))
        var failed = try #require(try await catalog.job("failed"))
        failed.state = .queued
        let byOther = try await catalog.requeueJob(failed, at: Timestamp(seconds: 10))
        var unknown = again
        unknown.id = "none"
        let byUnknown = try await catalog.requeueJob(unknown, at: Timestamp(seconds: 11))

        #expect(old.supersedes && !failed.supersedes)
        #expect(bySuperseded == ["new"] && byOther == [] && byUnknown == [])
        #expect(new.error == .superseded(by: "old") && new.finishedAt == Timestamp(seconds: 9))
        #expect(try await catalog.unfinishedJobs().map(\.id) == ["old", "failed"])
        #expect(try await catalog.job("old")?.items.map(\.state) == [.queued])
    }

    @Test("A job that is not inserted supersedes nothing")
    func whatIsNotInsertedSupersedesNothing() async throws {
        let catalog = try TestStore().store.catalog
        let key = IdempotencyKey(key: "k", bodyHash: "1")
        _ = try await catalog.insertJob(Self.queued("first", in: "a", supersedes: true), idempotency: key)
        _ = try await catalog.insertJob(Self.queued("second", in: "a"))

        let again = try await catalog.insertJob(Self.queued("third", in: "a", supersedes: true), idempotency: key)
        await #expect(throws: CacheError.self) {
            try await catalog.insertJob(Self.queued("second", in: "a", supersedes: true))
        }

        #expect(again == .repeated(jobID: "first", isSameBody: true))
        #expect(try await catalog.unfinishedJobs().map(\.id) == ["first", "second"])
    }

    @Test("Job items are listed in order and in pages")
    func itemsAreListedInTheirOrderInPages() async throws {
        let catalog = try TestStore().store.catalog
        let items = (0..<7).map { JobItemRecord(index: $0, reference: .known(TestStore.id(UInt64($0)))) }
        _ = try await catalog.insertJob(JobRecord(id: "a", createdAt: Timestamp(seconds: 1), items: items))

        var listed: [JobItemRecord] = []
        var cursor: String?
        repeat {
            let page = try #require(try await catalog.jobItems("a", limit: 3, cursor: cursor))
            listed += page.items
            cursor = page.nextCursor
        } while cursor != nil

        #expect(listed == items)
        #expect(try await catalog.jobItems("b") == nil)
    }

    @Test("Old finished jobs and idempotency keys are pruned")
    func oldFinishedJobsAndKeysAreForgotten() async throws {
        let catalog = try TestStore().store.catalog
        let key = IdempotencyKey(key: "k", bodyHash: "1")
        _ = try await catalog.insertJob(Self.fullJob("old"), idempotency: key)
        var recent = Self.fullJob("recent")
        recent.finishedAt = Timestamp(seconds: 1000)
        _ = try await catalog.insertJob(recent)
        _ = try await catalog.insertJob(JobRecord(id: "queued", createdAt: Timestamp(seconds: 1)))

        #expect(try await catalog.pruneJobs(before: Timestamp(seconds: 1000)) == 1)

        #expect(try await catalog.jobPage(JobQuery()).items.map(\.record.id) == ["queued", "recent"])
        #expect(try await catalog.insertJob(Self.fullJob("again"), idempotency: key) == .inserted())
    }
}
