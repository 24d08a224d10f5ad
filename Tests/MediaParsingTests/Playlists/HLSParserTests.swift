import CacheCore
import MediaParsing
import Testing

/// HLS playlists by hand: the examples of RFC 8216 §8 and forms of common packagers.
struct HLSParserTests {
    typealias Resource = MediaPlaylist.Resource

    @Test("RFC 8216 §8.1: a simple media playlist")
    func simple() throws {
        let playlist = try hls(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:10
            #EXT-X-VERSION:3
            #EXTINF:9.009,
            http://media.example.com/first.ts
            #EXTINF:9.009,
            http://media.example.com/second.ts
            #EXTINF:3.003,
            http://media.example.com/third.ts
            #EXT-X-ENDLIST
            """)

        #expect(playlist.format == .hlsMedia)
        #expect(!playlist.isLive)
        #expect(abs((playlist.duration ?? 0) - 21.021) < 1e-9)
        let rendition = try #require(playlist.renditions.first)
        #expect(playlist.renditions.count == 1)
        #expect(
            rendition.segments.map(\.resource.uri).map { $0.split(separator: "/").last } == [
                "first.ts", "second.ts", "third.ts",
            ])
        #expect(rendition.segments[1].time.lowerBound == 9.009)
        #expect(rendition.segments.allSatisfy { $0.initialization == nil && $0.key == nil })
    }

    @Test("RFC 8216 §8.2 and §8.3: a live playlist with keys")
    func liveWithKeys() throws {
        let playlist = try hls(
            """
            #EXTM3U
            #EXT-X-VERSION:3
            #EXT-X-MEDIA-SEQUENCE:7794
            #EXT-X-TARGETDURATION:15

            #EXT-X-KEY:METHOD=AES-128,URI="https://priv.example.com/key.php?r=52"

            #EXTINF:2.833,
            http://media.example.com/fileSequence52-A.ts
            #EXTINF:15.0,
            http://media.example.com/fileSequence52-B.ts

            #EXT-X-KEY:METHOD=AES-128,URI="https://priv.example.com/key.php?r=53"

            #EXTINF:15.0,
            http://media.example.com/fileSequence53-A.ts
            """)

        #expect(playlist.isLive)
        #expect(playlist.duration == nil)
        let keys = playlist.renditions[0].segments.map(\.key?.uri)
        #expect(keys == ["52", "52", "53"].map { "https://priv.example.com/key.php?r=\($0)" })
    }

    @Test("RFC 8216 §8.4 to §8.6: multivariant playlists")
    func multivariant() throws {
        let playlist = try hls(
            """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="English",DEFAULT=YES,AUTOSELECT=YES,LANGUAGE="en",\
            URI="main/english-audio.m3u8"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="Deutsch",DEFAULT=NO,AUTOSELECT=YES,LANGUAGE="de",\
            URI="main/german-audio.m3u8"
            #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC1",INSTREAM-ID="CC1"
            #EXT-X-STREAM-INF:BANDWIDTH=1280000,AVERAGE-BANDWIDTH=1000000,CODECS="avc1.4d401e,mp4a.40.2",AUDIO="aac"
            low/video-only.m3u8
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=86000,URI="low/iframe.m3u8"
            #EXT-X-SESSION-KEY:METHOD=AES-128,URI="k"
            #EXT-X-STREAM-INF:BANDWIDTH=2560000,CODECS="avc1.4d401f, mp4a.40.2"
            mid/muxed.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=65000,CODECS="mp4a.40.5"
            audio-only.m3u8
            """)

        #expect(playlist.format == .hlsMultivariant)
        #expect(!playlist.isLive)
        #expect(
            playlist.renditions.map(\.playlist) == [
                "main/english-audio.m3u8", "main/german-audio.m3u8", "low/video-only.m3u8", "mid/muxed.m3u8",
                "audio-only.m3u8",
            ])
        #expect(playlist.renditions.map(\.id) == ["English", "Deutsch", "", "", ""])
        #expect(playlist.renditions.map(\.kind) == [.audio, .audio, .video, .other, .audio])
        #expect(playlist.renditions.map(\.bitsPerSecond) == [nil, nil, 1_280_000, 2_560_000, 65000])
        #expect(playlist.renditions.map(\.group) == ["aac", "aac", "", "", ""])
        #expect(playlist.renditions.map(\.isDefault) == [true, false, false, false, false])
        #expect(playlist.renditions[2].groups == ["aac"])
        #expect(playlist.selected(.lowest).map(\.playlist) == ["low/video-only.m3u8", "main/english-audio.m3u8"])
        #expect(playlist.selected(.maxBitsPerSecond(3_000_000)).map(\.playlist) == ["mid/muxed.m3u8"])
    }

    @Test("RFC 8216 §8.7: variants with video groups; a rendition without a URI is part of the variant")
    func videoGroups() throws {
        let playlist = try hls(
            """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="low",NAME="Main",DEFAULT=YES
            #EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="low",NAME="Centerfield",DEFAULT=NO,URI="low/centerfield/video.m3u8"
            #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="low",NAME="English",URI="low/en.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS="avc1,mp4a",VIDEO="low",SUBTITLES="low"
            low/main/video.m3u8
            """)

        #expect(playlist.selected(.first).map(\.playlist) == ["low/main/video.m3u8", "low/en.m3u8"])
        #expect(playlist.selected(.all).count == 3)
    }

    @Test("Byte ranges without an offset continue the previous range of the same URI")
    func byteRanges() throws {
        let playlist = try hls(
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:4
            #EXT-X-MAP:URI="main.mp4",BYTERANGE="719@0"
            #EXTINF:4,
            #EXT-X-BYTERANGE:1000@719
            main.mp4
            #EXTINF:4,
            #EXT-X-BYTERANGE:500
            main.mp4
            #EXT-X-MAP:URI="other.mp4",BYTERANGE="20"
            #EXT-X-BYTERANGE:10@0
            #EXTINF:4,
            other.mp4
            #EXTINF:4,
            whole.mp4
            #EXT-X-ENDLIST
            """)

        let segments = playlist.renditions[0].segments
        #expect(segments.map(\.resource.range) == [719..<1719, 1719..<2219, 0..<10, nil])
        #expect(segments[0].initialization == Resource(uri: "main.mp4", range: 0..<719))
        #expect(segments[3].initialization == Resource(uri: "other.mp4", range: 0..<20))
    }

