import CacheCore
import CacheStore
import MediaParsing

extension MediaInspector {
    /// The number of media playlists that are read at a time.
    private static let concurrency = 4

    /// The renditions of a playlist with their files. The playlists of renditions are fetched, no segment is. A single
    /// file with an index of its own counts if that index is cached: without it nothing of the file plays.
    ///
    /// - Parameters:
    ///   - target: the playlist's own.
    ///   - owner: the token of the caller. Files outside its limits are treated as missing.
    func contents(
        of playlist: MediaPlaylist, at target: AssetTarget, for owner: TokenOwner?
    ) async throws(CacheError) -> PlaylistContents {
        var loaded: [PlaylistContents.Rendition] = []
        for rendition in await mediaPlaylists(of: playlist, at: target, for: owner) {
            var contents = rendition
            await findFiles(of: &contents, for: owner)
            loaded.append(contents)
        }
        var contents = PlaylistContents(playlist: playlist, renditions: loaded)
        let files = contents.renditions.flatMap(\.parts)
        contents.presence = try await presence(of: files)
        let reads = contents.presence.mapValues(\.length)
        contents.heat = space.with { space in
            reads.reduce(into: [:]) { heat, file in
                heat[file.key] = space.reads(of: file.key, in: 0..<(file.value ?? Int64.max))
            }
        }
        return contents
    }

    /// The renditions of a playlist in order, each with the segments of its media playlist.
    private func mediaPlaylists(
        of playlist: MediaPlaylist, at target: AssetTarget, for owner: TokenOwner?
    ) async -> [PlaylistContents.Rendition] {
        let budget = SegmentBudget(limits.segments)
        return await playlist.renditions.mapConcurrently(atMost: Self.concurrency) { rendition in
            let isLive = playlist.isLive
            guard let uri = rendition.playlist else {
                return .init(rendition: rendition, target: target, isLive: isLive)
            }
            do throws(CacheError) {
                return try await self.load(rendition, uri, of: target, for: owner, budget)
            } catch {
                return .init(rendition: rendition, target: target, isLive: isLive, error: error)
            }
        }
    }

    /// A rendition with the segments of its media playlist.
    private func load(
        _ rendition: MediaPlaylist.Rendition, _ uri: String, of target: AssetTarget, for owner: TokenOwner?,
        _ budget: SegmentBudget
    ) async throws(CacheError) -> PlaylistContents.Rendition {
        // It would be fetched with other credentials than those that opened the playlist.
        guard !target.isReadersOwn else { throw AssetTarget.readerRequired }
        let reference = expansion(of: target).reference(to: uri)
        let (asset, document) = try await open(try await resolver.resolve(reference, permittedTo: owner))
        defer { openAssets.release(asset) }
        guard case .playlist(let media) = document, media.format == .hlsMedia else {
            throw CacheError(.unsupportedMedia, "The playlist refers to a file that is no media playlist.")
        }
        var loaded = PlaylistContents.Rendition(rendition: rendition, target: asset.target, isLive: media.isLive)
        let segments = media.renditions.first?.segments ?? []
        guard budget.take(segments.count) else {
            throw MediaError.tooLarge("The segments of all renditions together").cacheError
        }
        loaded.rendition.segments = segments
        return loaded
    }

    private func expansion(of target: AssetTarget) -> PlaylistExpansion {
        PlaylistExpansion(play: PlayRequest(time: 0..<0), target: target, upstream: upstreams.client)
    }

    /// Finds the assets of the files of a rendition. A file that the caller must not read has none.
    private func findFiles(of contents: inout PlaylistContents.Rendition, for owner: TokenOwner?) async {
        let (rendition, target) = (contents.rendition, contents.target)
        // Its files belong to the reader whose fields opened the playlist.
        guard !target.isReadersOwn else { return }
        let expansion = expansion(of: target)
        let resolver = resolver
        contents.parts = await withTaskExecutorPreference(executor) {
            var known: [String: AssetID?] = [:]
            var parts: [PlaylistContents.Part] = []
            for segment in rendition.segments {
                for (resource, isMedia) in [
                    (segment.initialization, false), (segment.key, false), (segment.resource, true),
                ] {
                    guard let resource else { continue }
                    if known[resource.uri] == nil {
                        let reference = expansion.reference(to: resource.uri)
                        // A file that must not be read is as if it were missing.
                        known[resource.uri] = .some(try? await resolver.resolve(reference, permittedTo: owner).id)
                    }
                    parts.append(
                        .init(
                            time: segment.time, asset: known[resource.uri] ?? nil, range: resource.range,
                            isMedia: isMedia))
                }
            }
            return parts
        }
        if let file = rendition.file { contents.parts = await parts(of: file, of: contents, for: owner) }
    }

    /// The pieces of a single file and its index, if that is cached.
    private func parts(
        of file: MediaPlaylist.Resource, of contents: PlaylistContents.Rendition, for owner: TokenOwner?
    ) async -> [PlaylistContents.Part] {
        let reference = expansion(of: contents.target).reference(to: file.uri)
        // A file that must not be read, or is not cached, is as if it were missing.
        guard let target = try? await resolver.resolve(reference, permittedTo: owner),
            let (asset, document) = try? await open(target, mayFetch: false)
        else { return [] }
        defer { openAssets.release(asset) }
        guard case .index(let index) = document, let end = index.end else { return [] }
        let period = contents.rendition.fileTime ?? 0..<end
        func part(_ time: Range<Double>, _ range: ByteRange, isMedia: Bool) -> PlaylistContents.Part? {
            let time = (time.lowerBound + period.lowerBound..<time.upperBound + period.lowerBound).clamped(to: period)
            return time.isEmpty ? nil : .init(time: time, asset: asset.id, range: range, isMedia: isMedia)
        }
        return index.indexRanges.compactMap { part(0..<end, $0, isMedia: false) }
            + index.tracks.flatMap(\.pieces).compactMap { part($0.time, $0.bytes, isMedia: true) }
    }

    /// The bytes of files that are on disk.
    private func presence(
        of parts: [PlaylistContents.Part]
    ) async throws(CacheError) -> [AssetID: PlaylistContents.Presence] {
        var presence: [AssetID: PlaylistContents.Presence] = [:]
        var closed: Set<AssetID> = []
        for id in Set(parts.compactMap(\.asset)) {
            guard let open = openAssets[id] else {
                closed.insert(id)
                continue
            }
            presence[id] = open.look { .init(length: $0.ledger.length, extents: $0.ledger.extents) }
        }
        let divided = Set(parts.compactMap { $0.range == nil ? nil : $0.asset })
        for (id, size) in try await catalog.sizes(of: closed) {
            if divided.contains(id), size.cachedBytes > 0, size.cachedBytes != size.length {
                // The cached ranges are needed only where a playlist names ranges of a file.
                let extents = try await catalog.asset(id)?.extents
                presence[id] = .init(length: size.length, extents: extents ?? ByteRangeSet())
            } else {
                let whole = size.length == size.cachedBytes
                presence[id] = .init(
                    length: size.length, extents: whole ? ByteRangeSet([0..<size.cachedBytes]) : ByteRangeSet(),
                    cachedBytes: size.cachedBytes)
            }
        }
        return presence
    }
}

/// The number of segments that all renditions of a playlist may still have together.
private final class SegmentBudget: Sendable {
    private let left: OrderedMutex<Int>

    init(_ count: Int) { left = OrderedMutex(.leaf, count) }

    /// Whether `count` segments were left, which then are taken.
    func take(_ count: Int) -> Bool {
        left.withLock { left in
            guard count <= left else { return false }
            left -= count
            return true
        }
    }
}
