import CacheCore
import Testing

@Suite struct ObservationTableTests {
    private func asset(_ number: UInt64) -> AssetID { AssetID(high: 0, low: number) }

    private func table(refusedAt times: [(asset: UInt64, at: Duration)]) -> ObservationTable {
        var table = ObservationTable()
        for time in times { table.note(.rangesRefused, of: asset(time.asset), evidence: "403", at: time.at) }
        return table
    }

    @Test("A refusal of ranges holds for its asset only")
    func oneAsset() {
        let table = table(refusedAt: [(1, .zero), (1, .seconds(1)), (1, .seconds(2)), (2, .seconds(3))])

        #expect(table.refusesRanges(asset(1), at: .seconds(4)) && table.refusesRanges(asset(2), at: .seconds(4)))
        #expect(!table.refusesRanges(asset(3), at: .seconds(4)))
        #expect(table.current(at: .seconds(4)).map(\.since) == [.zero, .seconds(3)])
    }

    @Test(
        "A refusal by three assets within a minute holds for the origin",
        arguments: [(Duration.seconds(59), true), (.seconds(60), false)])
    func threeAssets(_ last: Duration, _ isOfOrigin: Bool) {
        let table = table(refusedAt: [(1, .zero), (2, .seconds(30)), (3, last)])

        #expect(table.refusesRanges(asset(4), at: .seconds(61)) == isOfOrigin)
        #expect(table.current(at: .seconds(61)).contains { $0.scope == .origin } == isOfOrigin)
    }

    @Test("A refusal ends after ten minutes, or with a 206 for the asset")
    func end() {
        var table = table(refusedAt: [(1, .zero), (2, .zero), (3, .zero)])

        #expect(table.refusesRanges(asset(9), at: .seconds(599)) && !table.refusesRanges(asset(9), at: .seconds(600)))
        #expect(table.current(at: .seconds(600)).isEmpty)
        table.supportsRanges(asset(1))
        #expect(!table.refusesRanges(asset(1), at: .zero) && !table.refusesRanges(asset(9), at: .zero))
        #expect(table.refusesRanges(asset(2), at: .zero))
    }

    @Test("Ignored ranges are no refusal and never hold for the origin")
    func ignored() {
        var table = ObservationTable()
        for number in 1...5 { table.note(.rangesIgnored, of: asset(UInt64(number)), evidence: "200", at: .zero) }

        #expect(table.lacksRanges(asset(1), at: .zero) && !table.refusesRanges(asset(1), at: .zero))
        #expect(!table.lacksRanges(asset(6), at: .zero))
    }

    @Test("A stated length holds until a response is stored, or for ten minutes")
    func statedLength() {
        let stated = StatedLength(length: 9, validators: Validators(entityTag: EntityTag("\"a\"")))
        var table = ObservationTable()
        table.note(.lengthStated(stated), of: asset(1), evidence: "206", at: .zero)

        #expect(table.statedLength(of: asset(1), at: .seconds(599)) == stated)
        #expect(table.statedLength(of: asset(1), at: .seconds(600)) == nil)
        #expect(table.statedLength(of: asset(2), at: .zero) == nil)
        table.stored(asset(1))
        #expect(table.statedLength(of: asset(1), at: .zero) == nil && table.current(at: .zero).isEmpty)
    }

    @Test("The endpoint of a region holds for ten minutes after the last redirect")
    func region() {
        let endpoint = RegionalEndpoint(region: "eu-west-1", origin: "https://a", address: "https://b")
        var table = ObservationTable()
        table.note(.regionStated(endpoint), .origin, "301", at: .zero)
        table.note(.regionStated(endpoint), .origin, "301", at: .seconds(300))

        #expect(table.region(at: .seconds(899)) == endpoint && table.region(at: .seconds(900)) == nil)
        #expect(table.current(at: .zero).map(\.since) == [.zero])
        table.forget(.regionStated, .origin)
        #expect(table.region(at: .seconds(300)) == nil)
    }

    @Test("The number of assets is limited")
    func limit() {
        let table = table(refusedAt: (1...1000).map { (UInt64($0), .milliseconds($0)) })

        #expect(table.current(at: .seconds(1)).count <= 256 + 1)
        #expect(table.refusesRanges(asset(1000), at: .seconds(1)))
    }
}
