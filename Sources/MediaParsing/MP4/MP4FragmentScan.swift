import CacheCore

/// Finds the fragments of a file behind its movie box: by `sidx`, otherwise by each `moof`. An `mfra` box is not used:
/// players read the headers of all fragments in spite of it. They read through short fragments instead of sending a
/// request for each; such fragments are fetched together.
struct MP4FragmentScan {
    /// The pieces of a track that were found.
    struct TrackPieces {
        var pieces: [MediaIndex.Piece] = []
        var syncTimes: [Double] = []
        /// Whether ``syncTimes`` are a proper subset of the samples.
        var hasOtherSamples = false
    }

    /// Players read through fragments that are shorter.
    private static let shortFragment: Int64 = 128 << 10

    private(set) var tracks: [UInt32: TrackPieces] = [:]
    /// The bytes of `sidx` boxes and of fragment headers, and the end of the file.
    private(set) var indexRanges: [ByteRange] = []
    /// Whether the pieces contain all tracks, although a table may exist for one track only.
    private(set) var piecesContainAllTracks = false

    private var file: MP4File
    private let movie: MP4Movie
    private let limits: MediaLimits
    private let timelines: [UInt32: MP4Timeline]
    /// The largest number of pieces of a track.
    private let pieceLimit: Int
    /// The offsets of the segment indexes that were parsed.
    private var segmentIndexes: Set<Int64> = []
    /// The first fragment to which a segment index refers.
    private var firstFragment: MP4Fragment?
    /// The offset of the second fragment to which segment indexes refer.
    private var secondFragment: Int64?
    private var referenceCount = 0
    /// The seconds by which the times of the segment indexes of a track are too small.
    private var shifts: [UInt32: Double] = [:]
    /// The offset of the last fragment, and whether it follows the one before it closely.
    private var lastFragment: Int64?
    private var isShort = false
    /// The first byte that belongs to no piece yet.
    private var regionStart: Int64 = 0
    private var fragment: MP4Fragment?
    private var decodeTimes: [UInt32: Int64] = [:]

    init(_ file: MP4File, movie: MP4Movie, limits: MediaLimits) {
        self.file = file
        self.movie = movie
        self.limits = limits
        pieceLimit = max(2, limits.pieces / movie.tracks.count)
        timelines = Dictionary(
            movie.tracks.map { ($0.id, MP4Timeline(fragmentsOf: $0, movieScale: movie.timeScale)) },
            uniquingKeysWith: { first, _ in first })
    }

    /// Scans the file from the end of the movie box.
    mutating func run(from start: Int64) async throws(MediaError) {
        var position = start
        var covered = start
        var fragmentEnd = start
        var hasMedia = false
        regionStart = start
        scan: while let header = try await nextBox(at: position) {
            switch header.type {
            case "sidx" where !segmentIndexes.contains(header.start):
                flush(until: fragmentEnd)
                if !hasMedia { indexRanges.append(header.start..<min(file.length, header.end + 8)) }
                covered = max(covered, try await addSegmentIndex(header, depth: 1))
                position = header.end
                continue
            case "mfra":
                // A player that reads through short fragments reads the whole box.
                if isShort { indexRanges.append(header.start..<header.end) }
                break scan
            case "moof" where position >= covered:
                flush(until: fragmentEnd)
                isShort = lastFragment.map { position - $0 < Self.shortFragment } ?? false
                lastFragment = position
                try await addFragment(header)
                fragmentEnd = header.end
                hasMedia = true
            case "moof" where firstFragment == nil:
                let fragment = try MP4Fragment(try await file.box(header), movie: movie, decodeTimes: [:])
                alignSegmentIndexes(to: fragment)
                firstFragment = fragment
                // Players read the first fragment to learn the frame rate and similar properties.
                addFragmentHeader(header)
            case "mdat" where position >= covered: fragmentEnd = header.end
            default: break
            }
            hasMedia = hasMedia || position < covered
            let isSearching = firstFragment == nil && header.type != "mdat"
            position = position < covered && !isSearching ? covered : header.end
            regionStart = max(regionStart, covered)
        }
        flush(until: fragmentEnd)
        // ffmpeg reads the end of the file to learn whether an `mfra` box follows the last reference, and the header
        // behind the first fragment.
        if !segmentIndexes.isEmpty, covered < file.length { indexRanges.append(max(0, file.length - 16)..<file.length) }
        if let secondFragment, let header = try await file.header(at: secondFragment), header.type == "moof" {
            addFragmentHeader(header)
        }
    }

    /// The box at `position`; nil at the end of the file. A box that a truncated file has in part ends it too, and the last
    /// fragment then counts only with its media data.
    private mutating func nextBox(at position: Int64) async throws(MediaError) -> MP4BoxHeader? {
        do throws(MediaError) {
            if isShort { try await file.fetchAhead(from: position) }
            return try await file.header(at: position)
        } catch {
            guard case .malformed = error, !tracks.isEmpty else { throw error }
            fragment = nil
            return nil
        }
    }

