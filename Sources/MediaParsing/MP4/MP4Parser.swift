import CacheCore

/// Parser for the index of ISO base media files: MP4, MOV and fragmented MP4 (ISO/IEC 14496-12, QuickTime File Format).
package enum MP4Parser {
    /// Reads the index of a file: the head, the movie box, and for fragmented files the boxes that locate fragments.
    ///
    /// - Throws: `unsupported` if the file is no ISO base media file, has no movie box, or has a compressed one;
    ///   `malformed` for contradictions, `tooLarge` beyond the limits, and the errors of a read.
    package static func index(
        of source: MediaSource, limits: MediaLimits = MediaLimits()
    ) async throws(MediaError) -> MediaIndex {
        var file = MP4File(source, limits: limits)
        let location = try await locateMovie(&file)
        let movie = try MP4Movie(try await file.box(location.movie))
        var tracks: [MediaIndex.Track] = []
        var missing: MediaError?
        for track in movie.tracks {
            let indexed = try self.track(track, movie: movie, limits: limits, fileLength: file.length)
            tracks.append(indexed.track)
            missing = missing ?? indexed.missing
        }
        if let missing {
            let isTruncated = try await file.isTruncated(from: location.movie.end)
            guard isTruncated, !tracks.allSatisfy(\.pieces.isEmpty) else { throw missing }
        }
        if movie.isFragmented {
            var scan = MP4FragmentScan(file, movie: movie, limits: limits)
            try await scan.run(from: location.movie.end)
            if !scan.tracks.isEmpty || tracks.allSatisfy(\.pieces.isEmpty) {
                var index = fragmentedIndex(tracks, scan, movie: movie, location: location, length: file.length)
                index.addCovers(movie.coverCodecs)
                index.chapters = movie.chapters
                return index
            }
        }
        var index = MediaIndex(
            container: .mp4, layout: location.mediaStart == nil ? .headIndex : .tailIndex,
            duration: movie.durationSeconds ?? end(of: tracks), tracks: tracks,
            indexRanges: indexRanges(location, length: file.length, isFragmented: false))
        index.chapters = movie.chapters
        index.editSeconds = movie.tracks.map(\.editSeconds).max() ?? 0
        index.addCovers(movie.coverCodecs)
        return index
    }

    /// The end of the media data if `mdat` precedes `moov`, from the first bytes of a file.
    ///
    /// - Parameter head: the first bytes, usually some KiB.
    /// - Returns: the offset of the first byte behind the first `mdat` box, at which `moov` usually begins; nil if
    ///   another box is first, if the size is unknown, or if the bytes do not suffice. It is not validated against the
    ///   length of the file.
    package static func mediaDataBeforeIndex(head: [UInt8]) -> Int64? {
        guard isBaseMedia(head) else { return nil }
        var offset: Int64 = 0
        while offset <= Int64(head.count) - 8 {
            // A malformed size means that the place of the index is unknown.
            let header = try? MP4BoxHeader.parse(head, base: 0, at: offset, parentEnd: .max)
            guard let header, header.end > offset, header.end < .max else { return nil }
            switch header.type {
            case "mdat": return header.end
            case "moov", "moof", "sidx": return nil
            default: offset = header.end
            }
        }
        return nil
    }
}

// MARK: - Top-level boxes

extension MP4Parser {
    /// The places that determine the layout of a file.
    struct MovieLocation {
        var movie: MP4BoxHeader
        /// The first byte of the payload of the first `mdat` box before the movie box; nil: there is none.
        var mediaStart: Int64?
    }

    /// The largest number of boxes before the movie box.
    private static let boxLimit = 256
    /// The longest rest of a file behind `mdat` that is read in one request.
    private static let tailLength: Int64 = 1 << 20
    /// Types of boxes that can be the first of a file.
    private static let firstTypes: Set<MP4FourCC> = [
        "ftyp", "styp", "moov", "mdat", "free", "skip", "wide", "pnot", "pdin", "uuid", "udta", "junk", "pict", "prfl",
        "meta", "moof", "sidx", "ssix", "emsg", "prft",
    ]

    private static func isBaseMedia(_ head: [UInt8]) -> Bool {
        head.count >= 8 && firstTypes.contains(MP4FourCC(UInt32(head.bigEndian(at: 4, width: 4))))
    }

