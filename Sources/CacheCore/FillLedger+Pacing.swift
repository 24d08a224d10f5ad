extension FillLedger {
    /// How long a reader may have to wait for a byte that a running window will bring, before the window is split.
    private static let longestWait = 2.0
    /// A rest shorter than this is not worth a request of its own.
    private static let leastSplitBytes: Int64 = 64 << 10

    /// Holds transfers that cannot be asked for in windows to the pace of their readers: one that is a leash ahead of
    /// everybody rests, until somebody has gone through half of it.
    mutating func regulate() -> [Action] {
        guard acceptsRanges == false, !readers.isEmpty else { return [] }
        var actions: [Action] = []
        for index in fills.indices {
            let position = fills[index].position
            let wishes = readers.values.compactMap { room(for: $0, from: position) }
            if fills[index].isPaused {
                guard wishes.contains(where: { $0.room >= min($0.leash / 2, $0.rest) && $0.room > 0 }) else { continue }
                fills[index].isPaused = false
                actions.append(.resume(fills[index].id))
            } else if !wishes.isEmpty, wishes.allSatisfy({ $0.room <= 0 }) {
                fills[index].isPaused = true
                actions.append(.pause(fills[index].id))
            }
        }
        return actions
    }

    /// How many bytes from `position` on may be fetched for the reader now, and how many it wants of what follows; nil
    /// where that cannot be said. Who has not seen the description yet will want what it opened with.
    private func room(
        for reader: Reader, from position: Int64
    ) -> (room: Int64, rest: Int64, leash: Int64)? {
        guard reader.dismissal == nil, let wanted = (reader.wanted ?? reader.opening.wanted).map(clampedToEnd) else {
            return nil
        }
        let end = min(wanted.upperBound, ByteRange(offset: wanted.lowerBound, length: reader.leashBytes).upperBound)
        return (end - position, max(0, wanted.upperBound - position), reader.leashBytes)
    }

    /// Gives the tail of a slow window up to a fill of its own, where a reader would wait too long for it and the transfer
    /// can end early without losing its connection.
    mutating func splitSlowFill(at offset: Int64, for reader: Reader) -> [Action] {
        guard reader.isWaiting, acceptsRanges != false, let fill = fill(bringing: offset), fill.canBeShortened,
            let rate = fill.rate(at: now), Double(offset - fill.position) > rate * Self.longestWait,
            fill.window.upperBound - offset >= Self.leastSplitBytes,
            let index = fills.firstIndex(where: { $0.id == fill.id })
        else { return [] }
        fills[index].longestEnd = fill.reach.upperBound
        fills[index].window = fill.window.lowerBound..<offset
        return [.shorten(fill.id, to: offset)]
    }
}

extension UpstreamRequest.Window {
    /// What its reader will want, as far as that can be told.
    fileprivate var wanted: ByteRange? {
        switch self {
        case .whole: 0..<Int64.max
        case .closed(let range): range.lowerBound..<Int64.max
        case .suffix: nil
        }
    }
}
