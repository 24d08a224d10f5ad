import CacheCore
import CacheStore
import Synchronization

/// The fetching of one item: a reader that waits for bytes to be on disk, and never looks at them.
struct PrefetchFill {
    let cache: AssetCache
    let item: JobItemRecord
    let pace: PrefetchPace?
    let room: PrefetchRoom
    let report: (PrefetchSchedule.Progress) -> Void
    private var tally: PrefetchTally
    /// The asset that the item has claimed space for.
    private var claimed: AssetID?
    /// How often the disk had had no room for bytes of the asset before.
    private var spillCount = 0

    private var context: EngineContext { cache.context }
    /// How often bytes that were evicted before the end are fetched again.
    private static let rounds = 2

    init(
        cache: AssetCache, item: JobItemRecord, pace: PrefetchPace?, room: PrefetchRoom,
        report: @escaping (PrefetchSchedule.Progress) -> Void
    ) {
        self.cache = cache
        self.item = item
        self.pace = pace
        self.room = room
        self.report = report
        tally = PrefetchTally(item)
    }

    /// Returns when every byte the item names is on disk and in the catalog. Begins anew where the asset turns out to be
    /// another one on the way.
    ///
    /// Throws `.assetChanged` where it does so again and again, `.rangeNotSatisfiable` where it has none of the ranges,
    /// `.conflict` where it must not be kept, `.storageFull` where it does not fit.
    mutating func run() async throws(CacheError) {
        do throws(CacheError) {
            try await fetch()
        } catch {
            if let claimed { room.withdraw(claimed) }
            throw error
        }
    }

    private mutating func fetch() async throws(CacheError) {
        defer { report(tally.progress) }
        let target = try await cache.resolve(item.reference)
        let began = context.wallClock.now()
        // A complete asset is held until its successor, which is prefetched, takes its place.
        var held: [OpenAsset] = []
        defer { for asset in held { context.openAssets.release(asset) } }
        for round in 1...Self.generations {
            let successor = held.last.flatMap { context.openAssets.acquireSuccessor(of: $0) }
            let asset = if let successor { successor } else { try await cache.open(target) }
            held.append(asset)
            do throws(CacheError) {
                return try await fetchAll(of: asset, since: began, isFirst: round == 1)
            } catch {
                asset.abandon()
                guard error.code == .assetChanged, round < Self.generations else { throw error }
            }
        }
    }

    /// How many generations of the asset are tried.
    private static let generations = 4

    /// `isFirst`: bytes on disk were there before the item.
    private mutating func fetchAll(
        of asset: OpenAsset, since began: Timestamp, isFirst: Bool
    ) async throws(CacheError) {
        let (isKnown, before) = asset.look { ($0.ledger.isDescribed, $0.ledger.extents) }
        spillCount = asset.look { $0.file }?.spillCount ?? 0
        if isFirst { tally.begin(asset.id, before: before) } else { tally.beginAnew() }
        report(tally.progress)
        if let pace, !isKnown { try await pace.take(pace.pieceBytes) }
        let (generation, isBare) = asset.look { ($0.record?.generation, $0.isBare) }
        // Before any byte has come, the length may be that of a `HEAD`.
        let isFresh = asset.isFresh(at: context.wallClock.now())
        let mustConfirm = generation != nil && (isBare || !isFresh)
        let reader = try asset.join(
            opening: opening, priority: .prefetch, mustConfirm: mustConfirm, began: began, leash: pace?.pieceBytes)
        defer { asset.leave(reader) }
        _ = try await asset.settle(reader)
        try checkKept(asset)
        try await fetchAll(of: asset, reader)
    }

