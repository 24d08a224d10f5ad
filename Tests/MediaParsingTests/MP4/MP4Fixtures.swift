import CacheCore
@testable import MediaParsing
import Foundation

/// A packet as ffprobe prints it.
struct ProbedPacket: Hashable {
    var stream: Int
    var time: Double
    var duration: Double
    var bytes: ByteRange
    var isKey: Bool
    var end: Double { time + max(duration, 0.001) }
}

/// Media files that ffmpeg generates, and the packets that ffprobe finds in them.
enum GeneratedMedia {
    /// A file of 12 s: H.264 with B-frames at 25 frames per second and a key frame each 48 frames, and AAC.
    private static let original = Result { try generate("original.mp4", encoding: ["-bf", "2"]) }
    /// The same without B-frames.
    private static let originalWithoutReordering = Result { try generate("plain.mp4", encoding: ["-bf", "0"]) }

    private static func generate(_ name: String, encoding: [String]) throws -> URL {
        let file = try directory().appending(path: name)
        try FFmpeg.run(
            "ffmpeg",
            ["-f", "lavfi", "-i", "testsrc=size=192x108:rate=25", "-f", "lavfi", "-i", "sine=frequency=440"]
                + ["-t", "12", "-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-g", "48"]
                + ["-keyint_min", "48", "-sc_threshold", "0", "-b:v", "150k", "-pix_fmt", "yuv420p"] + encoding
                + ["-c:a", "aac", "-b:a", "64k", file.path])
        return file
    }

    private static let folder = Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "larder-mp4-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        atexit { GeneratedMedia.removeFolder() }
        return folder
    }

    static func directory() throws -> URL { try folder.get() }

    private static func removeFolder() {
        if case .success(let folder) = folder { try? FileManager.default.removeItem(at: folder) }
    }

    /// Remuxes the original with `options`, which precede the name of the output file.
    static func remux(
        _ name: String, _ options: [String], inputOptions: [String] = [], reordered: Bool = true
    ) throws -> URL {
        let input = try (reordered ? original : originalWithoutReordering).get()
        let file = try directory().appending(path: "\(UUID().uuidString)-\(name)")
        try FFmpeg.run("ffmpeg", inputOptions + ["-i", input.path, "-c", "copy"] + options + [file.path])
        return file
    }

    static func bytes(_ file: URL) throws -> [UInt8] { [UInt8](try Data(contentsOf: file)) }

    static func packets(_ file: URL) throws -> [ProbedPacket] {
        let entries = "packet=stream_index,pts_time,duration_time,size,pos,flags"
        let text = try FFmpeg.run("ffprobe", ["-show_entries", entries, "-of", "compact=p=0", file.path])
        return text.split(separator: "\n").compactMap { line in
            let fields = Dictionary(
                line.split(separator: "|").compactMap { field -> (Substring, Substring)? in
                    let parts = field.split(separator: "=")
                    return parts.count == 2 ? (parts[0], parts[1]) : nil
                }, uniquingKeysWith: { first, _ in first })
            guard let stream = fields["stream_index"].flatMap({ Int($0) }),
                let time = fields["pts_time"].flatMap({ Double($0) }),
                let size = fields["size"].flatMap({ Int64($0) }), let position = fields["pos"].flatMap({ Int64($0) })
            else { return nil }
            return ProbedPacket(
                stream: stream, time: time, duration: fields["duration_time"].flatMap { Double($0) } ?? 0.02,
                bytes: ByteRange(offset: position, length: size), isKey: fields["flags"]?.contains("K") ?? false)
        }
    }
}

extension MediaIndex {
    /// ``spanRanges(of:kinds:)`` as a set, cut off at `length`.
    func cutSpanRanges(
        of time: Range<Double>, kinds: Set<TrackKind>? = nil, length: Int64? = nil
    ) -> ByteRangeSet {
        ByteRangeSet(spanRanges(of: time, kinds: kinds).map { $0.clamped(to: 0..<(length ?? .max)) })
    }
}
