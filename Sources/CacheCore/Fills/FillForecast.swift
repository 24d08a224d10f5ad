/// The expected upstream requests of one more reader that reads as fast as bytes arrive.
package struct FillForecast: Hashable, Sendable {
    /// The requests of the transfers to begin, in order; at most `listed`.
    package var requests: [FillLedger.FillRequest] = []
    /// The reason for the size of each request in `requests`.
    package var reasons: [FillLedger.SizeReason] = []
    /// The total number of requests; nil if it depends on the upstream's response.
    package var requestCount: Int? = 0
    /// The total number of requested bytes; nil if it depends on the upstream's response.
    package var requestedBytes: Int64? = 0
    /// The fills in flight that the reader would join, in order.
    package var joined: [FillLedger.FillID] = []

    /// The largest number of requests that are listed one by one.
    package static let listed = 100

    /// The confirmation that the read needs from the upstream.
    package enum Revalidation: Hashable, Sendable {
        /// No confirmation.
        case none
        /// A confirmation before the first byte is sent.
        case confirm
        /// A confirmation while the reader is served (stale-while-revalidate).
        case confirmBehind
    }

    package init() {}
}

extension FillLedger {
    /// Simulates a reader of `ranges`, in order, on a copy of the ledger, without other readers and without failures.
    ///
    /// `opening` is the first request if the asset is not known; the forecast then ends with that request.
    package func forecast(
        of ranges: [ByteRange], opening: UpstreamRequest.Window, asking question: FillForecast.Revalidation = .none
    ) -> FillForecast {
        var rehearsal = Rehearsal(of: self, opening: opening, asking: question)
        if isDescribed { for range in ranges { rehearsal.play(range) } }
        return rehearsal.forecast
    }
}

/// A copy of the ledger with a single simulated reader.
private struct Rehearsal {
    /// The result so far.
    private(set) var forecast = FillForecast()
    private var ledger: FillLedger
    private let reader: FillLedger.ReaderID
    /// The fills that were in flight before the simulation.
    private let running: Set<FillLedger.FillID>
    /// The number of simulated fills.
    private var begun = 0

    /// The largest number of simulated fills. The rest of a range is estimated in windows of the largest size.
    private static let limit = 4096

    init(of original: FillLedger, opening: UpstreamRequest.Window, asking question: FillForecast.Revalidation) {
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

    /// Simulates the read of a range. Each fill brings all of its bytes when the reader waits for them.
    mutating func play(_ range: ByteRange) {
        note(ledger.want(range, by: reader))
        restart()
        while let position = ledger.position(of: reader) {
            let (presence, actions) = ledger.poll(reader)
            note(actions)
            switch presence {
            case .bytes(let run): note(ledger.advance(reader, to: run.upperBound))
            case .pending:
                guard begun < Self.limit, let fill = ledger.fill(bringing: position)?.id,
                    ledger.state(of: fill)?.window.map({ $0.upperBound < .max }) ?? false
                else {
                    return reckon(position..<range.upperBound)
                }
                wait(for: fill)
            default: return
            }
        }
    }

    /// If only a whole-body transfer brings the missing bytes, its response is simulated as another generation of the
    /// same length.
    private mutating func restart() {
        guard let question = ledger.describing, ledger.mustRestart(of: reader) else { return }
        ledger.dropExtents()
        answer(question, bringing: 0..<(ledger.length ?? .max))
    }

    /// Simulates the response to an opening or a confirmation.
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

    /// Completes the fill that the reader waits for.
    private mutating func wait(for fill: FillLedger.FillID) {
        if running.contains(fill), !forecast.joined.contains(fill) { forecast.joined.append(fill) }
        if let window = ledger.state(of: fill)?.window { note(ledger.arrived(fill, upTo: window.upperBound)) }
        note(ledger.completed(fill))
    }

    /// Counts the started fills among `actions`.
    private mutating func note(_ actions: [FillLedger.Action]) {
        for case .start(let id, let start) in actions {
            let fillRequest = start.fillRequest
            begun += 1
            if forecast.requests.count < FillForecast.listed {
                forecast.requests.append(fillRequest)
                forecast.reasons.append(start.sizedBy)
            }
            forecast.requestCount = forecast.requestCount.map { $0 + 1 }
            guard !fillRequest.isDescription else { continue }
            request(ledger.state(of: id)?.window)
        }
    }

    /// Adds the bytes of a request. Without a window or an end, the total becomes unknown.
    private mutating func request(_ window: ByteRange?) {
        let bytes = window.flatMap { $0.upperBound < .max ? $0.length : nil }
        forecast.requestedBytes = bytes.flatMap { bytes in forecast.requestedBytes.map { $0 + bytes } }
    }

    /// Estimates the requests for the rest of a range that is too long to simulate.
    private mutating func reckon(_ rest: ByteRange) {
        guard let length = ledger.length else {
            (forecast.requestCount, forecast.requestedBytes) = (nil, nil)
            return
        }
        var known = ledger.extents
        for fill in ledger.fillIDs { ledger.state(of: fill)?.window.map { _ = known.insert($0) } }
        for gap in known.gaps(in: rest.clamped(to: 0..<length)) {
            let size = ledger.settings.largestWindowBytes
            forecast.requestCount = forecast.requestCount.map { $0 + Int((gap.length + size - 1) / size) }
            forecast.requestedBytes = forecast.requestedBytes.map { $0 + gap.length }
        }
    }
}

extension FillLedger {
    fileprivate var fillIDs: [FillID] { (fills + metadataFills).map(\.id) }

    /// Whether the reader waits for a new transfer of the whole body.
    fileprivate func mustRestart(of reader: ReaderID) -> Bool {
        readers[reader].map { $0.needsConfirmation && $0.wanted != nil } ?? false
    }

    /// The bytes that the opening in flight brings of a described asset; nil if there is none.
    fileprivate var openingWindow: ByteRange? {
        guard case .opening(let window)? = metadataFills.first?.fillRequest else { return nil }
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

    /// Removes all cached ranges: a new generation replaces them.
    fileprivate mutating func dropExtents() { extents = ByteRangeSet() }

    /// The opening or confirmation in flight.
    fileprivate var describing: FillID? { metadataFills.first?.id }

    /// The next byte that the reader wants.
    fileprivate func position(of reader: ReaderID) -> Int64? { readers[reader]?.wanted?.lowerBound }
}
