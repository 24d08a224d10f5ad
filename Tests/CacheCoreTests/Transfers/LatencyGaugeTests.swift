import CacheCore
import Testing

@Suite struct LatencyGaugeTests {
    @Test("Fewer than twenty samples give no percentile")
    func nothingIsSaidOfFewerThanTwenty() {
        var gauge = LatencyGauge()
        for _ in 0..<19 { gauge.note(.seconds(1)) }
        #expect(gauge.percentile(0.95) == nil)
        gauge.note(.seconds(1))

        #expect(gauge.percentile(0.95) == .seconds(1))
    }

    @Test("Percentiles use the nearest rank", arguments: [(0.0, 1), (0.5, 50), (0.95, 95), (0.951, 96), (1.0, 100)])
    func percentilesAreByNearestRank(_ share: Double, _ milliseconds: Int) {
        var gauge = LatencyGauge()
        for value in (1...100).shuffled() { gauge.note(.milliseconds(value)) }

        #expect(gauge.percentile(share) == .milliseconds(milliseconds))
    }

    @Test("Only the latest samples count")
    func onlyTheLatestCount() {
        var gauge = LatencyGauge()
        for _ in 0..<300 { gauge.note(.seconds(9)) }
        for _ in 0..<256 { gauge.note(.milliseconds(5)) }

        #expect(gauge.percentile(1) == .milliseconds(5))
    }
}
