import CacheCore
import Testing

/// Forecasts of the cost of a read, computed without a change of the ledger.
@Suite struct FillForecastTests {
    private let settings = FillLedger.Settings(firstWindowBytes: 1000, largestWindowBytes: 4000)

    private func ledger(_ extents: [ByteRange] = [], length: Int64? = 100_000) -> FillLedger {
        FillLedger(settings: settings, length: length, acceptsRanges: true, extents: ByteRangeSet(extents))
    }

    private func windows(_ forecast: FillForecast) -> [ByteRange] { forecast.requests.compactMap(\.range) }

    @Test("Cached bytes cost no request")
    func whatIsOnDiskCostsNothing() {
        let forecast = ledger([0..<500]).forecast(of: [100..<400], opening: .first)
        #expect(forecast == FillForecast())
    }

    @Test("A gap is one window")
    func aGapIsOneWindow() {
        let forecast = ledger([0..<500, 700..<900]).forecast(of: [100..<800], opening: .first)
        #expect(forecast.requests == [.window(500..<700)])
        #expect(forecast.requestCount == 1 && forecast.requestedBytes == 200)
    }

    @Test("A long read is planned in growing windows")
    func aLongReadIsAskedForInWindowsThatGrow() {
        let forecast = ledger().forecast(of: [0..<20_000], opening: .first)
        #expect(windows(forecast).first == 0..<1000)
        #expect(ByteRangeSet(windows(forecast)).runs == [0..<20_000])
        #expect(windows(forecast).map(\.length).max() == 4000)
        #expect(forecast.requestCount == forecast.requests.count && forecast.requestedBytes == 20_000)
    }

    @Test("At most a hundred windows are listed, and the rest is summed up")
    func ofTooManyWindowsAHundredAreListedAndTheRestIsSummedUp() {
        let length: Int64 = 40_000_000_000
        let forecast = ledger(length: length).forecast(of: [0..<length], opening: .first)
        #expect(forecast.requests.count == FillForecast.listed)
        #expect(forecast.requestedBytes == length)
        #expect((10_000_000...10_000_010).contains(forecast.requestCount ?? 0))
    }

    @Test("The forecast of an unknown asset contains only the opening")
    func ofAnAssetNobodyKnowsOnlyTheOpeningIsTold() {
        let forecast = FillLedger(settings: settings).forecast(of: [], opening: .closed(0..<1000))
        #expect(forecast.requests == [.opening(.closed(0..<1000))])
        #expect(forecast.requestCount == nil && forecast.requestedBytes == nil)
    }

    @Test("A confirmation before the read costs one request without bytes")
    func whatIsConfirmedFirstCostsARequestWithoutBytes() {
        let forecast = ledger([0..<500]).forecast(of: [0..<600], opening: .first, asking: .confirm)
        #expect(forecast.requests == [.confirmation(.closed(0..<1)), .window(500..<600)])
        #expect(forecast.requestCount == 2 && forecast.requestedBytes == 100)
    }

    @Test("A background confirmation is part of the forecast")
    func whatIsConfirmedBehindIsToldToo() {
        let forecast = ledger([0..<500]).forecast(of: [0..<500], opening: .first, asking: .confirmBehind)
        #expect(forecast.requests == [.confirmation(.closed(0..<1))])
    }

    @Test("A running fill is joined instead of requested again")
    func aFillUnderWayIsJoinedAndNotAskedForAgain() throws {
        var ledger = ledger()
        let (reader, _) = ledger.join(opening: .first, priority: .live, needsConfirmation: false)
        let started = ledger.want(0..<1000, by: reader)
        guard case .start(let fill, _)? = started.first else { throw CacheError(.internal, "No fill was started.") }
        let forecast = ledger.forecast(of: [500..<1500], opening: .first)
        #expect(forecast.joined == [fill])
        #expect(forecast.requests == [.window(1000..<1500)])
        #expect(ledger.state(of: fill)?.readers == 1)
        #expect(ledger.state(of: fill)?.window == 0..<1000)
    }

    @Test("An upstream without ranges is asked for the whole asset")
    func anUpstreamWithoutRangesIsAskedForTheWhole() {
        let ledger = FillLedger(settings: settings, length: 9000, acceptsRanges: false, extents: ByteRangeSet())
        let forecast = ledger.forecast(of: [5000..<6000], opening: .first)
        #expect(forecast.requests == [.whole])
        #expect(forecast.requestedBytes == 9000)
    }

    @Test("An unknown end makes the cost unknown")
    func whereTheEndIsNotKnownNeitherIsTheCost() {
        let forecast = ledger(length: nil).forecast(of: [0..<Int64.max], opening: .first)
        #expect(forecast.requestCount == nil && forecast.requestedBytes == nil)
        #expect(forecast.requests.first == .window(0..<1000))
    }

    @Test("A forecast leaves the ledger unchanged")
    func theLedgerItselfIsAsItWas() {
        let ledger = ledger([0..<500])
        _ = ledger.forecast(of: [0..<20_000], opening: .first, asking: .confirm)
        #expect(ledger.fillCount == 0 && ledger.readerCount == 0 && ledger.extents.byteCount == 500)
    }
}

extension UpstreamRequest.Window {
    fileprivate static let first = Self.closed(0..<1)
}

extension FillLedger.FillRequest {
    fileprivate var range: ByteRange? { if case .window(let range) = self { range } else { nil } }
}
