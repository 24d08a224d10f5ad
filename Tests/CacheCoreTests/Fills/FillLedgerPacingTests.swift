import CacheCore
import Testing

/// Windows and transfers over time: paces, leashes, slow windows, wait limits and stops by administrators.
@Suite struct FillLedgerPacingTests {
    private static let mebibyte: Int64 = 1 << 20

    /// A ledger of 1 GiB with the default settings, and a reader of all bytes.
    private static func film() -> (ledger: SharedLedger, reader: SharedLedger.ReaderID, first: SharedLedger.FillID) {
        let ledger = SharedLedger(
            FillLedger(
                settings: FillLedger.Settings(), length: 1 << 30, acceptsRanges: true, extents: ByteRangeSet()))
        let reader = ledger.reader()
        let first = ledger.want(0..<(1 << 30), by: reader).starts[0]
        return (ledger, reader, first.fill)
    }

    /// The windows requested over HTTP/2 by a reader that consumes `bytesPerSecond` for `seconds`. The bytes of each
    /// window arrive immediately.
    private static func windows(bytesPerSecond: Int64, seconds: Int) -> [ByteRange] {
        let (ledger, reader, first) = film()
        var asked: [ByteRange] = [0..<(2 * mebibyte)]
        _ = ledger.arrived(first, upTo: 2 * mebibyte)
        _ = ledger.completed(first)
        for tenth in 1...(seconds * 10) {
            ledger.now = .milliseconds(100 * tenth)
            for start in ledger.advance(reader, to: bytesPerSecond * Int64(tenth) / 10).starts {
                asked.append(start.window)
                _ = ledger.arrived(start.fill, upTo: start.window.upperBound)
                _ = ledger.completed(start.fill)
            }
        }
        return asked
    }

    @Test("The windows of a slow reader hold one second of its pace")
    func slowReadersHaveSmallWindows() {
        let asked = Self.windows(bytesPerSecond: 500_000, seconds: 20)

        #expect(asked.dropFirst().allSatisfy { (256 << 10)...700_000 ~= $0.length })
        #expect((asked.last?.upperBound ?? 0) - 10_000_000 <= 768 << 10)
    }

    @Test("The windows of a fast reader grow up to the largest window")
    func fastReadersHaveLargeWindows() {
        let asked = Self.windows(bytesPerSecond: 40_000_000, seconds: 4)

        #expect(asked.first?.length == 2 * Self.mebibyte)
        #expect(zip(asked, asked.dropFirst()).allSatisfy { $0.length <= $1.length })
        #expect(asked.suffix(2).allSatisfy { $0.length == 16 * Self.mebibyte })
    }

    @Test("The next window is requested 1.5 round trips ahead of the reader")
    func asMuchIsOnTheWayAsTheReaderTakesDuringARoundTrip() {
        let (ledger, reader, first) = Self.film()
        _ = ledger.began(
            first, window: 0..<(2 * Self.mebibyte), length: 1 << 30, acceptsRanges: true, firstByte: .seconds(2),
            isMultiplexed: true)
        var position = 2 * Self.mebibyte
        var ahead = position
        _ = ledger.arrived(first, upTo: ahead)
        for _ in 0..<40 {  // 10 MiB/s; each window arrives immediately
            ledger.now += .milliseconds(100)
            position = min(position + Self.mebibyte, ahead)
            for start in ledger.advance(reader, to: position).starts {
                ahead = max(ahead, start.window.upperBound)
                _ = ledger.arrived(start.fill, upTo: start.window.upperBound)
                _ = ledger.completed(start.fill)
            }
        }

        #expect(ahead - position >= 20 * Self.mebibyte)
        #expect(ahead - position <= 2 * 16 * Self.mebibyte + 16 * Self.mebibyte)
    }

    // MARK: Transfers without ranges

    @Test("A sequential transfer pauses a maxLead ahead and resumes when half is consumed")
    func aSequentialTransferRestsALeashAheadOfItsReadersAndGoesOnWhenHalfIsRead() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let reader = ledger.reader()
        let actions = ledger.want(0..<10_000, by: reader)
        let fill = actions.starts[0].fill

