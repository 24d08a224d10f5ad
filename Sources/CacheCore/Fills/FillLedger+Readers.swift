/// Readers: their demand, progress, waits and dismissal.
extension FillLedger {
    /// Adds a reader.
    ///
    /// - `opening`: the window of the first request if the asset is not known.
    /// - `waitLimit`: the longest single wait; nil: no limit.
    /// - `maxLead`: the largest distance in bytes between the reader and a transfer without ranges; nil: the largest
    ///   window.
    /// - `attempts`: the additional requests of a read that continues here; nil: the read is new.
    package mutating func join(
        opening: UpstreamRequest.Window, priority: TransferPriority, needsConfirmation: Bool,
        waitLimit: Duration? = nil, maxLead: Int64? = nil, attempts: Attempts? = nil
    ) -> (ReaderID, [Action]) {
        let id = ReaderID(number: nextNumber())
        let maxLead = min(maxLead ?? .max, settings.largestWindowBytes)
        var readAhead = ReadAhead(sizes: settings)
        readAhead.demand = demand(opening, priority)
        readers[id] = Reader(
            priority: priority, opening: opening, needsConfirmation: needsConfirmation && isDescribed,
            waitLimit: waitLimit, maxLeadBytes: maxLead, readAhead: readAhead)
        if let attempts { restore(attempts, of: id) }
        let actions = describe(for: id)
        if let reader = readers[id], lookUp(reader) == .pending { readers[id]?.waitingSince = now }
        return (id, actions)
    }

