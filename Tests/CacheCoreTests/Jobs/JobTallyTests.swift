import CacheCore
import Testing

@Suite struct JobTallyTests {
    @Test("Items of unknown size count as the mean of the others")
    func unknownItemsCountAsTheMean() {
        let tally = JobTally(
            counts: [.succeeded: 1, .queued: 3], itemsUnknown: 2, measuredBytes: 2048, bytesFromCache: 512,
            bytesFromUpstream: 512)

        #expect(tally.bytesTotal == 2048 && tally.bytesExpected == 4096 && tally.progressRatio == 0.25)
    }

    @Test(
        "The progress is unknown without a size, and at most 1",
        arguments: [(1, 0, nil), (0, 0, 1), (0, 8, 1), (0, 20, 0.5)] as [(Int, Int64, Double?)])
    func theProgressIsLimited(unknown: Int, size: Int64, ratio: Double?) {
        let tally = JobTally(
            counts: [.running: 1], itemsUnknown: unknown, measuredBytes: size, bytesFromUpstream: 10)

        #expect(tally.progressRatio == ratio)
        #expect(tally.bytesExpected == (ratio == nil ? nil : size))
    }

    @Test("The remaining time includes the items of unknown size")
    func theRemainingTimeIncludesUnknownItems() {
        let tally = JobTally(
            counts: [.running: 4], itemsUnknown: 2, measuredBytes: 2048, bytesFromUpstream: 1024)
        let job = JobSnapshot(
            record: JobRecord(id: "a", state: .running, createdAt: Timestamp(seconds: 1)), tally: tally,
            presentRate: 1024, version: 1)

        #expect(job.eta == .seconds(3))
    }
}
