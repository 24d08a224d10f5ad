import CacheCore
import Testing

/// What may go from the disk, and what is spared.
@Suite struct FillLedgerEvictionTests {
    @Test func leasesAndRunningWindowsAreNotSurrendered() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<5000]))
        let (sending, waiting) = (ledger.reader(), ledger.reader())
        _ = ledger.want(1000..<5000, by: sending)
        let window = ledger.want(6000..<6100, by: waiting).starts[0]
        _ = ledger.arrived(window.fill, upTo: 6050)

        #expect(ledger.surrender(0..<10_000) == [0..<1000, 1100..<5000])
        #expect(ledger.extents.runs == [1000..<1100, 6000..<6050])
    }

    @Test func whatWasFetchedAheadOfAReaderThatHasStoppedMayGo() {
        let settings = FillLedger.Settings(firstWindowBytes: 100, largestWindowBytes: 800, pieceBytes: 10)
        let ledger = SharedLedger(
            FillLedger(settings: settings, length: 1000, acceptsRanges: true, extents: ByteRangeSet([0..<1000])))
        let reader = ledger.reader()
        _ = ledger.want(0..<1000, by: reader)

        ledger.now = .milliseconds(4999)
        #expect(ledger.surrender(0..<1000) == [100..<1000])
        ledger.now = .seconds(5)
        #expect(ledger.surrender(0..<1000) == [10..<100])
    }

    @Test func whatAllReadersArePastGoesAndWhatOneComesBackToStays() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<5000]))
        let (first, second) = (ledger.reader(), ledger.reader())
        #expect(ledger.surrenderPassed(of: ByteRangeSet([0..<5000]), atLeast: 1).isEmpty)

        _ = ledger.want(3000..<5000, by: first)
        _ = ledger.want(4000..<5000, by: second, later: [4900..<5000, 1000..<1100])
        #expect(ledger.surrenderPassed(of: ByteRangeSet([0..<5000]), atLeast: 1001).isEmpty)
        #expect(ledger.surrenderPassed(of: ByteRangeSet([500..<5000]), atLeast: 500) == [500..<1000])

        _ = ledger.want(1000..<1100, by: second)
        _ = ledger.advance(second, to: 1100)
        #expect(ledger.surrenderPassed(of: ByteRangeSet([0..<5000]), atLeast: 1) == [0..<500, 1000..<1100])
        _ = ledger.leave(second)
        #expect(ledger.surrenderPassed(of: ByteRangeSet([0..<5000]), atLeast: 1) == [1100..<3000])
    }

    @Test func bytesThatAreLeavingAreFetchedOnlyWhenTheyAreGone() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<1000]))
        let runs = ledger.surrender(200..<400)
        let reader = ledger.reader()

        #expect(runs == [200..<400])
        #expect(ledger.want(300..<500, by: reader).isEmpty)
        #expect(ledger.presence(for: reader).0 == .pending)
        #expect(ledger.left(runs).starts.map(\.window) == [300..<400])
    }

    /// It would bring what is just going, and what goes would take that along.
    @Test func aTransferOfAllBytesBeginsOnlyWhenNoneIsLeaving() {
        let ledger = SharedLedger(
            FillLedger(
                settings: FillLedger.Settings(), length: 1000, acceptsRanges: false, extents: ByteRangeSet([0..<500])))
        let runs = ledger.surrender(200..<400)
        let reader = ledger.reader()

        #expect(ledger.want(600..<700, by: reader).isEmpty)
        #expect(ledger.presence(for: reader).0 == .pending && ledger.presence(for: reader).1.isEmpty)
        #expect(ledger.left(runs).starts.map(\.wish) == [.whole])
    }

    /// To take it off the disk could take along what was just written.
    @Test func badBytesThatAFillBringsAnywayDoNotLeave() {
        let ledger = SharedLedger(
            FillLedger(
                settings: FillLedger.Settings(), length: 1000, acceptsRanges: false, extents: ByteRangeSet([0..<500])))
        let (ahead, reader) = (ledger.reader(), ledger.reader())
        let fill = ledger.want(600..<700, by: ahead).starts[0].fill
        _ = ledger.arrived(fill, upTo: 200)

        #expect(ledger.spoil(100..<300) == [100..<300])
        #expect(ledger.surrenderUnclaimed() == [100..<200])
        #expect(ledger.isLeaving(100..<200) && !ledger.isLeaving(200..<300))
        #expect(ledger.extents.runs == [0..<100, 300..<500])
        #expect(ledger.kept == [0..<500])
        #expect(ledger.want(250..<300, by: reader).isEmpty)
        #expect(ledger.presence(for: reader).0 == .pending)
        _ = ledger.arrived(fill, upTo: 260)
        #expect(ledger.presence(for: reader).0 == .bytes(250..<260))
    }

    @Test func whatAFillWasToBringAndDidNotLeavesWithItsEnd() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false, onDisk: [0..<100, 200..<300]))
        let reader = ledger.reader()
        let fill = ledger.want(100..<400, by: reader).starts[0].fill
        _ = ledger.spoil(200..<300)
        _ = ledger.arrived(fill, upTo: 240)
        #expect(ledger.leave(reader) == [.cut(fill)])
        #expect(ledger.surrenderUnclaimed().isEmpty)  // it may be writing until it ends

        _ = ledger.broke(fill, with: .cancelled, isWorthRetrying: false)
        #expect(ledger.surrenderUnclaimed() == [240..<300])
        #expect(ledger.surrenderUnclaimed().isEmpty)
        #expect(ledger.extents.runs == [0..<240])
    }

    @Test func whatCameWhereBytesWereLeavingLeavesAfterThem() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [200..<300]))
        let runs = ledger.surrender(200..<300)
        ledger.disown([250..<300])

        #expect(ledger.surrenderUnclaimed().isEmpty)
        #expect(ledger.left(runs).isEmpty)
        #expect(ledger.surrenderUnclaimed() == [250..<300])
        #expect(ledger.isLeaving(250..<300) && !ledger.isLeaving(200..<250))
    }

    @Test func aReaderOfLeavingBytesDoesNotFailWithSomebodyElsesFill() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<1000]))
        let runs = ledger.surrender(200..<400)
        let (patient, other) = (ledger.reader(), ledger.reader())
        _ = ledger.want(300..<400, by: patient)
        let fill = ledger.want(5000..<5010, by: other).starts[0].fill
        _ = (ledger.presence(for: patient), ledger.presence(for: other))
        let actions = ledger.broke(fill, with: .upstreamRefused(status: 410), isWorthRetrying: false)

        #expect(actions == [.tell(other, .gaveUp(.upstreamRefused(status: 410)))])
        #expect(ledger.left(runs).starts.map(\.window) == [300..<400])
    }
}
