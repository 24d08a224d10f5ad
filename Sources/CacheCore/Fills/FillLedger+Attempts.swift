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
            actions += fail(id, of: missing, because: code)
        }
        return actions
    }

    /// Ends a reader's wait for missing bytes with a failure. A reader that does not wait fails when it reaches them. A
    /// patient reader goes on waiting, and repeats its request later.
    mutating func fail(_ id: ReaderID, of missing: ByteRange, because code: CacheError.Code) -> [Action] {
        guard let reader = readers[id] else { return [] }
        guard reader.isWaiting else {
            readers[id]?.pendingFailure = PendingFailure(range: missing, code: code)
            return []
        }
        guard isPatient(reader, after: code), let wanted = reader.wanted else {
            return notify(WaitOutcome(code), to: id)
        }
        let waited = now - (reader.waitingSince ?? now)
        let pause = min(max(waited / 2, .milliseconds(500)), .seconds(4))
        let range = wanted.lowerBound..<max(missing.upperBound, wanted.lowerBound + 1)
        readers[id]?.pendingFailure = PendingFailure(range: range, code: code, until: now + pause)
        return []
    }

    /// Whether a reader waits for an upstream that cannot be reached: a client that has received the beginning of its
    /// response would have to play without the rest, or to begin again. The reader's limit ends the wait.
    func isPatient(_ reader: Reader, after code: CacheError.Code) -> Bool {
        guard case .upstreamUnreachable = code, settings.retries > 0, reader.waitLimit != nil, !reader.isPassive
        else { return false }
        return (reader.span?.lowerBound ?? .max) < (reader.wanted?.lowerBound ?? 0)
    }

    /// Repeats the requests of the patient readers with a pause that has ended.
    mutating func repeatPatiently() -> [Action] {
        let due = readers.filter { _, reader in
            reader.isWaiting && reader.pendingFailure?.until.map { now >= $0 } ?? false
        }
        return due.keys.sorted { $0.number < $1.number }.flatMap { id -> [Action] in
            readers[id]?.pendingFailure = nil
            readers[id]?.attempts.count = settings.retries
            return planOrDescribe(for: id)
        }
    }
}

extension FillLedger.Reader {
    /// Whether the reader depends on the fill, or has yet to state its bytes.
    fileprivate func dependsOn(_ fill: FillLedger.Fill) -> Bool { looksTo(fill) || wanted == nil }
}
