import CacheCore
import CacheStore
import MediaParsing

/// Fetches one item of a job: a reader that waits until bytes are on disk, without reading them.
struct PrefetchFill {
    let cache: AssetCache
    private(set) var item: JobItemRecord
    /// The rate limiter of the job; nil if the job has no limit.
    let pace: PrefetchRateLimiter?
    /// The space claims of the job.
    let jobSpace: JobSpaceClaims
    /// The files of a live playlist that the job has from earlier loads.
    let known: Set<JobItemRecord.Content>
    /// Receives the progress of the item.
    let report: (PrefetchSchedule.Progress) -> Void
    private var tally: PrefetchByteCount
    /// The files of a playlist, if the item is one.
    private(set) var children: [JobItemRecord]?
    /// The time from the load of a live playlist to the next one; nil: the item is none, or has ended.
    private(set) var reloadInterval: Duration?
    /// Whether the item does not fit into the capacity of the cache. Any other lack of space is one of the disk.
    private(set) var exceedsCapacity = false
    /// The index of the media file and the span, if the item is one by time.
    private var media: (index: MediaIndex, time: Range<Double>)?
    /// The asset for which the item has claimed space.
    private var claimed: AssetID?
    /// How often writes of the asset had failed for lack of disk space when the item started.
    private var spillCount = 0
    /// The additional upstream requests of the item in all generations so far; nil in the first one.
    private var attempts: FillLedger.Attempts?

    private var context: EngineContext { cache.context }
    /// How often the item is fetched, the first time included, if bytes are evicted before its end.
    private static let rounds = 2

    init(
        cache: AssetCache, item: JobItemRecord, pace: PrefetchRateLimiter?, jobSpace: JobSpaceClaims,
        known: Set<JobItemRecord.Content> = [], report: @escaping (PrefetchSchedule.Progress) -> Void
    ) {
        self.known = known
        self.cache = cache
        self.item = item
        self.pace = pace
        self.jobSpace = jobSpace
        self.report = report
        tally = PrefetchByteCount(item)
    }

    /// Returns when every byte of the item is on disk and in the catalog. Restarts if the asset changes meanwhile.
    ///
    /// Throws `.assetChanged` if it changes repeatedly, `.rangeNotSatisfiable` if the asset has none of the ranges,
    /// `.conflict` if it must not be stored or would have too many tags, `.upstreamRefused` for an error response, and
    /// `.storageFull` if the item does not fit. A failed item releases its space claim.
    mutating func run() async throws(CacheError) {
        do throws(CacheError) {
            try await fetch()
        } catch {
            if let claimed { jobSpace.withdraw(claimed) }
            throw error
        }
    }

    /// Ends the space claim of an item that has succeeded.
    func releaseClaim() { if let claimed { jobSpace.withdraw(claimed) } }

    /// Fetches the asset, in a new round for each generation.
    private mutating func fetch() async throws(CacheError) {
        defer { report(tally.progress) }
        let target = try await cache.resolver.resolve(item.reference)
        let began = context.uptime()
        // Every generation stays held: a complete asset stays in use until its prefetched successor replaces it.
        var held: [OpenAsset] = []
        defer { for asset in held { context.openAssets.release(asset) } }
        for round in 1...Self.generations {
            let successor = held.last.flatMap { context.openAssets.acquireSuccessor(of: $0) }
            let asset = if let successor { successor } else { try await cache.resolver.open(target) }
            held.append(asset)
            do throws(CacheError) {
                return try await fetchAll(of: asset, since: began, isFirst: round == 1)
            } catch {
                asset.abandon()
                guard error.code == .assetChanged, round < Self.generations else { throw error }
            }
        }
    }

    /// The maximum number of generations per run.
    private static let generations = 4

    /// Fetches one generation of the asset: joins it as a reader, which waits for the description and, if needed, the
    /// revalidation. `isFirst`: the bytes on disk were there before the item started.
    private mutating func fetchAll(
        of asset: OpenAsset, since began: Duration, isFirst: Bool
    ) async throws(CacheError) {
        let (isKnown, before) = asset.look { ($0.ledger.isDescribed, $0.ledger.extents) }
        spillCount = asset.look { $0.file }?.spillCount ?? 0
        if isFirst { tally.begin(asset.id, before: before) } else { tally.beginAnew() }
        report(tally.progress)
        if let pace, !isKnown { try await pace.take(pace.pieceBytes) }
        let (generation, isBare) = asset.look { ($0.record?.generation, $0.isBare) }
        // Before the first byte, the stored length may come from a `HEAD` response, so it is confirmed.
        let isFresh = asset.isFresh(at: context.wallClock.now())
        // A live playlist has changed after the interval, whatever its lifetime is.
        let mustConfirm = generation != nil && (isBare || !isFresh || item.followsLive)
        let reader = try asset.join(
            opening: opening, priority: .prefetch, mustConfirm: mustConfirm, began: began, maxLead: pace?.pieceBytes,
            attempts: attempts)
        defer { attempts = asset.leave(reader) }
        _ = try await asset.nextPresence(of: reader)
        try checkKept(asset)
        try await fetchAll(of: asset, reader)
    }

