/// Planning: the requests that a reader's demand needs, their windows and their order.
extension FillLedger {
    /// The largest number of windows that one planning step requests.
    private static let windowsAtOnce = 4
    /// With a shorter round trip, no byte is fetched twice to save a request.
    private static let longRoundTrip = Duration.milliseconds(5)

    /// The cached part of `ranges`, and whether a fill in flight brings a part of the rest.
    package func lookUp(_ ranges: [ByteRange]) -> (cached: ByteRangeSet, isJoining: Bool) {
        var cached = ByteRangeSet()
        var isJoining = false
        for range in ranges.map(clampedToEnd) {
            for run in extents.runs(in: range) { cached.insert(run) }
            isJoining = isJoining || fills.contains { $0.remaining.overlaps(range) && !$0.remaining.isEmpty }
        }
        return (cached, isJoining)
    }

    /// Starts the opening or confirmation that the reader needs, or joins the one in flight.
    mutating func describe(for id: ReaderID) -> [Action] {
        guard let reader = readers[id], reader.dismissal == nil else { return [] }
        guard !reader.isPassive else { return endLost(id) }
        if !isDescribed {
            if let running = metadataFills.first { return promotion(of: running, to: reader.priority) }
            return [start(.opening(opening(of: reader)), window: 0..<0, priority: reader.priority, for: reader)]
        }
        guard reader.needsConfirmation else { return [] }
        if let running = metadataFills.first ?? fills.first(where: \.isRepeatedWhole) {
            return promotion(of: running, to: reader.priority)
        }
        return [start(question(of: reader), window: 0..<0, priority: reader.priority, for: reader)]
    }

    /// The window of a request for an unknown asset: as the reader stated it, and the speculative bytes behind it. If
    /// transfers cannot be paused, a read without a stated end begins with a window of bounded size.
    private func opening(of reader: Reader) -> UpstreamRequest.Window {
        let opening = withSpeculativeBytes(reader.opening)
        guard !hasFlowControl else { return opening }
        let isStated = reader.readAhead.demand == .stated
        let limit = isStated ? settings.largestWindowBytes : settings.firstWindowBytes
        switch opening {
        case .from(let first): return .closed(ByteRange(offset: first, length: limit))
        case .closed(let range): return .closed(range.prefix(limit))
        case .suffix(let count): return .suffix(min(count, limit))
        case .whole: return .whole
        }
    }

    /// The window with the speculative bytes behind it. A single byte is a request for metadata and gets none.
    private func withSpeculativeBytes(_ window: UpstreamRequest.Window) -> UpstreamRequest.Window {
        guard case .closed(let range) = window, range.length > 1 else { return window }
        let behind = ByteRange(offset: range.upperBound, length: settings.speculativeBytes)
        return .closed(range.lowerBound..<behind.upperBound)
    }

    /// The request that checks whether the generation is still current. Without a byte on disk or on the way there is
    /// nothing to confirm, so it is an opening. If windows cannot be combined, it asks for the whole body.
    private func question(of reader: Reader) -> FillRequest {
        guard !extents.isEmpty || !fills.isEmpty else { return .opening(opening(of: reader)) }
        guard canBeContinued, acceptsRanges != false else { return .confirmation(.whole) }
        let window = opening(of: reader)
        // The body of a changed response is used only if none of its bytes is on disk or on the way.
        guard case .from(let first) = window, extents.run(containing: first) == nil, fill(bringing: first) == nil
        else { return .confirmation(window) }
        let end = windowEnd(from: first, size: .max, limit: length ?? .max)
        return .confirmation(end < length ?? .max && end > first ? .closed(first..<end) : window)
    }

    /// Whether only a new transfer of the whole body can bring `ranges`. True if a part is neither on disk nor on the
    /// way, and no new response may be combined with the bytes on disk.
    func mustRestart(_ ranges: [ByteRange]) -> Bool {
        guard !canBeContinued, isDescribed, !extents.isEmpty else { return false }
        let gaps = ranges.map(clampedToEnd).flatMap { extents.gaps(in: $0) }
        guard let first = gaps.map(\.lowerBound).min() else { return false }
        return !fills.contains { $0.answeredAt != nil && !$0.isCut && $0.remaining.contains(first) }
    }

    /// Returns the `.cut` actions of `ended`, and marks these fills as cut.
    mutating func cut(_ ended: [Fill]) -> [Action] {
        for fill in ended {
            if let index = fills.firstIndex(where: { $0.id == fill.id }) { fills[index].isCut = true }
        }
        return ended.map { .cut($0.id) }
    }

    /// Plans for every waiting reader, in order of arrival, after an obstacle has gone.
    mutating func planForAll() -> [Action] {
        readers.filter(\.value.isWaiting).keys.sorted { $0.number < $1.number }.flatMap { planOrDescribe(for: $0) }
    }

    /// Plans windows for the reader, or requests the description or confirmation that it needs first.
    mutating func planOrDescribe(for id: ReaderID) -> [Action] {
        guard let reader = readers[id] else { return [] }
        return reader.wanted == nil || reader.needsConfirmation ? describe(for: id) : plan(for: id)
    }

