import CacheCore
import MediaParsing

/// The files of a playlist and of the playlists of its renditions, and their bytes on disk.
struct PlaylistContents: Sendable {
    /// A rendition with its files.
    struct Rendition: Sendable {
        /// With the segments of its media playlist.
        var rendition: MediaPlaylist.Rendition
        /// The playlist that names the segments.
        var target: AssetTarget
        /// Whether further segments will be added.
        var isLive: Bool
        /// The reason why the media playlist could not be read.
        var error: CacheError?
        var parts: [Part] = []
    }

    /// A file, or a part of one, that the player needs at a time.
    struct Part: Sendable {
        /// The presentation times in seconds.
        var time: Range<Double>
        /// Nil: the caller must not read the file.
        var asset: AssetID?
        /// Nil: the whole file.
        var range: ByteRange?
        /// False: an initialization section, a key, or the index of a file.
        var isMedia: Bool
    }

    /// The bytes of a file that are on disk.
    struct Presence: Sendable {
        /// Nil: unknown.
        var length: Int64?
        var extents: ByteRangeSet
        /// The number of cached bytes, where the extents were not read.
        var cachedBytes: Int64 = 0

        /// Whether a range is on disk; nil: the whole file.
        func contains(_ range: ByteRange?) -> Bool {
            guard let range = range ?? length.map({ 0..<$0 }) else { return false }
            // A playlist can state a range that reaches or begins beyond the end of the file.
            let part = length.map { range.clamped(to: 0..<$0) } ?? range
            return !part.isEmpty && extents.contains(part)
        }

        /// The share of a range that is on disk, 0…1; nil: the whole file.
        func share(of range: ByteRange?) -> Double {
            guard let range = range ?? length.map({ 0..<$0 }), !range.isEmpty else { return 0 }
            let bytes = max(extents.byteCount(in: range), range == 0..<(length ?? -1) ? cachedBytes : 0)
            return min(1, Double(bytes) / Double(range.length))
        }
    }

    let playlist: MediaPlaylist
    var renditions: [Rendition]
    var presence: [AssetID: Presence] = [:]
    /// The number of counted reads of each file.
    var heat: [AssetID: Int64] = [:]

    /// The largest number of pairs of a part and a bucket in ``map(buckets:)``.
    private static let pairLimit = 1_000_000

    /// The longest duration of a rendition; nil: unknown, or it grows.
    private var duration: Double? {
        if let duration = playlist.duration { return duration }
        return renditions.contains(where: \.isLive) ? nil : renditions.compactMap(\.end).max()
    }

    var report: PlaylistReport {
        let reports = renditions.map { contents in
            PlaylistReport.Rendition(
                segments: contents.error == nil ? contents.rendition.segments.count : nil,
                duration: contents.isLive ? nil : contents.end, playable: spans(of: contents), error: contents.error)
        }
        let combined = playlist.combined(
            reports.map(\.playable), either: TimeSpans.union, both: TimeSpans.intersection)
        return PlaylistReport(renditions: reports, duration: duration, playable: combined ?? [])
    }

    /// Equal parts of the duration with their cached share and reads; empty without parts.
    ///
    /// Throws `.mediaIndexTooLarge` if the files overlap too many parts.
    func map(buckets: Int) throws(CacheError) -> [MapBucket] {
        guard let end = duration ?? renditions.compactMap(\.end).max(), end > 0, end.isFinite else { return [] }
        let width = end / Double(buckets)
        var values: [[(share: Double, heat: Int64)]?] = []
        for contents in renditions { values.append(try map(contents, buckets: buckets, width: width)) }
        let best = playlist.combined(
            values, either: { zip($0, $1).map { (max($0.share, $1.share), max($0.heat, $1.heat)) } },
            both: { zip($0, $1).map { (min($0.share, $1.share), max($0.heat, $1.heat)) } })
        return (best ?? Array(repeating: (0, 0), count: buckets)).enumerated().map { number, value in
            MapBucket(
                range: 0..<0, time: Double(number) * width..<Double(number + 1) * width, cached: value.share,
                heat: value.heat)
        }
    }

    /// The share and the reads of one rendition in each bucket: those of its files, by the time that they overlap it.
    private func map(
        _ contents: Rendition, buckets: Int, width: Double
    ) throws(CacheError) -> [(share: Double, heat: Int64)]? {
        guard !contents.parts.isEmpty else { return nil }
        var sums = Array(repeating: (time: 0.0, cached: 0.0, heat: Int64(0)), count: buckets)
        var pairCount = 0
        for part in contents.parts where part.isMedia && part.time.lowerBound < width * Double(buckets) {
            let first = min(buckets - 1, Int(max(0, part.time.lowerBound) / width))
            let last = min(buckets - 1, max(first, Int((part.time.upperBound / width).rounded(.up)) - 1))
            pairCount += last - first + 1
            guard pairCount <= Self.pairLimit else {
                throw CacheError(
                    .mediaIndexTooLarge, "The segments overlap too much for \(buckets) parts: ask for fewer.")
            }
            let share = part.asset.flatMap { presence[$0] }?.share(of: part.range) ?? 0
            let reads = part.asset.flatMap { heat[$0] } ?? 0
            for bucket in first...last {
                let overlap = part.time.clamped(to: Double(bucket) * width..<Double(bucket + 1) * width)
                let seconds = overlap.upperBound - overlap.lowerBound
                sums[bucket].time += seconds
                sums[bucket].cached += seconds * share
                sums[bucket].heat = max(sums[bucket].heat, reads)
            }
        }
        return sums.map { ($0.time > 0 ? min(1, $0.cached / $0.time) : 0, $0.heat) }
    }

    /// The times of a rendition for which no file is missing.
    private func spans(of contents: Rendition) -> [Range<Double>] {
        guard let first = contents.parts.map(\.time.lowerBound).min(), let end = contents.end, first < end else {
            return []
        }
        let missing = contents.parts.filter { part in
            guard let asset = part.asset, let presence = presence[asset] else { return true }
            return !presence.contains(part.range)
        }
        return TimeSpans.playable(in: first..<end, missing: missing.map(\.time))
    }
}

extension PlaylistContents.Rendition {
    /// The end of the last file in seconds; nil without files.
    var end: Double? {
        rendition.segments.last?.time.upperBound ?? rendition.fileTime?.upperBound ?? parts.map(\.time.upperBound).max()
    }
}
