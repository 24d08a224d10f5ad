import CacheCore
import Testing

/// Windows and transfers in time: paces, leashes, slow windows, waits that are too long, and administrators who end them.
@Suite struct FillLedgerPacingTests {
    private static let mebibyte: Int64 = 1 << 20

    /// A ledger of 1 GiB with the sizes a service has, and a reader who wants all of it.
    private static func film() -> (ledger: SharedLedger, reader: SharedLedger.ReaderID, first: SharedLedger.FillID) {
        let ledger = SharedLedger(
            FillLedger(
                settings: FillLedger.Settings(), length: 1 << 30, acceptsRanges: true, extents: ByteRangeSet()))
        let reader = ledger.reader()
        let first = ledger.want(0..<(1 << 30), by: reader).starts[0]
        return (ledger, reader, first.fill)
    }

    /// The windows asked for while a reader goes through the film at `bytesPerSecond` for `seconds`, everything asked for
    /// being there at once.
    private static func windows(bytesPerSecond: Int64, seconds: Int) -> [ByteRange] {
        let (ledger, reader, first) = film()
        var asked: [ByteRange] = [0..<(512 << 10)]
        _ = ledger.arrived(first, upTo: 512 << 10)
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

    @Test func aSlowReadersWindowsStaySmallAndLittleIsFetchedAheadOfIt() {
        let asked = Self.windows(bytesPerSecond: 500_000, seconds: 10)

        #expect(asked.allSatisfy { (256 << 10)...(512 << 10) ~= $0.length })
        #expect((asked.last?.upperBound ?? 0) - 5_000_000 <= 768 << 10)
    }

    @Test func aFastReadersWindowsGrowUntilOneHoldsASecondOfItsPace() {
        let asked = Self.windows(bytesPerSecond: 3_000_000, seconds: 20)

        #expect(asked.prefix(2).allSatisfy { $0.length == 512 << 10 })
        #expect(asked.suffix(4).allSatisfy { 2_250_000...4_500_000 ~= $0.length })
    }

    @Test func whatTheSocketsTakeAtOnceIsNotTakenForAFastReader() {
        let (ledger, reader, first) = Self.film()
        _ = ledger.arrived(first, upTo: 512 << 10)
        _ = ledger.completed(first)
        ledger.now = .milliseconds(5)
        let asked = ledger.advance(reader, to: 400 << 10).starts + ledger.advance(reader, to: 500 << 10).starts

        #expect(asked.map(\.window) == [(512 << 10)..<(1024 << 10)])
    }

    @Test func aReaderWhoseBytesComeSlowlyIsGivenSmallerWindows() {
        let asked = Self.windows(bytesPerSecond: 60_000, seconds: 30).map { $0.length >> 10 }

        #expect(asked.last.map { $0 <= 128 } ?? false)
        #expect(asked.allSatisfy { $0 >= 64 })
    }

    @Test func asMuchIsOnTheWayAsTheReaderTakesDuringARoundTrip() {
        let (ledger, reader, first) = Self.film()
        _ = ledger.began(
            first, window: 0..<(512 << 10), length: 1 << 30, acceptsRanges: true, firstByte: .seconds(2))
        var position = Int64(512 << 10)
        var ahead = position
        _ = ledger.arrived(first, upTo: ahead)
        for _ in 0..<40 {  // 10 MiB/s, and each window comes at once
            ledger.now += .milliseconds(100)
            position = min(position + Self.mebibyte, ahead)
            for start in ledger.advance(reader, to: position).starts {
                ahead = max(ahead, start.window.upperBound)
                _ = ledger.arrived(start.fill, upTo: start.window.upperBound)
                _ = ledger.completed(start.fill)
            }
        }

        #expect(ahead - position > 10 * Self.mebibyte)
        #expect(ahead - position <= 2 * 8 * Self.mebibyte + 8 * Self.mebibyte)
    }

    // MARK: Transfers without ranges

    @Test func aSequentialTransferRestsALeashAheadOfItsReadersAndGoesOnWhenHalfIsRead() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let reader = ledger.reader()
        let fill = ledger.want(0..<10_000, by: reader).starts[0].fill

        #expect(ledger.arrived(fill, upTo: 700) == [])
        #expect(ledger.arrived(fill, upTo: 800) == [.pause(fill)])
        #expect(ledger.advance(reader, to: 300) == [])
        #expect(ledger.advance(reader, to: 400) == [.resume(fill)])
    }

    @Test func aReaderFarAheadKeepsASequentialTransferGoing() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let (slow, far) = (ledger.reader(), ledger.reader())
        let fill = ledger.want(0..<10_000, by: slow).starts[0].fill
        _ = ledger.arrived(fill, upTo: 800)