    static func locateMovie(_ file: inout MP4File) async throws(MediaError) -> MovieLocation {
        let head = try await file.bytes(0..<min(file.length, MP4File.headLength))
        guard isBaseMedia(head) else {
            let text = head.prefix(8).map(MP4FourCC.text).joined()
            throw .unsupported("The file begins with \"\(text)\", which is no box of an ISO base media file.")
        }
        var offset: Int64 = 0
        var mediaStart: Int64?
        for _ in 0..<boxLimit {
            let rest = file.length - offset
            let window = mediaStart != nil && rest <= tailLength ? rest : nil
            guard let header = try await file.header(at: offset, window: window) else {
                throw .unsupported("The file has no moov box.")
            }
            switch header.type {
            case "moov": return MovieLocation(movie: header, mediaStart: mediaStart)
            case "moof": throw .unsupported("The file has no moov box before the first moof box.")
            case "mdat": mediaStart = mediaStart ?? header.payloadStart
            default: break
            }
            offset = header.end
        }
        throw .tooLarge("More than \(boxLimit) boxes precede the moov box.")
    }

    /// The bytes that a player reads to open the file. ffmpeg reads the header of the box behind the movie box too.
    private static func indexRanges(
        _ location: MovieLocation, length: Int64, isFragmented: Bool
    ) -> [ByteRange] {
        let movie = location.movie
        let end = min(length, movie.end + 8)
        guard let mediaStart = location.mediaStart else { return [0..<end] }
        let isLast = !isFragmented && length - movie.end <= 64 << 10
        return [0..<mediaStart, movie.start..<(isLast ? length : end)]
    }
}

// MARK: - Tracks

extension MP4Parser {
    /// The samples of a track, and the error of the first chunk that exceeds the file.
    private static func track(
        _ track: MP4Track, movie: MP4Movie, limits: MediaLimits, fileLength: Int64
    ) throws(MediaError) -> (track: MediaIndex.Track, missing: MediaError?) {
        var result = MediaIndex.Track(id: Int64(track.id), kind: track.kind, codec: track.codec)
        result.description = track.description
        guard let table = track.samples, var runs = MP4SampleRuns(table, fileLength: fileLength) else {
            return (result, nil)
        }
        let limit = max(2, limits.pieces / movie.tracks.count)
        var builder = MP4PieceBuilder(
            target: Int64(track.timeScale) / 2, limit: limit, collectsSyncTimes: table.syncSamples != nil,
            firstTimeLimit: MP4Timeline.firstTimeLimit(track))
        while let run = try runs.next(merging: builder.mergedDuration) { builder.add(run) }
        let timeline =
            movie.isFragmented
            ? MP4Timeline(fragmentsOf: track, movieScale: movie.timeScale)
            : MP4Timeline(track, movieScale: movie.timeScale, firstTime: builder.firstTime)
        let syncTimes = table.syncSamples == nil ? nil : builder.syncTimes
        let mapped = timeline.map(builder.finish(), syncTimes: syncTimes, limit: limit)
        result.pieces = mapped.pieces
        if timeline.segments.count > 1 { result.pieces.sort { $0.bytes.lowerBound < $1.bytes.lowerBound } }
        result.syncTimes = mapped.syncTimes
        return (result, runs.missing)
    }

    private static func end(of tracks: [MediaIndex.Track]) -> Double? {
        tracks.lazy.flatMap(\.pieces).map(\.time.upperBound).max()
    }

    private static func fragmentedIndex(
        _ tracks: [MediaIndex.Track], _ scan: MP4FragmentScan, movie: MP4Movie, location: MovieLocation, length: Int64
    ) -> MediaIndex {
        var tracks = tracks
        let common = scan.tracks.min { $0.key < $1.key }?.value.pieces ?? []
        for index in tracks.indices {
            guard let found = scan.tracks[UInt32(truncatingIfNeeded: tracks[index].id)] else {
                if scan.piecesContainAllTracks { tracks[index].pieces += common }
                continue
            }
            tracks[index].pieces += found.pieces
            if found.hasOtherSamples || !tracks[index].syncTimes.isEmpty {
                tracks[index].syncTimes = (tracks[index].syncTimes + found.syncTimes).sorted()
            }
        }
        let ranges = indexRanges(location, length: length, isFragmented: true) + scan.indexRanges
        let largest = scan.tracks.values.lazy.flatMap(\.pieces).map(\.bytes.length).max() ?? 0
        let declared = Double(movie.fragmentDuration) / Double(movie.timeScale)
        return MediaIndex(
            container: .mp4, layout: .fragmented,
            duration: declared > 0 ? declared : end(of: tracks) ?? movie.durationSeconds, tracks: tracks,
            indexRanges: ByteRangeSet(ranges).runs, slack: slack(largestFragment: largest))
    }

    /// Players read one fragment beyond the last needed one, and the header of the next; a large fragment is not read
    /// as a whole.
    private static func slack(largestFragment: Int64) -> Int64 {
        max(64 << 10, min(largestFragment, 4 << 20) + MP4File.headLength)
    }
}
