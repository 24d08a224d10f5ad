import CacheCore
import Testing

/// Openings, upstreams without range support, failed transfers and evictions.
@Suite struct FillLedgerFailureTests {
    // MARK: Openings

    @Test("An unknown asset is opened once for all readers")
    func anUnknownAssetIsOpenedOnceForEverybody() {
        let ledger = SharedLedger(FillLedger(settings: FillLedgerTests.settings))
        let (first, opening) = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        let (second, joining) = ledger.join(opening: .closed(500..<600), priority: .live, needsConfirmation: false)
        _ = (ledger.poll(first), ledger.poll(second))
        let woken = ledger.began(opening.starts[0].fill, window: 0..<100, length: 1000, acceptsRanges: true)

        #expect(opening.starts.map(\.fillRequest) == [.opening(.closed(0..<100))])
        #expect(joining.isEmpty)
        #expect(Set(woken) == [.notify(first, .arrived), .notify(second, .arrived)])
        #expect(ledger.poll(first).0 == .described)
        #expect(ledger.want(0..<100, by: first).isEmpty)
        #expect(ledger.want(500..<600, by: second).starts.map(\.window) == [500..<600])
    }

    @Test("The window after the opening is requested before the opening ends")
    func theWindowAfterTheOpeningIsAskedForBeforeTheOpeningEnds() {
        let ledger = SharedLedger(FillLedger(settings: FillLedgerTests.settings))
        let (reader, opening) = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        let fill = opening.starts[0].fill
        _ = ledger.began(fill, window: 0..<100, length: 1000, acceptsRanges: true)
        _ = ledger.want(0..<1000, by: reader)
        _ = ledger.arrived(fill, upTo: 80)

        #expect(ledger.advance(reader, to: 60).starts.map(\.window.lowerBound) == [100])
    }

    @Test("A range beyond the end fails only its own readers")
    func aRangeBeyondTheEndFailsItsOwnReadersOnly() {
        let ledger = SharedLedger(FillLedger(settings: FillLedgerTests.settings))
        let beyond = ledger.join(opening: .closed(9000..<9100), priority: .live, needsConfirmation: false)
        let within = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        _ = (ledger.poll(beyond.0), ledger.poll(within.0))
        let code = CacheError.Code.rangeNotSatisfiable(length: 1000)
        let actions = ledger.broke(beyond.1.starts[0].fill, with: code, isWorthRetrying: false)

        #expect(actions.first == .notify(beyond.0, .failed(code)))
        #expect(actions.failures.count == 1)
        #expect(actions.starts.map(\.fillRequest) == [.opening(.closed(0..<100))])
    }

    @Test("A reader notified of the opening also gets the failure that followed")
    func whoLearnsWhatTheAssetIsLearnsOfTheFailureThatFollowed() {
        let ledger = SharedLedger(FillLedger(settings: FillLedgerTests.settings))
        let (reader, opening) = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        let fill = opening.starts[0].fill
        _ = ledger.began(fill, window: 0..<100, length: 1000, acceptsRanges: true)
        _ = ledger.broke(fill, with: .upstreamUnreachable(), isWorthRetrying: false)

        #expect(ledger.poll(reader).0 == .described)
        #expect(ledger.want(0..<100, by: reader).starts.isEmpty)
        #expect(ledger.poll(reader).0 == .over(.upstreamUnreachable()))
    }

    // MARK: Upstreams without ranges

    @Test("One transfer serves all readers if ranges are ignored")
    func oneTransferServesEverybodyWhereRangesAreIgnored() {
        let ledger = SharedLedger(FillLedger(settings: FillLedgerTests.settings))
        let (ahead, opening) = ledger.join(opening: .closed(500..<600), priority: .live, needsConfirmation: false)
        let fill = opening.starts[0].fill
        _ = ledger.began(fill, window: 0..<1000, length: 1000, acceptsRanges: false)
        let early = ledger.reader()

        #expect(ledger.want(500..<600, by: ahead).isEmpty)
        #expect(ledger.want(0..<10, by: early).isEmpty)
        _ = (ledger.poll(ahead), ledger.poll(early))
        #expect(ledger.arrived(fill, upTo: 400) == [.notify(early, .arrived)])
        #expect(ledger.arrived(fill, upTo: 700) == [.notify(ahead, .arrived)])
    }

