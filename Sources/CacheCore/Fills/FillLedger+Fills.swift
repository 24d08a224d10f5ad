/// The life of a fill: response head, arrivals, end, retry and hand-over.
extension FillLedger {
    /// Records a response head: the bytes that the fill brings, and the length of the asset. Readers that wait for a
    /// description are notified.
    ///
    /// - `isNew`: no byte is on disk, and the head describes the asset anew.
    /// - `canBeContinued`: another transfer may add bytes to those of this one.
    /// - `firstByte`: the time from the request to the head.
    /// - `isMultiplexed`: the transfer can end early without closing its connection, and cannot be paused (HTTP/2).
    package mutating func began(
        _ id: FillID, window: ByteRange, length: Int64?, acceptsRanges: Bool?, isNew: Bool = false,
        canBeContinued: Bool = true, firstByte: Duration? = nil, isMultiplexed: Bool = false
    ) -> [Action] {
        guard var fill = take(id) else { return [] }
        if isNew { forgetDescription() }
        let end = fill.end
        let isElastic = fill.allowance < .max
        let shortened = fill.isAnticipated ? shorten(before: window.lowerBound) : []
        fill.began(at: now, bringing: window)
        if let firstByte { roundTrip = roundTrip == .zero ? firstByte : (roundTrip * 3 + firstByte) / 4 }
        fill.cutShortAt = requestedEnd(of: fill.fillRequest, cutShortBy: window, length: length)
        self.acceptsRanges = acceptsRanges ?? self.acceptsRanges
        if isMultiplexed { hasFlowControl = false }
        let notified = shortened + confirmed(length: length, canBeContinued: canBeContinued)
        guard self.acceptsRanges != false else {
            fill.allowance = .max
            insert(fill)
            return notified + regulate()
        }
        if isElastic { fill.end = min(end, window.upperBound) }
        return expose(fill, allowing: isElastic ? fill.allowance : nil) + notified
    }

    /// Adds a fill after its response head. A speculative or prefetch fill that can be paused pauses first at
    /// `allowance`, or at the first exposure if that is nil. A fill that proves not to be pausable ends with its claim.
    private mutating func expose(_ fill: Fill, allowing allowance: Int64? = nil) -> [Action] {
        var fill = fill
        let body = fill.window
        guard allowance != nil || hasFlowControl && fill.mayBeHeldBack else {
            insert(fill)
            return []
        }
        let next = firstFill(beginningAfter: body.lowerBound)
        if next < fills.count { fill.end = min(fill.end, max(fills[next].window.lowerBound, body.lowerBound + 1)) }
        let first = ByteRange(offset: body.lowerBound, length: max(1, settings.firstExposureBytes)).upperBound
        let allowed = min(fill.end, allowance ?? first)
        let claim = claim(upTo: allowed, in: body.lowerBound..<fill.end)
        fill.window = body.lowerBound..<max(claim, body.lowerBound + 1)
        if !hasFlowControl { fill.end = fill.window.upperBound }
        fill.allowance = hasFlowControl ? allowed : .max
        insert(fill)
        let shortened: [Action] = fill.end < body.upperBound ? [.shorten(fill.id, to: fill.end)] : []
        return shortened + (hasFlowControl ? [.allow(fill.id, upTo: allowed)] : [])
    }

    /// Resets length and range support, because the next head describes the asset anew.
    private mutating func forgetDescription() {
        length = nil
        // A whole-body transfer may overlap windows. While a fill is in flight, `acceptsRanges` therefore keeps its
        // value, so that no window is planned beside it.
        if fills.isEmpty { acceptsRanges = nil }
    }

    /// Requires that one transfer brings all bytes, because responses contradict each other.
    package mutating func distrust() { (canBeContinued, acceptsRanges) = (false, false) }

    /// Permits requests with ranges again, unless a transfer of the whole body is in flight. Returns whether it did.
    package mutating func reconsiderRanges() -> Bool {
        guard acceptsRanges == false, canBeContinued, fills.isEmpty, metadataFills.isEmpty else { return false }
        acceptsRanges = nil
        return true
    }

