extension FillLedger {
    /// Takes a reader in. `opening` is what the first request asks for if the asset is not known yet; `waitLimit` how long
    /// it may wait at a time; `leash` how many bytes a transfer without ranges may run ahead of it.
    package mutating func join(
        opening: UpstreamRequest.Window, priority: TransferPriority, needsConfirmation: Bool,
        waitLimit: Duration? = nil, leash: Int64? = nil
    ) -> (ReaderID, [Action]) {
        let id = ReaderID(number: nextNumber())
        let leash = min(leash ?? .max, settings.largestWindowBytes)
        var readAhead = ReadAhead(sizes: settings)
        readAhead.demand = demand(opening, priority)
        readers[id] = Reader(
            priority: priority, opening: opening, needsConfirmation: needsConfirmation && isDescribed,
            waitLimit: waitLimit, leashBytes: leash, readAhead: readAhead)
        let actions = describe(for: id)
        if let reader = readers[id], lookUp(reader) == .pending { readers[id]?.waitingSince = now }
        return (id, actions)
    }

    /// Says which bytes the reader wants next, in order; its asset must be described. `later`: what it wants after them.
    ///
    /// Where only a new transfer of the whole brings them, that is begun, and the reader waits for its answer: an answer that
    /// cannot be completed is not begun with the bytes on disk.
    package mutating func want(_ range: ByteRange, by id: ReaderID, later: [ByteRange] = []) -> [Action] {
        guard var reader = readers[id] else { return [] }
        if reader.wanted?.lowerBound != range.lowerBound { reader.readAhead.sought() }
        reader.readAhead.demand = demand(range, reader.priority)
        reader.readAhead.moved(to: range.lowerBound, at: now)
        if let before = reader.wanted, before.lowerBound != range.lowerBound { reader.setback = nil }
        reader.wanted = range
        reader.movedAt = now
        reader.comesBackTo = later.map(\.lowerBound).min()
        let span = reader.span ?? range
        reader.span = min(span.lowerBound, range.lowerBound)..<max(span.upperBound, range.upperBound)
        if mustRestart([range] + later) { reader.needsConfirmation = true }
        let left = reader.span.map { $0 == range ? [] : Array(fills(touching: $0)) } ?? []
        readers[id] = reader
        return planOrDescribe(for: id) + abandon(left.filter { $0.canGrow }) + regulate()
    }

    /// How much a reader of an asset that may be unknown has stated.
    private func demand(_ opening: UpstreamRequest.Window, _ priority: TransferPriority) -> ReadAhead.Demand {
        if priority == .prefetch { return .stated }
        guard case .closed(let range) = opening, range.length <= settings.largestWindowBytes else { return .openEnded }
        return .stated
    }

    /// How much a reader of `range` has stated. A range that reaches the end of a large asset states no end: players send
    /// it and hang up where they have enough.
    private func demand(_ range: ByteRange, _ priority: TransferPriority) -> ReadAhead.Demand {
        if priority == .prefetch { return .stated }
        let most = settings.largestWindowBytes
        if let length, range.upperBound >= length { return length <= most ? .smallAsset : .openEnded }
        return range.upperBound < .max && range.length <= most ? .stated : .openEnded
    }

    /// Cuts those of `left` that nobody wants any more, but for those that are worth their end.
    private mutating func abandon(_ left: [Fill]) -> [Action] {
        let unwanted = left.compactMap { fill($0.id) }.filter { !isWanted($0) }
        let finished = unwanted.filter(isWorthFinishing)
        return claimRest(of: finished) + cut(unwanted.filter { !isWorthFinishing($0) })
    }

    /// The reader has sent everything before `position`.
    package mutating func advance(_ id: ReaderID, to position: Int64) -> [Action] {
        guard var reader = readers[id], let wanted = reader.wanted else { return [] }
        reader.wanted = min(position, wanted.upperBound)..<wanted.upperBound
        reader.movedAt = now
        reader.readAhead.moved(to: position, at: now)
        readers[id] = reader
        return plan(for: id) + regulate()
    }