    @Test("A byte range without an offset that continues nothing begins at 0")
    func detachedByteRange() throws {
        let first = try hls("#EXTM3U\n#EXTINF:1,\n#EXT-X-BYTERANGE:5\na\n")
        #expect(first.renditions[0].segments.map(\.resource.range) == [0..<5] && first.warnings.isEmpty)
        let other = try hls("#EXTM3U\n#EXTINF:1,\n#EXT-X-BYTERANGE:5@9\na\n#EXTINF:1,\n#EXT-X-BYTERANGE:5\nb\n")
        #expect(other.renditions[0].segments.map(\.resource.range) == [9..<14, 0..<5])
    }

    @Test("Only identity keys with an http reference are fetched")
    func keyFormats() throws {
        let playlist = try hls(
            """
            #EXTM3U
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://fairplay",KEYFORMAT="com.apple.streamingkeydelivery"
            #EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,AAAA",KEYFORMAT="urn:uuid:edef8ba9"
            #EXTINF:1,
            none.ts
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="identity.key",IV=0x00000000000000000000000000000001
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://fairplay",KEYFORMAT="com.apple.streamingkeydelivery"
            #EXTINF:1,
            both.ts
            #EXT-X-KEY:METHOD=NONE
            #EXTINF:1,
            clear.ts
            #EXT-X-KEY:METHOD=AES-128,URI="data:,0123456789abcdef"
            #EXTINF:1,
            inline.ts
            """)

        #expect(playlist.renditions[0].segments.map(\.key?.uri) == [nil, "identity.key", nil, nil])
    }

    @Test("Gaps are skipped but take time")
    func gaps() throws {
        let playlist = try hls(
            "#EXTM3U\n#EXTINF:2,\na\n#EXT-X-GAP\n#EXTINF:3,\nb\n#EXT-X-DISCONTINUITY\n#EXTINF:4,\nc\n#EXT-X-ENDLIST")

        #expect(playlist.renditions[0].segments.map(\.resource.uri) == ["a", "c"])
        #expect(playlist.renditions[0].segments[1].time == 5..<9)
        #expect(playlist.duration == 9)
    }

