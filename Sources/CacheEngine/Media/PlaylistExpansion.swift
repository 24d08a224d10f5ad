import CacheCore

/// The child items of a playlist in a prefetch job by time.
struct PlaylistExpansion {
    /// The item of the playlist.
    let item: JobItemRecord
    let play: PlayRequest
    /// The playlist's own target: its children are resolved against its URL.
    let target: AssetTarget

    /// The seconds behind the requested time that players read, to find its last frame.
    private static let endAllowance = 0.25

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
        let times = Dictionary(
            rendition.segments.map { ($0.resource, $0.time) }, uniquingKeysWith: { first, _ in first })
        let time = play.time.lowerBound..<play.time.upperBound + Self.endAllowance
        var resources = playlist.resources(of: time, in: rendition, keys: play.includesKeys)
        if playlist.format == .dash {
            // Players open every representation with its first segment.
            let opening = playlist.resources(of: 0..<Self.endAllowance, in: rendition, keys: play.includesKeys)
            resources = opening + resources.filter { !opening.contains($0) }
        }
        return resources.map { resource in
            let range = resource.range.map { [$0.fieldValue] } ?? []
            return child(resource.uri, ranges: range, time: times[resource] ?? play.time)
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

    /// The reference to a file of the playlist: within the mount of the playlist if its URL lies there, else by its URL.
    /// A URL of another host is refused when the child runs.
    private func reference(to uri: String) -> AssetReference {
        guard let url = MediaURI.resolved(uri, against: target.url) else { return .url(uri, key: nil) }
        guard target.originName != Origin.absoluteName else { return .url(url, key: nil) }
        for base in [target.settings.baseURL] + target.settings.mirrors {
            let prefix = base.hasSuffix("/") ? base : base + "/"
            if url.hasPrefix(prefix) {
                return .mounted(origin: target.originName, path: String(url.dropFirst(prefix.count)), key: nil)
            }
        }
        return .url(url, key: nil)
    }
}
