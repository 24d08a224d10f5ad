import CacheCore

/// A segment index (`sidx`, ISO/IEC 14496-12 §8.16.3).
struct MP4SegmentIndex {
    /// One row of the table.
    struct Reference: Hashable {
        /// Whether the reference leads to another segment index, not to media.
        var isIndex: Bool
        /// The bytes in the file.
        var bytes: ByteRange
        /// The presentation times in seconds.
        var time: Range<Double>
        /// The first time from which decoding can begin, in seconds; nil: not stated.
        var syncTime: Double?
    }

    let trackID: UInt32
    private(set) var references: [Reference] = []
    /// The offset of the first byte behind all references.
    private(set) var end: Int64

    /// - Parameter fileLength: the length of the file in bytes.
    /// - Throws: `malformed` if the time scale is 0, or if a reference is empty or ends behind the end of the file.
    init(_ box: MP4Box, fileLength: Int64) throws(MediaError) {
        trackID = try box.uint32(at: 4)
        let timeScale = Double(try box.uint32(at: 8))
        guard timeScale > 0 else { throw box.malformed }
        let width = try box.version() == 0 ? 4 : 8
        var time = try box.uint(at: 12, width: width)
        let firstOffset = try box.uint(at: 12 + width, width: width)
        let boxEnd = box.base + Int64(box.payload.upperBound)
        guard fileLength >= boxEnd, firstOffset <= UInt64(fileLength - boxEnd) else { throw box.malformed }
        end = boxEnd + Int64(firstOffset)
        let count = Int(try box.uint16(at: 14 + 2 * width))
        let table = try MP4Table(box, start: 16 + 2 * width, count: count, rowLength: 12)
        for row in 0..<count {
            let size = table.uint32(row)
            let length = Int64(size & 0x7FFF_FFFF)
            guard length > 0, length <= fileLength - end else { throw table.malformed(row: row) }
            let (next, overflow) = time.addingReportingOverflow(UInt64(table.uint32(row, at: 4)))
            guard !overflow else { throw table.malformed(row: row) }
            let start = Double(time) / timeScale
            let accessPoint = table.uint32(row, at: 8)
            let delta = Double(accessPoint & 0x0FFF_FFFF) / timeScale
            // Bit 31: starts_with_SAP; bits 28 to 30: SAP_type, 0 means unknown or none.
            let hasAccessPoint = accessPoint >> 31 == 1 || accessPoint >> 28 & 7 > 0
            references.append(
                Reference(
                    isIndex: size >> 31 == 1, bytes: ByteRange(offset: end, length: length),
                    time: start..<Double(next) / timeScale, syncTime: hasAccessPoint ? start + delta : nil))
            end += length
            time = next
        }
    }
}

/// The times of the tracks in one movie fragment (`moof`, ISO/IEC 14496-12 §8.8.4 to §8.8.12).
struct MP4Fragment {
    /// The samples of a track in the fragment; all times are in units of the track.
    struct Track {
        /// The decoding time of the first sample (`tfdt`).
        var decodeTime: Int64
        /// The composition time of the first sample.
        var firstTime: Int64
        /// The composition times of all samples.
        var times: Range<Int64>
        /// The decoding time behind the last sample.
        var decodeEnd: Int64
        /// The composition times of the sync samples.
        var syncTimes: [Int64] = []
        var hasOtherSamples = false

        init(decodeTime: Int64, firstTime: Int64) {
            self.decodeTime = decodeTime
            self.firstTime = firstTime
            times = firstTime..<firstTime
            decodeEnd = decodeTime
        }
    }

    private static let timeLimit: Int64 = 1 << 60
    private(set) var tracks: [UInt32: Track] = [:]

    /// - Parameters:
    ///   - movie: the movie box, for the defaults of the samples.
    ///   - decodeTimes: the decoding times for fragments without `tfdt`, by track.
    init(_ moof: MP4Box, movie: MP4Movie, decodeTimes: [UInt32: Int64]) throws(MediaError) {
        var children = moof.children
        while let child = try children.next() {
            guard child.type == "traf", tracks.count < MP4Movie.trackLimit else { continue }
            try parseTrack(child, movie: movie, decodeTimes: decodeTimes)
        }
    }

