import CacheCore

/// Parser for MPEG transport streams (ISO/IEC 13818-1), which have no index: times are measured at several positions.
///
/// Reads: 64 KiB of the head, and more, up to 1.2 MB, until all streams have a time stamp; and the last 250,000 bytes.
/// ``TransportStreamMap`` measures the times at the ends of a span.
package enum TransportStreamParser {
    /// The number of bytes that ffmpeg reads at the end to find the duration.
    private static let tailLength: Int64 = 250_000
    /// ffmpeg reads so many seconds, and about so many bytes, before it plays.
    private static let analyzedSeconds = 6.0
    private static let analyzedLength: Int64 = 1_200_000

    /// The index of the first program of a file. All streams have the same pieces, which last about one second and
    /// overlap by the measured distance between the streams. There are no sync times.
    ///
    /// `indexRanges` has the bytes that ffmpeg reads when it opens a file: the first 6 s, at most 1.2 MB, and the last
    /// 250,000 bytes. The positions between two measurements are interpolated; ffmpeg finds a time by bisection, and
    /// can read elsewhere too.
    ///
    /// Throws `.unsupported` if packets, program or time stamps are missing, or if the times do not ascend.
    package static func index(
        of source: MediaSource, limits: MediaLimits = MediaLimits()
    ) async throws(MediaError) -> MediaIndex {
        var file = try await TransportStreamFile(source: source, limits: limits)
        try await file.readHead()
        try await file.readTail(tailLength)
        let share = max(1, limits.pieces / max(1, file.program.streams.count))
        let map = try await file.map(source, limit: share)

        var index = MediaIndex(container: .mpegTS, layout: .none, slack: tailLength)
        index.tracks = file.program.streams.map { stream in
            MediaIndex.Track(id: Int64(stream.pid), kind: stream.kind, codec: stream.codec)
        }
        index.apply(map)
        let analyzed = min(map.times.position(at: analyzedSeconds), file.start + analyzedLength)
        let head = 0..<min(source.length, max(file.headEnd, analyzed))
        let tail = max(0, source.length - tailLength)..<source.length
        index.indexRanges = ByteRangeSet([head, tail]).runs
        return index
    }
}