    /// Requests the reader's next windows if they are due: if none of the wanted bytes is on the way, or if the bytes
    /// ahead of the reader last for less than a round trip.
    mutating func plan(for id: ReaderID) -> [Action] {
        guard isDescribed, let reader = readers[id], reader.dismissal == nil, !reader.needsConfirmation,
            let wanted = reader.wanted.map(clampedToEnd), !wanted.isEmpty
        else { return [] }
        guard !reader.isPassive else { return follow(wanted, as: id, reader) }
        var actions = splitSlowFill(at: wanted.lowerBound, for: reader)
        for _ in 0..<Self.windowsAtOnce {
            let (frontier, changes) = walk(wanted, of: reader)
            actions += changes
            guard let frontier, let started = nextStart(for: reader, wanted, frontier: frontier) else { break }
            actions += started
        }
        return actions
    }

    /// Starts the transfer that brings the bytes from `frontier` on; nil if it is not due or not permitted.
    private mutating func nextStart(for reader: Reader, _ wanted: ByteRange, frontier: Int64) -> [Action]? {
        guard frontier < wanted.upperBound, !evicting.contains(frontier..<(frontier + 1)),
            reader.pendingFailure?.range.contains(frontier) != true, !isBehindSmallPart(frontier)
        else { return nil }
        let position = wanted.lowerBound
        let ahead = frontier - position
        guard ahead == 0 || ahead < reader.readAhead.lead(at: position, roundTrip: roundTrip) else { return nil }
        guard acceptsRanges != false else {
            // A whole-body transfer that has not reached the frontier will bring the byte; one that has passed it will not.
            // A new one starts only without evicting ranges, because it would write to them.
            guard evicting.isEmpty, fills.allSatisfy({ $0.position > frontier }) else { return nil }
            return [start(.whole, window: 0..<(length ?? .max), priority: reader.priority, for: reader)]
        }
        let isElastic = isFlowControlled(for: reader)
        let size = isElastic ? .max : reader.readAhead.windowBytes(at: position)
        let window = frontier..<windowEnd(from: frontier, size: size, limit: limit(of: wanted))
        let exposed = position + reader.readAhead.exposure(at: position, roundTrip: roundTrip)
        let claim = isElastic ? frontier..<self.claim(upTo: max(exposed, frontier + leastClaim), in: window) : window
        let shortened = shorten(before: frontier)
        let priority = ahead == 0 ? reader.priority : max(reader.priority, .readAhead)
        return shortened + [
            start(
                .window(window), window: claim, priority: priority, slack: reader.readAhead.time(for: ahead),
                for: reader, isElastic: isElastic,
                sizedBy: reason(for: window, limit: limit(of: wanted), of: reader))
        ]
    }

    /// Whether the byte follows a small part in flight. The part is charged at its end; its continuation starts then.
    private func isBehindSmallPart(_ frontier: Int64) -> Bool {
        fills.contains { $0.cutShortAt != nil && $0.end == frontier && !$0.isCut }
    }

    /// The largest end of windows for a reader of `wanted`, speculative bytes included.
    func limit(of wanted: ByteRange) -> Int64 {
        min(ByteRange(offset: wanted.upperBound, length: settings.speculativeBytes).upperBound, length ?? .max)
    }

    /// Whether a reader still wants a byte, or the head, of the fill.
    func isWanted(_ fill: Fill) -> Bool {
        readers.values.contains { reader in
            guard reader.dismissal == nil else { return false }
            guard !fill.window.isEmpty, let wanted = reader.wanted else { return true }
            return wanted.overlaps(fill.prospect)
        }
    }

    /// Whether a fill without readers is finished instead of cut. This applies to windows of bounded size, requested
    /// for players, with little missing: the bytes are on their way already, and a cut would close the connection and
    /// cause another request. Without ranges the next reader would cause a transfer from the first byte, therefore a
    /// body of up to `wholeBytes` is finished. Fills without an initiating reader, and carried fills within their waiting
    /// time, are always kept. Prefetch windows are always cut.
    func isWorthFinishing(_ fill: Fill) -> Bool {
        if fill.isBehind || fill.keptUntil.map({ now < $0 }) == true { return true }
        let isBounded = !fill.window.isEmpty && fill.end < .max
        guard fill.priority != .prefetch, isBounded else { return false }
        guard acceptsRanges != false else { return keepsBytes && fill.end <= Self.wholeBytes }
        let missing = fill.prospect.length
        let stated = settings.finishIfRemainingBytes
        let most = fill.isOpenEnded ? min(stated, Self.speculativeRestBytes) : stated
        guard missing > most, let percent = settings.finishIfRemainingPercent else { return missing <= most }
        return percent > 0 && Double(missing) * 100 <= Double(fill.end - fill.window.lowerBound) * Double(percent)
    }

    /// The longest body of an upstream without ranges that is finished without readers, in bytes.
    package static let wholeBytes: Int64 = 64 << 20

