import CacheCore
import Testing

@Suite struct MediaTypeTests {
    private static let types: [(header: String?, path: String, type: String?, from: Generation.TypeSource)] = [
        ("video/mp4", "a.mp3", "video/mp4", .header),
        (nil, "a.mp3", "audio/mpeg", .extension),
        ("application/octet-stream", "films/a.MP4", "video/mp4", .extension),
        ("binary/octet-stream; charset=x", "a.m4a", "audio/mp4", .extension),
        ("Application/Octet-Stream", "http://h/a.mkv?x=.mp3", "video/x-matroska", .extension),
        ("", "a.m3u8", "application/vnd.apple.mpegurl", .extension),
        ("application/octet-stream", "a.unknown", "application/octet-stream", .header),
        (nil, "a", nil, .header), (nil, "a.b/c", nil, .header), (nil, ".mp4", nil, .header),
        (nil, "a.mp4/", nil, .header), (nil, "a/.mp4", nil, .header), (nil, "a.mp4?b=c.d/e", "video/mp4", .extension),
        (nil, "a.mp4a.mp4a.mp4a.mp4", "video/mp4", .extension), (nil, "a.sixteenletterss", nil, .header),
        (String(repeating: "v", count: 256), "a.mp4", "video/mp4", .extension),
        (nil, "", nil, .header), (nil, "a.", nil, .header),
        (nil, "a.mpd", "application/dash+xml", .extension), (nil, "a.m4s", "video/iso.segment", .extension),
        (nil, "a.vtt#t=1", "text/vtt", .extension), (nil, "a.opus", "audio/ogg", .extension),
        (nil, "a.ts", "video/mp2t", .extension), (nil, "a.tar.webm", "video/webm", .extension),
    ]

    @Test("A missing or generic type is derived from the extension")
    func takesTheExtensionWhereTheHeaderSaysNothing() {
        for row in Self.types {
            let found = MediaType.effectiveType(header: row.header, path: row.path)
            #expect(found.type == row.type, "\(row)")
            #expect(found.from == row.from, "\(row)")
        }
    }

    private static let identifiers: [(String?, String, String?)] = [
        ("audio/mpeg", "a.mp3", "public.mp3"), ("audio/mpeg", "a", "public.mp3"), ("audio/mp3", "a", "public.mp3"),
        ("video/mp4", "a.mp4", "public.mpeg-4"), ("Video/MP4; codecs=\"avc1\"", "stream", "public.mpeg-4"),
        ("video/quicktime", "a.mov", "com.apple.quicktime-movie"), ("audio/mp4", "a.m4a", "com.apple.m4a-audio"),
        ("audio/mp4", "a.mp4", "public.mpeg-4-audio"), ("audio/x-m4a", "a.m4a", "com.apple.m4a-audio"),
        ("audio/x-wav", "a", "com.microsoft.waveform-audio"), ("audio/flac", "a.flac", "org.xiph.flac"),
        (nil, "a.aac", "public.aac-audio"), (nil, "a.m4v", "com.apple.m4v-video"), ("video/x-matroska", "a.mkv", nil),
        ("text/html", "a.mp4", nil), (nil, "a", nil), ("image/jpeg", "a.png", "public.jpeg"),
        ("application/x-download", "a.mp3", "public.mp3"), ("application/force-download", "a.mp4", "public.mpeg-4"),
        ("multipart/form-data; boundary=x", "a.mp3", "public.mp3"), ("text/plain", "a.m4a", "com.apple.m4a-audio"),
    ]

    @Test("Gives the uniform type identifier", arguments: identifiers)
    func namesTheIdentifierPlayersKnow(type: String?, path: String, identifier: String?) {
        #expect(MediaType.uniformTypeIdentifier(type: type, path: path) == identifier)
    }
}
