import CacheCore
import CacheStore
import Logging
import Synchronization

extension OpenAsset {
    var target: AssetTarget { look { $0.target } }
    var record: AssetRecord? { look { $0.record } }

    /// The address to fetch from may change while the asset stays the same (signed URLs, rotated tokens).
    func retarget(_ target: AssetTarget) {
        change { state in
            if state.target.url != target.url { state.ledger.follow(context.paths, to: target.url) }
            state.target = target
            return ((), [])
        }
    }

    /// Whether it may be used unasked.
    func isFresh(at now: Timestamp) -> Bool {
        look { state in
            state.record.map { $0.generation.isFresh(at: now) && !state.target.hasMoved(since: $0) } ?? false
        }
    }

    /// Has the record say where the asset is fetched from now.
    func rebind() {
        change { state in
            let url = state.target.url
            guard let record = state.record, record.url != url else { return ((), []) }
            state.record?.url = url
            refreshRow(state)
            return ((), [])
        }
    }

    /// Makes the asset stale; its bytes stay.
    func expire() {
        change { state in
            state.record?.generation.freshUntil = nil
            refreshRow(state)
            return ((), [])
        }
    }

    /// The request that a wish makes to the upstream.
    /// `isPlain`: without a `Range`, whatever it asks for.
    func upstreamRequest(
        for wish: FillLedger.Wish, priority: TransferPriority, delay: Duration, isPlain: Bool
    ) -> UpstreamRequest {
        let (target, validators, isConfirmable) = look { state in
            (state.target, state.record?.generation.validators, state.ledger.isConfirmable)
        }
        var request = context.request(to: target, priority: priority)
        request.delay = delay
        request.window = isPlain ? .whole : wish.window
        switch wish {
        case .opening, .whole: break
        case .window:
            // Where other proofs are trusted, the answer is judged by them: its server may tag the same bytes differently.
            if !isPlain, target.settings.trustValidators == .strong, let strong = validators?.strong {
                request.headers.set("If-Range", strong)
            }
        case .confirmation where !isConfirmable: break
        case .confirmation:
            if let tag = validators?.entityTag { request.headers.set("If-None-Match", tag.description) }
            if let date = validators?.lastModified { request.headers.set("If-Modified-Since", date) }
        }
        return request
    }

    /// Bytes of the fill are in the file: readers may have them, and the catalog will. Both hear of them at once, or one could be
    /// told of bytes that the other has given up.
    func arrived(_ range: ByteRange, in file: SparseFile, by fill: FillLedger.FillID) {
        let onDisk = file.name == nil ? [] : file.kept(range)
        let (owners, new, isLost, grown, isCounted) = change { state in
            let new = state.ledger.vacancies(in: range)
            let actions = state.ledger.arrived(fill, upTo: range.upperBound)
            let extents = state.ledger.extents
            context.commits.grew(file, onDisk.flatMap { extents.runs(in: $0) })
            // Nobody will find there what a fill brings that was stopped meanwhile, or what is just leaving.
            if file.isSpilled { file.unspill(extents.gaps(in: range)) }
            let lost = onDisk.flatMap { extents.gaps(in: $0) }
            state.ledger.disown(lost)
            let grown = state.grew(by: new.byteCount, in: file)
            let isCounted = file.name != nil && !state.isDisowned
            return ((state.owners, new, !lost.isEmpty, grown, isCounted), actions)
        }
        if isLost { sweep(file) }
        context.space.used(changedBy: grown)
        if isCounted { context.space.arrived(new, of: id, from: owners, at: context.wallClock.now()) }
        if file.name == nil {
            passed(ByteRangeSet([0..<range.upperBound]), of: file, isOnDisk: true)
        } else if file.isSpilled {
            passed(file.spilled, of: file, isOnDisk: false)
        }
        context.counters.refetched(range.length - new.byteCount, origin: owners.origin)
    }

    /// Bytes that had been on disk before its reader came were read. Everybody passes here: what was read a moment ago asks
    /// nothing that is shared.
    func wasRead(_ run: ByteRange, at now: Timestamp) {
        guard !isForeign else { return }
        let grid = context.space.grid
        guard let due = reads.withLock({ $0.take(run, in: grid, at: now) }) else { return }
        context.space.read(due, of: id, at: now)
    }

    /// The disk has lost bytes that were written, and takes no more into that file: whoever reads them is cut off, and the
    /// asset begins anew. Lets the asset go.
    func lost(_ bytes: ByteRangeSet, of file: FileName) {
        defer { context.openAssets.release(self) }
        guard look({ $0.file?.name == file }) else { return }
        change { state in
            for run in bytes.runs { state.ledger.lose(run) }
            return ((), [])
        }
        context.evictionLog.note(.corrupt, bytes.runs, of: target)
        context.openAssets.forget(self)
        retire(CacheError(.storageCorrupt, "The disk has lost bytes of the asset."))
    }

    /// Somebody has removed the file: the asset begins anew without a byte. Answers what its readers are told.
    @discardableResult
    func vanished(_ file: SparseFile) -> CacheError {
        let error = CacheError(.assetChanged, "The asset's file was removed.")
        guard let runs = look({ $0.file === file ? $0.ledger.extents.runs : nil }) else { return error }
        context.logger.error("an asset's file was removed; it is fetched again", metadata: ["asset": "\(id)"])
        context.evictionLog.note(.corrupt, runs, of: target)
        context.openAssets.forget(self)
        return error
    }

    /// The fill is over; where it broke, `retry` is how it is begun again, nil: not at all.
    func ended(_ fill: FillLedger.FillID, error: CacheError?, retry: FillRetry?) {
        // Before anybody hears of it: who asks again is to find the asset that begins anew.
        if error != nil, let file = look({ $0.file }), file.hasVanished { vanished(file) }
        let (hasFoundEnd, grown) = change { state -> ((Bool, Int64), [FillLedger.Action]) in
            state.fills[fill] = nil
            let grown = state.measure(state.file)
            let wasOpen = state.ledger.length == nil
            guard let error else {
                let actions = state.ledger.completed(fill)
                return ((wasOpen && state.ledger.length != nil, grown), actions)
            }
            if error.code != .cancelled { state.lastFailure = error }
            state.retry = retry ?? FillRetry()
            if retry?.isFree == true { return ((false, grown), state.ledger.renewed(fill, after: error.code)) }
            return ((false, grown), state.ledger.broke(fill, with: error.code, isWorthRetrying: retry != nil))
        }
        context.space.used(changedBy: grown)
        if hasFoundEnd { recordLength() }
        if let file = look({ $0.file }) { sweep(file) }
    }

    /// The end of a body of unknown length was found.
    func recordLength() {
        change { state in
            let length = state.ledger.length
            state.record?.generation.length = length
            if state.file?.name != nil { refreshRow(state) }
            return ((), [])
        }
    }

    /// Has the row, where there is one, say what the asset is now.
    func refreshRow(_ state: State) {
        if let record = state.record, !state.isDisowned { context.commits.refreshed(record) }
    }
}

extension CacheError.Code {
    /// Whether it tells of the upstream, and not of the request or the store.
    var isOfUpstream: Bool {
        switch self {
        case .upstreamUnreachable, .upstreamProtocol, .upstreamUnusable, .upstreamTimedOut, .upstreamRefused,
            .upstreamForbidden, .rangeNotSatisfiable:
            true
        default: false
        }
    }
}
