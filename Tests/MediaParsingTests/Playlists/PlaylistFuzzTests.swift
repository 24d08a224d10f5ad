import CacheCore
import MediaParsing
import TestChance
import Testing

/// Mutated playlists: no trap, and results within the limits.
struct PlaylistFuzzTests {
    private static let hlsSeeds = [
        """
        #EXTM3U
        #EXT-X-TARGETDURATION:4
        #EXT-X-DEFINE:NAME="h",VALUE="https://a/"
        #EXT-X-KEY:METHOD=AES-128,URI="{$h}k",KEYFORMAT="identity"
        #EXT-X-MAP:URI="m.mp4",BYTERANGE="719@0"
        #EXTINF:4.5,
        #EXT-X-BYTERANGE:1000@719
        m.mp4
        #EXTINF:4,title
        #EXT-X-BYTERANGE:500
        m.mp4
        #EXT-X-GAP
        #EXTINF:1,
        ../{$h}x.ts
        #EXT-X-ENDLIST
        """,
        """
        #EXTM3U
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n",DEFAULT=YES,URI="a.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS="avc1.4d401e,mp4a.40.2",AUDIO="a",SUBTITLES="s"
        low.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=2560000
        mid.m3u8
        """,
    ]

    private static let dashSeeds = [
        """
        <?xml version="1.0"?><MPD type="static" mediaPresentationDuration="PT1M0.5S"><BaseURL>https://a/b/</BaseURL>
        <Period start="PT0S" duration="PT30S"><AdaptationSet id="1" mimeType="video/mp4"><!-- c -->
        <SegmentTemplate timescale="90" presentationTimeOffset="9" media="$RepresentationID$-$Time$-$Number%05d$-$$"
        initialization="i-$Bandwidth$"><SegmentTimeline><S t="9" d="180" r="3"/><S d="90" r="-1"/></SegmentTimeline>
        </SegmentTemplate><Representation id="v&amp;1" bandwidth="5"/><Representation id="2" bandwidth="9"/>
        </AdaptationSet></Period><Period><AdaptationSet id="1" mimeType="video/mp4"><SegmentTemplate duration="2"
        startNumber="3" media="x$Number$"/><Representation id="2" bandwidth="9"/></AdaptationSet></Period></MPD>
        """,
        """
        <MPD type="dynamic"><Period><AdaptationSet contentType="audio"><Representation id="1"><BaseURL><![CDATA[a.mp4]]>
        </BaseURL><SegmentList timescale="10" duration="20"><Initialization range="0-99"/><SegmentTimeline><S d="20"
        r="2"/></SegmentTimeline><SegmentURL mediaRange="100-199"/><SegmentURL media="b&#x41;"/></SegmentList>
        </Representation><Representation id="2"><SegmentBase indexRange="0-5"/><BaseURL>../c</BaseURL></Representation>
        </AdaptationSet></Period></MPD>
        """,
    ]

    /// Texts with a meaning, which random bytes would rarely form.
    private static let tokens = [
        "\"", "<", ">", "&", "=", ",", "@", "-", "$", "%", "{$h}", "9223372036854775807", "18446744073709551616", "0",
        "-1", "1e999", "nan", "\n#EXTINF:", "\n", "r=\"-1\"", "d=\"1\"", "t=\"9007199254740993\"", "]]>", "<![CDATA[",
        "<!--", "-->", "<S/>", "<Period>", "</Period>", "PT", "\u{0}", "&#x0;", "$Number%031d$", "../", "//", "?", "#",
    ]

    private static var limits: MediaLimits {
        var limits = MediaLimits()
        limits.playlistBytes = 16 << 10
        limits.segments = 200
        limits.renditions = 8
        return limits
    }

    /// One to four changes of a text.
    private func mutated(_ text: [UInt8], _ random: inout SeededRandom) -> [UInt8] {
        var text = text
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let place = Int.random(in: 0...text.count, using: &random)
            let end = min(text.count, place + Int.random(in: 0...24, using: &random))
            switch Int.random(in: 0..<7, using: &random) {
            case 0: text.removeSubrange(place..<end)
            case 1: text.insert(UInt8.random(in: .min ... .max, using: &random), at: place)
            case 2 where place < text.count: text[place] = UInt8.random(in: .min ... .max, using: &random)
            case 3:
                text.insert(contentsOf: Array(text[place..<end]), at: Int.random(in: 0...text.count, using: &random))
            case 4, 5:
                let digit = UInt8.random(in: 48...57, using: &random)
                if let first = text[place...].firstIndex(where: { (48...57).contains($0) }) { text[first] = digit }
            default: text.insert(contentsOf: (Self.tokens.randomElement(using: &random) ?? "").utf8, at: place)
            }
        }
        return text
    }

    /// Checks the invariants of a playlist and uses all of it.
    private func check(_ playlist: MediaPlaylist) -> Bool {
        guard playlist.renditions.count <= Self.limits.renditions,
            playlist.renditions.reduce(0, { $0 + $1.segments.count }) <= Self.limits.segments,
            playlist.duration.map({ $0 >= 0 && $0.isFinite }) ?? true
        else { return false }
        for choice in [RenditionChoice.lowest, .first, .all, .maxBitsPerSecond(1_000_000)] {
            for rendition in playlist.selected(choice) {
                let resources = playlist.resources(of: 2..<20, in: rendition, keys: true)
                guard Set(resources).count == resources.count else { return false }
                for resource in resources {
                    _ = MediaURI.resolved(resource.uri, against: "https://host/path/list?q")
                    if let range = resource.range, range.lowerBound < 0 || range.isEmpty { return false }
                }
            }
        }
        return playlist.renditions.allSatisfy { rendition in
            rendition.segments.allSatisfy { $0.time.lowerBound >= 0 && $0.time.upperBound.isFinite }
        }
    }

    /// Parses mutated seeds and returns the number of texts that were accepted.
    private func run(
        _ seeds: [String], seed: UInt64, _ parse: ([UInt8], MediaLimits) throws(MediaError) -> MediaPlaylist
    ) -> Int {
        var random = SeededRandom(seed: seed)
        var accepted = 0
        for round in 0..<2_000 {
            let text = mutated(Array(seeds[round % seeds.count].utf8), &random)
            guard let playlist = try? parse(text, Self.limits) else { continue }
            accepted += 1
            guard check(playlist) else {
                Issue.record("seed \(seed), round \(round): \(String(decoding: text, as: UTF8.self))")
                return accepted
            }
        }
        return accepted
    }

    @Test("2,000 mutated HLS playlists", arguments: [1 as UInt64])
    func hls(seed: UInt64) {
        let accepted = run(Self.hlsSeeds, seed: seed, HLSParser.playlist)
        #expect(accepted > 100)
    }

    @Test("2,000 mutated DASH manifests", arguments: [2 as UInt64])
    func dash(seed: UInt64) {
        let accepted = run(Self.dashSeeds, seed: seed) { text, limits throws(MediaError) in
            try DASHParser.manifest(text, limits: limits, now: 1_000_000)
        }
        #expect(accepted > 100)
    }
}