    /// Whether the body of a response to a confirmation or an opening is worth its transfer: none of its bytes is on
    /// disk or on the way.
    package func isVacant(_ window: ByteRange) -> Bool {
        extents.runs(in: window).isEmpty && fills(touching: window).allSatisfy { !$0.window.overlaps(window) }
    }

    /// Whether a whole body that answers a confirmation is worth its transfer: all bytes are missing, or no window can
    /// bring the missing part.
    package func needsWhole(acceptsRanges: Bool?) -> Bool {
        guard !isComplete, canBeContinued else { return !isComplete }
        return fills.isEmpty && (extents.isEmpty || acceptsRanges == false || self.acceptsRanges == false)
    }

    /// Fills without readers, and fills without a response head.
    package var idleFills: [FillID] {
        metadataFills.map(\.id) + fills.filter { $0.answeredAt == nil || !isWanted($0) }.map(\.id)
    }

    /// Adds a transfer that was begun for another generation, with a response of this one; no reader has
    /// joined yet. `answering` is the request that was sent; `isMultiplexed` as for `began`.
    package mutating func carry(
        _ fillRequest: FillRequest, answering sent: FillRequest? = nil, window: ByteRange, priority: TransferPriority,
        isOpenEnded: Bool, isMultiplexed: Bool
    ) -> (FillID, [Action]) {
        var fill = Fill(
            id: FillID(number: nextNumber()), fillRequest: fillRequest, priority: priority, window: window,
            end: window.upperBound, position: window.lowerBound)
        fill.began(at: now, bringing: window)
        fill.isOpenEnded = isOpenEnded
        fill.cutShortAt = requestedEnd(of: sent ?? fillRequest, cutShortBy: window, length: length)
        fill.keptUntil = now + Self.carriedFor
        hasFlowControl = !isMultiplexed
        guard acceptsRanges != false else {
            insert(fill)
            return (fill.id, [])
        }
        return (fill.id, expose(fill))
    }

    /// The part of a response's `window` that the fill may store, according to its claim.
    package func claim(of id: FillID, bringing window: ByteRange) -> ByteRange {
        guard let fill = fill(id), !fill.window.isEmpty, fill.allowance < .max else { return window }
        return fill.reach.clamped(to: window)
    }

    /// Whether the fill was begun for a reader without a stated end.
    package func isOpenEnded(_ id: FillID) -> Bool { fill(id)?.isOpenEnded ?? false }

    /// The time that a carried or anticipated transfer waits for its first reader.
    private static let carriedFor = Duration.seconds(5)

    /// Records that the generation is current, and its length if that is known. `isSequential`: its bytes come in one
    /// transfer only. Without `canBeContinued`, no transfer may add bytes to those on disk. `isNew` as for `began`.
    package mutating func confirmed(
        length: Int64?, isNew: Bool = false, isSequential: Bool = false, canBeContinued: Bool = true
    ) -> [Action] {
        if isNew { forgetDescription() }
        // Only news ends the wait of a reader of bytes. Otherwise it could miss a failure:
        // 1. The reader wakes without new bytes and no longer counts as waiting.
        // 2. Its fill fails, and only waiting readers are notified.
        // 3. The reader waits again.
        let isNews = !isDescribed || (self.length == nil && length != nil)
        self.length = length ?? self.length
        self.canBeContinued = canBeContinued
        if isSequential || !canBeContinued { acceptsRanges = false }
        isDescribed = true
        var actions: [Action] = []
        for (id, reader) in readers where reader.needsConfirmation {
            // A reader that waits for missing bytes keeps waiting: a 304 alone does not bring them.
            let mustWait = reader.wanted.map { mustRestart([$0]) } ?? false
            readers[id]?.needsConfirmation = mustWait
            if reader.wanted != nil, !mustWait { actions += notify(.arrived, to: id) }
        }
        return actions + notify(.arrived) { isNews || $0.wanted == nil }
    }

