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
            return [start(.opening(opening(of: reader)), window: 0..<0, priority: reader.priority, for: reader)]
        }
        guard reader.needsConfirmation else { return [] }
        if let running = questions.first { return promotion(of: running, to: reader.priority) }
        return [start(question(of: reader), window: 0..<0, priority: reader.priority, for: reader)]
    }

    /// The window of a request for an unknown asset: as the reader stated it. Where transfers cannot be paused, a read
    /// without a stated end begins with a window of bounded size.
    private func opening(of reader: Reader) -> UpstreamRequest.Window {
        guard !hasFlowControl else { return reader.opening }
        let isStated = reader.readAhead.demand == .stated
        let limit = isStated ? settings.largestWindowBytes : settings.firstWindowBytes
        switch reader.opening {
        case .from(let first): return .closed(ByteRange(offset: first, length: limit))
        case .closed(let range): return .closed(range.prefix(limit))
        case .suffix(let count): return .suffix(min(count, limit))
        case .whole: return .whole
        }
    }

    /// How the upstream is asked whether the generation is still its own. Where no byte of it is on disk there is nothing to
    /// confirm; where windows are of no use, the whole is asked for.
    private func question(of reader: Reader) -> Wish {
        guard !extents.isEmpty || !fills.isEmpty else { return .opening(opening(of: reader)) }
        guard canBeContinued, acceptsRanges != false else { return .confirmation(.whole) }
        let window = opening(of: reader)
        // Its body is used where none of it is on disk or on the way.
        guard case .from(let first) = window, extents.run(containing: first) == nil, fill(bringing: first) == nil
        else { return .confirmation(window) }
        let end = windowEnd(from: first, size: .max, limit: length ?? .max)
        return .confirmation(end < length ?? .max && end > first ? .closed(first..<end) : window)
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
        for _ in 0..<Self.windowsAtOnce {
            let (frontier, changes) = walk(wanted, of: reader)
            actions += changes
            guard let frontier, let started = nextStart(for: reader, wanted, frontier: frontier) else { break }
            actions += started
        }
        return actions
    }

    /// The transfer that brings the reader what is missing from `frontier` on; nil where it is not time for it.
    private mutating func nextStart(for reader: Reader, _ wanted: ByteRange, frontier: Int64) -> [Action]? {
        guard frontier < wanted.upperBound, !leaving.contains(frontier..<(frontier + 1)),
            reader.setback?.range.contains(frontier) != true
        else { return nil }
        let place = wanted.lowerBound
        let ahead = frontier - place
        guard ahead == 0 || ahead < reader.readAhead.lead(at: place, roundTrip: roundTrip) else { return nil }
        guard acceptsRanges != false else {
            // One that has yet to come to the byte will bring it; one that is past it will not. It brings what is leaving, too.
            guard leaving.isEmpty, fills.allSatisfy({ $0.position > frontier }) else { return nil }
            return [start(.whole, window: 0..<(length ?? .max), priority: reader.priority, for: reader)]
        }
        let isElastic = isFlowControlled(for: reader)
        let size = isElastic ? .max : reader.readAhead.windowBytes(at: place)
        let window = frontier..<windowEnd(from: frontier, size: size, limit: limit(of: wanted))
        let exposed = place + reader.readAhead.exposure(at: place, roundTrip: roundTrip)
        let claim = isElastic ? frontier..<self.claim(upTo: max(exposed, frontier + leastClaim), in: window) : window
        let shortened = shorten(before: frontier)
        let priority = ahead == 0 ? reader.priority : max(reader.priority, .readAhead)
        return shortened + [
            start(
                .window(window), window: claim, priority: priority, patience: reader.readAhead.time(for: ahead),
                for: reader, isElastic: isElastic,
                sizedBy: reason(for: window, limit: limit(of: wanted), of: reader))
        ]
    }

    /// Where windows for a reader of `wanted` end at the latest.
    func limit(of wanted: ByteRange) -> Int64 {
        min(ByteRange(offset: wanted.upperBound, length: settings.speculativeBytes).upperBound, length ?? .max)
    }

    /// Whether some reader still wants a byte, or the head, that the fill brings.
    func isWanted(_ fill: Fill) -> Bool {
        readers.values.contains { reader in
            guard reader.dismissal == nil else { return false }
            guard !fill.window.isEmpty, let wanted = reader.wanted else { return true }
            return wanted.overlaps(fill.prospect)
        }
    }

    /// Whether a window that nobody wants is finished all the same: a player's, of bounded size, with little missing. It
    /// was asked for already; cut, it would be asked for again, and take the connection with it.
    func isWorthFinishing(_ fill: Fill) -> Bool {
        if fill.isBehind || fill.keptUntil.map({ now < $0 }) == true { return true }
        let isBounded = !fill.window.isEmpty && fill.end < .max
        guard fill.priority != .prefetch, isBounded, acceptsRanges != false else { return false }
        let missing = fill.prospect.length
        let stated = settings.finishIfRemainingBytes
        let most = fill.isSpeculative ? min(stated, Self.speculativeRestBytes) : stated
        guard missing > most, let percent = settings.finishIfRemainingPercent else { return missing <= most }
        return percent > 0 && Double(missing) * 100 <= Double(fill.end - fill.window.lowerBound) * Double(percent)
    }

    /// A transfer whose reader stated no end and has left is finished where no more than this is missing.
    private static let speculativeRestBytes: Int64 = 256 << 10

    func clampedToEnd(_ range: ByteRange) -> ByteRange {
        guard let length else { return range }
        return min(range.lowerBound, length)..<min(range.upperBound, length)
    }

    /// The first byte that is neither on disk nor on the way; nil where a flow-controlled fill will claim it. Fills on the
    /// reader's path claim what it is exposed to, and the one that it waits for gets its priority.
    private mutating func walk(_ wanted: ByteRange, of reader: Reader) -> (frontier: Int64?, actions: [Action]) {
        var offset = wanted.lowerBound
        var actions: [Action] = []
        while offset < wanted.upperBound {
            if let run = extents.run(containing: offset) {
                offset = run.upperBound
            } else if let fill = fill(bringing: offset) {
                if offset == wanted.lowerBound { actions += promotion(of: fill, to: reader.priority) }
                if acceptsRanges != false, fill.allowance < fill.window.upperBound,
                    let index = fills.firstIndex(where: { $0.id == fill.id })
                {
                    actions += grow(index, for: wanted, of: reader)
                }
                offset = fill.window.upperBound
            } else if let index = growingFill(before: offset) {
                actions += grow(index, for: wanted, of: reader)
                guard !fills[index].canGrow else { return (nil, actions) }
                offset = max(offset, fills[index].end)
            } else {
                break
            }
        }
        return (offset, actions)
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

    /// `window`: the bytes that the fill claims at first; `isElastic`: it claims more as its readers advance.
    mutating func start(
        _ wish: Wish, window: ByteRange, priority: TransferPriority, patience: Duration = .zero, isBehind: Bool = false,
        for reader: Reader? = nil, isElastic: Bool = false, sizedBy reason: SizeReason? = nil
    ) -> Action {
        var fill = Fill(
            id: FillID(number: nextNumber()), wish: wish, priority: priority, window: window, end: window.upperBound,
            position: window.lowerBound, isBehind: isBehind)
        if isElastic, case .window(let whole) = wish {
            fill.end = whole.upperBound
            fill.allowance = window.upperBound
        }
        if fill.allowance < .max, fill.window.upperBound < fill.end {
            fill.allowance = max(window.lowerBound, window.upperBound - settings.overshootBytes)
        }
        fill.isSpeculative = reader.map { $0.readAhead.demand != .stated } ?? false
        insert(fill)
        return .start(
            fill.id,
            Start(
                wish: wish, priority: priority, attempt: failures[wish.place] ?? 0,
                isRetry: failures[wish.place] != nil, patience: patience,
                claim: isElastic ? window : reader.flatMap { firstClaim(of: wish, for: $0) },
                sizedBy: reason ?? self.reason(for: wish, of: reader)))
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
