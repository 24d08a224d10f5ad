import CacheCore
import Testing
import TestChance

/// A driver of one `FillLedger` and a picture of it in plain arrays: an upstream, a disk of bytes, readers and fills.
///
/// After every step the ledger must agree with the picture, and nobody may wait for what nobody will bring.
final class FillLedgerModel {
    struct Reader {
        var opening: UpstreamRequest.Window
        var wanted: ByteRange?
        /// It saw nothing and was not woken since.
        var isWaiting = false
        var hasLooked = false
    }

    struct Fill {
        var wish: FillLedger.Wish
        /// Empty until an opening's head has come.
        var window: ByteRange
        var position: Int64
        var longestEnd: Int64 = 0
        var isCut = false
        var isPaused = false

        var isDescribing: Bool { window.isEmpty }
        var remaining: ByteRange { position..<max(position, window.upperBound) }
        var reach: ByteRange { position..<max(position, window.upperBound, longestEnd) }
    }

    let length: Int64
    let hasRanges: Bool
    let tellsLength: Bool
    let settings: FillLedger.Settings
    /// Whether its transfers can end early and keep their connection.
    let isMultiplexed: Bool
    var ledger: FillLedger
    var isOnDisk: [Bool]
    /// Bytes on the disk that nobody claims.
    var isNobodys: [Bool]
    var readers: [FillLedger.ReaderID: Reader] = [:]
    var fills: [FillLedger.FillID: Fill] = [:]
    var leases: [FillLedger.LeaseID: ByteRange] = [:]
    var leaving: [[ByteRange]] = []
    /// Woken, or new: they look at their presence when they come to it.
    var awake: [FillLedger.ReaderID] = []
    var told = 0, served = 0
    var random: SeededRandom
    var complaints: [String] = []

