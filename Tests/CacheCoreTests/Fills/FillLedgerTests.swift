import CacheCore
import Testing

private typealias Action = FillLedger.Action

/// The fill rules by operation, with small numbers: windows of 100 bytes that grow to 800.
@Suite struct FillLedgerTests {
    static let settings = FillLedger.Settings(
        firstWindowBytes: 100, largestWindowBytes: 800, retries: 2, pieceBytes: 100)

    static func known(
        _ length: Int64? = 10_000, acceptsRanges: Bool? = true, onDisk: [ByteRange] = []
    ) -> FillLedger {
        FillLedger(settings: settings, length: length, acceptsRanges: acceptsRanges, extents: ByteRangeSet(onDisk))
    }

    // MARK: Windows

    @Test("Over HTTP/2 open-ended reads start with 2 MiB windows that double up to 16 MiB")
    func windowsGrowWithTheBytesRead() {
        let ledger = SharedLedger(
            FillLedger(
                settings: FillLedger.Settings(), length: 1 << 30, acceptsRanges: true, extents: ByteRangeSet()))
        let reader = ledger.reader()
        var fills = ledger.want(0..<(1 << 30), by: reader).starts
        var sizes: [Int64] = []
        while sizes.count < 24, let next = fills.first {
            let (fill, window) = (next.fill, next.window)
            sizes.append(window.length)
            _ = ledger.arrived(fill, upTo: window.upperBound)
            fills = ledger.completed(fill).starts + ledger.advance(reader, to: window.upperBound).starts
        }

        #expect(sizes.prefix(2) == [2 << 20, 2 << 20])
        #expect(sizes.last == 16 << 20)
        for index in sizes.indices.dropFirst() {
            #expect(sizes[index] <= max(2 << 20, sizes[..<index].reduce(0, +)))
        }
    }

    @Test(
        "A live window with few missing bytes is finished after its reader left",
        arguments: [(TransferPriority.live, true), (.prefetch, false)])
    func aPlayersWindowWithLittleMissingIsFinishedThoughItsReaderLeft(_ priority: TransferPriority, isFinished: Bool) {
        var ledger = FillLedger(
            settings: FillLedger.Settings(firstWindowBytes: 100, largestWindowBytes: 100, finishIfRemainingBytes: 80),
            length: 10_000, acceptsRanges: true, extents: ByteRangeSet())
        let (reader, _) = ledger.join(opening: .whole, priority: priority, needsConfirmation: false)
        let started = ledger.want(0..<100, by: reader)
        guard case .start(let fill, _)? = started.first else { Issue.record("No fill was started."); return }
        _ = ledger.arrived(fill, upTo: 20)

        #expect(ledger.leave(reader) == (isFinished ? [] : [.cut(fill)]))
    }

    @Test("A body of unknown length is not finished after its reader left")
    func aBodyWhoseEndNobodyKnowsIsNotFinishedWhenItsReaderLeft() {
        var ledger = FillLedger(
            settings: FillLedger.Settings(firstWindowBytes: 100, largestWindowBytes: 100, finishIfRemainingPercent: 50))
        let (reader, opening) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        guard case .start(let fill, _)? = opening.first else { Issue.record("No fill was started."); return }
        _ = ledger.began(fill, window: 0..<Int64.max, length: nil, acceptsRanges: true)
        _ = ledger.arrived(fill, upTo: 20)

        #expect(ledger.leave(reader) == [.cut(fill)])
    }

    @Test("Over HTTP/2 the next window is requested once the present one is being read")
    func theNextWindowIsRequestedAhead() {
        let ledger = SharedLedger(Self.known())
        let reader = ledger.reader()
        let first = ledger.want(0..<5000, by: reader).starts[0]
        _ = ledger.arrived(first.fill, upTo: 60)

        #expect(first.window == 0..<100)
        #expect(ledger.advance(reader, to: 1).starts.map(\.window) == [100..<200])
        #expect(ledger.advance(reader, to: 60).starts.isEmpty)
    }

    @Test("A seek restarts with a small window, and sequential reading does not")
    func aSeekStartsSmallAgainAndGoingOnDoesNot() {
        let ledger = SharedLedger(Self.known())
        let reader = ledger.reader()
        _ = ledger.want(0..<5000, by: reader)
        var onward = ledger.advance(reader, to: 100).starts + ledger.want(100..<5000, by: reader).starts
        onward += ledger.advance(reader, to: 800).starts
        let seek = ledger.want(7000..<9000, by: reader).starts

        #expect(onward.map(\.window) == [100..<200, 800..<1600])
        #expect(seek.map(\.window) == [7000..<7100])
    }

    static let ends: [(String, onDisk: [ByteRange], wanted: ByteRange, window: ByteRange)] = [
        ("the wanted end", [], 20..<50, 20..<50),
        ("the asset's end", [], 9980..<20_000, 9980..<10_000),
        ("the next extent", [60..<5000], 0..<900, 0..<60),
        ("its size, behind an extent", [0..<40], 0..<900, 40..<140),
    ]

    @Test("A window ends at the wanted end, the asset end, a cached run or its own size", arguments: ends)
    func aWindowEndsAt(_ what: String, onDisk: [ByteRange], wanted: ByteRange, window: ByteRange) {
        let ledger = SharedLedger(Self.known(onDisk: onDisk))
        let reader = ledger.reader()

        #expect(ledger.want(wanted, by: reader).starts.map(\.window) == [window], "\(what)")
    }

