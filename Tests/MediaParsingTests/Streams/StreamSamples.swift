import CacheCore
@testable import MediaParsing
import Foundation

/// Small media files, which ffmpeg makes once in a temporary directory.
final class StreamSamples: Sendable {
    enum Sample: String, CaseIterable {
        case mkv = "tail.mkv"
        case mkvFront = "front.mkv"
        case mkvSparse = "sparse.mkv"
        case mkvLive = "live.mkv"
        case mkvTiny = "tiny.mkv"
        case mkvSubtitles = "subtitles.mkv"
        case webm = "video.webm"
        case webmLive = "live.webm"
        case mka = "audio.mka"
        case mp3 = "xing.mp3"
        case mp3Plain = "plain.mp3"
        case mp3VBR = "vbr.mp3"
        case mp3VBRPlain = "vbrplain.mp3"
        case mp3Tagged = "id3.mp3"
        case mp2 = "layer2.mp2"
        case ts = "video.ts"
        case m2ts = "video.m2ts"
        case tsVBR = "vbr.ts"
    }

    static let shared = StreamSamples()

    private let directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("larder-media-\(ProcessInfo.processInfo.processIdentifier)")

    private init() {
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try subtitles.write(to: directory.appendingPathComponent("text.srt"), atomically: true, encoding: .utf8)
            for command in Self.commands { try ffmpeg(command) }
        } catch {
            fatalError("The samples could not be made: \(error)")
        }
    }

    private static let video = "testsrc=size=320x240:rate=25,noise=alls=12:allf=t"
    private static let x264 =
        "-c:v libx264 -preset ultrafast -tune zerolatency -x264-params bframes=2 -b:v 300k -maxrate 400k -bufsize 400k"
    /// Sound whose complexity changes, so that a variable bit rate varies.
    private static let noise = "aevalsrc=(0.05+0.9*gt(mod(t\\,20)\\,10))*(random(0)-0.5):s=44100"
    private static let commands = [
        "-f lavfi -i \(video) -f lavfi -i sine=440 -t 30 \(x264) -g 50 -c:a aac -b:a 64k tail.mkv",
        "-i tail.mkv -c copy -cues_to_front 1 -reserve_index_space 4096 front.mkv",
        "-i tail.mkv -c copy -f matroska -live 1 live.mkv",
        "-i tail.mkv -i text.srt -map 0 -map 1 -c copy -c:s srt subtitles.mkv",
        "-f lavfi -i testsrc=size=64x48:rate=5 -f lavfi -i sine=440 -t 4 -c:v libx264 -g 5 -c:a aac -b:a 8k tiny.mkv",
        "-i tail.mkv -c copy video.ts",
        "-i tail.mkv -c copy -f mpegts -mpegts_m2ts_mode 1 video.m2ts",
        "-f lavfi -i \(video) -f lavfi -i sine=440 -t 40 \(x264) -g 250 -keyint_min 250 -sc_threshold 0 -c:a aac sparse.mkv",
        "-f lavfi -i \(video) -f lavfi -i sine=440 -t 8 -c:v libvpx -deadline realtime -cpu-used 8 -b:v 300k -g 50 -c:a libopus -b:a 48k video.webm",
        "-i video.webm -c copy -f webm -live 1 live.webm",
        "-f lavfi -i sine=440 -t 60 -c:a libopus -b:a 96k audio.mka",
        "-f lavfi -i \(noise) -t 60 -c:a libmp3lame -b:a 128k xing.mp3",
        "-i xing.mp3 -c copy -write_xing 0 -id3v2_version 0 plain.mp3",
        "-f lavfi -i \(noise) -t 60 -c:a libmp3lame -q:a 4 vbr.mp3",
        "-i vbr.mp3 -c copy -write_xing 0 -id3v2_version 0 vbrplain.mp3",
        "-i vbr.mp3 -f lavfi -i testsrc=size=320x240:rate=1:duration=1 -map 0 -map 1 -c:a copy -c:v png -id3v2_version 3 -metadata title=Larder id3.mp3",
        "-f lavfi -i \(noise) -t 20 -c:a mp2 -b:a 128k layer2.mp2",
        "-f lavfi -i \(video),format=yuv420p,eq=brightness=0.6*gt(mod(t\\,40)\\,20):eval=frame -f lavfi -i sine=440 -t 80 -c:v libx264 -preset ultrafast -crf 34 -c:a aac -b:a 64k vbr.ts",
    ]
    private let subtitles = """
        1
        00:00:01,000 --> 00:00:04,000
        First

        2
        00:00:21,500 --> 00:00:25,000
        Second

        """

    private func ffmpeg(_ arguments: String) throws {
        let words = arguments.split(separator: " ").map(String.init)
        try FFmpeg.run("ffmpeg", ["-fflags", "+bitexact"] + words, in: directory)
    }

    func bytes(_ sample: Sample) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: directory.appendingPathComponent(sample.rawValue)))
    }

    /// A packet as ffprobe shows it; times in seconds from the start of the file.
    struct Packet {
        var isVideo: Bool
        var time: Double
        var duration: Double
        var bytes: ByteRange
        var isKey: Bool
    }

    /// The packets of a file and its duration. Subtitles are omitted.
    func packets(_ sample: Sample) throws -> (packets: [Packet], duration: Double) {
        let entries = "packet=codec_type,pts_time,duration_time,size,pos,flags:format=start_time,duration"
        let text = try FFmpeg.run(
            "ffprobe", ["-show_entries", entries, "-of", "csv", sample.rawValue], in: directory)
        let lines = text.split(separator: "\n").map { $0.split(separator: ",", omittingEmptySubsequences: false) }
        let format = lines.first { $0[0] == "format" }.map { $0.compactMap { Double($0) } } ?? []
        let isStream = sample.rawValue.hasSuffix("ts")
        let isSound = sample.rawValue.contains(".mp")
        let start = isSound ? 0 : format.first ?? 0
        let packets = lines.compactMap { line -> Packet? in
            guard line[0] == "packet", line.count >= 7, line[1] != "subtitle", let time = Double(line[2]),
                let size = Int64(line[4]), let position = Int64(line[5])
            else { return nil }
            // Packets of a transport stream have a header of 4 bytes for 184 bytes of content.
            let length = isStream ? size * 188 / 184 : size
            return Packet(
                isVideo: line[1] == "video", time: time - start, duration: Double(line[3]) ?? 0,
                bytes: ByteRange(offset: position, length: length), isKey: line[6].hasPrefix("K"))
        }
        return (packets, format.count > 1 ? format[1] : 0)
    }
}

