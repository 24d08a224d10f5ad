import CacheCore
import MediaParsing
import Testing

/// Selection of renditions by language, codecs and resolution.
struct RenditionFilterTests {
    private static let multivariant = """
        #EXTM3U
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Deutsch",LANGUAGE="de-AT",URI="de.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="en.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="b",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="b.m3u8"
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="ens.m3u8"
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="Deutsch",LANGUAGE="de",URI="des.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=100,RESOLUTION=640x360,CODECS="avc1.4d,mp4a.40.2",AUDIO="b"
        0.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=500,RESOLUTION=1280x720,CODECS="avc1.4d,mp4a.40.2",AUDIO="a",SUBTITLES="s"
        1.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=900,RESOLUTION=1920x1080,CODECS="hvc1.1,mp4a.40.2",AUDIO="a",SUBTITLES="s"
        2.m3u8
        """

    private func playlists(_ filter: String) throws -> [String] {
        let filter = try #require(RenditionFilter(filter))
        return try hls(Self.multivariant).selected(.matching(filter)).compactMap(\.playlist)
    }

    @Test("A variant stream and its sound are selected by their properties")
    func variants() throws {
        #expect(try playlists("language=de") == ["1.m3u8", "de.m3u8", "des.m3u8"])
        #expect(try playlists("language=DE-at") == ["1.m3u8", "de.m3u8", "ens.m3u8"])
        #expect(try playlists("language=en") == ["0.m3u8", "b.m3u8"])
        #expect(try playlists("codecs=hvc1") == ["2.m3u8", "en.m3u8", "ens.m3u8"])
        #expect(try playlists("maxHeight=720") == ["1.m3u8", "en.m3u8", "ens.m3u8"])
        #expect(try playlists("maxHeight=720,maxBitsPerSecond=200") == ["0.m3u8", "b.m3u8"])
        #expect(try playlists("maxHeight=2000,language=de,codecs=AVC1") == ["1.m3u8", "de.m3u8", "des.m3u8"])
    }

    @Test("A choice that matches nothing is empty", arguments: ["language=d", "maxHeight=100", "codecs=av01"])
    func nothing(filter: String) throws { #expect(try playlists(filter).isEmpty) }

    @Test("The choices are listed once each")
    func choices() throws {
        let choices = try hls(Self.multivariant).choices
        #expect(
            choices.contains(
                "audio de-AT; audio en; subtitles en; subtitles de; video 640x360 avc1.4d,mp4a.40.2 100 bit/s"))
        #expect(!choices.contains("…") && choices.split(separator: ";").count == 7)
    }

    @Test("Representations are selected by their properties")
    func representations() throws {
        let text = """
            <MPD mediaPresentationDuration="PT4S"><Period><AdaptationSet contentType="video" codecs="avc1.4d">
            <SegmentTemplate duration="4" media="$RepresentationID$"/><Representation id="v1" bandwidth="1" height="360"/>
            <Representation id="v2" bandwidth="2" width="1280" height="720"/>
            <Representation id="v3" bandwidth="3" height="720" codecs="hvc1"/></AdaptationSet>
            <AdaptationSet contentType="audio" lang="en" codecs="mp4a.40.2"><SegmentTemplate duration="4" media="en"/>
            <Representation id="en"/></AdaptationSet><AdaptationSet contentType="audio" lang="de" codecs="opus">
            <SegmentTemplate duration="4" media="de"/><Representation id="de"/></AdaptationSet></Period></MPD>
            """
        let playlist = try dash(text)
        func ids(_ filter: String) -> [String]? {
            RenditionFilter(filter).map { playlist.selected(.matching($0)).map(\.id) }
        }
        #expect(ids("language=de") == ["v1", "de"] && ids("language=fr") == [])
        #expect(ids("codecs=hvc1") == ["v3", "en"] && ids("codecs=opus") == ["v1", "de"])
        #expect(ids("maxHeight=720") == ["v3", "en"] && ids("maxHeight=100") == [])
        #expect(ids("maxHeight=720,codecs=avc1,language=de") == ["v2", "de"])
        let shown = playlist.renditions[1]
        #expect(shown.width == 1280 && shown.height == 720 && shown.codecs == ["avc1.4d"] && shown.language == nil)
    }

    @Test("A media playlist has no choice")
    func mediaPlaylist() throws {
        let playlist = try hls("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\na.ts\n")
        #expect(playlist.selected(.matching(RenditionFilter(language: "de"))).count == 1)
    }

    @Test(
        "The text form of a choice is read again",
        arguments: [
            "lowest", "first", "all", "3000000", "language=pt-BR", "codecs=avc1.4d",
            "maxBitsPerSecond=1,maxHeight=2,language=de,codecs=mp4a",
        ])
    func text(text: String) { #expect(RenditionChoice(text)?.text == text) }

    @Test(
        "Other texts are no choice",
        arguments: [
            "", "lowes", "-1", "0", "language=", "language=d_e", "language=de-", "codecs=a b", "maxHeight=0",
            "height=1",
            "maxHeight=1,maxHeight=1", "language=de,", "maxHeight=x", "language=a-b-c-d-e-f-g-h-i",
        ])
    func noChoice(text: String) { #expect(RenditionChoice(text) == nil) }
}