    private mutating func fetchAll(of asset: OpenAsset, _ reader: FillLedger.ReaderID) async throws(CacheError) {
        var runs = try item.runs(length: asset.look { $0.ledger.length })
        try measure(runs, of: asset)
        report(tally.progress)
        try checkRoom(for: runs, of: asset)
        for round in 1...Self.rounds {
            try await fetch(runs, of: asset, reader, isCounted: round == 1)
            runs = try item.runs(length: asset.look { $0.ledger.length })
            try measure(runs, of: asset)
            try checkKept(asset)
            try await context.commits.flush()
            for run in runs { try checkOnDisk(run, of: asset) }
            runs = try checkRoom(for: runs, of: asset)
            guard !runs.isEmpty else {
                try checkPresent(asset)
                try await context.commits.flush()
                return try await mark(asset)
            }
        }
        throw CacheError(.storageFull, "Bytes were evicted before all of the item was on disk.")
    }

    /// Fetches the runs at the item's pace; bytes that are there already cost nothing.
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

    private mutating func fetch(
        _ run: ByteRange, of asset: OpenAsset, _ reader: FillLedger.ReaderID, isCounted: Bool, at pace: PrefetchPace
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

    /// Wants the run, and waits until all of it is on disk, or the asset's end is found.
    private mutating func follow(
        _ run: ByteRange, of asset: OpenAsset, _ reader: FillLedger.ReaderID, isCounted: Bool
    ) async throws(CacheError) {
        asset.want(run, by: reader)
        while case .bytes(let present) = try await asset.settle(reader) {
            try checkOnDisk(present, of: asset)
            if isCounted { pass(present) }
            asset.advance(reader, to: present.upperBound)
        }
    }

    /// As `follow` for all runs, where they cannot be asked for in pieces: the transfer brings the asset from its first
    /// byte on, whatever of it is there or wanted, and the reader that goes along at the pace holds it back.
    private mutating func accompany(
        _ runs: [ByteRange], of asset: OpenAsset, _ reader: FillLedger.ReaderID, isCounted: Bool, at pace: PrefetchPace
    ) async throws(CacheError) {
        let wanted = ByteRangeSet(runs)
        asset.want(0..<(wanted.runs.last?.upperBound ?? 0), by: reader)
        while case .bytes(let present) = try await asset.settle(reader) {
            let piece = present.lowerBound..<min(present.upperBound, present.lowerBound + pace.pieceBytes)
            try checkOnDisk(piece, of: asset)
            if isCounted { for run in wanted.runs(in: piece) { pass(run) } }
            try await pace.take(piece.length)
            asset.advance(reader, to: piece.upperBound)
        }
    }

    private mutating func pass(_ range: ByteRange) {
        tally.passed(range)
        if tally.isDue(at: cache.prefetch.uptime()) { report(tally.progress) }
    }

    /// The size of what is wanted, which must fit into the cache.
    private mutating func measure(_ runs: [ByteRange], of asset: OpenAsset) throws(CacheError) {
        guard runs.last?.upperBound != .max else { return }
        tally.measured(runs.byteCount)
        try room.claim(runs, of: asset, isAgain: claimed == asset.id, under: cache.policy().settings)
        claimed = asset.id
    }

    /// Gives the asset the item's tags, and pins it if the item says so.
    private func mark(_ asset: OpenAsset) async throws(CacheError) {
        let present = asset.record?.tags ?? []
        let tags = item.tags.isEmpty ? nil : present + item.tags.filter { !present.contains($0) }
        guard tags.map({ $0.count <= AssetPatch.maxTags }) ?? true else {
            throw CacheError(.conflict, "With the job's tags the asset would have more than \(AssetPatch.maxTags).")
        }
        guard tags != nil || item.isPinned else { return }
        _ = try await cache.patchAsset(asset.id, AssetPatch(isPinned: item.isPinned ? true : nil, tags: tags))
    }

    private func checkKept(_ asset: OpenAsset) throws(CacheError) {
        let (generation, isKept) = asset.look { state in
            (state.record?.generation, state.file.map { $0.name != nil } ?? true)
        }
        if let status = generation?.passedStatus, status >= 400 {
            throw CacheError(.upstreamRefused(status: status), "The upstream answered with status \(status).")
        }
        if let status = generation?.passedStatus {
            throw CacheError(.conflict, "The upstream's response is passed on and not kept: status \(status).")
        }
        let isStorable = generation?.isStorable ?? true
        guard isStorable else { throw CacheError(.conflict, "The upstream does not allow the asset to be kept.") }
        guard isKept else { throw CacheError(.storageFull, "The disk has no room for another file.") }
    }

    /// Whether the disk has taken the run, which it may have had no room for.
    private func checkOnDisk(_ run: ByteRange, of asset: OpenAsset) throws(CacheError) {
        guard let file = asset.look({ $0.file }), file.isSpilled, !file.spilled.runs(in: run).isEmpty else { return }
        throw Self.noRoom
    }

    /// What is missing of the runs. Where the disk had no room for something meanwhile, that may be what was in memory and has
    /// left it: to fetch it again would not help.
    @discardableResult
    private func checkRoom(for runs: [ByteRange], of asset: OpenAsset) throws(CacheError) -> [ByteRange] {
        let (gaps, file) = asset.look { state in
            (runs.flatMap { state.ledger.extents.gaps(in: $0) }, state.file)
        }
        guard gaps.isEmpty || file?.spillCount ?? 0 <= spillCount else { throw Self.noRoom }
        return gaps
    }

    private static let noRoom = CacheError(.storageFull, "The disk has no room for all of the item.")

    /// Whether what was filled is what a reader is answered from now.
    private func checkPresent(_ asset: OpenAsset) throws(CacheError) {
        let present = asset.takePlace() ? context.openAssets.acquire(asset.id) : nil
        defer { if let present { context.openAssets.release(present) } }
        guard present === asset else {
            throw CacheError(.assetChanged, "The asset became another one while it was being fetched.")
        }
    }

    /// What the first request for an unknown asset asks for: the beginning of the range nearest to its start, since that
    /// one exists if any does.
    private var opening: UpstreamRequest.Window {
        let nearest = item.specs.min { $0.start < $1.start } ?? .from(first: 0)
        return nearest.opening(limit: pace?.pieceBytes ?? .max)
    }
}

extension FillLedger {
    /// From `position` to where what is on disk there ends, or to where the next extent begins, at most `limit` on.
    fileprivate func piece(from position: Int64, limit: Int64) -> (isPresent: Bool, end: Int64) {
        if let run = extents.run(containing: position) { return (true, run.upperBound) }
        let end = min(ByteRange(offset: position, length: limit).upperBound, length ?? .max)
        return (false, max(position, min(end, extents.run(startingFrom: position)?.lowerBound ?? .max)))
    }
}

extension JobItemRecord {
    var specs: [RangeHeader.Spec] {
        ranges.flatMap { text -> [RangeHeader.Spec] in
            if case .ranges(let specs) = RangeHeader.parse(text) { specs } else { [] }
        }
    }

    /// How many bytes of an asset of that length the item names; nil if it has none of the ranges, which its run reports.
    func bytes(length: Int64) -> Int64? { (try? runs(length: length))?.byteCount }

    /// The bytes the item names; all of them while the length is not known. Throws `.rangeNotSatisfiable` where the asset
    /// has none of the ranges.
    func runs(length: Int64?) throws(CacheError) -> [ByteRange] {
        guard let length else { return [0..<Int64.max] }
        guard length > 0 else { return [] }  // an empty asset has all of any range
        guard !ranges.isEmpty else { return [0..<length] }
        let named = specs.compactMap { $0.run(length: length) }
        guard !named.isEmpty else {
            throw CacheError(
                .rangeNotSatisfiable(length: length), "The asset has \(length) bytes, and none of the item's ranges.")
        }
        return ByteRangeSet(named).runs
    }
}

extension RangeHeader.Spec {
    /// Where it begins; suffixes come after everything else.
    fileprivate var start: Int64 {
        switch self {
        case .closed(let first, _), .from(let first): first
        case .suffix: .max
        }
    }
}