    /// Fetches all runs of the item and marks the asset:
    ///
    /// 1. Space for the item is claimed.
    /// 2. The runs are fetched and committed.
    /// 3. Runs that were evicted meanwhile are fetched once more.
    /// 4. The generation becomes the one that readers are served from, and gets its tags and its pin.
    private mutating func fetchAll(of asset: OpenAsset, _ reader: FillLedger.ReaderID) async throws(CacheError) {
        if let play = item.play { try await resolve(play, of: asset, reader) }
        var runs = try item.runs(length: asset.look { $0.ledger.length })
        try measure(runs, of: asset)
        report(tally.progress)
        try checkRoom(for: runs, of: asset)
        for round in 1...Self.rounds {
            try await fetch(runs, of: asset, reader, isCounted: round == 1)
            runs = try item.runs(length: asset.look { $0.ledger.length })
            try measure(runs, of: asset)
            try checkKept(asset)
            // Only a generation that replaces another one is reported again, when it takes its place.
            let isSuccessor = asset.look { $0.former != nil }
            try await context.commits.flush()
            for run in runs { try checkOnDisk(run, of: asset) }
            runs = try checkRoom(for: runs, of: asset)
            guard !runs.isEmpty else {
                try checkPresent(asset)
                if isSuccessor { try await context.commits.flush() }
                if let play = item.play, let media {
                    let extents = asset.look { $0.ledger.extents }
                    tally.plays(media.index.playableSeconds(of: media.time, cached: extents, kinds: play.kinds))
                }
                return try await mark(asset)
            }
        }
        exceedsCapacity = true
        throw CacheError(.storageFull, "Bytes were evicted before all of the item was on disk.")
    }

    /// Finds the ranges of an item by time with the index of the media, or the files of a playlist.
    private mutating func resolve(
        _ play: PlayRequest, of asset: OpenAsset, _ reader: FillLedger.ReaderID
    ) async throws(CacheError) {
        (children, media, reloadInterval) = (nil, nil, nil)  // those of an earlier generation
        let bytes = MediaReader(asset: asset, reader: reader, pace: pace)
        do throws(CacheError) {
            switch try await cache.media.document(of: asset, bytes) {
            case .index where item.followsLive:
                throw CacheError(.unsupportedMedia, "The asset is no playlist, so that it cannot be followed.")
            case .index(let coarse):
                let time = play.span(end: coarse.end)
                try time.checkBegins(within: coarse.end)
                let index = try await cache.media.index(coarse, of: asset, bytes, for: time)
                try time.checkBegins(within: index.end)
                media = (index, time)
                item.ranges = index.ranges(of: time, kinds: play.kinds, length: asset.look { $0.ledger.length }).runs
                    .map(\.fieldValue)
                tally.resolved(item.ranges, index.result(from: time))
            case .playlist(let playlist):
                // Its files would be fetched with other credentials than those that opened it.
                guard !asset.target.isReadersOwn else { throw AssetTarget.readerRequired }
                let own = known.isEmpty ? try play.resolved(in: playlist) : play
                item.ranges = []
                let expansion = PlaylistExpansion(
                    play: own, target: asset.target, upstream: context.upstreams.client)
                if item.followsLive, playlist.format != .hlsMultivariant {
                    let files = expansion.filesOfLive(playlist, without: known).map { [item] in $0.liveItem(of: item) }
                    if playlist.isLive { reloadInterval = playlist.reloadInterval(afterChange: !files.isEmpty) }
                    children = files
                } else {
                    children = expansion.files(of: playlist).map { [item] in $0.item(of: item) }
                }
                tally.resolved([], playlist.result(from: own.time))
            }
        } catch {
            let isOfMedia = [.unsupportedMedia, .malformedMedia, .mediaIndexTooLarge].contains(error.code)
            guard isOfMedia, play.otherwise != .fail else {
                if isOfMedia { await bytes.finishOpening() }
                tally.failed(fetched: bytes.fetched)
                throw error
            }
            item.ranges = play.otherwise == .head ? ["bytes=0-\(PlayRequest.headBytes - 1)"] : []
            tally.resolved(item.ranges, PlayResult(container: nil, layout: nil, duration: nil))
        }
    }

