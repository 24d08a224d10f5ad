extension FillLedger {
    /// How a fill in flight stands.
    package struct FillStanding: Hashable, Sendable {
        /// The bytes it brings, to `Int64.max` where their end is not known; nil while only the upstream can say.
        package var window: ByteRange?
        /// The next byte it brings.
        package var position: Int64
        /// The readers that want a byte, or the word, that it has yet to bring.
        package var readers: Int
    }

    /// How the fill stands; nil where it is over.
    package func standing(of id: FillID) -> FillStanding? {
        guard let fill = fill(id) else { return nil }
        let isQuestion = fill.window.isEmpty
        let wanting = readers.values.count { $0.looksTo(fill) }
        let window = isQuestion ? nil : fill.window.lowerBound..<max(fill.end, fill.window.upperBound)
        return FillStanding(window: window, position: fill.position, readers: wanting)
    }

    /// The same with no reader: what is on disk and what is on its way, whoever it is for. What is just leaving the disk
    /// has left it.
    package var withoutReaders: FillLedger {
        var ledger = self
        ledger.readers = [:]
        ledger.leases = [:]
        ledger.leaving = ByteRangeSet()
        ledger.unclaimed = ByteRangeSet()
        // Nor does it tell which of the fills are slow.
        for index in ledger.fills.indices { ledger.fills[index].flowingSince = ledger.now }
        return ledger
    }
}