    /// Adds the header of a fragment, and of the media data behind it, to the bytes that players read when they open the
    /// file.
    private mutating func addFragmentHeader(_ header: MP4BoxHeader) {
        indexRanges.append(header.start..<min(file.length, header.end + 8))
    }

    private mutating func append(_ piece: MediaIndex.Piece, syncTimes: [Double], to id: UInt32) {
        guard timelines[id] != nil else { return }
        var track = tracks.removeValue(forKey: id) ?? TrackPieces()
        if track.pieces.count >= pieceLimit { MediaIndex.Piece.merge(&track.pieces, to: pieceLimit / 2) }
        track.pieces.append(piece)
        track.syncTimes += syncTimes
        while track.syncTimes.count > pieceLimit {
            track.syncTimes = stride(from: 0, to: track.syncTimes.count, by: 2).map { track.syncTimes[$0] }
        }
        tracks[id] = track
    }
}

// MARK: - Movie fragments

extension MP4FragmentScan {
    private mutating func addFragment(_ header: MP4BoxHeader) async throws(MediaError) {
        let box = try await file.box(header)
        let fragment = try MP4Fragment(box, movie: movie, decodeTimes: decodeTimes)
        for (id, track) in fragment.tracks { decodeTimes[id] = track.decodeEnd }
        self.fragment = fragment
        // ffmpeg reads the headers of all fragments when it opens a file without a segment index.
        addFragmentHeader(header)
    }

    /// Appends the last fragment with its media data up to `end`.
    private mutating func flush(until end: Int64) {
        guard let fragment else { return }
        let bytes = regionStart..<max(regionStart, end)
        for (id, track) in fragment.tracks {
            guard let segment = timelines[id]?.segments.first, let timeScale = timelines[id]?.timeScale else {
                continue
            }
            let seconds = { segment.seconds($0, timeScale: timeScale) }
            let start = seconds(track.times.lowerBound)
            let piece = MediaIndex.Piece(
                time: start..<max(start.nextUp, seconds(track.times.upperBound)), bytes: bytes)
            append(piece, syncTimes: track.syncTimes.map(seconds), to: id)
            if track.hasOtherSamples { tracks[id]?.hasOtherSamples = true }
        }
        regionStart = bytes.upperBound
        self.fragment = nil
    }
}

// MARK: - Segment indexes

extension MP4FragmentScan {
    /// Adds the references of a `sidx` box and of those to which it refers. Returns the end of the last reference.
    private mutating func addSegmentIndex(_ header: MP4BoxHeader, depth: Int) async throws(MediaError) -> Int64 {
        guard depth <= limits.depth else {
            throw .tooLarge("Segment indexes are nested more than \(limits.depth) deep.")
        }
        // An index that is referenced twice would give the same pieces again.
        guard segmentIndexes.insert(header.start).inserted else { return header.end }
        guard segmentIndexes.count <= limits.fragments else {
            throw .tooLarge("The file has more than \(limits.fragments) segment indexes.")
        }
        let index = try MP4SegmentIndex(try await file.box(header), fileLength: file.length)
        piecesContainAllTracks = true
        for reference in index.references {
            guard reference.isIndex else {
                let shift = shifts[index.trackID] ?? 0
                let start = reference.time.lowerBound + shift
                let piece = MediaIndex.Piece(
                    time: start..<max(start.nextUp, reference.time.upperBound + shift), bytes: reference.bytes)
                append(piece, syncTimes: reference.syncTime.map { [$0 + shift] } ?? [], to: index.trackID)
                if reference.syncTime != nil { tracks[index.trackID]?.hasOtherSamples = true }
                referenceCount += 1
                if referenceCount == 2 { secondFragment = reference.bytes.lowerBound }
                continue
            }
            guard let nested = try await file.header(at: reference.bytes.lowerBound), nested.type == "sidx" else {
                throw .malformed("sidx", offset: reference.bytes.lowerBound)
            }
            indexRanges.append(nested.start..<min(file.length, nested.end + 8))
            _ = try await addSegmentIndex(nested, depth: depth + 1)
        }
        return index.end
    }

    /// Corrects the times of segment indexes by the presentation times of their first fragment. Some writers, among
    /// them ffmpeg, store decoding times, or ignore the edit list.
    private mutating func alignSegmentIndexes(to fragment: MP4Fragment) {
        for (id, times) in fragment.tracks.mapValues(\.times) {
            guard var track = tracks[id], let first = track.pieces.first, let timeline = timelines[id],
                let segment = timeline.segments.first
            else { continue }
            let shift = segment.seconds(times.lowerBound, timeScale: timeline.timeScale) - first.time.lowerBound
            track.pieces = track.pieces.map { piece in
                let start = piece.time.lowerBound + shift
                return MediaIndex.Piece(
                    time: start..<max(start.nextUp, piece.time.upperBound + shift), bytes: piece.bytes)
            }
            track.syncTimes = track.syncTimes.map { $0 + shift }
            tracks[id] = track
            shifts[id] = shift
        }
    }
}