    /// Fetches the runs at the rate limit of the job, which cached bytes do not use up. `isCounted`: the bytes count
    /// as progress.
    private mutating func fetch(
        _ runs: [ByteRange], of asset: OpenAsset, _ reader: FillLedger.ReaderID, isCounted: Bool
    ) async throws(CacheError) {
        let (isPresent, acceptsRanges) = asset.look { state in
            (runs.allSatisfy { state.ledger.extents.contains($0) }, state.ledger.acceptsRanges)
        }
        guard let pace, !isPresent else {
            for run in runs { try await follow(run, of: asset, reader, isCounted: isCounted) }
            return
        }
        guard acceptsRanges != false else {
            return try await accompany(runs, of: asset, reader, isCounted: isCounted, at: pace)
        }
        for run in runs { try await fetch(run, of: asset, reader, isCounted: isCounted, at: pace) }
    }

    /// Fetches one run in pieces, each of which waits for the rate limiter unless it is on disk.
    private mutating func fetch(
        _ run: ByteRange, of asset: OpenAsset, _ reader: FillLedger.ReaderID, isCounted: Bool,
        at pace: PrefetchRateLimiter
    ) async throws(CacheError) {
        var position = run.lowerBound
        while position < run.upperBound {
            let (isPresent, next) = asset.look { $0.ledger.piece(from: position, limit: pace.pieceBytes) }
            let piece = position..<min(next, run.upperBound)
            guard !piece.isEmpty else { return }
            if !isPresent { try await pace.take(piece.length) }
            try await follow(piece, of: asset, reader, isCounted: isCounted)
            position = piece.upperBound
        }
    }

    /// Requests the run, and waits until all of it is on disk or the end of the asset is found.
    private mutating func follow(
        _ run: ByteRange, of asset: OpenAsset, _ reader: FillLedger.ReaderID, isCounted: Bool
    ) async throws(CacheError) {
        asset.want(run, by: reader)
        while case .bytes(let present) = try await asset.nextPresence(of: reader) {
            try checkOnDisk(present, of: asset)
            if isCounted { pass(present) }
            asset.advance(reader, to: present.upperBound)
        }
    }

    /// The form of `follow` for an upstream without range support. The transfer delivers the asset from its first
    /// byte, and the rate-limited reader applies backpressure to it.
    private mutating func accompany(
        _ runs: [ByteRange], of asset: OpenAsset, _ reader: FillLedger.ReaderID, isCounted: Bool,
        at pace: PrefetchRateLimiter
    ) async throws(CacheError) {
        let wanted = ByteRangeSet(runs)
        asset.want(0..<(wanted.runs.last?.upperBound ?? 0), by: reader)
        while case .bytes(let present) = try await asset.nextPresence(of: reader) {
            let piece = present.lowerBound..<min(present.upperBound, present.lowerBound + pace.pieceBytes)
            try checkOnDisk(piece, of: asset)
            if isCounted { for run in wanted.runs(in: piece) { pass(run) } }
            try await pace.take(piece.length)
            asset.advance(reader, to: piece.upperBound)
        }
    }

    /// Counts a range that is on disk, and reports the progress if due.
    private mutating func pass(_ range: ByteRange) {
        tally.passed(range)
        if tally.isDue(at: cache.jobs.prefetch.uptime()) { report(tally.progress) }
    }

    /// Enters the size of the item and claims its space. Throws `.storageFull` if it does not fit into the cache.
    private mutating func measure(_ runs: [ByteRange], of asset: OpenAsset) throws(CacheError) {
        guard runs.last?.upperBound != .max else { return }
        tally.measured(runs.byteCount)
        do throws(CacheError) {
            try jobSpace.claim(
                runs, of: asset, isAgain: claimed == asset.id, under: cache.configuration.policy.settings)
        } catch {
            exceedsCapacity = true
            throw error
        }
        claimed = asset.id
    }

    /// Adds the item's tags to the asset, and pins it if the item says so.
    private func mark(_ asset: OpenAsset) async throws(CacheError) {
        let present = asset.record?.tags ?? []
        let tags = item.tags.isEmpty ? nil : present + item.tags.filter { !present.contains($0) }
        guard tags.map({ $0.count <= AssetPatch.maxTags }) ?? true else {
            throw CacheError(.conflict, "The job's tags would exceed the asset's limit of \(AssetPatch.maxTags).")
        }
        guard tags != nil || item.isPinned else { return }
        _ = try await cache.assets.patch(asset.id, AssetPatch(isPinned: item.isPinned ? true : nil, tags: tags))
    }