    @Test("Variables are substituted in URIs and quoted strings, once")
    func variables() throws {
        let playlist = try hls(
            """
            #EXTM3U
            #EXT-X-DEFINE:NAME="host",VALUE="https://cdn.example"
            #EXT-X-DEFINE:NAME="auth",VALUE="?a={b}&{$host}"
            #EXT-X-MAP:URI="{$host}/init.mp4{$auth}"
            #EXTINF:1,
            {$host}/{a}/{$/seg.ts{$auth}
            """)
        let segment = playlist.renditions[0].segments[0]
        #expect(segment.initialization?.uri == "https://cdn.example/init.mp4?a={b}&https://cdn.example")
        #expect(segment.resource.uri == "https://cdn.example/{a}/{$/seg.ts?a={b}&https://cdn.example")
    }

    @Test("References to variables of other documents stay as they are")
    func externalVariables() throws {
        let head = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"x\"\n#EXT-X-DEFINE:QUERYPARAM=\"y\"\n#EXTINF:1,\n"
        #expect(try hls(head + "a").renditions[0].segments.count == 1)
        #expect(try hls(head + "{$x}b").renditions[0].segments[0].resource.uri == "{$x}b")
    }

    @Test("Substitution cannot multiply the size of the playlist without limit")
    func substitutionBomb() {
        var limits = MediaLimits()
        limits.playlistBytes = 4000
        let value = String(repeating: "x", count: 1000)
        let text = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"v\",VALUE=\"\(value)\"\n#EXTINF:1,\n{$v}{$v}{$v}{$v}{$v}"
        #expect(failure { try hls(text, limits: limits) } == "tooLarge(playlist)")
    }

    @Test("A byte order mark, CRLF, comments, unknown tags and Low-Latency HLS are accepted")
    func tolerated() throws {
        let lines = [
            "\u{FEFF}#EXTM3U", "# comment", "#EXT-X-VERSION:9", "#EXT-X-INDEPENDENT-SEGMENTS",
            "#EXT-X-TARGETDURATION:4",
            "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0", "#EXT-X-PART-INF:PART-TARGET=0.33334",
            "#EXT-X-PROGRAM-DATE-TIME:2019-02-14T02:13:36.106Z", "#EXTINF:4.00008 , Title, with comma",
            "fileSequence266.mp4 ", "#EXT-X-PART:DURATION=0.33334,URI=\"filePart271.0.mp4\"", "#EXT-UNKNOWN",
            "#EXTINF:4", "fileSequence267.mp4", "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"filePart273.4.mp4\"",
            "#EXT-X-RENDITION-REPORT:URI=\"../1M/waitForMSN.php\",LAST-MSN=273,LAST-PART=2", "",
        ]
        let playlist = try hls(lines.joined(separator: "\r\n"))

        #expect(playlist.renditions[0].segments.map(\.resource.uri) == ["fileSequence266.mp4", "fileSequence267.mp4"])
        #expect(playlist.isLive)
    }

    @Test("A player begins a live playlist three target durations before its end, or at HOLD-BACK")
    func liveStart() throws {
        let segments = (0..<10).map { "#EXTINF:4,\n\($0).ts" }.joined(separator: "\n")
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:5\n"
        #expect(try hls(head + segments).liveStart == 25)
        let control = "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,HOLD-BACK=12.5\n"
        #expect(try hls(head + control + segments).liveStart == 27.5)
        #expect(try hls("#EXTM3U\n" + segments).liveStart == 28)
        #expect(try hls(head + "#EXTINF:4,\na.ts").liveStart == 0)
        #expect(try hls(head + segments + "\n#EXT-X-ENDLIST").liveStart == nil)
    }

    @Test("A span without a start is that of a player, and a negative start counts from the end")
    func spans() {
        let player = PlayRequest(time: 0..<10, hasStart: false)
        #expect(player.span(end: 40, liveStart: 25) == 25..<35)
        #expect(player.span(end: 40) == 0..<10)
        let last = PlayRequest(time: -15 ..< -5)
        #expect(last.span(end: 40, liveStart: 25) == 25..<35)
        #expect(last.span(end: 10) == 0..<10)
        #expect(last.span(end: .infinity) == -15 ..< -5)
        #expect(throws: CacheError.self) { try last.span(end: nil).checkBegins(within: nil) }
    }

