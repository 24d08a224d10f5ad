package import CacheCore

extension MediaIndex {
    /// The seconds before the start of a span from which players read tracks other than video. A player seeks by the
    /// decoding time of the video frame, which is less than its presentation time when frames are reordered, and sound
    /// is read in packets of many samples. For a fragmented file this selects the fragment before the first one, which
    /// ffmpeg reads too.
    private static let seekAllowance = 0.25

    /// The seconds by which ffmpeg seeks before the requested time in a file with reordered frames, unless its container is
    /// MP4: 3/23 s, rounded up.
    static let reorderingAllowance = 0.135

    /// The time to which players seek in the video for a span that begins at `time`.
    private func seekTime(of time: Double) -> Double { container == .matroska ? time - Self.reorderingAllowance : time }

    /// The bytes before a sample that players read: some seek to up to 16 KiB before it.
    static let leadBytes: Int64 = 16 << 10

    /// The longest gap that players read through.
    private static let readThroughBytes: Int64 = 64 << 10

    /// The seconds at the beginning of a file that players decode when they open it, wherever they play then: ffmpeg
    /// examines 20 frames. Chromium examines 2 s of a Matroska file (measured at 1.6, 3 and 6 Mb/s), before it reads the
    /// cues.
    static func openingSeconds(of container: Container) -> Double { container == .matroska ? 2.5 : 1 }
    /// The longest time that ffmpeg searches for the first samples of a track that begins later.
    private static let searchSeconds = 6.0

    /// The bytes that a player needs to play a span of time: those of ``spanRanges(of:kinds:)``, the first seconds,
    /// because players examine it, and the short gaps between all of them. Chromium reads whole blocks of 32 KiB, so the
    /// ranges begin and end at multiples of that.
    ///
    /// - Parameters:
    ///   - time: in seconds from the beginning of the presentation; an empty span selects the index only.
    ///   - kinds: the kinds of tracks; nil: all tracks.
    ///   - length: the length of the file in bytes, at which the ranges are cut off; nil: unknown.
    package func ranges(of time: Range<Double>, kinds: Set<TrackKind>? = nil, length: Int64? = nil) -> ByteRangeSet {
        var runs = sampleRanges(of: time, kinds: kinds)
        let chosen = chosen(kinds)
        let latestStart = chosen.compactMap { $0.pieces.first?.time.lowerBound }.max() ?? 0
        let openingEnd = Self.openingSeconds(of: container) + min(max(0, latestStart), Self.searchSeconds)
        for track in chosen where !time.isEmpty {
            if let first = track.pieces.first { runs.append(first.bytes) }
            let opening = track.pieces.lazy.filter { $0.time.lowerBound < openingEnd }.map(\.bytes)
            runs += opening
            if let end = opening.map(\.upperBound).max() {
                runs.append(ByteRange(offset: end, length: min(slack, Self.readThroughBytes)))
            }
        }
        let end = length.map { max(0, $0) } ?? .max
        let samples = runs.filter { !$0.isEmpty }.map { max(0, $0.lowerBound - Self.leadBytes)..<$0.upperBound }
        return Self.joined((indexRanges + samples).map { Self.blocks(of: $0).clamped(to: 0..<end) })
    }

    /// The index and ``sampleRanges(of:kinds:)``.
    func spanRanges(of time: Range<Double>, kinds: Set<TrackKind>? = nil) -> [ByteRange] {
        indexRanges + sampleRanges(of: time, kinds: kinds)
    }

    /// The pieces of the tracks from the last sync time at or before the start up to the end of the span,
    /// with ``slack`` behind the last piece of each track.
    ///
    /// Tracks other than video are included from the sync time of the video, because players seek to it, and with an
    /// allowance before it: mpv seeks sound by its time without the edit list.
    private func sampleRanges(of time: Range<Double>, kinds: Set<TrackKind>?) -> [ByteRange] {
        var runs: [ByteRange] = []
        let chosen = chosen(kinds)
        let videoStart =
            chosen.filter { $0.kind == .video }.map { $0.decodeStart(of: seekTime(of: time.lowerBound)) }
            .filter { $0 > -.infinity }.min() ?? time.lowerBound
        for track in chosen where !time.isEmpty {
            var start = track.decodeStart(of: track.kind == .video ? seekTime(of: time.lowerBound) : time.lowerBound)
            if track.kind != .video { start = min(start, videoStart) - Self.seekAllowance - editSeconds }
            if isReadFromStart { start = -.infinity }
            let needed = track.pieces.lazy.filter { piece in
                piece.time.lowerBound < time.upperBound && piece.time.upperBound > start
            }.map(\.bytes)
            runs += needed
            if let end = needed.map(\.upperBound).max() { runs.append(ByteRange(offset: end, length: slack)) }
        }
        return runs
    }

