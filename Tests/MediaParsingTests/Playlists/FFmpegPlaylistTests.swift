import CacheCore
import Foundation
import MediaParsing
import Testing

/// Playlists and manifests that ffmpeg writes. Each file and byte range that they name must exist.
@Suite(.enabled(if: FFmpeg.isAvailable))
struct FFmpegPlaylistTests {
    @Test("HLS with transport stream segments")
    func transportStream() throws {
        let output = try FFmpegOutput("-c copy -f hls -hls_time 2 -hls_list_size 0 -hls_playlist_type vod a.m3u8")
        let playlist = try output.hls("a.m3u8")
        #expect(!playlist.isLive)
        try output.check(playlist, segmentCount: 7)
    }

    @Test("HLS with fragmented MP4 segments")
    func fragmented() throws {
        let output = try FFmpegOutput("-c copy -f hls -hls_time 2 -hls_list_size 0 -hls_segment_type fmp4 a.m3u8")
        let playlist = try output.hls("a.m3u8")
        try output.check(playlist, segmentCount: 7)
        #expect(playlist.renditions[0].segments.allSatisfy { $0.initialization?.uri == "init.mp4" })
    }

    @Test("HLS with byte ranges of a single file, which cover it", arguments: ["fmp4", "mpegts"])
    func singleFile(type: String) throws {
        let output = try FFmpegOutput(
            "-c copy -f hls -hls_time 2 -hls_list_size 0 -hls_segment_type \(type) -hls_flags single_file a.m3u8")
        let playlist = try output.hls("a.m3u8")
        try output.check(playlist, segmentCount: 7)
        let resources = playlist.resources(of: 0..<100, in: playlist.renditions[0], keys: true)
        #expect(Set(resources.map(\.uri)).count == 1)
        let end = try #require(resources.last?.range?.upperBound)
        #expect(try end == output.size(of: resources[0].uri))
        #expect(resources.compactMap(\.range?.length).reduce(0, +) == end)
    }

    @Test("HLS with AES-128 keys")
    func keys() throws {
        let output = try FFmpegOutput(
            "-c copy -f hls -hls_time 2 -hls_list_size 0 -hls_key_info_file key.info a.m3u8",
            files: ["key.info": Data("the.key\nthe.key\n".utf8), "the.key": Data(0..<16)])
        let playlist = try output.hls("a.m3u8")
        try output.check(playlist, segmentCount: 7)
        #expect(playlist.renditions[0].segments.allSatisfy { $0.key?.uri == "the.key" })
        #expect(
            playlist.resources(of: 3..<5, in: playlist.renditions[0], keys: true).map(\.uri) == [
                "the.key", "a1.ts", "a2.ts",
            ])
    }

    @Test("HLS multivariant playlist with two variants and an audio group")
    func multivariant() throws {
        let output = try FFmpegOutput(
            """
            -map 0:v -map 0:v -map 0:a -c copy -b:v:0 1000k -b:v:1 300k -b:a 64k -f hls -hls_time 2 -hls_list_size 0 \
            -hls_segment_type fmp4 -master_pl_name master.m3u8 -var_stream_map \
            v:0,agroup:aud,name:v0|v:1,agroup:aud,name:v1|a:0,agroup:aud,default:yes,name:a0 %v.m3u8
            """)
        let playlist = try output.hls("master.m3u8")
        #expect(playlist.format == .hlsMultivariant)
        let selected = playlist.selected(.lowest)
        #expect(selected.map(\.playlist) == ["v1.m3u8", "a0.m3u8"])
        #expect(selected.map(\.kind) == [.video, .audio])
        for uri in playlist.selected(.all).compactMap(\.playlist) {
            try output.check(try output.hls(uri), segmentCount: 7)
        }
    }

    @Test("DASH with a SegmentTemplate, by timeline and by duration", arguments: [0, 1])
    func template(timeline: Int) throws {
        let output = try FFmpegOutput("-c copy -f dash -seg_duration 2 -use_timeline \(timeline) -use_template 1 m.mpd")
        let playlist = try output.dash("m.mpd")
        #expect(playlist.renditions.map(\.kind) == [.video, .audio])
        #expect(playlist.selected(.lowest).count == 2)
        try output.check(playlist, segmentCount: 7)
    }

    @Test("DASH with a SegmentList of files and of ranges of single files", arguments: [0, 1])
    func list(singleFile: Int) throws {
        let output = try FFmpegOutput(
            "-c copy -f dash -seg_duration 2 -use_timeline 0 -use_template 0 -single_file \(singleFile) m.mpd")
        let playlist = try output.dash("m.mpd")
        try output.check(playlist, segmentCount: 7)
        let ranges = playlist.renditions[0].segments.compactMap(\.resource.range)
        #expect(ranges.count == (singleFile == 1 ? 7 : 0))
    }

    @Test("DASH with a SegmentList and a SegmentTimeline")
    func listTimeline() throws {
        let output = try FFmpegOutput("-c copy -f dash -seg_duration 2 -use_timeline 1 -use_template 0 m.mpd")
        try output.check(try output.dash("m.mpd"), segmentCount: 7)
    }
}

