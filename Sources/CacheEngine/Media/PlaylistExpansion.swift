import CacheCore
import MediaParsing

/// A file of a playlist, or a part of one.
struct PlaylistFile: Sendable {
    var reference: AssetReference
    /// Nil: the whole file, or the bytes that ``play`` selects.
    var range: ByteRange?
    /// The span in the times of the file; nil: the file has no index or playlist of its own.
    var play: PlayRequest?
    /// The presentation times that the file is needed for.
    var time: Range<Double>

    /// The item that fetches the file in a job. The job assigns its position.
    func item(of playlist: JobItemRecord) -> JobItemRecord {
        var item = JobItemRecord(
            index: 0, reference: reference, ranges: range.map { [$0.fieldValue] } ?? [], tags: playlist.tags,
            isPinned: playlist.isPinned)
        item.parent = playlist.index
        item.play = play
        item.time = time
        return item
    }

    /// The same for a live playlist, the times of which begin anew with each load.
    func liveItem(of playlist: JobItemRecord) -> JobItemRecord {
        var item = item(of: playlist)
        item.time = nil
        return item
    }

    fileprivate var content: JobItemRecord.Content {
        JobItemRecord.Content(reference: reference, ranges: range.map { [$0.fieldValue] } ?? [])
    }
}

/// The files of a playlist that a player needs.
struct PlaylistExpansion: Sendable {
    let play: PlayRequest
    /// The playlist's own target: its files are resolved against its URL.
    let target: AssetTarget
    private let mount: MountPrefixes

    init(play: PlayRequest, target: AssetTarget, upstream: any Upstream) {
        (self.play, self.target) = (play, target)
        mount = MountPrefixes(of: target, upstream: upstream)
    }

    /// The files for the span: media playlists and files with an index of their own by time, segments, initialization
    /// sections and keys by ranges.
    func files(of playlist: MediaPlaylist) -> [PlaylistFile] {
        var files: [PlaylistFile] = []
        for rendition in playlist.selected(play.renditions) where isWanted(rendition.kind) {
            if let uri = rendition.playlist {
                files.append(PlaylistFile(reference: reference(to: uri), play: play, time: play.time))
            } else if let file = rendition.file {
                files += self.file(file.uri, begun: rendition.fileTime)
            } else {
                files += segments(of: rendition, in: playlist)
            }
        }
        return files
    }

    /// The files that a live playlist has added since earlier loads, which have named the files `known`: the segments behind
    /// the last known one of a rendition, with their initialization sections and keys. Without any, those from the start of
    /// the span on.
    func filesOfLive(_ playlist: MediaPlaylist, without known: Set<JobItemRecord.Content>) -> [PlaylistFile] {
        var (files, seen): ([PlaylistFile], Set<JobItemRecord.Content>) = ([], known)
        for rendition in playlist.selected(play.renditions) where isWanted(rendition.kind) {
            let last = rendition.segments.lastIndex { known.contains(file($0.resource, $0.time).content) }
            let added = last.map { rendition.segments[($0 + 1)...] } ?? rendition.segments[...]
            for segment in added where !known.isEmpty || segment.time.upperBound > play.time.lowerBound {
                let key = play.includesKeys ? segment.key : nil
                for resource in [segment.initialization, key, segment.resource].compactMap(\.self) {
                    let file = file(resource, segment.time)
                    if seen.insert(file.content).inserted { files.append(file) }
                }
            }
        }
        return files
    }

    private func file(_ resource: MediaPlaylist.Resource, _ time: Range<Double>) -> PlaylistFile {
        PlaylistFile(reference: reference(to: resource.uri), range: resource.range, time: time)
    }

    /// A file with an index of its own, whose times begin with those of its period.
    private func file(_ uri: String, begun period: Range<Double>?) -> [PlaylistFile] {
        let reference = reference(to: uri)
        guard let period else { return [PlaylistFile(reference: reference, play: play, time: play.time)] }
        let time = play.time.clamped(to: period)
        guard !time.isEmpty else { return [] }
        var own = play
        own.time = time.lowerBound - period.lowerBound..<time.upperBound - period.lowerBound
        return [PlaylistFile(reference: reference, play: own, time: time)]
    }

    /// The files of one rendition. Initialization sections and keys are needed from the beginning.
    private func segments(of rendition: MediaPlaylist.Rendition, in playlist: MediaPlaylist) -> [PlaylistFile] {
        playlist.playbackResources(of: play.time, in: rendition, keys: play.includesKeys).map { resource, time in
            PlaylistFile(reference: reference(to: resource.uri), range: resource.range, time: time ?? play.time)
        }
    }

    private func isWanted(_ kind: TrackKind) -> Bool {
        // A variant without its own kind can contain all kinds.
        kind == .other || play.kinds.map { $0.contains(kind) } ?? true
    }

    /// The reference to a file of the playlist: within the mount of the playlist if its URL lies there, else by its URL
    /// without user info. A URL of another host is refused when the reference is resolved.
    func reference(to uri: String) -> AssetReference {
        guard let url = mount.url(of: uri, against: target.url) else {
            return .url(MediaURI.withoutUserInfo(uri), key: nil)
        }
        guard let path = mount.path(of: url) else { return .url(url, key: nil) }
        return .mounted(origin: target.originName, path: path, key: nil)
    }
}