    init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        length = Int64.random(in: 1...900, using: &random)
        hasRanges = Int.random(in: 0..<4, using: &random) > 0
        tellsLength = hasRanges || Bool.random(using: &random)
        isMultiplexed = Bool.random(using: &random)
        settings = FillLedger.Settings(
            firstWindowBytes: 16, largestWindowBytes: 128, retries: 2,
            finishIfRemainingBytes: [0, 20].randomElement(using: &random) ?? 0,
            finishIfRemainingPercent: [nil, 30].randomElement(using: &random) ?? nil,
            gapMergeBytes: [0, 9].randomElement(using: &random) ?? 0,
            speculativeBytes: [0, 0, 10].randomElement(using: &random) ?? 0, pieceBytes: 16)
        ledger = FillLedger(settings: settings)
        isOnDisk = Array(repeating: false, count: Int(length))
        isNobodys = isOnDisk
    }

    func check(_ holds: Bool, _ complaint: @autoclosure () -> String) {
        if !holds { complaints.append(complaint()) }
    }

    // MARK: What the ledger asks for

    func perform(_ actions: [FillLedger.Action]) {
        var failed: [FillLedger.ReaderID] = []
        for action in actions {
            switch action {
            case .start(let id, let start): begin(id, start.wish)
            case .cut(let id):
                check(fills[id] != nil, "a cut of a fill that is not there")
                fills[id]?.isCut = true
            case .promote(let id, _): check(fills[id] != nil, "a promotion of a fill that is not there")
            case .pause(let id):
                check(fills[id]?.isPaused == false && !hasRanges, "a pause of what runs in windows, or rests already")
                fills[id]?.isPaused = true
            case .resume(let id):
                check(fills[id]?.isPaused == true, "what runs is resumed")
                fills[id]?.isPaused = false
            case .shorten(let id, let end):
                check(isMultiplexed && fills[id]?.remaining.contains(end) == true, "a fill is shortened to \(end)")
                guard let fill = fills[id] else { break }
                fills[id]?.longestEnd = fill.reach.upperBound
                fills[id]?.window = fill.window.lowerBound..<end
            case .tell(let id, let outcome): if tell(id, outcome) { failed.append(id) }
            }
        }
        for id in failed { leave(id) }
    }

    /// Whether the reader gives up on it.
    private func tell(_ id: FillLedger.ReaderID, _ outcome: WaitOutcome) -> Bool {
        check(readers[id] != nil, "a reader is told something that is gone")
        guard outcome != .writerVanished else { return false }
        let reader = readers[id]
        check(reader?.isWaiting == true || reader?.hasLooked == false, "a reader is told that does not wait")
        readers[id]?.isWaiting = false
        guard outcome.failure != nil else {
            awake.append(id)
            return false
        }
        told += 1
        return true
    }

    private func begin(_ id: FillLedger.FillID, _ wish: FillLedger.Wish) {
        switch wish {
        case .opening, .confirmation:
            check(!fills.values.contains { $0.isDescribing }, "two openings at once")
            fills[id] = Fill(wish: wish, window: 0..<0, position: 0)
        case .whole:
            let isNeeded = readers.values.contains { reader in
                guard let place = reader.wanted?.lowerBound else { return false }
                return !fills.values.contains { $0.remaining.contains(place) }
            }
            check(isNeeded && leaving.isEmpty, "a sequential transfer of what is on the way, or leaving")
            fills[id] = Fill(wish: wish, window: 0..<(ledger.length ?? .max), position: 0)
        case .window(let window):
            checkWindow(window)
            fills[id] = Fill(wish: wish, window: window, position: window.lowerBound)
        }
    }

    private func checkWindow(_ window: ByteRange) {
        guard !window.isEmpty, window.upperBound <= length else {
            return check(false, "a window of \(window) in \(length)")
        }
        let present = window.count { isOnDisk[Int($0)] }
        check(present <= settings.gapMergeBytes, "\(present) bytes of \(window) are on disk already")
        check(!isOnDisk[Int(window.lowerBound)], "\(window) begins on disk")
        check(!isOnDisk[Int(window.upperBound - 1)], "\(window) ends on disk")
        for fill in fills.values { check(!fill.remaining.overlaps(window), "\(window) is on the way") }
        for run in leaving.joined() { check(!run.overlaps(window), "\(window) has not left yet") }
        let isWanted = readers.values.contains { reader in
            guard let wanted = reader.wanted, !wanted.isEmpty else { return false }
            let end = ByteRange(offset: wanted.upperBound, length: settings.speculativeBytes).upperBound
            return window.lowerBound >= wanted.lowerBound && window.lowerBound < wanted.upperBound
                && window.upperBound <= end
        }
        check(isWanted, "nobody wanted all of \(window)")
    }

    // MARK: What readers do

    func join() {
        let from = Int64.random(in: 0..<(length + 20), using: &random)
        let window = UpstreamRequest.Window.closed(from..<(from + 16))
        let priority: TransferPriority = Bool.random(using: &random) ? .live : .prefetch
        let (id, actions) = ledger.join(
            opening: window, priority: priority, needsConfirmation: Int.random(in: 0..<8, using: &random) == 0,
            waitLimit: Bool.random(using: &random) ? .seconds(20) : nil,
            leash: Bool.random(using: &random) ? 40 : nil)
        readers[id] = Reader(opening: window)
        awake.append(id)
        perform(actions)
    }

    func leave(_ id: FillLedger.ReaderID) {
        guard readers.removeValue(forKey: id) != nil else { return }
        perform(ledger.leave(id))
    }

    /// A reader that is awake looks at what there is for it, and takes some.
    func look(_ id: FillLedger.ReaderID) {
        guard let reader = readers[id], !reader.isWaiting else { return }
        readers[id]?.hasLooked = true
        let (presence, actions) = ledger.presence(for: id)
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
            check((reader.wanted?.lowerBound ?? 0) >= min(reader.wanted?.upperBound ?? 0, length), "an early end")
            leave(id)
        case .pending: break
        case .over:
            told += 1
            leave(id)
        }
    }

    private func take(_ run: ByteRange, _ id: FillLedger.ReaderID, _ reader: Reader) {
        guard let wanted = reader.wanted else { return check(false, "bytes for nobody") }
        check(run.lowerBound == wanted.lowerBound && !run.isEmpty, "\(run) for a reader of \(wanted)")
        for byte in run where !isOnDisk[Int(byte)] { check(false, "byte \(byte) is not on disk") }
        let position = run.lowerBound + Int64.random(in: 1...run.length, using: &random)
        readers[id]?.wanted = position..<wanted.upperBound
        perform(ledger.advance(id, to: position))
        awake.append(id)
    }

    // MARK: What the upstream does

    /// A fill goes one step on: its head, some bytes, or its end.
    func proceed(_ id: FillLedger.FillID, mayBreak: Bool) {
        guard let fill = fills[id] else { return }
        if fill.isCut || (mayBreak && Int.random(in: 0..<6, using: &random) == 0) { return end(id, breaks: true) }
        if fill.isDescribing { return describe(id, fill) }
        guard !fill.isPaused else { return }
        let end = min(fill.window.upperBound, length)
        guard fill.position < end else { return self.end(id, breaks: false) }
        let position = fill.position + Int64.random(in: 1...(end - fill.position), using: &random)
        // What is written where bytes are just leaving goes with them.
        let gone = ByteRangeSet(leaving.joined())
        for byte in fill.position..<position {
            isOnDisk[Int(byte)] = gone.run(containing: byte) == nil || isOnDisk[Int(byte)]
            isNobodys[Int(byte)] = !isOnDisk[Int(byte)]
        }
        fills[id]?.position = position
        perform(ledger.arrived(id, upTo: position))
        ledger.disown(gone.runs(in: fill.position..<position))
        sweep()
    }

    private func describe(_ id: FillLedger.FillID, _ fill: Fill) {
        let told = tellsLength ? length : nil
        guard case .opening(.closed(let asked)) = fill.wish else {
            perform(ledger.confirmed(length: told))
            fills[id] = nil
            return perform(ledger.completed(id))
        }
        guard !hasRanges || asked.lowerBound < length else {
            fills[id] = nil
            return perform(ledger.broke(id, with: .rangeNotSatisfiable(length: length), isWorthRetrying: false))
        }
        let window = hasRanges ? asked.clamped(to: 0..<length) : 0..<(told ?? .max)
        fills[id]?.window = window
        fills[id]?.position = window.lowerBound
        perform(
            ledger.began(
                id, window: window, length: told, acceptsRanges: hasRanges, firstByte: .milliseconds(300),
                isMultiplexed: isMultiplexed))
    }

    private func end(_ id: FillLedger.FillID, breaks: Bool) {
        guard let fill = fills.removeValue(forKey: id) else { return }
        guard breaks else {
            perform(ledger.completed(id))
            return sweep()
        }
        let isRetryable = Int.random(in: 0..<8, using: &random) > 0
        let code: CacheError.Code = fill.isCut ? .cancelled : .upstreamUnreachable()
        perform(ledger.broke(id, with: code, isWorthRetrying: isRetryable))
        sweep()
    }

    /// An administrator stops a fill, or all of them.
    func stop() {
        guard Bool.random(using: &random) else { return perform(ledger.stopFills(because: .conflict)) }
        guard let id = fills.keys.min(by: { $0.number < $1.number }) else { return }
        perform(ledger.stopFill(id, because: .conflict))
    }
}