    @Test("A window ends at a running window and joins it")
    func aWindowEndsWhereARunningOneBeginsAndWaitsForWhatItBrings() {
        let ledger = SharedLedger(Self.known())
        let (early, late) = (ledger.reader(), ledger.reader())
        let running = ledger.want(50..<90, by: late).starts[0]
        let before = ledger.want(0..<300, by: early).starts

        #expect(running.window == 50..<90)
        #expect(before.map(\.window) == [0..<50, 90..<300])
        #expect(ledger.want(60..<80, by: ledger.reader()).starts.isEmpty)
    }

    @Test("Cached bytes start no fill")
    func whatIsOnDiskCostsNothing() {
        let ledger = SharedLedger(Self.known(onDisk: [0..<10_000]))
        let reader = ledger.reader()

        #expect(ledger.want(0..<10_000, by: reader).isEmpty)
        #expect(ledger.poll(reader).0 == .bytes(0..<10_000))
        #expect(ledger.isComplete)
    }

    // MARK: Readers

    @Test("Only the last reader to leave cuts the fill")
    func theLastReaderOutCutsTheFillAndAnEarlierOneDoesNot() {
        let ledger = SharedLedger(Self.known())
        let (first, second) = (ledger.reader(), ledger.reader())
        let fill = ledger.want(0..<80, by: first).starts[0].fill
        _ = ledger.want(40..<60, by: second)

        #expect(ledger.leave(first).isEmpty)
        #expect(ledger.leave(second) == [.cut(fill)])
        #expect(ledger.broke(fill, with: .cancelled, isWorthRetrying: false).isEmpty)
        #expect(ledger.fillCount == 0)
    }

    @Test("A reader that joins a fill being cut is served by the next fill")
    func aReaderWhoComesWhileItsFillIsBeingCutIsServedByTheNext() {
        let ledger = SharedLedger(Self.known())
        let first = ledger.reader()
        let fill = ledger.want(0..<80, by: first).starts[0].fill
        _ = ledger.leave(first)
        let second = ledger.reader()
        let whileCut = ledger.want(0..<80, by: second)
        _ = ledger.poll(second)
        _ = ledger.arrived(fill, upTo: 30)
        ledger.readOn(second)

        #expect(whileCut.isEmpty)
        #expect(ledger.broke(fill, with: .cancelled, isWorthRetrying: false).starts.map(\.window) == [30..<80])
    }

    @Test("A live reader promotes the prefetch window it joins")
    func aLiveReaderPromotesThePrefetchWindowItJoins() {
        let ledger = SharedLedger(Self.known())
        let prefetch = ledger.reader(.prefetch)
        let window = ledger.want(0..<1000, by: prefetch).starts[0]
        let live = ledger.reader()

        #expect(window.window == 0..<800)
        #expect(ledger.want(10..<20, by: live) == [.promote(window.fill, .live)])
        #expect(ledger.advance(live, to: 12).isEmpty)
    }

    @Test("A reader is woken only by the bytes it waits for")
    func aReaderIsWokenByTheBytesItWaitsForAndNoOthers() {
        let ledger = SharedLedger(Self.known())
        let (near, far) = (ledger.reader(), ledger.reader())
        let fill = ledger.want(0..<100, by: near).starts[0].fill
        _ = ledger.want(50..<100, by: far)
        _ = (ledger.poll(near), ledger.poll(far))

        #expect(ledger.arrived(fill, upTo: 10) == [.notify(near, .arrived)])
        #expect(ledger.poll(near).0 == .bytes(0..<10))
        #expect(ledger.arrived(fill, upTo: 60) == [.notify(far, .arrived)])
        #expect(ledger.poll(far).0 == .bytes(50..<60))
    }

    @Test("A reader ends after its wanted bytes")
    func aReaderHasReachedTheEndWhenItHasReadWhatItWanted() {
        let ledger = SharedLedger(Self.known(onDisk: [0..<100]))
        let reader = ledger.reader()
        _ = ledger.want(20..<40, by: reader)
        _ = ledger.advance(reader, to: 40)

        #expect(ledger.poll(reader).0 == .end)
    }

    @Test("Readers of stale bytes share one confirmation")
    func aReaderWhoCannotBeTrustedToBeFreshWaitsForOneConfirmation() {
        let ledger = SharedLedger(Self.known(onDisk: [0..<10_000]))
        let (first, asking) = ledger.join(opening: .closed(0..<1), priority: .live, needsConfirmation: true)
        let (second, joining) = ledger.join(opening: .closed(0..<1), priority: .live, needsConfirmation: true)
        _ = (ledger.poll(first), ledger.poll(second))

        #expect(asking.starts.map(\.fillRequest) == [.confirmation(.closed(0..<1))])
        #expect(joining.starts.isEmpty)
        #expect(Set(ledger.confirmed(length: nil)) == [.notify(first, .arrived), .notify(second, .arrived)])
        #expect(ledger.poll(second).0 == .described)
    }
}

extension [FillLedger.Action] {
    /// The started fills. The window is empty for a request other than a window.
    var starts: [(fill: FillLedger.FillID, fillRequest: FillLedger.FillRequest, window: ByteRange, attempt: Int)] {
        compactMap { action in
            guard case .start(let fill, let start) = action else { return nil }
            guard case .window(let window) = start.fillRequest else {
                return (fill, start.fillRequest, 0..<0, start.attempt)
            }
            return (fill, start.fillRequest, window, start.attempt)
        }
    }

    var failures: [CacheError.Code] {
        compactMap { if case .notify(_, .failed(let code)) = $0 { code } else { nil } }
    }
}