    /// Sets the bytes that the reader wants next, in ascending order; its asset must be described. `later`: the ranges
    /// after them.
    ///
    /// If only a new transfer of the whole body brings them, that transfer is begun and the reader waits for its
    /// response head. Otherwise a response could begin with the bytes on disk and never be completed.
    package mutating func want(_ range: ByteRange, by id: ReaderID, later: [ByteRange] = []) -> [Action] {
        guard var reader = readers[id] else { return [] }
        if reader.wanted?.lowerBound != range.lowerBound { reader.readAhead.sought() }
        reader.readAhead.demand = demand(range, reader.priority)
        reader.readAhead.moved(to: range.lowerBound, at: now)
        if let before = reader.wanted, before.lowerBound != range.lowerBound { reader.pendingFailure = nil }
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

    /// Gives a reader the additional requests of its read so far, and charges it for a transfer that broke before it
    /// came. With an exhausted budget it gets only bytes on disk.
    private mutating func restore(_ attempts: Attempts, of id: ReaderID) {
        var attempts = attempts
        if let unreadFailure { attempts.add(unreadFailure) }
        readers[id]?.attempts = attempts
        if attempts.count > settings.retries { readers[id]?.dismissal = attempts.failure }
    }

    /// The demand of a reader of a possibly unknown asset.
    private func demand(_ opening: UpstreamRequest.Window, _ priority: TransferPriority) -> ReadAhead.Demand {
        if priority == .prefetch { return .stated }
        guard case .closed(let range) = opening, range.length <= settings.largestWindowBytes else { return .openEnded }
        return .stated
    }

    /// The demand of a reader of `range`. A range that reaches the end of a large asset is open-ended: players send
    /// such ranges and disconnect when they have enough.
    private func demand(_ range: ByteRange, _ priority: TransferPriority) -> ReadAhead.Demand {
        if priority == .prefetch { return .stated }
        let most = settings.largestWindowBytes
        if let length, range.upperBound >= length { return length <= most ? .smallAsset : .openEnded }
        return range.upperBound < .max && range.length <= most ? .stated : .openEnded
    }

    /// Cuts the fills of `left` without readers, except for those that are worth finishing.
    private mutating func abandon(_ left: [Fill]) -> [Action] {
        let unwanted = left.compactMap { fill($0.id) }.filter { !isWanted($0) }
        let finished = unwanted.filter(isWorthFinishing)
        return claimRest(of: finished) + cut(unwanted.filter { !isWorthFinishing($0) })
    }

    /// Records that the reader has sent all bytes before `position`, and plans its next windows.
    package mutating func advance(_ id: ReaderID, to position: Int64) -> [Action] {
        guard var reader = readers[id], let wanted = reader.wanted else { return [] }
        reader.wanted = min(position, wanted.upperBound)..<wanted.upperBound
        reader.movedAt = now
        reader.readAhead.moved(to: position, at: now)
        readers[id] = reader
        return plan(for: id) + regulate()
    }

    /// How far the reader is served. On `.pending` the reader counts as waiting, and its bytes are requested again if a
    /// fill has failed since the last call.
    package mutating func poll(_ id: ReaderID) -> (Presence, [Action]) {
        guard let reader = readers[id] else { return (.end, []) }
        let presence = lookUp(reader)
        guard presence == .pending else {
            readers[id]?.waitingSince = nil
            // The upstream has answered another reader.
            if reader.pendingFailure?.until != nil { readers[id]?.pendingFailure = nil }
            return (presence, [])
        }
        if let code = reader.dismissal { return (.over(code), []) }
        if reader.isPassive, isLost(to: reader) { return (.over(.notCached), []) }
        if let pendingFailure = reader.pendingFailure, let position = reader.wanted?.lowerBound,
            pendingFailure.range.contains(position), pendingFailure.until == nil
        {
            readers[id]?.pendingFailure = nil
            if fill(bringing: position) == nil, !isPatient(reader, after: pendingFailure.code) {
                return (.over(pendingFailure.code), [])
            }
        }
        readers[id]?.waitingSince = reader.waitingSince ?? now
        readers[id]?.isNotified = false
        return (presence, planOrDescribe(for: id))
    }

    /// Removes a reader. Fills without readers are cut, except for those that are worth finishing.
    package mutating func leave(_ id: ReaderID) -> [Action] {
        guard let reader = readers.removeValue(forKey: id) else { return [] }
        // The demand for all other fills is unchanged, so they need no check.
        let own = readers.isEmpty ? fills[...] : reader.span.map(fills(touching:)) ?? fills[...]
        return abandon(own + metadataFills) + regulate()
    }

    /// Stops all fills for an administrator. A reader that is present fails with `code` when it would have to wait, and
    /// no further fill is started for it.
    package mutating func stopFills(because code: CacheError.Code) -> [Action] {
        dismiss(because: code) { _ in true } + cut(fills + metadataFills)
    }

    /// Stops one fill for an administrator, with the same effect on the readers that depend on it.
    package mutating func stopFill(_ id: FillID, because code: CacheError.Code) -> [Action] {
        guard let fill = fill(id) else { return [] }
        return dismiss(because: code) { $0.looksTo(fill) } + cut([fill])
    }

    /// Stops fills for the selected readers and ends their waits with `code`.
    mutating func dismiss(because code: CacheError.Code, where concerns: (Reader) -> Bool) -> [Action] {
        for (id, reader) in readers where concerns(reader) { readers[id]?.dismissal = code }
        return notify(WaitOutcome(code)) { $0.dismissal != nil }
    }

    /// Checks time limits at `now`: ends waits that are too long, cuts carried transfers without readers, and splits
    /// slow windows.
    package mutating func tick() -> [Action] {
        let now = now
        let late = readers.filter { _, reader in
            guard let since = reader.waitingSince, let limit = reader.waitLimit else { return false }
            return now - since >= limit
        }
        var actions = late.flatMap { id, reader in
            notify(reader.pendingFailure.flatMap { $0.until == nil ? nil : WaitOutcome($0.code) } ?? .timedOut, to: id)
        }
        actions += repeatPatiently()
        for index in fills.indices where fills[index].keptUntil.map({ now >= $0 }) == true {
            fills[index].keptUntil = nil
            if !isWanted(fills[index]) { actions += abandon([fills[index]]) }
        }
        guard acceptsRanges != false, !fills.isEmpty else { return actions }
        for id in readers.filter({ $0.value.isWaiting && $0.value.wanted != nil }).keys { actions += plan(for: id) }
        return actions
    }

    /// The presence of the reader, without a change of state.
    func lookUp(_ reader: Reader) -> Presence {
        guard isDescribed, !reader.needsConfirmation else { return .pending }
        guard let wanted = reader.wanted.map(clampedToEnd) else { return .described }
        guard !wanted.isEmpty else { return .end }
        return extents.run(containing: wanted.lowerBound).map { .bytes($0.clamped(to: wanted)) } ?? .pending
    }

    /// Notifies one reader and ends its wait. No action if it does not wait.
    mutating func notify(_ outcome: WaitOutcome, to id: ReaderID) -> [Action] {
        guard readers[id]?.isWaiting == true else { return [] }
        readers[id]?.waitingSince = nil
        readers[id]?.isNotified = outcome.failure != nil
        return [.notify(id, outcome)]
    }

    /// Notifies the waiting readers for which `concerns` is true.
    mutating func notify(_ outcome: WaitOutcome, where concerns: (Reader) -> Bool) -> [Action] {
        let concerned = readers.filter { $0.value.isWaiting && concerns($0.value) }.keys
        return concerned.flatMap { notify(outcome, to: $0) }
    }
}

extension FillLedger.Reader {
    /// Whether the reader depends on the fill: for bytes that are still missing, or for the description.
    func looksTo(_ fill: FillLedger.Fill) -> Bool {
        guard let wanted, !needsConfirmation else { return fill.fillRequest.isDescription || fill.isRepeatedWhole }
        return !fill.window.isEmpty && wanted.overlaps(fill.remaining)
    }
}
