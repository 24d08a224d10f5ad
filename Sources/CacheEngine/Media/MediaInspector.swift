package import CacheCore
import CacheStore
package import MediaParsing

/// Reads the indices of cached media.
package final class MediaInspector: Sendable {
    let catalog: Catalog
    let openAssets: OpenAssets
    let space: SpaceReservations
    let upstreams: Upstreams
    let wallClock: any WallClock
    let resolver: AssetResolver
    let settings: LiveCacheSettings
    /// Runs parsers, and other work in proportion to the length of a playlist.
    let executor = ParserExecutor(label: "larder.media")
    /// Guards the documents that were parsed last.
    private let parsed = OrderedMutex<[Parsed]>(.leaf, [])

    /// A parsed document, and the generation that it describes.
    private struct Parsed {
        let asset: AssetID
        /// The creation of the catalog row: a row that was deleted numbers its generations anew.
        let created: Timestamp
        let generation: Int64
        let document: MediaDocument
    }

    /// The largest number of bytes that a call fetches. Fragmented files without an index are read as a whole.
    private static let fetchLimit: Int64 = 256 << 20
    /// The memory for kept documents in bytes.
    private static let capacity = 64 << 20

    init(of context: EngineContext, resolver: AssetResolver, settings: LiveCacheSettings) {
        catalog = context.store.catalog
        openAssets = context.openAssets
        space = context.space
        upstreams = context.upstreams
        wallClock = context.wallClock
        self.resolver = resolver
        self.settings = settings
    }

    /// The limits of the parsers.
    var limits: MediaLimits { settings.current.settings.mediaLimits }

    /// The index of an asset, and what plays without the upstream. Missing bytes of the index are fetched at prefetch
    /// priority, except those of an asset that a reader's fields opened. The index of a playlist includes the playlists of
    /// its renditions.
    ///
    /// - Parameter owner: the token of the caller; files outside its limits are neither read nor reported.
    ///
    /// Throws `.conflict` if these are not cached, `.notFound`, `.unsupportedMedia`, `.malformedMedia`, `.mediaIndexTooLarge`, and the errors of the
    /// upstream.
    package func media(of id: AssetID, for owner: TokenOwner? = nil) async throws(CacheError) -> MediaReport {
        let target = try await resolver.resolve(.known(id))
        let (asset, document) = try await open(target)
        defer { openAssets.release(asset) }
        var report = asset.look { state in
            MediaReport(assetID: id, document: document, cached: state.ledger.extents, length: state.ledger.length)
        }
        if case .playlist(let playlist) = document {
            report.playlist = try await contents(of: playlist, at: asset.target, for: owner).report
        }
        return report
    }

    /// The bytes that a player needs for a span of time. The index is fetched as in ``media(of:for:)``; media data are not
    /// fetched.
    ///
    /// Throws `.outOfRange` if the media ends before the span, `.conflict` if only requests of readers may fetch the index,
    /// and the errors of ``media(of:for:)``.
    package func needs(
        of reference: AssetReference, for play: PlayRequest, owner: TokenOwner? = nil
    ) async throws(CacheError) -> MediaNeeds {
        try await needs(of: try await resolver.resolve(reference), for: play, owner: owner, depth: 0)
    }

    /// An asset divided into `buckets` of equal duration; empty without a duration. The index is fetched as in
    /// ``media(of:for:)``. A bucket contains the data of all tracks that overlaps its time. Those of a playlist have the
    /// shares and reads of the rendition of which most is cached.
    ///
    /// Throws `.mediaIndexTooLarge` if the data overlaps too many buckets, and the errors of ``media(of:for:)``.
    package func map(
        of id: AssetID, buckets: Int, for owner: TokenOwner? = nil
    ) async throws(CacheError) -> [MapBucket] {
        let (asset, document) = try await open(try await resolver.resolve(.known(id)))
        defer { openAssets.release(asset) }
        switch document {
        case .playlist(let playlist):
            return try await contents(of: playlist, at: asset.target, for: owner).map(buckets: buckets)
        case .index(let index):
            guard let parts = index.bytes(inPartsOfTime: buckets) else {
                throw CacheError(
                    .mediaIndexTooLarge, "The samples overlap too much for \(buckets) parts: ask for fewer.")
            }
            let extents = asset.look { $0.ledger.extents }
            return parts.map { time, bytes in
                let present = bytes.runs.reduce(Int64(0)) { $0 + extents.byteCount(in: $1) }
                let heat = space.with { space in bytes.runs.map { space.reads(of: id, in: $0) }.max() ?? 0 }
                return MapBucket(
                    range: ByteRange(offset: bytes.runs.first?.lowerBound ?? 0, length: bytes.byteCount), time: time,
                    cached: bytes.isEmpty ? 0 : Double(present) / Double(bytes.byteCount), heat: heat)
            }
        }
    }

    /// Opens an asset with its document. Missing bytes of the index are fetched at prefetch priority, unless only
    /// requests of readers may fetch them or `mayFetch` is false. The caller must release the asset.
    ///
    /// Throws ``MediaReader/notCached`` if bytes are missing that must not be fetched.
    func open(
        _ target: AssetTarget, mayFetch: Bool = true
    ) async throws(CacheError) -> (asset: OpenAsset, document: MediaDocument) {
        let asset = try await resolver.open(target)
        do throws(CacheError) {
            guard mayFetch, !target.isReadersOwn else {
                guard asset.record != nil else { throw MediaReader.notCached }
                return (asset, try await document(of: asset, MediaReader(asset: asset, reader: nil)))
            }
            return (asset, try await fetchedDocument(of: asset))
        } catch {
            openAssets.release(asset)
            throw error
        }
    }

    /// The document of an open asset. Missing or stale bytes are fetched.
    private func fetchedDocument(of asset: OpenAsset) async throws(CacheError) -> MediaDocument {
        let isFresh = asset.isFresh(at: wallClock.now())
        if isFresh, let document = kept(of: asset) { return document }
        let reader = try asset.join(
            opening: .closed(0..<MediaDocument.openingBytes), priority: .prefetch, mustConfirm: !isFresh, maxLead: nil)
        defer { asset.leave(reader) }
        _ = try await asset.nextPresence(of: reader)
        try asset.record?.generation.checkSucceeded()
        var media = MediaReader(asset: asset, reader: reader)
        media.byteLimit = Self.fetchLimit
        return try await document(of: asset, media)
    }

    /// Reads the lifetime of a complete playlist from its text. Text without a playlist keeps the heuristic lifetime.
    func readLifetime(of asset: OpenAsset) async {
        guard let generation = asset.record?.generation, generation.playlistGuess != nil else { return }
        let document = try? await document(of: asset, MediaReader(asset: asset, reader: nil))  // an error: no playlist
        let playlist = if case .playlist(let playlist) = document { playlist } else { MediaPlaylist?.none }
        asset.apply(updateInterval: playlist?.updateInterval, to: generation)
    }

    /// The document of an open asset, parsed or from memory. Cached media data refine an index. `media`: a reader of the
    /// asset.
    func document(of asset: OpenAsset, _ media: MediaReader) async throws(CacheError) -> MediaDocument {
        let limits = limits
        let source = try await media.source(limits: limits)
        let (record, known, cached) = (asset.record, kept(of: asset), asset.look { $0.ledger.extents })
        let path = asset.target.path
        let now = wallClock.now()
        return try await parse(asset, record) { () async throws(MediaError) in
            let parsed =
                if let known { known } else {
                    try await MediaDocument.parsed(
                        source, contentType: record?.generation.contentType, path: path, limits: limits, now: now)
                }
            guard case .index(var index) = parsed else { return parsed }
            try await index.explore(cached, source)
            return .index(index)
        }
    }

    /// The index of an open asset, refined for a span of time with media data.
    func index(
        _ coarse: MediaIndex, of asset: OpenAsset, _ media: MediaReader, for time: Range<Double>
    ) async throws(CacheError) -> MediaIndex {
        let source = try await media.source(limits: limits)
        let document = try await parse(asset, asset.record) { () async throws(MediaError) in
            var index = coarse
            try await index.refine(for: time, source)
            return .index(index)
        }
        guard case .index(let index) = document else { return coarse }
        return index
    }

    /// Runs a parser on its thread, and keeps its document for the generation of `record`.
    private func parse(
        _ asset: OpenAsset, _ record: AssetRecord?,
        _ parser: @Sendable () async throws(MediaError) -> MediaDocument
    ) async throws(CacheError) -> MediaDocument {
        let document: MediaDocument
        do throws(MediaError) {
            document = try await withTaskExecutorPreference(executor) { () async throws(MediaError) in
                try await parser()
            }
        } catch {
            throw error.cacheError
        }
        if let record, !document.isMomentary { keep(document, of: asset.id, record) }
        return document
    }

    /// Keeps a document in memory, in place of older ones.
    private func keep(_ document: MediaDocument, of asset: AssetID, _ record: AssetRecord) {
        parsed.withLock { parsed in
            parsed.removeAll { $0.asset == asset }
            parsed.append(
                Parsed(
                    asset: asset, created: record.createdAt, generation: record.generation.number, document: document))
            while parsed.count > 1, parsed.reduce(0, { $0 + $1.document.byteCount }) > Self.capacity {
                parsed.removeFirst()
            }
        }
    }

    /// The document of the asset's present generation, if it is in memory.
    private func kept(of asset: OpenAsset) -> MediaDocument? {
        guard let record = asset.record else { return nil }
        return parsed.withLock { parsed in
            parsed.first {
                $0.asset == asset.id && $0.created == record.createdAt && $0.generation == record.generation.number
            }?.document
        }
    }
}

