import CacheCore
import MediaParsing
import Testing

@Suite struct MediaFormatTests {
    @Test(
        "Playlists and MP4 are detected by their first bytes",
        arguments: [
            ("#EXTM3U\n", MediaFormat.hls), ("\u{FEFF}#EXTM3U\n", .hls),
            ("<?xml version=\"1.0\"?>\n<!-- x -->\n<MPD xmlns=\"x\">", .dash),
            ("\0\0\0\u{18}ftypisom", .mp4), ("\0\0\0\u{8}moof", .mp4),
        ])
    func detectsByFirstBytes(head: String, format: MediaFormat) {
        #expect(MediaFormat.detect(head: Array(head.utf8), contentType: "text/plain", path: "/a.txt") == format)
    }

    @Test("Without a known beginning the media type decides, then the extension")
    func detectsByNames() {
        let head = Array("unknown".utf8)
        #expect(MediaFormat.detect(head: head, contentType: "Video/MP2T; x=1", path: "/a.mp4") == .mpegTS)
        #expect(MediaFormat.detect(head: head, contentType: "text/plain", path: "/a.b/c.MKV?x=.mp3") == .matroska)
        #expect(MediaFormat.detect(head: [], contentType: nil, path: "/a.mpd") == .dash)
        #expect(MediaFormat.detect(head: head, contentType: nil, path: "/mp4") == nil)
    }

    @Test("A transport stream with an ID3 tag is not MP3")
    func detectsTaggedTransportStreams() throws {
        let tag = Array("ID3".utf8) + [4, 0, 0, 0, 0, 0, 20] + [UInt8](repeating: 0, count: 20)
        let packets = try StreamSamples.shared.bytes(.ts).prefix(2000)
        #expect(MediaFormat.detect(head: tag + packets, contentType: "audio/mpeg", path: "/a.mp3") == .mpegTS)
        #expect(MediaFormat.detect(head: tag, contentType: nil, path: "/a.ts") == .mpegTS)
        #expect(MediaFormat.detect(head: tag, contentType: nil, path: "/a") == .mp3)
    }
}