        #expect(ledger.want(5000..<5100, by: far) == [.resume(fill)])
        _ = ledger.presence(for: far)
        #expect(ledger.arrived(fill, upTo: 5200) == [.tell(far, .arrived), .pause(fill)])
    }

    @Test func aReaderOnAShortLeashHasLittleFetchedAheadOfIt() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let (job, _) = ledger.join(opening: .whole, priority: .prefetch, needsConfirmation: false, leash: 50)
        let fill = ledger.want(0..<10_000, by: job).starts[0].fill

        #expect(ledger.arrived(fill, upTo: 50) == [.pause(fill)])
        #expect(ledger.advance(job, to: 25) == [.resume(fill)])
    }

    @Test func whatIsBehindAllReadersOfASequentialTransferMayGo() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let reader = ledger.reader()
        let fill = ledger.want(0..<10_000, by: reader).starts[0].fill
        _ = ledger.arrived(fill, upTo: 800)
        _ = ledger.advance(reader, to: 700)

        #expect(ledger.surrender(0..<10_000) == [0..<700])
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

    @Test func theTailOfASlowWindowIsFetchedByAnotherWhereTheFirstCanEndEarly() {
        let (ledger, first) = Self.slowWindow(isMultiplexed: true)
        let second = ledger.reader()
        _ = ledger.want((256 << 10)..<(400 << 10), by: second)
        let actions = ledger.presence(for: second).1

        #expect(actions.first == .shorten(first, to: 256 << 10))
        #expect(actions.starts.map(\.window) == [(256 << 10)..<(400 << 10)])
    }

    @Test func aSlowWindowThatCannotEndEarlyIsWaitedFor() {
        let (ledger, _) = Self.slowWindow(isMultiplexed: false)
        let second = ledger.reader()

        #expect(ledger.want((256 << 10)..<(400 << 10), by: second).isEmpty)
        #expect(ledger.presence(for: second).1.isEmpty)
    }

    @Test func aWaiterNearTheWindowsPositionDoesNotSplitIt() {
        let (ledger, _) = Self.slowWindow(isMultiplexed: true)
        let second = ledger.reader()
        _ = ledger.want((30 << 10)..<(400 << 10), by: second)

        #expect(ledger.presence(for: second).1.isEmpty)
    }

    // MARK: Waits that end

    @Test func whoWaitsTooLongIsToldSoAndWhoHasNoLimitIsNot() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let (hurried, _) = ledger.join(
            opening: .whole, priority: .live, needsConfirmation: false, waitLimit: .seconds(5))
        let patient = ledger.reader()
        for reader in [hurried, patient] {
            _ = ledger.want(0..<100, by: reader)
            _ = ledger.presence(for: reader)
        }
        ledger.now = .milliseconds(4999)
        #expect(ledger.tick().isEmpty)
        ledger.now = .seconds(5)
        #expect(ledger.tick() == [.tell(hurried, .deadlinePassed)])
    }

    @Test func bytesThatArriveBeginAWaitAnew() {
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

    @Test func whenAWriterVanishesOneOfThoseWhoWaitBeginsTheNextAndNobodyFails() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let readers = (0..<20).map { _ in ledger.reader() }
        var fill: SharedLedger.FillID?
        for reader in readers {
            fill = ledger.want(0..<100, by: reader).starts.first?.fill ?? fill
            _ = ledger.presence(for: reader)
        }
        let actions = fill.map { ledger.broke($0, with: .upstreamUnreachable(), isWorthRetrying: true) } ?? []

        #expect(actions.starts.map(\.window) == [0..<100])
        #expect(actions.dropFirst() == [.tell(readers[0], .writerVanished)])
    }

    @Test func aChangedGenerationAndAShutdownAreToldAsWhatTheyAre() {
        #expect(WaitOutcome(.assetChanged) == .generationChanged)
        #expect(WaitOutcome(.shuttingDown) == .shuttingDown)
        #expect(WaitOutcome(.upstreamUnreachable()) == .gaveUp(.upstreamUnreachable()))
        #expect(WaitOutcome.deadlinePassed.failure == .upstreamTimedOut(.read))
    }

    // MARK: Administrators

    @Test func aStoppedFillIsNotBegunAgainForThoseWhoWantedIt() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<50]))
        let (waiting, reading, other) = (ledger.reader(), ledger.reader(), ledger.reader())
        let fill = ledger.want(50..<100, by: waiting).starts[0].fill
        _ = (ledger.want(0..<100, by: reading), ledger.want(5000..<5010, by: other))
        for reader in [waiting, reading, other] { _ = ledger.presence(for: reader) }

        #expect(ledger.stopFill(fill, because: .conflict) == [.tell(waiting, .gaveUp(.conflict)), .cut(fill)])
        #expect(ledger.broke(fill, with: .cancelled, isWorthRetrying: false).isEmpty)
        #expect(ledger.presence(for: reading).0 == .bytes(0..<50))
        #expect(ledger.advance(reading, to: 50).isEmpty)
        #expect(ledger.presence(for: reading).0 == .over(.conflict))
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

    @Test func smallRunsBetweenTwoGapsAreFetchedAgainWithThem() {
        #expect(Self.merging(10, onDisk: [40..<50]) == [0..<100])
        #expect(Self.merging(9, onDisk: [40..<50]) == [0..<40])
        #expect(Self.merging(10, onDisk: [40..<46, 60..<66]) == [0..<60])
        #expect(Self.merging(10, onDisk: [95..<105]) == [0..<95])
        #expect(Self.merging(0, onDisk: [40..<41]) == [0..<40])
        #expect(Self.merging(10, onDisk: [40..<50], roundTrip: .milliseconds(1)) == [0..<40])
    }

    @Test func whatIsSpeculativeGoesBeyondTheReaderAndNotBeyondTheEnd() {
        let settings = FillLedger.Settings(firstWindowBytes: 100, largestWindowBytes: 800, speculativeBytes: 30)
        let ledger = SharedLedger(
            FillLedger(settings: settings, length: 100, acceptsRanges: true, extents: ByteRangeSet()))

        #expect(ledger.want(0..<40, by: ledger.reader()).starts.map(\.window) == [0..<70])
        #expect(ledger.want(80..<90, by: ledger.reader()).starts.map(\.window) == [80..<100])
    }
}
