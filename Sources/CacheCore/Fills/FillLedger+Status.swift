/// Read-only views of the ledger for statistics and forecasts.
extension FillLedger {
    /// The state of a fill in flight.
    package struct FillState: Hashable, Sendable {
        /// The bytes that the fill brings, up to `Int64.max` if the end is unknown; nil for an opening or a
        /// confirmation without a response.
        package var window: ByteRange?
        /// The offset of the next byte.
        package var position: Int64
        /// The number of readers that depend on a byte, or the description, that the fill has yet to bring.
        package var readers: Int
    }

    /// The state of the fill; nil if it has ended.
    package func state(of id: FillID) -> FillState? {
        guard let fill = fill(id) else { return nil }
        let isQuestion = fill.window.isEmpty
        let wanting = readers.values.count { $0.looksTo(fill) }
        let window = isQuestion ? nil : fill.window.lowerBound..<max(fill.end, fill.window.upperBound)
        return FillState(window: window, position: fill.position, readers: wanting)
    }

    /// The readers that want bytes, or the description, that the fill has yet to bring.
    package func readers(lookingTo id: FillID) -> [ReaderID] {
        guard let fill = fill(id) else { return [] }
        return readers.filter { $0.value.looksTo(fill) }.map(\.key)
    }

    /// The uptime when a reader that waits for an unreachable upstream repeats its request; nil: it does not wait for
    /// one.
    package func repeatsAt(_ id: ReaderID) -> Duration? {
        readers[id].flatMap { $0.isWaiting ? $0.pendingFailure?.until : nil }
    }

    /// Whether the reader wants bytes, or the description, that the fill has yet to bring.
    package func reader(_ reader: ReaderID, looksTo id: FillID) -> Bool {
        guard let fill = fill(id), let reader = readers[reader] else { return false }
        return reader.looksTo(fill)
    }

    /// A copy without readers and leases: cached bytes and fills in flight only. Evicting and orphaned ranges count as
    /// removed.
    package var withoutReaders: FillLedger {
        var ledger = self
        ledger.readers = [:]
        ledger.leases = [:]
        ledger.evicting = ByteRangeSet()
        ledger.orphaned = ByteRangeSet()
        // Without readers no fill counts as slow.
        for index in ledger.fills.indices { ledger.fills[index].flowingSince = ledger.now }
        return ledger
    }
}
