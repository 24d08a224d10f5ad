/// What one more reader would cost, if it read as fast as bytes come.
package struct FillForecast: Hashable, Sendable {
    /// The transfers that would be begun, in order; the first `listed` of them.
    package var requests: [FillLedger.Wish] = []
    /// Why each of them has its size.
    package var reasons: [FillLedger.SizeReason] = []
    /// How many there would be in all; nil where only the upstream can say.
    package var requestCount: Int? = 0
    /// The bytes they would bring together; nil likewise.
    package var requestedBytes: Int64? = 0
    /// Fills under way that would be waited for, in order.
    package var joined: [FillLedger.FillID] = []

    /// As many requests are listed one by one.
    package static let listed = 100

    /// What the upstream is asked besides bytes.
    package enum Question: Hashable, Sendable {
        case none
        /// Whether the generation is still the upstream's, before the first byte is sent.
        case confirm
        /// Likewise, while the reader is served.
        case confirmBehind
    }

    package init() {}
}

extension FillLedger {
    /// What a reader of `ranges`, in order, would come to: the ledger's own answers, played through on a copy of it with
    /// nobody else there and nothing going wrong.
    ///
    /// `opening` is what is asked for first where the asset is not known, and all that can be told then.
    package func forecast(
        of ranges: [ByteRange], opening: UpstreamRequest.Window, asking question: FillForecast.Question = .none
    ) -> FillForecast {
        var rehearsal = Rehearsal(of: self, opening: opening, asking: question)
        if isDescribed { for range in ranges { rehearsal.play(range) } }
        return rehearsal.forecast
    }
}

/// A ledger's copy, and the one reader in it.
private struct Rehearsal {
    private(set) var forecast = FillForecast()
    private var ledger: FillLedger
    private let reader: FillLedger.ReaderID
    private let running: Set<FillLedger.FillID>
    private var begun = 0

    /// As many requests are played through; what lies behind them is reckoned in windows of the largest size.
    private static let limit = 4096

    init(of original: FillLedger, opening: UpstreamRequest.Window, asking question: FillForecast.Question) {
        ledger = original.withoutReaders
        running = Set(original.fillIDs)
        let (id, actions) = ledger.join(
            opening: opening, priority: .live, needsConfirmation: question == .confirm)
        reader = id
        note(actions)
        if let fill = ledger.describing, running.contains(fill), !ledger.isDescribed || question == .confirm {
            forecast.joined.append(fill)
        }
        guard ledger.isDescribed else {
            (forecast.requestCount, forecast.requestedBytes) = (nil, nil)
            return
        }
        if question == .confirmBehind { note(ledger.confirmBehind()) }
        if let fill = ledger.describing, let window = ledger.openingWindow {
            answer(fill, bringing: window)
        } else {
            note(ledger.confirmed(length: ledger.length, canBeContinued: ledger.canBeContinued))
            if let fill = ledger.describing { note(ledger.completed(fill)) }
        }
    }

    /// Reads the range to its end; each fill brings all it was begun for as soon as its bytes are waited for.
    mutating func play(_ range: ByteRange) {
        note(ledger.want(range, by: reader))
        restart()
        while let position = ledger.position(of: reader) {
            let (presence, actions) = ledger.presence(for: reader)
            note(actions)
            switch presence {
            case .bytes(let run): note(ledger.advance(reader, to: run.upperBound))
            case .pending:
                guard begun < Self.limit, let fill = ledger.fill(bringing: position)?.id,
                    ledger.standing(of: fill)?.window.map({ $0.upperBound < .max }) ?? false
                else {
                    return reckon(position..<range.upperBound)
                }
                wait(for: fill)
            default: return
            }
        }
    }

    /// Where only a transfer of the whole brings missing bytes, its answer is another generation of the same length.
    private mutating func restart() {
        guard let question = ledger.describing, ledger.mustRestart(of: reader) else { return }
        ledger.dropExtents()
        answer(question, bringing: 0..<(ledger.length ?? .max))
    }

    private mutating func answer(_ question: FillLedger.FillID, bringing window: ByteRange) {
        note(
            ledger.began(
                question, window: window, length: ledger.length, acceptsRanges: ledger.acceptsRanges,
                canBeContinued: ledger.canBeContinued))
        if !running.contains(question) {
            request(window)
        } else if !forecast.joined.contains(question) {
            forecast.joined.append(question)
        }
    }

    private mutating func wait(for fill: FillLedger.FillID) {
        if running.contains(fill), !forecast.joined.contains(fill) { forecast.joined.append(fill) }
        if let window = ledger.standing(of: fill)?.window { note(ledger.arrived(fill, upTo: window.upperBound)) }
        note(ledger.completed(fill))
    }

    private mutating func note(_ actions: [FillLedger.Action]) {
        for case .start(let id, let start) in actions {
            let wish = start.wish
            begun += 1
            if forecast.requests.count < FillForecast.listed {
                forecast.requests.append(wish)
                forecast.reasons.append(start.sizedBy)
            }
            forecast.requestCount = forecast.requestCount.map { $0 + 1 }
            guard !wish.isDescription else { continue }
            request(ledger.standing(of: id)?.window)
        }
    }

    /// Adds bytes that a request brings; nil, or without an end: only the upstream can say how many.
    private mutating func request(_ window: ByteRange?) {
        let bytes = window.flatMap { $0.upperBound < .max ? $0.length : nil }
        forecast.requestedBytes = bytes.flatMap { bytes in forecast.requestedBytes.map { $0 + bytes } }
    }

    /// What is left of a range that is too long to be played through.
    private mutating func reckon(_ rest: ByteRange) {
        guard let length = ledger.length else {
            (forecast.requestCount, forecast.requestedBytes) = (nil, nil)
            return
        }
        var known = ledger.extents
        for fill in ledger.fillIDs { ledger.standing(of: fill)?.window.map { _ = known.insert($0) } }
        for gap in known.gaps(in: rest.clamped(to: 0..<length)) {
            let size = ledger.settings.largestWindowBytes
            forecast.requestCount = forecast.requestCount.map { $0 + Int((gap.length + size - 1) / size) }
            forecast.requestedBytes = forecast.requestedBytes.map { $0 + gap.length }
        }
    }
}

extension FillLedger {
    fileprivate var fillIDs: [FillID] { (fills + questions).map(\.id) }

    /// Whether the reader waits for a transfer of the whole.
    fileprivate func mustRestart(of reader: ReaderID) -> Bool {
        readers[reader].map { $0.needsConfirmation && $0.wanted != nil } ?? false
    }

    /// The bytes that the opening under way brings of a described asset.
    fileprivate var openingWindow: ByteRange? {
        guard case .opening(let window)? = questions.first?.wish else { return nil }
        let known = 0..<(length ?? .max)
        let brought: ByteRange =
            switch window {
            case .whole: known
            case .closed(let range): range.clamped(to: known)
            case .from(let first): min(first, known.upperBound)..<known.upperBound
            case .suffix(let count): max(0, known.upperBound - count)..<known.upperBound
            }
        return brought.isEmpty ? nil : brought
    }

    fileprivate mutating func dropExtents() { extents = ByteRangeSet() }

    /// The fill that tells what the asset is, or whether it still is.
    fileprivate var describing: FillID? { questions.first?.id }

    /// The next byte that the reader wants.
    fileprivate func position(of reader: ReaderID) -> Int64? { readers[reader]?.wanted?.lowerBound }
}
