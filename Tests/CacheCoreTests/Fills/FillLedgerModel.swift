import CacheCore
import Testing
import TestChance

/// Driver of one `FillLedger` with a model in plain arrays: an upstream, a disk, readers and fills.
///
/// After every step the ledger must agree with the model, and every waiting reader must have a pending event.
final class FillLedgerModel {
    /// The model of a reader.
    struct Reader {
        var opening: UpstreamRequest.Window
        var wanted: ByteRange?
        /// The reader found nothing and has not been notified since.
        var isWaiting = false
        var hasLooked = false
        /// Whether no fill may be started for it.
        var isPassive = false
    }

    /// The model of a running fill.
    struct Fill {
        var fillRequest: FillLedger.FillRequest
        /// Empty until the head of an opening has arrived.
        var window: ByteRange
        var position: Int64
        /// The end of the requested range.
        var end: Int64 = 0
        /// The offset up to which it may store bytes; `.max` without flow control.
        var allowance = Int64.max
        var longestEnd: Int64 = 0
        var isCut = false

        var isDescribing: Bool { window.isEmpty }
        var isPaused: Bool { position >= allowance && position < end }
        var remaining: ByteRange { position..<max(position, window.upperBound) }
        var prospect: ByteRange { position..<max(position, end) }
        /// The offset up to which it can write. It exceeds the allowance, because a transfer stores whole pieces.
        var storableEnd: Int64 { min(end, allowance < .max ? allowance + Self.overshoot : .max) }
        var reach: ByteRange { position..<max(position, window.upperBound, longestEnd) }

        static let overshoot: Int64 = 4

        mutating func shorten(to offset: Int64) {
            longestEnd = reach.upperBound
            end = offset
            window = window.lowerBound..<min(window.upperBound, offset)
        }
    }

    let length: Int64
    let hasRanges: Bool
    let tellsLength: Bool
    let settings: FillLedger.Settings
    /// Whether a transfer can end early and keep its connection.
    let isMultiplexed: Bool
    /// Whether a transfer can be paused.
    let hasFlowControl: Bool
    var ledger: FillLedger
    var isOnDisk: [Bool]
    /// Orphaned bytes: on disk, but not claimed.
    var isNobodys: [Bool]
    var readers: [FillLedger.ReaderID: Reader] = [:]
    var fills: [FillLedger.FillID: Fill] = [:]
    var leases: [FillLedger.LeaseID: ByteRange] = [:]
    var evicting: [[ByteRange]] = []
    /// The range of a call of `anticipate` in progress.
    var anticipated: ByteRange?
    /// New or notified readers that have not checked for bytes since.
    var awake: [FillLedger.ReaderID] = []
    var notified = 0, served = 0
    var random: SeededRandom
    var complaints: [String] = []

