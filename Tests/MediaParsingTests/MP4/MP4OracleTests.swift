import Foundation
import TestMedia
import Testing
import CacheCore
@testable import MediaParsing

/// Compares the index with the packets that ffprobe prints.
@Suite("The ranges of an MP4 file contain the packets that ffprobe lists", .enabled(if: FFmpeg.isAvailable))
struct MP4OracleTests {
    struct Variant: CustomTestStringConvertible, Sendable {
        var name: String
        var options: [String]
        var inputOptions: [String] = []
        var reordered = true
        var layout: MediaIndex.Layout
        /// The largest number of reads that the parser may need.
        var reads: Int
        var testDescription: String { name }
        var stem: String { String(name.prefix { $0 != "." }) }
    }

    static let variants: [Variant] = [
        Variant(name: "tail.mp4", options: [], layout: .tailIndex, reads: 2),
        Variant(name: "faststart.mp4", options: ["-movflags", "faststart"], layout: .headIndex, reads: 2),
        Variant(name: "plain.mp4", options: [], reordered: false, layout: .tailIndex, reads: 2),
        Variant(name: "noedits.mp4", options: ["-use_editlist", "0"], layout: .tailIndex, reads: 2),
        Variant(
            name: "negative-offsets.mp4", options: ["-movflags", "negative_cts_offsets"], layout: .tailIndex, reads: 2),
        Variant(name: "movie.mov", options: ["-movflags", "faststart"], layout: .headIndex, reads: 2),
        Variant(name: "sound.m4a", options: ["-vn"], layout: .tailIndex, reads: 2),
        Variant(name: "video.mp4", options: ["-an"], layout: .tailIndex, reads: 2),
        Variant(name: "cut.mp4", options: [], inputOptions: ["-ss", "3.5"], layout: .tailIndex, reads: 2),
        Variant(name: "cut-exact.mp4", options: ["-ss", "2.513"], layout: .tailIndex, reads: 2),
        Variant(name: "delayed.mp4", options: [], inputOptions: ["-itsoffset", "1.5"], layout: .tailIndex, reads: 2),
        Variant(
            name: "sparse.mp4", options: ["-max_interleave_delta", "0", "-movflags", "faststart"], layout: .headIndex,
            reads: 2),
        Variant(name: "frag.mp4", options: ["-movflags", "frag_keyframe"], layout: .fragmented, reads: 9),
        Variant(
            name: "frag-empty.mp4", options: ["-movflags", "frag_keyframe+empty_moov"], layout: .fragmented, reads: 9),
        Variant(
            name: "frag-base.mp4", options: ["-movflags", "frag_keyframe+empty_moov+default_base_moof"],
            layout: .fragmented, reads: 9),
        Variant(
            name: "frag-plain.mp4", options: ["-movflags", "frag_keyframe+empty_moov"], reordered: false,
            layout: .fragmented, reads: 9),
        Variant(
            // Without default_base_moof, ffmpeg 5.1 writes wrong data offsets beside a global index.
            name: "frag-sidx.mp4", options: ["-movflags", "frag_keyframe+default_base_moof+empty_moov+global_sidx"],
            layout: .fragmented, reads: 3),
        Variant(
            name: "frag-walk.mp4", options: ["-movflags", "frag_keyframe+empty_moov+skip_trailer"],
            layout: .fragmented, reads: 12),
        Variant(name: "frag-dash.mp4", options: ["-movflags", "frag_keyframe+dash"], layout: .fragmented, reads: 12),
        Variant(
            name: "frag-time.mp4", options: ["-movflags", "empty_moov+skip_trailer", "-frag_duration", "700000"],
            layout: .fragmented, reads: 24),
    ]

    @Test("Spans at the head, in the middle and at the end", arguments: variants)
    func spans(_ variant: Variant) async throws {
        let file = try GeneratedMedia.remux(
            variant.name, variant.options, inputOptions: variant.inputOptions, reordered: variant.reordered)
        defer { try? FileManager.default.removeItem(at: file) }
        try await Self.check(variant, file)
    }

    @Test("Tracks that are not interleaved")
    func separateTracks() async throws {
        let file = try GeneratedMedia.remux(
            "separate.mov", ["-chunk_duration", "60000000", "-max_interleave_delta", "0", "-movflags", "faststart"])
        try await Self.check(Variant(name: "separate.mov", options: [], layout: .headIndex, reads: 2), file)
    }

    @Test("64-bit chunk offsets behind the media data")
    func wideOffsets() async throws {
        let file = try GeneratedMedia.remux("wide.mp4", [])
        let bytes = try GeneratedMedia.bytes(file)
        let start = try #require(MP4Parser.mediaDataBeforeIndex(head: Array(bytes.prefix(64))))
        let movie = Self.widened(bytes[Int(start)...])
        try Data(Array(bytes[..<Int(start)]) + movie).write(to: file)
        #expect(movie.count > bytes.count - Int(start))
        try await Self.check(Variant(name: "wide.mp4", options: [], layout: .tailIndex, reads: 2), file)
    }

