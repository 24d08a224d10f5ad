/// Transfers without ranges follow their readers, and slow windows are split.
extension FillLedger {
    /// The expected wait in seconds for a byte of a fill in flight above which the window is split.
    private static let longestWait = 2.0
    /// The smallest part that is split off as a separate request.
    private static let leastSplitBytes: Int64 = 64 << 10

    /// Limits whole-body transfers to the pace of their readers: they may store `maxLead` bytes beyond the furthest reader.
    /// The allowance grows in steps of half of `maxLead`, or to the end of a reader's range.
    mutating func regulate() -> [Action] {
        guard acceptsRanges == false, !readers.isEmpty else { return [] }
        let wishes = readers.values.compactMap(steering)
        guard let most = wishes.map(\.allowed).max() else { return [] }
        var actions: [Action] = []
        for index in fills.indices where !fills[index].isCut {
            let allowance = fills[index].allowance
            let isStep =
                allowance == .max
                || wishes.contains { $0.allowed - allowance >= max(1, min($0.maxLead / 2, $0.end - allowance)) }
            guard isStep, most != allowance else { continue }
            if fills[index].position >= allowance {
                (fills[index].flowingSince, fills[index].flowingFrom) = (now, fills[index].position)
            }
            fills[index].allowance = most
            actions.append(.allow(fills[index].id, upTo: most))
        }
        return actions
    }

    /// The offset up to which bytes may be stored for the reader, and the end of its range; nil if unknown. Before the
    /// description the range of the opening counts as wanted.
    private func steering(of reader: Reader) -> (allowed: Int64, end: Int64, maxLead: Int64)? {
        guard reader.dismissal == nil, let wanted = (reader.wanted ?? reader.opening.wanted).map(clampedToEnd) else {
            return nil
        }
        let end = min(wanted.upperBound, ByteRange(offset: wanted.lowerBound, length: reader.maxLeadBytes).upperBound)
        return (end, wanted.upperBound, reader.maxLeadBytes)
    }

    /// Shortens a slow fill and frees its tail for another fill, if the reader would wait too long for its byte.
    mutating func splitSlowFill(at offset: Int64, for reader: Reader) -> [Action] {
        guard reader.isWaiting, acceptsRanges != false, let fill = fill(bringing: offset),
            let rate = fill.rate(at: now), Double(offset - fill.position) > rate * Self.longestWait,
            fill.window.upperBound - offset >= Self.leastSplitBytes,
            let index = fills.firstIndex(where: { $0.id == fill.id })
        else { return [] }
        fills[index].longestEnd = fill.reach.upperBound
        fills[index].window = fill.window.lowerBound..<offset
        fills[index].end = offset
        return [.shorten(fill.id, to: offset)]
    }
}

extension UpstreamRequest.Window {
    /// From the first byte of the opening without an end, because the reader may want more; nil for a suffix.
    fileprivate var wanted: ByteRange? {
        switch self {
        case .whole: 0..<Int64.max
        case .closed(let range): range.lowerBound..<Int64.max
        case .from(let first): min(first, .max - 1)..<Int64.max
        case .suffix: nil
        }
    }
}
