/// The budget of additional upstream requests of one reader: `Settings.retries`, over all its fills and generations.
extension FillLedger {
    /// The additional requests of one read or item. A reader that continues in the next generation takes them along.
    package struct Attempts: Hashable, Sendable {
        /// The number of additional requests since the last real progress.
        package var count = 0
        /// The end of the bytes that earlier generations have brought. The same bytes of a later generation are no
        /// progress.
        package var reached: Int64 = 0
        /// The failure that was charged last; nil: none.
        var failure: CacheError.Code?
        /// Whether the next request of the reader repeats or continues an earlier one.
        var isRetry = false

        package init() {}

        /// Charges the next request of the reader, which `failure` makes necessary.
        mutating func add(_ failure: CacheError.Code) {
            count += 1
            (self.failure, isRetry) = (failure, true)
        }
    }

    /// A complete response that is shorter than requested costs an additional request if it brings fewer bytes.
    static let leastPartBytes: Int64 = 64 << 10

    /// The additional requests of a reader, for its continuation in another generation. The bytes before its position
    /// are those that this generation has brought.
    package func attempts(of id: ReaderID) -> Attempts {
        guard let reader = readers[id] else { return Attempts() }
        var attempts = reader.attempts
        attempts.reached = max(attempts.reached, reader.wanted?.lowerBound ?? 0)
        return attempts
    }

    /// Whether the fill has brought enough new bytes to a reader that depends on it.
    package func hasProgressed(_ id: FillID) -> Bool {
        guard let fill = fill(id) else { return false }
        let reached = readers.values.filter { $0.dependsOn(fill) }.map(\.attempts.reached).min()
        return fill.hasProgressed(beyond: reached ?? 0)
    }

    /// Charges an additional request to the readers that depend on a broken fill. Real progress refills their budget
    /// first. Readers with an exhausted budget get no further fill: those that wait are notified of `code`, the others
    /// fail when they reach the missing bytes.
    mutating func charge(_ fill: Fill, because code: CacheError.Code) -> [Action] {
        charge(fill, missing: fill.remaining, because: code) { $0.dependsOn(fill) }
    }

    /// Settles a complete fill with the readers of its bytes: progress refills their budget. If the response was
    /// shorter than requested and small, its continuation is charged.
    mutating func settle(_ fill: Fill) -> [Action] {
        let end = fill.position
        guard let requestedEnd = fill.cutShortAt, end < requestedEnd else {
            for (id, reader) in readers where reader.attempts.count > 0 && reader.span?.overlaps(fill.window) ?? true {
                if fill.hasProgressed(beyond: reader.attempts.reached) { readers[id]?.attempts.count = 0 }
            }
            return []
        }
        return charge(fill, missing: end..<requestedEnd, because: .upstreamProtocol, isProgress: false) {
            $0.wanted.map { $0.lowerBound <= end && end < $0.upperBound } ?? true
        }
    }

    private mutating func charge(
        _ fill: Fill, missing: ByteRange, because code: CacheError.Code, isProgress: Bool = true,
        where concerns: (Reader) -> Bool
    ) -> [Action] {
        if readers.isEmpty { unreadFailure = code }
        var actions: [Action] = []
        for (id, reader) in readers where concerns(reader) {
            var attempts = reader.attempts
            if isProgress, fill.hasProgressed(beyond: attempts.reached) { attempts.count = 0 }
            attempts.add(code)
            readers[id]?.attempts = attempts
            guard attempts.count > settings.retries else { continue }
            if !reader.isWaiting { readers[id]?.pendingFailure = PendingFailure(range: missing, code: code) }
            actions += notify(WaitOutcome(code), to: id)
        }
        return actions
    }
}

extension FillLedger.Reader {
    /// Whether the reader depends on the fill, or has yet to state its bytes.
    fileprivate func dependsOn(_ fill: FillLedger.Fill) -> Bool { looksTo(fill) || wanted == nil }
}