    @Test("The type decides whether a playlist without an end is live")
    func types() throws {
        #expect(try hls("#EXTM3U\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXTINF:1,\na").isLive)
        let playlist = try hls("#EXTM3U\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXTINF:1,\na")
        #expect(!playlist.isLive)
        #expect(playlist.duration == 1)
    }

    @Test("A quoted attribute value can contain commas and equals signs")
    func quotedValues() throws {
        let playlist = try hls(
            "#EXTM3U\n#EXT-X-STREAM-INF:CODECS=\"avc1.1,mp4a.1\",BANDWIDTH=5,NAME=\"a=b, c\",RESOLUTION=1x1\nv.m3u8")
        #expect(playlist.renditions[0].id == "a=b, c")
        #expect(playlist.renditions[0].bitsPerSecond == 5)
    }

    @Test("A playlist without content lines")
    func empty() throws {
        #expect(try hls("#EXTM3U\n#EXT-X-TARGETDURATION:4\n").renditions[0].segments.isEmpty)
        #expect(failure { try hls("#EXTM3U\n") } == "malformed(EXT-X-TARGETDURATION, 8)")
    }

    @Test(
        "Invalid durations are malformed",
        arguments: ["nan", "inf", "1e3", "", "1.2.3", "99999999999", "0x10", "+1", "1,5e9x\n#EXTINF:abc"])
    func durations(text: String) throws {
        let playlist = try hls("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:\(text),\na\n")
        #expect(playlist.warnings.map(\.cause) == ["EXTINF"])
        #expect(playlist.warnings[0].line >= 3)
        // The segment is kept.
        #expect(playlist.renditions[0].segments.map(\.time) == [0..<4])
    }

