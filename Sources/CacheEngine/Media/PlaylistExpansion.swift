import CacheCore

/// The child items of a playlist in a prefetch job by time.
struct PlaylistExpansion {
    /// The item of the playlist.
    let item: JobItemRecord
    let play: PlayRequest
    /// The playlist's own target: its children are resolved against its URL.
    let target: AssetTarget
    /// Parses URLs into their normal form.
    private let upstream: any Upstream
    /// The URLs below which a file belongs to the mount of the playlist, in normal form.
    private let mountPrefixes: [String]

    init(item: JobItemRecord, play: PlayRequest, target: AssetTarget, upstream: any Upstream) {
        (self.item, self.play, self.target, self.upstream) = (item, play, target, upstream)
        let isMounted = target.originName != Origin.absoluteName
        let bases = isMounted ? [target.settings.baseURL] + target.settings.mirrors : []
        mountPrefixes = bases.compactMap { try? upstream.parse(url: $0).text }.map { $0.hasSuffix("/") ? $0 : $0 + "/" }
    }

    /// One child for each file: media playlists and files with an index of their own by time, segments,
    /// initialization sections and keys by ranges. The job assigns their positions.
    func children(of playlist: MediaPlaylist) -> [JobItemRecord] {
        var children: [JobItemRecord] = []
        for rendition in playlist.selected(play.renditions) where isWanted(rendition.kind) {
            if let playlist = rendition.playlist {
                children.append(child(playlist, play: play, time: play.time))
            } else if let file = rendition.file {
                children += child(of: file.uri, begun: rendition.fileTime)
            } else {
                children += segments(of: rendition, in: playlist)
            }
        }
        return children
    }

    /// The item of a file with an index of its own, whose times begin with those of its period.
    private func child(of file: String, begun period: Range<Double>?) -> [JobItemRecord] {
        guard let period else { return [child(file, play: play, time: play.time)] }
        let time = play.time.clamped(to: period)
        guard !time.isEmpty else { return [] }
        var own = play
        own.time = time.lowerBound - period.lowerBound..<time.upperBound - period.lowerBound
        return [child(file, play: own, time: time)]
    }

    /// The files of one rendition. Initialization sections and keys are needed from the beginning.
    private func segments(of rendition: MediaPlaylist.Rendition, in playlist: MediaPlaylist) -> [JobItemRecord] {
        playlist.playbackResources(of: play.time, in: rendition, keys: play.includesKeys).map { resource, time in
            let range = resource.range.map { [$0.fieldValue] } ?? []
            return child(resource.uri, ranges: range, time: time ?? play.time)
        }
    }

    private func isWanted(_ kind: MediaIndex.TrackKind) -> Bool {
        // A variant without its own kind can contain all kinds.
        kind == .other || play.kinds.map { $0.contains(kind) } ?? true
    }

    private func child(
        _ uri: String, ranges: [String] = [], play: PlayRequest? = nil, time: Range<Double>
    ) -> JobItemRecord {
        var child = JobItemRecord(
            index: 0, reference: reference(to: uri), ranges: ranges, tags: item.tags, isPinned: item.isPinned)
        child.parent = item.index
        child.play = play
        child.time = time
        return child
    }

    /// The reference to a file of the playlist: within the mount of the playlist if its URL lies there, else by its URL
    /// without user info. A URL of another host is refused when the child runs.
    private func reference(to uri: String) -> AssetReference {
        guard let resolved = MediaURI.resolved(uri, against: target.url),
            let url = try? upstream.parse(url: resolved).text
        else { return .url(MediaURI.withoutUserInfo(uri), key: nil) }
        guard let prefix = mountPrefixes.first(where: url.hasPrefix) else { return .url(url, key: nil) }
        return .mounted(origin: target.originName, path: String(url.dropFirst(prefix.count)), key: nil)
    }
}
