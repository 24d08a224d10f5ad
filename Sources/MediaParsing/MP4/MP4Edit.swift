import CacheCore

/// An entry of an edit list (`elst`, ISO/IEC 14496-12 §8.6.6).
struct MP4Edit: Hashable {
    /// The largest number of entries. Each entry causes one pass over the pieces of the track.
    static let limit = 256

    /// The duration in the presentation, in units of the time scale of the movie.
    var duration: UInt64
    /// The first composition time in units of the track; nil: an empty edit, which shows nothing.
    var mediaTime: Int64?

    /// - Throws: `malformed` if the table exceeds its box, `tooLarge` if it has too many entries.
    static func parse(_ elst: MP4Box) throws(MediaError) -> [MP4Edit] {
        let isLong = try elst.version() == 1
        let table = try MP4Table(elst, countAt: 4, rowLength: isLong ? 20 : 12)
        guard table.count <= limit else { throw .tooLarge("An edit list has more than \(limit) entries.") }
        return (0..<table.count).map { row in
            let time =
                isLong
                ? Int64(bitPattern: table.uint(row, at: 8, width: 8))
                : Int64(Int32(bitPattern: table.uint32(row, at: 4)))
            return MP4Edit(duration: table.uint(row, at: 0, width: isLong ? 8 : 4), mediaTime: time < 0 ? nil : time)
        }
    }
}

/// The mapping from composition times of a track to presentation times, as ffmpeg does it.
struct MP4Timeline {
    /// A part of the media that is presented at normal rate.
    struct Segment: Hashable {
        /// The composition times in units of the track; the end is `Int64.max` if the edit has no end.
        var media: Range<Int64>
        /// The composition time that is presented at ``presentationStart``.
        var anchor: Int64
        /// In seconds.
        var presentationStart: Double

        func seconds(_ time: Int64, timeScale: UInt32) -> Double {
            presentationStart + (Double(time) - Double(anchor)) / Double(timeScale)
        }
    }

    let segments: [Segment]
    let timeScale: UInt32

    /// The timeline of a track in a movie without fragments.
    ///
    /// - Parameter firstTime: the first composition time of a sample in the first edit that is not empty. A video track
    ///   begins with this frame, even if the edit begins between two frames.
    init(_ track: MP4Track, movieScale: UInt32, firstTime: Int64?) {
        timeScale = track.timeScale
        guard !track.edits.isEmpty else {
            segments = [Segment(media: .min ..< .max, anchor: 0, presentationStart: 0)]
            return
        }
        var segments: [Segment] = []
        var start = 0.0
        for edit in track.edits {
            let seconds = Double(edit.duration) / Double(movieScale)
            defer { start += seconds }
            guard let time = edit.mediaTime else { continue }
            let length = Int64(saturating: (seconds * Double(track.timeScale)).rounded(.up))
            let (end, overflow) = time.addingReportingOverflow(edit.duration == 0 ? .max : length)
            let media = time..<(overflow ? .max : max(time, end))
            var anchor = time
            if segments.isEmpty, track.kind == .video, let firstTime, media.contains(firstTime) { anchor = firstTime }
            segments.append(Segment(media: media, anchor: anchor, presentationStart: start))
        }
        self.segments = segments
    }

    /// The timeline of a track in fragments: only the empty edit at the beginning and the start of the first edit
    /// count, because the durations are usually unknown when the movie box is written.
    init(fragmentsOf track: MP4Track, movieScale: UInt32) {
        timeScale = track.timeScale
        var start = 0.0
        var anchor: Int64 = 0
        for edit in track.edits {
            if let time = edit.mediaTime {
                anchor = time
                break
            }
            start += Double(edit.duration) / Double(movieScale)
        }
        segments = [Segment(media: .min ..< .max, anchor: anchor, presentationStart: start)]
    }

    /// The lower bound for the first composition time, which ``init(_:movieScale:firstTime:)`` needs.
    static func firstTimeLimit(_ track: MP4Track) -> Int64 {
        track.edits.lazy.compactMap(\.mediaTime).first ?? .min
    }

    /// Maps pieces and sync times. A piece that is only decoded before a segment begins gets the first instant of the
    /// segment as its time, so that a span of time that begins with the segment includes it.
    ///
    /// - Parameters:
    ///   - pieces: the pieces in decoding order with monotonic times.
    ///   - syncTimes: the sync times in units of the track; nil: each sample is a sync sample.
    ///   - limit: the largest number of pieces; more are merged.
    func map(
        _ pieces: [MP4MediaPiece], syncTimes: [Int64]?, limit: Int
    ) -> (pieces: [MediaIndex.Piece], syncTimes: [Double]) {
        var mapped: [MediaIndex.Piece] = []
        var syncs: [Double] = []
        for segment in segments {
            let seconds = { segment.seconds($0, timeScale: timeScale) }
            let start = segment.media.lowerBound
            let decodeStart = syncTimes?.lazy.filter { $0 <= start }.max()
            // Without any sync sample at or before the start, decoding begins with the first piece. Sound is decoded
            // one second ahead, as ffmpeg does to cover the delay of the decoder.
            let (ahead, overflow) = start.subtractingReportingOverflow(Int64(timeScale))
            let first = syncTimes == nil ? (overflow ? .min : ahead) : decodeStart ?? .min
            for piece in pieces where piece.start < segment.media.upperBound && piece.end > first {
                let time = seconds(max(piece.start, start))
                let end = seconds(min(piece.end, segment.media.upperBound))
                mapped.append(MediaIndex.Piece(time: time..<max(time.nextUp, end), bytes: piece.bytes))
            }
            if let decodeStart, decodeStart < start { syncs.append(seconds(start)) }
            if let syncTimes { syncs += syncTimes.lazy.filter(segment.media.contains).map(seconds) }
            MediaIndex.Piece.merge(&mapped, to: limit)
            // A missing sync time only causes a span to begin earlier than necessary.
            while syncs.count > max(1, limit) { syncs = stride(from: 0, to: syncs.count, by: 2).map { syncs[$0] } }
        }
        return (mapped, syncs.sorted())
    }
}

extension MediaIndex.Piece {
    /// Merges neighbours until at most `limit` pieces (at least one) are left.
    static func merge(_ pieces: inout [Self], to limit: Int) {
        while pieces.count > max(1, limit) {
            pieces = stride(from: 0, to: pieces.count, by: 2).map { index in
                guard index + 1 < pieces.count else { return pieces[index] }
                let (first, second) = (pieces[index], pieces[index + 1])
                return Self(
                    time: min(
                        first.time.lowerBound, second.time.lowerBound)..<max(
                            first.time.upperBound, second.time.upperBound),
                    bytes: min(
                        first.bytes.lowerBound, second.bytes.lowerBound)..<max(
                            first.bytes.upperBound, second.bytes.upperBound))
            }
        }
    }
}