    @Test("A negative duration is unknown, and the target duration replaces it")
    func unknownDuration() throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:-1 tvg-id=\"1\",A\na\n#EXTINF:-1,\nb\n"
        let playlist = try hls(text)
        #expect(playlist.warnings.isEmpty)
        #expect(playlist.renditions[0].segments.map(\.time) == [0..<5, 5..<10])
    }

    @Test("The sum of the durations is limited")
    func totalDuration() {
        let text = "#EXTM3U\n#EXTINF:6000000000,\na\n#EXTINF:6000000000,\nb\n"
        #expect(cause(text) == "EXTINF")
    }

    /// The cause of the first skipped line.
    private func cause(_ text: String) -> String? { (try? hls(text))?.warnings.first?.cause }

    private static let malformedLineTexts: [(String, String)] = [
        ("a.ts", "EXTINF"), ("#EXT-X-TARGETDURATION:x", "EXT-X-TARGETDURATION"),
        ("#EXT-X-MEDIA-SEQUENCE:-1", "EXT-X-MEDIA-SEQUENCE"), ("#EXT-X-PLAYLIST-TYPE:LIVE", "EXT-X-PLAYLIST-TYPE"),
        ("#EXT-X-BYTERANGE:x@1", "EXT-X-BYTERANGE"), ("#EXT-X-BYTERANGE:0@1", "EXT-X-BYTERANGE"),
        ("#EXT-X-BYTERANGE:1@-1", "EXT-X-BYTERANGE"), ("#EXT-X-BYTERANGE:9007199254740992@0", "EXT-X-BYTERANGE"),
        ("#EXTINF:1,\n#EXT-X-BYTERANGE:9007199254740991@1\na", "EXT-X-BYTERANGE"),
        ("#EXT-X-MAP:BYTERANGE=\"1@0\"", "EXT-X-MAP"), ("#EXT-X-MAP:URI=\"a\",BYTERANGE=\"x\"", "EXT-X-MAP"),
        ("#EXT-X-MAP:URI=\"a", "EXT-X-MAP"), ("#EXT-X-MAP:URI=\"a\"b", "EXT-X-MAP"), ("#EXT-X-MAP:x", "EXT-X-MAP"),
        ("#EXT-X-KEY:URI=\"a\"", "EXT-X-KEY"), ("#EXT-X-KEY:METHOD=AES-128", "EXT-X-KEY"),
        ("#EXT-X-STREAM-INF:BANDWIDTH=x\na", "EXT-X-STREAM-INF"),
        ("#EXT-X-MEDIA:TYPE=AUDIO,NAME=\"x\"", "EXT-X-MEDIA"), ("#EXT-X-MEDIA:NAME=\"x\"", "EXT-X-MEDIA"),
        ("#EXTINF:1,\na\n#EXT-X-STREAM-INF:BANDWIDTH=1\nb", "EXT-X-STREAM-INF"),
        ("#EXT-X-STREAM-INF:BANDWIDTH=1\nb\n#EXTINF:1,\na", "EXTINF"),
        ("#EXT-X-DEFINE:NAME=\"a\"", "EXT-X-DEFINE"), ("#EXT-X-DEFINE:NAME=\"a b\",VALUE=\"\"", "EXT-X-DEFINE"),
        ("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\"\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\"", "EXT-X-DEFINE"),
        ("#EXT-X-DEFINE:VALUE=\"a\"", "EXT-X-DEFINE"), ("#EXTINF:1,\n{$undefined}", "variable"),
    ]

    @Test("Malformed lines are skipped with the name of their tag", arguments: malformedLineTexts)
    func malformedLines(line: String, name: String) {
        #expect(cause("#EXTM3U\n" + line + "\n#EXTINF:1,\nok.ts") == name)
    }

    @Test("Nine malformed lines are skipped, and ten reject the playlist")
    func manyMalformedLines() throws {
        let text = { "#EXTM3U\n" + String(repeating: "#EXT-X-KEY:METHOD=AES-128\n", count: $0) + "#EXTINF:1,\na" }
        let playlist = try hls(text(9))
        #expect(playlist.warnings.map(\.line) == Array(2...10))
        #expect(playlist.warnings[0].description == "Line 2 was skipped: EXT-X-KEY is malformed.")
        #expect(playlist.renditions[0].segments.count == 1)
        #expect(malformed { try hls(text(10)) } == "EXT-X-KEY")
    }

    @Test("The type of a playlist may have lower case")
    func lowerCaseType() throws {
        #expect(try !hls("#EXTM3U\n#EXT-X-PLAYLIST-TYPE:vod\n#EXTINF:1,\na").isLive)
    }

    @Test("Other texts are unsupported")
    func unsupported() {
        #expect(failure { try hls("") } == "unsupported(first bytes \"\")")
        #expect(failure { try hls("<html>\n<body>0123456789") } == "unsupported(first bytes \"<html>.<body>012\")")
        #expect(failure { try hls("#EXTM3U8\n") }?.hasPrefix("unsupported") == true)
        #expect(failure { try hls("#EXTM3U\n#EXT-X-SKIP:SKIPPED-SEGMENTS=3") } == "unsupported(EXT-X-SKIP)")
    }

    @Test("A URI of invalid UTF-8 is skipped, in a title it is ignored")
    func encoding() throws {
        let head = Array("#EXTM3U\n#EXTINF:1,".utf8)
        let title = head + [0xE4, 0x0A, 0x61]
        #expect(try HLSParser.playlist(title, limits: MediaLimits()).renditions[0].segments.count == 1)
        let uri = head + [0x0A, 0xE4]
        #expect(try HLSParser.playlist(uri, limits: MediaLimits()).warnings.map(\.cause) == ["UTF-8"])
    }

    @Test("The limits apply")
    func limits() {
        var limits = MediaLimits()
        limits.playlistBytes = 100
        limits.segments = 2
        limits.renditions = 2
        let long = "#EXTM3U\n#" + String(repeating: "x", count: 100)
        #expect(failure { try hls(long, limits: limits) } == "tooLarge(playlist)")
        let segments = "#EXTM3U\n" + String(repeating: "#EXTINF:1,\na\n", count: 3)
        #expect(failure { try hls(segments, limits: limits) } == "tooLarge(segments)")
        let gaps = "#EXTM3U\n" + String(repeating: "#EXT-X-GAP\n#EXTINF:1,\na\n", count: 3)
        #expect(failure { try hls(gaps, limits: limits) } == "tooLarge(segments)")
        let variants = "#EXTM3U\n" + String(repeating: "#EXT-X-STREAM-INF:A=1\na\n", count: 3)
        #expect(failure { try hls(variants, limits: limits) } == "tooLarge(renditions)")
    }
}
