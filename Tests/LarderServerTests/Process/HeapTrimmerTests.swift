import Testing

@testable import LarderServer

/// The decision when freed memory is returned to the system.
@Suite struct HeapTrimmerTests {
    /// The samples at which a trim is due. A trim leaves `remainder` more bytes than are allocated; all in MiB.
    private func dueSamples(_ samples: [(resident: Int64, allocated: Int64)], remainder: Int64) -> [Int] {
        var (schedule, due) = (HeapTrimSchedule(), [Int]())
        for (index, sample) in samples.enumerated() {
            let use = HeapTrimmer.Use(resident: sample.resident << 20, allocated: sample.allocated << 20)
            guard schedule.isDue(at: use) else { continue }
            due.append(index)
            schedule.trimmed(to: .init(resident: use.allocated + remainder << 20, allocated: use.allocated))
        }
        return due
    }

    @Test("A trim follows a peak once, also one between two samples")
    func aPeakIsFollowedByOneTrim() {
        #expect(dueSamples([(15, 10), (90, 85), (90, 20), (25, 20), (25, 20), (60, 20)], remainder: 5) == [2, 5])
    }

    @Test("Memory in use and growing memory are not trimmed")
    func aGrowingUseIsNotTrimmed() {
        #expect(dueSamples([(15, 10), (30, 25), (60, 40), (90, 60), (92, 87)], remainder: 5) == [])
    }

    @Test("Memory that a trim does not return causes no further one")
    func theRemainderIsNotTrimmedAgain() {
        #expect(dueSamples([(15, 10), (90, 10), (40, 10), (40, 10), (43, 10), (44, 10)], remainder: 30) == [1, 5])
    }
}
