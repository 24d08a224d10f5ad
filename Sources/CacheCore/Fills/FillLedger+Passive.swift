/// Passive readers: they get bytes on disk and of fills in flight, and cause no request to the upstream. Other nodes of a
/// fleet read in this way.
extension FillLedger {
    /// The part of `range` that a passive reader can get now: the bytes from its beginning on that are on disk or that
    /// answered fills bring. The first of them is there or comes soon. Empty: none.
    package func obtainable(_ range: ByteRange) -> ByteRange {
        let range = clampedToEnd(range)
        var offset = range.lowerBound
        while offset < range.upperBound, let end = end(ofObtainableAt: offset, isFirst: offset == range.lowerBound) {
            offset = end
        }
        return range.lowerBound..<min(offset, range.upperBound)
    }

    /// The first byte of `range` from which a passive reader can get bytes; nil: none.
    package func firstObtainable(in range: ByteRange) -> Int64? {
        let range = clampedToEnd(range)
        guard obtainable(range).isEmpty else { return range.lowerBound }
        let coming = fills.filter { $0.answeredAt != nil && !$0.isCut && range.contains($0.prospect.lowerBound) }
            .filter { !$0.prospect.isEmpty }.map(\.prospect.lowerBound)
        return [extents.runs(in: range).first?.lowerBound, coming.min()].compactMap(\.self).min()
    }

    /// The fill without an answer that will bring the byte at `offset`, or describe the asset if that is not described;
    /// nil: there is none.
    package func unansweredFill(for offset: Int64) -> FillID? {
        guard isDescribed else { return metadataFills.first { !$0.isCut }?.id }
        return fills.first { $0.answeredAt == nil && !$0.isCut && $0.prospect.contains(offset) }?.id
    }

    /// Adds a passive reader, which calls `want` next if the asset is described, otherwise after its description. It is
    /// told `.notCached` when it would have to wait for something that no fill in flight brings.
    package mutating func joinPassively(waitLimit: Duration?) -> ReaderID {
        let id = ReaderID(number: nextNumber())
        readers[id] = Reader(
            priority: .live, opening: .closed(0..<1), needsConfirmation: false, waitLimit: waitLimit,
            maxLeadBytes: settings.largestWindowBytes, readAhead: ReadAhead(sizes: settings))
        readers[id]?.isPassive = true
        return id
    }

    /// The number of bytes that a fill of unknown rate may be behind the first byte of a passive reader.
    private static let nearBytes: Int64 = 1 << 20

    /// The end of the extent, or of the bytes of the answered fill, at `offset`; nil: the byte is not obtainable. The first
    /// byte must be claimed and come within about a second; other fills start elsewhere sooner.
    private func end(ofObtainableAt offset: Int64, isFirst: Bool) -> Int64? {
        if let run = extents.run(containing: offset) { return run.upperBound }
        guard let fill = fills.first(where: { $0.answeredAt != nil && !$0.isCut && $0.prospect.contains(offset) })
        else { return nil }
        guard isFirst else { return fill.end }
        let near = fill.rate(at: now).map { max(Self.leastPartBytes, Int64(min($0, 1e15))) } ?? Self.nearBytes
        let isNear = fill.remaining.contains(offset) || offset == fill.position
        return isNear && offset - fill.position <= near ? fill.end : nil
    }

    /// Whether no fill in flight brings the next byte of a passive reader, or the description that it waits for.
    func isLost(to reader: Reader) -> Bool {
        guard isDescribed else { return metadataFills.allSatisfy(\.isCut) }
        guard let position = reader.wanted.map(clampedToEnd)?.lowerBound else { return false }
        return fill(bringing: position) == nil && growingFill(before: position) == nil
    }

    /// Extends the claims of the fills on the path of a passive reader, and ends its wait if no fill brings its next
    /// byte.
    mutating func follow(_ wanted: ByteRange, as id: ReaderID, _ reader: Reader) -> [Action] {
        let actions = walk(wanted, of: reader).actions
        return actions + endLost(id)
    }

    /// Ends the wait of a passive reader that nothing in flight can end.
    mutating func endLost(_ id: ReaderID) -> [Action] {
        guard let reader = readers[id], reader.isPassive, reader.isWaiting, isLost(to: reader) else { return [] }
        return notify(.failed(.notCached), to: id)
    }
}
