import CacheCore
@testable import MediaParsing
import Testing

@Suite(.enabled(if: FFmpeg.isAvailable)) struct PacketOracleTests {
    typealias Sample = StreamSamples.Sample

    @Test("The chosen bytes contain all packets of a span, and not many more", arguments: Sample.allCases)
    func containsPackets(sample: Sample) async throws {
        let recorder = RecordedSource(try StreamSamples.shared.bytes(sample))
        let length = Int64(recorder.bytes.count)
        var index = try await parse(sample, recorder.source)
        let (packets, _) = try StreamSamples.shared.packets(sample)
        #expect(index.inconsistency(length: length) == nil)
        // ffprobe estimates the duration of an MP3 file without header by the first frames; the packets are exact.
        let end = packets.map { $0.time + $0.duration }.max() ?? 0
        if let stated = index.duration { #expect(abs(stated - end) < max(0.1, 0.01 * end)) }

        for span in [0..<3.0, end * 0.37..<end * 0.37 + 3, end / 2..<end / 2 + 5, end - 3..<end, 7.9..<8.0] {
            try await index.refine(for: span, recorder.source)
            #expect(index.inconsistency(length: length) == nil)
            let chosen = ByteRangeSet(index.spanRanges(of: span).map { $0.clamped(to: 0..<length) })
            let needed = needed(packets, span, isIndexed: index.container == .matroska)
            let missing = needed.filter { !chosen.contains($0.bytes) }
            #expect(missing.isEmpty, "\(sample) \(span): \(missing.prefix(3))")
            guard let low = needed.map(\.bytes.lowerBound).min(), let high = needed.map(\.bytes.upperBound).max()
            else { continue }
            var minimum = ByteRangeSet(index.indexRanges)
            minimum.insert((index.isReadFromStart ? 0 : low)..<high)
            let bound = minimum.byteCount * 110 / 100 + 2 * index.longestPiece + index.slack
            let chosenCount = chosen.byteCount(in: 0..<length)
            #expect(chosenCount <= bound, "\(sample) \(span): \(chosenCount) > \(bound)")
        }
    }

    @Test("No byte is read twice", arguments: Sample.allCases)
    func readsOnce(sample: Sample) async throws {
        let recorder = RecordedSource(try StreamSamples.shared.bytes(sample))
        _ = try await parse(sample, recorder.source)
        #expect(ByteRangeSet(recorder.reads).byteCount == recorder.reads.byteCount)
        #expect(recorder.reads.count <= 40)
    }

    @Test("A refined span needs few fetches, none of them far behind its end", arguments: Sample.allCases)
    func refinesWithFewFetches(sample: Sample) async throws {
        let bytes = try StreamSamples.shared.bytes(sample)
        let length = Int64(bytes.count)
        for span in [0..<2.0, 6..<7.5, 7..<7.9] {
            let recorder = RecordedSource(bytes)
            var index = try await parse(sample, recorder.source)
            try await index.refine(for: span, recorder.source)
            #expect(recorder.fetches.count <= 3, "\(sample) \(span): \(recorder.fetches)")
            let needed = index.ranges(of: span, length: length)
            let excess = recorder.fetches.reduce(Int64(0)) { $0 + $1.length - needed.byteCount(in: $1) }
            #expect(excess <= 800 << 10, "\(sample) \(span): \(excess) bytes")
            // The span is known from then on, and a repetition needs nothing.
            let before = recorder.fetches.count
            let again = index
            try await index.refine(for: span, recorder.source)
            #expect(index.ranges(of: span, length: length) == again.ranges(of: span, length: length))
            #expect(recorder.fetches.count <= before + 1)
        }
    }

    @Test(
        "The cached beginning of a file without cues is playable after a restart",
        arguments: [Sample.mkvLive, .webmLive])
    func exploresCachedBytes(sample: Sample) async throws {
        let bytes = try StreamSamples.shared.bytes(sample)
        let cached = ByteRangeSet([0..<Int64(bytes.count / 2)])
        let source = MediaSource(length: Int64(bytes.count)) { range throws(MediaError) in
            guard cached.contains(range) else { throw .unreadable(CacheError(.conflict, "The bytes are not cached.")) }
            return Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        }
        var index = try await parse(sample, source)
        try await index.explore(cached, source)
        let (packets, duration) = try StreamSamples.shared.packets(sample)
        let end = packets.last?.time ?? duration
        let playable = try #require(index.playableSpans(cached: cached).first)
        #expect(playable.lowerBound == 0 && (0.3 * end..<0.7 * end).contains(playable.upperBound), "\(playable)")
        // All packets of that time are cached.
        let needed = packets.filter { $0.time + $0.duration < playable.upperBound }
        #expect(needed.allSatisfy { cached.contains($0.bytes) })
    }

    @Test("The format of each sample is detected by its first bytes", arguments: Sample.allCases)
    func detectsFormat(sample: Sample) throws {
        let bytes = try StreamSamples.shared.bytes(sample)
        let expected: MediaFormat =
            switch sample.rawValue.split(separator: ".").last {
            case "mkv", "mka", "webm": .matroska
            case "mp3", "mp2": .mp3
            default: .mpegTS
            }
        #expect(MediaFormat.detect(head: Array(bytes.prefix(4096)), contentType: nil, path: "/x") == expected)
    }

    private func parse(_ sample: Sample, _ source: MediaSource) async throws -> MediaIndex {
        switch sample.rawValue.split(separator: ".").last {
        case "mkv", "mka", "webm": try await MatroskaParser.index(of: source, limits: MediaLimits())
        case "mp3", "mp2": try await MP3Parser.index(of: source, limits: MediaLimits())
        default: try await TransportStreamParser.index(of: source, limits: MediaLimits())
        }
    }

    /// The packets that a player needs for a span: from the last key frame on in a file with an index.
    private func needed(
        _ packets: [StreamSamples.Packet], _ span: Range<Double>, isIndexed: Bool
    ) -> [StreamSamples.Packet] {
        let key = packets.last { $0.isVideo && $0.isKey && $0.time <= span.lowerBound }?.time
        let start = isIndexed ? key ?? span.lowerBound : span.lowerBound
        // ffprobe states times in microseconds, so that the sum of a time and a duration is not exact.
        return packets.filter { $0.time < span.upperBound && $0.time + $0.duration > start + 1e-6 }
    }
}