    @Test("A broken sequential transfer restarts from the first byte")
    func aBrokenSequentialTransferBeginsAgainFromTheFirstByte() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false))
        let reader = ledger.reader()
        let first = ledger.want(300..<400, by: reader).starts[0]
        _ = ledger.poll(reader)
        _ = ledger.arrived(first.fill, upTo: 200)
        let again = ledger.broke(first.fill, with: .upstreamUnreachable(), isWorthRetrying: true).starts

        #expect(first.fillRequest == .whole)
        #expect(again.map(\.fillRequest) == [.whole])
        #expect(ledger.arrived(again[0].fill, upTo: 301) == [.notify(reader, .arrived)])
    }

    @Test("The end of a body of unknown length becomes its length")
    func theEndOfABodyOfUnknownLengthIsItsLength() {
        let ledger = SharedLedger(FillLedger(settings: FillLedgerTests.settings))
        let (reader, opening) = ledger.join(opening: .whole, priority: .live, needsConfirmation: false)
        let fill = opening.starts[0].fill
        _ = ledger.began(fill, window: 0..<Int64.max, length: nil, acceptsRanges: false)
        _ = ledger.want(0..<Int64.max, by: reader)
        _ = ledger.arrived(fill, upTo: 700)
        _ = ledger.advance(reader, to: 700)

        #expect(ledger.poll(reader).0 == .pending)
        #expect(ledger.completed(fill) == [.notify(reader, .arrived)])
        #expect(ledger.poll(reader).0 == .end)
        #expect(ledger.length == 700)
        #expect(ledger.isComplete)
    }

    // MARK: Broken transfers

    @Test("A broken transfer resumes from its next missing byte")
    func aBrokenTransferGoesOnFromItsNextMissingByte() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let reader = ledger.reader()
        let fill = ledger.want(0..<100, by: reader).starts[0].fill
        _ = ledger.arrived(fill, upTo: 40)
        ledger.readOn(reader)
        let again = ledger.broke(fill, with: .upstreamUnreachable(), isWorthRetrying: true).starts

        #expect(again.map(\.window) == [40..<100])
    }

    @Test("The attempts grow until real progress and then restart")
    func theAttemptsGrowUntilAByteArrivesAndThenBeginAgain() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let reader = ledger.reader()
        var fill = ledger.want(0..<100, by: reader).starts[0].fill
        var attempts: [Int] = []
        for step in 0..<6 {
            if step == 2 { _ = ledger.arrived(fill, upTo: 10) }
            ledger.readOn(reader)
            let again = ledger.broke(fill, with: .upstreamUnreachable(), isWorthRetrying: true).starts
            guard let next = again.first else { break }
            attempts.append(next.attempt)
            fill = next.fill
        }

        #expect(attempts == [1, 2, 1, 2])
    }

    @Test("A few bytes per attempt do not count as progress indefinitely")
    func aFewBytesAtATimeAreNoProgressForEver() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let reader = ledger.reader()
        var fill = ledger.want(0..<100, by: reader).starts[0].fill
        var attempts: [Int] = []
        for step in 0..<5 {
            _ = ledger.arrived(fill, upTo: Int64(step + 1))
            ledger.readOn(reader)
            let again = ledger.broke(fill, with: .upstreamUnreachable(), isWorthRetrying: true).starts
            guard let next = again.first else { break }
            attempts.append(next.attempt)
            fill = next.fill
        }

        #expect(attempts == [1, 2])
    }

    @Test("When the retries are exhausted all dependent readers fail")
    func whenTheRetriesAreSpentEverybodyWhoDependedIsTold() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let (first, second, other) = (ledger.reader(), ledger.reader(), ledger.reader())
        var fill = ledger.want(0..<100, by: first).starts[0].fill
        _ = (ledger.want(50..<60, by: second), ledger.want(5000..<5010, by: other))
        for reader in [first, second, other] { _ = ledger.poll(reader) }
        for _ in 0..<2 { fill = ledger.broke(fill, with: .upstreamUnreachable(), isWorthRetrying: true).starts[0].fill }
        let actions = ledger.broke(fill, with: .upstreamUnreachable(), isWorthRetrying: true)

        #expect(
            Set(actions) == [
                .notify(first, .failed(.upstreamUnreachable())),
                .notify(second, .failed(.upstreamUnreachable())),
            ])
    }

    @Test("A reader of earlier bytes fails when it reaches the missing bytes")
    func whoIsBusyWithEarlierBytesIsToldWhenItComesToThoseThatWereGivenUp() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<100]))
        let reader = ledger.reader()
        let fill = ledger.want(0..<200, by: reader).starts + ledger.advance(reader, to: 60).starts
        let actions = ledger.broke(fill[0].fill, with: .upstreamRefused(status: 404), isWorthRetrying: false)

        #expect(actions.isEmpty)
        #expect(ledger.advance(reader, to: 80).isEmpty)
        #expect(ledger.poll(reader).0 == .bytes(80..<100))
        #expect(ledger.advance(reader, to: 100).isEmpty)
        #expect(ledger.poll(reader).0 == .over(.upstreamRefused(status: 404)))
    }

    @Test("Windows of one reader share its budget of attempts")
    func theWindowsOfOneReaderShareItsAttempts() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [100..<200, 300..<400, 500..<600]))
        let reader = ledger.reader()
        let fills = ledger.want(0..<700, by: reader).starts.map(\.fill)
        _ = ledger.poll(reader)
        let actions = fills.prefix(3).map {
            ledger.broke($0, with: .upstreamUnreachable(), isWorthRetrying: true)
        }

        #expect(fills.count >= 3)
        #expect(actions[0].starts.count == 1 && actions[1].starts.count == 1)
        #expect(actions[2].starts.isEmpty)
        #expect(actions[2].failures == [.upstreamUnreachable()])
    }

    @Test("A continued read keeps its attempts, and bytes that it had are no progress")
    func aContinuedReadKeepsItsAttempts() {
        let former = SharedLedger(FillLedgerTests.known())
        let reader = former.reader()
        let fill = former.want(0..<500, by: reader).starts[0].fill
        _ = former.arrived(fill, upTo: 100)
        former.readOn(reader)
        _ = former.broke(fill, with: .upstreamUnreachable(), isWorthRetrying: true)
        let attempts = former.attempts(of: reader)
        #expect(attempts.count == 1 && attempts.reached == 100)

        let ledger = SharedLedger(FillLedgerTests.known())
        let (again, _) = ledger.join(
            opening: .whole, priority: .live, needsConfirmation: false, attempts: attempts)
        var next = ledger.want(0..<500, by: again).starts[0].fill
        _ = ledger.arrived(next, upTo: 100)
        ledger.readOn(again)
        let second = ledger.broke(next, with: .upstreamUnreachable(), isWorthRetrying: true)
        #expect(second.starts.map(\.attempt) == [2])
        next = second.starts[0].fill
        _ = ledger.arrived(next, upTo: 300)
        ledger.readOn(again)
        #expect(ledger.broke(next, with: .upstreamUnreachable(), isWorthRetrying: true).starts.map(\.attempt) == [1])
    }

    @Test("A transfer that broke before its reader came is charged to it")
    func aTransferThatBrokeUnreadIsCharged() {
        var attempts = FillLedger.Attempts()
        attempts.count = FillLedgerTests.settings.retries
        var ledger = FillLedgerTests.known()
        let (fill, _) = ledger.carry(
            .whole, window: 0..<1000, priority: .live, isOpenEnded: true, isMultiplexed: false)
        _ = ledger.broke(fill, with: .upstreamProtocol, isWorthRetrying: true)
        let (reader, _) = ledger.join(
            opening: .whole, priority: .live, needsConfirmation: false, attempts: attempts)

        #expect(ledger.want(0..<1000, by: reader).starts.isEmpty)
        #expect(ledger.poll(reader).0 == .over(.upstreamProtocol))
    }

    @Test("Continuations of small complete responses are limited", arguments: [(1000, 3), (64 << 10, 6)])
    func smallPartsAreLimited(_ size: Int64, _ most: Int) {
        let settings = FillLedger.Settings(retries: 2)
        let ledger = SharedLedger(
            FillLedger(settings: settings, length: 1 << 20, acceptsRanges: true, extents: ByteRangeSet()))
        let reader = ledger.reader()
        var fills = ledger.want(0..<(1 << 20), by: reader).starts
        var count = 0
        while let fill = fills.first, count < 6 {
            count += 1
            let start = fill.window.lowerBound
            _ = ledger.began(fill.fill, window: start..<(start + size), length: 1 << 20, acceptsRanges: true)
            _ = ledger.arrived(fill.fill, upTo: start + size)
            var actions = ledger.completed(fill.fill) + ledger.advance(reader, to: start + size)
            actions += ledger.poll(reader).1
            fills = actions.starts
        }

        #expect(count == most)
    }

    @Test("A small part is charged before its continuation starts")
    func aSmallPartIsChargedBeforeItsContinuation() {
        let settings = FillLedger.Settings(retries: 0)
        let ledger = SharedLedger(
            FillLedger(settings: settings, length: 1 << 20, acceptsRanges: true, extents: ByteRangeSet()))
        let reader = ledger.reader()
        let fill = ledger.want(0..<(1 << 20), by: reader).starts[0].fill
        _ = ledger.began(fill, window: 0..<1000, length: 1 << 20, acceptsRanges: true)
        _ = ledger.arrived(fill, upTo: 1000)
        #expect(ledger.advance(reader, to: 1000).starts.isEmpty)
        let (presence, waiting) = ledger.poll(reader)
        #expect(presence == .pending && waiting.starts.isEmpty)

        let actions = ledger.completed(fill)
        #expect(actions.starts.isEmpty)
        #expect(actions.failures == [.upstreamProtocol])
    }

    @Test("A small part that ended before its reader came is charged to it")
    func aSmallPartThatEndedUnreadIsCharged() {
        var attempts = FillLedger.Attempts()
        attempts.count = FillLedgerTests.settings.retries
        var ledger = FillLedgerTests.known()
        let (fill, _) = ledger.carry(
            .window(0..<1000), window: 0..<10, priority: .live, isOpenEnded: false, isMultiplexed: false)
        _ = ledger.arrived(fill, upTo: 10)
        _ = ledger.completed(fill)
        let (reader, _) = ledger.join(
            opening: .closed(0..<1000), priority: .live, needsConfirmation: false, attempts: attempts)
        #expect(ledger.want(10..<1000, by: reader).starts.isEmpty)
        #expect(ledger.poll(reader).0 == .over(.upstreamProtocol))
    }

    @Test("A failure not worth retrying fails the reader at once")
    func aFailureNotWorthRetryingIsToldAtOnce() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let reader = ledger.reader()
        let fill = ledger.want(0..<100, by: reader).starts[0].fill
        _ = ledger.poll(reader)
        let actions = ledger.broke(fill, with: .upstreamRefused(status: 404), isWorthRetrying: false)

        #expect(actions == [.notify(reader, .failed(.upstreamRefused(status: 404)))])
    }

    @Test("A renewed fill is requested again and counts no failure")
    func whatIsRenewedIsAskedForAgainAndCountsNoFailure() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let reader = ledger.reader()
        let fill = ledger.want(0..<100, by: reader).starts[0].fill
        _ = ledger.poll(reader)
        let again = ledger.renewed(fill).starts

        #expect(again.map(\.fillRequest) == [.window(0..<100)])
        #expect(again.map(\.attempt) == [0])
        #expect(ledger.renewed(fill).isEmpty)
    }

    @Test("A renewed fill without readers is not requested again")
    func whatIsRenewedForNobodyIsNotAskedForAgain() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let reader = ledger.reader()
        let fill = ledger.want(0..<100, by: reader).starts[0].fill
        _ = ledger.leave(reader)

        #expect(ledger.renewed(fill).isEmpty)
    }

    @Test("A fill that found no space is not retried ahead of a stopped reader")
    func whatFoundNoRoomIsNotAskedForAgainAheadOfWhoHasStopped() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<100]))
        let (stopped, waiting) = (ledger.reader(), ledger.reader())
        let fill = ledger.want(100..<200, by: waiting).starts[0].fill
        _ = ledger.want(0..<200, by: stopped)
        _ = (ledger.poll(stopped), ledger.poll(waiting))
        ledger.now = .seconds(5)
        let again = ledger.renewed(fill, after: .storageFull).starts
        #expect(again.map(\.window) == [100..<200])

        _ = ledger.leave(waiting)
        #expect(ledger.renewed(again[0].fill, after: .storageFull).isEmpty)
        #expect(ledger.advance(stopped, to: 100).starts.map(\.window) == [100..<200])
    }

    @Test("A fill without space fails its prefetch job but not its live reader")
    func aPrefetchThatFindsNoRoomIsToldAndWhoPassesItOnIsNot() {
        let ledger = SharedLedger(FillLedgerTests.known())
        let (job, live) = (ledger.reader(.prefetch), ledger.reader())
        let fill = ledger.want(0..<100, by: job).starts[0].fill
        _ = ledger.want(0..<100, by: live)
        _ = (ledger.poll(job), ledger.poll(live))
        let actions = ledger.renewed(fill, after: .storageFull)

        #expect(actions.failures == [.storageFull] && actions.contains(.notify(job, .failed(.storageFull))))
        #expect(actions.starts.map(\.window) == [0..<100])
        _ = ledger.leave(live)
        #expect(ledger.renewed(actions.starts[0].fill, after: .storageFull).isEmpty)
    }

    @Test("Transfers that break together are each retried")
    func manyTransfersThatBreakAtOnceAreEachTriedAgain() {
        let ledger = SharedLedger(FillLedgerTests.known())
        var fills: [FillLedger.FillID] = []
        for index in 0..<20 {
            let reader = ledger.reader()
            let start = Int64(index) * 200
            fills += ledger.want(start..<(start + 50), by: reader).starts.map(\.fill)
            _ = ledger.poll(reader)
        }
        let actions = fills.flatMap { ledger.broke($0, with: .upstreamUnreachable(), isWorthRetrying: true) }

        #expect(fills.count == 20)
        #expect(actions.failures.isEmpty)
        #expect(actions.starts.count == 20)
    }

    @Test("A refused fill ends the waits of its own readers, and starts no other for them")
    func aRefusedFillEndsTheWaitsOfItsReaders() {
        let ledger = SharedLedger(FillLedger(settings: FillLedgerTests.settings))
        let (first, opening) = ledger.join(opening: .closed(0..<100), priority: .live, needsConfirmation: false)
        _ = ledger.began(opening.starts[0].fill, window: 0..<100, length: 1000, acceptsRanges: true)
        let job = ledger.reader(.prefetch)
        let fill = ledger.want(100..<200, by: job).starts[0].fill
        _ = ledger.poll(job)

        #expect(ledger.refused(fill, because: .readerRequired) == [.notify(job, .failed(.readerRequired))])
        #expect(ledger.poll(job).0 == .over(.readerRequired))
        #expect(ledger.want(300..<400, by: job).isEmpty)
        #expect(ledger.want(0..<200, by: first).starts.map(\.window) == [100..<200])
    }
}