    /// The same limit in bytes for a fill of a reader that stated no end.
    private static let speculativeRestBytes: Int64 = 256 << 10

    /// `range` without the part beyond the end of the asset, if the length is known.
    func clampedToEnd(_ range: ByteRange) -> ByteRange {
        guard let length else { return range }
        return min(range.lowerBound, length)..<min(range.upperBound, length)
    }

    /// Follows the reader's path to the frontier: the first byte that is neither on disk nor on the way. Nil if a
    /// flow-controlled fill will claim that byte. Fills on the path extend their claim to the reader's exposure. The
    /// fill that the reader waits for gets the reader's priority.
    mutating func walk(_ wanted: ByteRange, of reader: Reader) -> (frontier: Int64?, actions: [Action]) {
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

    /// The fill in flight that has claimed the byte at `offset` and not brought it yet.
    func fill(bringing offset: Int64) -> Fill? {
        // A whole-body transfer may overlap windows that were requested before the upstream proved to ignore ranges.
        guard acceptsRanges != false else { return fills.first { $0.remaining.contains(offset) } }
        let index = firstFill(beginningAfter: offset)
        guard index > 0, fills[index - 1].remaining.contains(offset) else { return nil }
        return fills[index - 1]
    }

    /// The end of a window that begins at `start`: the minimum of its size, the limit, the next fill, the next evicting
    /// range and the next extent. If the round trip is long, extents of up to `gapMergeBytes` in total are fetched
    /// again, to save a request.
    private func windowEnd(from start: Int64, size: Int64, limit: Int64) -> Int64 {
        var end = min(ByteRange(offset: start, length: size).upperBound, limit)
        if let next = evicting.run(startingFrom: start) { end = min(end, next.lowerBound) }
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

    /// Raises the fill to `priority`; no action if it has that priority or a more urgent one.
    private mutating func promotion(of fill: Fill, to priority: TransferPriority) -> [Action] {
        guard priority < fill.priority else { return [] }
        if let index = fills.firstIndex(where: { $0.id == fill.id }) { fills[index].priority = priority }
        if let index = metadataFills.firstIndex(where: { $0.id == fill.id }) {
            metadataFills[index].priority = priority
        }
        return [.promote(fill.id, priority)]
    }

    /// Adds a fill and returns its `.start`. `window` is its first claim; `isElastic`: the claim grows as its readers
    /// advance.
    mutating func start(
        _ fillRequest: FillRequest, window: ByteRange, priority: TransferPriority, slack: Duration = .zero,
        isBehind: Bool = false, for reader: Reader? = nil, isElastic: Bool = false, sizedBy reason: SizeReason? = nil
    ) -> Action {
        var fill = Fill(
            id: FillID(number: nextNumber()), fillRequest: fillRequest, priority: priority, window: window,
            end: window.upperBound, position: window.lowerBound, isBehind: isBehind)
        if isElastic, case .window(let whole) = fillRequest {
            fill.end = whole.upperBound
            fill.allowance = window.upperBound
        }
        if fill.allowance < .max, fill.window.upperBound < fill.end {
            fill.allowance = max(window.lowerBound, window.upperBound - settings.overshootBytes)
        }
        fill.isOpenEnded = reader.map { $0.readAhead.demand != .stated } ?? false
        insert(fill)
        unreadFailure = nil
        let isRetry = reader?.attempts.isRetry ?? false
        if isRetry { for (id, other) in readers where other.looksTo(fill) { readers[id]?.attempts.isRetry = false } }
        return .start(
            fill.id,
            Start(
                fillRequest: fillRequest, priority: priority, attempt: isRetry ? reader?.attempts.count ?? 0 : 0,
                isRetry: isRetry, slack: slack,
                claim: isElastic ? window : reader.flatMap { firstClaim(of: fillRequest, for: $0) },
                sizedBy: reason ?? self.reason(for: fillRequest, of: reader)))
    }

    /// Adds the fill in window order; without a window it is an opening or a confirmation.
    mutating func insert(_ fill: Fill) {
        guard !fill.window.isEmpty else { return metadataFills.append(fill) }
        fills.insert(fill, at: firstFill(beginningAfter: fill.window.lowerBound))
    }

    /// The fills with a window that overlaps `range` or touches it.
    func fills(touching range: ByteRange) -> ArraySlice<Fill> {
        // If windows may overlap, any earlier fill may extend to `range`.
        let reach = acceptsRanges == false ? .max : 2
        let first = max(0, firstFill(beginningAfter: range.lowerBound) - reach)
        return fills[first..<firstFill(beginningAfter: range.upperBound)].filter {
            range.lowerBound <= $0.window.upperBound
        }[...]
    }

    /// The index of the first fill with a window that begins after `offset`, by binary search.
    func firstFill(beginningAfter offset: Int64) -> Int {
        var (low, high) = (0, fills.count)
        while low < high {
            let middle = (low + high) / 2
            if fills[middle].window.lowerBound > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
