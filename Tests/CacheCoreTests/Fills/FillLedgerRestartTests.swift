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
        #expect(ledger.poll(reader).0 == .pending)
    }

    @Test("A cached range is served")
    func aRangeThatIsOnDiskIsServed() {
        var ledger = Self.ledger(onDisk: [0..<100])
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        #expect(ledger.want(10..<100, by: reader).isEmpty)
        #expect(ledger.poll(reader).0 == .bytes(10..<100))
    }

    @Test("A confirmation without a body delivers no bytes")
    func aConfirmationWithoutBytesDoesNotBringThem() {
        var ledger = Self.ledger(onDisk: [0..<100])
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        guard let question = Self.starts(ledger.want(0..<1000, by: reader)).first else {
            Issue.record("No fill was started.")
            return
        }
        #expect(ledger.poll(reader).0 == .pending)
        #expect(ledger.confirmed(length: 1000, canBeContinued: false).isEmpty)
        let again = Self.starts(ledger.completed(question.id))
        #expect(again.map(\.fillRequest) == [.confirmation(.whole)])
        #expect(ledger.poll(reader).0 == .pending)
    }

    @Test("A running transfer serves readers behind its position")
    func aTransferUnderWayServesReadersBehindIt() {
        var ledger = Self.ledger(onDisk: [])
        let (fill, _) = ledger.carry(
            .whole, window: 0..<1000, priority: .live, isOpenEnded: true, isMultiplexed: false)
        _ = ledger.arrived(fill, upTo: 300)
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        #expect(Self.starts(ledger.want(0..<1000, by: reader)).isEmpty)
        #expect(ledger.poll(reader).0 == .bytes(0..<300))
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
        ledger.keepsBytes = false
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
        ledger.keepsBytes = false
        let (fill, _) = ledger.carry(
            .whole, window: 0..<1000, priority: .live, isOpenEnded: true, isMultiplexed: false)
        #expect(ledger.needsTime)
        ledger.now = .seconds(4)
        #expect(ledger.tick().isEmpty)
        ledger.now = .seconds(5)
        #expect(ledger.tick() == [.cut(fill)])
    }

    @Test(
        "Without ranges a body of at most 64 MiB is finished after its reader left",
        arguments: [
            (FillLedger.wholeBytes, true, true), (FillLedger.wholeBytes + 1, true, false), (1000, false, false),
        ])
    func finishedWithoutRanges(_ length: Int64, _ isKept: Bool, _ isFinished: Bool) throws {
        var ledger = FillLedger(settings: .init(), length: length, acceptsRanges: false, extents: ByteRangeSet())
        ledger.keepsBytes = isKept
        let (reader, _) = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        let fill = try #require(Self.starts(ledger.want(0..<100, by: reader)).first).id
        _ = ledger.began(fill, window: 0..<length, length: length, acceptsRanges: false)
        _ = ledger.arrived(fill, upTo: 100)

        #expect(ledger.leave(reader) == [isFinished ? .allow(fill, upTo: length) : .cut(fill)])
    }

    @Test("Ranges are permitted again only while no transfer of the whole body is in flight")
    func reconsidered() throws {
        var ledger = FillLedger(
            settings: .init(), length: 1000, acceptsRanges: false, extents: ByteRangeSet([0..<100]))
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        let fill = try #require(Self.starts(ledger.want(0..<1000, by: reader)).first).id
        let isEarly = ledger.reconsiderRanges()
        #expect(!isEarly)
        _ = ledger.leave(reader)
        _ = ledger.broke(fill, with: .cancelled, isWorthRetrying: false)

        let isReconsidered = ledger.reconsiderRanges()
        #expect(isReconsidered)
        let (later, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        #expect(Self.starts(ledger.want(500..<600, by: later)).map(\.fillRequest) == [.window(500..<600)])
    }

    @Test("A small carried response that is shorter than its request is charged")
    func carriedPart() {
        var ledger = FillLedger(settings: .init(), length: 1000, acceptsRanges: true, extents: ByteRangeSet())
        let (fill, _) = ledger.carry(
            .window(0..<10), answering: .window(0..<1000), window: 0..<10, priority: .live, isOpenEnded: false,
            isMultiplexed: false)
        let (reader, _) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        _ = ledger.want(0..<1000, by: reader)
        _ = ledger.arrived(fill, upTo: 10)
        _ = ledger.completed(fill)

        #expect(ledger.attempts(of: reader).count == 1)
    }

    @Test(
        "The first request brings speculative bytes, too",
        arguments: [
            (UpstreamRequest.Window.closed(0..<100), UpstreamRequest.Window.closed(0..<130)), (.from(5), .from(5)),
            (.closed(0..<1), .closed(0..<1)), (.suffix(9), .suffix(9)),
        ])
    func speculativeOpening(_ asked: UpstreamRequest.Window, _ sent: UpstreamRequest.Window) {
        var ledger = FillLedger(settings: .init(speculativeBytes: 30))
        ledger.hasFlowControl = true
        let (_, actions) = ledger.join(opening: asked, priority: .live, needsConfirmation: false)

        #expect(Self.starts(actions).map(\.fillRequest) == [.opening(sent)])
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