    /// How far the reader is served; where the answer is `.pending` it counts as waiting from now on, and what it waits
    /// for is asked for, should a fill have broken since it asked last.
    package mutating func presence(for id: ReaderID) -> (Presence, [Action]) {
        guard let reader = readers[id] else { return (.end, []) }
        let presence = lookUp(reader)
        guard presence == .pending else {
            readers[id]?.waitingSince = nil
            return (presence, [])
        }
        if let code = reader.dismissal { return (.over(code), []) }
        if let setback = reader.setback, let position = reader.wanted?.lowerBound, setback.range.contains(position) {
            readers[id]?.setback = nil
            if fill(bringing: position) == nil { return (.over(setback.code), []) }
        }
        readers[id]?.waitingSince = reader.waitingSince ?? now
        readers[id]?.isTold = false
        return (presence, planOrDescribe(for: id))
    }

    /// The reader is gone; fills that nobody wants any more are cut, but for those that are worth their end.
    package mutating func leave(_ id: ReaderID) -> [Action] {
        guard let reader = readers.removeValue(forKey: id) else { return [] }
        if readers.isEmpty { failures = [:] }
        // Whatever else is under way is wanted as it was before: nobody else need be asked.
        let own = readers.isEmpty ? fills[...] : reader.span.map(fills(touching:)) ?? fills[...]
        return abandon(own + questions) + regulate()
    }

    /// An administrator stops all fills: whoever is here now is told `code` as soon as it would have to wait, and nothing
    /// more is fetched for it.
    package mutating func stopFills(because code: CacheError.Code) -> [Action] {
        dismiss(because: code) { _ in true } + cut(fills + questions)
    }

    /// An administrator stops one fill; likewise for those who want what it was to bring.
    package mutating func stopFill(_ id: FillID, because code: CacheError.Code) -> [Action] {
        guard let fill = fill(id) else { return [] }
        return dismiss(because: code) { $0.looksTo(fill) } + cut([fill])
    }

    private mutating func dismiss(because code: CacheError.Code, where concerns: (Reader) -> Bool) -> [Action] {
        for (id, reader) in readers where concerns(reader) { readers[id]?.dismissal = code }
        return tell(WaitOutcome(code)) { $0.dismissal != nil }
    }

    /// Time has passed: who has waited too long is told so; windows that turn out slow are given up where they can be.
    package mutating func tick() -> [Action] {
        let now = now
        var actions = tell(.deadlinePassed) { reader in
            guard let since = reader.waitingSince, let limit = reader.waitLimit else { return false }
            return now - since >= limit
        }
        for index in fills.indices where fills[index].keptUntil.map({ now >= $0 }) == true {
            fills[index].keptUntil = nil
            if !isWanted(fills[index]) { actions += abandon([fills[index]]) }
        }
        guard acceptsRanges != false, !fills.isEmpty else { return actions }
        for id in readers.filter({ $0.value.isWaiting && $0.value.wanted != nil }).keys { actions += plan(for: id) }
        return actions
    }

    func lookUp(_ reader: Reader) -> Presence {
        guard isDescribed, !reader.needsConfirmation else { return .pending }
        guard let wanted = reader.wanted.map(clampedToEnd) else { return .described }
        guard !wanted.isEmpty else { return .end }
        return extents.run(containing: wanted.lowerBound).map { .bytes($0.clamped(to: wanted)) } ?? .pending
    }

    /// Ends the waiting of one reader.
    mutating func tell(_ outcome: WaitOutcome, to id: ReaderID) -> [Action] {
        guard readers[id]?.isWaiting == true else { return [] }
        readers[id]?.waitingSince = nil
        readers[id]?.isTold = outcome.failure != nil
        return [.tell(id, outcome)]
    }

    /// Ends the waiting of those it concerns.
    mutating func tell(_ outcome: WaitOutcome, where concerns: (Reader) -> Bool) -> [Action] {
        let concerned = readers.filter { $0.value.isWaiting && concerns($0.value) }.keys
        return concerned.flatMap { tell(outcome, to: $0) }
    }
}

extension FillLedger.Reader {
    /// Whether it waits, or will, for something that the fill has yet to bring: bytes, or what the asset is.
    func looksTo(_ fill: FillLedger.Fill) -> Bool {
        guard let wanted, !needsConfirmation else { return fill.wish.isDescription }
        return !fill.window.isEmpty && wanted.overlaps(fill.remaining)
    }
}
