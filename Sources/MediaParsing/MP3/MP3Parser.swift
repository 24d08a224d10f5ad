import CacheCore

/// Parser for MPEG audio files: layers I to III of ISO/IEC 11172-3 and 13818-3, with ID3, Xing, Info and VBRI headers.
///
/// Reads: the first 32 KiB behind ID3 tags; without a Xing, Info or VBRI header also the last block of 32 KiB, and one in
/// the middle to check whether the bit rate is constant. ``MP3Map`` counts the frames up to a time if it is not.
package enum MP3Parser {
    /// A map of times to bytes with its uncertainty.
    private struct Timing {
        var map: MediaTimeMap
        var seconds = 0.1
        var bytes: Int64 = 2048
    }

    /// The first read; ffmpeg reads as much when it opens a file.
    private static let headLength: Int64 = 32 << 10
    /// The first frame must begin so many bytes behind the ID3 tags.
    private static let searchLength: Int64 = 128 << 10
    /// A file that is not longer is fetched at once: players read most of it.
    private static let smallFile: Int64 = 512 << 10
    private static let leastTail: Int64 = 8 << 10
    private static let probeLength: Int64 = 32 << 10
    private static let slack: Int64 = 32 << 10

    /// The index of a file: one audio track with pieces of about one second.
    ///
    /// `indexRanges` has the ID3 tags and 32 KiB behind them, and the last 128 bytes of a file without ID3v2 tag:
    /// ffmpeg reads an ID3v1 tag there. The layout is `.headIndex` with a Xing, Info or VBRI header.
    ///
    /// Throws `.unsupported` if no two consecutive frames are found at the beginning; free format is not supported.
    package static func index(
        of source: MediaSource, limits: MediaLimits = MediaLimits()
    ) async throws(MediaError) -> MediaIndex {
        var buffer = MediaReadBuffer(source: source, byteLimit: Int64(limits.indexBytes))
        let start = try await ID3Tag.end(in: &buffer, ahead: headLength)
        let run = try await firstRun(&buffer, from: start)
        let needed = MP3SeekHeader.length(try await buffer.view(run.position..<run.position + 64), at: run.position)
        let frame = try await buffer.view(run.position..<run.position + max(run.first.length, needed))
        let header = MP3SeekHeader(frame, at: run.position, run.first)
        let stated = header.flatMap { timing($0, run, length: source.length) }
        let (chosen, isExact) = if let stated { (stated, true) } else { try await measure(&buffer, run) }

        var index = MediaIndex(container: .mp3, layout: header == nil ? .none : .headIndex, slack: slack)
        let end = chosen.map.points[chosen.map.points.count - 1].time
        index.duration = end > 0 ? end : nil
        let pieces = chosen.map.pieces(limit: limits.pieces, seconds: chosen.seconds, bytes: chosen.bytes).map {
            MediaIndex.Piece(time: $0.time, bytes: $0.bytes.clamped(to: 0..<source.length))
        }
        // Players begin to read at the entry before the requested time.
        let entryTimes = index.duration.map { end in header?.table.map { $0.time * end } ?? [] } ?? []
        index.tracks = [
            .init(id: 1, kind: .audio, codec: "mp\(run.first.layer)", pieces: pieces, syncTimes: entryTimes.sorted())
        ]
        index.addCovers(ID3Tag.coverCodecs(in: try await buffer.view(0..<min(start, headLength))))
        let headEnd = min(source.length, run.position + headLength)
        let tail = max(headEnd, source.length - 128)..<source.length
        index.indexRanges = ByteRangeSet(start > 0 ? [0..<headEnd] : [0..<headEnd, tail]).runs
        if !isExact { index.apply(MP3Map(run, chosen.map, limit: limits.pieces)) }
        return index
    }

    /// The first consecutive frames behind the tags.
    private static func firstRun(
        _ buffer: inout MediaReadBuffer, from start: Int64
    ) async throws(MediaError) -> MP3Run {
        for length in [headLength / 2, searchLength] {
            let bytes = try await buffer.view(start..<start + length)
            if let run = MP3Run(in: bytes, from: start) { return run }
        }
        let first = try await buffer.view(start..<start + 8)
        throw .unsupported("No MPEG audio frame at the beginning: \(first.hexadecimal(at: start))")
    }

    /// The map of a Xing, Info or VBRI header; nil if it does not state the number of frames.
    private static func timing(_ header: MP3SeekHeader, _ run: MP3Run, length: Int64) -> Timing? {
        guard let frames = header.frames, frames > 0, length > run.position else { return nil }
        let duration = Double(frames) * run.first.duration
        let byteCount = header.byteCount.flatMap { $0 > 0 ? $0 : nil } ?? length - run.position
        let points = (header.isConstant ? [] : header.table).map { entry in
            MediaTimeMap.Point(
                position: run.position + Int64(saturating: entry.position * Double(byteCount)),
                time: entry.time * duration)
        }
        let map = MediaTimeMap(
            first: .init(position: run.position, time: 0), between: points,
            last: .init(position: run.position + byteCount, time: duration))
        guard !header.table.isEmpty else { return Timing(map: map) }
        // Encoders sample the table at several hundred frames, so that an entry can be one step off.
        let step = Int64(saturating: header.resolution * Double(byteCount))
        return Timing(map: map, seconds: 0.3, bytes: 2048 + step)
    }

    /// The map of a file without a header, by the bit rates at several positions, and whether it is exact because the
    /// bit rate is constant.
    private static func measure(
        _ buffer: inout MediaReadBuffer, _ run: MP3Run
    ) async throws(MediaError) -> (Timing, isExact: Bool) {
        let length = buffer.source.length
        if length <= smallFile { try await buffer.source.fetch(0..<length) }
        let end = max(run.position + run.byteCount, try await audioEnd(&buffer))
        let start = MediaTimeMap.Point(position: run.position, time: 0)
        let middle = ByteRange(offset: run.position + (end - run.position) / 2, length: probeLength)
        var probes =
            [run] + (try await probe(&buffer, run, [MediaIndex.blocks(of: middle.prefix(1)), tail(of: end)], end))
        if probes.allSatisfy({ $0.isConstant && $0.first.bitRate == run.first.bitRate }) {
            let seconds = Double(end - run.position) * 8 / Double(run.first.bitRate)
            let map = MediaTimeMap(first: start, between: [], last: .init(position: end, time: seconds))
            return (Timing(map: map), true)
        }
        // The average of a variable bit rate needs more frames.
        probes = [run] + (try await probe(&buffer, run, [middle, max(0, end - probeLength)..<end], end))
        var points = [start]
        for (before, after) in zip(probes, probes.dropFirst()) where after.position > before.position {
            let rate = (before.bytesPerSecond + after.bytesPerSecond) / 2
            let last = points[points.count - 1]
            let time = last.time + Double(after.position - last.position) / rate
            points.append(.init(position: after.position, time: time))
        }
        let last = points[points.count - 1]
        let rate = probes[probes.count - 1].bytesPerSecond
        let final = MediaTimeMap.Point(position: end, time: last.time + Double(end - last.position) / rate)
        let map = MediaTimeMap(first: start, between: points.dropFirst(), last: final)
        return (Timing(map: map, seconds: 1, bytes: 16 << 10), false)
    }

    /// Consecutive frames in each range behind the first run, before `end`; ranges without frames are omitted.
    private static func probe(
        _ buffer: inout MediaReadBuffer, _ run: MP3Run, _ ranges: [ByteRange], _ end: Int64
    ) async throws(MediaError) -> [MP3Run] {
        var probes: [MP3Run] = []
        for range in ranges where range.lowerBound > run.position {
            let bytes = try await buffer.view(range.clamped(to: 0..<end))
            if let probe = MP3Run(in: bytes, from: range.lowerBound, of: run.first) { probes.append(probe) }
        }
        return probes
    }

    /// The last block before `end`, and the block before it if that is short.
    private static func tail(of end: Int64) -> ByteRange {
        MediaIndex.blocks(of: ByteRange(offset: max(0, end - leastTail), length: 1)).lowerBound..<end
    }

    /// The end of the audio data: the position of an APEv2 or ID3v1 tag at the end of the file.
    private static func audioEnd(_ buffer: inout MediaReadBuffer) async throws(MediaError) -> Int64 {
        var end = buffer.source.length
        let bytes = try await buffer.view(tail(of: end))
        if bytes.holds("TAG", at: end - 128) { end -= 128 }
        guard bytes.holds("APETAGEX", at: end - 32), let size = bytes.number(at: end - 20, count: 4),
            let flags = bytes.byte(at: end - 9)
        else { return end }
        let length = Int64(UInt32(size).byteSwapped) + (flags & 0x80 == 0 ? 0 : 32)
        return length < end ? end - length : end
    }
}
