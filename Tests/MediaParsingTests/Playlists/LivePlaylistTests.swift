import CacheCore
import MediaParsing
import Testing

/// Live manifests at a given time, the position of a player, and the update interval.
struct LivePlaylistTests {
    /// 2026-01-01T00:00:00Z.
    private static let start = 1_767_225_600.0

    /// A dynamic manifest that began at ``start``.
    private func live(
        _ content: String, attributes: String = "", after seconds: Double?, limits: MediaLimits = MediaLimits()
    ) throws -> MediaPlaylist {
        let live = #"type="dynamic" availabilityStartTime="2026-01-01T00:00:00" "# + attributes
        return try dash(mpd(content, attributes: live), limits: limits, now: seconds.map { Self.start + $0 })
    }

    @Test("A playlist is loaded again after its interval, one of HLS later after a change")
    func reloads() throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\na.ts\n"
        let media = try HLSParser.playlist(Array(text.utf8), limits: MediaLimits())
        #expect(media.reloadInterval(afterChange: true) == .seconds(6))
        #expect(media.reloadInterval(afterChange: false) == .seconds(3))
        let stated = try live(Self.numbers, attributes: #"minimumUpdatePeriod="PT9S""#, after: 30)
        #expect(stated.reloadInterval(afterChange: true) == .seconds(9))
        #expect(try live(Self.numbers, after: 30).reloadInterval(afterChange: true) == .seconds(4))
    }

    private static let numbers =
        #"<Representation id="a"><SegmentTemplate duration="4" startNumber="5" media="$Number$.m4s"/></Representation>"#

    @Test("A template with numbers has the complete segments of the time shift buffer")
    func template() throws {
        let shift = #"timeShiftBufferDepth="PT10S""#
        let playlist = try live(Self.numbers, attributes: shift, after: 30.5)
        // Seven segments are complete; the buffer begins at 20.5 s.
        #expect(playlist.renditions[0].segments.map(\.resource.uri) == ["10.m4s", "11.m4s"])
        #expect(playlist.renditions[0].segments.map(\.time) == [20..<24, 24..<28])
        #expect(playlist.edge == 30.5 && playlist.isLive && playlist.duration == nil)

        #expect(try live(Self.numbers, after: 30.5).renditions[0].segments.count == 7)
        #expect(try live(Self.numbers, after: 32).renditions[0].segments.count == 8)
        #expect(try live(Self.numbers, after: 3.9).renditions[0].segments.isEmpty)
        #expect(try live(Self.numbers, after: -100).renditions[0].segments.isEmpty)
        #expect(try live(Self.numbers, after: nil).renditions[0].segments.isEmpty)
    }

    @Test("The number of segments of a live template is limited")
    func limit() throws {
        #expect(throws: MediaError.self) { _ = try live(Self.numbers, after: 4 * 50_001) }
        let shift = #"timeShiftBufferDepth="PT1M""#
        #expect(try live(Self.numbers, attributes: shift, after: 4e9).renditions[0].segments.count == 15)
    }

    @Test("A period that has ended has all its segments")
    func ended() throws {
        let text = """
            <MPD type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z"><Period duration="PT10S"><AdaptationSet>
            \(Self.numbers)</AdaptationSet></Period><Period><AdaptationSet>\(Self.numbers)</AdaptationSet></Period></MPD>
            """
        let segments = try dash(text, now: Self.start + 19).renditions.flatMap(\.segments)
        #expect(segments.map(\.time) == [0..<4, 4..<8, 8..<10, 10..<14, 14..<18])
    }

    @Test("A list has the available segments; without the present time, all")
    func list() throws {
        let urls = (0..<5).map { "<SegmentURL media=\"\($0).m4s\"/>" }.joined()
        let list = "<Representation id=\"a\"><SegmentList duration=\"4\">\(urls)</SegmentList></Representation>"
        let shift = #"timeShiftBufferDepth="PT6S""#
        let window = try live(list, attributes: shift, after: 17).renditions[0].segments
        #expect(window.map(\.resource.uri) == ["2.m4s", "3.m4s"] && window.first?.time == 8..<12)
        #expect(try live(list, after: nil).renditions[0].segments.count == 5)
        #expect(try live(list, after: 1000).renditions[0].segments.count == 5)
    }

    @Test("A timeline that repeats its last entry extends to the live edge")
    func openTimeline() throws {
        let timeline = """
            <Representation id="a"><SegmentTemplate media="$Time$"><SegmentTimeline><S t="0" d="4" r="-1"/></SegmentTimeline>
            </SegmentTemplate></Representation>
            """
        #expect(try live(timeline, after: 13).renditions[0].segments.map(\.resource.uri) == ["0", "4", "8"])
        #expect(try live(timeline, after: 3).renditions[0].segments.isEmpty)
    }

    @Test("A player begins at the live edge minus the delay, in a segment that exists")
    func position() throws {
        let delay = #"suggestedPresentationDelay="PT10S""#
        #expect(try live(Self.numbers, attributes: delay, after: 30.5).liveStart == 20.5)
        // Three segments without a stated delay.
        #expect(try live(Self.numbers, after: 30.5).liveStart == 18.5)
        let short = #"suggestedPresentationDelay="PT0.5S""#
        #expect(try live(Self.numbers, attributes: short, after: 30.5).liveStart == 24)
        // The first segment of the time shift buffer.
        let long = #"suggestedPresentationDelay="PT1M" timeShiftBufferDepth="PT10S""#
        #expect(try live(Self.numbers, attributes: long, after: 30.5).liveStart == 20)
        // An encoder that has stopped does not move the edge.
        let urls = "<SegmentURL media=\"a\"/><SegmentURL media=\"b\"/>"
        let list = "<Representation id=\"a\"><SegmentList duration=\"4\">\(urls)</SegmentList></Representation>"
        #expect(try live(list, after: 1000).edge == 12)
    }

    @Test("The update interval is that of the playlist, half a second at least")
    func updateInterval() throws {
        func hls(target: String, end: String = "") throws -> Duration? {
            try MediaParsingTests.hls("#EXTM3U\n#EXT-X-TARGETDURATION:\(target)\n#EXTINF:1,\na.ts\n\(end)")
                .updateInterval
        }
        #expect(try hls(target: "6") == .seconds(3))
        #expect(try hls(target: "0.4") == .milliseconds(500))
        #expect(try hls(target: "6", end: "#EXT-X-ENDLIST\n") == nil)
        #expect(
            try live("", attributes: #"minimumUpdatePeriod="PT2.5S""#, after: 0).updateInterval == .milliseconds(2500))
        #expect(try live("", attributes: #"minimumUpdatePeriod="PT0S""#, after: 0).updateInterval == .milliseconds(500))
        #expect(try live("", after: 0).updateInterval == nil)
        #expect(try dash(mpd("")).updateInterval == nil)
    }
}