extension MediaIndex {
    /// The length of the longest piece.
    var longestPiece: Int64 { tracks.flatMap(\.pieces).map(\.bytes.length).max() ?? 0 }

    /// The first contradiction of pieces, times and ranges, or to a file of `length` bytes; nil: there is none.
    func inconsistency(length: Int64) -> String? {
        let file = 0..<length
        if let range = indexRanges.first(where: { !file.contains($0) }) { return "index at \(range)" }
        if let duration, !duration.isFinite || duration <= 0 { return "duration \(duration)" }
        for track in tracks {
            for (number, piece) in track.pieces.enumerated() {
                if !file.contains(piece.bytes) { return "piece \(number) of \(track.id) at \(piece.bytes)" }
                // Only the end of a Matroska file without Duration (RFC 9559 §5.1.2.10) and cues can be unknown.
                let isOpen = number == track.pieces.count - 1 && duration == nil && layout == .none
                let isFinite = piece.time.upperBound.isFinite || isOpen && container == .matroska
                if piece.time.lowerBound < 0 || !isFinite { return "piece \(number) of \(track.id): \(piece.time)" }
            }
            for (one, next) in zip(track.pieces, track.pieces.dropFirst())
            where one.bytes.lowerBound > next.bytes.lowerBound {
                return "pieces of \(track.id) at \(one.bytes) and \(next.bytes)"
            }
            for (one, next) in zip(track.syncTimes, track.syncTimes.dropFirst()) where one >= next {
                return "sync times \(one) and \(next) of \(track.id)"
            }
        }
        return nil
    }
}
