import CacheCore
import MediaParsing

extension MediaInspector {
    /// The largest number of files of a playlist in the answer for one span.
    private static let fileLimit = 1000
    /// The deepest nesting of playlists: a multivariant playlist, a media playlist, and a file with an index.
    private static let depthLimit = 2

    /// As ``needs(of:for:owner:)``.
    ///
    /// - Parameter depth: the number of playlists above the asset.
    func needs(
        of target: AssetTarget, for play: PlayRequest, owner: TokenOwner?, depth: Int
    ) async throws(CacheError) -> MediaNeeds {
        // The index that a reader would get needs its fields.
        let mayFetch = target.settings.forwarded.isEmpty
        let (asset, document) = try await open(target, mayFetch: mayFetch)
        defer { openAssets.release(asset) }
        switch document {
        case .index(let index):
            let time = play.span(end: index.end)
            try time.checkBegins(within: index.end)
            let length = asset.look { $0.ledger.length }
            return .ranges(index.ranges(of: time, kinds: play.kinds, length: length).runs)
        case .playlist(let playlist):
            guard depth < Self.depthLimit else {
                throw CacheError(.unsupportedMedia, "The playlist is part of more than \(Self.depthLimit) playlists.")
            }
            // Its files would be fetched with other credentials than those that opened it.
            guard !asset.target.isReadersOwn else { throw AssetTarget.readerRequired }
            let expansion = PlaylistExpansion(
                play: try play.resolved(in: playlist), target: asset.target, upstream: upstreams.client)
            var files: [MediaNeeds.File] = []
            for file in expansion.files(of: playlist) {
                files += await needs(of: file, owner: owner, depth: depth + 1)
                guard files.count <= Self.fileLimit else {
                    throw CacheError(
                        .mediaIndexTooLarge, "The span has more than \(Self.fileLimit) files: ask for a shorter one.")
                }
            }
            return .files(files)
        }
    }

    /// The needs of a file of a playlist. A media playlist is followed by its own files. Errors concern the file only.
    private func needs(of file: PlaylistFile, owner: TokenOwner?, depth: Int) async -> [MediaNeeds.File] {
        func need(_ ranges: [ByteRange]?, _ error: CacheError? = nil) -> MediaNeeds.File {
            MediaNeeds.File(reference: file.reference, time: file.time, ranges: ranges, error: error)
        }
        do throws(CacheError) {
            let target = try await resolver.resolve(file.reference, permittedTo: owner)
            guard let play = file.play else { return [need(file.range.map { [$0] })] }
            switch try await needs(of: target, for: play, owner: owner, depth: depth) {
            case .ranges(let ranges): return [need(ranges)]
            case .files(let files): return [need(nil)] + files
            }
        } catch {
            return [need(nil, error)]
        }
    }
}

extension AssetResolver {
    /// The target of a file that a playlist names, after the checks of a reference that the caller names.
    ///
    /// Throws `.tokenScope` outside the limits of the token, and the errors of ``resolve(_:)``.
    func resolve(_ reference: AssetReference, permittedTo owner: TokenOwner?) async throws(CacheError) -> AssetTarget {
        try owner?.check(reference)
        return try await resolve(reference)
    }
}