    private mutating func parseTrack(
        _ traf: MP4Box, movie: MP4Movie, decodeTimes: [UInt32: Int64]
    ) throws(MediaError) {
        var id: UInt32?
        var defaults = MP4Movie.FragmentDefaults()
        var time: Int64 = 0
        var children = traf.children
        while let child = try children.next() {
            switch child.type {
            case "tfhd":
                let trackID = try child.uint32(at: 4)
                id = trackID
                defaults = try Self.defaults(child, movie.defaults[trackID] ?? defaults)
                time = tracks[trackID]?.decodeEnd ?? decodeTimes[trackID] ?? 0
            case "tfdt":
                let value = try child.uint(at: 4, width: try child.version() == 1 ? 8 : 4)
                guard value < UInt64(Self.timeLimit) else { throw child.malformed }
                time = Int64(value)
            case "trun":
                guard let id else { throw traf.malformed }
                time = try addRun(child, to: id, from: time, defaults: defaults)
            default: break
            }
        }
    }

    private static func defaults(
        _ tfhd: MP4Box, _ inherited: MP4Movie.FragmentDefaults
    ) throws(MediaError) -> MP4Movie.FragmentDefaults {
        var defaults = inherited
        let flags = try tfhd.flags()
        var position = 8 + (flags & 0x1 != 0 ? 8 : 0) + (flags & 0x2 != 0 ? 4 : 0)
        if flags & 0x8 != 0 {
            defaults.duration = try tfhd.uint32(at: position)
            position += 4
        }
        if flags & 0x10 != 0 { position += 4 }
        if flags & 0x20 != 0 { defaults.flags = try tfhd.uint32(at: position) }
        return defaults
    }

    /// Adds the samples of a `trun` box and returns the decoding time behind them.
    private mutating func addRun(
        _ trun: MP4Box, to id: UInt32, from start: Int64, defaults: MP4Movie.FragmentDefaults
    ) throws(MediaError) -> Int64 {
        let flags = try trun.flags()
        let count = Int(try trun.uint32(at: 4))
        guard count > 0 else { return start }
        var position = 8 + (flags & 0x1 != 0 ? 4 : 0)
        var firstFlags: UInt32?
        if flags & 0x4 != 0 {
            firstFlags = try trun.uint32(at: position)
            position += 4
        }
        let columns = SampleColumns(flags)
        let table = try MP4Table(trun, start: position, count: count, rowLength: columns.rowLength)
        // Rows without columns are all equal, except for the flags of the first one.
        let rows = columns.rowLength > 0 ? count : min(count, 2)
        let offsetOfRow = { row in Int64(Int32(bitPattern: columns.offset.map { table.uint32(row, at: $0) } ?? 0)) }
        var track = tracks.removeValue(forKey: id) ?? Track(decodeTime: start, firstTime: start + offsetOfRow(0))
        var time = start
        for row in 0..<rows {
            let repeated = Int64(row == rows - 1 ? count - row : 1)
            let duration = Int64(columns.duration.map { table.uint32(row, at: $0) } ?? defaults.duration)
            var sampleFlags = columns.flags.map { table.uint32(row, at: $0) } ?? defaults.flags
            if row == 0, let firstFlags { sampleFlags = firstFlags }
            let (total, overflow) = duration.multipliedReportingOverflow(by: repeated)
            guard !overflow, total <= Self.timeLimit - time else { throw trun.malformed }
            let offset = offsetOfRow(row)
            track.add(time + offset..<time + total + offset, isSync: sampleFlags & 0x1_0000 == 0)
            time += total
        }
        track.decodeEnd = time
        tracks[id] = track
        return time
    }

    /// The columns of a `trun` table: the position of each in a row; nil: the table does not have it.
    private struct SampleColumns {
        private(set) var duration: Int?
        private(set) var flags: Int?
        private(set) var offset: Int?
        private(set) var rowLength = 0

        init(_ runFlags: UInt32) {
            duration = add(runFlags & 0x100 != 0)
            _ = add(runFlags & 0x200 != 0)
            flags = add(runFlags & 0x400 != 0)
            offset = add(runFlags & 0x800 != 0)
        }

        private mutating func add(_ isPresent: Bool) -> Int? {
            guard isPresent else { return nil }
            defer { rowLength += 4 }
            return rowLength
        }
    }
}

extension MP4Fragment.Track {
    fileprivate mutating func add(_ samples: Range<Int64>, isSync: Bool) {
        times = min(times.lowerBound, samples.lowerBound)..<max(times.upperBound, samples.upperBound)
        if isSync { syncTimes.append(samples.lowerBound) } else { hasOtherSamples = true }
    }
}
