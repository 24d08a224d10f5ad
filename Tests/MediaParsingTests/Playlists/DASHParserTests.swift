import CacheCore
import MediaParsing
import Testing

/// DASH manifests by hand, in the forms of common packagers.
struct DASHParserTests {
    typealias Resource = MediaPlaylist.Resource

    @Test("Shaka Packager on-demand: SegmentBase results in a file for each representation")
    func segmentBase() throws {
        let playlist = try dash(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!--Generated with https://github.com/shaka-project/shaka-packager version v2.6.1-->
            <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:cenc="urn:mpeg:cenc:2013"
                profiles="urn:mpeg:dash:profile:isoff-on-demand:2011" minBufferTime="PT2S" type="static"
                mediaPresentationDuration="PT1M0.03S">
              <Period id="0">
                <AdaptationSet id="0" contentType="video" width="1280" height="720" subsegmentAlignment="true">
                  <ContentProtection value="cenc" schemeIdUri="urn:mpeg:dash:mp4protection:2011" cenc:default_KID="0"/>
                  <Representation id="0" bandwidth="973483" codecs="avc1.64001f" mimeType="video/mp4" sar="1:1">
                    <BaseURL>video&amp;1.mp4?a=1&#x26;b=2</BaseURL>
                    <SegmentBase indexRange="859-1030" timescale="30000">
                      <Initialization range="0-858"/>
                    </SegmentBase>
                  </Representation>
                </AdaptationSet>
                <AdaptationSet id="1" contentType="audio" lang="en">
                  <Representation id="1" bandwidth="129000" codecs="mp4a.40.2" mimeType="audio/mp4">
                    <BaseURL>
                        <![CDATA[audio.mp4]]>
                    </BaseURL>
                    <SegmentBase indexRange="793-964"><Initialization range="0-792"/></SegmentBase>
                  </Representation>
                </AdaptationSet>
                <AdaptationSet id="2" contentType="text">
                  <Representation id="2" bandwidth="256" mimeType="text/vtt"><BaseURL>en.vtt</BaseURL></Representation>
                </AdaptationSet>
              </Period>
            </MPD>
            """)

        #expect(playlist.format == .dash)
        #expect(!playlist.isLive)
        #expect(playlist.duration == 60.03)
        #expect(playlist.renditions.map(\.file?.uri) == ["video&1.mp4?a=1&b=2", "audio.mp4", "en.vtt"])
        #expect(playlist.renditions.map(\.kind) == [.video, .audio, .subtitles])
        #expect(playlist.renditions.map(\.bitsPerSecond) == [973_483, 129_000, 256])
        #expect(playlist.renditions[0].fileTime == 0..<60.03)
        #expect(playlist.selected(.lowest).map(\.id) == ["0", "1"])
    }

    @Test("Bento4: a SegmentTemplate of the adaptation set with $RepresentationID$ and $Number$")
    func bento() throws {
        let playlist = try dash(
            """
            <?xml version="1.0" ?>
            <MPD mediaPresentationDuration="PT2M1.100S" minBufferTime="PT5.00S"
                profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static"
                xmlns="urn:mpeg:dash:schema:mpd:2011">
              <Period>
                <AdaptationSet maxHeight="360" maxWidth="640" mimeType="video/mp4" segmentAlignment="true">
                  <SegmentTemplate duration="5000" initialization="$RepresentationID$/init.mp4"
                      media="$RepresentationID$/seg-$Number$.m4s" startNumber="1" timescale="1000"/>
                  <Representation bandwidth="445000" codecs="avc1.42C01E" id="video/avc1/1" scanType="progressive"/>
                  <Representation bandwidth="845000" codecs="avc1.42C01E" id="video/avc1/2"/>
                </AdaptationSet>
              </Period>
            </MPD>
            """)

        #expect(playlist.renditions.count == 2)
        let segments = playlist.renditions[1].segments
        #expect(segments.count == 25)
        #expect(segments.first?.resource.uri == "video/avc1/2/seg-1.m4s")
        #expect(segments.first?.initialization?.uri == "video/avc1/2/init.mp4")
        #expect(segments.last?.time == 120..<121.1)
    }

    @Test("A SegmentTimeline with times, repetitions and a presentation time offset")
    func timeline() throws {
        let playlist = try dash(
            mpd(
                """
                <SegmentTemplate timescale="10" presentationTimeOffset="1000" media="$Time$-$Number%03d$-$Bandwidth$-$$"
                    startNumber="7"><SegmentTimeline><S t="1000" d="20" r="1"/><S d="10"/><S t="1060" d="20" r="-1"/>
                    </SegmentTimeline></SegmentTemplate>
                <Representation id="v" bandwidth="5"/>
                """))

        let segments = playlist.renditions[0].segments
        #expect(
            segments.map(\.resource.uri) == [
                "1000-007-5-$", "1020-008-5-$", "1040-009-5-$", "1060-010-5-$", "1080-011-5-$",
            ])
        #expect(segments.map(\.time) == [0..<2, 2..<4, 4..<5, 6..<8, 8..<10])
    }

    @Test("A negative repetition extends to the next entry")
    func negativeRepetition() throws {
        let playlist = try dash(
            mpd(
                """
                <Representation id="v"><SegmentTemplate media="$Time$"><SegmentTimeline><S d="2" r="-1"/>
                <S t="7" d="1"/></SegmentTimeline></SegmentTemplate></Representation>
                """))
        #expect(playlist.renditions[0].segments.map(\.resource.uri) == ["0", "2", "4", "6", "7"])
    }

    @Test("Segments outside of the period are dropped, and the last one is cut off")
    func periodBounds() throws {
        let playlist = try dash(
            mpd(
                """
                <Representation id="v"><SegmentTemplate media="$Number$" presentationTimeOffset="5">
                <SegmentTimeline><S t="0" d="4" r="9"/></SegmentTimeline></SegmentTemplate></Representation>
                """))
        #expect(playlist.renditions[0].segments.map(\.resource.uri) == ["2", "3", "4"])
        #expect(playlist.renditions[0].segments.map(\.time) == [0..<3, 3..<7, 7..<10])
    }

    @Test("BaseURL elements of all levels are joined, the first of each level")
    func baseURLs() throws {
        let playlist = try dash(
            """
            <MPD type="static" mediaPresentationDuration="PT1S">
              <BaseURL>https://cdn.example/a/</BaseURL><BaseURL>https://other.example/</BaseURL>
              <Period><BaseURL>b/</BaseURL>
                <AdaptationSet><BaseURL>../c/</BaseURL>
                  <Representation id="1"><BaseURL>d.mp4</BaseURL></Representation>
                  <Representation id="2"><BaseURL>/root/</BaseURL>
                    <SegmentTemplate media="x" initialization="https://third.example/i"/></Representation>
                </AdaptationSet>
              </Period>
            </MPD>
            """)
        #expect(playlist.renditions[0].file?.uri == "https://cdn.example/a/b/../c/d.mp4")
        let segment = try #require(playlist.renditions[1].segments.first)
        #expect(segment.resource.uri == "https://cdn.example/root/x")
        #expect(segment.initialization?.uri == "https://third.example/i")
        #expect(segment.time == 0..<1)
    }

    @Test("A SegmentList with ranges of one file and a duration of the adaptation set")
    func segmentList() throws {
        let playlist = try dash(
            mpd(
                """
                <SegmentList duration="4"/>
                <Representation id="v"><BaseURL>v.mp4</BaseURL><SegmentList>
                  <Initialization range="0-99"/>
                  <SegmentURL mediaRange="100-199" indexRange="100-110"/><SegmentURL mediaRange="200-299"/>
                  <SegmentURL media="tail.mp4"/><SegmentURL media="beyond.mp4"/>
                </SegmentList></Representation>
                """))
        let segments = playlist.renditions[0].segments
        #expect(
            segments.map(\.resource) == [
                Resource(uri: "v.mp4", range: 100..<200), Resource(uri: "v.mp4", range: 200..<300),
                Resource(uri: "tail.mp4"),
            ])
        #expect(segments.map(\.time) == [0..<4, 4..<8, 8..<10])
        #expect(segments[0].initialization == Resource(uri: "v.mp4", range: 0..<100))
    }

    @Test("A SegmentList with a SegmentTimeline has as many segments as URLs")
    func segmentListTimeline() throws {
        let playlist = try dash(
            mpd(
                """
                <Representation id="v"><SegmentList timescale="2">
                <SegmentTimeline><S t="0" d="2" r="8"/></SegmentTimeline>
                <SegmentURL media="a"/><SegmentURL media="b"/></SegmentList></Representation>
                """))
        #expect(playlist.renditions[0].segments.map(\.resource.uri) == ["a", "b"])
        #expect(playlist.renditions[0].segments[1].time == 1..<2)
    }

    @Test("A template on the representation replaces a SegmentBase above it, and completes a template above it")
    func inheritance() throws {
        let playlist = try dash(
            """
            <MPD type="static" mediaPresentationDuration="PT4S"><Period>
            <SegmentTemplate timescale="10" duration="20" startNumber="0"/>
            <AdaptationSet><SegmentTemplate initialization="i-$RepresentationID$"/>
              <Representation id="a"><SegmentTemplate media="a$Number$"/></Representation>
              <Representation id="b"><SegmentTemplate media="b$Number$" startNumber="5" duration="40"/></Representation>
              <Representation id="c"><SegmentBase indexRange="0-9"/><BaseURL>c.mp4</BaseURL></Representation>
            </AdaptationSet></Period></MPD>
            """)
        #expect(playlist.renditions[0].segments.map(\.resource.uri) == ["a0", "a1"])
        #expect(playlist.renditions[0].segments[0].initialization?.uri == "i-a")
        #expect(playlist.renditions[1].segments.map(\.resource.uri) == ["b5"])
        #expect(playlist.renditions[2].file?.uri == "c.mp4")
    }

    @Test("Periods continue a representation of the same id, and others become separate renditions")
    func periods() throws {
        let set = { (id: String, name: String) in
            """
            <AdaptationSet id="1" contentType="video"><SegmentTemplate duration="2" media="\(name)$Number$"/>
            <Representation id="\(id)" bandwidth="1"/></AdaptationSet>
            """
        }
        let playlist = try dash(
            """
            <MPD mediaPresentationDuration="PT12S"><Period duration="PT4S">\(set("v", "a"))</Period>
            <Period>\(set("ad", "x"))</Period><Period start="PT8S">\(set("v", "b"))</Period></MPD>
            """)
        #expect(playlist.renditions.map(\.id) == ["v", "ad"])
        #expect(playlist.renditions[0].segments.map(\.resource.uri) == ["a1", "a2", "b1", "b2"])
        #expect(playlist.renditions[0].segments.map(\.time) == [0..<2, 2..<4, 8..<10, 10..<12])
        #expect(playlist.renditions[1].segments.map(\.time) == [4..<6, 6..<8])
        #expect(playlist.selected(.lowest).map(\.id) == ["v", "ad"])
        #expect(playlist.duration == 12)
    }

    @Test("A dynamic manifest without the present time has the segments of its timeline only")
    func dynamic() throws {
        let attributes = #"type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z" minimumUpdatePeriod="PT2S""#
        let playlist = try dash(
            mpd(
                """
                <Representation id="a"><SegmentTemplate timescale="1000" media="$Time$"><SegmentTimeline>
                <S t="1700000000000" d="2000" r="2"/><S d="2000" r="-1"/></SegmentTimeline></SegmentTemplate>
                </Representation>
                <Representation id="b"><SegmentTemplate duration="2" media="$Number$"/></Representation>
                """, attributes: attributes))
        #expect(playlist.isLive)
        #expect(playlist.duration == nil)
        #expect(playlist.renditions[0].segments.count == 4)
        #expect(playlist.renditions[0].segments[3].time == 1_700_000_006..<1_700_000_008)
        #expect(playlist.renditions[1].segments.isEmpty)
    }

    @Test(
        "The kind follows from the content type, the MIME type or the codecs",
        arguments: [
            (#"contentType="text" mimeType="application/mp4""#, TrackKind.subtitles),
            (#"mimeType="audio/webm""#, .audio), (#"mimeType="application/mp4" codecs="stpp""#, .subtitles),
            (#"mimeType="application/ttml+xml""#, .subtitles), (#"mimeType="image/jpeg""#, .other),
            (#"codecs="avc1.4,mp4a.40""#, .video), (#"codecs="opus""#, .audio), (#"width="5""#, .video), ("", .other),
        ])
    func kinds(attributes: String, kind: TrackKind) throws {
        let text = """
            <m:MPD xmlns:m="urn:mpeg:dash:schema:mpd:2011"><m:Period><m:AdaptationSet \(attributes)>
            <m:Representation id="a"><m:BaseURL>x</m:BaseURL></m:Representation></m:AdaptationSet></m:Period></m:MPD>
            """
        #expect(try dash(text).renditions.map(\.kind) == [kind])
    }

    @Test(
        "ISO 8601 durations",
        arguments: [
            ("PT0S", 0.0), ("PT1H2M3.5S", 3723.5), ("P1DT1S", 86401.0), ("P1Y2M3D", 36_979_200.0),
            ("PT90M", 5400.0), ("PT.5S", 0.5),
        ])
    func durations(text: String, seconds: Double) throws {
        let text = mpd("", attributes: "mediaPresentationDuration=\"\(text)\"")
        #expect(try dash(text).duration == seconds)
    }

    @Test(
        "Invalid durations are malformed",
        arguments: [
            "", "P", "PT", "P1", "1S", "PT1S1M", "-PT1S", "PT-1S", "PT1e5S", "PTnanS", "P1DT", "PT1S ", "P9999999Y",
        ])
    func invalidDurations(text: String) {
        let text = mpd("", attributes: "mediaPresentationDuration=\"\(text)\"")
        #expect(malformed { try dash(text) } == "MPD@mediaPresentationDuration")
    }

    private static let malformedContents: [(String, String)] = [
        (#"<Representation/>"#, "BaseURL"), (#"<Representation bandwidth="-1"/>"#, "Representation@bandwidth"),
        (#"<SegmentTemplate timescale="0"/>"#, "SegmentTemplate@timescale"),
        (#"<SegmentTemplate duration="1.x"/>"#, "SegmentTemplate@duration"),
        (#"<SegmentTemplate startNumber="x"/>"#, "SegmentTemplate@startNumber"),
        (#"<SegmentTemplate duration="1"/><Representation id="a"/>"#, "SegmentTemplate@media"),
        (#"<SegmentTemplate media="$Number" duration="1"/><Representation id="a"/>"#, "SegmentTemplate"),
        (#"<SegmentTemplate media="$What$" duration="1"/><Representation id="a"/>"#, "SegmentTemplate"),
        (#"<SegmentTemplate media="$Number%5x$" duration="1"/><Representation id="a"/>"#, "SegmentTemplate"),
        (#"<SegmentTemplate media="$Number%099d$" duration="1"/><Representation id="a"/>"#, "SegmentTemplate"),
        (#"<SegmentTemplate media="$Bandwidth$" duration="1"/><Representation id="a"/>"#, "SegmentTemplate"),
        (#"<SegmentTemplate media="$RepresentationID$" duration="1"/><Representation/>"#, "SegmentTemplate"),
        (
            #"<SegmentTemplate media="x" initialization="$Time$" duration="1"/><Representation/>"#,
            "SegmentTemplate@initialization"
        ),
        (#"<SegmentTemplate><SegmentTimeline><S t="0"/></SegmentTimeline></SegmentTemplate>"#, "S@d"),
        (#"<SegmentTemplate><SegmentTimeline><S d="0"/></SegmentTimeline></SegmentTemplate>"#, "S@d"),
        (#"<SegmentTemplate><SegmentTimeline><S d="1" r="x"/></SegmentTimeline></SegmentTemplate>"#, "S@r"),
        (#"<SegmentTemplate><SegmentTimeline><S d="1" t="-1"/></SegmentTimeline></SegmentTemplate>"#, "S@t"),
        (
            """
            <SegmentTemplate media="x"><SegmentTimeline><S d="1" r="-1"/><S d="1"/></SegmentTimeline>\
            </SegmentTemplate><Representation/>
            """, "S@r"
        ),
        (
            """
            <SegmentTemplate media="x"><SegmentTimeline><S t="9223372036854775806" d="9223372036854775806"/>\
            </SegmentTimeline></SegmentTemplate><Representation/>
            """, "S"
        ),
        (#"<SegmentList><SegmentURL mediaRange="5-4"/></SegmentList>"#, "SegmentURL@mediaRange"),
        (#"<SegmentList><Initialization range="5"/></SegmentList>"#, "Initialization@range"),
        (#"<SegmentList><SegmentURL/><SegmentURL/></SegmentList><Representation/>"#, "SegmentList"),
        (#"<SegmentList duration="1"><SegmentURL/></SegmentList><Representation/>"#, "BaseURL"),
        (#"<SegmentList duration="1"><Initialization/></SegmentList><Representation/>"#, "Initialization"),
    ]

    @Test("Malformed elements are named", arguments: malformedContents)
    func malformedElements(content: String, name: String) {
        #expect(malformed { try dash(mpd(content)) } == name)
    }

    @Test("Periods must be in order and have a known end for regular segments")
    func malformedPeriods() {
        let open = mpd(#"<SegmentTemplate media="x" duration="1"/><Representation id="a"/>"#, attributes: "")
        #expect(malformed { try dash(open) } == "mediaPresentationDuration")
        let endless = mpd(
            """
            <SegmentTemplate media="x"><SegmentTimeline><S d="1" r="-1"/></SegmentTimeline></SegmentTemplate>
            <Representation/>
            """,
            attributes: "")
        #expect(malformed { try dash(endless) } == "mediaPresentationDuration")
        #expect(malformed { try dash(#"<MPD><Period start="PT5S"/><Period start="PT4S"/></MPD>"#) } == "Period")
        #expect(malformed { try dash("<MPD/>") } == "Period")
    }

    @Test("Other documents are unsupported")
    func unsupported() {
        #expect(failure { try dash("#EXTM3U\n") } == "unsupported(first bytes \"#EXTM3U.\")")
        #expect(failure { try dash("<smil/>") } == "unsupported(root element smil)")
        #expect(failure { try dash("<!DOCTYPE MPD [<!ENTITY a \"b\">]><MPD/>") } == "unsupported(DOCTYPE)")
        #expect(failure { try dash("<!doctype html><html>") } == "unsupported(DOCTYPE)")
        let remote = #"<MPD xmlns:xlink="http://www.w3.org/1999/xlink"><Period xlink:href="https://a/p.xml"/></MPD>"#
        #expect(failure { try dash(remote) } == "unsupported(xlink:href)")
        let sub = mpd(#"<SegmentTemplate media="$SubNumber$" duration="1"/><Representation id="a"/>"#)
        #expect(failure { try dash(sub) } == "unsupported($SubNumber$)")
    }

    @Test("The limits apply to expanded segments, renditions, elements and depth")
    func limits() {
        var limits = MediaLimits()
        limits.segments = 20
        limits.renditions = 2
        let many = mpd(#"<SegmentTemplate media="$Number$" timescale="1000" duration="1"/><Representation id="a"/>"#)
        #expect(failure { try dash(many, limits: limits) } == "tooLarge(segments)")
        let repeated = mpd(
            """
            <SegmentTemplate media="$Number$"><SegmentTimeline><S d="1" r="9999999999999999999999"/></SegmentTimeline>
            </SegmentTemplate><Representation id="a"/>
            """)
        #expect(failure { try dash(repeated, limits: limits) } == "tooLarge(segments)")
        let outside = mpd(
            """
            <SegmentTemplate media="$Number$" presentationTimeOffset="99"><SegmentTimeline><S d="1" r="14"/>
            </SegmentTimeline></SegmentTemplate><Representation id="a"/><Representation id="b"/>
            """)
        #expect(failure { try dash(outside, limits: limits) } == "tooLarge(segments)")
        let entries = String(repeating: #"<S t="99" d="1" r="-1"/>"#, count: 15)
        let empty = mpd(
            """
            <SegmentTemplate media="x"><SegmentTimeline>\(entries)</SegmentTimeline></SegmentTemplate>
            <Representation id="a"/><Representation id="b"/>
            """)
        #expect(failure { try dash(empty, limits: limits) } == "tooLarge(segments)")
        let elements = mpd("<SegmentList>" + String(repeating: "<SegmentURL/>", count: 30) + "</SegmentList>")
        #expect(failure { try dash(elements, limits: limits) } == "tooLarge(segments)")
        let renditions = mpd(String(repeating: "<Representation><BaseURL>a</BaseURL></Representation>", count: 3))
        #expect(failure { try dash(renditions, limits: limits) } == "tooLarge(renditions)")
        let deep = mpd(String(repeating: "<a>", count: 8) + String(repeating: "</a>", count: 8))
        #expect(failure { try dash(deep, limits: limits) } == "tooLarge(depth)")
        limits.playlistBytes = many.utf8.count - 1
        #expect(failure { try dash(many, limits: limits) } == "tooLarge(playlist)")
    }

    @Test("A template has a limited number of identifiers")
    func templatePieces() {
        let media = String(repeating: "$$", count: 64)
        let text = mpd("<SegmentTemplate media=\"\(media)\" duration=\"10\"/><Representation id=\"a\"/>")
        #expect(malformed { try dash(text) } == "SegmentTemplate")
    }

    @Test("A long template cannot multiply the size of the manifest without limit")
    func templateBomb() {
        var limits = MediaLimits()
        limits.playlistBytes = 4000
        let media = "$Number$" + String(repeating: "x", count: 3000)
        let text = mpd(
            "<SegmentTemplate media=\"\(media)\" timescale=\"10\" duration=\"1\"/><Representation id=\"a\"/>")
        #expect(failure { try dash(text, limits: limits) } == "tooLarge(playlist)")
    }
}
