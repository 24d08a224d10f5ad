extension FillLedger {
    /// How long a reader may have to wait for a byte that a running window will bring, before the window is split.
    private static let longestWait = 2.0
    /// A rest shorter than this is not worth a request of its own.
    private static let leastSplitBytes: Int64 = 64 << 10

    /// Holds transfers of the whole to the pace of their readers: they may store a leash beyond the foremost reader. The
    /// allowance grows in steps of half a leash, or up to the end of a reader's range.
    mutating func regulate() -> [Action] {
        guard acceptsRanges == false, !readers.isEmpty else { return [] }
        let wishes = readers.values.compactMap(wish)
        guard let most = wishes.map(\.allowed).max() else { return [] }
        var actions: [Action] = []
        for index in fills.indices where !fills[index].isCut {
            let allowance = fills[index].allowance
            let isStep =
                allowance == .max
                || wishes.contains { $0.allowed - allowance >= max(1, min($0.leash / 2, $0.end - allowance)) }
            guard isStep, most != allowance else { continue }
            if fills[index].position >= allowance {
                (fills[index].flowingSince, fills[index].flowingFrom) = (now, fills[index].position)
            }
            fills[index].allowance = most
            actions.append(.allow(fills[index].id, upTo: most))
        }
        return actions
    }

    /// Up to where bytes may be stored for the reader now, and where its range ends; nil where that cannot be said. One that
    /// has not seen the description yet will want the range of its opening.
    private func wish(of reader: Reader) -> (allowed: Int64, end: Int64, leash: Int64)? {
        guard reader.dismissal == nil, let wanted = (reader.wanted ?? reader.opening.wanted).map(clampedToEnd) else {
            return nil
        }
        let end = min(wanted.upperBound, ByteRange(offset: wanted.lowerBound, length: reader.leashBytes).upperBound)
        return (end, wanted.upperBound, reader.leashBytes)
    }

    /// Leaves the tail of a slow window to another fill, where a reader would wait too long for it.
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
    /// What its reader will want, as far as that can be told.
    fileprivate var wanted: ByteRange? {
        switch self {
        case .whole: 0..<Int64.max
        case .closed(let range): range.lowerBound..<Int64.max
        case .from(let first): min(first, .max - 1)..<Int64.max
        case .suffix: nil
        }
    }
}
