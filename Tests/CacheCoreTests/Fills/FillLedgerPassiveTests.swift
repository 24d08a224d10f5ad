import CacheCore
import Testing

/// Passive readers, which cause no request to the upstream.
@Suite struct FillLedgerPassiveTests {
    /// A ledger with cached bytes and a fill in flight for a reader that wants `wanted`.
    private static func filling(
        _ wanted: ByteRange, onDisk: [ByteRange] = [], isMultiplexed: Bool = true
    ) -> (ledger: FillLedger, fill: FillLedger.FillID, reader: FillLedger.ReaderID) {
        var ledger = FillLedger(
            settings: FillLedger.Settings(
                firstExposureBytes: 10, firstWindowBytes: 100, largestWindowBytes: 800, retries: 2, pieceBytes: 100,
                overshootBytes: 4), length: 10_000, acceptsRanges: true, extents: ByteRangeSet(onDisk))
        ledger.hasFlowControl = !isMultiplexed
        let (reader, _) = ledger.join(opening: .closed(wanted), priority: .live, needsConfirmation: false)
        guard case .start(let fill, let start)? = ledger.want(wanted, by: reader).first else {
            preconditionFailure("no fill was started")
        }
        let window = if case .window(let window) = start.fillRequest { window } else { wanted }
        _ = ledger.began(fill, window: window, length: 10_000, acceptsRanges: true, isMultiplexed: isMultiplexed)
        return (ledger, fill, reader)
    }

    @Test("Obtainable are bytes on disk and those of answered fills, up to the first gap")
    func obtainableBytes() {
        let (ledger, _, _) = Self.filling(100..<200, onDisk: [0..<100, 300..<400])

        #expect(ledger.obtainable(0..<1000) == 0..<200)
        #expect(ledger.obtainable(350..<1000) == 350..<400)
        #expect(ledger.obtainable(200..<1000).isEmpty)
        #expect(ledger.firstObtainable(in: 200..<1000) == 300)
        #expect(ledger.firstObtainable(in: 150..<1000) == 150)
        #expect(ledger.firstObtainable(in: 400..<20_000) == nil)
    }

    @Test("Bytes of a fill without an answer are not obtainable")
    func unansweredFillsDoNotCount() {
        var ledger = FillLedgerTests.known()
        let (reader, _) = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        _ = ledger.want(0..<100, by: reader)

        #expect(ledger.fillCount == 1)
        #expect(ledger.obtainable(0..<100).isEmpty)
    }

    @Test("A passive reader gets arriving bytes, and keeps the fill after the other reader has left")
    func aPassiveReaderFollowsAFill() {
        var (ledger, fill, reader) = Self.filling(0..<100)
        let passive = ledger.joinPassively(waitLimit: .seconds(1))
        let joined = ledger.want(0..<100, by: passive)

        #expect(joined.isEmpty)
        #expect(ledger.poll(passive).0 == .pending)
        #expect(ledger.arrived(fill, upTo: 40).contains(.notify(passive, .arrived)))
        #expect(ledger.poll(passive).0 == .bytes(0..<40))
        #expect(ledger.leave(reader).isEmpty)
    }

    @Test("No fill is started for a passive reader: it is told when a fill breaks")
    func aPassiveReaderIsToldOfABrokenFill() {
        var (ledger, fill, reader) = Self.filling(0..<100)
        let passive = ledger.joinPassively(waitLimit: nil)
        _ = ledger.want(0..<100, by: passive)
        _ = ledger.poll(passive)
        _ = ledger.leave(reader)

        let actions = ledger.broke(fill, with: .upstreamProtocol, isWorthRetrying: true)
        #expect(actions == [.notify(passive, .failed(.notCached))])
        #expect(ledger.poll(passive).0 == .over(.notCached))
    }

    @Test("A passive reader continues with the retry of another reader")
    func aPassiveReaderContinuesWithARetry() {
        var (ledger, fill, reader) = Self.filling(0..<100)
        let passive = ledger.joinPassively(waitLimit: nil)
        _ = ledger.want(0..<100, by: passive)
        _ = (ledger.poll(reader), ledger.poll(passive))

        let actions = ledger.broke(fill, with: .upstreamProtocol, isWorthRetrying: true)
        #expect(actions.contains { if case .start = $0 { true } else { false } })
        #expect(!actions.contains(.notify(passive, .failed(.notCached))))
        #expect(ledger.poll(passive).0 == .pending)
    }

    @Test("A passive reader raises the allowance of a paused fill")
    func aPassiveReaderRaisesTheAllowance() {
        var (ledger, fill, _) = Self.filling(0..<10_000, isMultiplexed: false)
        let joined = ledger.want(0..<600, by: ledger.joinPassively(waitLimit: nil))

        let allowances = joined.compactMap { action in
            if case .allow(fill, let end) = action { end } else { Int64?.none }
        }
        #expect(allowances.last ?? 0 >= 600)
    }

    @Test("A passive reader waits for the description that another reader has requested")
    func aPassiveReaderWaitsForTheDescription() {
        var ledger = FillLedger(settings: FillLedgerTests.settings)
        let lonely = ledger.joinPassively(waitLimit: nil)
        #expect(ledger.poll(lonely).0 == .over(.notCached))
        #expect(ledger.fillCount == 0)

        let (_, opening) = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        guard case .start(let fill, _)? = opening.first else { Issue.record("No fill was started."); return }
        let passive = ledger.joinPassively(waitLimit: nil)
        #expect(ledger.unansweredFill(for: 0) == fill)
        #expect(ledger.poll(passive).0 == .pending)
        let began = ledger.began(fill, window: 0..<100, length: 10_000, acceptsRanges: true)
        #expect(began.contains(.notify(passive, .arrived)))
        #expect(ledger.obtainable(0..<10_000) == 0..<100)
        #expect(ledger.unansweredFill(for: 0) == nil)
    }

    @Test("A passive reader fails with the opening that it waits for")
    func aPassiveReaderFailsWithTheOpening() {
        var ledger = FillLedger(settings: FillLedgerTests.settings)
        let (reader, opening) = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        guard case .start(let fill, _)? = opening.first else { Issue.record("No fill was started."); return }
        let passive = ledger.joinPassively(waitLimit: nil)
        _ = ledger.poll(passive)
        _ = ledger.leave(reader)

        let actions = ledger.broke(fill, with: .upstreamProtocol, isWorthRetrying: true)
        #expect(actions == [.notify(passive, .failed(.notCached))])
    }
}
