import CacheCore
import Testing

@Suite struct AdmissionFilterTests {
    private let start = Timestamp(seconds: 1_780_000_000)

    private func asset(_ number: UInt64) -> AssetID { AssetID(high: 0, low: number) }

    @Test("Uses within five minutes count once")
    func usesWithinFiveMinutesAreOne() {
        var filter = AdmissionFilter()

        let counts = [0, 1, 299, 300, 599, 600].map { filter.use(asset(1), at: start + .seconds($0)) }

        #expect(counts == [1, 1, 1, 2, 2, 3])
    }

    @Test("Discards the least recently used assets")
    func forgetsWhatWasNotAskedForForLong() {
        var filter = AdmissionFilter(limit: 10)
        for number in UInt64(0)..<15 { _ = filter.use(asset(number), at: start) }
        let later = start + .seconds(300)

        #expect(filter.use(asset(14), at: later) == 2)
        #expect(filter.use(asset(9), at: later) == 2)
        for number in UInt64(20)..<40 { _ = filter.use(asset(number), at: later) }
        #expect(filter.use(asset(9), at: later + .seconds(300)) == 1)
    }
}