    /// Starts a confirmation without a waiting reader, unless one is in flight (stale-while-revalidate, RFC 5861 §3).
    package mutating func confirmBehind() -> [Action] {
        guard isDescribed, metadataFills.isEmpty else { return [] }
        return [start(.confirmation(.closed(0..<1)), window: 0..<0, priority: .readAhead, isBehind: true)]
    }

    /// Starts the transfer of the missing bytes of `range`, which ends the asset and which a reader is expected to want
    /// soon. It is kept without readers for some seconds. No transfer starts if one is on the way, if the bytes have gaps,
    /// or if one transfer must bring all bytes.
    package mutating func anticipate(_ range: ByteRange) -> [Action] {
        guard isDescribed, canBeContinued, acceptsRanges == true, evicting.runs(in: range).isEmpty,
            let length, range.upperBound == length
        else { return [] }
        let gaps = extents.gaps(in: range)
        guard gaps.count == 1, let gap = gaps.first,
            fills.allSatisfy({ $0.window.upperBound < gap.lowerBound || $0.window.lowerBound > gap.upperBound })
        else { return [] }
        let action = start(.window(gap), window: gap, priority: .readAhead, sizedBy: .anticipatedIndex)
        if case .start(let id, _) = action, let index = fills.firstIndex(where: { $0.id == id }) {
            fills[index].isAnticipated = true
            fills[index].keptUntil = now + Self.carriedFor
        }
        return [action]
    }

    /// Whether a fill in flight will bring the bytes before `end` and none from there on.
    package func isFetching(upTo end: Int64) -> Bool { fills.contains { $0.end == end } }

    /// Records that the upstream has no byte from `end` on. This is the length if no length was stated before.
    package mutating func foundEnd(at end: Int64) -> [Action] {
        guard isDescribed, length == nil else { return [] }
        length = end
        return notify(.arrived) { _ in true }
    }

    /// Records that the fill's bytes up to `position` are on disk, and notifies the readers that wait for them.
    package mutating func arrived(_ id: FillID, upTo position: Int64) -> [Action] {
        guard let index = fills.firstIndex(where: { $0.id == id }), position > fills[index].position else { return [] }
        let arrival = fills[index].position..<position
        fills[index].position = position
        if position > fills[index].window.upperBound {
            fills[index].window = fills[index].window.lowerBound..<min(position, fills[index].end)
        }
        // Cached bytes are no progress. Bytes in an evicting range are not added: the punch erases them.
        for run in evicting.gaps(in: arrival) {
            fills[index].progress += extents.insert(run)
            orphaned.remove(run)
        }
        return notify(.arrived) { $0.wanted.map { arrival.contains($0.lowerBound) } ?? true }
    }

    /// Records a complete fill. If the length was not known, the fill has found the end.
    package mutating func completed(_ id: FillID) -> [Action] {
        guard let fill = take(id) else { return [] }
        let charged = settle(fill)
        guard length == nil, fill.end == .max else { return charged + planAgain(after: fill) }
        length = fill.position
        return notify(.arrived) { _ in true }
    }

    /// Records a fill that ended early. If a retry is useful, the missing bytes are requested again from the next
    /// missing byte, for the first waiting reader with attempts left. Otherwise all waiting readers that depend on the
    /// fill are notified of `code`.
    package mutating func broke(_ id: FillID, with code: CacheError.Code, isWorthRetrying: Bool) -> [Action] {
        guard let fill = take(id) else { return [] }
        guard code != .cancelled, !fill.isAnticipated || fill.answeredAt != nil else { return handOver(fill) }
        if case .rangeNotSatisfiable = code, case .opening(let window) = fill.fillRequest {
            return notify(.failed(code)) { $0.opening == window && $0.wanted == nil } + handOver(fill)
        }
        if isWorthRetrying { return charge(fill, because: code) + handOver(fill) }
        if readers.isEmpty { unreadFailure = code }
        // A reader that has just received the description has not called `want` yet. It counts as dependent.
        let concerned = readers.filter { _, reader in
            reader.isWaiting ? !isAwaited(reader) : reader.wanted.map { $0.overlaps(fill.remaining) } ?? true
        }
        return concerned.keys.flatMap { fail($0, of: fill.remaining, because: code) }
    }

