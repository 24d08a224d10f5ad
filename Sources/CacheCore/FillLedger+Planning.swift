extension FillLedger {
    /// What is on disk of `ranges`, and whether a fill in flight brings a part of the rest.
    package func lookUp(_ ranges: [ByteRange]) -> (cached: ByteRangeSet, isJoining: Bool) {
        var cached = ByteRangeSet()
        var isJoining = false
        for range in ranges.map(clampedToEnd) {
            for run in extents.runs(in: range) { cached.insert(run) }
            isJoining = isJoining || fills.contains { $0.remaining.overlaps(range) && !$0.remaining.isEmpty }
        }
        return (cached, isJoining)
    }

    func lookUp(_ reader: Reader) -> Presence {
        guard isDescribed, !reader.needsConfirmation else { return .pending }
        guard let wanted = reader.wanted.map(clampedToEnd) else { return .described }
        guard !wanted.isEmpty else { return .end }
        return extents.run(containing: wanted.lowerBound).map { .bytes($0.clamped(to: wanted)) } ?? .pending
    }

    /// Starts whatever tells an undescribed, or unconfirmed, reader what it is dealing with; joins it if it runs already.
    mutating func describe(for id: ReaderID) -> [Action] {
        guard let reader = readers[id] else { return [] }
        if !isDescribed {
            if let running = fills.first(where: \.isDescribing) { return promotion(of: running, to: reader.priority) }
            return [start(.opening(reader.opening), window: 0..<0, priority: reader.priority)]
        }
        guard reader.needsConfirmation, !fills.contains(where: { $0.wish == .confirmation }) else { return [] }
        return [start(.confirmation, window: 0..<0, priority: reader.priority)]
    }

    mutating func planForAll() -> [Action] {
        var actions: [Action] = []
        for id in readers.filter({ !$0.value.isTold }).keys.sorted(by: { $0.number < $1.number }) {
            actions += planOrDescribe(for: id)
        }
        return actions
    }

    mutating func planOrDescribe(for id: ReaderID) -> [Action] {
        guard let reader = readers[id] else { return [] }
        return reader.wanted == nil || reader.needsConfirmation ? describe(for: id) : plan(for: id)
    }

    /// Asks for the reader's next window, if it is time: when nothing of it is on the way, or when what lies ahead of the
    /// reader is less than half its last window, so that the stream never pauses for a round trip.
    mutating func plan(for id: ReaderID) -> [Action] {
        guard isDescribed, var reader = readers[id], let wanted = reader.wanted.map(clampedToEnd), !wanted.isEmpty
        else {
            return []
        }
        let (frontier, promotions) = walk(from: wanted.lowerBound, to: wanted.upperBound, priority: reader.priority)
        guard frontier < wanted.upperBound, !leaving.contains(frontier..<(frontier + 1)) else { return promotions }
        let ahead = frontier - wanted.lowerBound
        guard ahead == 0 || ahead < reader.lastWindowBytes / 2 else { return promotions }
        guard acceptsRanges != false else {
            guard fills.isEmpty else { return promotions }
            return promotions + [start(.whole, window: 0..<(length ?? .max), priority: reader.priority)]
        }
        let window = frontier..<windowEnd(from: frontier, size: reader.nextWindowBytes, limit: wanted.upperBound)
        reader.lastWindowBytes = reader.nextWindowBytes
        reader.nextWindowBytes = min(reader.nextWindowBytes * 2, settings.largestWindowBytes)
        readers[id] = reader
        let priority = ahead == 0 ? reader.priority : max(reader.priority, .readAhead)
        return promotions + [start(.window(window), window: window, priority: priority)]
    }

    /// Whether some reader still wants a byte, or the head, that the fill brings.
    func isWanted(_ fill: Fill) -> Bool {
        readers.values.contains { reader in
            guard !fill.isDescribing, let wanted = reader.wanted else { return true }
            return wanted.overlaps(fill.remaining)
        }
    }

    /// Whether a window that nobody wants is finished all the same: a player's, of bounded size, with little missing. It
    /// was asked for already; cut, it would be asked for again, and take the connection with it.
    func isWorthFinishing(_ fill: Fill) -> Bool {
        if fill.isBehind { return true }
        guard fill.priority != .prefetch, !fill.isDescribing, acceptsRanges != false else { return false }
        return fill.remaining.length <= settings.finishIfRemainingBytes
    }

    /// Whether a fill in flight still brings what the reader waits for, or will be asked for once it has left the disk.
    func isAwaited(_ reader: Reader) -> Bool {
        guard let wanted = reader.wanted, !reader.needsConfirmation else {
            return fills.contains(where: \.isDescribing)
        }
        let position = wanted.lowerBound
        return leaving.run(containing: position) != nil || fills.contains { $0.remaining.contains(position) }
    }

    func clampedToEnd(_ range: ByteRange) -> ByteRange {
        guard let length else { return range }
        return min(range.lowerBound, length)..<min(range.upperBound, length)
    }

    /// The first byte from `start` on that is neither on disk nor on the way.
    private mutating func walk(
        from start: Int64, to end: Int64, priority: TransferPriority
    ) -> (frontier: Int64, promotions: [Action]) {
        var offset = start
        var promotions: [Action] = []
        while offset < end {
            if let run = extents.run(containing: offset) {
                offset = run.upperBound
            } else if let fill = fills.first(where: { $0.remaining.contains(offset) }) {
                if offset == start { promotions += promotion(of: fill, to: priority) }
                offset = fill.window.upperBound
            } else {
                break
            }
        }
        return (offset, promotions)
    }

    /// The least of the window's size, what is wanted, the next extent, the next fill and what is leaving.
    private func windowEnd(from start: Int64, size: Int64, limit: Int64) -> Int64 {
        var end = min(ByteRange(offset: start, length: size).upperBound, limit)
        if let next = extents.run(startingFrom: start) { end = min(end, next.lowerBound) }
        if let next = leaving.run(startingFrom: start) { end = min(end, next.lowerBound) }
        for fill in fills where fill.window.lowerBound > start { end = min(end, fill.window.lowerBound) }
        return end
    }

    private mutating func promotion(of fill: Fill, to priority: TransferPriority) -> [Action] {
        guard priority < fill.priority, let index = fills.firstIndex(where: { $0.id == fill.id }) else { return [] }
        fills[index].priority = priority
        return [.promote(fill.id, priority)]
    }

    mutating func start(
        _ wish: Wish, window: ByteRange, priority: TransferPriority, isBehind: Bool = false
    ) -> Action {
        let id = FillID(number: nextNumber())
        let isDescribing =
            switch wish {
            case .opening, .confirmation: true
            case .window, .whole: false
            }
        fills.append(
            Fill(
                id: id, wish: wish, priority: priority, window: window, position: window.lowerBound,
                isDescribing: isDescribing, isBehind: isBehind))
        return .start(id, wish, priority, attempt: attempt(of: wish))
    }
}

extension FillLedger.Fill {
    /// The bytes it has yet to bring.
    var remaining: ByteRange { min(position, window.upperBound)..<window.upperBound }
}

extension FillLedger.Wish {
    /// The byte it begins at; nil where only the upstream can say.
    package var place: Int64? { if case .window(let range) = self { range.lowerBound } else { nil } }
}