    /// The smallest range of whole blocks of 32 KiB that contains `run`.
    package static func blocks(of run: ByteRange) -> ByteRange {
        guard !run.isEmpty else { return run }
        let lower = run.lowerBound / blockBytes * blockBytes
        return lower..<ByteRange(offset: (run.upperBound - 1) | (blockBytes - 1), length: 1).upperBound
    }

    /// The size of the blocks in which Chromium reads media.
    package static let blockBytes: Int64 = 32 << 10

    /// Whether players read the file from its beginning to the requested time: a Matroska file without cues. ffmpeg and
    /// mpv also read an MP3 file so.
    var isReadFromStart: Bool { container == .mp3 || container == .matroska && layout == .none }

    /// The end of the last sample in seconds, or the duration if that is less; nil: unknown.
    package var end: Double? {
        let end = tracks.lazy.flatMap(\.pieces).map(\.time.upperBound).max()
        return [end, duration].compactMap(\.self).min()
    }

    /// The seconds that play with cached bytes from the start of a time span on, at most to its end.
    package func playableSeconds(
        of time: Range<Double>, cached: ByteRangeSet, kinds: Set<TrackKind>? = nil
    ) -> Double {
        let span = playableSpans(cached: cached, kinds: kinds).first {
            $0.lowerBound <= time.lowerBound + Self.seekAllowance && time.lowerBound < $0.upperBound
        }
        return span.map { min($0.upperBound, time.upperBound) - time.lowerBound } ?? 0
    }

    private func chosen(_ kinds: Set<TrackKind>?) -> [Track] { tracks.filter { kinds?.contains($0.kind) ?? true } }

    /// The runs with the short gaps between them, through which players read instead of sending another request.
    private static func joined(_ runs: [ByteRange]) -> ByteRangeSet {
        var joined: [ByteRange] = []
        for run in runs.sorted(by: { $0.lowerBound < $1.lowerBound }) where !run.isEmpty {
            guard let last = joined.last, run.lowerBound - last.upperBound <= readThroughBytes else {
                joined.append(run)
                continue
            }
            joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, run.upperBound)
        }
        return ByteRangeSet(joined)
    }

    /// The maximal spans of time that can be played with cached bytes only, ascending, in seconds; empty if the index
    /// is not cached. Takes O(n log n) in the number of pieces.
    ///
    /// A span begins at a sync time with cached samples. ``slack`` is not required.
    ///
    /// - Parameters:
    ///   - cached: the cached bytes.
    ///   - kinds: the kinds of the tracks that are played; nil: all tracks.
    package func playableSpans(cached: ByteRangeSet, kinds: Set<TrackKind>? = nil) -> [Range<Double>] {
        guard indexRanges.allSatisfy(cached.contains) else { return [] }
        let chosen = chosen(kinds)
        let end = duration ?? chosen.flatMap(\.pieces).map(\.time.upperBound).filter(\.isFinite).max() ?? 0
        guard end > 0, chosen.contains(where: { !$0.pieces.isEmpty }) else { return [] }
        let spans = chosen.reduce([0..<end]) { spans, track in
            TimeSpans.intersection(spans, track.playableSpans(cached: cached, until: end))
        }
        return isReadFromStart ? spans.filter { $0.lowerBound == 0 } : spans
    }
}

extension MediaIndex.Track {
    /// The last sync time at or before a time; the time itself if the track can be decoded from each piece, and
    /// -infinity if all sync times are later.
    func decodeStart(of time: Double) -> Double {
        guard !syncTimes.isEmpty else { return time }
        let count = Self.count(of: syncTimes) { $0 <= time }
        return count > 0 ? syncTimes[count - 1] : -.infinity
    }

    /// The maximal spans within `0..<end` for which all pieces of this track are cached.
    func playableSpans(cached: ByteRangeSet, until end: Double) -> [Range<Double>] {
        let missing = pieces.lazy.filter { !cached.contains($0.bytes) }.map(\.time)
            .sorted { $0.lowerBound < $1.lowerBound }
        var spans: [Range<Double>] = []
        // All pieces before this time are irrelevant for a span that begins with a sync sample at or behind it.
        var missingEnd = -Double.infinity
        for time in missing + [end..<Double.infinity] {
            let upper = min(time.lowerBound, end)
            let lower = missingEnd == -.infinity ? 0 : max(0, decodableStart(from: missingEnd))
            if lower < upper { spans.append(lower..<upper) }
            missingEnd = max(missingEnd, time.upperBound)
        }
        return spans
    }

    /// The first time at or behind `time` from which decoding can begin; infinity if there is none.
    private func decodableStart(from time: Double) -> Double {
        guard !syncTimes.isEmpty else { return time }
        let count = Self.count(of: syncTimes) { $0 < time }
        return count < syncTimes.count ? syncTimes[count] : .infinity
    }

    /// The number of leading values where `holds` is true, by binary search.
    private static func count(of values: [Double], where holds: (Double) -> Bool) -> Int {
        var (low, high) = (0, values.count)
        while low < high {
            let middle = (low + high) / 2
            if holds(values[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
