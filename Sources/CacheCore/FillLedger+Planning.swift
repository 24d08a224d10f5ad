extension FillLedger {
    /// The most windows that one look asks for.
    private static let windowsAtOnce = 4
    /// A shorter round trip is not worth fetching a byte twice for.
    private static let longRoundTrip = Duration.milliseconds(5)

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

    /// Starts whatever tells an undescribed, or unconfirmed, reader what it is dealing with; joins it if it runs already.
    mutating func describe(for id: ReaderID) -> [Action] {
        guard let reader = readers[id], reader.dismissal == nil else { return [] }
        if !isDescribed {
            if let running = questions.first { return promotion(of: running, to: reader.priority) }
            return [start(.opening(reader.opening), window: 0..<0, priority: reader.priority)]
        }
        guard reader.needsConfirmation else { return [] }
        if let running = questions.first { return promotion(of: running, to: reader.priority) }
        return [start(question(of: reader), window: 0..<0, priority: reader.priority)]
    }

    /// How the upstream is asked whether the generation is still its own. Where no byte of it is on disk there is nothing to
    /// confirm; where windows are of no use, the whole is asked for.
    private func question(of reader: Reader) -> Wish {
        guard !extents.isEmpty || !fills.isEmpty else { return .opening(reader.opening) }
        return .confirmation(canBeContinued && acceptsRanges != false ? reader.opening : .whole)
    }

    /// Whether `ranges` can be had from a new transfer of the whole alone: something of them is neither on disk nor on the
    /// way, and nothing that is fetched now may stand beside the bytes on disk.
    func mustRestart(_ ranges: [ByteRange]) -> Bool {
        guard !canBeContinued, isDescribed, !extents.isEmpty else { return false }
        let gaps = ranges.map(clampedToEnd).flatMap { extents.gaps(in: $0) }
        guard let first = gaps.map(\.lowerBound).min() else { return false }
        return !fills.contains { $0.answeredAt != nil && !$0.isCut && $0.remaining.contains(first) }
    }

    /// Ends fills.
    mutating func cut(_ ended: [Fill]) -> [Action] {
        for fill in ended {
            if let index = fills.firstIndex(where: { $0.id == fill.id }) { fills[index].isCut = true }
        }
        return ended.map { .cut($0.id) }
    }

    /// Plans for all who wait: something that held them up is over.
    mutating func planForAll() -> [Action] {
        readers.filter(\.value.isWaiting).keys.sorted { $0.number < $1.number }.flatMap { planOrDescribe(for: $0) }
    }

    mutating func planOrDescribe(for id: ReaderID) -> [Action] {
        guard let reader = readers[id] else { return [] }
        return reader.wanted == nil || reader.needsConfirmation ? describe(for: id) : plan(for: id)
    }

    /// Asks for the reader's next windows, if it is time: when nothing of what it wants is on the way, or when what lies
    /// ahead of it is so little that it would come to wait for a round trip.
    mutating func plan(for id: ReaderID) -> [Action] {
        guard isDescribed, let reader = readers[id], reader.dismissal == nil, !reader.needsConfirmation,
            let wanted = reader.wanted.map(clampedToEnd), !wanted.isEmpty
        else { return [] }
        var actions = splitSlowFill(at: wanted.lowerBound, for: reader)
        for turn in 0..<Self.windowsAtOnce {
            let (frontier, promotions) = walk(wanted, priority: reader.priority)
            if turn == 0 { actions += promotions }
            guard let start = nextStart(for: id, wanted, frontier: frontier) else { break }
            actions.append(start)
        }
        return actions
    }

    /// The transfer that brings the reader what is missing from `frontier` on; nil where it is not time for it.
    private mutating func nextStart(for id: ReaderID, _ wanted: ByteRange, frontier: Int64) -> Action? {
        guard frontier < wanted.upperBound, !leaving.contains(frontier..<(frontier + 1)), var reader = readers[id],
            reader.setback?.range.contains(frontier) != true
        else { return nil }
        let ahead = frontier - wanted.lowerBound
        // Nobody watches a prefetch: it has one window at a time.
        let lead =
            reader.priority == .prefetch
            ? 0 : reader.readAhead.lead(readerAt: wanted.lowerBound, roundTrip: roundTrip)
        guard ahead == 0 || ahead < lead else { return nil }
        guard acceptsRanges != false else {
            // One that has yet to come to the byte will bring it; one that is past it will not. It brings what is leaving, too.
            guard leaving.isEmpty, fills.allSatisfy({ $0.position > frontier }) else { return nil }
            return start(.whole, window: 0..<(length ?? .max), priority: reader.priority)
        }
        reader.readAhead.measure(readerAt: wanted.lowerBound, at: now)
        let window = frontier..<windowEnd(from: frontier, size: reader.readAhead.windowBytes, limit: limit(of: wanted))
        reader.readAhead.asked(readerAt: wanted.lowerBound, at: now)
        readers[id] = reader
        let priority = ahead == 0 ? reader.priority : max(reader.priority, .readAhead)
        return start(.window(window), window: window, priority: priority, patience: reader.readAhead.time(for: ahead))
    }

    /// Where windows for a reader of `wanted` end at the latest.
    private func limit(of wanted: ByteRange) -> Int64 {
        min(ByteRange(offset: wanted.upperBound, length: settings.speculativeBytes).upperBound, length ?? .max)
    }

    /// Whether some reader still wants a byte, or the head, that the fill brings.
    func isWanted(_ fill: Fill) -> Bool {
        readers.values.contains { reader in
            guard reader.dismissal == nil else { return false }
            guard !fill.window.isEmpty, let wanted = reader.wanted else { return true }
            return wanted.overlaps(fill.remaining)
        }
    }

    /// Whether a window that nobody wants is finished all the same: a player's, of bounded size, with little missing. It
    /// was asked for already; cut, it would be asked for again, and take the connection with it.
    func isWorthFinishing(_ fill: Fill) -> Bool {
        if fill.isBehind || fill.keptUntil.map({ now < $0 }) == true { return true }
        let isBounded = !fill.window.isEmpty && fill.window.upperBound < .max
        guard fill.priority != .prefetch, isBounded, acceptsRanges != false else { return false }
        let missing = fill.remaining.length
        guard missing > settings.finishIfRemainingBytes, let percent = settings.finishIfRemainingPercent else {
            return missing <= settings.finishIfRemainingBytes
        }
        return percent > 0 && Double(missing) * 100 <= Double(fill.window.length) * Double(percent)
    }

    func clampedToEnd(_ range: ByteRange) -> ByteRange {
        guard let length else { return range }
        return min(range.lowerBound, length)..<min(range.upperBound, length)
    }

    /// The first byte that is neither on disk nor on the way; the fill that the reader waits for goes with its class.
    private mutating func walk(
        _ wanted: ByteRange, priority: TransferPriority
    ) -> (frontier: Int64, promotions: [Action]) {
        var offset = wanted.lowerBound
        var promotions: [Action] = []
        while offset < wanted.upperBound {
            if let run = extents.run(containing: offset) {
                offset = run.upperBound
            } else if let fill = fill(bringing: offset) {
                if offset == wanted.lowerBound { promotions += promotion(of: fill, to: priority) }
                offset = fill.window.upperBound
            } else {
                break
            }
        }
        return (offset, promotions)
    }

    /// The fill in flight that will bring the byte at `offset`.
    func fill(bringing offset: Int64) -> Fill? {
        // A body from the first byte may run beside windows that were asked for before ranges proved to be ignored.
        guard acceptsRanges != false else { return fills.first { $0.remaining.contains(offset) } }
        let index = firstFill(beginningAfter: offset)
        guard index > 0, fills[index - 1].remaining.contains(offset) else { return nil }
        return fills[index - 1]
    }

    /// The least of the window's size, what is wanted, the next fill, what is leaving, and the next extent that is not
    /// worth reading through: where a round trip takes long, small ones are fetched again to save one.
    private func windowEnd(from start: Int64, size: Int64, limit: Int64) -> Int64 {
        var end = min(ByteRange(offset: start, length: size).upperBound, limit)
        if let next = leaving.run(startingFrom: start) { end = min(end, next.lowerBound) }
        let index = firstFill(beginningAfter: start)
        if index < fills.count { end = min(end, fills[index].window.lowerBound) }
        var spare = roundTrip >= Self.longRoundTrip ? settings.gapMergeBytes : 0
        var offset = start
        while let run = extents.run(startingFrom: offset), run.lowerBound < end {
            spare -= run.length
            guard spare >= 0, run.upperBound < end else { return run.lowerBound }
            offset = run.upperBound
        }
        return end
    }

    private mutating func promotion(of fill: Fill, to priority: TransferPriority) -> [Action] {
        guard priority < fill.priority else { return [] }
        if let index = fills.firstIndex(where: { $0.id == fill.id }) { fills[index].priority = priority }
        if let index = questions.firstIndex(where: { $0.id == fill.id }) { questions[index].priority = priority }
        return [.promote(fill.id, priority)]
    }

    mutating func start(
        _ wish: Wish, window: ByteRange, priority: TransferPriority, patience: Duration = .zero, isBehind: Bool = false
    ) -> Action {
        let fill = Fill(
            id: FillID(number: nextNumber()), wish: wish, priority: priority, window: window,
            position: window.lowerBound, isBehind: isBehind)
        insert(fill)
        return .start(
            fill.id,
            Start(
                wish: wish, priority: priority, attempt: failures[wish.place] ?? 0,
                isRetry: failures[wish.place] != nil, patience: patience))
    }

    mutating func insert(_ fill: Fill) {
        guard !fill.window.isEmpty else { return questions.append(fill) }
        fills.insert(fill, at: firstFill(beginningAfter: fill.window.lowerBound))
    }

    /// The fills whose windows overlap `range` or lie beside it.
    func fills(touching range: ByteRange) -> ArraySlice<Fill> {
        // Where windows may overlap one another, any of the earlier ones may reach so far.
        let reach = acceptsRanges == false ? .max : 2
        let first = max(0, firstFill(beginningAfter: range.lowerBound) - reach)
        return fills[first..<firstFill(beginningAfter: range.upperBound)].filter {
            range.lowerBound <= $0.window.upperBound
        }[...]
    }

    /// The index of the first fill whose window begins behind `offset`.
    func firstFill(beginningAfter offset: Int64) -> Int {
        var (low, high) = (0, fills.count)
        while low < high {
            let middle = (low + high) / 2
            if fills[middle].window.lowerBound > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