    init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        length = Int64.random(in: 1...900, using: &random)
        hasRanges = Int.random(in: 0..<4, using: &random) > 0
        tellsLength = hasRanges || Bool.random(using: &random)
        isMultiplexed = Bool.random(using: &random)
        hasFlowControl = !isMultiplexed && Int.random(in: 0..<4, using: &random) > 0
        settings = FillLedger.Settings(
            firstExposureBytes: 8, firstWindowBytes: 16, largestWindowBytes: 128, retries: 2,
            finishIfRemainingBytes: [0, 20].randomElement(using: &random) ?? 0,
            finishIfRemainingPercent: [nil, 30].randomElement(using: &random) ?? nil,
            gapMergeBytes: [0, 9].randomElement(using: &random) ?? 0,
            speculativeBytes: [0, 0, 10].randomElement(using: &random) ?? 0, pieceBytes: 16,
            overshootBytes: Fill.overshoot)
        ledger = FillLedger(settings: settings)
        ledger.hasFlowControl = hasFlowControl
        isOnDisk = Array(repeating: false, count: Int(length))
        isNobodys = isOnDisk
    }

    func check(_ holds: Bool, _ complaint: @autoclosure () -> String) {
        if !holds { complaints.append(complaint()) }
    }

    // MARK: Actions of the ledger

    func perform(_ actions: [FillLedger.Action]) {
        var failed: [FillLedger.ReaderID] = []
        for action in actions {
            switch action {
            case .start(let id, let start): begin(id, start)
            case .cut(let id):
                check(fills[id] != nil, "cut of an unknown fill")
                fills[id]?.isCut = true
            case .promote(let id, _): check(fills[id] != nil, "promotion of an unknown fill")
            case .allow(let id, let end): allow(id, upTo: end)
            case .shorten(let id, let end):
                check(
                    fills[id].map { $0.position <= end && end < $0.end } ?? false,
                    "invalid shortening of a fill to \(end)")
                fills[id]?.shorten(to: end)
            case .notify(let id, let outcome): if notify(id, outcome) { failed.append(id) }
            }
        }
        for id in failed { leave(id) }
    }

    /// Notifies a reader. Returns whether the reader fails.
    private func notify(_ id: FillLedger.ReaderID, _ outcome: WaitOutcome) -> Bool {
        check(readers[id] != nil, "notification of a reader that has left")
        guard outcome != .retrying else { return false }
        let reader = readers[id]
        check(reader?.isWaiting == true || reader?.hasLooked == false, "notification of a reader that is not waiting")
        readers[id]?.isWaiting = false
        guard outcome.failure != nil else {
            awake.append(id)
            return false
        }
        notified += 1
        return true
    }

    private func allow(_ id: FillLedger.FillID, upTo offset: Int64) {
        guard let fill = fills[id] else { return check(false, "allowance for an unknown fill") }
        check(hasFlowControl || !hasRanges, "allowance without flow control")
        check(fill.allowance == .max || offset > fill.allowance, "allowance reduced to \(offset)")
        check(offset <= fill.end, "allowance of \(offset) beyond the end \(fill.end)")
        fills[id]?.allowance = offset
        if hasRanges {
            let claimed = min(fill.end, offset + Fill.overshoot)
            fills[id]?.window =
                fill.window.lowerBound..<max(claimed, fill.allowance < .max ? fill.window.upperBound : 0)
        }
    }

    private func begin(_ id: FillLedger.FillID, _ start: FillLedger.Start) {
        switch start.fillRequest {
        case .opening, .confirmation:
            check(!fills.values.contains { $0.isDescribing }, "two concurrent openings")
            fills[id] = Fill(fillRequest: start.fillRequest, window: 0..<0, position: 0)
        case .whole:
            let isNeeded = readers.values.contains { reader in
                guard let place = reader.wanted?.lowerBound else { return false }
                return !fills.values.contains { $0.remaining.contains(place) }
            }
            check(isNeeded && evicting.isEmpty, "unneeded whole transfer, or one during an eviction")
            let end = ledger.length ?? .max
            fills[id] = Fill(fillRequest: start.fillRequest, window: 0..<end, position: 0, end: end)
        case .window(let window):
            checkWindow(window)
            let claim = start.claim ?? window
            check(!claim.isEmpty && claim.clamped(to: window) == claim, "claim \(claim) outside the window \(window)")
            fills[id] = Fill(
                fillRequest: start.fillRequest, window: claim, position: window.lowerBound, end: window.upperBound,
                allowance: start.claim.map { claim in
                    claim.upperBound < window.upperBound
                        ? max(claim.lowerBound, claim.upperBound - Fill.overshoot) : claim.upperBound
                } ?? .max)
        }
    }

    private func checkWindow(_ window: ByteRange) {
        guard !window.isEmpty, window.upperBound <= length else {
            return check(false, "window \(window) outside the length \(length)")
        }
        let present = window.count { isOnDisk[Int($0)] }
        check(present <= settings.gapMergeBytes, "window \(window) contains \(present) cached bytes")
        check(!isOnDisk[Int(window.lowerBound)], "window \(window) starts with a cached byte")
        check(!isOnDisk[Int(window.upperBound - 1)], "window \(window) ends with a cached byte")
        for fill in fills.values where !fill.isCut {
            // An anticipated window may begin within the prospect of a fill, and not within its claim.
            let taken = anticipated == nil ? fill.prospect : fill.reach
            check(!taken.overlaps(window), "window \(window) overlaps a running fill")
        }
        for run in evicting.joined() { check(!run.overlaps(window), "window \(window) overlaps an evicting range") }
        let isWanted = readers.values.contains { reader in
            guard !reader.isPassive, let wanted = reader.wanted, !wanted.isEmpty else { return false }
            let end = ByteRange(offset: wanted.upperBound, length: settings.speculativeBytes).upperBound
            return window.lowerBound >= wanted.lowerBound && window.lowerBound < wanted.upperBound
                && window.upperBound <= end
        }
        let isAnticipated = anticipated.map { $0.clamped(to: window) == window } ?? false
        check(isWanted || isAnticipated, "window \(window) exceeds the wanted ranges")
    }

    // MARK: Actions of readers

    func join() {
        let from = Int64.random(in: 0..<(length + 20), using: &random)
        let window: UpstreamRequest.Window = Bool.random(using: &random) ? .closed(from..<(from + 16)) : .from(from)
        if ledger.isDescribed, ledger.acceptsRanges == true, Int.random(in: 0..<6, using: &random) == 0 {
            return joinPassively(from..<(from + 64))
        }
        let priority: TransferPriority = Bool.random(using: &random) ? .live : .prefetch
        let (id, actions) = ledger.join(
            opening: window, priority: priority, needsConfirmation: Int.random(in: 0..<8, using: &random) == 0,
            waitLimit: Bool.random(using: &random) ? .seconds(20) : nil,
            maxLead: Bool.random(using: &random) ? 40 : nil)
        readers[id] = Reader(opening: window)
        awake.append(id)
        perform(actions)
    }

    /// Another node reads what it can get.
    private func joinPassively(_ range: ByteRange) {
        let found = ledger.obtainable(range)
        for byte in found where !isOnDisk[Int(byte)] {
            check(fills.values.contains { !$0.isCut && $0.prospect.contains(byte) }, "byte \(byte) is not obtainable")
        }
        let next = ledger.firstObtainable(in: range)
        check(found.isEmpty || next == found.lowerBound, "the first obtainable byte of \(found) is \(next ?? -1)")
        guard !found.isEmpty else { return }
        let id = ledger.joinPassively(waitLimit: nil)
        let actions = ledger.want(found, by: id)
        readers[id] = Reader(opening: .closed(found), wanted: found, isPassive: true)
        awake.append(id)
        perform(actions)
    }

    func leave(_ id: FillLedger.ReaderID) {
        guard readers.removeValue(forKey: id) != nil else { return }
        perform(ledger.leave(id))
    }

    /// An active reader checks for available bytes and consumes some of them.
    func look(_ id: FillLedger.ReaderID) {
        guard let reader = readers[id], !reader.isWaiting else { return }
        readers[id]?.hasLooked = true
        let (presence, actions) = ledger.poll(id)
        readers[id]?.isWaiting = presence == .pending
        perform(actions)
        switch presence {
        case .described:
            let from = Int64.random(in: 0..<length, using: &random)
            let end = Bool.random(using: &random) ? from + Int64.random(in: 1...length, using: &random) : .max
            readers[id]?.wanted = from..<end
            perform(ledger.want(from..<end, by: id))
            awake.append(id)
        case .bytes(let run):
            take(run, id, reader)
        case .end:
            served += 1
            check(
                (reader.wanted?.lowerBound ?? 0) >= min(reader.wanted?.upperBound ?? 0, length),
                "end of the body before the end of the wanted range")
            leave(id)
        case .pending: break
        case .over:
            notified += 1
            leave(id)
        }
    }

    private func take(_ run: ByteRange, _ id: FillLedger.ReaderID, _ reader: Reader) {
        guard let wanted = reader.wanted else { return check(false, "bytes for a reader without a wanted range") }
        check(
            run.lowerBound == wanted.lowerBound && !run.isEmpty, "available range \(run) for the wanted range \(wanted)"
        )
        for byte in run where !isOnDisk[Int(byte)] { check(false, "available byte \(byte) is not cached") }
        let position = run.lowerBound + Int64.random(in: 1...run.length, using: &random)
        readers[id]?.wanted = position..<wanted.upperBound
        perform(ledger.advance(id, to: position))
        awake.append(id)
    }

    /// Stops one fill or all fills, as an administrator does.
    func stop() {
        guard Bool.random(using: &random) else { return perform(ledger.stopFills(because: .conflict)) }
        guard let id = fills.keys.min(by: { $0.number < $1.number }) else { return }
        perform(ledger.stopFill(id, because: .conflict))
    }
}
