import CacheCore
import Testing

/// Generations that no transfer can continue: new bytes cannot be combined with cached bytes.
@Suite struct FillLedgerRestartTests {
    private static func ledger(onDisk runs: [ByteRange], length: Int64 = 1000) -> FillLedger {
        FillLedger(
            settings: .init(), length: length, acceptsRanges: true, canBeContinued: false, extents: ByteRangeSet(runs))
    }

    private static func starts(_ actions: [FillLedger.Action]) -> [(
        id: FillLedger.FillID, fillRequest: FillLedger.FillRequest
    )] {
        actions.compactMap { if case .start(let id, let start) = $0 { (id, start.fillRequest) } else { nil } }
    }

    @Test("A missing byte is awaited before cached bytes are sent")
    func aMissingByteIsWaitedForBeforeThoseOnDiskAreSent() {
        var ledger = Self.ledger(onDisk: [0..<100])
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        let started = Self.starts(ledger.want(0..<1000, by: reader))
        #expect(started.map(\.fillRequest) == [.confirmation(.whole)])
        #expect(ledger.presence(for: reader).0 == .pending)
    }

    @Test("A cached range is served")
    func aRangeThatIsOnDiskIsServed() {
        var ledger = Self.ledger(onDisk: [0..<100])
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        #expect(ledger.want(10..<100, by: reader).isEmpty)
        #expect(ledger.presence(for: reader).0 == .bytes(10..<100))
    }

    @Test("A confirmation without a body delivers no bytes")
    func aConfirmationWithoutBytesDoesNotBringThem() {
        var ledger = Self.ledger(onDisk: [0..<100])
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        guard let question = Self.starts(ledger.want(0..<1000, by: reader)).first else {
            Issue.record("No fill was started.")
            return
        }
        #expect(ledger.presence(for: reader).0 == .pending)
        #expect(ledger.confirmed(length: 1000, canBeContinued: false).isEmpty)
        let again = Self.starts(ledger.completed(question.id))
        #expect(again.map(\.fillRequest) == [.confirmation(.whole)])
        #expect(ledger.presence(for: reader).0 == .pending)
    }

    @Test("A running transfer serves readers behind its position")
    func aTransferUnderWayServesReadersBehindIt() {
        var ledger = Self.ledger(onDisk: [])
        let (fill, _) = ledger.carry(
            .whole, window: 0..<1000, priority: .live, isOpenEnded: true, isMultiplexed: false)
        _ = ledger.arrived(fill, upTo: 300)
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        #expect(Self.starts(ledger.want(0..<1000, by: reader)).isEmpty)
        #expect(ledger.presence(for: reader).0 == .bytes(0..<300))
    }

    @Test("A reader that asks again while the whole body is requested again causes no other request")
    func theRepeatedTransferOfTheWholeBodyIsJoined() throws {
        var ledger = FillLedger(settings: .init())
        let (reader, opening) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        let fill = try #require(Self.starts(opening).first).id
        _ = ledger.began(fill, window: 0..<1000, length: 1000, acceptsRanges: false, canBeContinued: false)
        _ = ledger.want(0..<1000, by: reader)
        _ = ledger.arrived(fill, upTo: 400)
        let again = ledger.broke(fill, with: .upstreamUnreachable(), isWorthRetrying: true)
        #expect(Self.starts(again).map(\.fillRequest) == [.whole])
        #expect(Self.starts(ledger.want(0..<1000, by: reader)).isEmpty)
    }

    @Test("A transfer that was cut serves no reader")
    func aTransferThatWasCutServesNobody() {
        var ledger = Self.ledger(onDisk: [])
        let (fill, _) = ledger.carry(
            .whole, window: 0..<1000, priority: .live, isOpenEnded: true, isMultiplexed: false)
        _ = ledger.arrived(fill, upTo: 300)
        ledger.now = .seconds(5)
        _ = ledger.tick()
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        #expect(Self.starts(ledger.want(0..<1000, by: reader)).map(\.fillRequest) == [.confirmation(.whole)])
    }

    @Test("A carried transfer without readers is cut after five seconds")
    func aCarriedTransferWithoutReadersIsCutAfterAWhile() {
        var ledger = Self.ledger(onDisk: [])
        let (fill, _) = ledger.carry(
            .whole, window: 0..<1000, priority: .live, isOpenEnded: true, isMultiplexed: false)
        #expect(ledger.needsTime)
        ledger.now = .seconds(4)
        #expect(ledger.tick().isEmpty)
        ledger.now = .seconds(5)
        #expect(ledger.tick() == [.cut(fill)])
    }

    @Test("Without cached bytes nothing is confirmed")
    func withoutBytesThereIsNothingToConfirm() {
        var ledger = FillLedger(settings: .init(), length: 38, acceptsRanges: nil, extents: ByteRangeSet())
        let (_, actions) = ledger.join(opening: .closed(0..<512), priority: .live, needsConfirmation: true)
        let started = Self.starts(actions)
        #expect(started.map(\.fillRequest) == [.opening(.closed(0..<512))])
        _ = ledger.began(started[0].id, window: 0..<5000, length: nil, acceptsRanges: nil, isNew: true)
        #expect(ledger.length == nil)
    }
}