    /// Throws unless the asset's content is stored: the response is an error or is passed through, the upstream
    /// forbids to store it, or the disk has no space for its file.
    private func checkKept(_ asset: OpenAsset) throws(CacheError) {
        let (generation, isKept, isUnstorable) = asset.look { state in
            (state.record?.generation, state.file.map { $0.name != nil } ?? true, state.isUnstorable)
        }
        try generation?.checkSucceeded()
        if let status = generation?.passedStatus {
            throw CacheError(.conflict, "A response with status \(status) is passed through and cannot be stored.")
        }
        guard !isUnstorable else { throw Self.unstorable }
        guard isKept else { throw CacheError(.storageFull, "The disk has no space for another file.") }
    }

    /// Throws `.storageFull` if some of the run is only in memory, because the disk had no space for it, and `.conflict`
    /// if some bytes of the asset must not be stored.
    private func checkOnDisk(_ run: ByteRange, of asset: OpenAsset) throws(CacheError) {
        let (file, isUnstorable) = asset.look { ($0.file, $0.isUnstorable) }
        guard !isUnstorable else { throw Self.unstorable }
        guard let file, file.isSpilled, !file.spilled.runs(in: run).isEmpty else { return }
        throw Self.noRoom
    }

    /// The missing ranges of the runs. Throws `.storageFull` if writes of this asset have failed meanwhile: the
    /// missing bytes may have been in memory only, and another fetch would not help.
    @discardableResult
    private func checkRoom(for runs: [ByteRange], of asset: OpenAsset) throws(CacheError) -> [ByteRange] {
        let (gaps, file) = asset.look { state in
            (runs.flatMap { state.ledger.extents.gaps(in: $0) }, state.file)
        }
        guard gaps.isEmpty || file?.spillCount ?? 0 <= spillCount else { throw Self.noRoom }
        return gaps
    }

    private static let unstorable = CacheError(.conflict, "The upstream's headers forbid storing the asset.")
    /// The error of an item that was not stored completely because the disk is full.
    private static let noRoom = CacheError(.storageFull, "The disk has no space for all of the item.")

    /// Throws `.assetChanged` unless readers are now served from the fetched generation.
    private func checkPresent(_ asset: OpenAsset) throws(CacheError) {
        let present = asset.takePlace() ? context.openAssets.acquire(asset.id) : nil
        defer { if let present { context.openAssets.release(present) } }
        guard present === asset else {
            throw CacheError(.assetChanged, "The asset changed while it was being fetched.")
        }
    }

    /// The window of the first request for an unknown asset: the beginning of the range nearest to the asset's start,
    /// because this range exists if any does.
    private var opening: UpstreamRequest.Window {
        if item.play != nil { return .closed(0..<MediaDocument.openingBytes) }
        let nearest = item.specs.min { $0.start < $1.start } ?? .from(first: 0)
        return nearest.opening(limit: pace?.pieceBytes ?? .max)
    }
}

extension FillLedger {
    /// The end of the extent at `position`, or the end of the gap there, at most `limit` bytes on.
    fileprivate func piece(from position: Int64, limit: Int64) -> (isPresent: Bool, end: Int64) {
        if let run = extents.run(containing: position) { return (true, run.upperBound) }
        let end = min(ByteRange(offset: position, length: limit).upperBound, length ?? .max)
        return (false, max(position, min(end, extents.run(startingFrom: position)?.lowerBound ?? .max)))
    }
}

extension JobItemRecord {
    /// The parsed ranges of the item. They were validated when the job was created.
    var specs: [RangeHeader.Spec] {
        ranges.flatMap { text -> [RangeHeader.Spec] in
            if case .ranges(let specs) = RangeHeader.parse(text) { specs } else { [] }
        }
    }

    /// The number of bytes that the item has in an asset of this length. Nil if the asset has none of the ranges; the
    /// item's run reports that.
    func bytes(length: Int64) -> Int64? { (try? runs(length: length))?.byteCount }

    /// The runs that the item names; all bytes while the length is unknown. Throws `.rangeNotSatisfiable` if the asset
    /// has none of the ranges.
    func runs(length: Int64?) throws(CacheError) -> [ByteRange] {
        guard let length else { return [0..<Int64.max] }
        guard length > 0 else { return [] }  // an empty asset satisfies any range
        guard !ranges.isEmpty else { return [0..<length] }
        let named = specs.compactMap { $0.run(length: length) }
        guard !named.isEmpty else {
            throw CacheError(
                .rangeNotSatisfiable(length: length), "The item's ranges are all outside the asset's \(length) bytes.")
        }
        return ByteRangeSet(named).runs
    }
}

extension RangeHeader.Spec {
    /// The first byte of the range; suffixes sort last.
    fileprivate var start: Int64 {
        switch self {
        case .closed(let first, _), .from(let first): first
        case .suffix: .max
        }
    }
}