        #expect(actions.dropFirst() == [.allow(fill, upTo: 800)])
        #expect(ledger.arrived(fill, upTo: 800) == [])
        #expect(ledger.advance(reader, to: 300) == [])
        #expect(ledger.advance(reader, to: 400) == [.allow(fill, upTo: 1200)])
    }

    @Test("A reader far ahead keeps a sequential transfer running")
    func aReaderFarAheadKeepsASequentialTransferGoing() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let (slow, far) = (ledger.reader(), ledger.reader())
        let fill = ledger.want(0..<10_000, by: slow).starts[0].fill
        _ = ledger.arrived(fill, upTo: 800)

        #expect(ledger.want(5000..<5100, by: far) == [.allow(fill, upTo: 5100)])
        _ = ledger.poll(far)
        #expect(ledger.arrived(fill, upTo: 5200) == [.notify(far, .arrived)])
    }

    @Test("A reader with a short maxLead has little fetched ahead of it")
    func aReaderOnAShortLeashHasLittleFetchedAheadOfIt() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let (job, _) = ledger.join(opening: .whole, priority: .prefetch, needsConfirmation: false, maxLead: 50)
        let actions = ledger.want(0..<10_000, by: job)
        let fill = actions.starts[0].fill

        #expect(actions.dropFirst() == [.allow(fill, upTo: 50)])
        #expect(ledger.arrived(fill, upTo: 50) == [])
        #expect(ledger.advance(job, to: 25) == [.allow(fill, upTo: 75)])
    }

    @Test("Bytes behind all readers of a sequential transfer can be evicted")
    func whatIsBehindAllReadersOfASequentialTransferMayGo() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let reader = ledger.reader()
        let fill = ledger.want(0..<10_000, by: reader).starts[0].fill
        _ = ledger.arrived(fill, upTo: 800)
        _ = ledger.advance(reader, to: 700)

        #expect(ledger.beginEviction(0..<10_000) == [0..<700])
    }

    // MARK: Slow windows

    private static func slowWindow(isMultiplexed: Bool) -> (SharedLedger, SharedLedger.FillID) {
        let (ledger, _, first) = film()
        _ = ledger.began(
            first, window: 0..<(512 << 10), length: 1 << 30, acceptsRanges: true, isMultiplexed: isMultiplexed)
        ledger.now = .seconds(2)
        _ = ledger.arrived(first, upTo: 20 << 10)  // 10 KiB/s
        return (ledger, first)
    }

    @Test("A reader that would wait 2 s inside a running window gets its own window", arguments: [true, false])
    func theTailOfASlowWindowIsFetchedByAnother(isMultiplexed: Bool) {
        let (ledger, first) = Self.slowWindow(isMultiplexed: isMultiplexed)
        let second = ledger.reader()
        _ = ledger.want((256 << 10)..<(400 << 10), by: second)
        let actions = ledger.poll(second).1

        #expect(actions.first == .shorten(first, to: 256 << 10))
        #expect(actions.starts.map(\.window) == [(256 << 10)..<(400 << 10)])
    }

    @Test("A reader near the position of a running window does not split it")
    func aWaiterNearTheWindowsPositionDoesNotSplitIt() {
        let (ledger, _) = Self.slowWindow(isMultiplexed: true)
        let second = ledger.reader()
        _ = ledger.want((30 << 10)..<(400 << 10), by: second)

        #expect(ledger.poll(second).1.isEmpty)
    }

    // MARK: Limited waits

    @Test("A reader times out at its wait limit, and a reader without a limit does not")
    func whoWaitsTooLongIsToldSoAndWhoHasNoLimitIsNot() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let (hurried, _) = ledger.join(
            opening: .whole, priority: .live, needsConfirmation: false, waitLimit: .seconds(5))
        let patient = ledger.reader()
        for reader in [hurried, patient] {
            _ = ledger.want(0..<100, by: reader)
            _ = ledger.poll(reader)
        }
        ledger.now = .milliseconds(4999)
        #expect(ledger.tick().isEmpty)
        ledger.now = .seconds(5)
        #expect(ledger.tick() == [.notify(hurried, .timedOut)])
    }

    @Test("Arriving bytes restart the wait limit")
    func bytesThatArriveBeginAWaitAnew() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let (reader, _) = ledger.join(
            opening: .whole, priority: .live, needsConfirmation: false, waitLimit: .seconds(5))
        let fill = ledger.want(0..<100, by: reader).starts[0].fill
        ledger.readOn(reader)
        ledger.now = .seconds(4)
        _ = ledger.arrived(fill, upTo: 10)
        ledger.readOn(reader)
        ledger.now = .seconds(8)

        #expect(ledger.tick().isEmpty)
    }

    @Test("When a fill breaks one waiting reader retries and no reader fails")
    func whenAWriterVanishesOneOfThoseWhoWaitBeginsTheNextAndNobodyFails() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let readers = (0..<20).map { _ in ledger.reader() }
        var fill: SharedLedger.FillID?
        for reader in readers {
            fill = ledger.want(0..<100, by: reader).starts.first?.fill ?? fill
            _ = ledger.poll(reader)
        }
        let actions = fill.map { ledger.broke($0, with: .upstreamUnreachable(), isWorthRetrying: true) } ?? []

        #expect(actions.starts.map(\.window) == [0..<100])
        #expect(actions.dropFirst() == [.notify(readers[0], .retrying)])
    }

    @Test("A changed generation and a shutdown have their own wait outcomes")
    func aChangedGenerationAndAShutdownAreToldAsWhatTheyAre() {
        #expect(WaitOutcome(.assetChanged) == .generationChanged)
        #expect(WaitOutcome(.shuttingDown) == .shuttingDown)
        #expect(WaitOutcome(.upstreamUnreachable()) == .failed(.upstreamUnreachable()))
        #expect(WaitOutcome.timedOut.failure == .upstreamTimedOut(.read))
    }

    // MARK: Administrators

    @Test("A stopped fill is not restarted for its readers")
    func aStoppedFillIsNotBegunAgainForThoseWhoWantedIt() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<50]))
        let (waiting, reading, other) = (ledger.reader(), ledger.reader(), ledger.reader())
        let fill = ledger.want(50..<100, by: waiting).starts[0].fill
        _ = (ledger.want(0..<100, by: reading), ledger.want(5000..<5010, by: other))
        for reader in [waiting, reading, other] { _ = ledger.poll(reader) }

        #expect(ledger.stopFill(fill, because: .conflict) == [.notify(waiting, .failed(.conflict)), .cut(fill)])
        #expect(ledger.broke(fill, with: .cancelled, isWorthRetrying: false).isEmpty)
        #expect(ledger.poll(reading).0 == .bytes(0..<50))
        #expect(ledger.advance(reading, to: 50).isEmpty)
        #expect(ledger.poll(reading).0 == .over(.conflict))
        let newcomer = ledger.reader()
        #expect(ledger.want(50..<100, by: newcomer).starts.map(\.window) == [50..<100])
    }

    // MARK: Gaps

    private static func merging(
        _ gapMergeBytes: Int64, onDisk: [ByteRange], roundTrip: Duration = .milliseconds(50)
    ) -> [ByteRange] {
        let settings = FillLedger.Settings(
            firstWindowBytes: 100, largestWindowBytes: 800, gapMergeBytes: gapMergeBytes)
        let ledger = SharedLedger(
            FillLedger(settings: settings, length: 10_000, acceptsRanges: true, extents: ByteRangeSet(onDisk)))
        let earlier = ledger.want(9000..<9010, by: ledger.reader()).starts[0]
        _ = ledger.began(
            earlier.fill, window: earlier.window, length: 10_000, acceptsRanges: true, firstByte: roundTrip)
        return ledger.want(0..<100, by: ledger.reader()).starts.prefix(1).map(\.window)
    }

    @Test("Small cached runs between two gaps are fetched again with them")
    func smallRunsBetweenTwoGapsAreFetchedAgainWithThem() {
        #expect(Self.merging(10, onDisk: [40..<50]) == [0..<100])
        #expect(Self.merging(9, onDisk: [40..<50]) == [0..<40])
        #expect(Self.merging(10, onDisk: [40..<46, 60..<66]) == [0..<60])
        #expect(Self.merging(10, onDisk: [95..<105]) == [0..<95])
        #expect(Self.merging(0, onDisk: [40..<41]) == [0..<40])
        #expect(Self.merging(10, onDisk: [40..<50], roundTrip: .milliseconds(1)) == [0..<40])
    }

    @Test("Speculative bytes extend past the reader but not past the end")
    func whatIsSpeculativeGoesBeyondTheReaderAndNotBeyondTheEnd() {
        let settings = FillLedger.Settings(firstWindowBytes: 100, largestWindowBytes: 800, speculativeBytes: 30)
        let ledger = SharedLedger(
            FillLedger(settings: settings, length: 100, acceptsRanges: true, extents: ByteRangeSet()))

        #expect(ledger.want(0..<40, by: ledger.reader()).starts.map(\.window) == [0..<70])
        #expect(ledger.want(80..<90, by: ledger.reader()).starts.map(\.window) == [80..<100])
    }
}
