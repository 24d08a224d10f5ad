extension FillLedger {
    /// The answer's head says which bytes the fill brings, and how long the asset is. Everybody who waited for a
    /// description is told. `isNew`: no byte is on disk, and the head describes the asset anew; `canBeContinued`: whether
    /// another transfer may bring more of it; `firstByte`: how long the head took; `isMultiplexed`: the transfer can end
    /// early and leave its connection as it is.
    package mutating func began(
        _ id: FillID, window: ByteRange, length: Int64?, acceptsRanges: Bool?, isNew: Bool = false,
        canBeContinued: Bool = true, firstByte: Duration? = nil, isMultiplexed: Bool = false
    ) -> [Action] {
        guard var fill = take(id) else { return [] }
        if isNew { forgetDescription() }
        let end = fill.end
        let isElastic = fill.allowance < .max
        fill.began(at: now, bringing: window)
        if let firstByte { roundTrip = roundTrip == .zero ? firstByte : (roundTrip * 3 + firstByte) / 4 }
        self.acceptsRanges = acceptsRanges ?? self.acceptsRanges
        if isMultiplexed { hasFlowControl = false }
        let told = confirmed(length: length, canBeContinued: canBeContinued)
        guard self.acceptsRanges != false else {
            fill.allowance = .max
            insert(fill)
            return told + regulate()
        }
        if isElastic { fill.end = min(end, window.upperBound) }
        return expose(fill, allowing: isElastic ? fill.allowance : nil) + told
    }

    /// Takes an answered fill in. One that is speculative, or a prefetch, pauses at `allowance` at first, or after the first
    /// exposure, if its transfer can be paused; one that cannot be paused after all ends with its claim.
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

    private mutating func forgetDescription() {
        length = nil
        // Bodies of the whole may overlap windows: while any is under way, windows are not planned by.
        if fills.isEmpty { acceptsRanges = nil }
    }

    /// Whether the body of an answer to a confirmation or an opening is worth its transfer: none of it is on disk or on the
    /// way.
    package func isVacant(_ window: ByteRange) -> Bool {
        extents.runs(in: window).isEmpty && fills(touching: window).allSatisfy { !$0.window.overlaps(window) }
    }

    /// Whether a body of the whole that came for a confirmation is worth its transfer: all of it is missing, or no window
    /// can bring the missing part.
    package func needsWhole(acceptsRanges: Bool?) -> Bool {
        guard !isComplete, canBeContinued else { return !isComplete }
        return fills.isEmpty && (extents.isEmpty || acceptsRanges == false || self.acceptsRanges == false)
    }

    /// Fills without readers, and fills without an answer yet.
    package var idleFills: [FillID] {
        questions.map(\.id) + fills.filter { $0.answeredAt == nil || !isWanted($0) }.map(\.id)
    }

    /// Takes in a transfer that was begun for another generation, and got this one in answer; no reader is here yet.
    /// `isMultiplexed` as for `began`.
    package mutating func carry(
        _ wish: Wish, window: ByteRange, priority: TransferPriority, isSpeculative: Bool, isMultiplexed: Bool
    ) -> (FillID, [Action]) {
        var fill = Fill(
            id: FillID(number: nextNumber()), wish: wish, priority: priority, window: window, end: window.upperBound,
            position: window.lowerBound)
        fill.began(at: now, bringing: window)
        fill.isSpeculative = isSpeculative
        fill.keptUntil = now + Self.carriedFor
        hasFlowControl = !isMultiplexed
        guard acceptsRanges != false else {
            insert(fill)
            return (fill.id, [])
        }
        return (fill.id, expose(fill))
    }

    /// The bytes that the fill may store of a response that brings `window`, as far as it has claimed them.
    package func claim(of id: FillID, bringing window: ByteRange) -> ByteRange {
        guard let fill = fill(id), !fill.window.isEmpty, fill.allowance < .max else { return window }
        return fill.reach.clamped(to: window)
    }

    /// Whether the fill was begun for a reader without a stated end.
    package func isSpeculative(_ id: FillID) -> Bool { fill(id)?.isSpeculative ?? false }

    /// How long a carried transfer waits for its first reader.
    private static let carriedFor = Duration.seconds(5)

    /// The generation is the upstream's, and of this length where that is known. Where it `isSequential` its bytes come in
    /// one transfer only; where it cannot be continued, no transfer brings more of it beside bytes on disk.
    /// `isNew` as for `began`.
    package mutating func confirmed(
        length: Int64?, isNew: Bool = false, isSequential: Bool = false, canBeContinued: Bool = true
    ) -> [Action] {
        if isNew { forgetDescription() }
        // Who waits for bytes, and learns nothing new, sleeps on: woken, it would miss the failure that may come next.
        let isNews = !isDescribed || (self.length == nil && length != nil)
        self.length = length ?? self.length
        self.canBeContinued = canBeContinued
        if isSequential || !canBeContinued { acceptsRanges = false }
        isDescribed = true
        var actions: [Action] = []
        for (id, reader) in readers where reader.needsConfirmation {
            // One that waits for missing bytes waits on: a 304 alone does not bring them.
            let mustWait = reader.wanted.map { mustRestart([$0]) } ?? false
            readers[id]?.needsConfirmation = mustWait
            if reader.wanted != nil, !mustWait { actions += tell(.arrived, to: id) }
        }
        return actions + tell(.arrived) { isNews || $0.wanted == nil }
    }

    /// Begins to confirm the generation for nobody in particular, if that is not under way (RFC 5861 §3).
    package mutating func confirmBehind() -> [Action] {
        guard isDescribed, questions.isEmpty else { return [] }
        return [start(.confirmation(.closed(0..<1)), window: 0..<0, priority: .readAhead, isBehind: true)]
    }

    /// The upstream has no byte from `end` on: the length, where none had been said.
    package mutating func foundEnd(at end: Int64) -> [Action] {
        guard isDescribed, length == nil else { return [] }
        length = end
        return tell(.arrived) { _ in true }
    }

    /// The fill's bytes up to `position` are on disk.
    package mutating func arrived(_ id: FillID, upTo position: Int64) -> [Action] {
        guard let index = fills.firstIndex(where: { $0.id == id }), position > fills[index].position else { return [] }
        let arrival = fills[index].position..<position
        fills[index].position = position
        if position > fills[index].window.upperBound {
            fills[index].window = fills[index].window.lowerBound..<min(position, fills[index].end)
        }
        // Bytes that were there are no progress; bytes that are leaving go with those before them.
        for run in leaving.gaps(in: arrival) {
            fills[index].progress += extents.insert(run)
            unclaimed.remove(run)
        }
        return tell(.arrived) { $0.wanted.map { arrival.contains($0.lowerBound) } ?? true }
    }

    /// The fill brought all it was to bring; one of unknown length has now found the end.
    package mutating func completed(_ id: FillID) -> [Action] {
        guard let fill = take(id) else { return [] }
        failures[fill.wish.place] = nil
        guard length == nil, fill.end == .max else { return planAgain(after: fill) }
        length = fill.position
        return tell(.arrived) { _ in true }
    }

    /// The fill ended early. Where another try makes sense it is planned anew from the next missing byte, in the name of
    /// one of those who wait; otherwise everybody who depended on it is told.
    package mutating func broke(_ id: FillID, with code: CacheError.Code, isWorthRetrying: Bool) -> [Action] {
        guard let fill = take(id) else { return [] }
        guard code != .cancelled else { return handOver(fill) }
        if case .rangeNotSatisfiable = code, case .opening(let window) = fill.wish {
            return tell(.gaveUp(code)) { $0.opening == window && $0.wanted == nil } + handOver(fill)
        }
        let earlier = failures.removeValue(forKey: fill.wish.place) ?? 0
        let inARow = fill.hasProgressed ? 0 : earlier + 1
        if isWorthRetrying, inARow <= settings.retries {
            failures[fill.window.isEmpty || acceptsRanges == false ? nil : fill.position] = inARow
            return handOver(fill)
        }
        // Who has just learned what the asset is has yet to say what it wants.
        let busy = readers.filter { _, reader in
            !reader.isWaiting && reader.wanted.map { $0.overlaps(fill.remaining) } ?? true
        }
        for id in busy.keys { readers[id]?.setback = Setback(range: fill.remaining, code: code) }
        let ledger = self
        return tell(WaitOutcome(code)) { !ledger.isAwaited($0) }
    }

    /// The fill broke, with `code`, on what has been put right, or is tried again until it is: what it was to bring is planned
    /// anew, and the failure does not count. Who has stopped asks when it goes on; and a prefetch of what finds no room is
    /// told, for it has nothing to pass on.
    package mutating func renewed(_ id: FillID, after code: CacheError.Code) -> [Action] {
        guard let fill = take(id) else { return [] }
        let isVain = code == .storageFull
        let told = isVain ? tell(WaitOutcome(code)) { $0.priority == .prefetch && $0.looksTo(fill) } : []
        return told + handOver(fill)
    }

    // MARK: Parts

    func fill(_ id: FillID) -> Fill? { (fills + questions).first { $0.id == id } }

    /// A fill has vanished: the first of those who want its bytes begins the next one, and the others have that.
    private mutating func handOver(_ fill: Fill) -> [Action] {
        readers(of: fill) { !$0.isTold && ($0.isWaiting || !hasStopped($0)) }.flatMap { id -> [Action] in
            let actions = planOrDescribe(for: id)
            guard actions.contains(where: \.isStart), readers[id]?.isWaiting == true else { return actions }
            return actions + [.tell(id, .writerVanished)]
        }
    }

    /// Plans for those who wait for what the fill did not bring; who does not wait will ask.
    private mutating func planAgain(after fill: Fill) -> [Action] {
        readers(of: fill, where: \.isWaiting).flatMap { planOrDescribe(for: $0) }
    }

    /// Those who want something that the fill was to bring, longest here first.
    private func readers(of fill: Fill, where concerns: (Reader) -> Bool) -> [ReaderID] {
        let concernsAll = fill.window.isEmpty || acceptsRanges == false
        let chosen = readers.filter { _, reader in
            concerns(reader) && (concernsAll || reader.wanted.map { $0.overlaps(fill.window) } ?? true)
        }
        return chosen.keys.sorted { $0.number < $1.number }
    }

    private mutating func take(_ id: FillID) -> Fill? {
        if let index = fills.firstIndex(where: { $0.id == id }) { return fills.remove(at: index) }
        return questions.firstIndex { $0.id == id }.map { questions.remove(at: $0) }
    }

    /// Whether a fill in flight still brings what the reader waits for, or will be asked for once it has left the disk.
    private func isAwaited(_ reader: Reader) -> Bool {
        guard let wanted = reader.wanted, !reader.needsConfirmation else { return !questions.isEmpty }
        let position = wanted.lowerBound
        return leaving.run(containing: position) != nil || fill(bringing: position) != nil
    }
}

extension FillLedger.Action {
    var isStart: Bool { if case .start = self { true } else { false } }
}
