import CacheCore

/// Reference to a ledger, so that expectations can call mutating methods.
final class SharedLedger {
    typealias ReaderID = FillLedger.ReaderID
    typealias FillID = FillLedger.FillID
    typealias Action = FillLedger.Action

    private var ledger: FillLedger

    init(_ ledger: FillLedger) { self.ledger = ledger }

    var extents: ByteRangeSet { ledger.extents }
    var length: Int64? { ledger.length }
    var fillCount: Int { ledger.fillCount }
    var isComplete: Bool { ledger.isComplete }

    /// Adds a reader of the given priority without a need for confirmation.
    func reader(_ priority: TransferPriority = .live) -> ReaderID {
        join(opening: .closed(0..<100), priority: priority, needsConfirmation: false).0
    }

    func join(
        opening: UpstreamRequest.Window, priority: TransferPriority, needsConfirmation: Bool,
        waitLimit: Duration? = nil, maxLead: Int64? = nil, attempts: FillLedger.Attempts? = nil
    ) -> (ReaderID, [Action]) {
        ledger.join(
            opening: opening, priority: priority, needsConfirmation: needsConfirmation, waitLimit: waitLimit,
            maxLead: maxLead, attempts: attempts)
    }

    func attempts(of reader: ReaderID) -> FillLedger.Attempts { ledger.attempts(of: reader) }

    func want(_ range: ByteRange, by reader: ReaderID, later: [ByteRange] = []) -> [Action] {
        ledger.want(range, by: reader, later: later)
    }
    func advance(_ reader: ReaderID, to position: Int64) -> [Action] { ledger.advance(reader, to: position) }
    func poll(_ reader: ReaderID) -> (FillLedger.Presence, [Action]) { ledger.poll(reader) }

    /// The reader consumes all available bytes.
    func readOn(_ reader: ReaderID) {
        while case .bytes(let run) = poll(reader).0 { _ = advance(reader, to: run.upperBound) }
    }

    func leave(_ reader: ReaderID) -> [Action] { ledger.leave(reader) }

    func began(
        _ fill: FillID, window: ByteRange, length: Int64?, acceptsRanges: Bool?, firstByte: Duration? = nil,
        isMultiplexed: Bool = false
    ) -> [Action] {
        ledger.began(
            fill, window: window, length: length, acceptsRanges: acceptsRanges, firstByte: firstByte,
            isMultiplexed: isMultiplexed)
    }

    func confirmed(length: Int64?) -> [Action] { ledger.confirmed(length: length) }
    func arrived(_ fill: FillID, upTo position: Int64) -> [Action] { ledger.arrived(fill, upTo: position) }
    func completed(_ fill: FillID) -> [Action] { ledger.completed(fill) }

    func refused(_ fill: FillID, because code: CacheError.Code) -> [Action] {
        ledger.refused(fill, because: code)
    }

    func broke(_ fill: FillID, with code: CacheError.Code, isWorthRetrying: Bool) -> [Action] {
        ledger.broke(fill, with: code, isWorthRetrying: isWorthRetrying)
    }

    var now: Duration {
        get { ledger.now }
        set { ledger.now = newValue }
    }

    func tick() -> [Action] { ledger.tick() }
    func stopFills(because code: CacheError.Code) -> [Action] { ledger.stopFills(because: code) }
    func stopFill(_ fill: FillID, because code: CacheError.Code) -> [Action] { ledger.stopFill(fill, because: code) }

    func renewed(_ fill: FillID, after code: CacheError.Code = .upstreamRefused(status: 401)) -> [Action] {
        ledger.renewed(fill, after: code)
    }

    func beginEviction(_ range: ByteRange) -> [ByteRange] { ledger.beginEviction(range) }
    func evictConsumed(of ranges: ByteRangeSet, atLeast least: Int64) -> [ByteRange] {
        ledger.evictConsumed(of: ranges, atLeast: least)
    }
    func invalidate(_ range: ByteRange) -> [ByteRange] { ledger.invalidate(range) }
    func orphan(_ runs: [ByteRange]) { ledger.orphan(runs) }
    func evictOrphaned() -> [ByteRange] { ledger.evictOrphaned() }
    var kept: [ByteRange] { ledger.kept.runs }
    func isLeaving(_ range: ByteRange) -> Bool { ledger.isLeaving(range) }
    func left(_ runs: [ByteRange]) -> [Action] { ledger.left(runs) }
}
