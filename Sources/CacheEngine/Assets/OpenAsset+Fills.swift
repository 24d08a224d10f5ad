import CacheCore
import CacheStore
import Logging

/// Upstream requests of fills, the arrival of their bytes and their end.
extension OpenAsset {
    /// The current target; `retarget` replaces it.
    var target: AssetTarget { look { $0.target } }
    /// Nil until the upstream has described the asset.
    var record: AssetRecord? { look { $0.record } }

    /// Replaces the address to fetch from; the asset stays the same (signed URLs, rotated tokens).
    func retarget(_ target: AssetTarget) {
        change { state in
            if state.target.url != target.url { state.ledger.follow(context.upstreams.paths, to: target.url) }
            state.target = target.withoutReader
            return ((), [])
        }
    }

    /// Whether the asset may be used without a request to the upstream.
    func isFresh(at now: Timestamp) -> Bool {
        look { state in
            state.record.map { $0.generation.isFresh(at: now) && !state.target.hasMoved(since: $0) } ?? false
        }
    }

    /// Stores the current URL in the record.
    func rebind() {
        change { state in
            let url = state.target.url
            guard let record = state.record, record.url != url else { return ((), []) }
            state.record?.url = url
            refreshRow(state)
            return ((), [])
        }
    }

    /// Marks the asset stale; its bytes stay.
    func expire() {
        change { state in
            state.record?.generation.freshUntil = nil
            refreshRow(state)
            return ((), [])
        }
    }

    /// Builds the upstream request of a fill to its target. `isPlain`: the request has no `Range`.
    func upstreamRequest(
        to target: AssetTarget, for fillRequest: FillLedger.FillRequest, priority: TransferPriority, delay: Duration,
        isPlain: Bool
    ) -> UpstreamRequest {
        let (validators, isConfirmable) = look { state in
            (state.record?.generation.validators, state.ledger.isConfirmable)
        }
        var request = context.upstreams.request(to: target, priority: priority)
        request.delay = delay
        request.window = isPlain ? .whole : fillRequest.window
        switch fillRequest {
        case .opening, .whole: break
        case .window:
            // With another trust setting, other validators decide: the server may tag the same bytes differently.
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

    /// Records bytes that a fill has written. The ledger and the commit queue are updated under one lock; otherwise the
    /// queue could claim bytes that the ledger has discarded.
    func arrived(_ range: ByteRange, in file: SparseFile, by fill: FillLedger.FillID) {
        let onDisk = file.name == nil ? [] : file.kept(range)
        let (owners, new, isLost, grown, isCounted) = change { state in
            let new = state.ledger.vacancies(in: range)
            let actions = state.ledger.arrived(fill, upTo: range.upperBound)
            // Under the lock, because bytes are released under it.
            for released in onDisk.flatMap(file.released) { _ = state.ledger.invalidate(released) }
            let extents = state.ledger.extents
            context.commits.grew(file, onDisk.flatMap { extents.runs(in: $0) })
            // Bytes of a fill that was stopped, or of an evicting range, have no extent: they are dropped from memory,
            // and orphaned on disk.
            if file.isSpilled { file.unspill(extents.gaps(in: range)) }
            let lost = onDisk.flatMap { extents.gaps(in: $0) }
            state.ledger.orphan(lost)
            let grown = state.grew(by: new.byteCount, in: file)
            let isCounted = file.name != nil && state.ownsRow
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

    /// Reports a read of bytes that were on disk before their reader came. Every read calls this function: repeated
    /// reads of a segment within five minutes touch no shared state.
    func wasRead(_ run: ByteRange, at now: Timestamp) {
        guard !isForeign else { return }
        let grid = context.space.grid
        guard let due = reads.withLock({ $0.record(run, in: grid, at: now) }) else { return }
        context.space.read(due, of: id, at: now)
    }

    /// Handles bytes that the disk failed to sync; their file accepts no more writes. Their readers are cut off, and
    /// the asset restarts without bytes. Releases the caller's hold on the asset.
    func lost(_ bytes: ByteRangeSet, of file: FileName) {
        defer { context.openAssets.release(self) }
        guard look({ $0.file?.name == file }) else { return }
        change { state in
            for run in bytes.runs { state.ledger.lose(run) }
            return ((), [])
        }
        context.evictionLog.note(.corrupt, bytes.runs, of: target)
        context.openAssets.reset(self)
        stopFetching(CacheError(.storageCorrupt, "The disk failed to sync bytes of the asset; they are refetched."))
    }

    /// Restarts an asset with a file that was deleted from outside. Returns the error for its readers.
    @discardableResult
    func vanished(_ file: SparseFile) -> CacheError {
        let error = CacheError(.assetChanged, "The asset's file was deleted; repeat the request to refetch it.")
        guard let runs = look({ $0.file === file ? $0.ledger.extents.runs : nil }) else { return error }
        context.logger.error("the file of an asset was deleted; the asset is refetched", metadata: ["asset": "\(id)"])
        context.evictionLog.note(.corrupt, runs, of: target)
        context.openAssets.reset(self)
        return error
    }

    /// Ends a fill. After a failure, `retry` holds the parameters of the next try; nil: no further try.
    func ended(_ fill: FillLedger.FillID, error: CacheError?, retry: FillRetry?) {
        // Done before readers are notified: a repeated request must find the restarted asset.
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
        if error == nil { readLifetimeOfPlaylist() }
    }

    /// Stores the length of an asset after the end of its body was found.
    func recordLength() {
        change { state in
            let length = state.ledger.length
            state.record?.generation.length = length
            if state.file?.name != nil { refreshRow(state) }
            return ((), [])
        }
    }

    /// Reports the record to the catalog, which updates the row if there is one.
    func refreshRow(_ state: State) {
        if let record = state.record, state.ownsRow { context.commits.refreshed(record) }
    }
}