/// A temporary directory with the output of one run of ffmpeg; deleted with the object.
final class FFmpegOutput {
    /// The duration of the source in seconds.
    static let duration = 12.4

    /// A source with key frames every 2 s.
    private static let source = Result {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-source-\(UUID()).mp4")
        let options = """
            -f lavfi -i testsrc2=size=160x90:rate=25 -f lavfi -i sine=440 \
            -t \(duration) -c:v libx264 -preset ultrafast -g 50 -c:a aac
            """
        try FFmpeg.run("ffmpeg", options.split(separator: " ").map(String.init) + [path.path])
        return path
    }

    private let directory: URL

    /// Runs ffmpeg with the source as input. `arguments` are separated by blanks; `|` stands for a blank in one.
    init(_ arguments: String, files: [String: Data] = [:]) throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-playlists-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        for (name, content) in files { try content.write(to: directory.appendingPathComponent(name)) }
        let words = arguments.split(separator: " ").map { $0.replacingOccurrences(of: "|", with: " ") }
        try FFmpeg.run("ffmpeg", ["-i", try Self.source.get().path] + words, in: directory)
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    func hls(_ name: String) throws -> MediaPlaylist {
        try HLSParser.playlist(try bytes(name), limits: MediaLimits())
    }

    func dash(_ name: String) throws -> MediaPlaylist {
        try DASHParser.manifest(try bytes(name), limits: MediaLimits())
    }

    func size(of name: String) throws -> Int64 {
        let path = directory.appendingPathComponent(name).path
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int64
        return try #require(size)
    }

    private func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: directory.appendingPathComponent(name)))
    }

    /// Checks that all resources exist, and that the segments are contiguous and as long as the source.
    func check(_ playlist: MediaPlaylist, segmentCount: Int) throws {
        let duration = try #require(playlist.duration)
        #expect(abs(duration - Self.duration) < 0.1)
        for rendition in playlist.renditions {
            #expect(rendition.segments.count == segmentCount)
            for resource in playlist.resources(of: 0..<1000, in: rendition, keys: true) {
                let size = try size(of: resource.uri)
                #expect(size > 0)
                if let range = resource.range { #expect(range.lowerBound >= 0 && range.upperBound <= size) }
            }
            for (left, right) in zip(rendition.segments, rendition.segments.dropFirst()) {
                #expect(abs(left.time.upperBound - right.time.lowerBound) < 1e-6)
            }
            let total = rendition.segments.reduce(0) { $0 + $1.time.upperBound - $1.time.lowerBound }
            #expect(abs(total - Self.duration) < 0.1)
        }
    }
}
