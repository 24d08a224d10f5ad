@testable import CacheEngine
import CacheCore
import Testing

@Suite("Progress of a job of a fleet")
struct FleetJobProgressTests {
    private static let now = PrefetchSchedule.Moment(wall: Timestamp(milliseconds: 1000), uptime: .zero)

    /// A job with 600 items, its schedule, and what its node has of it.
    private static func job() throws -> (schedule: PrefetchSchedule, running: FleetJobs.Running) {
        let items = FleetJobDocumentTests.items(600)
        let record = JobRecord(id: "job", createdAt: now.wall, items: items)
        var tally = JobTally()
        for item in items { tally.add(item) }
        let chunks = try #require(try FleetJobChunks.chunks(of: items))
        let snapshot = JobSnapshot(record: record, tally: tally, version: 1)
        let head = FleetJobHead(snapshot, items: items.count, chunks: chunks, lease: 1)
        var schedule = PrefetchSchedule(concurrency: 600)
        _ = schedule.add(record, at: now)
        return (schedule, FleetJobs.Running(head: head, revision: 1, claim: 1, items: items))
    }

    /// Lets the first items succeed.
    private static func run(_ count: Int, of schedule: inout PrefetchSchedule) {
        for case .start(let run) in schedule.open(at: now) where run.item < count {
            _ = schedule.ended(run, .succeeded, at: now)
        }
    }

    private static func change(
        of job: inout FleetJobs.Running, atMost limit: Int
    ) throws -> FleetJobStore.Change {
        let change = job.takeChange(of: "job", atMost: limit)
        return try #require(change)
    }

    @Test("Only the results of changed items are stored")
    func changesAreStored() throws {
        var (schedule, job) = try Self.job()
        Self.run(1, of: &schedule)
        for change in schedule.takeChanges(atMost: 1) { job.apply(change, schedule.progress(of: "job", at: Self.now)) }
        #expect(!job.isSaved)

        let change = try Self.change(of: &job, atMost: 8)

        #expect(change.results.count == 1)
        #expect(change.head.state == "running" && !change.releasesClaim)
        #expect(job.isSaved)
    }

    @Test("The end of a job is stored with its last results, and releases the claim")
    func endsAreStoredLast() throws {
        var (schedule, job) = try Self.job()
        Self.run(600, of: &schedule)
        for change in schedule.takeChanges() { job.apply(change, schedule.progress(of: "job", at: Self.now)) }

        let first = try Self.change(of: &job, atMost: 2)
        let last = try Self.change(of: &job, atMost: 2)

        #expect(first.head.state == "running" && !first.releasesClaim)
        #expect(last.head.state == "succeeded" && last.releasesClaim)
        #expect(last.head.sums.tally[.succeeded] == 600)
        #expect(Set(first.results.keys).union(last.results.keys) == [0, 1, 2])
    }

    @Test("Results that could not be stored are stored again")
    func failuresAreRepeated() throws {
        var (schedule, job) = try Self.job()
        Self.run(600, of: &schedule)
        for change in schedule.takeChanges() { job.apply(change, nil) }
        let failed = try Self.change(of: &job, atMost: 8)

        job.restore(failed)

        let again = try Self.change(of: &job, atMost: 8)
        #expect(again.results == failed.results && again.releasesClaim)
    }
}