    /// Records a failed fill that must not count as a failure: the cause is removed, or retries continue until it is
    /// removed. The missing bytes are planned again. Readers that have stopped request them when they resume. If the disk
    /// is full, prefetch readers fail with `code`, because a prefetch does not forward its bytes.
    package mutating func renewed(_ id: FillID, after code: CacheError.Code) -> [Action] {
        guard let fill = take(id) else { return [] }
        let isVain = code == .storageFull
        let notified = isVain ? notify(WaitOutcome(code)) { $0.priority == .prefetch && $0.looksTo(fill) } : []
        return notified + handOver(fill)
    }

    /// Removes a fill that must not begin, because the readers that want it have no right to its credentials. No further
    /// fill is started for them: they fail with `code` when they would have to wait.
    package mutating func refused(_ id: FillID, because code: CacheError.Code) -> [Action] {
        guard let fill = take(id) else { return [] }
        return dismiss(because: code) { $0.looksTo(fill) }
    }

    // MARK: Parts

    /// The end of a request if a small response ends before it and before the end of the asset; nil otherwise.
    private func requestedEnd(of request: FillRequest, cutShortBy window: ByteRange, length: Int64?) -> Int64? {
        guard let end = request.end, let length, window.length < Self.leastPartBytes,
            window.upperBound < min(end, length)
        else { return nil }
        return end
    }

    /// The fill in flight with this ID; nil if it has ended.
    func fill(_ id: FillID) -> Fill? { (fills + metadataFills).first { $0.id == id } }

    /// Restarts an ended fill: the first reader that wants its bytes starts the next fill, and the other readers join
    /// it.
    private mutating func handOver(_ fill: Fill) -> [Action] {
        readers(of: fill) { !$0.isNotified && ($0.isWaiting || !hasStopped($0)) }.flatMap { id -> [Action] in
            let actions = planOrDescribe(for: id)
            guard actions.contains(where: \.isStart), readers[id]?.isWaiting == true else { return actions }
            return actions + [.notify(id, .retrying)]
        }
    }

    /// Plans for the readers that wait for bytes that the fill did not bring. Other readers call `presence` later.
    private mutating func planAgain(after fill: Fill) -> [Action] {
        readers(of: fill, where: \.isWaiting).flatMap { planOrDescribe(for: $0) }
    }

    /// The readers that want a part of the fill, or of the bytes that its response lacks, in order of arrival.
    private func readers(of fill: Fill, where concerns: (Reader) -> Bool) -> [ReaderID] {
        let concernsAll = fill.window.isEmpty || acceptsRanges == false
        let requested = fill.window.lowerBound..<max(fill.window.upperBound, fill.cutShortAt ?? 0)
        let chosen = readers.filter { _, reader in
            concerns(reader) && (concernsAll || reader.wanted.map { $0.overlaps(requested) } ?? true)
        }
        return chosen.keys.sorted { $0.number < $1.number }
    }

    /// Removes and returns the fill.
    private mutating func take(_ id: FillID) -> Fill? {
        if let index = fills.firstIndex(where: { $0.id == id }) { return fills.remove(at: index) }
        return metadataFills.firstIndex { $0.id == id }.map { metadataFills.remove(at: $0) }
    }

    /// Whether the reader's next byte will come: from a fill in flight, or from a fill that starts when the eviction of
    /// the byte has ended. A reader of metadata depends on an opening or confirmation in flight.
    private func isAwaited(_ reader: Reader) -> Bool {
        guard let wanted = reader.wanted, !reader.needsConfirmation else {
            return !metadataFills.isEmpty || fills.contains(where: \.isRepeatedWhole)
        }
        let position = wanted.lowerBound
        return evicting.run(containing: position) != nil || fill(bringing: position) != nil
    }
}

extension FillLedger.Action {
    var isStart: Bool { if case .start = self { true } else { false } }
}
