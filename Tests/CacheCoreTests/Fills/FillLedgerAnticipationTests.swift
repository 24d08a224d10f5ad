import CacheCore
import Testing

/// Transfers of bytes that a reader is expected to want soon.
@Suite struct FillLedgerAnticipationTests {
    private static let length: Int64 = 10 << 20
    private static let index = 9 << 20..<length

    private static func ledger(onDisk: [ByteRange] = [], acceptsRanges: Bool? = true) -> FillLedger {
        var ledger = FillLedger(
            settings: FillLedger.Settings(), length: length, acceptsRanges: acceptsRanges,
            extents: ByteRangeSet(onDisk))
        ledger.hasFlowControl = true
        return ledger
    }

    private static func requested(_ actions: [FillLedger.Action]) -> [ByteRange] {
        actions.starts.compactMap { start in if case .window(let range) = start.fillRequest { range } else { nil } }
    }

    @Test("The missing part is requested, and the transfer before it ends there")
    func requestsGap() {
        var ledger = Self.ledger(onDisk: [9 << 20..<9 << 20 | 1000])
        let (reader, _) = ledger.join(opening: .from(0), priority: .live, needsConfirmation: false)
        let first = ledger.want(0..<Self.length, by: reader)
        #expect(Self.requested(first) == [0..<9 << 20])
        let actions = ledger.anticipate(9 << 20..<12 << 20)
        #expect(Self.requested(actions) == [9 << 20 | 1000..<Self.length])
        let started = actions.compactMap { action in if case .start(_, let start) = action { start } else { nil } }
        #expect(started.map(\.sizedBy) == [.anticipatedIndex] && started.map(\.priority) == [.readAhead])
        #expect(ledger.anticipate(Self.index).isEmpty, "The bytes are on the way.")

        var whole = Self.ledger()
        let (player, _) = whole.join(opening: .from(0), priority: .live, needsConfirmation: false)
        _ = whole.want(0..<Self.length, by: player)
        let shortened = whole.anticipate(Self.index)
        #expect(shortened.contains { if case .shorten(_, to: 9 << 20) = $0 { true } else { false } })
        #expect(Self.requested(shortened) == [Self.index])
    }

    @Test("Nothing is requested if the bytes are there, or if one transfer must bring all bytes")
    func requestsNothing() {
        var complete = Self.ledger(onDisk: [Self.index])
        #expect(complete.anticipate(Self.index).isEmpty)
        var sequential = Self.ledger(acceptsRanges: false)
        #expect(sequential.anticipate(Self.index).isEmpty)
        var unknown = FillLedger(settings: FillLedger.Settings())
        #expect(unknown.anticipate(Self.index).isEmpty)
        var beyond = Self.ledger()
        #expect(beyond.anticipate(11 << 20..<12 << 20).isEmpty)
    }

    @Test("Without a reader the transfer is kept for some seconds, then cut")
    func isKept() throws {
        var ledger = Self.ledger()
        ledger.now = .seconds(10)
        let (reader, _) = ledger.join(opening: .from(0), priority: .live, needsConfirmation: false)
        _ = ledger.want(0..<Self.length, by: reader)
        let actions = ledger.anticipate(Self.index)
        let fill = try #require(actions.compactMap { if case .start(let id, _) = $0 { id } else { nil } }.first)
        _ = ledger.began(fill, window: Self.index, length: Self.length, acceptsRanges: true)
        #expect(!ledger.leave(reader).contains(.cut(fill)))
        ledger.now = .seconds(12)
        #expect(!ledger.tick().contains(.cut(fill)))
        ledger.now = .seconds(16)
        #expect(ledger.tick().contains(.cut(fill)))
    }
}
