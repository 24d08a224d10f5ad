import CacheCore
import Testing

/// Selection of evictable and protected ranges.
@Suite struct FillLedgerEvictionTests {
    @Test("Leases and running windows cannot be evicted")
    func leasesAndRunningWindowsAreNotSurrendered() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<5000]))
        let (sending, waiting) = (ledger.reader(), ledger.reader())
        _ = ledger.want(1000..<5000, by: sending)
        let window = ledger.want(6000..<6100, by: waiting).starts[0]
        _ = ledger.arrived(window.fill, upTo: 6050)

        #expect(ledger.beginEviction(0..<10_000) == [0..<1000, 1100..<5000])
        #expect(ledger.extents.runs == [1000..<1100, 6000..<6050])
    }

    @Test("Bytes fetched ahead of a stopped reader can be evicted")
    func whatWasFetchedAheadOfAReaderThatHasStoppedMayGo() {
        let settings = FillLedger.Settings(firstWindowBytes: 100, largestWindowBytes: 800, pieceBytes: 10)
        let ledger = SharedLedger(
            FillLedger(settings: settings, length: 1000, acceptsRanges: true, extents: ByteRangeSet([0..<1000])))
        let reader = ledger.reader()
        _ = ledger.want(0..<1000, by: reader)

        ledger.now = .milliseconds(4999)
        #expect(ledger.beginEviction(0..<1000) == [100..<1000])
        ledger.now = .seconds(5)
        #expect(ledger.beginEviction(0..<1000) == [10..<100])
    }

    @Test("Bytes consumed by all readers are evicted, and later ranges stay")
    func whatAllReadersArePastGoesAndWhatOneComesBackToStays() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<5000]))
        let (first, second) = (ledger.reader(), ledger.reader())
        #expect(ledger.evictConsumed(of: ByteRangeSet([0..<5000]), atLeast: 1).isEmpty)

        _ = ledger.want(3000..<5000, by: first)
        _ = ledger.want(4000..<5000, by: second, later: [4900..<5000, 1000..<1100])
        #expect(ledger.evictConsumed(of: ByteRangeSet([0..<5000]), atLeast: 1001).isEmpty)
        #expect(ledger.evictConsumed(of: ByteRangeSet([500..<5000]), atLeast: 500) == [500..<1000])

        _ = ledger.want(1000..<1100, by: second)
        _ = ledger.advance(second, to: 1100)
        #expect(ledger.evictConsumed(of: ByteRangeSet([0..<5000]), atLeast: 1) == [0..<500, 1000..<1100])
        _ = ledger.leave(second)
        #expect(ledger.evictConsumed(of: ByteRangeSet([0..<5000]), atLeast: 1) == [1100..<3000])
    }

    @Test("An evicting range is refetched only after the eviction")
    func bytesThatAreLeavingAreFetchedOnlyWhenTheyAreGone() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<1000]))
        let runs = ledger.beginEviction(200..<400)
        let reader = ledger.reader()

        #expect(runs == [200..<400])
        #expect(ledger.want(300..<500, by: reader).isEmpty)
        #expect(ledger.poll(reader).0 == .pending)
        #expect(ledger.left(runs).starts.map(\.window) == [300..<400])
    }

    /// The transfer would write to the evicting range, and the punch would erase the new bytes.
    @Test("A whole transfer starts only after all evictions have ended")
    func aTransferOfAllBytesBeginsOnlyWhenNoneIsLeaving() {
        let ledger = SharedLedger(
            FillLedger(
                settings: FillLedger.Settings(), length: 1000, acceptsRanges: false, extents: ByteRangeSet([0..<500])))
        let runs = ledger.beginEviction(200..<400)
        let reader = ledger.reader()

        #expect(ledger.want(600..<700, by: reader).isEmpty)
        #expect(ledger.poll(reader).0 == .pending && ledger.poll(reader).1.isEmpty)
        #expect(ledger.left(runs).starts.map(\.fillRequest) == [.whole])
    }

    /// A punch could erase the bytes that the fill has just written.
    @Test("Bad bytes that a fill overwrites are not evicted")
    func badBytesThatAFillBringsAnywayDoNotLeave() {
        let ledger = SharedLedger(
            FillLedger(
                settings: FillLedger.Settings(), length: 1000, acceptsRanges: false, extents: ByteRangeSet([0..<500])))
        let (ahead, reader) = (ledger.reader(), ledger.reader())
        let fill = ledger.want(600..<700, by: ahead).starts[0].fill
        _ = ledger.arrived(fill, upTo: 200)

        #expect(ledger.invalidate(100..<300) == [100..<300])
        #expect(ledger.evictOrphaned() == [100..<200])
        #expect(ledger.isLeaving(100..<200) && !ledger.isLeaving(200..<300))
        #expect(ledger.extents.runs == [0..<100, 300..<500])
        #expect(ledger.kept == [0..<500])
        #expect(ledger.want(250..<300, by: reader).isEmpty)
        #expect(ledger.poll(reader).0 == .pending)
        _ = ledger.arrived(fill, upTo: 260)
        #expect(ledger.poll(reader).0 == .bytes(250..<260))
    }

    @Test("Invalid bytes not overwritten by a fill are evicted at its end")
    func whatAFillWasToBringAndDidNotLeavesWithItsEnd() {
        let ledger = SharedLedger(FillLedgerTests.known(acceptsRanges: false, onDisk: [0..<100, 200..<300]))
        let reader = ledger.reader()
        let fill = ledger.want(100..<400, by: reader).starts[0].fill
        _ = ledger.invalidate(200..<300)
        _ = ledger.arrived(fill, upTo: 240)
        #expect(ledger.leave(reader) == [.allow(fill, upTo: 10_000)])
        #expect(ledger.evictOrphaned().isEmpty)  // the fill may still write until it ends

        _ = ledger.broke(fill, with: .cancelled, isWorthRetrying: false)
        #expect(ledger.evictOrphaned() == [240..<300])
        #expect(ledger.evictOrphaned().isEmpty)
        #expect(ledger.extents.runs == [0..<240])
    }

    @Test("Bytes orphaned in an evicting range are evicted after it")
    func whatCameWhereBytesWereLeavingLeavesAfterThem() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [200..<300]))
        let runs = ledger.beginEviction(200..<300)
        ledger.orphan([250..<300])

        #expect(ledger.evictOrphaned().isEmpty)
        #expect(ledger.left(runs).isEmpty)
        #expect(ledger.evictOrphaned() == [250..<300])
        #expect(ledger.isLeaving(250..<300) && !ledger.isLeaving(200..<250))
    }

    @Test("A reader waiting for an eviction does not fail with another reader's fill")
    func aReaderOfLeavingBytesDoesNotFailWithSomebodyElsesFill() {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: [0..<1000]))
        let runs = ledger.beginEviction(200..<400)
        let (patient, other) = (ledger.reader(), ledger.reader())
        _ = ledger.want(300..<400, by: patient)
        let fill = ledger.want(5000..<5010, by: other).starts[0].fill
        _ = (ledger.poll(patient), ledger.poll(other))
        let actions = ledger.broke(fill, with: .upstreamRefused(status: 410), isWorthRetrying: false)

        #expect(actions == [.notify(other, .failed(.upstreamRefused(status: 410)))])
        #expect(ledger.left(runs).starts.map(\.window) == [300..<400])
    }
}
