import CacheCore
import Testing

/// Readers in mid-body of an upstream that cannot be reached.
@Suite struct FillLedgerPatienceTests {
    private static let limit = Duration.seconds(30)
    private static let unreachable = CacheError.Code.upstreamUnreachable()

    /// A ledger with the bytes 0..<100, and a reader that has passed `position` of them and waits for the rest. `fills`:
    /// its transfers.
    private static func waiting(
        at position: Int64 = 100, limit: Duration? = limit
    ) -> (ledger: SharedLedger, reader: SharedLedger.ReaderID, fills: [SharedLedger.FillID]) {
        let ledger = SharedLedger(FillLedgerTests.known(onDisk: position == 0 ? [] : [0..<100]))
        let (reader, _) = ledger.join(
            opening: .closed(0..<200), priority: .live, needsConfirmation: false, waitLimit: limit)
        var actions = ledger.want(0..<200, by: reader) + ledger.advance(reader, to: position)
        actions += ledger.poll(reader).1
        return (ledger, reader, actions.starts.map(\.fill))
    }

    @Test("A reader that has received bytes repeats its request later, and reads on")
    func repeats() throws {
        let (ledger, reader, fills) = Self.waiting()
        let fill = try #require(fills.last)
        #expect(ledger.broke(fill, with: Self.unreachable, isWorthRetrying: false).isEmpty)
        #expect(ledger.poll(reader).1.isEmpty)

        ledger.now = .milliseconds(400)
        #expect(ledger.tick().isEmpty)
        ledger.now = .milliseconds(500)
        let again = try #require(ledger.tick().starts.first)
        #expect(again.window.lowerBound == 100)
        #expect(ledger.arrived(again.fill, upTo: 150) == [.notify(reader, .arrived)])
        #expect(ledger.poll(reader).0 == .bytes(100..<150))
    }

    @Test("The limit of the reader ends its wait with the cause, after few requests")
    func ends() throws {
        let (ledger, reader, fills) = Self.waiting()
        var fill = try #require(fills.last)
        var (requests, failures) = (0, [CacheError.Code]())
        for tenth in 0...300 {
            ledger.now = .milliseconds(100 * tenth)
            let actions =
                (tenth == 0 ? ledger.broke(fill, with: Self.unreachable, isWorthRetrying: false) : []) + ledger.tick()
            failures += actions.failures
            for start in actions.starts {
                requests += 1
                fill = start.fill
                #expect(ledger.broke(fill, with: Self.unreachable, isWorthRetrying: true).isEmpty)
            }
        }
        #expect(failures == [Self.unreachable])
        #expect((7...12).contains(requests), "\(requests)")
        _ = reader
    }

    @Test("A failure of bytes ahead of the reader is repeated when the reader reaches them")
    func ahead() throws {
        let (ledger, reader, fills) = Self.waiting(at: 60)
        #expect(ledger.poll(reader).0 == .bytes(60..<100))
        let fill = try #require(fills.last)
        #expect(ledger.broke(fill, with: Self.unreachable, isWorthRetrying: false).isEmpty)
        _ = ledger.advance(reader, to: 100)
        let (presence, actions) = ledger.poll(reader)
        #expect(presence == .pending)
        #expect(actions.starts.map(\.window.lowerBound) == [100])
    }

    @Test("Bytes that another reader's transfer brings end the wait")
    func shared() throws {
        let (ledger, reader, fills) = Self.waiting()
        #expect(ledger.broke(try #require(fills.last), with: Self.unreachable, isWorthRetrying: false).isEmpty)
        let other = ledger.reader()
        let fill = try #require(ledger.want(100..<200, by: other).starts.first).fill
        #expect(ledger.arrived(fill, upTo: 150).contains(.notify(reader, .arrived)))
    }

    @Test("A reader without a first byte, a job, and another cause fail at once")
    func impatient() throws {
        let (first, _, firstFills) = Self.waiting(at: 0)
        #expect(
            first.broke(try #require(firstFills.last), with: Self.unreachable, isWorthRetrying: false).failures
                == [Self.unreachable])
        let (job, _, jobFills) = Self.waiting(limit: nil)
        #expect(
            job.broke(try #require(jobFills.last), with: Self.unreachable, isWorthRetrying: false).failures
                == [Self.unreachable])
        let (other, _, otherFills) = Self.waiting()
        let code = CacheError.Code.upstreamRefused(status: 404)
        #expect(other.broke(try #require(otherFills.last), with: code, isWorthRetrying: false).failures == [code])
    }
}