/// The index of a media asset, and which of its bytes are cached.
package struct MediaReport: Sendable {
    package let assetID: AssetID
    package let document: MediaDocument
    package let cached: ByteRangeSet
    /// The length of the asset in bytes; nil: unknown.
    package let length: Int64?
    /// The renditions of a playlist; nil for a media file.
    package var playlist: PlaylistReport?

    package init(
        assetID: AssetID, document: MediaDocument, cached: ByteRangeSet, length: Int64?, playlist: PlaylistReport? = nil
    ) {
        self.assetID = assetID
        self.document = document
        self.cached = cached
        self.length = length
        self.playlist = playlist
    }

    /// The average bit rate of a media file; nil: unknown.
    package var bitsPerSecond: Int64? {
        guard case .index(let index) = document, let length, let duration = index.duration ?? index.end, duration > 0
        else { return nil }
        return Int64(saturating: (Double(length) * 8 / duration).rounded())
    }

    /// The time spans in seconds that play with the cached bytes, in order.
    package var playable: [Range<Double>] {
        switch document {
        case .index(let index): index.playableSpans(cached: cached)
        case .playlist: playlist?.playable ?? []
        }
    }

    /// The players for which ``playable`` does not hold.
    package var notFor: [MediaPlayer] {
        switch document {
        case .index(let index): index.playersThatReadMore(length: length)
        case .playlist(let playlist): playlist.playersThatReadMore
        }
    }
}
