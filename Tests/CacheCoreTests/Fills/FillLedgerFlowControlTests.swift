import CacheCore
import Testing

/// Open-ended reads over HTTP/1.1: a single request, limited by allowances.
@Suite struct FillLedgerFlowControlTests {
    private static let mebibyte: Int64 = 1 << 20
    private static let kibibyte: Int64 = 1 << 10
    private static let length = 1024 * mebibyte

    private static func film(onDisk: [ByteRange] = []) -> SharedLedger {
        var ledger = FillLedger(
            settings: FillLedger.Settings(finishIfRemainingBytes: 8 * mebibyte), length: length, acceptsRanges: true,
            extents: ByteRangeSet(onDisk))
        ledger.hasFlowControl = true
        return SharedLedger(ledger)
    }

    /// The ranges requested by started fills.
    private static func requested(_ actions: [FillLedger.Action]) -> [ByteRange] {
        actions.starts.compactMap { start in if case .window(let range) = start.fillRequest { range } else { nil } }
    }

    /// The initial claims of flow-controlled fills.
    private static func claims(_ actions: [FillLedger.Action]) -> [ByteRange] {
        actions.compactMap { action in if case .start(_, let start) = action { start.claim } else { nil } }
    }

    /// The ends of the allowances in `actions`.
    private static func allowed(_ actions: [FillLedger.Action]) -> [Int64] {
        actions.compactMap { action in if case .allow(_, let end) = action { end } else { nil } }
    }

    @Test("A read to the end of a large asset is one request with a claim of its first part")
    func openEndedReadIsOneRequest() {
        let ledger = Self.film()
        let actions = ledger.want(0..<Self.length, by: ledger.reader())

        #expect(Self.requested(actions) == [0..<Self.length])
        #expect(
            Self.claims(actions) == [0..<(80 * Self.kibibyte)],
            "The claim must be the first exposure plus the overshoot.")
    }

    @Test("The end of an unknown length is recognised while the last bytes are in flight")
    func endIsRecognisedWhileBytesAreInFlight() {
        var ledger = FillLedger(settings: FillLedger.Settings())
        let (reader, opening) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        guard case .start(let fill, _)? = opening.first else { Issue.record("No fill was started."); return }
        _ = ledger.began(fill, window: 0..<300_000, length: nil, acceptsRanges: true)
        _ = ledger.want(0..<Int64.max, by: reader)
        _ = ledger.arrived(fill, upTo: 200)

        #expect(ledger.isFetching(upTo: 300_000))
        #expect(!ledger.isFetching(upTo: 200) && !ledger.isFetching(upTo: 299_999))
        _ = ledger.foundEnd(at: 300_000)
        #expect(ledger.length == 300_000)
        _ = ledger.arrived(fill, upTo: 300_000)
        #expect(ledger.completed(fill).isEmpty && ledger.extents.runs == [0..<300_000])
    }

    @Test("A stated range of up to 16 MiB is one request without flow control")
    func statedRangeIsRequestedAsStated() {
        let ledger = Self.film()
        let actions = ledger.want(Self.mebibyte..<(17 * Self.mebibyte), by: ledger.reader())

        #expect(Self.requested(actions) == [Self.mebibyte..<(17 * Self.mebibyte)])
        #expect(Self.claims(actions).isEmpty && Self.allowed(actions).isEmpty)
    }

    @Test("The allowance grows with the consumed bytes, up to a quarter ahead")
    func allowanceGrowsWithTheReader() {
        let ledger = Self.film()
        let reader = ledger.reader()
        let fill = ledger.want(0..<Self.length, by: reader).starts[0].fill
        var allowed = 64 * Self.kibibyte
        while allowed < 8 * Self.mebibyte {
            _ = ledger.arrived(fill, upTo: allowed)
            let next = Self.allowed(ledger.advance(reader, to: allowed))
            guard let end = next.first else { Issue.record("No allowance at \(allowed)."); return }
            #expect(next.count == 1)
            #expect(end - allowed == max(64 * Self.kibibyte, allowed / 4))
            allowed = end
        }
    }

    @Test("A reader behind the claim starts its own window, and the first transfer ends there")
    func anotherReaderMayHaveTheBytesBehindTheClaim() {
        let ledger = Self.film()
        let first = ledger.want(0..<Self.length, by: ledger.reader()).starts[0].fill
        let actions = ledger.want((4 * Self.mebibyte)..<(5 * Self.mebibyte), by: ledger.reader())

        #expect(actions.first == .shorten(first, to: 4 * Self.mebibyte))
        #expect(Self.requested(actions) == [(4 * Self.mebibyte)..<(5 * Self.mebibyte)])
    }

    @Test("A reader inside the claim joins the transfer and extends its allowance")
    func aReaderInsideTheClaimDrivesTheTransfer() {
        let ledger = Self.film()
        let (slow, fast) = (ledger.reader(), ledger.reader())
        let fill = ledger.want(0..<Self.length, by: slow).starts[0].fill
        _ = ledger.arrived(fill, upTo: 64 * Self.kibibyte)
        let actions = ledger.want((60 * Self.kibibyte)..<Self.length, by: fast)

        #expect(actions.starts.isEmpty)
        #expect(Self.allowed(actions) == [124 * Self.kibibyte])
    }

    @Test("A request ends at cached bytes")
    func aRequestEndsAtTheNextExtent() {
        let ledger = Self.film(onDisk: [(3 * Self.mebibyte)..<(5 * Self.mebibyte)])

        #expect(
            Self.requested(ledger.want(0..<Self.length, by: ledger.reader())) == [0..<(3 * Self.mebibyte)])
    }

    @Test("After a disconnect the transfer is finished only if at most 256 KiB are missing", arguments: [256, 257])
    func aHangUpCutsWhatIsSpeculative(missing: Int64) {
        let ledger = Self.film()
        let reader = ledger.reader()
        let start = Self.length - missing * Self.kibibyte - Self.mebibyte
        let fill = ledger.want(start..<Self.length, by: reader).starts[0].fill
        _ = ledger.arrived(fill, upTo: start + Self.mebibyte)
        let actions = ledger.leave(reader)

        #expect(actions == (missing <= 256 ? [.allow(fill, upTo: Self.length)] : [.cut(fill)]))
    }

    @Test("A seek cuts the transfer that no reader needs any more")
    func aSeekCutsTheTransfer() {
        let ledger = Self.film()
        let reader = ledger.reader()
        let fill = ledger.want(0..<Self.length, by: reader).starts[0].fill
        let actions = ledger.want((500 * Self.mebibyte)..<Self.length, by: reader)

        #expect(actions.contains(.cut(fill)))
        #expect(Self.requested(actions) == [(500 * Self.mebibyte)..<Self.length])
    }
}