    /// Replaces each `stco` in a sequence of boxes by `co64`.
    private static func widened(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = bytes
        while rest.count >= 8 {
            let size = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            let type = String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self)
            let box = rest.prefix(size)
            rest = rest.dropFirst(size)
            switch type {
            case "moov", "trak", "mdia", "minf", "stbl":
                let payload = widened(box.dropFirst(8))
                result += BoxBuilder.box(type, payload)
            case "stco":
                let offsets = Array(box.dropFirst(16))
                let wide = stride(from: 0, to: offsets.count, by: 4).flatMap { [0, 0, 0, 0] + offsets[$0..<$0 + 4] }
                result += BoxBuilder.box("co64", Array(box.dropFirst(8).prefix(8)), wide)
            default: result += box
            }
        }
        return result
    }

    @Test(
        "ffmpeg decodes a span from its ranges alone",
        arguments: variants.filter {
            ["tail", "faststart", "sound", "cut", "plain", "frag-sidx", "frag-walk"].contains($0.stem)
        })
    func decoding(_ variant: Variant) async throws {
        let file = try GeneratedMedia.remux(
            variant.name, variant.options, inputOptions: variant.inputOptions, reordered: variant.reordered)
        let bytes = try GeneratedMedia.bytes(file)
        let index = try await MP4Parser.index(of: RecordedSource(bytes).source)
        for start in [0.0, 2.6, 6.1] {
            let needed = index.cutSpanRanges(of: start..<start + 1.5, length: Int64(bytes.count))
            var sparse = [UInt8](repeating: 0, count: bytes.count)
            for run in needed.runs {
                let positions = Int(run.lowerBound)..<Int(run.upperBound)
                sparse.replaceSubrange(positions, with: bytes[positions])
            }
            let copy = try GeneratedMedia.directory().appending(path: "sparse-\(UUID().uuidString)-\(variant.name)")
            try Data(sparse).write(to: copy)
            let (expected, actual) = (try Self.frames(file, start), try Self.frames(copy, start))
            #expect(expected == actual, "\(variant.name) at \(start): \(expected.count) and \(actual.count) frames")
            #expect(expected.count > 50)
        }
    }

    /// The checksums of the decoded frames of 1.5 s.
    private static func frames(_ file: URL, _ start: Double) throws -> [Substring] {
        let text = try FFmpeg.run(
            "ffmpeg", ["-ss", "\(start)", "-t", "1.5", "-i", file.path, "-f", "framemd5", "-"])
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") }
    }

    @Test("Uncompressed sound of QuickTime")
    func pcm() async throws {
        let file = try GeneratedMedia.directory().appending(path: "pcm.mov")
        try FFmpeg.run(
            "ffmpeg", ["-f", "lavfi", "-i", "sine=frequency=440", "-t", "6", "-c:a", "pcm_s16le", file.path])
        try await Self.check(Variant(name: "pcm.mov", options: [], layout: .tailIndex, reads: 2), file)
    }

    static func check(_ variant: Variant, _ file: URL) async throws {
        let packets = try GeneratedMedia.packets(file)
        let recorded = RecordedSource(try GeneratedMedia.bytes(file))
        let index = try await MP4Parser.index(of: recorded.source)
        let length = Int64(recorded.bytes.count)

        #expect(index.layout == variant.layout)
        #expect(recorded.reads.count <= variant.reads, "\(recorded.reads)")
        #expect(ByteRangeSet(recorded.reads).byteCount == recorded.reads.byteCount, "bytes were read twice")
        let end = try #require(packets.map(\.end).max())
        #expect(abs((index.duration ?? 0) - end) < 0.2, "duration \(index.duration ?? 0), packets end at \(end)")

        for start in [0, 0.3, 1.97, end / 2 - 0.7, end / 2, end - 2.1] {
            let span = start..<min(end, start + 2)
            let needed = Self.needed(packets, span)
            let ranges = index.cutSpanRanges(of: span, length: length)
            for packet in needed {
                let isContained = ranges.contains(packet.bytes)
                #expect(isContained, "\(variant.name): \(span) lacks \(packet)")
                if !isContained { break }
            }
            var exact = index
            exact.slack = 0
            exact.indexRanges = []
            let selected = exact.cutSpanRanges(of: span, length: length).byteCount
            let minimum = needed.map(\.bytes).byteCount
            // Fragments are selected as a whole at both ends; other pieces last about half a second.
            let largest = index.tracks.flatMap(\.pieces).map(\.bytes.length).max() ?? 0
            let tolerance =
                index.layout == .fragmented || variant.name == "pcm.mov" ? 2 * largest + (16 << 10) : 16 << 10
            #expect(
                Double(selected) <= 1.1 * Double(minimum) + Double(tolerance),
                "\(variant.name): \(span) selects \(selected) bytes for \(minimum)")
        }
    }

    /// The packets that intersect the span, and the packets from the preceding key frame on; the other streams from the
    /// time of the key frame of the video.
    static func needed(_ packets: [ProbedPacket], _ span: Range<Double>) -> [ProbedPacket] {
        var start = span.lowerBound
        var needed: [ProbedPacket] = []
        let streams = Dictionary(grouping: packets, by: \.stream)
        let video = streams.values.first { stream in stream.contains { !$0.isKey } }
        if let video {
            let key = video.lastIndex { $0.isKey && $0.time <= span.lowerBound + 1e-6 } ?? 0
            let last = video.lastIndex { $0.time < span.upperBound - 1e-5 && $0.end > span.lowerBound + 1e-5 } ?? key
            needed += video[key...max(key, last)]
            start = min(start, video[key].time)
        }
        for (stream, packets) in streams where stream != video?.first?.stream {
            needed += packets.filter { $0.time < span.upperBound - 1e-5 && $0.end > start + 1e-5 }
        }
        return needed
    }
}
